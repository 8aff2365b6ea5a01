"""The baseline that any language model must beat: each token by its share in the training text."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def unigram_nll(counts: NDArray[np.int64]) -> NDArray[np.float64]:
    """Negative log-probability of each token, nats, with add-one (Laplace) smoothing.

    -log((count + 1) / (total + vocabulary)), special tokens included on both sides.
    """
    counts = counts.astype(np.float64)
    nll: NDArray[np.float64] = np.log(counts.sum() + len(counts)) - np.log(counts + 1)
    return nll
