"""Finding exact and near duplicates among documents, and merging the indexes of such runs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from artifacts_schema.config import MapExecution
from artifacts_schema.errors import UsageError
from stages.dedup.config import DedupConfig, DedupExecution
from stages.engine import Context, Inputs, Many, Stage, Upstream


class Dedup(Stage):
    """Find exact classes and verified near-duplicate pairs; which copy stays is decided later.

    Documents whose normalised text is equal form an exact class, represented by one of them.
    Among those, MinHash-LSH proposes pairs (Broder 1997; Leskovec et al., ch. 3), partners lead to
    further ones, and the exact Jaccard similarity of their shingle sets confirms each. Pairs are
    kept from a low floor on, so that `filter` can move its threshold.

    Earlier indexes make a new snapshot cost only what is new; pairs with a document of an earlier
    one are measured on its text, which `earlier_documents` holds. Results for a document depend
    only on its own and earlier documents outputs: neither on later ones, nor on the order of rows,
    the number of workers, the engine or the memory.
    """

    name, version, reproducible = "dedup", 5, "bytes"
    inputs = {
        "documents": Many("documents", at_least=1),
        "earlier_documents": Many("documents"),
        "dedup_index": Many("dedup_index"),
        "passage_index": Many("passage_index"),
    }
    outputs = {
        "duplicates": "duplicates",
        "dedup_index": "dedup_index",
        "views": "views",
        "passage_index": "passage_index",
    }
    libraries = ("duckdb", "numba", "numpy", "pyarrow", "regex", "scipy", "xxhash")
    worker_modules = (
        "stages.dedup.earlier_texts",
        "stages.dedup.merging",
        "stages.dedup.passages",
        "stages.dedup.pipeline",
        "stages.dedup.signing",
    )
    handles_documents = True
    Config, Execution = DedupConfig, DedupExecution

    @classmethod
    def check_plan(cls, config: Any, inputs: Inputs) -> None:
        """See `_check_kept` and `_check_documents`."""
        _check_kept(inputs)
        if config.verify:
            _check_documents(inputs)

    def run(self, context: Context) -> None:
        from stages.dedup.config import memory_budget
        from stages.dedup.earlier_texts import match_documents
        from stages.dedup.exact import find_exact_classes
        from stages.dedup.index_record import build_corpus, index_record, read_indexes
        from stages.dedup.merging import join_small_shards
        from stages.dedup.passage_files import read_passage_indexes
        from stages.dedup.passages import find_passages
        from stages.dedup.pipeline import compare_documents, make_statistics, write_tables
        from stages.dedup.signing import document_shards, generations, sign_shard

        config, documents = context.config, context.many("documents")
        settings, memory = config.settings(), memory_budget(context)
        indexes = read_indexes(
            context.many("dedup_index"),
            settings,
            verify=config.verify,
            documents=[input_.digest for input_ in documents],
        )
        earlier_passages = read_passage_indexes(
            context.many("passage_index"),
            config.passages,
            [input_.digest for input_ in documents],
        )
        earlier = match_documents(indexes, context.many("earlier_documents"), verify=config.verify)
        shards = document_shards(documents)
        signed = context.map(
            sign_shard, shards, settings=settings, index=config.index, verify=config.verify
        )
        new = generations(documents, shards, signed, index=config.index)
        by_shard = build_corpus(indexes, new, settings)
        joined = join_small_shards(context, new, settings, verified=config.verify)
        corpus = build_corpus(indexes, joined, settings)
        classes = find_exact_classes(context, corpus, memory.rows)
        compared = compare_documents(context, corpus, classes, memory, earlier)
        tables = write_tables(context, corpus, by_shard.shards, classes, compared, memory)
        record = index_record(
            by_shard.new,
            by_shard.knew,
            settings,
            verified=config.verify,
            kept=config.index,
            pairs=tables.pairs,
        )
        context.write_json("dedup_index", "index.json", record)
        passages = find_passages(
            context,
            shards,
            config.passages,
            rows_per_task=memory.rows,
            earlier=earlier_passages,
        )
        counted = {
            "documents": corpus.documents - corpus.first_new,
            "earlier_documents": corpus.first_new,
            "documents_without_words": corpus.documents
            - corpus.first_new
            - corpus.compared(new=True),
            "shingles": sum(result.value["shingles"] for result in signed),
            **classes.counts,
            "capped_buckets": compared.capped_buckets,
        }
        measured = make_statistics(
            config.plain(),
            settings,
            counted,
            compared.verified,
            compared.closed,
            tables.counts,
            compared.recall,
        )
        context.write_json("duplicates", "statistics.json", {**measured, "passages": passages})
        context.count(**measured["counts"])
        context.conserve(records_in=counted["documents"], out=counted["documents"])


class MergeIndexes(Stage):
    """Merge indexes of earlier snapshots into one, so that a later `dedup` reads few.

    Small shards of a documents output are joined, and all pairs brought into one numbering. Every
    document stays with its output, and outputs stay in their order, so a run finds the same with
    the merged index as with those it was made of. Indexes of passages, oldest first, are merged
    beside them where they are given.
    """

    name, version, reproducible = "merge_indexes", 2, "bytes"
    inputs = {
        "dedup_index": Many("dedup_index", at_least=2),
        "passage_index": Many("passage_index"),
    }
    outputs = {"dedup_index": "dedup_index", "passage_index": "passage_index"}
    libraries = ("duckdb", "numpy", "pyarrow")
    worker_modules = ("stages.dedup.merging", "stages.dedup.passage_merging")
    Execution = MapExecution

    @classmethod
    def check_plan(cls, config: Any, inputs: Inputs) -> None:
        """See `_check_kept`."""
        _check_kept(inputs)

    def run(self, context: Context) -> None:
        """Join shards, then pairs, and write the record; then the same of passages."""
        from stages.dedup.index_record import index_record, read_indexes, read_settings
        from stages.dedup.merging import (
            check_alike,
            join_pairs,
            join_shards,
            joined_pairs,
            joined_shards,
            merged_generations,
            merged_numbering,
        )
        from stages.dedup.passage_merging import merge_passage_indexes

        inputs = context.many("dedup_index")
        settings, verified = read_settings(inputs[0])
        indexes = read_indexes(inputs, settings, verify=verified, documents=[])
        check_alike(indexes)
        generations = [generation for index in indexes for generation in index.generations]
        shards = [
            shard
            for place, generation in enumerate(generations)
            for shard in joined_shards(generation, place)
        ]
        joined = context.map(join_shards, shards, settings=settings, verified=verified)
        pairs = joined_pairs(indexes)
        counts = [result.value["many"] for result in context.map(join_pairs, pairs)]
        record = index_record(
            merged_generations(generations, shards, joined),
            merged_numbering(indexes),
            settings,
            verified=verified,
            pairs=[(one.name, count) for one, count in zip(pairs, counts, strict=True)],
        )
        context.write_json("dedup_index", "index.json", record)
        passages = merge_passage_indexes(context, context.many("passage_index"))
        context.count(
            indexes=len(indexes),
            outputs=len(generations),
            documents=sum(generation.size for generation in generations),
            shards_in=sum(len(generation.shards) for generation in generations),
            shards=len(shards),
            pairs=sum(counts),
            passages=passages,
        )


def _check_kept(inputs: Inputs) -> None:
    """UsageError for an earlier index whose run keeps none."""
    for one in inputs.get("dedup_index", ()):
        if getattr(one.config, "index", True) is False:
            raise UsageError(
                f"{one.name} keeps no index (index: false)",
                where="dedup_index",
                hint="run that step with index: true, or leave its index out",
            )


def _check_documents(inputs: Inputs) -> None:
    """UsageError for an index whose documents are not among `earlier_documents`.

    What has yet to be made is compared by name.
    """
    earlier = inputs.get("earlier_documents", ())
    names, digests = {one.name for one in earlier}, {_digest(one) for one in earlier}
    for index in inputs.get("dedup_index", ()):
        for documents in _described(index):
            digest = _digest(documents)
            unknown = bool(earlier) and (digest is None or None in digests)
            if not (unknown or documents.name in names or digest in digests):
                raise UsageError(
                    f"{index.name} describes {documents.name}, which is not passed",
                    where="earlier_documents",
                    hint="pairs with earlier documents are verified on their texts: pass "
                    f"{documents.name} as earlier_documents",
                )


def _described(index: Upstream) -> Iterator[Upstream]:
    """The documents of an index, or of those that it was merged from."""
    if index.stage is MergeIndexes:
        for one in index.inputs.get("dedup_index", ()):
            yield from _described(one)
    else:
        yield from index.inputs.get("documents", ())


def _digest(one: Upstream) -> str | None:
    return one.manifest.output(one.output).digest if one.manifest is not None else None
