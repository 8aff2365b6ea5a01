"""Steps as the loop tells them, and a clock that a test moves."""

from __future__ import annotations

import pytest

from stages.training.callbacks import StepDone


class Clock:
    """Seconds, moved by hand."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now

    def after(self, seconds):
        self.now += seconds
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def step_done():
    """`step_done(7, tokens=64, seconds=0.5, …)` → step 7 of 64 tokens each."""

    def make(training_step, tokens=64, **changed):
        facts = {
            "training_step": training_step,
            "tokens": tokens * training_step,
            "step_tokens": tokens,
            "loss": 2.0,
            "grad_norm": 0.5,
            "learning_rate": 1e-3,
            "phase": 0,
            "skipped": False,
            "seconds": 1.0,
            **changed,
        }
        return StepDone(**facts)

    return make
