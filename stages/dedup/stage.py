"""The stage that finds exact and near duplicates among documents."""

from __future__ import annotations

from stages.dedup.config import DedupConfig, DedupExecution
from stages.engine import Context, Many, Stage


class Dedup(Stage):
    """Find exact classes and verified near-duplicate pairs; which copy stays is decided later.

    Documents whose normalised text is equal form an exact class, represented by one of them.
    Among those, MinHash-LSH proposes pairs (Broder 1997; Leskovec et al., ch. 3), partners lead to
    further ones, and the exact Jaccard similarity of their shingle sets confirms each. Pairs are
    kept from a low floor on, so that `filter` can move its threshold.

    Earlier indexes make a new snapshot cost only what is new. Results for a
    document depend only on its own and earlier documents outputs: neither on later ones, nor on
    the order of rows, the number of workers, the engine or the memory.
    """

    name, version, reproducible = "dedup", 4, "bytes"
    inputs = {
        "documents": Many("documents", at_least=1),
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
    worker_modules = ("stages.dedup.passages", "stages.dedup.pipeline", "stages.dedup.signing")
    handles_documents = True
    Config, Execution = DedupConfig, DedupExecution

    def run(self, context: Context) -> None:
        from stages.dedup.config import memory_budget
        from stages.dedup.exact import find_exact_classes
        from stages.dedup.index import build_corpus, index_record, read_indexes
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
        shards = document_shards(documents)
        signed = context.map(
            sign_shard, shards, settings=settings, index=config.index, verify=config.verify
        )
        corpus = build_corpus(
            indexes, generations(documents, shards, signed, index=config.index), settings
        )
        classes = find_exact_classes(context, corpus, memory.rows)
        compared = compare_documents(context, corpus, classes, memory)
        tables = write_tables(context, corpus, classes, compared, memory)
        record = index_record(
            corpus, settings, verified=config.verify, kept=config.index, pairs=tables.pairs
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
