"""Where time goes, on a clock that the test moves."""

from __future__ import annotations

import pytest

from stages.training.telemetry import Interval, Stopwatch, due


def test_seconds_are_parted_by_what_they_were_spent_on(clock, step_done):
    watch = Stopwatch(clock)
    clock.after(0.25)  # the first batch is waited for
    clock.after(2.0)
    watch.step(step_done(1, tokens=100, seconds=2.0))
    clock.after(5.0)
    watch.measured()
    clock.after(0.5)
    watch.saved(0.5)
    clock.after(1.0)
    watch.step(step_done(2, tokens=50, seconds=1.0))
    interval = watch.take()
    assert interval == Interval(150, 8.75, 3.0, 5.0, 0.5)
    assert interval.data_seconds == pytest.approx(0.25)
    # Checkpoints and the wait count, held-out losses do not.
    assert interval.tokens_per_second == pytest.approx(150 / 3.75)
    clock.after(1.0)
    watch.step(step_done(3, tokens=10, seconds=1.0))
    assert watch.take() == Interval(10, 1.0, 1.0, 0.0, 0.0)


def test_losses_before_the_first_step_are_no_training(clock, step_done):
    watch = Stopwatch(clock)
    clock.after(9.0)
    watch.start()
    clock.after(4.0)
    watch.measured()
    clock.after(1.0)
    watch.step(step_done(1, tokens=7, seconds=1.0))
    assert watch.take().tokens_per_second == pytest.approx(7.0)


def test_nothing_has_no_speed(clock):
    watch = Stopwatch(clock)
    assert watch.is_empty
    assert watch.take().tokens_per_second is None


@pytest.mark.parametrize(("step", "skipped"), [(1, False), (10, False), (20, False), (7, True)])
def test_the_first_every_tenth_and_skipped_steps_are_told(step_done, step, skipped):
    assert due(step_done(step, skipped=skipped), 10)
    assert not due(step_done(11), 10)
    assert due(step_done(11), 1)
