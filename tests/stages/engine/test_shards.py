"""The shard map when workers die: what goes on, what is done again, what is told."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import select
import signal
import sys
import types
from collections import Counter
from pathlib import Path

import pytest

from artifacts_schema.errors import IngotError, Stopped
from artifacts_schema.store.remote import backend_at
from stages.engine import fork_server
from stages.engine.shards import ShardMap
from stages.engine.workers import WorkerCrash, Workers

sys.path.insert(0, str(Path(__file__).parent))
from deadly import Task, act

KEY = "b" * 64


@pytest.fixture
def tried(tmp_path):
    """`tried(tasks, workers=2, on_death=None)`: a map over tasks → values by id."""

    def run(tasks, workers=2, on_death=None, stopping=lambda: False, function=act):
        processes = Workers()
        shards = ShardMap(
            backend_at(str(tmp_path / "store")),
            KEY,
            "act",
            {},
            "code",
            workers,
            stopping,
            lambda *_: None,
            lambda: None,
            processes.lend,
            on_death,
        )
        try:
            results, _ = shards.run(function, tasks, {"folder": str(tmp_path)})
        finally:
            processes.close()
            assert multiprocessing.active_children() == []
        return {result.id: result.value for result in results}

    return run


@pytest.fixture
def starts(tmp_path):
    """How often each task was begun, as (id, id, …), sorted."""
    return lambda: tuple(sorted((tmp_path / "starts").read_text().split()))


def test_a_death_costs_only_its_own_item_when_the_stage_knows_how_to_go_on(tmp_path, tried, starts):
    """`a` is still being done when `b` kills its worker, and is not begun again."""
    os.mkfifo(tmp_path / "died")
    deaths: list[WorkerCrash] = []

    def on_death(death):
        deaths.append(death)
        with open(tmp_path / "died", "w"):
            return {"deadly": False}

    tasks = [Task("a", "waits for a death"), Task("b", "SIGSEGV"), Task("c"), Task("d")]
    values = tried(tasks, on_death=on_death)
    assert list(values) == ["a", "b", "c", "d"]
    assert [(death.item, death.exit_code, death.how) for death in deaths] == [
        ("b", -signal.SIGSEGV, "SIGSEGV")
    ]
    assert starts() == ("a", "b", "b", "c", "d")
    assert values["b"]["process"] != deaths[0].process


@pytest.mark.parametrize(
    ("does", "cause"),
    [("SIGKILL", "out of memory"), ("SIGSEGV", "SIGSEGV"), ("exits", r"\b7\b")],
)
@pytest.mark.parametrize("asked", [True, False])
def test_a_death_that_nobody_explains_is_an_error_and_the_next_run_continues(
    tried, starts, does, cause, asked
):
    tasks = [Task("a"), Task("b"), Task("c", does)]
    with pytest.raises(IngotError, match=cause) as caught:
        tried(tasks, on_death=(lambda death: None) if asked else None)
    assert (caught.value.where, "'act'" in caught.value.what) == ("shard c", True)
    assert set(tried([Task("a"), Task("b"), Task("c")])) == {"a", "b", "c"}
    begun = Counter(starts())  # What was not done when the worker died may be begun again.
    assert begun["c"] == 2
    assert {begun["a"], begun["b"]} <= {1, 2}


def test_one_worker_is_a_process_of_its_own_where_deaths_are_expected(tried):
    assert tried([Task("a")], workers=1)["a"]["process"] == os.getpid()
    values = tried([Task("b"), Task("c")], workers=1, on_death=lambda death: None)
    assert os.getpid() not in {value["process"] for value in values.values()}
    assert tried([], workers=1, on_death=lambda death: None) == {}


def test_what_a_function_raises_arrives_with_the_place_where_it_was_raised(tried):
    with pytest.raises(LookupError, match=r"^a\nin a worker") as caught:
        tried([Task("a", "raises"), Task("b")])
    assert "deadly.py" in caught.value.__notes__[0]
    with pytest.raises(RuntimeError, match="Unpicklable: c") as caught:
        tried([Task("c", "raises what cannot be carried"), Task("d")])
    assert "deadly.py" in caught.value.__notes__[0]


def test_a_function_that_a_worker_cannot_import_is_an_error_not_a_hang(tried, monkeypatch):
    monkeypatch.setattr(fork_server, "_has_one_thread", lambda: False)  # A fresh interpreter.
    module = types.ModuleType("nowhere")
    exec("def act(task, out, folder): pass", module.__dict__)
    monkeypatch.setitem(sys.modules, "nowhere", module)
    assert pickle.loads(pickle.dumps(module.act)) is module.act
    with pytest.raises(ModuleNotFoundError, match="nowhere"):
        tried([Task("a"), Task("b")], function=module.act)


def test_a_worker_ended_together_with_the_stage_is_a_stop_not_an_error(tmp_path, tried):
    """A scheduler that ends a job sends SIGTERM to all of its processes."""
    tasks = [Task("a", "is told to stop"), Task("b", "waits for a death")]
    os.mkfifo(tmp_path / "died")
    with pytest.raises(Stopped, match=r"with \d of 2 shards"):
        tried(tasks, stopping=(tmp_path / "stop").exists)


def test_a_stop_ends_workers_that_hold_the_interpreter_in_native_code(tmp_path, tried):
    os.mkfifo(tmp_path / "worker")
    fifo = os.open(tmp_path / "worker", os.O_RDWR)
    with pytest.raises(Stopped):
        tried(
            [Task("a", "spins")],
            workers=1,
            on_death=lambda death: None,
            stopping=lambda: bool(select.select([fifo], [], [], 0)[0]),
        )
    os.close(fifo)


@pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="needs process descriptors (Linux)")
def test_a_worker_in_native_code_ends_with_its_parent(tmp_path, tried):
    os.mkfifo(tmp_path / "worker")
    parent = os.fork()
    if parent == 0:
        try:
            tried([Task("a", "spins")], workers=1, on_death=lambda death: None)
        finally:
            os._exit(1)
    worker = int((tmp_path / "worker").read_text())
    descriptor = os.pidfd_open(worker)
    os.kill(parent, signal.SIGKILL)
    os.waitpid(parent, 0)
    ended, _, _ = select.select([descriptor], [], [], 30)
    if not ended:
        signal.pidfd_send_signal(descriptor, signal.SIGKILL)
    os.close(descriptor)
    assert ended
