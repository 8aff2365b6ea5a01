"""Alerts: each rings for what it is for, once, and not for what looks like it."""

from __future__ import annotations

import random

import pytest

from artifacts_schema.errors import UsageError
from stages.training.alerts import Alert, Alerts, BaselineRun, Plateau, Regression, SlowRun
from stages.training.monitor import HeldOut


def rings(detector, speeds, seconds=10.0):
    """(step, alert) of every alert over steps of these speeds."""
    found, now = [], 0.0
    for step, speed in enumerate(speeds, 1):
        now += seconds
        alert = detector.take(speed, now)
        if alert is not None:
            found.append((step, alert))
    return found


def noisy(speed, count, spread=0.1, seed=0):
    draw = random.Random(seed)
    return [speed * draw.uniform(1 - spread, 1 + spread) for _ in range(count)]


def test_a_lasting_drop_rings_once_and_once_when_it_is_over():
    speeds = noisy(1000, 100) + noisy(700, 100, seed=1) + noisy(1000, 100, seed=2)
    (step, alert), (later, over) = rings(SlowRun(), speeds)
    # The median of 16 has dropped with the 9th slow step at the latest; 120 s are 12 steps more.
    assert 112 <= step <= 122
    assert alert.kind == "throughput"
    assert "70%" in alert.text or "71%" in alert.text or "69%" in alert.text
    assert 200 < later <= 216
    assert over.over


def test_a_run_between_the_two_thresholds_does_not_ring_again():
    speeds = noisy(1000, 100, 0.01) + [700.0] * 60 + ([850.0] * 20 + [700.0] * 20) * 3
    assert len(rings(SlowRun(), speeds)) == 1


@pytest.mark.parametrize(
    "speeds",
    [
        noisy(1000, 400, 0.3),  # noise
        [10.0] * 32 + noisy(1000, 300),  # a slow start is warm-up
        noisy(1000, 100) + noisy(900, 300),  # not a drop to be alarmed at
        noisy(1000, 100) + [300.0] * 11 + noisy(1000, 100),  # short
        noisy(500, 100) + noisy(1000, 100),  # faster
    ],
)
def test_what_is_no_lasting_drop_does_not_ring(speeds):
    assert rings(SlowRun(), speeds) == []


def test_a_slow_stretch_does_not_become_what_is_usual():
    assert len(rings(SlowRun(), noisy(1000, 100) + noisy(500, 2000))) == 1


def power_law(tokens):
    """Kaplan et al. 2020, equation 1.2: L(D) = (5.4e13 / D)^.095."""
    return (5.4e13 / tokens) ** 0.095


def test_loss_that_falls_as_a_power_of_tokens_is_no_plateau():
    detector = Plateau()
    assert not any(detector.take(n * 10**9, power_law(n * 1e9)) for n in range(1, 400))


def test_loss_that_stays_is_a_plateau_until_it_falls_again():
    detector, said = Plateau(), []
    for n in range(1, 101):
        said.append((n, detector.take(n * 10**6, max(power_law(n * 1e6), power_law(4e7)))))
    for n in range(101, 140):
        said.append((n, detector.take(n * 10**6, power_law(4e7) * (0.99 if n > 110 else 1))))
    found = [(n, alert.over) for n, alert in said if alert]
    assert found[0][1] is False
    # From 40 on nothing falls: at n the best of the first 3/4 is as low as any from n = 54 on.
    assert 50 <= found[0][0] <= 56
    assert (111, True) in found


def test_a_loss_that_is_not_finite_is_a_plateau_and_no_error():
    detector = Plateau(measurements=4)
    alerts = [detector.take(n, float("nan")) for n in range(1, 9)]
    assert [alert.kind for alert in alerts if alert] == ["plateau"]


EARLIER = BaselineRun.from_rows(
    "base",
    [
        {"tokens": 0, "source": "all", "loss": 5.0, "bits_per_byte": 2.0, "language": None},
        {"tokens": 100, "source": "all", "loss": 4.0, "bits_per_byte": 1.0, "language": None},
        {"tokens": 0, "source": "web", "loss": 5.0, "bits_per_byte": None, "language": None},
        {"tokens": 100, "source": "web", "loss": 4.0, "bits_per_byte": None, "language": None},
    ],
)


