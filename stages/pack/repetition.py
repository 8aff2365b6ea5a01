"""Which segments of a document say the same over and over, and so are left out.

OLMo 2 leaves out sequences in which an n-gram of 1 to 13 tokens comes 32 times or more in a row:
the loss had spikes at such sequences (OLMo Team 2025, arXiv 2501.00656, "Repeated n-grams";
OLMo-core's `InstanceFilterConfig`). Here documents are looked at before they are laid out, so what
lies beside a repetitive document in a sequence stays. A segment is a sequence's length of a
document, counted from its begin; a shorter document is one segment.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from stages.pack.config import Repetition
from stages.pack.layout import Ints


class Stretch(NamedTuple):
    """Tokens [begin, end) of a document that repeat with a period, as often as is too much."""

    document: int
    begin: int
    end: int
    period: int


def find_stretches(
    ids: npt.NDArray[Any], lengths: Ints, max_period: int, min_repeats: int
) -> list[Stretch]:
    """Where an n-gram of `max_period` tokens or fewer comes `min_repeats` times or more in a row.

    `ids` are documents end to end, of `lengths` tokens; `min_repeats` is at least 2. Tokens that
    repeat with a period equal those one period after, on a stretch of at least (min_repeats - 1)
    periods. So one token in so many is compared, and the longest stretch is measured only in
    documents with a hit.
    """
    ends = np.cumsum(lengths)
    stretches = []
    for period in range(1, max_period + 1):
        least = (min_repeats - 1) * period
        samples = np.arange(least - 1, len(ids) - period, least)
        hits = samples[ids[samples] == ids[samples + period]]
        for document in np.unique(np.searchsorted(ends, hits, side="right")).tolist():
            tokens = ids[ends[document] - lengths[document] : ends[document]]
            breaks = np.flatnonzero(tokens[period:] != tokens[:-period])
            edges = np.concatenate(([-1], breaks, [max(0, len(tokens) - period)]))
            for run in np.flatnonzero(np.diff(edges) > least).tolist():
                begin, end = int(edges[run]) + 1, int(edges[run + 1]) + period
                stretches.append(Stretch(document, begin, end, period))
    return stretches


def repetitive_segments(
    ids: npt.NDArray[Any], lengths: Ints, sequence_length: int, settings: Repetition | None
) -> dict[int, list[int]]:
    """By document the numbers of its segments that are left out, rising.

    Those that hold `min_repeats` of a stretch; where the ends of segments cut it into less, the one
    that holds most. So no run of the segments that stay repeats an n-gram so often.
    """
    if settings is None:
        return {}
    segments: dict[int, set[int]] = {}
    for stretch in find_stretches(ids, lengths, settings.max_period, settings.min_repeats):
        numbers = np.arange(
            stretch.begin // sequence_length, (stretch.end - 1) // sequence_length + 1
        )
        begins = np.maximum(numbers * sequence_length, stretch.begin)
        held = np.minimum((numbers + 1) * sequence_length, stretch.end) - begins
        too_much = held >= min(settings.min_repeats * stretch.period, int(held.max()))
        segments.setdefault(stretch.document, set()).update(numbers[too_much].tolist())
    return {document: sorted(numbers) for document, numbers in segments.items()}


class Runs(NamedTuple):
    """Runs of tokens that are laid out: which document, from which of its tokens on, how many."""

    document: Ints
    start: Ints
    length: Ints


def runs_without(
    lengths: Ints, excluded: dict[int, list[int]], sequence_length: int
) -> tuple[Runs, Ints]:
    """What stays of documents without some segments, by document and start.

    Neighbouring segments stay together; a document of which nothing stays has no run. Also the
    tokens left out of each document.
    """
    runs, tokens = [], np.zeros_like(lengths)
    for place, numbers in excluded.items():
        size, begin = int(lengths[place]), 0
        tokens[place] = size
        for number in [*numbers, -(-size // sequence_length)]:
            end = min(number * sequence_length, size)
            if end > begin:
                runs.append((place, begin, end - begin))
                tokens[place] -= end - begin
            begin = end + sequence_length
    whole = np.setdiff1d(np.arange(len(lengths)), list(excluded))
    columns = np.array(runs, dtype=np.int64).reshape(-1, 3).T
    document = np.concatenate([whole, columns[0]])
    start = np.concatenate([np.zeros_like(whole), columns[1]])
    length = np.concatenate([lengths[whole], columns[2]])
    order = np.lexsort((start, document))
    return Runs(document[order], start[order], length[order]), tokens
