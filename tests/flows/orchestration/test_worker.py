"""Ending the worker: its runs are cancelled by the server, or asked themselves."""

from __future__ import annotations

from contextlib import contextmanager
from types import SimpleNamespace
from uuid import UUID, uuid4

import pytest
from prefect.exceptions import ObjectNotFound

from flows.orchestration import control, deployments, local_state
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

        monkeypatch.setattr(deployments, "prefect_client", ask)
        monkeypatch.setattr(control, "use_server", lambda server: None)
        return client

    return make


@pytest.mark.parametrize("runs", [[DELETED, STAYS], [STAYS, DELETED], [DELETED]])
def test_a_run_deleted_in_the_ui_does_not_keep_the_others_from_ending(known, runs):
    client = known({STAYS})
    assert control._cancel(Server("x"), runs) is False
    assert client.cancelled == [run for run in runs if run == STAYS]


def test_runs_that_the_server_knows_are_cancelled_by_it_alone(known):
    client = known({STAYS})
    assert control._cancel(Server("x"), [STAYS]) is True
    assert client.cancelled == [STAYS]


def test_the_worker_ends_although_its_run_was_deleted(known, monkeypatch, tmp_path):
    monkeypatch.setenv("INGOT_HOME", str(tmp_path / "home"))
    known(set())
    facts = {"api": "http://127.0.0.1:9/api", "pool": "p"}
    began = local_state.start_process(control.WORKER, ["sleep", "60"], {}, facts)
    run = local_state.start_process("run", ["sleep", "60"], {}, {})
    monkeypatch.setattr(
        control, "_running", lambda process: {control.psutil.Process(run.process): DELETED}
    )
    monkeypatch.setattr(control, "is_answering", lambda server: True)
    try:
        assert control.stop_worker() is True
        assert not began.lives()
        assert not run.lives()
    finally:
        local_state.stop_process("run", 5.0)
