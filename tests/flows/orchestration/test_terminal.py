"""What a run's terminal shows of Prefect: one line when the server goes, one when it is back."""

from __future__ import annotations

import logging
import sys
import threading

import pytest

from flows.orchestration import control
from flows.orchestration.server import Server


def test_a_server_that_goes_away_and_comes_back_is_two_lines():
    said, over = [], threading.Event()
    script = iter([True, False, True, False, False, False, False, True, True])

    def answers(_server, _timeout):
        state = next(script, None)
        if state is None:
            over.set()
        return state is not False

    with control.watch_server(Server("http://x/api", 1), said.append, answers=answers, every=0.0):
        assert over.wait(30)
    # One answer that is missed is a busy machine, not a server that is away.
    assert [("does not answer" in line, "answers again" in line) for line in said] == [
        (True, False),
        (False, True),
    ]
    assert all("http://x" in line for line in said)


def test_nothing_is_said_of_a_server_that_answers():
    said = []
    with control.watch_server(
        Server("http://x/api", 1), said.append, answers=lambda *_: True, every=0.0
    ):
        pass
    assert said == []


@pytest.fixture
def prefect_logs(tmp_path, monkeypatch):
    """Prefect's loggers as they are after its import; what a test does to them is taken back."""
    monkeypatch.setenv("INGOT_HOME", str(tmp_path))
    import prefect  # noqa: F401

    loggers = [logging.getLogger(name) for name in ("prefect", "prefect._internal")]
    before = [(list(logger.handlers), logger.propagate) for logger in loggers]
    monkeypatch.setattr(logging, "raiseExceptions", True)
    loggers[1].handlers = [logging.StreamHandler(sys.stderr)]
    yield
    for logger, (handlers, propagate) in zip(loggers, before, strict=True):
        logger.handlers, logger.propagate = handlers, propagate


def test_prefects_own_messages_go_to_a_file(prefect_logs, tmp_path, capfd):
    from prefect.logging.handlers import APILogWorker

    control.redirect_prefect_logs()
    control.redirect_prefect_logs()  # A second run of one process writes nothing twice.
    logging.getLogger("prefect._internal.concurrency").error("Service %r failed", "EventsWorker")
    logging.getLogger("prefect.events.clients").warning("unable to connect")

    class Away:
        async def create_logs(self, _items):
            raise OSError("connection refused")

    import asyncio

    worker = APILogWorker.__new__(APILogWorker)
    worker._client = Away()
    asyncio.run(worker._handle_batch([{}]))
    assert capfd.readouterr().err == ""
    lines = (tmp_path / "client.log").read_text().splitlines()
    assert len(lines) == 2
    assert "EventsWorker" in lines[0]
    assert "unable to connect" in lines[1]
