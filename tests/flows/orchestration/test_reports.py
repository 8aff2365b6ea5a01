"""Reports are served by name, on loopback, under headers that keep a hostile page harmless."""

from __future__ import annotations

import http.client
import socket
import threading
import urllib.error
import urllib.request
from http.server import ThreadingHTTPServer

import psutil
import pytest

from flows.orchestration import local_state, reports


@pytest.fixture
def get(tmp_path, monkeypatch):
    """`get(path, Host=…)` → (status, headers, body)."""
    monkeypatch.setenv("INGOT_HOME", str(tmp_path))
    tmp_path.chmod(0o700)
    (reports.reports_folder() / "web-1.html").write_text("<p>a report</p>")
    known = local_state.authorization(local_state.make_password())
    (tmp_path / "prefect.json").write_text("secret")
    (tmp_path / "other.html").write_text("secret")
    server = ThreadingHTTPServer(("127.0.0.1", 0), reports.Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()

    def ask(path, method="GET", **headers):
        connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=10)
        given = {"Authorization": known, **headers}
        connection.request(method, path, headers={k: v for k, v in given.items() if v})
        reply = connection.getresponse()
        found = reply.status, dict(reply.getheaders()), reply.read()
        connection.close()
        return found

    ask.port = server.server_port
    yield ask
    server.shutdown()
    server.server_close()


def test_a_report_is_served_under_a_policy_that_loads_and_calls_nothing(get):
    status, headers, body = get("/web-1.html")
    assert (status, body) == (200, b"<p>a report</p>")
    policy = headers["Content-Security-Policy"]
    assert policy.startswith("default-src 'none'")
    assert "connect-src" not in policy
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["Content-Type"].startswith("text/html")


@pytest.mark.parametrize(
    "path",
    ["/", "/password", "/prefect.json", "/../other.html", "/..%2fother.html", "/.html", "/x.html"],
)
def test_nothing_else_is_served(get, path):
    status, _, body = get(path)
    assert status == 404
    assert b"secret" not in body


def test_only_reading_and_only_by_an_address_of_this_machine(get):
    assert get("/web-1.html", method="POST")[0] == 501
    assert get("/web-1.html", method="DELETE")[0] == 501
    assert get("/web-1.html", Host="rebound.example.org")[0] == 404


def test_an_address_that_is_none_is_no_error_of_the_server_and_fills_no_log(get, capfd):
    assert get("/web-1.html", Host="[")[0] == 404
    assert get("http://[/web-1.html", Host="127.0.0.1")[0] == 404
    assert get("/web-1.html", Authorization="")[0] == 401
    assert capfd.readouterr().err == ""


def test_a_caller_that_says_nothing_is_let_go(get, monkeypatch):
    assert reports.Handler.timeout == 30
    monkeypatch.setattr(reports.Handler, "timeout", 0.1)
    with socket.create_connection(("127.0.0.1", get.port), timeout=10) as silent:
        assert silent.recv(1) == b""


def is_free(port):
    try:
        socket.create_server(("127.0.0.1", port)).close()
    except OSError:
        return False
    return True


def test_the_port_is_ours_before_its_address_is_given(tmp_path, monkeypatch):
    monkeypatch.setenv("INGOT_HOME", str(tmp_path / "home"))
    with socket.create_server(("127.0.0.1", 0)) as other:
        near = other.getsockname()[1] - 1
        address = reports.ensure_reports(near)
    try:
        assert reports.ensure_reports(near) == address
        port = int(address.rsplit(":", 1)[1])
        assert port != near + 1
        with pytest.raises(OSError, match="in use"):
            socket.create_server(("127.0.0.1", port))
        with pytest.raises(urllib.error.HTTPError, match="401"):
            urllib.request.urlopen(f"{address}/x.html", timeout=60)
        found = local_state.find_process(reports.REPORT_SERVER)
        held = psutil.Process(found.process).net_connections("tcp")
        assert [(c.laddr.port, c.status) for c in held if c.status == "LISTEN"] == [
            (port, psutil.CONN_LISTEN)
        ]
    finally:
        local_state.stop_process(reports.REPORT_SERVER, 10.0)
    assert local_state.wait_until(lambda: is_free(port), 60.0)  # It ends with the process.


def test_no_report_without_the_password(get):
    for given in ("", "Basic aW5nb3Q6eA==", "Basic nonsense", "Bearer x"):
        status, headers, body = get("/web-1.html", Authorization=given)
        assert status == 401
        assert headers["WWW-Authenticate"].startswith("Basic")
        assert "Set-Cookie" not in headers
        assert b"a report" not in body
    assert get("/x.html", Authorization="")[0] == 401  # Nor which reports there are.


def test_a_new_password_counts_at_once_and_without_one_nobody_gets_in(get):
    local_state.password_file().unlink()
    assert get("/web-1.html")[0] == 503
    new = local_state.authorization(local_state.make_password())
    assert get("/web-1.html")[0] == 401
    assert get("/web-1.html", Authorization=new)[0] == 200
