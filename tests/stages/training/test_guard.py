"""Spikes, climbs and stalls: against published definitions, an oracle, and arithmetic."""

import json
import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from line_run import WATCHED, Lines, train
from torch import nn

from artifacts_schema.errors import IngotError
from stages.training.config import StabilityConfig
from stages.training.guard import MAD_TO_SIGMA, Guard, fingerprint, robust_z

QUIET = StabilityConfig(window=16, stall=20)


def told(guard, losses, *, norms=None, phase=0, first=1):
    """The kinds of trouble by training step, of losses one after another."""
    found = {}
    for step, loss in enumerate(losses, start=first):
        norm = 1 + 0.01 * (step % 7) if norms is None else norms[step - first]
        trouble = guard.judge(step, phase, loss, norm)
        if trouble is not None:
            found[step] = trouble.kind
    return found


def falling(steps, start=5.0, noise=0.01, seed=0):
    draw = np.random.default_rng(seed)
    return [start / (1 + step / 50) + noise * draw.standard_normal() for step in range(steps)]


# Robust z ----------------------------------------------------------------------------------------


def test_the_modified_z_of_the_textbook():
    """NIST/SEMATECH e-Handbook 1.3.5.17 after Iglewicz & Hoaglin: 0.6745 (x - median) / MAD."""
    history = [2.1, 2.6, 2.4, 2.5, 2.3, 2.1, 2.3, 2.6, 8.2, 8.3]
    # median 2.45; absolute deviations sorted .05 .05 .15 .15 .15 .15 .35 .35 5.75 5.85: MAD 0.15
    assert robust_z(8.2, history) == pytest.approx(0.6745 * (8.2 - 2.45) / 0.15, rel=1e-4)
    assert pytest.approx(0.6745, abs=1e-4) == 1 / MAD_TO_SIGMA


@settings(max_examples=100, deadline=None)
@given(
    history=st.lists(st.floats(0.1, 1e3), min_size=1, max_size=60),
    value=st.floats(0.1, 1e3),
    least=st.floats(0.01, 1),
    share=st.floats(0, 1),
)
def test_robust_z_is_scipys_unless_a_floor_is_higher(history, value, least, share):
    from scipy.stats import median_abs_deviation

    middle = float(np.median(history))
    scale = max(median_abs_deviation(history, scale="normal"), least, share * middle)
    # scipy divides by the exact quantile 0.67449, whose inverse is 1.482602…
    found = robust_z(value, history, least=least, share=share)
    assert found == pytest.approx((value - middle) / scale, rel=1e-5)


def test_a_flat_run_does_not_alarm_and_a_history_of_zeros_says_nothing():
    assert robust_z(2.02, [2.0] * 50, share=0.02) == pytest.approx(0.5)
    assert robust_z(3.0, [0.0] * 50, share=0.02) == 0.0


# Spikes ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(5))
def test_a_healthy_run_has_no_spike(seed):
    """A loss that falls from 10 to 3 with 3 % of noise, norms that vary by factors (sigma 0.3)."""
    draw = np.random.default_rng(seed)
    losses = list((3 + 7 * np.exp(-np.arange(3000) / 300)) * (1 + 0.03 * draw.normal(size=3000)))
    norms = list(0.5 * draw.lognormal(sigma=0.3, size=3000))
    assert told(Guard(StabilityConfig()), losses, norms=norms) == {}


def test_what_is_too_low_is_no_spike():
    assert told(Guard(QUIET), [*falling(40, noise=0.0), 0.01]) == {}


def test_a_gradient_norm_is_judged_by_its_factor():
    """Over norms of exactly 1 the floor alone decides: e to the power of 6 times 0.25 is 4.48."""
    for norm, kind in ((4.4, {}), (4.6, {31: "spike"})):
        assert (
            told(Guard(QUIET), falling(31), norms=[1 + 1e-9 * n for n in range(30)] + [norm])
            == kind
        )


@pytest.mark.parametrize(("loss", "norm"), [(9.0, 1.0), (None, 40.0)])
def test_loss_and_gradient_norm_each_make_one(loss, norm):
    losses = falling(40)
    guard = Guard(QUIET)
    assert told(guard, losses) == {}
    trouble = guard.judge(41, 0, loss or losses[-1], norm)
    assert trouble is not None
    assert trouble.kind == "spike"
    worst = max(trouble.details, key=trouble.details.get)
    assert worst == ("loss_z" if loss else "grad_norm_z")


def test_a_spike_does_not_count_to_what_others_are_compared_with():
    losses = falling(60)
    losses[40] = losses[41] = 50.0
    assert told(Guard(QUIET), losses) == {41: "spike", 42: "spike"}


def test_nothing_is_judged_before_half_a_window_nor_right_behind_a_new_phase():
    guard = Guard(QUIET)
    assert told(guard, [1.0, 1.1, 1.0, 30.0]) == {}
    guard = Guard(QUIET)
    told(guard, falling(40, start=1.0))
    assert told(guard, [5.0, 5.1, 5.0] * 10, phase=1, first=41) == {}


def test_strikes_count_within_the_window_alone():
    guard = Guard(StabilityConfig(window=16, strikes=2, stall=20))
    losses = falling(80)
    losses[30] = losses[50] = 50.0
    told(guard, losses[:51])
    assert guard.skips == (51,)
    assert not guard.gives_up()
    told(guard, [50.0], first=52)
    assert guard.skips == (51, 52)
    assert guard.gives_up()


