"""Masked tokens: some are hidden and predicted from all others, to the left and to the right.

Devlin et al. 2019, BERT (arXiv 1810.04805), section 3.1: 15 % of the tokens are chosen; 80 % of
those become the mask token, 10 % a random token, 10 % stay as they are. As in RoBERTa (Liu et al.
2019, arXiv 1907.11692, section 4.1) they are chosen anew each time that a sequence is read.

Shapes: B rows, L tokens.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from stages.training.draws import Uniform
from stages.training.pieces import IGNORED


def mask_tokens(
    tokens_BL: NDArray[Any],
    text_BL: NDArray[np.bool_],
    drawn_BL: Uniform,
    *,
    corrupted: float,
    masked: float,
    replaced: float,
    mask_id: int,
    text_ids: NDArray[np.int64],
) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """The tokens as the model sees them, and the targets: the tokens that were chosen, in place.

    Each token that is text is chosen by itself; of the chosen, a share `masked` becomes `mask_id`
    and a share `replaced` one of `text_ids`, each as likely, maybe itself.
    """
    chosen_BL = text_BL & (drawn_BL < corrupted)
    # Below a bound a uniform number is uniform up to it: one draw a token is enough.
    fate = drawn_BL[chosen_BL] / corrupted
    hidden, other = fate < masked, (fate >= masked) & (fate < masked + replaced)
    seen = tokens_BL[chosen_BL]
    targets_BL = np.full(tokens_BL.shape, IGNORED, dtype=np.int64)
    targets_BL[chosen_BL] = seen
    if replaced:
        which = (fate[other] - masked) / replaced * len(text_ids)
        seen[other] = text_ids[np.minimum(which.astype(np.int64), len(text_ids) - 1)]
    seen[hidden] = mask_id
    tokens_BL = tokens_BL.copy()
    tokens_BL[chosen_BL] = seen
    return tokens_BL, targets_BL
