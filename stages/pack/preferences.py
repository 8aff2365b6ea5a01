"""The first map of `pack_preferences`: a shard of preference pairs to token ids and their marks.

A pair is one document of two conversations, the chosen answer after its prompt and then the
rejected one after the same prompt. The packer lays a document that fits into a sequence whole, so
both answers of a pair are in one row; each begins with a mark of its own, so neither sees the
other. In a row the conversations 2p and 2p + 1 are a pair.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from stages.pack.conversations import Writing, check_ids, learnt_tokens
from stages.pack.documents import (
    DOCUMENTS,
    ENCODED,
    IDS,
    MARKS,
    ROW,
    excluded_rows,
    sort_by_group,
    write_excluded,
)
from stages.pack.encoder import DocumentShard
from stages.pack.plan import Plan
from stages.pairs.encoding import (
    COLUMNS,
    EncodedPair,
    answer_row,
    check_pairs,
    count_unused,
    encode_pairs,
)
from stages.training.chat_format import ChatML, EncodedRow, JinjaFormat, Refused
from stages.training.config import TooLong
from stages.training.examples import held_out_split

if TYPE_CHECKING:
    from stages.engine import ShardOutput

Answers = tuple[EncodedRow, EncodedRow]
"""Chosen, rejected."""


def fit_pair(
    answers: EncodedPair, length: int, too_long: TooLong
) -> tuple[Answers | None, str | None]:
    """Both answers as a sequence of `length` tokens holds them, and why they are changed or (None)
    left out.

    Of a pair of more tokens, `truncate` cuts the end of the longer answer, and of both where each
    has more than half of the sequence. Reasons: `truncated`, and those of `DROPPED`.
    """
    rows: list[EncodedRow] = []
    for one in answers:
        assert one is not None, "single answers were refused"
        row, reason = answer_row(one)
        if row is None:
            return None, reason
        rows.append(row)
    chosen, rejected, reason = *rows, None
    if len(chosen.ids) + len(rejected.ids) > length:
        if too_long == "drop":
            return None, "too_long"
        of_chosen, of_rejected = _shares(len(chosen.ids), len(rejected.ids), length)
        chosen, rejected, reason = _cut(chosen, of_chosen), _cut(rejected, of_rejected), "truncated"
        if not (learnt_tokens(chosen.marks) and learnt_tokens(rejected.marks)):
            return None, "nothing_to_learn"
    if np.array_equal(chosen.ids, rejected.ids):
        return None, "equal_answers"
    return (chosen, rejected), reason


def _shares(chosen: int, rejected: int, length: int) -> tuple[int, int]:
    """How many tokens of each stay: half of the sequence, or what the other one leaves free."""
    half = length // 2
    return min(chosen, max(half, length - rejected)), min(rejected, max(half, length - chosen))


def _cut(row: EncodedRow, length: int) -> EncodedRow:
    return EncodedRow(row.ids[:length], row.marks[:length], row.text)


def encode_preferences(
    item: DocumentShard, out: ShardOutput, *, plan: Plan, writing: Writing, too_long: TooLong
) -> dict[str, Any]:
    """Encode the pairs of a shard into scratch: `IDS`, `MARKS`, `DOCUMENTS`.

    Those that are left out are listed. Returns {"read": rows, "packed": those that are left,
    "lost", "reasons" and "unused": counts, "samples": some ids by reason, "learnt": tokens,
    "groups" as `encode_shard` has them}. InputError for an id that the vocabulary does not have,
    and for a row of one answer.
    """
    chat_format = writing.format(plan)
    counts = Counter[str]()
    reasons, unused = Counter[str](), Counter[str]()
    samples: dict[str, list[str]] = {}
    rows: list[dict[str, Any]] = []
    lost: dict[str, list[dict[str, Any]]] = {}
    with ExitStack() as opened:
        ids_file = opened.enter_context(out.open_scratch(IDS))
        marks_file = opened.enter_context(out.open_scratch(MARKS))
        for row, answers in _encoded(item, chat_format):
            counts["read"] += 1
            unused += count_unused(chat_format, row, answers)
            kept, reason = fit_pair(answers, plan.sequence_length, too_long)
            if reason is not None:
                reasons[reason] += 1
                samples.setdefault(reason, []).append(_name_with_detail(row, answers))
            if kept is None:
                lost.setdefault(str(reason), []).append(_named(row))
                continue
            counts["packed"] += 1
            for one in kept:
                check_ids(one, f"preference {row['preference_id']}", plan)
                ids_file.write(one.ids.astype(plan.dtype).view(np.uint8).data)
                marks_file.write(np.ascontiguousarray(one.marks).data)
                counts["learnt"] += learnt_tokens(one.marks)
            rows.append(_encoded_row(row, kept, plan))
    table, groups = sort_by_group([pa.RecordBatch.from_pylist(rows, schema=ENCODED)])
    with out.open_scratch(DOCUMENTS) as file, pa.ipc.new_file(file, ROW) as writer:
        writer.write_table(table)
    excluded = [
        excluded_rows(pa.Table.from_pylist(names), reason) for reason, names in lost.items()
    ]
    write_excluded(out, f"documents/{item.id}.parquet", excluded)
    return {
        **{name: counts[name] for name in ("read", "packed", "learnt")},
        "lost": {reason: len(names) for reason, names in lost.items()},
        "reasons": dict(reasons),
        "unused": dict(unused),
        "samples": {reason: names[:3] for reason, names in samples.items()},
        "groups": groups,
        "marked": True,
        "weighted": False,
    }


def _encoded(
    item: DocumentShard, chat_format: ChatML | JinjaFormat
) -> Iterator[tuple[dict[str, Any], EncodedPair]]:
    for group in item.shard.row_groups(list(COLUMNS)):
        rows = group.to_pylist()
        check_pairs(rows)
        yield from zip(rows, encode_pairs(chat_format, rows), strict=True)


def _named(row: Mapping[str, Any]) -> dict[str, Any]:
    return {"doc_id": row["preference_id"], "source": row["source"]}


def _name_with_detail(row: Mapping[str, Any], answers: EncodedPair) -> str:
    detail = next((f": {one.detail}" for one in answers if isinstance(one, Refused)), "")
    return f"{row['source']} {row['preference_id']}{detail}"


def _encoded_row(row: Mapping[str, Any], kept: Answers, plan: Plan) -> dict[str, Any]:
    """A row of `ENCODED`; a pair is held out as `preference` holds it out, by a hash of its id."""
    _, held_out = held_out_split([row["preference_id"]], plan.held_out_share, plan.seed)
    digest = hashlib.blake2b(digest_size=8)
    for one in kept:
        digest.update(one.text.encode())
    return {
        **_named(row),
        "language": None,
        "content_hash": digest.hexdigest(),
        "length": sum(len(one.ids) for one in kept),
        "repetitive": None,
        "held_out": len(held_out) > 0,
    }
