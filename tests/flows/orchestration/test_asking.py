"""A Prefect server that is away or does not answer is one line, with what to do."""

import json
import socket
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest
from prefect.settings import (
    PREFECT_API_REQUEST_TIMEOUT,
    PREFECT_API_URL,
    PREFECT_CLIENT_MAX_RETRIES,
    temporary_settings,
)

from artifacts_schema.errors import IngotError
from flows.orchestration.asgi import AWAY, BUSY
from flows.orchestration.deployments import RETRY_HINT, prefect_client


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
    with temporary_settings(settings), prefect_client() as client:
        client.read_deployments()


def test_a_server_that_does_not_answer_in_time_is_named(silent):
    with pytest.raises(IngotError) as caught:
        ask(silent)
    assert (str(silent) in caught.value.where, caught.value.hint) == (True, RETRY_HINT)


def test_a_server_that_is_away_is_named():
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    with pytest.raises(IngotError, match="ingot up") as caught:
        ask(port)
    assert str(port) in caught.value.where


@pytest.fixture
def refusing():
    """`refusing(status, body)` → the port of a server that answers every request with it."""
    started = []

    def start(status, body=b""):
        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                self.send_response(status)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            do_GET = do_POST

            def log_message(self, *_words):
                pass

        server = HTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        started.append(server)
        return server.server_port

    yield start
    for server in started:
        server.shutdown()
        server.server_close()


@pytest.mark.parametrize(
    ("status", "advice"),
    [(503, "run the same command again"), (401, "PREFECT_API_AUTH_STRING"), (500, "log")],
)
def test_an_answer_that_is_an_error_is_one_line(refusing, status, advice):
    port = refusing(status)
    with pytest.raises(IngotError, match=f"answers {status}") as caught:
        ask(port)
    assert str(port) in str(caught.value)
    assert advice in str(caught.value)


def test_a_database_that_is_locked_or_away_is_said_as_the_server_says_it(refusing):
    for reason in (BUSY, AWAY):
        port = refusing(503, json.dumps({"detail": reason}).encode())
        with pytest.raises(IngotError) as caught:
            ask(port)
        assert (caught.value.what, caught.value.hint) == (reason, RETRY_HINT)
    for body in (b"[]", b"{", b'{"detail": ["x"]}'):
        with pytest.raises(IngotError, match="answers 503"):
            ask(refusing(503, body))
