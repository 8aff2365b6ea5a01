"""A view as a label for each character: kept, or cut and why. Cuts and edited texts follow from it.

The label is an index into the names of a view; 0 is kept. Characters next to each other with the
same label are one cut.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from stages.text.native import compiled

KEPT, WHITE_SPACE, LINE_BREAK = 0, 1, 2
"""Labels of every view. A line break is one character, a boundary of another sort that becomes a
line feed; two never lie next to each other, since no line that is kept is empty."""
LABELS = ("kept", "white_space", "line_break")

_LINE_FEED = ord("\n")

Marks = NDArray[np.uint8]


@dataclass(frozen=True, eq=False)
class Cuts:
    """The spans of one view, by text, then start; none overlap.

    Span i lies at characters [starts[i], ends[i]) of text text_of[i] and is called
    label_names[labels[i]]; replacement_names[replacements[i]] takes its place.
    """

    view: str
    text_of: NDArray[np.int64]
    starts: NDArray[np.int32]
    ends: NDArray[np.int32]
    labels: NDArray[np.uint8]
    label_names: tuple[str, ...]
    replacements: NDArray[np.uint8]
    replacement_names: tuple[str, ...]

    def moved(self, texts: int) -> Cuts:
        """The same for texts that stand behind so many others."""
        return replace(self, text_of=self.text_of + texts)


def cuts_of(view: str, marks: Marks, offsets: NDArray[np.int64], names: Sequence[str]) -> Cuts:
    """The runs of equal labels in a batch of texts, as spans within each text."""
    text_of, starts, ends, labels = _runs(marks, offsets, _count_runs(marks, offsets))
    return Cuts(
        view, text_of, starts, ends, labels, tuple(names),
        (labels == LINE_BREAK).astype(np.uint8), ("", "\n"),
    )  # fmt: skip


@compiled
def _begins(marks: Marks, i: int, first: int) -> bool:
    """Whether a cut begins at character i of a text that begins at `first`."""
    label = marks[i]
    return label != KEPT and (i == first or label != marks[i - 1])


@compiled
def _count_runs(marks: Marks, offsets: NDArray[np.int64]) -> int:
    runs = 0
    for text in range(len(offsets) - 1):
        for i in range(offsets[text], offsets[text + 1]):
            if _begins(marks, i, offsets[text]):
                runs += 1
    return runs


@compiled
def _runs(
    marks: Marks, offsets: NDArray[np.int64], runs: int
) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.int32], NDArray[np.uint8]]:
    text_of = np.empty(runs, dtype=np.int64)
    starts, ends = np.empty(runs, dtype=np.int32), np.empty(runs, dtype=np.int32)
    labels = np.empty(runs, dtype=np.uint8)
    run = -1
    for text in range(len(offsets) - 1):
        first = offsets[text]
        for i in range(first, offsets[text + 1]):
            if _begins(marks, i, first):
                run += 1
                text_of[run], starts[run], labels[run] = text, i - first, marks[i]
            if marks[i] != KEPT:
                ends[run] = i + 1 - first
    return text_of, starts, ends, labels


@compiled
def edited_codes(
    codes: NDArray[np.uint32], offsets: NDArray[np.int64], marks: Marks
) -> tuple[NDArray[np.uint32], NDArray[np.int64]]:
    """The code points that the cuts leave, and where each text begins among them."""
    left = 0
    for i in range(len(marks)):
        left += marks[i] == KEPT or marks[i] == LINE_BREAK
    edited = np.empty(left, dtype=np.uint32)
    edited_offsets = np.zeros_like(offsets)
    end = 0
    for text in range(len(offsets) - 1):
        for i in range(offsets[text], offsets[text + 1]):
            if marks[i] == KEPT:
                edited[end] = codes[i]
                end += 1
            elif marks[i] == LINE_BREAK:
                edited[end] = _LINE_FEED
                end += 1
        edited_offsets[text + 1] = end
    return edited, edited_offsets


def texts_of(codes: NDArray[np.uint32], offsets: NDArray[np.int64]) -> list[str]:
    """The strings of code points; text d has those from offsets[d] to offsets[d + 1]."""
    if len(codes) and codes.max() < 128:
        joined = codes.astype(np.uint8).tobytes().decode("ascii")
    else:
        joined = codes.astype("<u4").tobytes().decode("utf-32-le", "surrogatepass")
    return [joined[start:end] for start, end in pairwise(offsets.tolist())]
