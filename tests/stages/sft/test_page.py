"""The page of supervised fine-tuning, from hand-made runs."""

from __future__ import annotations

import pytest

from stages.engine.page import Artifact
from stages.sft.page import page

ACCOUNT = {
    "train": 7,
    "held_out": 2,
    "truncated": 1,
    "too_long": 3,
    "nothing_to_learn": 4,
    "targets": 99,
    "unused": {"messages_with_reasoning_unused": 5},
}


@pytest.fixture
def tuned(given, store):
    def make(held_out):
        rows = [
            {
                "training_step": n,
                "tokens": 10 * n,
                "phase": 0,
                "loss": 1.0 / n,
                "grad_norm": 1.0,
                "learning_rate": 0.1,
                "skipped": 0.0,
                "loss/chat": 1.0 / n,
                "targets/chat": 5.0,
            }
            for n in (1, 2, 3)
        ]
        run = {"training_steps": 3, "tokens": 30, "skipped_updates": 0, "epochs": 2}
        files = {
            "metrics.parquet": rows,
            "held_out.parquet": held_out,
            "run.json": {**run, "conversations": ACCOUNT},
        }
        return Artifact(store, given("training_run", files)[0])

    return make


def held(step, loss):
    known = {"training_step": step, "tokens": 10 * step, "source": "all"}
    return {**known, "loss": loss, "bits_per_byte": None, "language": None}


def test_the_page_shows_what_was_learnt_and_what_was_left_out(tuned):
    run, used, loss, *others = page(tuned([held(0, 2.0), held(3, 1.5)]))
    assert dict(run.rows)["epochs"] == 2
    assert dict(used.rows) == {
        "learnt": 7,
        "held out": 2,
        "of these cut to the context": 1,
        "left out: longer than the context": 3,
        "left out: nothing to learn": 4,
        "assistant tokens, held-out ones included": 99,
        "messages with reasoning unused": 5,
    }
    assert {series.name: series.y for series in loss.series} == {
        "loss of a step": (1.0, 0.5, 1 / 3),
        "held out": (2.0, 1.5),
    }
    assert loss.x.label == "training step"
    # One source needs no curve of its own.
    assert [figure.title for figure in others[:2]] == ["Learning rate", "Gradient norm"]


def test_without_held_out_conversations_the_training_loss_stands_alone(tuned):
    loss = page(tuned([]))[2]
    assert [series.name for series in loss.series] == ["loss of a step"]
