"""What the proof is made of: where it kills, how a run is cut short, how batches are told apart."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from flows.analysis.resume_proof import ROLLING_FAILPOINTS, draw_kills, shorten_config
from flows.analysis.watched_child import batch_hash
from stages.pretrain.config import PretrainConfig
from stages.training.sample_clock import SampleClock
from stages.training.schedule import Phase


@given(
    number=st.integers(1, 6),
    more=st.integers(0, 30),
    seed=st.integers(),
    interim=st.none() | st.integers(1, 36),
)
def test_kills_are_the_same_for_a_seed_rise_and_strike_one_save(number, more, seed, interim):
    steps = number + more
    kills = draw_kills(number, steps, seed, interim)
    assert kills == draw_kills(number, steps, seed, interim)
    assert len(kills) == number
    at = [kill.step for kill in kills if kill.step is not None]
    assert all(a < b for a, b in pairwise([1, *at, steps + 1]))
    (save,) = [place for place, kill in enumerate(kills) if kill.point]
    if kills[save].point in ROLLING_FAILPOINTS:
        assert save == number - 1, "there is a save at the end, whatever was before"
    else:
        assert all(step <= interim for step in at[:save])
        assert all(step > interim for step in at[save:])


def test_a_run_that_is_too_short_for_so_many_kills_is_refused():
    with pytest.raises(ValueError, match="4"):
        draw_kills(5, 4, 0)


def clock_of(phases, steps):
    return SampleClock(
        {"web": 100},
        [Phase(n, p["sequences_per_batch"], 32) for n, p in zip(steps, phases, strict=True)],
        0,
    )


def test_a_run_cut_short_keeps_its_phases_in_proportion():
    """1,000 and 500 training steps of 4 sequences of 32 tokens as 20 and 10."""
    rate = {"peak": 1e-3, "warmup_steps": 100}
    phases = [
        {"tokens": 128_000, "sequences_per_batch": 4, "learning_rate": rate},
        {"tokens": 64_000, "sequences_per_batch": 4, "learning_rate": {"decay": "linear"}},
    ]
    more = {
        "held_out_every": 50,
        "checkpoints": {"every": 25_600},
        "skip": [{"first": 9, "last": 9}],
    }
    whole = PretrainConfig.parse({"phases": phases, **more}, where="test").plain()
    short = PretrainConfig.parse(
        shorten_config(whole, clock_of(phases, [1000, 500]), 30), where="test"
    )
    assert [phase.tokens for phase in short.phases] == [20 * 128, 10 * 128]
    assert short.phases[0].learning_rate.warmup_steps == 2
    assert (short.held_out_every, short.checkpoints.every, short.skip) == (1, 512, ())
    assert short.phases[1].learning_rate.decay == "linear"


def test_a_schedule_of_batch_sizes_is_cut_with_its_phase():
    sizes = ((0, 2), (64_000, 4))
    phases = [
        {
            "tokens": 128_000,
            "sequences_per_batch": "0: 2, 64_000: 4",
            "learning_rate": {"peak": 1e-3},
        }
    ]
    phases[0]["sequences_per_batch"] = "0: 2, 64000: 4"
    whole = PretrainConfig.parse({"phases": phases}, where="test").plain()
    clock = SampleClock({"web": 100}, [Phase.of_tokens(128_000, sizes, 32)], 0)
    assert clock.steps == 1_500
    short = PretrainConfig.parse(shorten_config(whole, clock, 15), where="test")
    assert short.phases[0].batch_sizes == ((0, 2), (640, 4))
    assert short.phases[0].tokens == 1_280


def test_a_short_run_is_not_made_longer():
    phases = [{"tokens": 1_280, "sequences_per_batch": 4, "learning_rate": {"peak": 1e-3}}]
    whole = PretrainConfig.parse({"phases": phases}, where="test").plain()
    assert shorten_config(whole, clock_of(phases, [10]), 24)["phases"][0]["tokens"] == 1_280


@dataclass
class Made:
    """A batch of a kind."""

    tokens: np.ndarray
    weights: torch.Tensor
    name: str = "a"


def test_batches_are_told_apart_by_every_value_shape_type_and_field():
    def one(**change):
        return Made(**{"tokens": np.arange(6, dtype=np.int32), "weights": torch.ones(2), **change})

    alike = [
        one(),
        one(tokens=np.arange(6, dtype=np.int32).reshape(2, 3)),
        one(tokens=np.arange(6, dtype=np.int64)),
        one(tokens=np.array([0, 1, 2, 3, 4, 6], dtype=np.int32)),
        one(weights=torch.tensor([1.0, 1.0 + 1e-7])),
        one(name="b"),
        {"a": one()},
    ]
    assert len({batch_hash(batch) for batch in alike}) == len(alike)
    assert batch_hash(one()) == batch_hash(one())
    # What is not contiguous is hashed as it reads.
    assert batch_hash(np.arange(6)[::2]) == batch_hash(np.array([0, 2, 4]))
    assert batch_hash(None) is None