@pytest.mark.parametrize(("loss", "norm"), [(math.nan, 1.0), (1.0, math.inf), (math.inf, math.nan)])
def test_what_is_not_finite_is_trouble_from_the_first_step_on(loss, norm):
    trouble = Guard(QUIET).judge(1, 0, loss, norm)
    assert trouble is not None
    assert trouble.kind == "not_finite"


# Divergence --------------------------------------------------------------------------------------


def test_a_loss_that_climbs_slowly_is_stopped_with_a_verdict():
    """From 6 to 2 in 100 steps, then 0.02 a step: 40 % of 4 are lost at 3.6, 80 steps on.

    Half a window later the median knows.
    """
    down, up = np.linspace(6, 2, 100), 2 + 0.02 * np.arange(1, 200)
    guard = Guard(QUIET)
    with pytest.raises(IngotError, match=r"diverges.* 2\.\d+ .* 3\.6") as raised:
        told(guard, [*down, *up])
    step = int(raised.value.where.split()[-1])
    assert 100 + 80 <= step <= 100 + 80 + 16
    assert "lower learning_rate.peak" in raised.value.hint


def test_a_loss_that_never_falls_but_rises_is_stopped():
    """No step is a spike, no median ever lay below the first loss: a fifth above it is enough."""
    with pytest.raises(IngotError, match="training diverges"):
        told(Guard(QUIET), [6 * 1.01**step for step in range(200)])


def test_a_harder_phase_is_no_divergence():
    guard = Guard(QUIET)
    told(guard, falling(100))
    assert told(guard, falling(100, start=4.9), phase=1, first=101) == {}


def test_a_mixture_that_grows_harder_in_a_straight_line_is_none():
    """From code at 1.2 nats to web at 3, in a model that began at 10.8."""
    losses = [*np.linspace(10.8, 1.2, 100), *np.linspace(1.2, 3.0, 1000)]
    assert told(Guard(StabilityConfig(stall=100)), losses) == {}


def test_a_learning_rate_that_is_far_too_high_ends_with_a_verdict(tmp_path):
    with pytest.raises(IngotError, match=r"diverges|rollbacks have not helped"):
        train(tmp_path, steps=400, peak=30.0)


# Stalls ------------------------------------------------------------------------------------------


def test_the_very_same_loss_is_a_stall_and_one_that_hardly_moves_is_not():
    guard = Guard(QUIET)
    assert told(guard, [2.0 + 1e-12 * step for step in range(100)]) == {}
    with pytest.raises(IngotError, match=r"step 20: .*loss.* 2 for 20"):
        told(Guard(QUIET), [2.0] * 100)


def test_a_gradient_of_zero_is_a_stall():
    with pytest.raises(IngotError, match=r"gradient norm.* 0 for 20"):
        told(Guard(QUIET), falling(100), norms=[0.0] * 100)


class Detached(Lines):
    """A loss that the weights have no part in, though autograd sees them."""

    def micro_batches(self, model, batch):
        for share in super().micro_batches(model, batch):
            nothing = sum(p.sum() for p in model.parameters()) * 0.0
            yield type(share)(share.loss.detach() + nothing, share.tokens)


def test_a_loss_that_does_not_depend_on_the_weights_is_found(tmp_path):
    with pytest.raises(IngotError, match=r"gradient norm.* 0\b"):
        train(tmp_path, task=Detached())


def test_weights_that_no_update_moves_are_found(tmp_path):
    """At 1e-30 every update is lost in rounding; gradients and losses look as they should."""
    with pytest.raises(IngotError, match=r"weight .* 10"):
        train(tmp_path, peak=1e-30)


def test_a_learning_rate_of_zero_moves_nothing_and_is_no_stall():
    guard, model = Guard(QUIET), nn.Linear(2, 2)
    for step in range(100):
        guard.check_moved(step, 0.0, model)
    for step in range(20):  # The first of them is what the others are compared with.
        guard.check_moved(step, 0.1, model)
    with pytest.raises(IngotError, match="no weight has moved in 20"):
        guard.check_moved(20, 0.1, model)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64])
def test_a_fingerprint_sees_one_bit(dtype):
    model = nn.Linear(5, 7).to(dtype)
    before = fingerprint(model)
    assert fingerprint(model) == before
    with torch.no_grad():
        model.weight[2, 3] = torch.nextafter(model.weight[2, 3], torch.tensor(9, dtype=dtype))
    assert fingerprint(model) != before


# State -------------------------------------------------------------------------------------------

_VALUES = st.one_of(st.floats(0.5, 2), st.floats(0.5, 100), st.just(math.nan))


@settings(max_examples=100, deadline=None)
@given(
    values=st.lists(st.tuples(_VALUES, _VALUES), min_size=1, max_size=60),
    cut=st.integers(0, 60),
)
def test_a_guard_that_was_saved_and_restored_judges_as_one_that_was_not(values, cut):
    config = StabilityConfig(window=8, strikes=3, stall=30)

    def judged(guard, part, first):
        found = []
        for step, (loss, norm) in enumerate(part, start=first):
            try:
                found.append((guard.judge(step, step // 20, loss, norm), guard.skips))
            except IngotError as error:
                found.append(str(error))
        return found

    whole = judged(Guard(config), values, 1)
    one, two = Guard(config), Guard(config)
    before = judged(one, values[:cut], 1)
    two.restore(json.loads(json.dumps(one.state())))
    after = judged(two, values[cut:], cut + 1)
    assert [str(each) for each in before + after] == [str(each) for each in whole]


def test_settings_that_contradict_each_other_are_refused():
    with pytest.raises(ValueError, match=r"9 strikes.* 8\b"):
        StabilityConfig(window=8, strikes=9)
    assert WATCHED.strikes == 3
