"""Preference pairs as examples: each answer after its prompt, in the checkpoint's chat format."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from artifacts_schema.errors import InputError
from stages.engine import Context, Input
from stages.model.config import ModelConfig
from stages.model.files import read_tokenizer
from stages.tokens.chat import CHAT_TEMPLATE, count_unused_fields
from stages.tokens.chat_template import default_template, read_template
from stages.tokens.vocabulary import SpecialTokens
from stages.training.chat_format import (
    ChatML,
    EncodedRow,
    JinjaFormat,
    Learning,
    Refused,
    check_format,
    choose_format,
    count_unwritten,
)
from stages.training.examples import Example, ExampleSet, ReadRow, fit_example, read_examples
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


def read_pairs(
    context: Context,
    start: Input,
    shape: ModelConfig,
    *,
    longest: int | None = None,
    whole: bool = False,
) -> ExampleSet:
    """All pairs of the role (chosen, rejected), each with its prompt in the model's context.

    `longest` is the most predictions of a sequence, by default as many as the context has tokens.
    A sequence ends with its last learnt token, or `whole` as the template ends it.
    They are written by the chat template of the checkpoint `start`, or in ChatML where it has none.
    Errors are those of `read_examples`; InputError too for a template of no use, and for ChatML if
    the tokenizer has no tokens for turns.
    """
    config, tokenizer = context.config, read_tokenizer(start)
    longest = shape.context if longest is None else longest
    described = start.read_json("tokenizer_config.json")
    template = read_template(start)
    chat_format = choose_format(
        CHAT_TEMPLATE if template is None else default_template(template),
        tokenizer,
        SpecialTokens.from_config(tokenizer, described),
        described,
        config.date,
        Learning(),
    )
    check_format(chat_format)

    def read(rows: Sequence[Mapping[str, Any]]) -> Iterator[ReadRow]:
        for row, (chosen, rejected) in zip(rows, encode_pairs(chat_format, rows), strict=True):
            if isinstance(chat_format, ChatML):
                unused = count_unused_fields(row["prompt"], learnt=False)
                unused += count_unused_fields([*row["chosen"], *row["rejected"]])
            else:
                unused = _unwritten(row, chosen, rejected)
            yield _read_pair((chosen, rejected), unused)

    def _read_pair(encoded: Sequence[list[EncodedRow] | Refused], unused: Counter[str]) -> ReadRow:
        examples, changed = [], None
        for one in encoded:
            example, reason = _example(one, whole)
            if example is not None:
                example, reason = fit_example(example, longest, config.too_long)
            if example is None:
                return ReadRow(None, reason, unused)
            examples.append(example)
            changed = changed or reason
        if np.array_equal(examples[0].ids, examples[1].ids):
            return ReadRow(None, "equal_answers", unused)
        return ReadRow(tuple(examples), changed, unused)

    return read_examples(
        context,
        COLUMNS,
        read,
        noun="pair",
        dropped=DROPPED,
        vocabulary_size=shape.vocabulary_size,
    )


def encode_pairs(
    chat_format: ChatML | JinjaFormat, rows: Sequence[Mapping[str, Any]]
) -> Iterator[tuple[list[EncodedRow] | Refused, ...]]:
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
    ]
    encoded = chat_format.encode(conversations)
    yield from zip(encoded, encoded, strict=True)


def _example(encoded: list[EncodedRow] | Refused, whole: bool) -> tuple[Example | None, str | None]:
    """The answer up to its last learnt token, or `whole`; or why there is none."""
    if isinstance(encoded, Refused):
        return None, encoded.reason
    if len(encoded) > 1:
        return None, "several_rows"
    learnt = [(one.marks & LEARNT) > 0 for one in encoded]
    if not learnt or not learnt[0].any():
        return None, "nothing_to_learn"
    stop = len(learnt[0]) if whole else int(np.flatnonzero(learnt[0])[-1]) + 1
    return Example(encoded[0].ids[:stop], learnt[0][:stop]), None


def _unwritten(
    row: Mapping[str, Any],
    chosen: list[EncodedRow] | Refused,
    rejected: list[EncodedRow] | Refused,
) -> Counter[str]:
    """What the template did not write of a pair; the prompt is looked for beside one answer."""
    counts = Counter[str]()
    for messages, encoded in (
        ([*row["prompt"], *row["chosen"]], chosen),
        (row["rejected"], rejected),
    ):
        if not isinstance(encoded, Refused):
            counts += count_unwritten(messages, encoded)
    return counts


def read_margins(context: Context, ids: Sequence[str], field: str) -> NDArray[np.float32]:
    """[pairs] The number in `field` of the metadata of each of these pairs.

    InputError where one has none, or what is there is no finite number.
    """
    by_id: dict[str, float] = {}
    for source in context.many("preferences"):
        for shard in source.shards():
            for group in shard.row_groups(["preference_id", "metadata"]):
                for row in group.to_pylist():
                    value = json.loads(row["metadata"]).get(field)
                    number = isinstance(value, int | float) and not isinstance(value, bool)
                    if number and math.isfinite(value):
                        by_id[row["preference_id"]] = value
    lacking = [name for name in ids if name not in by_id]
    if lacking:
        raise InputError(
            f"{len(lacking)} of {len(ids)} pairs have no number '{field}' in their metadata, "
            f"first: {lacking[0]}",
            where="preferences",
            hint="set margin to the field that holds it, or leave it out",
        )
    return np.array([by_id[name] for name in ids], dtype=np.float32)
