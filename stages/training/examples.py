"""Examples of post-training: token sequences of which a part is learnt, their order and packing.

B rows, L tokens.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer

from artifacts_schema.errors import InputError
from stages.engine import Context, check_bad_share
from stages.tokens.chat import Segment, encode_segments
from stages.training.config import TooLong
from stages.training.permutation import Permutation, key_of
from stages.training.rows import Rows
from stages.training.token_shards import IGNORED, PADDED


@dataclass(frozen=True)
class Example:
    """A token sequence, and which of its tokens are learnt (never the first, unpredicted)."""

    ids: NDArray[np.int64]
    trained: NDArray[np.bool_]

    def __len__(self) -> int:
        """Predictions, one less than tokens: what the example takes in a row."""
        return len(self.ids) - 1

    @property
    def targets(self) -> int:
        """Tokens that are learnt."""
        return int(self.trained[1:].sum())

    def cut(self, length: int) -> Example:
        """The first `length` predictions of the sequence."""
        return Example(self.ids[: length + 1], self.trained[: length + 1])


def encode_example(tokenizer: Tokenizer, parts: Iterable[Segment]) -> Example:
    """The example that a rendered conversation makes."""
    ids, trained = encode_segments(tokenizer, parts)
    return Example(np.array(ids, dtype=np.int64), np.array(trained, dtype=bool))


def fit_example(
    example: Example, context: int, too_long: TooLong
) -> tuple[Example | None, str | None]:
    """The example as a model of `context` can learn it, and why it is changed or (None) dropped.

    Reasons: `truncated`, `too_long`, `nothing_to_learn` (no learnt token, maybe after the cut).
    """
    reason = None
    if len(example) > context:
        if too_long == "drop":
            return None, "too_long"
        example, reason = example.cut(context), "truncated"
    if not example.targets:
        return None, "nothing_to_learn"
    return example, reason


def held_out_split(
    ids: Sequence[str], share: float, seed: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Indexes to train on and to hold out, about `share` of them, decided by a hash of each id.

    So an example stays on its side whatever else joins the data.
    """
    limit = int(share * 2**64)
    held = np.array(
        [int.from_bytes(key_of("held out", seed, one)[:8], "big") < limit for one in ids],
        dtype=bool,
    )
    return np.flatnonzero(~held), np.flatnonzero(held)


@dataclass(frozen=True)
class ExampleSet:
    """Examples of the rows of a role, one or two a row; which rows train and which are held out.

    `reasons` counts why rows were changed or dropped, `unused` what the format lacks.
    """

    ids: list[str]
    rows: list[tuple[Example, ...]]
    row_sources: list[str]
    train: NDArray[np.int64]
    held_out: NDArray[np.int64]
    reasons: Counter[str]
    unused: Counter[str]

    def account(self, dropped: Sequence[str], **more: int) -> dict[str, Any]:
        """Rows by what happened to them, for `run.json`; `dropped` are the reasons to name."""
        return {
            "train": len(self.train),
            "held_out": len(self.held_out),
            "truncated": self.reasons["truncated"],
            **{reason: self.reasons[reason] for reason in dropped},
            **more,
            "unused": dict(self.unused),
        }


class ReadRow(NamedTuple):
    """A row of a role as examples, or None; why it was changed or dropped; what was not used."""

    examples: tuple[Example, ...] | None
    reason: str | None
    unused: Counter[str]


def read_examples(
    context: Context,
    columns: Sequence[str],
    read: Callable[[Sequence[Mapping[str, Any]]], Iterable[ReadRow]],
    *,
    noun: str,
    dropped: Sequence[str],
    vocabulary_size: int,
) -> ExampleSet:
    """The rows of the role that the first of `columns` names: `conversation_id`, `preference_id`.

    `read` takes the rows of a group. Dropped rows are counted with samples, as `noun`s; `dropped`
    are the reasons for it. InputError
    if they are too many, if nothing is left, or for ids that the model does not have.
    """
    config, reasons, unused = context.config, Counter[str](), Counter[str]()
    name = columns[0]
    role = f"{name.removesuffix('_id')}s"
    rows: list[tuple[Example, ...]] = []
    ids, sources, total = list[str](), list[str](), 0
    for row, (examples, reason, fields) in _read_rows(context, role, columns, read):
        total += 1
        unused += fields
        if reason is not None:
            reasons[reason] += 1
            context.sample(reason, f"{row['source']} {row[name]}")
        if examples is not None:
            rows.append(examples)
            ids.append(row[name])
            sources.append(row["source"])
    lost = total - len(rows)
    samples = [
        f"{reason}: {text}" for reason in dropped for text in context.samples.get(reason, [])
    ]
    check_bad_share(lost, total, config.max_bad_share, samples, where=role)
    context.count(**{f"{noun}s": total, f"{noun}s_left_out": lost}, **reasons, **unused)
    for field, count in sorted(unused.items()):
        what = field.removesuffix("_unused").replace("_", " ")
        context.log.warning("%s, which the chat format does not hold: %d", what, count)
    train, held_out = held_out_split(ids, config.held_out_share, config.seed)
    if not len(train):
        raise InputError(f"no {noun} is left to train on", where=role)
    highest = max(int(example.ids.max()) for examples in rows for example in examples)
    if highest >= vocabulary_size:
        raise InputError(
            f"the tokenizer gives id {highest}, the model has {vocabulary_size} rows",
            where="checkpoint",
        )
    return ExampleSet(ids, rows, sources, train, held_out, reasons, unused)


