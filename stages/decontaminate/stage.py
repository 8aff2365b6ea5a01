"""Measure which documents hold benchmark items, and which items the documents hold."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal, Self

from pydantic import Field, model_validator

from artifacts_schema.config import Config, MapExecution
from stages.engine import Many, Stage

if TYPE_CHECKING:
    from stages.engine import Context


class DecontaminateConfig(Config):
    """What counts as a match."""

    ngram: int = Field(
        default=13, ge=2, le=64, description="Normalised words that a document and an item share."
    )
    min_words: int = Field(
        default=8,
        ge=1,
        description="Shorter passages match as a whole from this many words on.",
    )
    passages: Literal["prompt", "answer", "prompt_and_answer", "choices"] = Field(
        default="prompt_and_answer",
        description="Which texts of an item are looked for: `prompt`: its prompt; `answer`: prompt "
        "and right answer as one text; `prompt_and_answer`: both of these; `choices`: the prompt "
        "with each choice.",
    )
    common_documents: int | None = Field(
        default=None,
        ge=1,
        description="Ignore n-grams that more documents than this hold: phrases, not leaks.",
    )

    @model_validator(mode="after")
    def _short_passages_are_shorter(self) -> Self:
        if self.min_words > self.ngram:
            raise ValueError(f"min_words ({self.min_words}) exceeds ngram ({self.ngram})")
        return self


class Decontaminate(Stage):
    """Find the n-grams that documents share with benchmark items; drop nothing.

    Word 13-grams over normalised text are GPT-3's measure (Brown et al. 2020, appendix C), with its
    least length of 8 for passages that are shorter. The result reads both ways: the items that each
    document holds, with the place in its text, and the documents that hold each item.
    """

    name, version, reproducible = "decontaminate", 2, "bytes"
    inputs: ClassVar = {
        "documents": Many("documents", at_least=1),
        "benchmarks": Many("benchmarks", at_least=1),
    }
    outputs: ClassVar = {"contamination": "contamination"}
    libraries = ("numpy", "pyarrow", "regex", "xxhash")
    handles_documents = True
    Config, Execution = DecontaminateConfig, MapExecution

    def run(self, context: Context) -> None:
        from stages.decontaminate.index import BenchmarkSet, build_index
        from stages.decontaminate.report import common_ngrams, items_table, report_shard
        from stages.decontaminate.scan import document_shards, scan_shard

        config, documents = context.config, context.many("documents")
        benchmarks = BenchmarkSet("benchmarks", tuple(context.many("benchmarks")))
        (index,) = context.map(build_index, [benchmarks], config=config)
        shards = document_shards(documents)
        matches = context.map(scan_shard, shards, index=index)
        common = common_ngrams(matches, config.common_documents)
        reports = [shard.with_matches(found) for shard, found in zip(shards, matches, strict=True)]
        written = context.map(report_shard, reports, index=index, common=common)

        items = items_table(matches, index, common)
        context.write_table("contamination", "items.parquet", items)
        scanned = sum(result.value["documents"] for result in written)
        context.count(
            documents=scanned,
            documents_hit=sum(result.value["documents_hit"] for result in written),
            items=index.value["items"],
            items_hit=items.num_rows,
            items_too_short=index.value["items_too_short"],
            common_ngrams=len(common),
        )
        context.conserve(records_in=sum(source.rows for source in documents), out=scanned)
