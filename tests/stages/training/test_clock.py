"""The sample clock: pure, seekable, exact epochs, the same under any batch size and skip."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from artifacts_schema.errors import UsageError
from stages.training.sample_clock import SampleClock, rank_rows
from stages.training.schedule import Phase

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


FADING = {"weights": {"web": 0.8, "code": 0.2}, "weights_end": {"books": 0.6, "web": 0.4}}


@pytest.mark.full
@settings(max_examples=30, deadline=None)
@given(
    sizes=st.lists(st.integers(1, 40), min_size=1, max_size=5),
    gaps=st.lists(st.integers(1, 900), min_size=4, max_size=4),
    fading=st.booleans(),
)
def test_the_stream_is_the_same_under_any_schedule_of_batch_sizes(sizes, gaps, fading):
    """Rounding to whole steps ends it sooner or later, and shifts nothing before."""
    tokens = 500 * LENGTH
    how = FADING if fading else {"weights": {"web": 0.5, "code": 0.25, "books": 0.25}}
    single = Phase.of_tokens(tokens + 64 * LENGTH, 1, LENGTH, **how)
    if fading:  # The straight line ends where the phase was meant to.
        single = Phase(single.steps, 1, LENGTH, **how, span=500)
    expected = stream(SampleClock(SOURCES, [single], 5))
    starts = np.cumsum([0, *gaps])[: len(sizes)].tolist()
    schedule = tuple(zip(starts, sizes, strict=True))
    clock = SampleClock(SOURCES, [Phase.of_tokens(tokens, schedule, LENGTH, **how)], 5)
    found = stream(clock)
    assert abs(len(found) - 500) <= max(sizes)
    assert found == expected[: len(found)]


def test_a_batch_size_holds_from_the_first_step_that_begins_at_its_token():
    """Steps of 2 to token 5 * 8 (so three of them), of 4 to 14 * 8, then of 1, to 20 positions."""
    sizes = ((0, 2), (5 * LENGTH, 4), (14 * LENGTH, 1))
    clock = SampleClock(SOURCES, [Phase.of_tokens(20 * LENGTH, sizes, LENGTH)], 0)
    assert [len(clock.batch(s).sources) for s in range(1, clock.steps + 1)] == [2] * 3 + [4, 4] + [
        1
    ] * 6
    assert [clock.tokens_until(s) // LENGTH for s in (0, 3, 4, 5, 6, 11)] == [0, 6, 10, 14, 15, 20]


def test_a_batch_size_whose_tokens_an_earlier_step_covers_is_left_out():
    sizes = ((0, 10), (2 * LENGTH, 3), (9 * LENGTH, 5))
    clock = SampleClock(SOURCES, [Phase.of_tokens(20 * LENGTH, sizes, LENGTH)], 0)
    assert [len(clock.batch(s).sources) for s in range(1, clock.steps + 1)] == [10, 5, 5]


@settings(max_examples=60, deadline=None)
@given(
    tokens=st.integers(1, 10**13),
    sizes=st.lists(st.integers(1, 5000), min_size=1, max_size=4),
    length=st.sampled_from([1, 8, 4096]),
)
def test_steps_and_positions_of_a_phase_are_inverse(tokens, sizes, length):
    schedule = tuple((number * tokens // 7, size) for number, size in enumerate(sizes))
    if len({token for token, _ in schedule}) < len(schedule):
        schedule = schedule[:1]
    phase = Phase.of_tokens(tokens, schedule, length)
    for done in {0, phase.steps // 3, phase.steps // 2, phase.steps - 1}:
        first, rows = phase.rows(done)
        assert phase.done_before(first) == done == phase.done_before(first + rows - 1)
        if done:
            assert phase.done_before(first - 1) == done - 1
    last = max(sizes) * length
    assert abs(phase.tokens - tokens) <= max(last, sizes[-1] * length)


@pytest.mark.parametrize("rows", [1, 7, 8, 512, 1000])
def test_ranks_together_read_the_global_batch_whatever_their_number(rows):
    clock = SampleClock(SOURCES, [Phase(3, rows, LENGTH)], 0)
    for step in (1, 3):
        draw = clock.batch(step)
        for world in (1, 2, 3, 4, 8):
            parts = [rank_rows(rows, rank, world) for rank in range(world)]
            for whole in (draw.sources, draw.sequences):
                assert np.concatenate([whole[part] for part in parts]).tolist() == whole.tolist()
            counts = [len(draw.sources[part]) for part in parts]
            assert max(counts) - min(counts) <= (1 if rows % world else 0)


@pytest.mark.parametrize(("rank", "world"), [(-1, 2), (2, 2), (0, 0)])
def test_a_rank_outside_the_world_is_refused(rank, world):
    with pytest.raises(ValueError, match="rank"):
        rank_rows(8, rank, world)


@pytest.mark.parametrize("step", [31, 61, 62, 100])
def test_a_run_taken_up_in_a_second_epoch_or_at_a_phase_edge_reads_what_it_would_have(step):
    """Nothing but the number of the step is known to what goes on (litgpt#1712)."""
    phases = [phase(60, web=0.7, code=0.3), Phase(60, 5, LENGTH, **FADING)]
    whole = SampleClock(SOURCES, phases, seed=1)
    read = dict(zip(whole.sources, whole.read_until(step - 1), strict=True))
    assert read["code"] > 13, "code should be in its second epoch or later"
    expected = [stream(whole, [s]) for s in range(step, 121)]
    fresh = SampleClock(SOURCES, phases, seed=1)
    assert [stream(fresh, [s]) for s in range(step, 121)] == expected


def test_every_sequence_of_every_source_once_in_each_epoch_across_phases_and_batch_sizes():
    phases = [
        phase(11, 7, web=0.6, code=0.1, books=0.3),
        phase(9, 5, code=0.5, web=0.5),
        phase(40, 16, web=0.1, code=0.2, books=0.7),
        Phase(30, ((0, 3), (40 * LENGTH, 11)), LENGTH, **FADING),
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


@pytest.mark.parametrize("skip", [[], [(2, 5), (4, 9), (19, 99)], [(1, 1), (10, 11), (6, 7)]])
def test_the_plan_is_what_the_batches_read(skip):
    """Against a walk over all steps."""
    phases = [phase(10, 3, web=0.5, code=0.5), Phase(10, ((0, 6), (99, 9)), LENGTH, **FADING)]
    clock = SampleClock(SOURCES, phases, seed=2, skip=skip)
    read = np.zeros((2, 3), dtype=int)
    for step in range(1, 21):
        if not clock.skipped(step):
            draw = clock.batch(step)
            read[draw.phase] += np.bincount(draw.sources, minlength=3)
        assert clock.read_until(step).tolist() == read.sum(axis=0).tolist()
    planned = clock.planned()
    assert [one.source for one in planned] == ["books", "code", "web"]
    assert [one.by_phase for one in planned] == [tuple(column) for column in read.T.tolist()]
    assert [one.planned for one in planned] == read.sum(axis=0).tolist()
    assert [one.positions for one in planned] == (read.sum(axis=0) * LENGTH).tolist()
    assert planned[1].epochs == read.sum(axis=0)[1] / 13


def test_the_last_step_within_a_number_of_sequences_is_the_last():
    phases = [phase(10, 3, web=0.5, code=0.5), phase(10, 6, books=0.9, web=0.1)]
    clock = SampleClock(SOURCES, phases, seed=2, skip=[(4, 6)])
    for most in range(12):
        step = clock.last_within("code", most)
        assert clock.read_until(step)[1] <= most
        assert step == 20 or clock.read_until(step + 1)[1] > most
    assert clock.last_within("code", 10**6) == 20


def test_extreme_weights_keep_their_share():
    """1,000 steps of 1,024 sequences: one in a thousand is 1,024 (Megatron-LM#705)."""
    clock = SampleClock({"a": 10**6, "b": 10**6}, [phase(1000, 1024, a=0.001, b=0.999)], seed=0)
    assert clock.planned()[0].planned == 1024
    for step in (1, 500, 1000):
        first, rare = clock.tokens_until(step - 1) // LENGTH, clock.read_until(step)[0]
        assert abs(rare - (first + 1024) / 1000) < 1
        draw = clock.batch(step)
        assert len(set(draw.sequences[draw.sources == 1].tolist())) == (draw.sources == 1).sum()


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
    planned = {one.source: one.planned for one in clock.planned()}
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
        (SOURCES, [phase(1), phase(0, web=1.0)], r"phases\.1: 0 training steps of 4 .* one step"),
        (SOURCES, [Phase.of_tokens(0, 4, LENGTH)], "0 training steps"),
        (SOURCES, [Phase(1, 0, LENGTH, {"web": 1.0})], "of 0 sequences"),
        (SOURCES, [phase(1, wbe=1.0)], r"phases\.0\.mixture: no source 'wbe'.* mean 'web'"),
        (SOURCES, [phase(1, web=0.5, code=0.6)], r"phases\.0\.mixture: .*sum to 1\.1"),
        (SOURCES, [phase(1, web=0.5, code=0.4989)], r"sum to 0\.9989"),
        (SOURCES, [phase(1, web=1.5, code=-0.5)], r"'code' is -0\.5, .*not negative"),
        ({"web": 5, "code": 0}, [phase(1, web=0.5, code=0.5)], "'code' has weight 0.5 but no tok"),
        (
            {"web": 5, "code": 0},
            [Phase(1, 4, LENGTH, {"web": 1.0}, {"code": 1.0})],
            r"phases\.0\.mixture_end: source 'code' has weight 1 but no tokens",
        ),
        (SOURCES, [Phase(1, 4, LENGTH, {}, {"web": 0.5})], r"mixture_end: weights sum to 0\.5"),
        ({"web": 0}, [phase(1)], "no sequence"),
        ({}, [phase(1)], "no sequence"),
    ],
)
def test_a_plan_that_cannot_run_is_refused_before_it_starts(sources, phases, message):
    with pytest.raises(UsageError, match=message):
        SampleClock(sources, phases, seed=0)


