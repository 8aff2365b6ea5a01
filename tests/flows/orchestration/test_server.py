"""The server that a run would use: found, refused, started on a port that is free."""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from importlib.metadata import version

import pytest

from artifacts_schema.errors import IngotError, UsageError
from flows.orchestration import local_state
from flows.orchestration import server as servers
from flows.orchestration.local_state import make_password
from flows.orchestration.service_settings import ServiceSettings, save_settings


@pytest.fixture(autouse=True)
def own_home(tmp_path, monkeypatch):
    monkeypatch.setenv("INGOT_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PREFECT_HOME", str(tmp_path / "prefect"))
    monkeypatch.delenv("PREFECT_API_URL", raising=False)


@pytest.fixture
def answering():
    """`answering({path: value}, given)` → address of a server that says so.

    What it is sent as `Authorization` goes to the list `given`.
    """
    started = []

    def start(says, given=None):
        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                known = self.path in says
                if given is not None:
                    given.append(self.headers.get("Authorization"))
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
    assert local_state.find_process("prefect") is None


def test_a_port_that_another_program_has_bound_first_is_ours_alone():
    """Two programs can bind a port, but the one that bound it first must not get our calls."""
    with socket.socket() as other:
        other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        other.bind(("127.0.0.1", 0))
        with servers.open_listener(other.getsockname()[1]), pytest.raises(OSError, match="in use"):
            other.listen()


def test_the_server_starts_on_a_port_that_listens_already(monkeypatch):
    """The child gets the open socket: nobody can listen on the port while it comes up."""
    begun = []

    def start(name, command, environment, facts, listener):
        port = listener.getsockname()[1]
        with pytest.raises(OSError, match="in use"):
            socket.create_server(("127.0.0.1", port))
        assert facts == {"api": f"http://127.0.0.1:{port}/api"}
        serve = f"import socket; kept = socket.socket(fileno={command[-1]}); kept.accept()"
        begun.append(real(name, [sys.executable, "-c", serve], environment, facts, listener))
        return begun[0]

    real = local_state.start_process
    monkeypatch.setattr(local_state, "start_process", start)
    monkeypatch.setattr(servers, "is_answering", lambda server: True)
    server = servers._start_server(servers.open_listener(0), ServiceSettings())
    try:
        with pytest.raises(OSError, match="in use"):
            socket.create_server(("127.0.0.1", int(server.ui.rsplit(":", 1)[1])))
        assert server.process == begun[0].process
    finally:
        local_state.stop_process("prefect", 5.0)


def test_a_server_that_ended_is_not_the_one_that_answers_in_its_place(monkeypatch):
    def start(*words):
        process = real(words[0], ["true"], *words[2:])
        local_state.wait_until(lambda: not process.lives(), 60.0)
        return process

    real = local_state.start_process
    monkeypatch.setattr(local_state, "start_process", start)
    monkeypatch.setattr(servers, "is_answering", lambda server: True)
    with pytest.raises(IngotError, match="did not start"):
        servers.ensure_server()


def test_the_password_is_not_sent_to_a_program_that_took_the_port_of_our_server(answering):
    given = []
    address = answering({"/api/health": True, "/api/admin/version": version("prefect")}, given)
    make_password()
    process = local_state.start_process("prefect", ["sleep", "60"], {}, {"api": f"{address}/api"})
    server = servers.find_server()
    servers.check_password(server)
    assert server.process == process.process
    assert given.pop() is not None
    given.clear()
    os.kill(process.process, signal.SIGKILL)
    local_state.wait_until(lambda: not process.lives(), 60.0)
    with pytest.raises(IngotError, match="has ended"):
        servers.check_password(server)
    assert servers.find_server() is None
    assert given == []


def test_the_folder_of_the_database_is_closed_before_the_server_starts(monkeypatch):
    folder = local_state.home() / "prefect"
    folder.mkdir(mode=0o755)
    monkeypatch.setattr(servers, "is_answering", lambda server: False)
    monkeypatch.setattr(servers.sys, "executable", "/bin/false")
    with pytest.raises(IngotError, match="did not start"):
        servers.ensure_server()
    assert folder.stat().st_mode & 0o777 == 0o700


def test_no_proxy_is_asked_for_our_own_server(answering, monkeypatch):
    """It would be sent the password."""
    seen = []
    proxy = answering({}, seen)
    for name in ("http_proxy", "HTTP_PROXY"):
        monkeypatch.setenv(name, proxy)
    for name in ("no_proxy", "NO_PROXY", "PREFECT_API_AUTH_STRING"):
        monkeypatch.setenv(name, "example.org")
    own = servers.Server(answering({"/api/health": True}) + "/api")
    assert servers.is_answering(own)
    make_password()
    monkeypatch.setattr(servers, "_own_apis", set())
    servers.use_server(servers.Server(own.api, os.getpid()))
    assert os.environ["NO_PROXY"] == os.environ["no_proxy"] == "example.org,127.0.0.1"
    import httpx

    assert httpx.get(f"{own.api}/health").json() is True
    assert seen == []


def test_what_does_not_speak_http_does_not_answer():
    with socket.create_server(("127.0.0.1", 0)) as other:

        def speak():
            for _ in range(2):
                with other.accept()[0] as caller:
                    caller.recv(1000)
                    caller.sendall(b"220 mail.example.org\r\n\r\n")

        thread = threading.Thread(target=speak, daemon=True)
        thread.start()
        api = f"http://127.0.0.1:{other.getsockname()[1]}/api"
        assert not servers.is_answering(servers.Server(api), timeout=60.0)
        assert servers._get(f"{api}/admin/version", password="ingot:x") is None
        thread.join(60.0)


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
    with pytest.raises(IngotError, match=r"127\.0\.0\.1:9"):
        servers.ensure_server()


def test_a_process_that_ended_or_whose_id_was_given_out_again_is_not_ours():
    process = local_state.start_process("sleeper", ["sleep", "60"], {}, {"api": "x"})
    assert local_state.find_process("sleeper") == process
    state = local_state.home() / "sleeper.json"
    state.write_text(state.read_text().replace(process.started, "1.00"))
    assert local_state.find_process("sleeper") is None
    assert local_state.stop_process("sleeper", 1.0) is None
    assert process.lives()
    state.write_text(json.dumps(process.__dict__))
    assert local_state.stop_process("sleeper", 5.0) == process
    assert not process.lives()


def test_state_that_cannot_be_read_is_no_process():
    (local_state.home() / "prefect.json").write_text("{")
    assert servers.find_server() is None
    assert servers.stop_server() is None


def test_settings_are_for_a_server_of_our_own(answering, monkeypatch):
    monkeypatch.setenv("PREFECT_API_URL", f"{answering({'/api/health': True})}/api")
    with pytest.raises(UsageError, match="which has its own settings"):
        servers.ensure_server(settings=ServiceSettings(keep_days=3))
    assert servers.ensure_server(settings=ServiceSettings()).process is None


def test_a_running_server_keeps_the_settings_it_was_started_with():
    make_password()
    save_settings(ServiceSettings(keep_days=3))
    local_state.start_process("prefect", ["sleep", "60"], {}, {"api": "http://127.0.0.1:9/api"})
    try:
        with pytest.raises(UsageError, match=r"runs with other settings, in .*prefect\.db"):
            servers.ensure_server(settings=ServiceSettings())
    finally:
        local_state.stop_process("prefect", 5.0)
