"""The page of preference optimization, from a hand-made run of two steps."""

from __future__ import annotations

import math

import pytest

from stages.engine.page import Artifact
from stages.preference.page import page

PAIRS = {
    "train": 5,
    "held_out": 1,
    "truncated": 0,
    "too_long": 0,
    "nothing_to_learn": 0,
    "equal_answers": 2,
    "unused": {},
}


LOSS = {
    "name": "sigmoid",
    "beta": 0.1,
    "gamma": 0.0,
    "label_smoothing": 0.0,
    "sft_weight": 0.0,
    "of_reference": math.log(2),
}


@pytest.fixture
def preferred(given, store):
    def make(last_margin):
        rows = [
            {
                "training_step": n,
                "tokens": 10 * n,
                "phase": 0,
                "loss": math.log(2) if n == 1 else 0.5,
                "grad_norm": 1.0,
                "learning_rate": 0.1,
                "skipped": 0.0,
                "pairs": 4.0,
                "reward_margin": margin,
                "reward_accuracy": accuracy,
            }
            for n, margin, accuracy in ((1, 0.0, 0.0), (2, last_margin, 0.75))
        ]
        run = {"training_steps": 2, "tokens": 20, "skipped_updates": 0, "epochs": 1}
        files = {
            "metrics.parquet": rows,
            "held_out.parquet": [
                {
                    "training_step": 2,
                    "tokens": 20,
                    "source": "all",
                    "loss": 0.6,
                    "bits_per_byte": None,
                    "language": None,
                    "pairs": 10,
                    "right": 7,
                }
            ],
            "run.json": {**run, "loss": LOSS, "pairs": PAIRS},
        }
        return Artifact(store, given("training_run", files)[0])

    return make


def test_the_page_shows_loss_margin_and_accuracy_beside_what_knows_nothing(preferred):
    run, used, loss, margin, accuracy, *_ = page(preferred(0.05))
    # A reward is beta times a difference of log-probabilities: 0.05 / 0.1.
    assert dict(run.rows)["log-probability margin won, nats"] == 0.5
    assert dict(used.rows)["left out: both answers equal"] == 2
    lines = [figure.series[-1] for figure in (loss, margin, accuracy)]
    levels = [("reference", math.log(2)), ("reference", 0.0), ("chance", 0.5)]
    assert [(line.name, line.y) for line in lines] == [(n, (v, v)) for n, v in levels]
    assert margin.series[0].y == (0.0, 0.05)
    assert accuracy.series[0].y == (0.0, 0.75)


def test_the_page_shows_held_out_accuracy_with_wilsons_interval(preferred):
    (held_out,) = (one for one in page(preferred(0.05)) if one.title == "Held-out pairs")
    # By hand: (p + z²/2n ± z √(p(1-p)/n + z²/4n²)) / (1 + z²/n).
    interval = (pytest.approx(0.396778, abs=1e-6), pytest.approx(0.892209, abs=1e-6))
    assert held_out.rows == ((2, 10, 0.7, *interval, 0.6),)


def test_a_broken_margin_leaves_the_row_out(preferred):
    run, *_ = page(preferred(math.nan))
    assert "log-probability margin won, nats" not in dict(run.rows)
