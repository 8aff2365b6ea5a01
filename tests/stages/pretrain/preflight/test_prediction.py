"""Predictions by arithmetic: phases with sequences of their own length, held-out losses."""

from __future__ import annotations

import pytest

from stages.model.config import ModelShape
from stages.model.size import mfu_flops_per_token
from stages.pretrain.preflight_trial import (
    DryBatch,
    Prediction,
    RemainingWork,
    predict,
    prediction_finding,
)

MODEL = ModelShape(width=64, layers=2, heads=4, kv_heads=4, context=4096).with_vocabulary(500)
DRY = DryBatch(training_step=1, tokens=500, seconds=0.5, first_seconds=9.0, loss=6.2)


def test_equal_sequences_take_equal_time():
    found = predict(MODEL, RemainingWork([3000, 1000], [128, 128], dry_phase=0), DRY, None)
    assert found.seconds == pytest.approx(4.0)
    assert found.tokens_per_second == pytest.approx(1000)
    assert (found.held_out_seconds, found.mfu) == (0.0, None)


def test_longer_sequences_take_longer_by_their_operations():
    """6N + 12LdT: a token among 4,096 costs (6N + 12·2·64·4096) / (6N + 12·2·64·128) as much."""
    n = 2 * (4 * 64 * 64 + 3 * 64 * 192 + 2 * 64) + 64
    ratio = (6 * n + 12 * 2 * 64 * 4096) / (6 * n + 12 * 2 * 64 * 128)
    assert mfu_flops_per_token(MODEL, 4096) / mfu_flops_per_token(MODEL, 128) == ratio
    found = predict(MODEL, RemainingWork([3000, 1000], [128, 4096], dry_phase=0), DRY, None)
    assert found.seconds == pytest.approx(3.0 + ratio)
    # The same, tried in the other phase.
    found = predict(MODEL, RemainingWork([3000, 1000], [128, 4096], dry_phase=1), DRY, None)
    assert found.seconds == pytest.approx(3.0 / ratio + 1.0)


def test_held_out_losses_are_a_third_of_a_training_step():
    found = predict(MODEL, RemainingWork([1000], [128], 0, held_out_tokens=6000), DRY, None)
    assert found.held_out_seconds == pytest.approx(2.0)


def test_utilisation_is_that_of_the_dry_batch():
    peak = 4 * 1000.0 * mfu_flops_per_token(MODEL, 128)
    assert predict(MODEL, RemainingWork([1], [128], 0), DRY, peak).mfu == pytest.approx(0.25)


def test_a_person_is_told_speed_span_and_end():
    work = RemainingWork([2e9], [128], 0)
    finding = prediction_finding(Prediction(7200.0, 60.0, 277_778, 0.416), work, DRY, now=0.0)
    assert finding.message == (
        "2,000,000,000 tokens at 277,778 a second (MFU 41.6%): 2.0 h, held-out losses 60 s; "
        "ends 1970-01-01 02:01 UTC"
    )
    assert finding.numbers["ends"] == 7260.0


def test_nothing_left_takes_no_time():
    found = predict(MODEL, RemainingWork([0.0], [128], 0), DRY, None)
    assert (found.seconds, found.tokens_per_second) == (0.0, 1000.0)
