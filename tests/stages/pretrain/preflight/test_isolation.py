"""Whether documents of one sequence see each other is tried before a run."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from stages.model.config import Experts, ModelShape
from stages.model.decoder import Decoder
from stages.pretrain.preflight_isolation import (
    change_first_document,
    check_isolation,
    two_documents,
)
from stages.training.config import TrainingExecution
from stages.training.rows import Rows
from stages.training.runtime import runtime
from stages.training.token_shards import PADDED


def row_of(*lengths: int, padding: int = 2) -> Rows:
    """A row of documents of these lengths, then padding."""
    draw = np.random.default_rng(1)
    ids = draw.integers(0, 64, sum(lengths) + padding + 1)
    numbers = np.repeat([*range(len(lengths)), PADDED], [*lengths, padding])
    return Rows(ids[None, :-1], ids[None, 1:], numbers[None])


@pytest.fixture
def how():
    with runtime(TrainingExecution(device="cpu", threads=1), "fp32", seed=1) as made:
        yield made


@pytest.mark.parametrize("experts", [None, Experts(experts=4, chosen=2, width=16)])
def test_documents_that_are_kept_apart_pass(how, experts):
    shape = ModelShape(width=32, layers=2, heads=2, kv_heads=1, context=32, experts=experts)
    model = Decoder(shape.with_vocabulary(64), seed=3)
    finding = check_isolation(model, row_of(9, 7, 6), how)
    assert finding.level == "ok"
    assert "2 others" in finding.message
    assert finding.numbers["isolation_difference"] <= (1e-5 if experts else 0.0)


def test_a_kernel_that_ignores_borders_is_refused(how, monkeypatch):
    """As in transformers with a mask of ones: every token sees all before it in the row."""
    shape = ModelShape(width=32, layers=2, heads=2, kv_heads=1, context=32, init_std=0.2)
    model = Decoder(shape.with_vocabulary(64), seed=3)
    sees = type(how).losses

    def together(self, model, rows):
        whole = np.where(rows.documents_BL == PADDED, PADDED, 0)
        return sees(self, model, Rows(rows.tokens_BL, rows.targets_BL, whole))

    monkeypatch.setattr(type(how), "losses", together)
    finding = check_isolation(model, row_of(9, 7, 6), how)
    assert finding.level == "refusal"
    assert finding.numbers["isolation_difference"] > 1e-3
    assert "sdpa" in finding.hint


def test_one_document_a_row_has_no_neighbour():
    one, two = row_of(16), row_of(9, 7)
    both = Rows(*(np.concatenate(pair) for pair in zip(
        (one.tokens_BL, one.targets_BL, one.documents_BL),
        (two.tokens_BL, two.targets_BL, two.documents_BL),
        strict=True,
    )))  # fmt: skip
    assert two_documents(one) is None
    chosen = two_documents(both)
    assert (chosen.tokens_BL == two.tokens_BL).all()
    changed = change_first_document(chosen, 64)
    differs = changed.tokens_BL != chosen.tokens_BL
    assert (differs == (chosen.documents_BL == 0)).all()
    assert torch.from_numpy(changed.tokens_BL).max() < 64
