"""Worker processes between the maps of a run: the same ones, whatever became of a map."""

from __future__ import annotations

import os
import select
import signal
import sys
import threading
from contextlib import closing
from pathlib import Path

import pytest

from artifacts_schema.errors import IngotError, Stopped
from artifacts_schema.store.remote import backend_at
from stages.engine import fork_server
from stages.engine.shards import ShardMap
from stages.engine.workers import Workers

sys.path.insert(0, str(Path(__file__).parent))
from deadly import Task, act

KEY = "d" * 64


@pytest.fixture(params=["fork", "spawn"])
def workers(request, monkeypatch):
    """Workers of a run; their server is a fork of this process, or a fresh interpreter."""
    monkeypatch.setattr(fork_server, "_has_one_thread", lambda: request.param == "fork")
    with closing(Workers()) as workers:
        yield workers


@pytest.fixture
def mapped(tmp_path, workers):
    """`mapped(name, tasks, most)` → the process that did each task."""

    def run(name, tasks, most=2, stopping=lambda: False):
        shards = ShardMap(
            backend_at(str(tmp_path / "store")), KEY, name, {}, "code", most,
            stopping, lambda *_: None, lambda: None, workers.lend,
        )  # fmt: skip
        results, _ = shards.run(act, tasks, {"folder": str(tmp_path)})
        return [result.value["process"] for result in results]

    return run


def processes(workers):
    return {worker.process for worker in workers._all}


def end(process):
    """Kill a process and wait until it has ended."""
    descriptor = os.pidfd_open(process)
    signal.pidfd_send_signal(descriptor, signal.SIGKILL)
    assert select.select([descriptor], [], [], 30)[0]
    os.close(descriptor)


def tasks(count, does="ends well"):
    return [Task(str(number), does) for number in range(count)]


def test_all_maps_of_a_run_are_done_by_the_same_processes(mapped, workers):
    first = mapped("first", tasks(6))
    known = processes(workers)
    assert len(known) == 2
    assert set(first) | set(mapped("second", tasks(6))) <= known
    assert set(mapped("third", tasks(6), most=3)) <= processes(workers)
    assert len(processes(workers)) == 3
    assert known < processes(workers)


def test_a_map_uses_no_more_processes_than_it_asks_for(mapped, workers, tmp_path):
    mapped("first", tasks(9), most=3)
    pool = workers.lend(2)
    for task in tasks(2):
        while not pool.idle:
            pool.wait(0.5)
        pool.start(task.id, act, task, None, str(tmp_path))
    assert len(processes(workers)) == 3
    assert (pool.busy, pool.idle) == (True, False)
    while pool.busy:
        pool.wait(0.5)


def test_a_process_that_dies_between_two_maps_is_replaced(mapped, workers):
    mapped("first", tasks(4))
    victim, other = sorted(processes(workers))
    end(victim)
    assert len(mapped("second", tasks(4))) == 4
    assert victim not in processes(workers)
    assert other in processes(workers)


def test_a_map_that_fails_or_is_stopped_leaves_processes_for_the_next_one(mapped, tmp_path):
    with pytest.raises(LookupError):
        mapped("fails", [Task("a", "raises"), Task("b")])
    os.mkfifo(tmp_path / "died")
    stopped = [Task("a", "is told to stop"), Task("b", "waits for a death")]
    with pytest.raises(Stopped):
        mapped("stops", stopped, stopping=(tmp_path / "stop").exists)
    assert len(mapped("works", tasks(4))) == 4


def test_workers_end_with_their_server_and_the_next_map_has_another(mapped, workers):
    mapped("first", tasks(2))
    descriptors = [os.pidfd_open(process) for process in processes(workers)]
    end(workers._server._process.pid)
    for descriptor in descriptors:
        assert select.select([descriptor], [], [], 30)[0]
        os.close(descriptor)
    assert len(mapped("second", tasks(4))) == 4


def test_a_server_killed_during_a_map_is_an_error_that_names_the_shard(mapped, workers):
    """The worker ends its parent, the server, and with that itself."""
    with pytest.raises(IngotError, match="out of memory, or killed") as caught:
        mapped("map", [Task("a", "ends its parent"), Task("b", "ends its parent")])
    # A worker that had not begun with a shard may be the one whose end is seen first.
    assert caught.value.where in ("shard a", "shard b", None)


def test_a_process_with_threads_is_not_forked():
    assert fork_server._has_one_thread() == (len(os.listdir("/proc/self/task")) == 1)
    done = threading.Event()
    thread = threading.Thread(target=done.wait)
    thread.start()
    assert not fork_server._has_one_thread()
    done.set()
    thread.join()
