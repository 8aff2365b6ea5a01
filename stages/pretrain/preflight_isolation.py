"""A trial before a run: whether documents that share a sequence see each other.

A kernel that ignores the borders of documents trains without an error, on other losses (in
`transformers`, by a mask of ones or by a cache: huggingface/trl#5316). So the tokens of one
document are changed, their number is not, and the losses of its neighbours must stay the same.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import nn

from stages.pretrain.preflight_checks import Finding
from stages.training.rows import Rows
from stages.training.runtime import Runtime
from stages.training.token_shards import PADDED

EXPERTS_TOLERANCE = 1e-5
"""Nats. With experts the number of tokens in a product changes, and with it the last digits."""


def two_documents(rows: Rows) -> Rows | None:
    """The first row that holds several documents, alone; None where there is none."""
    for number in range(len(rows)):
        if rows.documents_BL[number].max() > 0:
            part = slice(number, number + 1)
            return Rows(rows.tokens_BL[part], rows.targets_BL[part], rows.documents_BL[part])
    return None


def change_first_document(row: Rows, vocabulary_size: int) -> Rows:
    """The same row with every token of its first document replaced by the next id."""
    first_BL = row.documents_BL == row.documents_BL[0, 0]
    tokens_BL = np.where(first_BL, (row.tokens_BL + 1) % vocabulary_size, row.tokens_BL)
    return Rows(tokens_BL, row.targets_BL, row.documents_BL)


@torch.no_grad()
def check_isolation(model: nn.Module, row: Rows, runtime: Runtime) -> Finding:
    """Change the first document of `row`, which has several, and compare the others' losses.

    To be called in one process, with the model as it trains.
    """
    vocabulary_size: int = model.config.vocabulary_size  # type: ignore[union-attr, assignment]
    experts = model.config.experts is not None  # type: ignore[union-attr]
    before_BL, after_BL = (
        runtime.losses(model, one).float()
        for one in (row, change_first_document(row, vocabulary_size))
    )
    others_BL = (row.documents_BL != row.documents_BL[0, 0]) & (row.documents_BL != PADDED)
    kept_BL = torch.from_numpy(others_BL).to(before_BL.device)
    difference = (before_BL - after_BL).abs()[kept_BL].max().item()
    documents = len(np.unique(row.documents_BL[others_BL]))
    numbers = {"isolation_difference": difference}
    if difference > (EXPERTS_TOLERANCE if experts else 0.0):
        return Finding(
            "isolation",
            "refusal",
            f"changing one document changes the losses of its neighbours by up to {difference:.3g} "
            "nats: they see each other",
            "choose another `execution.attention`, such as sdpa",
            numbers,
        )
    text = (
        f"changing a document leaves the losses of {documents:,} others of its sequence as they are"
    )
    return Finding("isolation", "ok", text, numbers=numbers)
