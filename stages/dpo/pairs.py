"""Preference pairs as two examples each: rendered, encoded, cut to the context, split, counted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from artifacts_schema.errors import InputError
from stages.engine import Context, check_bad_share
from stages.text.chat import BEGIN_OF_TEXT, Segment, begin_of_chat, segments, unused_fields
from stages.training.examples import Example, encoded, fitted, held_out_split, report_unused

if TYPE_CHECKING:
    from tokenizers import Tokenizer

    from stages.text.special_tokens import SpecialTokens

LEFT_OUT = ("too_long", "nothing_to_learn", "equal_answers")


@dataclass(frozen=True)
class Pair:
    """The better and the worse answer, each with the prompt before it."""

    chosen: Example
    rejected: Example


@dataclass(frozen=True)
class Pairs:
    """All pairs, and which of them train and which are held out."""

    pairs: list[Pair]
    train: NDArray[np.int64]
    held_out: NDArray[np.int64]
    reasons: Counter[str]
    unused: Counter[str]

    def account(self) -> dict[str, Any]:
        """How many pairs there are, by what happened to them."""
        return {
            "train": len(self.train),
            "held_out": len(self.held_out),
            "truncated": self.reasons["truncated"],
            **{reason: self.reasons[reason] for reason in LEFT_OUT},
            "unused": dict(self.unused),
        }


def answer_segments(
    prompt: list[dict[str, Any]],
    answer: list[dict[str, Any]],
    begin: str = BEGIN_OF_TEXT,
    tools: str | None = None,
) -> list[Segment]:
    """Prompt and answer rendered; only what the assistant says in the answer is learnt.

    With the token that closes it, after which nothing follows. `begin` is `begin_of_chat`'s.
    """
    before = segments(prompt, begin=begin, tools=tools)
    *parts, _newline = segments(answer, begin="")
    return [*(Segment(part.text, False, part.content) for part in before), *parts]


def read_pairs(
    context: Context,
    tokenizer: Tokenizer,
    special: SpecialTokens,
    length: int,
    vocabulary_size: int,
) -> Pairs:
    """All pairs of the role, each answer in at most `length` tokens with its prompt.

    Those left out are counted with samples; InputError if they are too many, if nothing is left, or
    if the tokenizer has no tokens for turns.
    """
    config, reasons, unused = context.config, Counter[str](), Counter[str]()
    begin = begin_of_chat(tokenizer, special)
    pairs: list[Pair] = []
    ids: list[str] = []
    total = 0
    for row in _rows(context):
        total += 1
        unused += unused_fields(row["prompt"], learnt=False)
        unused += unused_fields([*row["chosen"], *row["rejected"]])
        pair, reason = _pair(tokenizer, row, begin, length, config.too_long)
        if reason is not None:
            reasons[reason] += 1
            context.sample(reason, f"{row['source']} {row['preference_id']}")
        if pair is not None:
            pairs.append(pair)
            ids.append(row["preference_id"])
    left_out = total - len(pairs)
    samples = [f"{name}: {s}" for name in LEFT_OUT for s in context.samples.get(name, [])]
    check_bad_share(left_out, total, config.max_bad_share, samples, where="preferences")
    context.count(pairs=total, pairs_left_out=left_out, **reasons, **unused)
    report_unused(context, unused)
    train, held_out = held_out_split(ids, config.held_out_share, config.seed)
    if not len(train):
        raise InputError("no pair is left to train on", where="preferences")
    highest = max(int(one.ids.max()) for pair in pairs for one in (pair.chosen, pair.rejected))
    if highest >= vocabulary_size:
        raise InputError(
            f"the tokenizer gives id {highest}, the model has {vocabulary_size} rows",
            where="checkpoint",
        )
    return Pairs(pairs, train, held_out, reasons, unused)


def _pair(
    tokenizer: Tokenizer, row: Mapping[str, Any], begin: str, length: int, too_long: Any
) -> tuple[Pair | None, str | None]:
    rendered = [
        answer_segments(row["prompt"], row[side], begin, row["tools"])
        for side in ("chosen", "rejected")
    ]
    answers = [fitted(encoded(tokenizer, parts), length, too_long) for parts in rendered]
    (chosen, first), (rejected, second) = answers
    if chosen is None or rejected is None:
        return None, first if chosen is None else second
    if np.array_equal(chosen.ids, rejected.ids):
        return None, "equal_answers"
    return Pair(chosen, rejected), first or second


def _rows(context: Context) -> Iterator[dict[str, Any]]:
    columns = ["preference_id", "source", "prompt", "chosen", "rejected", "tools"]
    for given in context.many("preferences"):
        for shard in given.shards():
            for group in shard.row_groups(columns):
                yield from group.to_pylist()
            context.check_stop()
