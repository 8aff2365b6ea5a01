"""Conversations as examples: rendered, encoded, cut to the context, split, and counted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from artifacts_schema.errors import InputError
from stages.engine import Context, check_bad_share
from stages.text.chat import begin_of_chat, segments, unused_fields
from stages.training.examples import Example, encoded, fitted, held_out_split, report_unused

if TYPE_CHECKING:
    from tokenizers import Tokenizer

    from stages.text.special_tokens import SpecialTokens


LEFT_OUT = ("too_long", "nothing_to_learn")


@dataclass(frozen=True)
class Conversations:
    """Examples with the source of each, and which of them train and which are held out."""

    examples: list[Example]
    sources: tuple[str, ...]
    source_of: NDArray[np.int64]
    train: NDArray[np.int64]
    held_out: NDArray[np.int64]
    reasons: Counter[str]
    unused: Counter[str]

    def account(self) -> dict[str, Any]:
        """How many conversations and learnt tokens there are, by what happened to them."""
        return {
            "train": len(self.train),
            "held_out": len(self.held_out),
            "truncated": self.reasons["truncated"],
            **{reason: self.reasons[reason] for reason in LEFT_OUT},
            "targets": sum(example.targets for example in self.examples),
            "unused": dict(self.unused),
        }


def read_conversations(
    context: Context,
    tokenizer: Tokenizer,
    special: SpecialTokens,
    length: int,
    vocabulary_size: int,
) -> Conversations:
    """All conversations of the role, each in at most `length` tokens.

    Those left out are counted with samples; InputError if they are too many, if nothing is left, or
    if the tokenizer has no tokens for turns.
    """
    config, reasons, unused = context.config, Counter[str](), Counter[str]()
    begin = begin_of_chat(tokenizer, special)
    kept: list[tuple[str, str, Example]] = []
    total = 0
    for row in _rows(context):
        total += 1
        unused += unused_fields(row["messages"])
        parts = segments(row["messages"], begin=begin, tools=row["tools"])
        example, reason = fitted(encoded(tokenizer, parts), length, config.too_long)
        if reason is not None:
            reasons[reason] += 1
            context.sample(reason, f"{row['source']} {row['conversation_id']}")
        if example is not None:
            kept.append((row["conversation_id"], row["source"], example))
    left_out = total - len(kept)
    samples = [f"{name}: {s}" for name in LEFT_OUT for s in context.samples.get(name, [])]
    check_bad_share(left_out, total, config.max_bad_share, samples, where="conversations")
    context.count(conversations=total, conversations_left_out=left_out, **reasons, **unused)
    report_unused(context, unused)
    train, held_out = held_out_split([one[0] for one in kept], config.held_out_share, config.seed)
    if not len(train):
        raise InputError("no conversation is left to train on", where="conversations")
    highest = max(int(one[2].ids.max()) for one in kept)
    if highest >= vocabulary_size:
        raise InputError(
            f"the tokenizer gives id {highest}, the model has {vocabulary_size} rows",
            where="checkpoint",
        )
    sources = tuple(sorted({one[1] for one in kept}))
    return Conversations(
        examples=[one[2] for one in kept],
        sources=sources,
        source_of=np.array([sources.index(one[1]) for one in kept], dtype=np.int64),
        train=train,
        held_out=held_out,
        reasons=reasons,
        unused=unused,
    )


def _rows(context: Context) -> Iterator[dict[str, Any]]:
    for given in context.many("conversations"):
        for shard in given.shards():
            for group in shard.row_groups(["conversation_id", "source", "messages", "tools"]):
                yield from group.to_pylist()
            context.check_stop()
