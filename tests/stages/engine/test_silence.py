"""Workers that stop answering: who is silent, who is told, who is ended, and what comes of it."""

from __future__ import annotations

import os
import signal
import sys
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest

from artifacts_schema.errors import IngotError
from artifacts_schema.store.remote import backend_at
from stages.engine import shards, workers
from stages.engine.shards import ShardMap
from stages.engine.workers import WARN_SECONDS, Silence, cpu_seconds

sys.path.insert(0, str(Path(__file__).parent))
from deadly import Task, act

KEY = "c" * 64


@pytest.fixture
def used():
    """CPU seconds of a process, as the test says."""
    return {1: 0.0}


@pytest.fixture
def silence(used):
    return Silence(1, used.get)


def test_a_process_that_uses_no_processor_is_silent_and_told_of_once(silence):
    told = []
    for second in range(1, 100):
        silence.look(1.0)
        if silence.should_warn():
            told.append(second)
    assert silence.seconds == 99
    assert told == [WARN_SECONDS]


def test_a_process_that_works_is_never_silent(silence, used):
    """A hundredth of what a core does in a second: a worker that waits for a slow disk."""
    for _ in range(1_000):
        used[1] += 0.01
        silence.look(1.0)
        assert silence.seconds < 5


def test_the_thread_that_looks_for_the_parent_is_no_work(silence, used):
    for _ in range(900):
        used[1] += 0.0001
        silence.look(1.0)
    assert silence.seconds == 900


def test_a_sign_of_life_begins_it_again(silence):
    silence.look(1.0)
    silence.reset()
    assert (silence.seconds, silence.should_warn()) == (0.0, False)


def test_time_in_which_nobody_looked_does_not_count(silence):
    """The process that looks was stopped itself, and everybody with it."""
    silence.look(10_000.0)
    assert silence.seconds <= 2.0


def test_where_nobody_can_tell_nobody_is_silent():
    unknown = Silence(1, lambda process: None)
    unknown.look(1.0)
    assert unknown.seconds == 0.0
    assert cpu_seconds(2**22 + 1) is None
    assert cpu_seconds(os.getpid()) > 0


class Clock:
    """Goes on by a second at each look."""

    def __init__(self):
        self.now = 0.0

    def __call__(self):
        self.now += 1.0
        return self.now


@pytest.fixture
def mapped(tmp_path):
    """`mapped(tasks, limit)` → values by id, and what was told of silent workers.

    Every look is a second later; a process is silent as long as it is stopped.
    """
    told = []

    def stopped(process):
        state = Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[0]
        stopped.busy += 1.0
        return 0.0 if state == "T" else stopped.busy

    stopped.busy = 0.0

    class Watched(workers.Workers):
        def wait(self, seconds):
            return super().wait(min(seconds, 0.002))

    def run(tasks, limit, let_go=False):
        def on_silent(process, item, seconds):
            told.append((item, seconds))
            if let_go:
                os.kill(process, signal.SIGCONT)

        with closing(Watched((), limit, clock=Clock(), cpu=stopped)) as processes:
            map = ShardMap(
                backend_at(str(tmp_path / "store")), KEY, "act", {}, "code", 2,
                lambda: False, lambda *_: None, lambda: None,
                partial(processes.lend, on_silent=on_silent),
            )  # fmt: skip
            results, _ = map.run(act, tasks, {"folder": str(tmp_path)})
        return {result.id: result.value for result in results}, told

    return run


def test_a_stopped_worker_is_told_of_ended_and_its_shard_done_again(mapped, tmp_path):
    values, told = mapped([Task("a"), Task("b", "stops once"), Task("c")], limit=90.0)
    assert sorted(values) == ["a", "b", "c"]
    assert told == [("b", WARN_SECONDS)]
    starts = (tmp_path / "starts").read_text().split()
    assert sorted(starts) == ["a", "b", "b", "c"]
    assert int((tmp_path / "stopped").read_text()) != values["b"]["process"]


def test_a_shard_at_which_every_worker_stops_is_an_error_that_names_it(mapped, tmp_path):
    with pytest.raises(IngotError, match="90 s") as caught:
        mapped([Task("a"), Task("b", "stops"), Task("c")], limit=90.0)
    assert caught.value.where == "shard b"
    assert "execution.silent_seconds" in caught.value.hint
    assert (tmp_path / "starts").read_text().split().count("b") == shards.SILENT_TRIES


def test_without_a_limit_it_is_told_of_and_waited_for(mapped, tmp_path):
    """Something outside lets it go on."""
    values, told = mapped([Task("a"), Task("b", "stops once")], limit=None, let_go=True)
    assert told == [("b", WARN_SECONDS)]
    assert int((tmp_path / "stopped").read_text()) == values["b"]["process"]
