"""Leases: one owner, takeover by stillness on the waiter's own clock, no commit after a loss."""

from __future__ import annotations

import dataclasses
import json
import os
import pwd
import signal
import subprocess
import sys

import pytest

from artifacts_schema.errors import LeaseLost, Stopped
from artifacts_schema.store import Store
from artifacts_schema.store import lease as leases
from artifacts_schema.store.lease import Lease, Record, _path, end_process, is_held, is_over

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


@pytest.mark.full
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


def take_over(store, first):
    """The next lease, from a holder that is silent."""
    clock = Clock()
    return Lease.take(store.backend, KEY, dead_after=30, clock=clock, wait=clock.wait)


def test_a_lost_lease_stays_lost_and_writes_nothing(store):
    """Not even when the numbers begin again, after the successor removed the work folder."""
    first = held_elsewhere(store)
    second = take_over(store, first)
    store.backend.remove(f"work/{KEY}")
    with pytest.raises(LeaseLost):
        first.check()
    third = Lease.take(store.backend, KEY)
    assert (third.number, third.holder != first.holder) == (1, True)
    assert not first.is_mine()
    assert not second.is_mine()
    first.release()
    second.release()
    third.check()


def test_a_check_that_asks_nothing_repeats_what_the_last_beat_found(s3_url, monkeypatch):
    backend = Store.open(s3_url).backend
    first = Lease.take(backend, KEY)
    assert backend.put_if_absent(_path(KEY, 2), b"{}")
    first.check(ask=False)
    assert not first.is_mine()
    monkeypatch.setattr(first, "backend", None)
    with pytest.raises(LeaseLost):
        first.check(ask=False)


def test_who_is_over_is_known_only_of_holders_that_said_so_or_are_gone(store):
    first = held_elsewhere(store)
    assert not is_over(store.backend, KEY, first.holder)
    second = take_over(store, first)
    assert not is_over(store.backend, KEY, first.holder)  # Silent: it may wake up.
    assert not is_over(store.backend, KEY, second.holder)
    second.release()
    assert is_over(store.backend, KEY, second.holder)
    assert not is_over(store.backend, KEY, f"{second.number:08d}-of-another-owner")
    assert not is_over(store.backend, KEY, "00000009-0123456789abcdef")


# A silent holder on this machine ------------------------------------------------------------------

HOLDS = """
import os, signal, sys
from artifacts_schema.store import Store
from artifacts_schema.store.lease import Lease
Lease.take(Store.open(sys.argv[1]).backend, sys.argv[2])
os.kill(os.getpid(), signal.SIGSTOP)
signal.pause()
"""


@pytest.fixture
def stopped(store):
    """`stopped(*arguments)`: a process with these arguments that holds KEY's lease and stopped."""
    started = []

    def start(*arguments):
        command = [sys.executable, "-c", HOLDS.replace("sys.argv[2]", repr(KEY)), store.url]
        process = subprocess.Popen([*command, *arguments])
        started.append(process)
        os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WNOWAIT)
        return process

    yield start
    for process in started:
        process.kill()
        process.wait()


def succeed(store, clock):
    """Take the lease from a holder that stays silent; it, and whom it found silent."""
    silent = []
    lease = Lease.take(
        store.backend,
        KEY,
        dead_after=30,
        clock=clock,
        wait=clock.wait,
        on_silent=lambda holder, ended: silent.append((holder.process, ended)),
    )
    return lease, silent


@pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="needs process descriptors (Linux)")
def test_a_silent_holder_on_this_machine_is_ended_before_it_is_succeeded(store, stopped):
    process = stopped("--key", KEY)
    clock = Clock()
    lease, silent = succeed(store, clock)
    assert silent == [(process.pid, True)]
    assert process.wait(10) == -signal.SIGKILL
    assert clock.now >= 30
    assert lease.number == 2


@pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="needs process descriptors (Linux)")
def test_a_process_that_was_not_started_for_the_key_is_left_alone(store, stopped):
    """Such as a notebook, or one that a forged record names: fencing is all there is."""
    process = stopped()
    lease, silent = succeed(store, Clock())
    assert silent == [(process.pid, False)]
    assert process.poll() is None
    assert lease.number == 2


def test_a_process_that_has_the_id_now_but_started_later_is_left_alone(store, stopped):
    process = stopped("--key", KEY)
    record = Record("o", leases._machine(), process.pid, "1")
    assert end_process(record, KEY)  # The one that was meant is gone.
    assert process.poll() is None
    elsewhere = dataclasses.replace(
        record, machine="elsewhere", started=leases._start_time(process.pid)
    )
    assert not end_process(elsewhere, KEY)
    assert process.poll() is None


HIDDEN = """
import sys
from artifacts_schema.store import lease
from artifacts_schema.store.lease import Record, end_process, process_is_gone
record = Record("o", lease._machine(), int(sys.argv[1]), sys.argv[2])
print(lease._start_time(record.process), process_is_gone(record), end_process(record, "k"))
"""


def test_a_process_that_hidepid_hides_is_not_taken_for_dead(team):
    """Login nodes mount /proc so that users do not see each other's processes."""
    alive = team.alice.start(["sleep", "600"])
    ended = team.alice.start(["true"])
    ended.wait()
    started = leases._start_time(alive.pid)
    hide = 'mount -t proc -o hidepid=2 proc /proc || exit 9; exec setpriv "$@"'
    own_group = str(pwd.getpwnam(team.bob.name).pw_gid)
    bob = ["--reuid", team.bob.name, "--regid", own_group, "--init-groups"]
    try:
        answers = []
        for process in (alive.pid, ended.pid):
            done = subprocess.run(
                ["unshare", "-m", "sh", "-c", hide, "sh", *bob, team.bob.python, "-c", HIDDEN,
                 str(process), started],
                capture_output=True, text=True, check=False, cwd=team.folder,
                env=team.bob.environment,
            )  # fmt: skip
            if done.returncode == 9:
                pytest.skip(f"cannot mount here: {done.stderr}")
            answers.append(done.stdout.split())
    finally:
        alive.kill()
        alive.communicate()
    assert answers == [["hidden", "False", "False"], ["None", "True", "True"]]
