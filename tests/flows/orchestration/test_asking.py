"""A Prefect server that is away or does not answer is one line, with what to do."""

import socket
import threading

import pytest
from prefect.settings import (
    PREFECT_API_REQUEST_TIMEOUT,
    PREFECT_API_URL,
    PREFECT_CLIENT_MAX_RETRIES,
    temporary_settings,
)

from artifacts_schema.errors import IngotError
from flows.orchestration.asking import asking


@pytest.fixture
def silent():
    """The port of a server that takes connections and says nothing."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        taken = []

        def take():
            while True:
                try:
                    taken.append(server.accept()[0])
                except OSError:
                    return

        threading.Thread(target=take, daemon=True).start()
        yield server.getsockname()[1]
        for one in taken:
            one.close()


def ask(port):
    settings = {
        PREFECT_API_URL: f"http://127.0.0.1:{port}/api",
        PREFECT_API_REQUEST_TIMEOUT: 0.3,
        PREFECT_CLIENT_MAX_RETRIES: 0,
    }
    with temporary_settings(settings), asking() as client:
        client.read_deployments()


def test_a_server_that_does_not_answer_in_time_is_named(silent):
    with pytest.raises(IngotError, match="did not answer in time") as caught:
        ask(silent)
    assert str(silent) in str(caught.value)
    assert "run the same command again" in str(caught.value)


def test_a_server_that_is_away_is_named():
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    with pytest.raises(IngotError, match="cannot be reached") as caught:
        ask(port)
    assert "ingot up" in str(caught.value)
