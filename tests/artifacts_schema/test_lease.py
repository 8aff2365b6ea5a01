"""Leases: one owner, takeover by stillness on the waiter's own clock, no commit after a loss."""

from __future__ import annotations

import dataclasses
import json

import pytest

from artifacts_schema.errors import LeaseLost, Stopped
from artifacts_schema.store.lease import Lease, _path, is_held

KEY = "a" * 64


class Clock:
    """A monotonic clock that moves only when somebody waits."""

    def __init__(self, during=None):
        self.now, self.during = 0.0, during

    def __call__(self):
        return self.now

    def wait(self, seconds):
        self.now += seconds
        if self.during:
            self.during(self.now)


def held_elsewhere(store):
    """A lease whose owner runs on another machine, so that only its counter tells about it."""
    lease = Lease.take(store.backend, KEY)
    lease.record = dataclasses.replace(lease.record, machine="elsewhere")
    lease.beat()
    return lease


def test_a_silent_owner_is_dead_after_the_limit_on_the_waiters_clock(store):
    first = held_elsewhere(store)
    clock = Clock()
    second = Lease.take(store.backend, KEY, dead_after=30, clock=clock, wait=clock.wait)
    assert 30 <= clock.now < 31
    assert second.number == first.number + 1
    with pytest.raises(LeaseLost):
        first.check()
    second.check()


def test_a_beating_owner_is_never_taken_over(store):
    first = held_elsewhere(store)
    clock = Clock(during=lambda now: first.beat() if now % 10 < 0.2 else None)
    with pytest.raises(Stopped):
        Lease.take(
            store.backend,
            KEY,
            dead_after=30,
            clock=clock,
            wait=clock.wait,
            give_up=lambda: clock.now > 500,
        )
    first.check()


def test_a_released_lease_is_free_at_once_and_numbers_only_rise(store):
    numbers = []
    for _ in range(3):
        lease = Lease.take(store.backend, KEY)
        numbers.append(lease.number)
        assert is_held(store.backend, KEY)
        lease.release()
        assert not is_held(store.backend, KEY)
    assert numbers == [1, 2, 3]


def test_one_of_two_takers_of_the_same_number_wins(store):
    assert store.backend.put_if_absent(_path(KEY, 1), b'{"owner": "one"}')
    assert not store.backend.put_if_absent(_path(KEY, 1), b'{"owner": "two"}')


def test_a_waiter_leaves_when_the_work_is_settled(store):
    held_elsewhere(store)
    clock = Clock()
    settled = lambda: clock.now > 3  # noqa: E731
    assert Lease.take(store.backend, KEY, clock=clock, wait=clock.wait, settled=settled) is None


def test_a_process_id_that_was_given_out_again_does_not_hold(store):
    lease = Lease.take(store.backend, KEY)
    reused = dataclasses.replace(lease.record, started="1")
    store.backend.replace(_path(KEY, 1), json.dumps(dataclasses.asdict(reused)).encode())
    assert not is_held(store.backend, KEY)
