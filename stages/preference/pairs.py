"""Preference pairs as examples: each answer after its prompt, in the checkpoint's chat format."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from artifacts_schema.errors import InputError
from stages.engine import Context, Input
from stages.model.files import read_config, read_tokenizer
from stages.pairs.encoding import (
    COLUMNS,
    DROPPED,
    EncodedPair,
    answer_row,
    check_pairs,
    count_unused,
    encode_pairs,
)
from stages.preference.config import DpoConfig, PairsConfig, ReferenceConfig, RewardConfig
from stages.tokens.chat import CHAT_TEMPLATE
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
)
from stages.training.config import TooLong
from stages.training.examples import Example, ExampleSet, ReadRow, fit_example, read_examples
from stages.training.token_marks import LEARNT

NO_ANSWER = Example(np.zeros(1, dtype=np.int64), np.zeros(1, dtype=bool))
"""In place of the other side of a single answer: it takes no place in a row of tokens."""


@dataclass(frozen=True)
class PairReader:
    """How a stage reads rows of preferences for the model of a checkpoint.

    `longest` is the most predictions of a sequence. A sequence ends with its last learnt token, or,
    `scored`, as the template ends it. With `single`, rows of one answer are read too, `NO_ANSWER`
    on their other side; else they are an InputError.
    """

    format: ChatML | JinjaFormat
    longest: int
    too_long: TooLong
    vocabulary_size: int
    scored: bool = False
    single: bool = False

    @classmethod
    def from_config(cls, config: PairsConfig | ReferenceConfig, start: Input) -> PairReader:
        """By the config of a stage, and the checkpoint that it starts with.

        Answers are written by the chat template of the checkpoint, or in ChatML where it has none.
        InputError for a template of no use, and for ChatML if the tokenizer has no tokens for
        turns.
        """
        tokenizer, described = read_tokenizer(start), start.read_json("tokenizer_config.json")
        template, shape = read_template(start), read_config(start)
        chat_format = choose_format(
            CHAT_TEMPLATE if template is None else default_template(template),
            tokenizer,
            SpecialTokens.from_config(tokenizer, described),
            described,
            config.date,
            Learning(),
        )
        check_format(chat_format)
        scored = isinstance(config, RewardConfig)
        return cls(
            format=chat_format,
            longest=shape.context - scored,  # The token that is scored takes a place too.
            too_long=config.too_long,
            vocabulary_size=shape.vocabulary_size,
            scored=scored,
            single=isinstance(config, DpoConfig) and config.loss_name == "kto",
        )

    def read(self, rows: Sequence[Mapping[str, Any]]) -> Iterator[ReadRow]:
        """The answers of each row as examples, or why it is left out."""
        if not self.single:
            check_pairs(rows)
        for row, answers in zip(rows, encode_pairs(self.format, rows), strict=True):
            yield self._read_pair(answers, count_unused(self.format, row, answers))

    def _read_pair(self, answers: EncodedPair, unused: Counter[str]) -> ReadRow:
        examples, changed = [], None
        for one in answers:
            if one is None:
                examples.append(NO_ANSWER)
                continue
            example, reason = _example(one, self.scored)
            if example is not None:
                example, reason = fit_example(example, self.longest, self.too_long)
            if example is None:
                return ReadRow(None, reason, unused)
            examples.append(example)
            changed = changed or reason
        if np.array_equal(examples[0].ids, examples[1].ids):
            return ReadRow(None, "equal_answers", unused)
        return ReadRow(tuple(examples), changed, unused)


def read_pairs(context: Context, start: Input) -> ExampleSet:
    """All pairs of the role (chosen, rejected), each with its prompt in the model's context.

    Errors are those of `read_examples` and of `PairReader`.
    """
    reader = PairReader.from_config(context.config, start)
    return read_examples(
        context,
        COLUMNS,
        reader.read,
        noun="pair",
        dropped=DROPPED,
        vocabulary_size=reader.vocabulary_size,
    )


def _example(encoded: list[EncodedRow] | Refused, whole: bool) -> tuple[Example | None, str | None]:
    """The answer up to its last learnt token, or `whole`; or why there is none."""
    row, reason = answer_row(encoded, whole=whole)
    if row is None:
        return None, reason
    return Example(row.ids, (row.marks & LEARNT) > 0), None


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
