"""How likely bands propose a pair, and which bands suit a threshold best."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

_DIGITS = 9
"""To which areas are compared, so that rounding decides between no equal ones."""


def candidate_probability(similarity: float, bands: int, rows: int) -> float:
    """Chance that a pair of this Jaccard similarity agrees on a band: 1 - (1 - s^rows)^bands."""
    return float(1.0 - (1.0 - similarity**rows) ** bands)


def solved(threshold: float, hashes: int) -> tuple[int, int]:
    """(bands, rows) of at most `hashes` hashes that part pairs at `threshold` best.

    The least sum of two areas, weighted alike: under the candidate probability below the threshold
    (false positives) and over it above (false negatives), as datasketch's MinHashLSH has it (after
    Zhu et al. 2016, LSH Ensemble). Of equals the one of fewer bands, then fewer rows. Raises
    ValueError unless 0 < threshold <= 1 and hashes >= 1.
    """
    if not 0 < threshold <= 1 or hashes < 1:
        raise ValueError(f"no bands for a threshold of {threshold} and {hashes} hashes")
    rows_of = [hashes // bands for bands in range(1, hashes + 1)]
    bands = np.repeat(np.arange(1, hashes + 1), rows_of)
    rows = np.concatenate([np.arange(1, most + 1) for most in rows_of])
    below = _missed(threshold, bands, rows)
    error = (threshold - below) + (_missed(1.0, bands, rows) - below)
    best = int(np.argmin(error.round(_DIGITS)))
    return int(bands[best]), int(rows[best])


def _missed(
    similarity: float, bands: NDArray[np.int64], rows: NDArray[np.int64]
) -> NDArray[np.float64]:
    """The integral of (1 - s^rows)^bands for s from 0 to `similarity`.

    With u = s^rows it is an incomplete beta function: B(u; 1/rows, bands + 1) / rows.
    """
    from scipy.special import beta, betainc  # Half a second, for those who ask for a threshold.

    upper = similarity ** rows.astype(np.float64)
    inverse = 1.0 / rows
    integral = betainc(inverse, bands + 1.0, upper) * beta(inverse, bands + 1.0) * inverse
    # Where the power underflows the integrand is 1 all the way.
    return np.where(upper > 0, integral, similarity)