def test_the_earlier_run_is_read_at_equal_tokens_in_the_unit_that_both_have():
    assert EARLIER.at(HeldOut("all", 9.0, 1.7), 25) == (1.7, 1.75)
    assert EARLIER.at(HeldOut("all", 9.0, None), 50) == (9.0, 4.5)
    assert EARLIER.at(HeldOut("web", 4.1, 1.0), 100) == (4.1, 4.0)
    assert EARLIER.at(HeldOut("all", 4.1, 1.0), 101) is None
    assert EARLIER.at(HeldOut("code", 4.1, 1.0), 50) is None


def test_worse_than_the_earlier_run_twice_rings_and_better_ends_it():
    detector = Regression(EARLIER)

    def take(tokens, bits):
        return detector.take(tokens, HeldOut("all", 1.0, bits))

    assert take(0, 2.0) is None
    assert take(10, 1.95) is None  # 1.9 then: 2.6 % worse, once
    assert take(20, 1.80) is None  # as good: the count begins anew
    assert take(50, 1.60) is None
    alert = take(60, 1.50)
    assert alert == Alert(
        "regression", "held-out all: 1.5000, base had 1.4000 at 60 tokens (+7.1%)"
    )
    assert take(70, 1.40) is None
    assert take(80, 1.19).over
    assert take(99, float("nan")) is None
    assert take(100, float("nan")).text.endswith("(+nan%)")


def test_the_listener_feeds_them_without_the_time_of_checkpoints_and_losses(clock, step_done):
    told = []
    alerts = Alerts(lambda step, alert: told.append((step, alert.kind)), EARLIER, clock=clock)
    alerts.started(0, 10**6)
    for step in range(1, 200):
        clock.after(1.0)
        alerts.step_done(step_done(step))
        clock.after(50.0)  # measurement, then a checkpoint
        alerts.measured(step, 10**6 + step, [HeldOut("all", power_law(step), None)])
        clock.after(50.0)
        alerts.saved(step, 50.0)
    assert told == []
    alerts.measured(200, 10, [HeldOut("all", 1.0, 1.99)])
    alerts.measured(201, 20, [HeldOut("all", 1.0, 1.99)])
    assert told == [(201, "regression")]
    for step in range(201, 260):
        clock.after(10.0)
        alerts.step_done(step_done(step))
    assert told[1:] == [(told[1][0], "throughput")]


def test_longer_sequences_in_a_new_phase_are_no_drop(clock, step_done):
    told = []
    alerts = Alerts(lambda step, alert: told.append(alert), clock=clock)
    for step in range(1, 400):
        clock.after(1.0 if step < 200 else 5.0)
        alerts.step_done(step_done(step, phase=int(step >= 200)))
    assert told == []


def test_a_run_to_compare_with_is_one_of_the_store(store, given):
    row = {"training_step": 0, "tokens": 0, "source": "all", "loss": 5.0, "bits_per_byte": None}
    spoken = [{**row, "language": None}, {**row, "language": "de", "loss": 3.0}]
    run, _ = given("training_run", {"held_out.parquet": spoken})
    store.set_ref("base/pretrain", run.stage, run.key)
    earlier = BaselineRun.read(store, "base/pretrain")
    assert earlier.at(HeldOut("all", 6.0, 1.0), 0) == (6.0, 5.0)
    assert earlier.at(HeldOut("all", 6.0, 1.0, "de"), 0) == (6.0, 3.0)
    assert earlier.at(HeldOut("all", 6.0, 1.0, "fr"), 0) is None
    other, _ = given("release", {"README.md": b"x"})
    with pytest.raises(UsageError, match="compare_with"):
        BaselineRun.read(store, other.key)
    with pytest.raises(UsageError, match="no ref 'gone'"):
        BaselineRun.read(store, "gone")
