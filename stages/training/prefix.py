"""Prefix language modelling: the begin of a document is seen whole, the rest is predicted.

Raffel et al. 2020, T5 (arXiv 1910.10683), section 3.2.3: a text is split at a random point into
what is given, with attention in both directions, and what is learnt.

Shapes: B rows, L tokens, P pieces of all rows.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from stages.training.draws import Uniform
from stages.training.pieces import IGNORED, PADDED


def pieces_of(documents_BL: NDArray[Any]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """[P] Where each piece begins in the flattened rows, and its tokens; padding is a piece."""
    begins = np.ones(documents_BL.shape, dtype=bool)
    begins[:, 1:] = documents_BL[:, 1:] != documents_BL[:, :-1]
    starts = np.flatnonzero(begins)
    return starts, np.diff(np.append(starts, documents_BL.size))


def split_documents(
    targets_BL: NDArray[np.int64], documents_BL: NDArray[Any], drawn_BL: Uniform
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Targets of the rest of each piece, and which tokens are its prefix.

    A piece of n tokens has a prefix of 1 to n - 1, each as likely (of one token: that one); its
    last token predicts the first behind it.
    """
    starts, lengths = pieces_of(documents_BL)
    drawn = drawn_BL.ravel()[starts]
    given = 1 + (drawn * np.maximum(lengths - 1, 0)).astype(np.int64)
    place = np.arange(documents_BL.size) - np.repeat(starts, lengths)
    prefix_BL = (place < np.repeat(given, lengths)).reshape(documents_BL.shape)
    prefix_BL &= documents_BL != PADDED
    # What a token predicts is the next of its piece: given already, if that is in the prefix.
    learnt_BL = targets_BL.copy()
    learnt_BL[:, :-1][prefix_BL[:, 1:]] = IGNORED
    return learnt_BL, prefix_BL
