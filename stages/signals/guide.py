"""What the pretraining guide's three rules look at, beside `characters`.

The rules (at least 200 characters, at most 30 % special symbols, fewer than 3 equal lines in a row)
leave open what a symbol and a line are; the descriptions of the columns say what they are here.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from stages.signals.character_classes import SPECIAL, characters
from stages.signals.hashing import content_hash
from stages.signals.line_signals import line_end, stripped
from stages.signals.quality import ratio
from stages.signals.signal import Signal, count, share
from stages.text.batch import Batch
from stages.text.native import compiled

GUIDE = "Pretraining guide"

SIGNALS: tuple[Signal, ...] = (
    share(
        "special_symbol_share",
        GUIDE,
        "Characters that are neither letters, digits or other numbers, marks nor white space.",
    ),
    count(
        "equal_lines_in_a_row",
        "lines",
        GUIDE,
        "Longest run of equal lines: between line feeds, without white space at their ends, blank "
        "ones left out; 1 where no line equals the one before.",
    ),
)


def guide_signals(batch: Batch) -> dict[str, NDArray[np.int64] | NDArray[np.float64]]:
    """The columns of `SIGNALS`; both are 0 for a blank text."""
    counts = np.zeros((len(batch.texts), 2), dtype=np.int64)
    _count(batch.codes, batch.offsets, characters(batch.codes).classes, counts)
    return {
        "special_symbol_share": ratio(counts[:, 0], np.diff(batch.offsets)),
        "equal_lines_in_a_row": counts[:, 1],
    }


@compiled
def _count(codes: Any, offsets: Any, classes: Any, counts: Any) -> None:
    """Special symbols, and the longest run of equal lines."""
    for text in range(offsets.size - 1):
        place, end = offsets[text], offsets[text + 1]
        special = 0
        for symbol in range(place, end):
            special += classes[codes[symbol]] & SPECIAL != 0
        longest = run = 0
        before = np.uint64(0)
        while place < end:
            stop = line_end(codes, place, end)
            left, right = stripped(codes, place, stop, classes)
            place = stop + 1
            if left < right:
                key = content_hash(codes, left, right)
                run = run + 1 if run and key == before else 1
                before = key
                longest = max(longest, run)
        counts[text, 0] = special
        counts[text, 1] = longest
