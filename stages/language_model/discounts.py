"""Discounts of modified Kneser-Ney smoothing."""

from __future__ import annotations

from collections.abc import Sequence

Discounts = tuple[float, float, float]
"""What is taken from counts of 1, of 2, and of 3 or more."""


def discounts(counts_of_counts: Sequence[int]) -> Discounts | None:
    """Those that n1, n2, n3, n4 n-grams with counts of 1 to 4 give; None where they give none.

    D(k) = k - (k + 1) Y n(k+1) / n(k), Y = n1 / (n1 + 2 n2) (Chen & Goodman 1998, equation 26).
    There are none where n1, n2 or n3 is 0 or a discount would be below 0, which small corpora and
    corpora of repeated text do; lmplz stops there unless it is given a fallback.
    """
    n = [0, *counts_of_counts]
    if not all(n[1:4]):
        return None
    y = n[1] / (n[1] + 2 * n[2])
    one, two, three = (k - (k + 1) * y * n[k + 1] / n[k] for k in (1, 2, 3))
    return (one, two, three) if min(one, two, three) >= 0 else None
