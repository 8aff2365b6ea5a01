"""Expected rates are arithmetic on the definitions in the module's docstring."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from artifacts_schema.errors import UsageError
from stages.training.config import LearningRate
from stages.training.schedule import remaining, schedule


def rates(*phases):
    laid = schedule(phases, where="phases")
    return [laid.rate(step) for step in range(1, laid.steps + 1)]


def test_warmup_reaches_the_peak_with_its_last_step_and_holds_it():
    assert rates((8, LearningRate(peak=1.0, warmup_share=0.5))) == [
        0.25,
        0.5,
        0.75,
        1.0,
        1.0,
        1.0,
        1.0,
        1.0,
    ]


def test_linear_decay_ends_one_part_above_its_final_value():
    config = LearningRate(peak=2.0, decay="linear", decay_share=0.5, final=0.0)
    assert rates((8, config)) == [2.0, 2.0, 2.0, 2.0, 2.0, 1.5, 1.0, 0.5]


def test_one_minus_sqrt_decay_follows_its_formula():
    found = rates((4, LearningRate(peak=1.0, decay="1-sqrt", final=0.1)))
    assert found == pytest.approx([0.1 + 0.9 * (1 - math.sqrt(k / 4)) for k in range(4)])


def test_cosine_is_half_way_down_in_the_middle():
    found = rates((4, LearningRate(peak=1.0, decay="cosine", final=0.2)))
    assert found[2] == pytest.approx(0.6)


def test_a_phase_without_a_peak_goes_on_where_the_one_before_ended():
    stable = LearningRate(peak=1.0, decay="linear", decay_share=0.5, final=0.4)
    assert rates((4, stable), (2, LearningRate()))[4:] == [0.4, 0.4]


def test_warmup_of_a_later_phase_starts_at_the_rate_before():
    found = rates((2, LearningRate(peak=1.0)), (4, LearningRate(peak=3.0, warmup_share=0.5)))
    assert found == [1.0, 1.0, 2.0, 3.0, 3.0, 3.0]


def test_constant_then_linear_phase_equals_one_warmup_stable_decay_segment():
    """The definition of WSD: the same numbers whether written as one phase or two."""
    one = rates((10, LearningRate(peak=1.0, warmup_share=0.2, decay="linear", decay_share=0.4)))
    two = rates((6, LearningRate(peak=1.0, warmup_share=1 / 3)), (4, LearningRate(decay="linear")))
    assert one == pytest.approx(two)


def test_phases_are_found_by_training_step():
    laid = schedule([(2, LearningRate(peak=1.0)), (1, LearningRate())], where="phases")
    assert [laid.phase(step) for step in (1, 2, 3)] == [0, 0, 1]
    with pytest.raises(IndexError):
        laid.rate(4)
    with pytest.raises(IndexError):
        laid.rate(0)


def test_no_rate_to_start_from_names_the_phase_and_the_field():
    with pytest.raises(UsageError, match=r"phases\.0.*learning_rate\.peak"):
        schedule([(4, LearningRate())], where="phases")
    ended = LearningRate(peak=1.0, decay="linear")
    with pytest.raises(UsageError, match=r"phases\.1"):
        schedule([(4, ended), (4, LearningRate())], where="phases")


def test_warmup_and_decay_that_overlap_are_refused():
    with pytest.raises(UsageError, match="exceed"):
        LearningRate.parse({"warmup_share": 0.6, "decay_share": 0.5}, where="phases.0")


@settings(max_examples=100, deadline=None)
@given(
    steps=st.integers(1, 60),
    warmup=st.floats(0, 0.5),
    share=st.one_of(st.none(), st.floats(0.01, 0.5)),
    decay=st.sampled_from(["none", "linear", "1-sqrt", "cosine"]),
    final=st.floats(0, 1),
)
def test_rates_are_positive_rise_then_never_rise_again(steps, warmup, share, decay, final):
    config = LearningRate(
        peak=1.0, warmup_share=warmup, decay=decay, decay_share=share, final=final
    )
    found = rates((steps, config))
    top = round(warmup * steps)
    assert all(0 < rate <= 1 for rate in found)
    assert found[:top] == sorted(found[:top])
    assert found[top:] == sorted(found[top:], reverse=True)


def test_every_shape_goes_from_one_to_zero():
    for decay in ("linear", "1-sqrt", "cosine"):
        assert remaining(decay, 0.0) == 1.0
        assert remaining(decay, 1.0) == pytest.approx(0.0)
