"""What of preference pairs a model learns to prefer, or is scored by: as a stage reads them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from artifacts_schema.errors import UsageError
from stages.engine import Input
from stages.pairs.encoding import COLUMNS, encode_pairs
from stages.preference.config import PairsConfig
from stages.preference.pairs import PairReader
from stages.training.examples import Example, ExampleClock, held_out_split
from stages.training.masks import MaskedPair, Masks, Piece, Share, cut_pieces
from stages.training.token_marks import SPEAKERS, speakers_of

FIRST_PAIRS = 64
"""Rows that are read where no training step says which."""

Row = Mapping[str, Any]


def first_pairs(preferences: Sequence[Input], reader: PairReader, most: int) -> Masks:
    """Those of the first rows; at most `most` pairs come with their text."""
    rows = (row for group in _groups(preferences) for row in group)
    return pair_masks(reader, list(islice(rows, FIRST_PAIRS)), most)


def pairs_of_step(
    preferences: Sequence[Input],
    reader: PairReader,
    config: PairsConfig,
    training_step: int,
    most: int,
) -> Masks:
    """Those of a training step, in its order. UsageError for a step that the run does not have.

    All rows are encoded, as the run did: which of them it learns decides the order.
    """
    ids = [
        row["preference_id"]
        for group in _groups(preferences)
        for row, read in zip(group, reader.read(group), strict=True)
        if read.examples is not None
    ]
    train, _ = held_out_split(ids, config.held_out_share, config.seed)
    clock = ExampleClock(len(train), config.pairs_per_batch, config.epochs, config.seed)
    if training_step > clock.steps:
        raise UsageError(
            f"the run has {clock.steps} training steps", where=f"--training-step {training_step}"
        )
    chosen = [ids[number] for number in train[clock.batch(training_step)].tolist()]
    wanted = set(chosen)
    rows = {
        row["preference_id"]: row
        for group in _groups(preferences)
        for row in group
        if row["preference_id"] in wanted
    }
    return pair_masks(reader, [rows[name] for name in chosen], most)


def _groups(preferences: Sequence[Input]) -> Iterator[list[Row]]:
    for one in preferences:
        for shard in one.shards():
            for group in shard.row_groups(list(COLUMNS)):
                yield group.to_pylist()


def pair_masks(reader: PairReader, rows: Sequence[Row], most: int) -> Masks:
    """Those of some rows: tokens of both answers, each with its prompt, by speaker."""
    tokens, learnt = np.zeros(len(SPEAKERS), np.int64), np.zeros(len(SPEAKERS), np.int64)
    dropped = Counter[str]()
    pairs: list[MaskedPair] = []
    encoded = encode_pairs(reader.format, rows)
    for row, answers, read in zip(rows, encoded, reader.read(rows), strict=True):
        if read.examples is None:
            dropped[str(read.reason)] += 1
            continue
        sides: list[tuple[Piece, ...] | None] = []
        for answer, example in zip(answers, read.examples, strict=True):
            if not isinstance(answer, list):
                sides.append(None)
                continue
            speakers = speakers_of(answer[0].marks[: len(example.ids)])
            is_learnt = _learnt(example, reader)
            tokens += np.bincount(speakers, minlength=len(SPEAKERS))
            learnt += np.bincount(speakers[is_learnt], minlength=len(SPEAKERS))
            pieces = cut_pieces(reader.format.tokenizer, example.ids, speakers, is_learnt)
            sides.append(tuple(pieces) if len(pairs) < most else None)
        if len(pairs) < most:
            pairs.append(MaskedPair(row["preference_id"], row["source"], *sides))
    shares = tuple(
        Share(name, *counted)
        for name, *counted in zip(SPEAKERS, tokens.tolist(), learnt.tolist(), strict=True)
        if counted[0]
    )
    return Masks((), shares, tuple(pairs), dict(dropped))


def _learnt(example: Example, reader: PairReader) -> NDArray[np.bool_]:
    """Which tokens the loss is of; a reward model's is of the last one alone."""
    if not reader.scored:
        return example.trained
    last = np.zeros(len(example.ids), dtype=bool)
    last[-1] = True
    return last
