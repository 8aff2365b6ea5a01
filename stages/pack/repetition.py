"""Sequences that say the same few tokens over and over, found in about a tenth of their length.

OLMo 2 leaves out sequences in which an n-gram of 1 to 13 tokens comes 32 times or more in a row:
the loss had spikes where such came (OLMo Team 2025, arXiv 2501.00656, "Repeated n-grams";
OLMo-core's `InstanceFilterConfig`). The same sequences are found here.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from stages.text.native import compiled


@compiled
def repetitive(
    rows: npt.NDArray[Any], used: npt.NDArray[np.int64], max_period: int, min_repeats: int
) -> npt.NDArray[np.bool_]:
    """[rows] whether an n-gram of `max_period` tokens or fewer comes `min_repeats` times in a row.

    Of row i the first `used[i]` tokens are looked at; `min_repeats` is at least 2.

    Tokens that repeat with a period equal those one period before, on a stretch of at least
    (min_repeats - 1) periods. So it is enough to compare one token in so many: only where it equals
    the one before is the stretch around it measured.
    """
    found = np.zeros(len(rows), np.bool_)
    for number in range(len(rows)):
        row, stop = rows[number], used[number]
        for period in range(1, max_period + 1):
            stretch = (min_repeats - 1) * period
            place = period + stretch - 1
            while place < stop and not found[number]:
                if row[place] == row[place - period]:
                    begin, end = place, place + 1
                    while begin > period and row[begin - 1] == row[begin - 1 - period]:
                        begin -= 1
                    while end < stop and row[end] == row[end - period]:
                        end += 1
                    found[number] = end - begin >= stretch
                place += stretch
            if found[number]:
                break
    return found
