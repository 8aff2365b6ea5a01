"""What training is measured against learns the same: documents, targets and mask of the peers."""

from __future__ import annotations

import numpy as np
import torch

from stages.model.masks import Visibility
from stages.training.pieces import IGNORED, cut_into_pieces
from tests.benchmarks.training_peers import Packed, documents, targets_of

END, PADDING = 1, 2
ROWS = np.array([[0, 9, 1, 0, 8, 7, 1, 5], [5, 6, 7, 8, 9, 5, 6, 1]], dtype=np.uint16)
"""Full rows: the peers know no padding, and packed ones have hardly any."""


def test_documents_and_targets_are_those_of_the_loader() -> None:
    cut = cut_into_pieces(ROWS, END, PADDING)
    tokens = torch.from_numpy(ROWS.astype(np.int64))
    assert documents(tokens, END).tolist() == cut.documents_BL.tolist()
    assert targets_of(tokens, END).tolist() == cut.targets_BL.tolist()


def test_the_trainer_sees_the_same_mask_positions_and_labels() -> None:
    cut = cut_into_pieces(ROWS, END, PADDING)
    packed = Packed(ROWS, END)
    tokens = torch.from_numpy(ROWS.astype(np.int64))
    seen = Visibility.of(tokens, torch.from_numpy(cut.documents_BL), None).dense()
    for place in range(len(packed)):
        row = packed[place]
        assert torch.equal(row["attention_mask"][0], seen[place, 0])
        assert row["position_ids"].tolist() == cut.positions_BL[place].tolist()
        # Hugging Face shifts labels itself: that of a token is what the one before it predicts.
        assert row["labels"][1:].tolist() == cut.targets_BL[place][:-1].tolist()
        assert row["labels"][0] == IGNORED
