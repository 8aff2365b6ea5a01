"""The stage that measures which documents say the same, exactly or nearly."""

from __future__ import annotations

from stages.dedup.config import DedupConfig, DedupExecution
from stages.engine import Context, Many, Stage


class Dedup(Stage):
    """Find exact classes and verified near-duplicate pairs; which copy stays is decided later.

    Documents whose normalised text is equal form an exact class, and one of them stands for all.
    Among those, MinHash-LSH proposes pairs (Broder 1997; Leskovec et al., ch. 3), partners lead to
    further ones, and the exact Jaccard similarity of their shingle sets confirms each. Pairs are
    kept from a low floor on, so that `filter` can move its threshold.

    Earlier indexes make a new snapshot cost only what is new. What is said of a document depends on
    its own and earlier documents outputs alone: neither on later ones, nor on the order of rows,
    the number of workers, the engine or the memory.
    """

    name, version, reproducible = "dedup", 3, "bytes"
    inputs = {"documents": Many("documents", at_least=1), "dedup_index": Many("dedup_index")}
    outputs = {"duplicates": "duplicates", "dedup_index": "dedup_index", "views": "views"}
    libraries = ("numba", "numpy", "pyarrow", "regex", "scipy", "xxhash")
    handles_documents = True
    Config, Execution = DedupConfig, DedupExecution

    def run(self, context: Context) -> None:
        from stages.dedup.classes import exact_classes
        from stages.dedup.comparing import compare
        from stages.dedup.index_record import corpus_of, index_record, read_indexes
        from stages.dedup.memory import within_memory
        from stages.dedup.passages.search import find_passages
        from stages.dedup.signing import document_shards, generations, sign_shard
        from stages.dedup.statistics import statistics
        from stages.dedup.tables import write_tables

        config, documents = context.config, context.many("documents")
        settings, memory = config.settings(), within_memory(context)
        indexes = read_indexes(
            context.many("dedup_index"),
            settings,
            verify=config.verify,
            documents=[given.digest for given in documents],
        )
        shards = document_shards(documents)
        signed = context.map(
            sign_shard, shards, settings=settings, index=config.index, verify=config.verify
        )
        corpus = corpus_of(
            indexes, generations(documents, shards, signed, index=config.index), settings
        )
        classes = exact_classes(context, corpus, memory.rows)
        compared = compare(context, corpus, classes, memory)
        tables = write_tables(context, corpus, classes, compared, memory)
        record = index_record(
            corpus, settings, verified=config.verify, kept=config.index, pairs=tables.pairs
        )
        context.write_json("dedup_index", "index.json", record)
        passages = find_passages(context, shards, config.passages, rows_per_task=memory.rows)
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
        measured = statistics(
            config.plain(),
            settings,
            counted,
            compared.verified,
            compared.closed,
            tables.listed,
            compared.recall,
        )
        context.write_json("duplicates", "statistics.json", {**measured, "passages": passages})
        context.count(**measured["counts"])
        context.conserve(records_in=counted["documents"], out=counted["documents"])
