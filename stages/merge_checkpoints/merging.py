"""Merging of one tensor of several models: pure functions of NumPy arrays.

Each is a product and a sum for each number, in a fixed order and in float32 (slerp: float64), so
that the bytes do not depend on the processor.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float32]

PARALLEL = 1e-6
"""Below this sine two tensors point the same way, and slerp is the straight line."""


def merge_linear(tensors: Sequence[Array], shares: Sequence[float]) -> Array:
    """Weighted mean (Wortsman et al. 2022, "Model soups"); `shares` sum to 1."""
    merged = tensors[0] * np.float32(shares[0])
    for tensor, share in zip(tensors[1:], shares[1:], strict=True):
        merged += tensor * np.float32(share)
    return merged


def merge_slerp(first: Array, second: Array, share: float) -> Array:
    """Spherical interpolation (Shoemake 1985) between two tensors seen as vectors.

    `share` of the second; the lengths are interpolated with the directions, as the sum is of the
    vectors themselves. Where they are parallel, or one is 0, the straight line.
    """
    one, two = first.astype(np.float64), second.astype(np.float64)
    norms = float(np.sqrt((one * one).sum()) * np.sqrt((two * two).sum()))
    # Rounded, so that the order of a sum does not reach the result.
    cosine = round(float((one * two).sum()) / norms, 9) if norms else 1.0
    angle = float(np.arccos(np.clip(cosine, -1, 1)))
    sine = float(np.sin(angle))
    if sine < PARALLEL:
        return merge_linear([first, second], [1 - share, share])
    left, right = np.sin((1 - share) * angle) / sine, np.sin(share * angle) / sine
    return (left * one + right * two).astype(np.float32)


def merge_ties(
    base: Array, tensors: Sequence[Array], shares: Sequence[float], density: float, scale: float
) -> Array:
    """TIES (Yadav et al. 2023, arXiv 2306.01708): trim, elect a sign, mean of those that agree.

    Of each change since `base` the largest `density` is kept, in this tensor (the paper trims over
    the whole model, mergekit as here). A number's sign is that of the weighted sum of what is left;
    its change is the weighted mean of the changes of that sign, times `scale`.
    """
    total, agreeing, weight = (np.zeros_like(base) for _ in range(3))
    changes = [trim(tensor - base, density) for tensor in tensors]
    for change, share in zip(changes, shares, strict=True):
        total += change * np.float32(share)
    sign = np.sign(total)
    for change, share in zip(changes, shares, strict=True):
        agrees = (np.sign(change) == sign) & (sign != 0)
        agreeing += np.where(agrees, change * np.float32(share), np.float32(0))
        weight += np.where(agrees, np.float32(share), np.float32(0))
    mean = np.divide(agreeing, weight, out=np.zeros_like(base), where=weight > 0)
    merged: Array = (base + mean * np.float32(scale)).astype(np.float32)
    return merged


def trim(change: Array, density: float) -> Array:
    """The change with all but the largest `density` of its numbers 0; at least one stays."""
    kept = max(1, round(density * change.size))
    if kept >= change.size:
        return change
    sizes = np.abs(change)
    threshold = np.partition(sizes, change.size - kept, axis=None)[change.size - kept]
    return np.where(sizes >= threshold, change, np.float32(0))
