"""Ending the worker: its runs are cancelled by the server, or asked themselves."""

from __future__ import annotations

from contextlib import contextmanager
from types import SimpleNamespace
from uuid import UUID, uuid4

import pytest
from prefect.exceptions import ObjectNotFound

from flows.orchestration import asking, background, worker
from flows.orchestration.server import Server

STAYS, DELETED = str(uuid4()), str(uuid4())


class Client:
    """In place of Prefect's: it knows the runs in `known`, and cancels what it is told to."""

    def __init__(self, known):
        self.known, self.cancelled = known, []

    def set_flow_run_state(self, id: UUID, state):
        self._look_up(id)
        self.cancelled.append(str(id))

    def read_flow_run(self, id: UUID):
        self._look_up(id)
        return SimpleNamespace(state=SimpleNamespace(is_final=lambda: str(id) in self.cancelled))

    def _look_up(self, id: UUID):
        if str(id) not in self.known:
            raise ObjectNotFound(Exception("404"))


@pytest.fixture
def known(monkeypatch):
    """`known(runs)` → a client of a server that knows these."""

    def make(runs):
        client = Client(runs)

        @contextmanager
        def ask():
            yield client

        monkeypatch.setattr(asking, "asking", ask)
        monkeypatch.setattr(worker, "use", lambda server: None)
        return client

    return make


@pytest.mark.parametrize("runs", [[DELETED, STAYS], [STAYS, DELETED], [DELETED]])
def test_a_run_deleted_in_the_ui_does_not_keep_the_others_from_ending(known, runs):
    client = known({STAYS})
    assert worker._cancel(Server("x"), runs) is False
    assert client.cancelled == [run for run in runs if run == STAYS]


def test_runs_that_the_server_knows_are_cancelled_by_it_alone(known):
    client = known({STAYS})
    assert worker._cancel(Server("x"), [STAYS]) is True
    assert client.cancelled == [STAYS]


def test_the_worker_ends_although_its_run_was_deleted(known, monkeypatch, tmp_path):
    monkeypatch.setenv("INGOT_HOME", str(tmp_path / "home"))
    known(set())
    facts = {"api": "http://127.0.0.1:9/api", "pool": "p"}
    began = background.start(worker.NAME, ["sleep", "60"], {}, facts)
    run = background.start("run", ["sleep", "60"], {}, {})
    monkeypatch.setattr(
        worker, "_running", lambda process: {worker.psutil.Process(run.process): DELETED}
    )
    monkeypatch.setattr(worker, "answers", lambda server: True)
    try:
        assert worker.stop_worker() is True
        assert not began.lives()
        assert not run.lives()
    finally:
        background.stop("run", 5.0)
