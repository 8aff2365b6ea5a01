"""Supervised fine-tuning as a task of the training loop.

Conversations become examples: rendered, encoded, cut to the context, split, and counted.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer
from torch import nn

from stages.engine import Context
from stages.tokens.chat import count_unused_fields, find_chat_start, render_segments
from stages.tokens.vocabulary import SpecialTokens
from stages.training.examples import (
    ExampleClock,
    ExampleSet,
    ReadRow,
    encode_example,
    fit_example,
    pack_rows,
    read_examples,
)
from stages.training.monitor import HeldOut
from stages.training.rows import Groups, HeldOutSums, Rows, SourceMetrics, measured_batches
from stages.training.runtime import Runtime
from stages.training.task import MicroBatch, Task

DROPPED = ("too_long", "nothing_to_learn")
COLUMNS = ("conversation_id", "source", "messages", "tools")


def read_conversations(
    context: Context,
    tokenizer: Tokenizer,
    special: SpecialTokens,
    length: int,
    vocabulary_size: int,
) -> ExampleSet:
    """All conversations of the role, each in at most `length` tokens; errors of `read_examples`.

    InputError too if the tokenizer has no tokens for turns.
    """
    begin = find_chat_start(tokenizer, special)

    def read(row: Mapping[str, Any]) -> ReadRow:
        parts = render_segments(row["messages"], begin=begin, tools=row["tools"])
        encoded = encode_example(tokenizer, parts)
        example, reason = fit_example(encoded, length, context.config.too_long)
        examples = None if example is None else (example,)
        return ReadRow(examples, reason, count_unused_fields(row["messages"]))

    return read_examples(
        context,
        COLUMNS,
        read,
        noun="conversation",
        dropped=DROPPED,
        vocabulary_size=vocabulary_size,
    )


class PackedConversations(NamedTuple):
    """The conversations of a training step, by number, and the rows that they are packed into.

    `own` are those of this rank, `targets` is the count of all.
    """

    chosen: NDArray[np.int64]
    own: Rows
    targets: int


class SftTask(Task):
    """Mean cross-entropy over the assistant tokens of a step's conversations."""

    def __init__(
        self, data: ExampleSet, clock: ExampleClock, runtime: Runtime, context: int
    ) -> None:
        self.data, self.clock, self.runtime, self.context = data, clock, runtime, context
        sources = sorted(set(data.row_sources))
        self.source_of = np.array([sources.index(one) for one in data.row_sources], dtype=np.int64)
        self.groups = Groups.by_source(sources)
        self.by_source = SourceMetrics(self.groups)
        self.columns = self.by_source.columns()

    def batch(self, training_step: int) -> PackedConversations:
        """The step's conversations: every rank packs all of them, and takes some of the rows."""
        chosen = self.data.train[self.clock.batch(training_step)]
        rows = self._packed(chosen)
        return PackedConversations(chosen, self.runtime.own_rows(rows), rows.targets)

    def micro_batches(self, model: nn.Module, batch: PackedConversations) -> Iterator[MicroBatch]:
        """The step's conversations in micro-batches of rows."""
        parts = batch.own.split(self.runtime.micro_batch)
        for number, trained in self.runtime.passes(model, parts, targets=batch.targets):
            if number is None:
                yield MicroBatch(trained.loss, 0)
                continue
            part = parts[number]
            sources_BL = self._sources(part, batch.chosen)
            yield MicroBatch(
                trained.loss,
                part.tokens,
                self.by_source.sums(trained.losses_BL, part, sources_BL),
            )

    def measures(self, sums: Mapping[str, list[float]]) -> dict[str, Any]:
        """Loss, targets and tokens by source."""
        return self.by_source.measures(sums)

    def held_out(self, model: nn.Module) -> list[HeldOut]:
        """Loss over the assistant tokens of the held-out conversations."""
        if not len(self.data.held_out):
            return []
        total, ranks = HeldOutSums(self.groups), self.runtime.ranks
        parts = self._packed(self.data.held_out).split(self.runtime.micro_batch)
        for number, counts in measured_batches(len(parts), ranks):
            part = parts[number].of_context(ranks)
            losses_BL = self.runtime.losses(model, part)
            if counts:
                total.add(losses_BL, part, self._sources(part, self.data.held_out))
        total.sum_over(ranks)
        return total.measured()

    def _packed(self, chosen: NDArray[np.int64]) -> Rows:
        examples = [self.data.rows[index][0] for index in chosen.tolist()]
        return pack_rows(examples, self.context, self.runtime.parallel.pieces)

    def _sources(self, rows: Rows, chosen: NDArray[np.int64]) -> NDArray[np.int64]:
        """Source of each token; padding (document -1) takes that of the last document."""
        return self.source_of[chosen][rows.documents_BL]
