"""Prefetched values: those of plain calls, no more than asked for ahead, errors in their place."""

from __future__ import annotations

import threading
import time
from contextlib import nullcontext

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from written_shards import write_shards

from stages.training import prefetch
from stages.training.prefetch import Prefetch
from stages.training.sample_clock import Phase, SampleClock, clock_batch
from stages.training.token_shards import TokenShards


def threads():
    return [thread for thread in threading.enumerate() if thread.name == "prefetch"]


@pytest.fixture(autouse=True)
def no_thread_is_left():
    assert threads() == []
    yield
    assert threads() == []


def until(condition, seconds=10.0):
    """Wait for what another thread does; whether it came to be."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.001)
    return True


@settings(max_examples=60, deadline=None)
@given(
    asked=st.lists(st.tuples(st.integers(1, 30), st.integers(1, 8)), max_size=8),
    ahead=st.integers(0, 5),
)
def test_values_are_those_of_plain_calls_from_any_start_and_after_any_jump(asked, ahead):
    with Prefetch(lambda number: number**2, ahead=ahead, last=25) as values:
        for start, count in asked:
            for number in range(start, start + count):
                assert values(number) == number**2


@pytest.mark.parametrize("ahead", [0, 1, 2, 7])
def test_batches_are_the_same_with_and_without_also_after_stop_and_restart(tmp_path, ahead):
    shards = TokenShards([write_shards(tmp_path / "a", {"web": [30, 9], "code": [12]})])
    phases = [Phase(9, 3, 16, {"web": 0.5, "code": 0.5}), Phase(6, 5, 16)]
    clock = SampleClock(shards.sequences, phases, seed=4)
    plain = [clock_batch(shards, clock, step) for step in range(1, 16)]
    for first, last in ((1, 15), (7, 11), (12, 15)):
        with Prefetch(lambda n: clock_batch(shards, clock, n), ahead=ahead, last=15) as batches:
            for step in range(first, last + 1):
                got, expected = batches(step), plain[step - 1]
                for name in ("tokens_BL", "targets_BL", "documents_BL", "sources_B"):
                    assert np.array_equal(getattr(got, name), getattr(expected, name))


def test_no_more_than_asked_for_is_made_ahead():
    made: list[int] = []
    with Prefetch(lambda n: made.append(n) or n, ahead=3, last=100) as values:
        assert values(5) == 5
        for taken in range(5, 20):
            assert until(lambda: made[-1] == taken + 3)  # noqa: B023
            time.sleep(0.002)
            assert made == list(range(5, taken + 4))
            assert values(taken + 1) == taken + 1


def test_nothing_behind_the_last_is_made():
    made: list[int] = []
    with Prefetch(lambda n: made.append(n) or n, ahead=4, last=6) as values:
        assert [values(n) for n in (5, 6)] == [5, 6]
        assert until(lambda: not threads())
    assert made == [5, 6]


def test_a_value_is_made_while_the_one_before_is_in_use():
    started = threading.Event()
    with Prefetch(lambda n: started.set() if n == 2 else n, ahead=1, last=9) as values:
        values(1)
        assert started.wait(10)


def test_without_a_thread_values_are_made_by_the_caller():
    with Prefetch(lambda _: threading.current_thread(), ahead=0, last=9) as values:
        assert values(1) is threading.current_thread()
    with Prefetch(lambda _: threading.current_thread(), ahead=1, last=9) as values:
        assert values(1) is not threading.current_thread()


class Broken(Exception):
    pass


def test_an_error_comes_at_the_number_it_belongs_to_and_can_be_stepped_over():
    failed: list[int] = []

    def make(number):
        if number == 4:
            failed.append(number)
            raise Broken("four")
        return number

    with Prefetch(make, ahead=5, last=9) as values:
        assert values(1) == 1
        assert until(lambda: failed)
        assert [values(2), values(3)] == [2, 3]
        with pytest.raises(Broken, match="four"):
            values(4)
        assert [values(5), values(6)] == [5, 6]
        with pytest.raises(Broken):
            values(4)
    assert len(failed) == 2


def test_an_error_that_is_over_is_no_error_when_asked_again():
    broken = [True]

    def make(number):
        if broken.pop() if broken else False:
            raise OSError("the network")
        return number

    with Prefetch(make, ahead=2, last=9) as values:
        with pytest.raises(OSError, match="network"):
            values(1)
        assert values(1) == 1


@pytest.mark.parametrize("leave", [KeyboardInterrupt, Broken, None])
def test_leaving_ends_the_thread_however_it_is_left(leave):
    expected = pytest.raises(leave) if leave else nullcontext()
    with expected, Prefetch(lambda n: n, ahead=2, last=10**9) as values:
        values(1)
        assert len(threads()) == 1
        if leave:
            raise leave
    assert threads() == []


def test_a_jump_ends_the_thread_of_before():
    with Prefetch(lambda n: n, ahead=2, last=10**9) as values:
        for number in (1, 50, 3, 4, 999):
            assert values(number) == number
            assert len(threads()) == 1


def test_leaving_does_not_wait_for_a_download(monkeypatch):
    """What hangs is left alone (a daemon); it ends by itself when it is through."""
    monkeypatch.setattr(prefetch, "PATIENCE_SECONDS", 0.05)
    go, inside = threading.Event(), threading.Event()

    def make(number):
        if number == 2:
            inside.set()
            go.wait(30)
        return number

    with Prefetch(make, ahead=1, last=9) as values:
        values(1)
        assert inside.wait(10)
        begun = time.monotonic()
    assert time.monotonic() - begun < 5
    assert threads()
    go.set()
    assert until(lambda: not threads())


def test_a_thread_that_was_given_up_makes_nothing_at_the_same_time_as_the_next(monkeypatch):
    monkeypatch.setattr(prefetch, "PATIENCE_SECONDS", 0.05)
    go, inside = threading.Event(), threading.Event()
    at_work: list[int] = []

    def make(number):
        at_work.append(number)
        if number == 2:
            inside.set()
            go.wait(30)
        assert at_work == [number]
        at_work.remove(number)
        return number

    with Prefetch(make, ahead=1, last=99) as values:
        values(1)
        assert inside.wait(10)
        threading.Timer(0.2, go.set).start()
        assert values(40) == 40
        assert until(lambda: len(threads()) == 1)
