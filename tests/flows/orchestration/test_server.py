"""The server that a run would use: found, refused, started on a port that is free."""

from __future__ import annotations

import json
import socket
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from importlib.metadata import version

import pytest

from artifacts_schema.errors import IngotError, UsageError
from flows.orchestration import background
from flows.orchestration import server as servers


@pytest.fixture(autouse=True)
def own_home(tmp_path, monkeypatch):
    monkeypatch.setenv("INGOT_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PREFECT_HOME", str(tmp_path / "prefect"))
    monkeypatch.delenv("PREFECT_API_URL", raising=False)


@pytest.fixture
def answering():
    """`answering({path: value})` → address of a server that says so."""
    started = []

    def start(says):
        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                known = self.path in says
                self.send_response(200 if known else 404)
                self.end_headers()
                self.wfile.write(json.dumps(says.get(self.path)).encode())

            def log_message(self, *_words):
                pass

        server = HTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        started.append(server)
        return f"http://127.0.0.1:{server.server_port}"

    yield start
    for server in started:
        server.shutdown()
        server.server_close()


def test_a_port_that_is_taken_is_named_with_the_flag_that_chooses_another():
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        with pytest.raises(UsageError, match=rf"port {port} is taken .*--port"):
            servers.ensure_server(port=port)
    assert background.find("prefect") is None


def test_a_prefect_server_on_the_port_is_offered(answering):
    address = answering({"/api/health": True})
    with pytest.raises(UsageError, match=f"PREFECT_API_URL={address}/api"):
        servers.ensure_server(port=int(address.rsplit(":", 1)[1]))


def test_a_server_of_another_version_is_refused_with_what_to_do(answering, monkeypatch):
    address = answering({"/api/health": True, "/api/admin/version": "2.20.1"})
    monkeypatch.setenv("PREFECT_API_URL", f"{address}/api")
    expected = rf"Prefect 2\.20\.1, this is Prefect {version('prefect')}.*install prefect 2\.20\.1"
    with pytest.raises(UsageError, match=expected):
        servers.ensure_server()


def test_another_patch_of_the_same_version_is_accepted(answering, monkeypatch):
    major, minor = version("prefect").split(".")[:2]
    says = {"/api/health": True, "/api/admin/version": f"{major}.{minor}.999"}
    monkeypatch.setenv("PREFECT_API_URL", f"{answering(says)}/api")
    assert servers.ensure_server().process is None


def test_an_api_that_does_not_answer_is_said_before_anything_runs(monkeypatch):
    monkeypatch.setenv("PREFECT_API_URL", "http://127.0.0.1:9/api")
    with pytest.raises(IngotError, match="the Prefect API does not answer"):
        servers.ensure_server()


def test_a_process_that_ended_or_whose_id_was_given_out_again_is_not_ours():
    process = background.start("sleeper", ["sleep", "60"], {}, {"api": "x"})
    assert background.find("sleeper") == process
    state = background.home() / "sleeper.json"
    state.write_text(state.read_text().replace(process.started, "1.00"))
    assert background.find("sleeper") is None
    assert background.stop("sleeper", 1.0) is None
    assert process.lives()
    state.write_text(json.dumps(process.__dict__))
    assert background.stop("sleeper", 5.0) == process
    assert not process.lives()


def test_state_that_cannot_be_read_is_no_process():
    (background.home() / "prefect.json").write_text("{")
    assert servers.find_server() is None
    assert servers.stop_server() is None
