"""The stage that measures which documents say the same, exactly or nearly."""

from __future__ import annotations

from pydantic import Field

from artifacts_schema.config import Config, Execution
from stages.engine import Context, Many, Stage


class DedupConfig(Config):
    """How candidates are found and which pairs are written down. Defaults are FineWeb's setting."""

    ngram: int = Field(default=5, ge=1, le=64, description="Words in a shingle.")
    bands: int = Field(default=14, ge=1, le=512, description="Bands of the signature.")
    rows: int = Field(default=8, ge=1, le=64, description="Hashes in a band.")
    seed: int = Field(default=1, ge=0, lt=2**64, description="Seed of the hash functions.")
    floor: float = Field(
        default=0.5, gt=0, le=1, description="Least Jaccard similarity of a pair that is kept."
    )
    max_bucket: int = Field(
        default=32,
        ge=1,
        description="In a larger bucket each document is compared with this many first ones only.",
    )
    max_partners: int = Field(
        default=64, ge=1, description="Partners listed for one document, the nearest first."
    )


class Dedup(Stage):
    """Find verified near-duplicate pairs; which copy stays is the filter stage's decision.

    Documents whose normalised text is equal form an exact class, and its first member stands for
    all. Among those, MinHash-LSH proposes pairs (Broder 1997; Leskovec et al., ch. 3) and the
    exact Jaccard similarity of their shingle sets confirms them. Pairs are kept from a low floor
    on, so that `filter` can move its threshold. Order and number of workers change nothing.
    """

    name, version, reproducible = "dedup", 1, "bytes"
    inputs = {"documents": Many("documents", at_least=1)}
    outputs = {"duplicates": "duplicates"}
    libraries = ("numpy", "pyarrow", "regex", "xxhash")
    handles_documents = True
    Config, Execution = DedupConfig, Execution

    def run(self, context: Context) -> None:
        from artifacts_schema.kinds import beside
        from stages.dedup.candidates import candidate_pairs
        from stages.dedup.exact import comparable, exact_classes
        from stages.dedup.neighbours import duplicates_table, nearest
        from stages.dedup.signing import document_shards, gather, sign_shard
        from stages.dedup.statistics import statistics
        from stages.dedup.verify import ShingleStore, pair_tasks, verified_pairs, verify_pairs

        config: DedupConfig = context.config
        shards = document_shards(context.many("documents"))
        signed = context.map(
            sign_shard,
            shards,
            ngram=config.ngram,
            bands=config.bands,
            rows=config.rows,
            seed=config.seed,
        )
        signatures = gather(signed, config.bands)

        first = exact_classes(signatures.digests)
        members = comparable(first, signatures.shingles)
        candidates = candidate_pairs(signatures.keys, members, config.max_bucket)
        verified = context.map(
            verify_pairs,
            pair_tasks(candidates, signatures.shingles),
            store=ShingleStore(
                [result.scratch_path("shingles") for result in signed],
                [result.value["shingles"] for result in signed],
            ),
            floor=config.floor,
        )
        pairs = verified_pairs(candidates, verified, config.floor)
        neighbours = nearest(pairs, documents=len(first), most=config.max_partners)

        stop = 0
        for item, result in zip(shards, signed, strict=True):
            context.check_stop()
            start, stop = stop, stop + result.value["documents"]
            table = duplicates_table(signatures.doc_ids, first, neighbours, start, stop)
            path = f"{beside(item.shard.input.digest)}/{item.shard.path}"
            context.write_table("duplicates", path, table)
        measured = statistics(config, signatures, first, candidates, pairs, neighbours)
        context.write_json("duplicates", "statistics.json", measured)
        context.count(**measured["counts"])
        context.conserve(records_in=stop, out=stop, dropped={})
