"""Measure which documents hold benchmark items, and which items the documents hold."""

from __future__ import annotations

from collections.abc import Set
from typing import TYPE_CHECKING, ClassVar

from artifacts_schema.config import MapExecution
from artifacts_schema.errors import UsageError
from stages.decontaminate.config import DecontaminateConfig
from stages.engine import Many, Stage

if TYPE_CHECKING:
    from stages.engine import Context, Inputs


CHAT = ("conversations", "preferences")


class Decontaminate(Stage):
    """Find the n-grams that documents share with benchmark items; drop nothing.

    Word 13-grams over normalised text are GPT-3's measure (Brown et al. 2020, appendix C), with its
    least length of 8 for passages that are shorter, and of 5 for a prompt with its answer; of a
    long item a document must hold more than a line that both quote. Of items that are answered in
    free text the reference answers count as right choices. The result reads both ways: the
    items that each document holds, with the place in its text, and the documents that hold each
    item. Conversations and preference pairs are searched alike; their hits name the message.
    """

    name, version, reproducible = "decontaminate", 5, "bytes"
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
        check_roles({role for role, upstreams in inputs.items() if upstreams})

    def run(self, context: Context) -> None:
        from stages.decontaminate.report import (
            common_ngrams,
            items_table,
            report_chat,
            report_shard,
            scan_chat,
        )
        from stages.decontaminate.search import (
            BenchmarkSet,
            SearchTask,
            build_index,
            document_shards,
            scan_shard,
        )
        from stages.text.chat_rows import list_chat_shards

        config, documents = context.config, context.many("documents")
        check_roles({role for role in self.inputs if context.many(role)}, where="decontaminate")
        chat_inputs = {role: context.many(role) for role in CHAT}
        benchmarks = BenchmarkSet("benchmarks", tuple(context.many("benchmarks")))
        (index,) = context.map(build_index, [benchmarks], config=config)
        shards = document_shards(documents)
        chat = [
            SearchTask(s.id, s, s.path)
            for s in list_chat_shards(chat_inputs, where="decontaminate")
        ]
        matches = context.map(scan_shard, shards, index=index)
        chat_matches = context.map(scan_chat, chat, index=index)
        common = common_ngrams([*matches, *chat_matches], index, config)
        reports = [
            shard.with_matches(result) for shard, result in zip(shards, matches, strict=True)
        ]
        rule = {"index": index, "common": common, "share": config.min_prompt_share}
        written = context.map(report_shard, reports, **rule)
        chat_reports = [
            one.with_matches(result) for one, result in zip(chat, chat_matches, strict=True)
        ]
        written += context.map(report_chat, chat_reports, **rule)

        every = [*matches, *chat_matches]
        items = items_table(every, index, common, config.min_prompt_share)
        in_part = items_table(every, index, common).num_rows
        in_any = items_table(every, index, ()).num_rows if common else in_part
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
            items_common=in_any - in_part,
            items_quoted=in_part - items.num_rows,
            common_ngrams=len(common),
        )
        records = sum(one.rows for inputs in (documents, *chat_inputs.values()) for one in inputs)
        context.conserve(records_in=records, out=sum(counts[kind] for kind in kinds))


def check_roles(roles: Set[str], where: str | None = None) -> None:
    """UsageError unless there is something to search."""
    if roles.isdisjoint(("documents", *CHAT)):
        raise UsageError("give documents, conversations or preferences to search", where=where)
