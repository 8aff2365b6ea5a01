"""What training is measured against learns the same: documents, targets and mask of the peers."""

from __future__ import annotations

import numpy as np
import torch

from stages.model.attention import Visibility
from stages.training.token_shards import IGNORED, cut_into_segments
from tests.benchmarks.training_peers import Packed, documents, targets_of

END, PADDING = 1, 2
ROWS = np.array([[0, 9, 1, 0, 8, 7, 1, 5], [5, 6, 7, 8, 9, 5, 6, 1]], dtype=np.uint16)
"""Full rows: the peers know no padding, and packed ones have hardly any."""


def positions_of(documents_L):
    """From 0 in each document."""
    return [place - int(np.argmax(documents_L == one)) for place, one in enumerate(documents_L)]


def test_documents_and_targets_are_those_of_the_loader() -> None:
    targets_BL, documents_BL = cut_into_segments(ROWS, END, PADDING)
    tokens = torch.from_numpy(ROWS.astype(np.int64))
    assert documents(tokens, END).tolist() == documents_BL.tolist()
    assert targets_of(tokens, END).tolist() == targets_BL.tolist()


def test_the_trainer_sees_the_same_mask_positions_and_labels() -> None:
    targets_BL, documents_BL = cut_into_segments(ROWS, END, PADDING)
    packed = Packed(ROWS, END)
    tokens = torch.from_numpy(ROWS.astype(np.int64))
    seen = Visibility.from_batch(tokens, torch.from_numpy(documents_BL), None).dense()
    for place in range(len(packed)):
        row = packed[place]
        assert torch.equal(row["attention_mask"][0], seen[place, 0])
        assert row["position_ids"].tolist() == positions_of(documents_BL[place])
        # Hugging Face shifts labels itself: that of a token is what the one before it predicts.
        assert row["labels"][1:].tolist() == targets_BL[place][:-1].tolist()
        assert row["labels"][0] == IGNORED
