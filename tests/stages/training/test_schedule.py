"""Expected rates are arithmetic on the definitions in the module's docstring."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from artifacts_schema.errors import UsageError
from stages.training.config import LearningRate
from stages.training.schedule import Phase, remaining, schedule


def rates(*phases, start=0.0):
    laid = schedule(phases, where="phases", start=start)
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


def test_multi_step_is_that_of_deepseek_llm():
    """Bi et al. 2024 (arXiv 2401.02954), section 2.3: the peak until 80 % of the tokens, 31.6 % of
    it until 90 %, then 10 %; its default is theirs."""
    found = rates((20, LearningRate(peak=1.0, warmup_share=0.1, decay="multi-step")))
    assert found == [0.5] + [1.0] * 15 + [0.316] * 2 + [0.1] * 2


def test_a_phase_goes_on_from_the_last_drop():
    stepped = LearningRate(peak=2.0, decay="multi-step", drops=((0.5, 0.5),))
    assert rates((4, stepped), (2, LearningRate())) == [2.0, 2.0, 1.0, 1.0, 1.0, 1.0]


@pytest.mark.parametrize(
    ("drops", "problem"),
    [
        ([[0.5, 0.3], [0.5, 0.1]], "rise"),
        ([[0.0, 0.3]], "rise"),
        ([[1.0, 0.3]], "rise"),
        ([[0.5, 0.0]], "above 0"),
        ([[0.5, 1.5]], "up to 1"),
    ],
)
def test_drops_that_are_none_are_refused(drops, problem):
    with pytest.raises(UsageError, match=problem):
        LearningRate.parse({"decay": "multi-step", "drops": drops}, where="phases.0")


@pytest.mark.parametrize(
    ("values", "problem"),
    [
        ({"drops": [[0.5, 0.5]]}, "decay is none, not multi-step"),
        ({"decay": "multi-step", "final": 0.1}, "instead of"),
        ({"decay": "multi-step", "decay_share": 0.1}, "instead of"),
        ({"warmup_steps": 3, "warmup_tokens": 5}, "say the same"),
        ({"warmup_share": 0.1, "warmup_steps": 3}, "say the same"),
    ],
)
def test_what_would_be_ignored_is_refused(values, problem):
    with pytest.raises(UsageError, match=problem):
        LearningRate.parse({"peak": 1.0, **values}, where="phases.0")


def test_new_fields_bear_no_identity_at_their_default():
    assert LearningRate(peak=1.0).identity() == {"peak": 1.0}


def test_warmup_in_steps_share_and_tokens_is_the_same_warmup():
    """Batches of 4 sequences of 8 tokens: 32 tokens a step, 5 steps are half of 10."""
    phase = Phase(10, 4, 8)
    found = [
        rates((phase, LearningRate(peak=1.0, **warmup)))
        for warmup in ({"warmup_share": 0.5}, {"warmup_steps": 5}, {"warmup_tokens": 160})
    ]
    assert found[0] == found[1] == found[2] == pytest.approx([0.2, 0.4, 0.6, 0.8] + [1.0] * 6)


def test_warmup_in_tokens_goes_up_to_whole_steps_of_the_batches_there_are():
    """2 sequences of 8 tokens a step until token 32, then 4: tokens 16, 32, 64, 96 are ends of
    steps, so 33 tokens need three of them and 32 need two."""
    phase = Phase(6, ((0, 2), (32, 4)), 8)
    warm = [
        sum(r < 1 for r in rates((phase, LearningRate(peak=1.0, warmup_tokens=n)))) + 1
        for n in (1, 16, 17, 32, 33, 64, 65)
    ]
    assert warm == [1, 1, 2, 2, 3, 3, 4]
    assert rates((phase, LearningRate(peak=1.0, warmup_tokens=0)))[0] == 1.0


def test_a_warmup_longer_than_its_phase_is_refused_with_numbers():
    with pytest.raises(UsageError, match=r"phases\.0.* 11 .* 10\b"):
        rates((10, LearningRate(peak=1.0, warmup_steps=11)))
    with pytest.raises(UsageError, match=r"1,000 .*320"):
        rates((Phase(10, 4, 8), LearningRate(peak=1.0, warmup_tokens=1000)))
    with pytest.raises(UsageError, match="use warmup_steps"):
        rates((10, LearningRate(peak=1.0, warmup_tokens=5)))


def test_warmup_in_steps_and_decay_that_overlap_are_refused_with_numbers():
    config = LearningRate(peak=1.0, warmup_steps=6, decay="linear", decay_share=0.6)
    with pytest.raises(UsageError, match=r" 6 .* 6 .* 10\b"):
        rates((10, config))


@settings(max_examples=60, deadline=None)
@given(
    at=st.integers(1, 20),
    steps=st.integers(1, 20),
    decay=st.sampled_from(["linear", "1-sqrt", "cosine"]),
)
def test_decay_from_any_point_goes_on_without_a_jump(at, steps, decay):
    """The whole run's rates up to `at`, then a run from there that decays from the rate it had."""
    whole = rates((20, LearningRate(peak=3e-4, warmup_share=0.3)))
    branch = rates((steps, LearningRate(decay=decay)), start=whole[at - 1])
    assert branch[0] == whole[at - 1]
    assert branch == pytest.approx(
        [whole[at - 1] * remaining(decay, k / steps) for k in range(steps)]
    )