LARGE = {f"s{number:02d}": 10 ** (3 + number % 7) for number in range(100)}
SHARES = dict.fromkeys(LARGE, 0.01)
TILTED = {name: (number + 1) / 5050 for number, name in enumerate(LARGE)}


@pytest.mark.full
@pytest.mark.parametrize("tokens", [10**6, 10**9, 10**12])
def test_a_seek_among_a_hundred_sources_and_twenty_phases_is_arithmetic(tokens):
    """No loop over blocks or steps, so this returns at once or never; and back again."""
    phases = [
        Phase.of_tokens(
            tokens // 20, ((0, 8), (tokens // 40, 16)), 64, SHARES, TILTED if odd % 2 else {}
        )
        for odd in range(20)
    ]
    clock = SampleClock(LARGE, phases, seed=4)
    assert abs(clock.tokens - tokens) < 1e-3 * tokens + 20 * 64 * 16
    assert sum(one.planned for one in clock.planned()) * 64 == clock.tokens
    for step in (1, clock.steps // 3, clock.steps):
        draw = clock.batch(step)
        for source, sequence in zip(draw.sources.tolist(), draw.sequences.tolist(), strict=True):
            name = clock.sources[source]
            assert 0 <= sequence < LARGE[name]
        largest = max(
            range(len(draw.sources)), key=lambda row: LARGE[clock.sources[draw.sources[row]]]
        )
        name = clock.sources[draw.sources[largest]]
        if clock.planned()[draw.sources[largest]].epochs < 200:
            assert step in clock.steps_of(name, [int(draw.sequences[largest])])


def test_steps_of_a_sequence_are_those_whose_batch_holds_it():
    """Against every batch of a run with phases, epochs, skipped steps and a source on and off."""
    phases = [
        Phase(40, 7, 8, {"web": 0.4, "code": 0.6}),
        Phase(30, 5, 8, {"web": 0.5, "code": 0.3, "late": 0.2}),
        Phase(20, 16, 8, {"code": 1.0}),
        Phase(60, ((0, 3), (800, 7)), 8, {"web": 0.2, "code": 0.8}, {"late": 0.9, "web": 0.1}),
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
