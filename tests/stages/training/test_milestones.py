"""Where permanent checkpoints lie, and what they are called."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from artifacts_schema.errors import UsageError
from stages.pretrain.config import CheckpointsConfig
from stages.pretrain.plan_check import decay_starts, milestones, token_labels
from stages.training.config import LearningRate
from stages.training.schedule import Phase, Timeline, schedule

STABLE, DECAY = LearningRate(peak=1e-3), LearningRate(decay="linear")


def planned(phases, **settings):
    """Of phases given as (training steps, sequences, learning rate), in sequences of ten tokens."""
    timeline = Timeline([Phase(steps, rows, 10) for steps, rows, _ in phases])
    rates = schedule([(steps, rate) for steps, _, rate in phases], where="phases")
    return [one.at for one in milestones(timeline, rates, CheckpointsConfig(**settings))]


@pytest.mark.parametrize(
    ("phases", "settings", "at"),
    [
        # The end alone is the run's own output; an edge before a decay is one checkpoint, not two.
        ([(100, 1, STABLE)], {}, [100]),
        ([(80, 1, STABLE), (20, 1, DECAY)], {}, [80, 100]),
        ([(80, 1, STABLE), (20, 1, DECAY)], {"phase_edges": False}, [80, 100]),
        ([(80, 1, STABLE), (20, 1, DECAY)], {"before_decay": False}, [80, 100]),
        (
            [(80, 1, STABLE), (20, 1, DECAY)],
            {"before_decay": False, "phase_edges": False},
            [100],
        ),
        # A decay within the phase, a tenth of it.
        (
            [(100, 1, LearningRate(peak=1e-3, decay="1-sqrt", decay_share=0.1))],
            {},
            [90, 100],
        ),
        # A decay from the first step on has nothing before it.
        ([(100, 1, LearningRate(peak=1e-3, decay="cosine"))], {}, [100]),
        # Every 250 tokens of 1,000, ten a step; then with a batch twice as large.
        ([(100, 1, STABLE)], {"every": 250}, [25, 50, 75, 100]),
        ([(50, 1, STABLE), (25, 2, STABLE)], {"every": 250}, [25, 50, 63, 75]),
        # The step that reads the token counts, wherever in it that is.
        ([(10, 1, STABLE)], {"every": 35}, [4, 7, 10]),
        # More often than training steps: each one, once.
        ([(4, 1, STABLE)], {"every": 3}, [1, 2, 3, 4]),
    ],
)
def test_they_follow_from_the_plan(phases, settings, at):
    assert planned(phases, **settings) == at


def test_two_decays_have_each_a_checkpoint_before_them():
    phases = [(40, 1, STABLE), (10, 1, DECAY), (40, 1, STABLE), (10, 1, DECAY)]
    rates = schedule([(steps, rate) for steps, _, rate in phases], where="phases")
    assert list(decay_starts(rates)) == [40, 90]
    assert planned(phases) == [40, 50, 90, 100]


def test_too_many_are_a_slip():
    with pytest.raises(UsageError, match=r"checkpoints\.every: 2,000 .*1,000"):
        planned([(2_000, 1, STABLE)], every=10)


@pytest.mark.parametrize(
    ("tokens", "labels"),
    [
        ([1_597_440, 2_400_256], ["1.6M", "2.4M"]),
        ([1_597_440, 1_600_000], ["1.597M", "1.600M"]),
        ([768, 1_152], ["768", "1.2K"]),
        ([50_000_000_000, 100_000_000_000], ["50B", "100B"]),
        ([2_000_000_000_000], ["2.0T"]),
        ([999_960], ["1.0M"]),
        ([999_960, 1_000_000], ["999.96K", "1.0000M"]),
        ([], []),
    ],
)
def test_labels_are_short(tokens, labels):
    assert token_labels(tokens) == labels


_VALUE = {"K": 10**3, "M": 10**6, "B": 10**9, "T": 10**12}


@given(st.lists(st.integers(1, 10**15), min_size=1, max_size=8, unique=True).map(sorted))
def test_labels_tell_all_apart_and_mean_what_they_name(tokens):
    labels = token_labels(tokens)
    assert len(set(labels)) == len(tokens)
    for number, label in zip(tokens, labels, strict=True):
        unit = _VALUE.get(label[-1], 1)
        value = float(label.rstrip("KMBT")) * unit
        assert value == pytest.approx(number, rel=0.051)