def _read_rows(
    context: Context,
    role: str,
    columns: Sequence[str],
    read: Callable[[Sequence[Mapping[str, Any]]], Iterable[ReadRow]],
) -> Iterator[tuple[Mapping[str, Any], ReadRow]]:
    for source in context.many(role):
        for shard in source.shards():
            for group in shard.row_groups(list(columns)):
                rows = group.to_pylist()
                yield from zip(rows, read(rows), strict=True)
            context.check_stop()


def unused_rows(account: Mapping[str, Any]) -> tuple[tuple[str, int], ...]:
    """Fields that were not used, for a page, from the account of the data in `run.json`."""
    return tuple(
        (name.replace("_", " "), count) for name, count in sorted(account["unused"].items())
    )


@dataclass(frozen=True)
class ExampleClock:
    """Which examples a training step sees: all of them `epochs` times, each time reshuffled."""

    size: int
    per_batch: int
    epochs: int
    seed: int

    @property
    def steps(self) -> int:
        """Training steps; the last may be smaller."""
        return -(-self.size * self.epochs // self.per_batch)

    def batch(self, training_step: int) -> NDArray[np.int64]:
        """Indexes of the examples of `training_step` (from 1)."""
        start = (training_step - 1) * self.per_batch
        stop = min(start + self.per_batch, self.size * self.epochs)
        epochs, places = np.divmod(np.arange(start, stop, dtype=np.int64), self.size)
        chosen = np.empty_like(places)
        for epoch in np.unique(epochs).tolist():
            order = Permutation(self.size, key_of("examples", self.seed, epoch))
            chosen[epochs == epoch] = order(places[epochs == epoch])
        return chosen


_WIDTH_STEP = 8
"""Rows are padded to a multiple of this: odd widths are slow in native kernels."""


def pack_rows(examples: Sequence[Example], context: int, pieces: int = 1) -> Rows:
    """Place each example whole into a row of at most `context` tokens; documents are its index.

    Best fit, longest first; the rows are as wide as the fullest needs, and a multiple of `pieces`,
    which divides `context`. Without examples, a row of padding: a rank that has nothing to read
    still takes part. Raises ValueError for an example that is longer than `context`.
    """
    placed: list[list[int]] = []
    free: list[int] = []
    for index in sorted(range(len(examples)), key=lambda i: (-len(examples[i]), i)):
        length = len(examples[index])
        if length > context:
            raise ValueError(f"example {index} has {length} tokens, context {context}")
        fitting = [row for row in range(len(placed)) if free[row] >= length]
        if fitting:
            row = min(fitting, key=lambda r: (free[r], r))
        else:
            row = len(placed)
            placed.append([])
            free.append(context)
        placed[row].append(index)
        free[row] -= length
    step = math.lcm(_WIDTH_STEP, pieces)
    steps = max(1, -(-(context - min(free, default=context)) // step))
    return _fill_rows(examples, placed or [[]], min(context, steps * step))


def _fill_rows(examples: Sequence[Example], placed: list[list[int]], width: int) -> Rows:
    tokens = np.zeros((len(placed), width), dtype=np.int64)
    targets = np.full((len(placed), width), IGNORED, dtype=np.int64)
    documents = np.full((len(placed), width), PADDED, dtype=np.int64)
    for row, indexes in enumerate(placed):
        start = 0
        for index in indexes:
            example = examples[index]
            span = slice(start, start + len(example))
            tokens[row, span] = example.ids[:-1]
            targets[row, span] = np.where(example.trained[1:], example.ids[1:], IGNORED)
            documents[row, span] = index
            start = span.stop
    return Rows(tokens, targets, documents)
