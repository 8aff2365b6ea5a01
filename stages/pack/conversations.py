"""The first map of `pack_chat`: a shard of conversations to token ids and the marks of each.

What it leaves is what `encode_shard` leaves of documents, and a byte a token beside it, so that the
second map packs both alike. A conversation is never cut to pieces: one that is longer than a
sequence loses its end, or is left out, as the config says.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping
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
    excluded_rows,
    sort_by_group,
    write_excluded,
)
from stages.pack.encoder import DocumentShard
from stages.pack.plan import Plan
from stages.text.draw import draw
from stages.tokens.chat import (
    count_unused_fields,
    encode_segments,
    find_chat_start,
    format_message,
    render_segments,
)
from stages.training.config import TooLong
from stages.training.token_marks import LEARNT, SPEAKERS, make_marks

if TYPE_CHECKING:
    from tokenizers import Tokenizer

    from stages.engine import ShardOutput

COLUMNS = ("conversation_id", "source", "messages", "tools")

REASONS = ("too_long", "nothing_to_learn")
"""Why a conversation is left out."""


@dataclass(frozen=True)
class EncodedConversation:
    """Token ids and marks of one conversation, and its text as it was rendered."""

    ids: npt.NDArray[np.int64]
    marks: npt.NDArray[np.uint8]
    text: str


def encode_conversation(
    tokenizer: Tokenizer, row: Mapping[str, Any], begin: str
) -> EncodedConversation:
    """A conversation in the chat format; `begin` is that of `find_chat_start`."""
    parts = render_segments(row["messages"], begin=begin, tools=row["tools"])
    speaking = iter(_speakers(row))
    ids: list[int] = []
    learnt: list[bool] = []
    speakers: list[int] = []
    for part in parts:
        speaker = next(speaking) if part.content else "assistant" if part.trained else "template"
        piece, trained = encode_segments(tokenizer, [part])
        ids += piece
        learnt += trained
        speakers += [SPEAKERS.index(speaker)] * len(piece)
    marks = make_marks(np.array(learnt, dtype=np.bool_), np.array(speakers, dtype=np.int64))
    return EncodedConversation(
        np.array(ids, dtype=np.int64), marks, "".join(part.text for part in parts)
    )


def _speakers(row: Mapping[str, Any]) -> Iterator[str]:
    messages = row["messages"]
    if row["tools"] is not None:
        yield "system"
        messages = messages[1:] if messages[0]["role"] == "system" else messages
    for message in messages:
        if format_message(message):
            yield message["role"]


def fit(
    encoded: EncodedConversation, length: int, too_long: TooLong
) -> tuple[EncodedConversation | None, str | None]:
    """As a sequence of `length` tokens can hold it, and why it is changed or (None) left out.

    Reasons: `truncated`, and those of `REASONS`: no learnt token, maybe after the cut.
    """
    reason = None
    if len(encoded.ids) > length:
        if too_long == "drop":
            return None, "too_long"
        encoded = EncodedConversation(encoded.ids[:length], encoded.marks[:length], encoded.text)
        reason = "truncated"
    if not learnt_tokens(encoded.marks):
        return None, "nothing_to_learn"
    return encoded, reason


def learnt_tokens(marks: npt.NDArray[np.uint8]) -> int:
    """How many tokens are learnt."""
    return int(np.count_nonzero(marks & LEARNT))


def encode_conversations(
    item: DocumentShard, out: ShardOutput, *, plan: Plan, too_long: TooLong
) -> dict[str, Any]:
    """Encode the conversations of a shard into scratch: `IDS`, `MARKS`, `DOCUMENTS`.

    Those that are left out are listed. Returns {"conversations": rows, "reasons" and "unused":
    counts, "samples": some ids by reason, "learnt": tokens, "groups" as `encode_shard` has them}.
    InputError for an id that the vocabulary does not have.
    """
    tokenizer = plan.tokenizer()
    begin = find_chat_start(tokenizer, plan.tokens)
    reasons, unused = Counter[str](), Counter[str]()
    samples: dict[str, list[str]] = {}
    rows: list[dict[str, Any]] = []
    lost: dict[str, list[dict[str, Any]]] = {}
    total = learnt = 0
    with out.open_scratch(IDS) as ids_file, out.open_scratch(MARKS) as marks_file:
        for row in _rows(item):
            total += 1
            unused += count_unused_fields(row["messages"])
            encoded = encode_conversation(tokenizer, row, begin)
            kept, reason = fit(encoded, plan.sequence_length, too_long)
            if reason is not None:
                reasons[reason] += 1
                samples.setdefault(reason, []).append(f"{row['source']} {row['conversation_id']}")
            if kept is None:
                lost.setdefault(str(reason), []).append(_named(row))
                continue
            _check_ids(kept, row, plan)
            ids_file.write(kept.ids.astype(plan.dtype).view(np.uint8).data)
            marks_file.write(kept.marks.data)
            learnt += learnt_tokens(kept.marks)
            rows.append(_encoded_row(row, kept, plan))
    table, groups = sort_by_group([pa.RecordBatch.from_pylist(rows, schema=ENCODED)])
    with out.open_scratch(DOCUMENTS) as file, pa.ipc.new_file(file, ROW) as writer:
        writer.write_table(table)
    excluded = [
        excluded_rows(pa.Table.from_pylist(names), reason) for reason, names in lost.items()
    ]
    write_excluded(out, f"documents/{item.id}.parquet", excluded)
    return {
        "conversations": total,
        "reasons": dict(reasons),
        "unused": dict(unused),
        "samples": {reason: names[:3] for reason, names in samples.items()},
        "learnt": learnt,
        "groups": groups,
        "marked": True,
    }


def _rows(item: DocumentShard) -> Iterator[dict[str, Any]]:
    for group in item.shard.row_groups(list(COLUMNS)):
        yield from group.to_pylist()


def _named(row: Mapping[str, Any]) -> dict[str, Any]:
    return {"doc_id": row["conversation_id"], "source": row["source"]}


def _encoded_row(row: Mapping[str, Any], kept: EncodedConversation, plan: Plan) -> dict[str, Any]:
    """A row of `ENCODED`; a hash of the id decides the split, whatever else joins the data."""
    return {
        **_named(row),
        "language": None,
        "content_hash": hashlib.blake2b(kept.text.encode(), digest_size=8).hexdigest(),
        "length": len(kept.ids),
        "repetitive": None,
        "held_out": draw(row["conversation_id"], f"held out {plan.seed}") < plan.held_out_share,
    }


def _check_ids(kept: EncodedConversation, row: Mapping[str, Any], plan: Plan) -> None:
    highest = int(kept.ids.max())
    if highest >= plan.vocabulary_size:
        raise InputError(
            f"conversation {row['conversation_id']} has token {highest}, but the vocabulary has "
            f"{plan.vocabulary_size}",
            where="tokenizer.json",
            hint="train the tokenizer again, or import it again",
        )