def test_a_first_phase_with_a_peak_warms_up_from_zero_whatever_the_checkpoint_had():
    """Long context in SmolLM3: a warmup to 2e-5 behind a run at 2e-4."""
    config = LearningRate(peak=2e-5, warmup_steps=2)
    assert rates((3, config), start=2e-4) == [1e-5, 2e-5, 2e-5]


@pytest.mark.parametrize(("scaling", "factor"), [("none", 1), ("sqrt", 2), ("linear", 4)])
def test_the_rate_follows_the_batch_within_a_phase(scaling, factor):
    """Four times the batch: √4 by Malladi et al. 2022, 4 by Goyal et al. 2017."""
    phase = Phase(5, ((0, 2), (32, 8)), 8)
    config = LearningRate(peak=1.0, batch_scaling=scaling, decay="linear", decay_share=0.4)
    assert rates((phase, config)) == [1.0, 1.0, factor, factor, factor / 2]


def test_a_phase_that_goes_on_with_the_rate_scales_it_by_its_batch():
    """SmolLM and OLMo raise the batch between phases: 2 to 8 sequences, rate √4."""
    first = (Phase(2, 2, 8), LearningRate(peak=1.0))
    second = (Phase(2, 8, 8), LearningRate(batch_scaling="sqrt"))
    assert rates(first, second) == [1.0, 1.0, 2.0, 2.0]


def test_longer_sequences_are_a_larger_batch():
    first = (Phase(1, 4, 8), LearningRate(peak=1.0))
    longer = (Phase(1, 4, 32), LearningRate(batch_scaling="linear"))
    assert rates(first, longer) == [1.0, 4.0]


def test_a_peak_of_its_own_goes_with_the_first_batch_of_its_phase():
    first = (Phase(1, 2, 8), LearningRate(peak=1.0))
    own = (Phase(3, ((0, 8), (64, 32)), 8), LearningRate(peak=0.5, batch_scaling="sqrt"))
    assert rates(first, own) == [1.0, 0.5, 1.0, 1.0]


@settings(max_examples=60, deadline=None)
@given(
    sizes=st.lists(st.integers(1, 64), min_size=2, max_size=4),
    scaling=st.sampled_from(["sqrt", "linear"]),
)
def test_scaled_rates_depend_on_the_batch_alone_however_phases_cut_it(sizes, scaling):
    """One phase with several sizes, and one phase for each: the same rates."""
    tokens = [0]
    for size in sizes[:-1]:
        tokens.append(tokens[-1] + size * 8)
    config = LearningRate(peak=1.0, batch_scaling=scaling)
    one = rates((Phase(len(sizes), tuple(zip(tokens, sizes, strict=True)), 8), config))
    rest = LearningRate(batch_scaling=scaling)
    many = rates(*((Phase(1, size, 8), rest if n else config) for n, size in enumerate(sizes)))
    power = 0.5 if scaling == "sqrt" else 1.0
    assert one == pytest.approx(many)
    assert one == pytest.approx([(size / sizes[0]) ** power for size in sizes])


def test_batch_scaling_where_nothing_is_known_of_batches_is_refused():
    with pytest.raises(UsageError, match="batch_scaling"):
        rates((10, LearningRate(peak=1.0, batch_scaling="sqrt")))
