"""The first map of `pack_chat`: a shard of conversations to token ids and the marks of each.

What it leaves is what `encode_shard` leaves of documents, and a byte a token beside it, so that the
second map packs both alike. A conversation is never cut to pieces: one that is longer than a
sequence loses its end, or is left out, as the config says.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from artifacts_schema.errors import InputError
from stages.pack.documents import (
    DOCUMENTS,
    ENCODED,
    IDS,
    MARKS,
    ROW,
    WEIGHTS,
    excluded_rows,
    sort_by_group,
    write_excluded,
)
from stages.pack.encoder import DocumentShard
from stages.pack.plan import Plan
from stages.text.draw import draw
from stages.tokens.chat import count_unused_fields
from stages.training.chat_format import (
    ChatML,
    EncodedRow,
    JinjaFormat,
    Learning,
    Refused,
    choose_format,
    count_unwritten,
)
from stages.training.config import LearntTurns, TooLong
from stages.training.token_marks import LEARNT

if TYPE_CHECKING:
    from stages.engine import ShardOutput

COLUMNS = ("conversation_id", "source", "messages", "tools")

REASONS = ("too_long", "nothing_to_learn", "not_rendered", "content_dropped")
"""Why a conversation is left out."""


@dataclass(frozen=True)
class Writing:
    """How conversations are written: the template, with tokenizer_config.json, and what is learnt.

    `date` is what a template is told that the day is.
    """

    template: str
    tokenizer_config: Mapping[str, Any]
    date: str
    scope: LearntTurns
    pattern: str | None

    def format(self, plan: Plan) -> ChatML | JinjaFormat:
        """The format, with a tokenizer of its own."""
        learning = Learning(self.scope, re.compile(self.pattern) if self.pattern else None)
        return choose_format(
            self.template, plan.tokenizer(), plan.tokens, self.tokenizer_config, self.date, learning
        )


def fit(
    encoded: EncodedRow, length: int, too_long: TooLong
) -> tuple[EncodedRow | None, str | None]:
    """As a sequence of `length` tokens can hold it, and why it is changed or (None) left out.

    Reasons: `truncated`, and those of `REASONS`: no learnt token, maybe after the cut.
    """
    reason = None
    if len(encoded.ids) > length:
        if too_long == "drop":
            return None, "too_long"
        weights = None if encoded.weights is None else encoded.weights[:length]
        encoded = EncodedRow(encoded.ids[:length], encoded.marks[:length], encoded.text, weights)
        reason = "truncated"
    if not learnt_tokens(encoded.marks):
        return None, "nothing_to_learn"
    return encoded, reason


def learnt_tokens(marks: npt.NDArray[np.uint8]) -> int:
    """How many tokens are learnt."""
    return int(np.count_nonzero(marks & LEARNT))


def encode_conversations(
    item: DocumentShard, out: ShardOutput, *, plan: Plan, writing: Writing, too_long: TooLong
) -> dict[str, Any]:
    """Encode the conversations of a shard into scratch: `IDS`, `MARKS`, `DOCUMENTS`.

    `WEIGHTS` too, float32, where a message has one other than 0 and 1. Those of which no row is
    left are listed. Returns {"read": rows, "packed": those with a row left,
    "by_turn": those with a row for each answer, "reasons" and "unused": counts, "samples": some ids
    by reason, "learnt": tokens, "groups" as `encode_shard` has them}.
    InputError for an id that the vocabulary does not have.
    """
    chat_format = writing.format(plan)
    counts = Counter[str]()
    reasons, unused = Counter[str](), Counter[str]()
    samples: dict[str, list[str]] = {}
    rows: list[dict[str, Any]] = []
    lost: dict[str, list[dict[str, Any]]] = {}
    weighted = _has_weights(item)
    with ExitStack() as opened:
        ids_file = opened.enter_context(out.open_scratch(IDS))
        marks_file = opened.enter_context(out.open_scratch(MARKS))
        weights_file = opened.enter_context(out.open_scratch(WEIGHTS)) if weighted else None
        for row, made in _encoded(item, chat_format):
            counts["read"] += 1
            if isinstance(chat_format, ChatML):
                unused += count_unused_fields(row["messages"], weighted=True)
            elif isinstance(made, list):
                unused += count_unwritten(row["messages"], made, weighted=True)
            kept, why = _fitted(made, plan.sequence_length, too_long)
            for reason, detail in why.items():
                reasons[reason] += 1
                name = f"{row['source']} {row['conversation_id']}{detail}"
                samples.setdefault(reason, []).append(name)
            if not kept:
                lost.setdefault(next(iter(why)), []).append(_named(row))
                continue
            counts["packed"] += 1
            counts["by_turn"] += isinstance(made, list) and len(made) > 1
            for one in kept:
                check_ids(one, f"conversation {row['conversation_id']}", plan)
                ids_file.write(one.ids.astype(plan.dtype).view(np.uint8).data)
                marks_file.write(one.marks.data)
                if weights_file is not None:
                    weights = np.ones(len(one.ids)) if one.weights is None else one.weights
                    weights_file.write(weights.astype("<f4").view(np.uint8).data)
                counts["learnt"] += learnt_tokens(one.marks)
                rows.append(_encoded_row(row, one, plan))
    table, groups = sort_by_group([pa.RecordBatch.from_pylist(rows, schema=ENCODED)])
    with out.open_scratch(DOCUMENTS) as file, pa.ipc.new_file(file, ROW) as writer:
        writer.write_table(table)
    excluded = [
        excluded_rows(pa.Table.from_pylist(names), reason) for reason, names in lost.items()
    ]
    write_excluded(out, f"documents/{item.id}.parquet", excluded)
    return {
        **{name: counts[name] for name in ("read", "packed", "by_turn", "learnt")},
        "lost": {reason: len(names) for reason, names in lost.items()},
        "reasons": dict(reasons),
        "unused": dict(unused),
        "samples": {reason: names[:3] for reason, names in samples.items()},
        "groups": groups,
        "marked": True,
        "weighted": weighted,
    }


def _has_weights(item: DocumentShard) -> bool:
    """Whether the assistant says something whose weight is neither 0 nor 1."""
    return any(
        message["role"] == "assistant" and message["weight"] not in (None, 0, 1)
        for group in item.shard.row_groups(["messages"])
        for messages in group["messages"].to_pylist()
        for message in messages
    )


def _encoded(
    item: DocumentShard, chat_format: ChatML | JinjaFormat
) -> Iterator[tuple[dict[str, Any], list[EncodedRow] | Refused]]:
    for group in item.shard.row_groups(list(COLUMNS)):
        rows = group.to_pylist()
        yield from zip(rows, chat_format.encode(rows), strict=True)


def _fitted(
    made: list[EncodedRow] | Refused, length: int, too_long: TooLong
) -> tuple[list[EncodedRow], dict[str, str]]:
    """The rows that fit, and by reason what there is to say of those that are changed or lost."""
    if isinstance(made, Refused):
        return [], {made.reason: f": {made.detail}"}
    kept: list[EncodedRow] = []
    why: dict[str, str] = {}
    for one in made:
        fitted, reason = fit(one, length, too_long)
        if fitted is not None:
            kept.append(fitted)
        if reason is not None:
            why[reason] = ""
    return kept, why if made else {"nothing_to_learn": ""}


def _named(row: Mapping[str, Any]) -> dict[str, Any]:
    return {"doc_id": row["conversation_id"], "source": row["source"]}


def _encoded_row(row: Mapping[str, Any], kept: EncodedRow, plan: Plan) -> dict[str, Any]:
    """A row of `ENCODED`; a hash of the id decides the split, whatever else joins the data."""
    return {
        **_named(row),
        "language": None,
        "content_hash": hashlib.blake2b(kept.text.encode(), digest_size=8).hexdigest(),
        "length": len(kept.ids),
        "repetitive": None,
        "held_out": draw(row["conversation_id"], f"held out {plan.seed}") < plan.held_out_share,
    }


def check_ids(kept: EncodedRow, name: str, plan: Plan) -> None:
    """InputError for an id that the vocabulary does not have."""
    highest = int(kept.ids.max())
    if highest >= plan.vocabulary_size:
        raise InputError(
            f"{name} has token {highest}, but the vocabulary has {plan.vocabulary_size}",
            where="tokenizer.json",
            hint="train the tokenizer again, or import it again",
        )
