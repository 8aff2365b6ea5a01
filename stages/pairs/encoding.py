"""Preference pairs in a chat format: each answer after its prompt, as token ids and marks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from artifacts_schema.errors import InputError
from stages.tokens.chat import count_unused_fields
from stages.training.chat_format import ChatML, EncodedRow, JinjaFormat, Refused, count_unwritten
from stages.training.token_marks import LEARNT

DROPPED = (
    "too_long",
    "nothing_to_learn",
    "equal_answers",
    "not_rendered",
    "content_dropped",
    "several_rows",
)
"""Why a pair is left out. `several_rows`: an answer of several turns, of which the template writes
the first otherwise once the next follows."""
COLUMNS = ("preference_id", "source", "prompt", "chosen", "rejected", "tools")
SIDES = ("chosen", "rejected")

EncodedPair = tuple[list[EncodedRow] | Refused | None, ...]
"""The chosen and the rejected answer; None where a row has none."""


def check_pairs(rows: Sequence[Mapping[str, Any]]) -> None:
    """InputError for a row of one answer."""
    for row in rows:
        if not (row["chosen"] and row["rejected"]):
            raise InputError(
                f"{row['source']} {row['preference_id']} is one answer with a label, no pair",
                where="preferences",
                hint="only a `preference` step with `loss: kto` learns from single answers",
            )


def encode_pairs(
    chat_format: ChatML | JinjaFormat, rows: Sequence[Mapping[str, Any]]
) -> Iterator[EncodedPair]:
    """Both answers of each pair, after the prompt, as `chat_format` encodes them.

    Of the prompt nothing is learnt, also not what the assistant says in it.
    """
    conversations = [
        {
            "messages": [*({**one, "weight": 0} for one in row["prompt"]), *row[side]],
            "tools": row["tools"],
        }
        for row in rows
        for side in SIDES
        if row[side]
    ]
    encoded = chat_format.encode(conversations)
    for row in rows:
        yield tuple(next(encoded) if row[side] else None for side in SIDES)


def answer_row(
    encoded: list[EncodedRow] | Refused, *, whole: bool = False
) -> tuple[EncodedRow | None, str | None]:
    """The answer up to its last learnt token, or `whole`; or why there is none."""
    if isinstance(encoded, Refused):
        return None, encoded.reason
    if len(encoded) > 1:
        return None, "several_rows"
    if not encoded or not (encoded[0].marks & LEARNT).any():
        return None, "nothing_to_learn"
    row = encoded[0]
    stop = len(row.ids) if whole else int(np.flatnonzero(row.marks & LEARNT)[-1]) + 1
    return EncodedRow(row.ids[:stop], row.marks[:stop], row.text), None


def count_unused(
    chat_format: ChatML | JinjaFormat, row: Mapping[str, Any], answers: EncodedPair
) -> Counter[str]:
    """What the format does not write of a pair; the prompt is looked for beside one answer."""
    prompt = row["prompt"]
    if isinstance(chat_format, ChatML):
        unused = count_unused_fields(prompt, learnt=False)
        return unused + count_unused_fields([*row["chosen"], *row["rejected"]])
    counts = Counter[str]()
    for side, encoded in zip(SIDES, answers, strict=True):
        if encoded is None:
            continue
        if not isinstance(encoded, Refused):
            counts += count_unwritten([*prompt, *row[side]], encoded)
        prompt = []
    return counts
