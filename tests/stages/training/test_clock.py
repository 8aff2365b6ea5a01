"""The sample clock: pure, seekable, exact epochs, the same under any batch size and skip."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from artifacts_schema.errors import UsageError
from stages.training.clock import Phase, SampleClock

SOURCES = {"web": 97, "code": 13, "books": 40}
LENGTH = 8


def phase(steps, batch=4, **weights):
    return Phase(steps, batch, LENGTH, weights)


def stream(clock, steps=None):
    """(source, sequence) pairs of all given training steps, in order."""
    pairs = []
    for step in steps or range(1, clock.steps + 1):
        draw = clock.batch(step)
        pairs += list(zip(draw.sources.tolist(), draw.sequences.tolist(), strict=True))
    return pairs


def test_a_batch_does_not_depend_on_what_was_asked_before():
    phases = [phase(20, web=0.7, code=0.3), phase(10, web=0.2, books=0.8)]
    clock = SampleClock(SOURCES, phases, seed=1)
    walked = [stream(clock, [step]) for step in range(1, 31)]
    for step in (30, 1, 17, 20, 21):
        assert stream(SampleClock(SOURCES, phases, seed=1), [step]) == walked[step - 1]


@settings(max_examples=25, deadline=None)
@given(batches=st.lists(st.integers(1, 50), min_size=1, max_size=8), seed=st.integers(0, 99))
def test_the_stream_is_the_same_under_any_batch_size(batches, seed):
    weights = {"web": 0.5, "code": 0.25, "books": 0.25}
    singles = SampleClock(SOURCES, [Phase(sum(batches), 1, LENGTH, weights)], seed)
    expected = stream(singles)
    for size in set(batches):
        clock = SampleClock(SOURCES, [Phase(sum(batches) // size, size, LENGTH, weights)], seed)
        if clock.steps:
            assert stream(clock) == expected[: clock.steps * size]


def test_every_sequence_of_every_source_once_in_each_epoch_across_phases_and_batch_sizes():
    phases = [
        phase(11, 7, web=0.6, code=0.1, books=0.3),
        phase(9, 5, code=0.5, web=0.5),
        phase(40, 16, web=0.1, code=0.2, books=0.7),
    ]
    clock = SampleClock(SOURCES, phases, seed=3)
    pairs = stream(clock)
    for source, name in enumerate(clock.sources):
        seen = [sequence for number, sequence in pairs if number == source]
        size = SOURCES[name]
        assert len(seen) > size, "the test should reach a second epoch"
        for start in range(0, len(seen) - size + 1, size):
            assert sorted(seen[start : start + size]) == list(range(size))
        tail = seen[len(seen) // size * size :]
        assert len(set(tail)) == len(tail)


def test_epochs_have_different_orders():
    clock = SampleClock({"web": 50}, [phase(25, web=1.0)], seed=0)
    order = [sequence for _, sequence in stream(clock)]
    assert order[:50] != order[50:]


def test_a_skipped_range_changes_no_other_step():
    phases = [phase(10, web=0.5, code=0.5), phase(10, books=1.0)]
    plain = SampleClock(SOURCES, phases, seed=5)
    skipping = SampleClock(SOURCES, phases, seed=5, skip=[(4, 6), (10, 12)])
    for step in range(1, 21):
        if skipping.skipped(step):
            with pytest.raises(ValueError, match="skip list"):
                skipping.batch(step)
        else:
            assert stream(skipping, [step]) == stream(plain, [step])
    assert [s for s in range(1, 21) if skipping.skipped(s)] == [4, 5, 6, 10, 11, 12]


@pytest.mark.parametrize("skip", [[], [(2, 5), (4, 9), (19, 99)]])
def test_the_account_is_what_the_batches_read(skip):
    phases = [phase(10, 3, web=0.5, code=0.5), phase(10, 6, books=0.9, web=0.1)]
    clock = SampleClock(SOURCES, phases, seed=2, skip=skip)
    steps = [step for step in range(1, 21) if not clock.skipped(step)]
    read = np.bincount([source for source, _ in stream(clock, steps)], minlength=3)
    accounts = clock.account()
    assert [account.source for account in accounts] == ["books", "code", "web"]
    assert [account.planned for account in accounts] == read.tolist()
    assert [account.tokens for account in accounts] == (read * LENGTH).tolist()
    assert accounts[1].epochs == read[1] / 13
    assert all(sum(account.by_phase) == account.planned for account in accounts)


def test_extreme_weights_keep_their_share():
    """1,000 steps of 1,024 sequences: one in a thousand is 1,024 sequences."""
    clock = SampleClock({"a": 10**6, "b": 10**6}, [phase(1000, 1024, a=0.001, b=0.999)], seed=0)
    assert clock.account()[0].planned == 1024


def test_a_source_beside_the_others_does_not_change_their_order():
    few = SampleClock({"web": 97}, [phase(30, web=1.0)], seed=1)
    more = SampleClock({"web": 97, "code": 5}, [phase(60, web=0.5, code=0.5)], seed=1)
    web = [sequence for _, sequence in stream(few)]
    beside = [sequence for source, sequence in stream(more) if source == 1]
    assert beside[:97] == web[:97]


def test_a_longer_phase_begins_as_the_shorter_one():
    short = SampleClock(SOURCES, [phase(7, web=0.5, code=0.5)], seed=1)
    long = SampleClock(SOURCES, [phase(70, web=0.5, code=0.5)], seed=1)
    assert stream(long, range(1, 8)) == stream(short)


def test_no_weights_means_by_size():
    clock = SampleClock(SOURCES, [Phase(1500, 1, LENGTH, {})], seed=0)
    planned = {account.source: account.planned for account in clock.account()}
    for name, size in SOURCES.items():
        assert abs(planned[name] - 1500 * size / 150) <= 25


def test_steps_tokens_and_phases_are_counted_from_one():
    clock = SampleClock(SOURCES, [phase(3, 4, web=1.0), phase(2, 8, web=1.0)], seed=0)
    assert clock.steps == 5
    assert [clock.phase_of(step) for step in range(1, 6)] == [0, 0, 0, 1, 1]
    assert [clock.tokens_until(s) for s in range(6)] == [0, 32, 64, 96, 160, 224]
    for step in (0, 6, -1):
        with pytest.raises(ValueError, match="1…5"):
            clock.batch(step)


@pytest.mark.parametrize(
    ("tokens", "steps"), [(0, 0), (1, 1), (32, 1), (47, 1), (48, 2), (3200, 100)]
)
def test_a_phase_of_tokens_has_the_nearest_number_of_steps(tokens, steps):
    assert Phase.of_tokens(tokens, 4, LENGTH, {"web": 1.0}).steps == steps


def test_the_last_of_a_trillion_tokens_is_reached_at_once():
    """10^12 tokens in sequences of 4096; only arithmetic, so this returns at once or never."""
    steps = 10**12 // (4096 * 512)
    clock = SampleClock({"a": 10**8, "b": 10**7}, [phase(steps, 512, a=0.9, b=0.1)], seed=0)
    draw = clock.batch(steps)
    assert draw.sequences[draw.sources == 0].max() < 10**8
    assert draw.sequences[draw.sources == 1].max() < 10**7


@pytest.mark.parametrize(
    ("sources", "phases", "message"),
    [
        (SOURCES, [], "at least one phase"),
        (SOURCES, [phase(0, web=1.0)], "at least one step"),
        (SOURCES, [Phase(1, 0, LENGTH, {"web": 1.0})], "at least one step"),
        (SOURCES, [phase(1, wbe=1.0)], "did you mean 'web'"),
        (SOURCES, [phase(1, web=0.5, code=0.6)], "sum to 1.1"),
        (SOURCES, [phase(1, web=1.5, code=-0.5)], "not negative"),
        ({"web": 5, "code": 0}, [phase(1, web=0.5, code=0.5)], "'code' has weight 0.5"),
        ({"web": 0}, [phase(1)], "no sequence"),
        ({}, [phase(1)], "no sequence"),
    ],
)
def test_a_plan_that_cannot_run_is_refused_before_it_starts(sources, phases, message):
    with pytest.raises(UsageError, match=message):
        SampleClock(sources, phases, seed=0)


def test_steps_of_a_sequence_are_those_whose_batch_holds_it():
    """Against every batch of a run with phases, epochs, skipped steps and a source on and off."""
    phases = [
        Phase(40, 7, 8, {"web": 0.4, "code": 0.6}),
        Phase(30, 5, 8, {"web": 0.5, "code": 0.3, "late": 0.2}),
        Phase(20, 16, 8, {"code": 1.0}),
    ]
    clock = SampleClock({"web": 60, "code": 90, "late": 11}, phases, 3, skip=[(17, 23)])
    read: dict[tuple[int, int], set[int]] = {}
    for step in range(1, clock.steps + 1):
        if not clock.skipped(step):
            draw = clock.batch(step)
            for row in zip(draw.sources.tolist(), draw.sequences.tolist(), strict=True):
                read.setdefault(row, set()).add(step)
    for place, (source, size) in enumerate(zip(clock.sources, (90, 11, 60), strict=True)):
        for sequence in range(size):
            expected = sorted(read.get((place, sequence), ()))
            assert clock.steps_of(source, [sequence]) == expected
    some = read.get((0, 3), set()) | read.get((0, 7), set())
    assert clock.steps_of("code", [3, 7]) == sorted(some)
    assert clock.steps_of("code", []) == []
