"""Training steps after the last checkpoint are lost work; those before it are continued from."""

from __future__ import annotations

import time

import pytest

from artifacts_schema.errors import InputError
from artifacts_schema.store.lease import Lease
from stages.engine.meter import book
from stages.training.loop import Trainer

BURNT = 0.6


def burn(seconds):
    end = time.process_time() + seconds
    while time.process_time() < end:
        pass


def test_an_attempt_that_fails_lost_what_it_spent_after_its_last_checkpoint(
    packed, pretrain, store, monkeypatch
):
    """Checkpoints after every second step; it burns before the first one, and then after the second
    one, where it fails. Beats are frequent, since the loss is known to within one."""
    if not store.backend.local:
        pytest.skip("the server of the bucket is a child of this process, and counts")
    inputs = packed()
    monkeypatch.setattr(Lease.start_beating, "__defaults__", (0.02,))
    step, steps = Trainer._step, []

    def dearly(self, *values, **options):
        steps.append(1)
        if len(steps) in (1, 6):
            burn(BURNT)
            time.sleep(0.2)  # For a beat.
        if len(steps) == 6:
            raise InputError("the data is gone")
        return step(self, *values, **options)

    book()
    with monkeypatch.context() as patch:
        patch.setattr(Trainer, "_step", dearly)
        with pytest.raises(InputError, match="gone"):
            pretrain(inputs)
    made = pretrain(inputs).telemetry
    assert made["earlier_attempts"] == 1
    assert made["earlier_cpu_seconds"] >= BURNT
    assert made["lost_cpu_seconds"] >= BURNT
    assert made["lost_cpu_seconds"] < made["earlier_cpu_seconds"] + BURNT
