"""The stage that finds documents of like meaning by embeddings."""

from __future__ import annotations

from typing import ClassVar

from artifacts_schema.identity import canonical_sha256
from artifacts_schema.kinds import KINDS, sidecar_folder
from stages.encoders.config import EncoderExecution
from stages.engine import Context, Many, One, Stage
from stages.semantic_dedup.config import SemanticDedupConfig

_COUNTED = ("documents", "empty", "cut", "tokens")


class SemanticDedup(Stage):
    """List pairs of documents whose embeddings are near; which copy stays is decided later.

    SemDeDup (Abbas et al. 2023, arXiv 2303.09540) in its exact form: texts are embedded by a
    published encoder (mean of its last states, length 1), every pair is compared, and those whose
    cosine is at least the floor are listed as `dedup` lists its own. It reads what a first `filter`
    kept, for words in common are found at a fraction of the cost by `dedup`.
    """

    name, version, reproducible = "semantic_dedup", 2, "numerics"
    inputs: ClassVar = {"documents": Many("documents", at_least=1), "model": One("snapshot")}
    outputs: ClassVar = {"duplicates": "duplicates"}
    libraries = ("numpy", "pyarrow", "safetensors", "tokenizers", "torch", "transformers")
    worker_modules = ("stages.semantic_dedup.pairs",)
    handles_documents = True
    Config, Execution = SemanticDedupConfig, EncoderExecution

    def run(self, context: Context) -> None:
        import numpy as np
        import pyarrow as pa

        from stages.encoders.encoder import read_encoder
        from stages.encoders.parts import cut_parts
        from stages.semantic_dedup.pairs import (
            PAIRS,
            Corpus,
            cut_blocks,
            embed_part,
            find_pairs,
            make_rows,
        )

        config, documents = context.config, context.many("documents")
        spec = read_encoder(context, "none")
        layout = canonical_sha256(context.layout_notes)[:12]
        shards = [(n, shard) for n, one in enumerate(documents) for shard in one.shards()]
        parts = [(n, part) for n, shard in shards for part in cut_parts(shard, f"{n:04d}-")]
        embedded = context.map(
            embed_part,
            [part for _, part in parts],
            name=f"embed_part-{layout}",
            workers=spec.workers(context.execution),
            spec=spec,
        )
        places = [place for place, _ in parts]
        embeddings, ages = context.work / "embeddings.f32", context.work / "generation.npy"
        corpus = Corpus.gather(list(zip(places, embedded, strict=True)), embeddings)
        np.save(ages, corpus.generation[corpus.nodes])
        searched = context.map(
            find_pairs,
            cut_blocks(corpus.generation[corpus.nodes]),
            name=f"find_pairs-{layout}",
            embeddings=embeddings,
            generation=ages,
            floor=config.floor,
            most=config.max_partners,
        )
        none = pa.table({"one": [0], "two": [0], "cosine": pa.array([0.0], pa.float32())})[:0]
        pairs = pa.concat_tables([none, *(result.read_scratch(PAIRS) for result in searched)])
        schema, stop = KINDS["duplicates"].tables["*/*.parquet"].arrow(), 0
        for place, shard in shards:
            start, stop = stop, stop + shard.rows
            path = f"{sidecar_folder(documents[place].digest)}/{shard.path}"
            rows = make_rows(corpus, start, stop, pairs, schema)
            context.write_table("duplicates", path, rows)
        counts = {name: sum(result.value[name] for result in embedded) for name in _COUNTED}
        for name in ("pairs", "capped"):
            counts[name] = sum(result.value[name] for result in searched)
        counts["with_partners"] = len(pairs["one"].unique())
        counts["equal_texts"] = len(corpus.ids) - len(np.unique(corpus.stands_for))
        context.count(**counts)
        parameters = {**config.plain(), "measure": "similarity"}
        statistics = {"parameters": parameters, "counts": counts}
        context.write_json("duplicates", "statistics.json", statistics)
        records = sum(one.rows for one in documents)
        context.conserve(records_in=records, out=counts["documents"])
