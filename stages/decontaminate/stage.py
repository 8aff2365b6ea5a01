"""Measure which documents hold benchmark items, and which items the documents hold."""

from __future__ import annotations

from collections.abc import Set
from typing import TYPE_CHECKING, ClassVar, Literal, Self

from pydantic import Field, model_validator

from artifacts_schema.config import Config, MapExecution
from artifacts_schema.errors import UsageError
from stages.engine import Many, Stage

if TYPE_CHECKING:
    from stages.engine import Context, Inputs


CHAT = ("conversations", "preferences")


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
    document holds, with the place in its text, and the documents that hold each item. Conversations
    and preference pairs are searched alike; their hits name the message.
    """

    name, version, reproducible = "decontaminate", 2, "bytes"
    inputs: ClassVar = {
        "documents": Many("documents"),
        "conversations": Many("conversations"),
        "preferences": Many("preferences"),
        "benchmarks": Many("benchmarks", at_least=1),
    }
    outputs: ClassVar = {"contamination": "contamination"}
    libraries = ("numpy", "pyarrow", "regex", "xxhash")
    handles_documents = True
    Config, Execution = DecontaminateConfig, MapExecution

    @classmethod
    def check_plan(cls, config: DecontaminateConfig, inputs: Inputs) -> None:
        check_roles({role for role, given in inputs.items() if given})

    def run(self, context: Context) -> None:
        from stages.decontaminate.chat import report_chat, scan_chat
        from stages.decontaminate.index import BenchmarkSet, build_index
        from stages.decontaminate.report import common_ngrams, items_table, report_shard
        from stages.decontaminate.scan import Searched, document_shards, scan_shard
        from stages.text.chat_rows import chat_shards

        config, documents = context.config, context.many("documents")
        check_roles({role for role in self.inputs if context.many(role)}, where="decontaminate")
        talks = {role: context.many(role) for role in CHAT}
        benchmarks = BenchmarkSet("benchmarks", tuple(context.many("benchmarks")))
        (index,) = context.map(build_index, [benchmarks], config=config)
        shards = document_shards(documents)
        chat = [Searched(s.id, s, s.path) for s in chat_shards(talks, where="decontaminate")]
        matches = context.map(scan_shard, shards, index=index)
        heard = context.map(scan_chat, chat, index=index)
        common = common_ngrams([*matches, *heard], config.common_documents)
        reports = [shard.with_matches(found) for shard, found in zip(shards, matches, strict=True)]
        written = context.map(report_shard, reports, index=index, common=common)
        answers = [one.with_matches(found) for one, found in zip(chat, heard, strict=True)]
        written += context.map(report_chat, answers, index=index, common=common)

        items = items_table([*matches, *heard], index, common)
        context.write_table("contamination", "items.parquet", items)
        kinds = [kind for kind in ("documents", *CHAT) if context.many(kind)]
        counts = {
            name: sum(result.value.get(name, 0) for result in written)
            for kind in kinds
            for name in (kind, f"{kind}_hit")
        }
        context.count(
            **counts,
            items=index.value["items"],
            items_hit=items.num_rows,
            items_too_short=index.value["items_too_short"],
            common_ngrams=len(common),
        )
        records = sum(one.rows for given in (documents, *talks.values()) for one in given)
        context.conserve(records_in=records, out=sum(counts[kind] for kind in kinds))


def check_roles(given: Set[str], where: str | None = None) -> None:
    """UsageError unless there is something to search."""
    if given.isdisjoint(("documents", *CHAT)):
        raise UsageError("give documents, conversations or preferences to search", where=where)
