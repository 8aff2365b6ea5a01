"""Rows of the embedding and of the output layer for new tokens.

Shapes: R rows, D width.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

MATRICES = ("embedding.weight", "head.weight")
"""Weights of the decoder with a row for each token; `head` only where it is not tied."""


def extend_rows(
    weight_RD: Tensor, pieces: Sequence[tuple[int, ...]], vocabulary_size: int, rows: int
) -> Tensor:
    """The weight with `rows` rows, in its own type; those of the old vocabulary are unchanged.

    The row of a new token is the mean of its pieces' (Gee et al. 2022, "Fast Vocabulary Transfer
    for Language Model Compression", arXiv 2402.09977). Rows beyond the new vocabulary, which no
    text reaches, keep what they held; those that had none are the mean of the old vocabulary's.
    """
    old = weight_RD.shape[0]
    # NumPy adds rows in one order, whatever the number of threads.
    known_RD = weight_RD[:vocabulary_size].float().numpy()
    result_RD = torch.empty((rows, weight_RD.shape[1]), dtype=weight_RD.dtype)
    result_RD[:old] = weight_RD
    result_RD[old:] = torch.from_numpy(known_RD.mean(0, dtype="float64")).to(weight_RD.dtype)
    for number, parts in enumerate(pieces):
        mean_D = known_RD[list(parts)].mean(0, dtype="float64")
        result_RD[vocabulary_size + number] = torch.from_numpy(mean_D).to(weight_RD.dtype)
    return result_RD
