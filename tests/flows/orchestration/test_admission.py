"""What stands before the server: other origins, runs that cannot run, and its own failures."""

from __future__ import annotations

import asyncio
import json
import logging
from uuid import uuid4

import httpx
import pytest

from flows.orchestration import asgi
from flows.orchestration.forms import PIPELINE
from flows.orchestration.local_state import authorization

ID = str(uuid4())
RUN = f"/api/deployments/{ID}/create_flow_run"


class Inner:
    """In place of Prefect: one deployment, and a note of every run that it was asked for."""

    def __init__(self, entrypoint=PIPELINE):
        self.entrypoint, self.runs = entrypoint, []

    async def __call__(self, scope, receive, send):
        body = {
            "entrypoint": self.entrypoint,
            "parameters": {"recipe": "quickstart", "store": "/s"},
        }
        if scope["method"] == "POST":
            self.runs.append(json.loads((await receive())["body"]))
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": json.dumps(body).encode()})


def ask(app, method="POST", path=RUN, body=None, **headers):
    async def go():
        transport = httpx.ASGITransport(app=app)
        async with httpx.AsyncClient(
            transport=transport, base_url="http://127.0.0.1:4200"
        ) as client:
            return await client.request(method, path, json=body or {}, headers=headers)

    return asyncio.run(go())


def checked(monkeypatch, answer):
    seen = []

    async def check(asked):
        seen.append(asked)
        if isinstance(answer, Exception):
            raise answer
        return answer

    monkeypatch.setattr(asgi, "_run_check", check)
    return seen


def test_a_run_that_cannot_run_is_refused_with_the_reason(monkeypatch):
    inner = Inner()
    seen = checked(monkeypatch, "no step 'x'")
    reply = ask(asgi.Admission(inner), body={"parameters": {"through": "x"}})
    assert (reply.status_code, reply.json()) == (422, {"detail": "no step 'x'"})
    assert inner.runs == []
    given = {"recipe": "quickstart", "store": "/s", "through": "x"}
    assert seen == [{"entrypoint": PIPELINE, "parameters": given}]


def test_a_run_that_can_run_is_passed_on_whole(monkeypatch):
    inner, body = Inner(), {"parameters": {"through": "web"}, "name": "n"}
    checked(monkeypatch, None)
    assert ask(asgi.Admission(inner), body=body).status_code == 200
    assert inner.runs == [body]


@pytest.mark.parametrize("fault", [RuntimeError("broken"), TimeoutError()])
def test_a_check_that_itself_fails_lets_the_run_through(monkeypatch, fault):
    inner = Inner()
    checked(monkeypatch, fault)
    assert ask(asgi.Admission(inner)).status_code == 200
    assert len(inner.runs) == 1


def test_a_check_that_dies_or_says_nonsense_lets_the_run_through(monkeypatch):
    monkeypatch.setattr(asgi.sys, "executable", "/bin/false")
    inner = Inner()
    assert ask(asgi.Admission(inner)).status_code == 200
    assert len(inner.runs) == 1


@pytest.mark.parametrize(
    ("entrypoint", "parameters"),
    [("their.flow", {}), (PIPELINE, {"store": {"__prefect_kind": "jinja", "template": "{{ x }}"}})],
)
def test_deployments_of_others_and_templates_are_not_judged(monkeypatch, entrypoint, parameters):
    inner = Inner(entrypoint)
    seen = checked(monkeypatch, "wrong")
    assert ask(asgi.Admission(inner), body={"parameters": parameters}).status_code == 200
    assert seen == []


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 200),
        ({"origin": "http://127.0.0.1:4200"}, 200),
        ({"host": "localhost:4200", "origin": "http://localhost:4200"}, 200),
        ({"origin": "https://example.org"}, 403),
        ({"origin": "http://127.0.0.1:4201"}, 403),  # A report, which may hold a hostile page.
        ({"origin": "null"}, 403),
        ({"host": "rebound.example.org:4200"}, 403),
        ({"host": "["}, 403),
        ({"origin": "http://["}, 403),
    ],
)
def test_pages_of_another_origin_and_names_made_to_point_here_are_refused(headers, status):
    inner = Inner()
    reply = ask(asgi.Loopback(inner), **headers)
    assert reply.status_code == status
    assert len(inner.runs) == (status == 200)


def test_the_ui_may_ask_no_other_host():
    reply = ask(asgi.Loopback(Inner()))
    assert "connect-src 'self'" in reply.headers["content-security-policy"]


def test_a_websocket_of_another_origin_is_closed():
    sent = []

    async def send(message):
        sent.append(message)

    headers = [(b"host", b"127.0.0.1:4200"), (b"origin", b"https://example.org")]
    scope = {"type": "websocket", "headers": headers, "path": "/api/events/in"}
    asyncio.run(asgi.Loopback(Inner())(scope, None, send))
    assert [message["type"] for message in sent] == ["websocket.close"]


class Locked:
    """In place of Prefect with a locked database: 503 and the error itself, `times` times."""

    def __init__(self, times):
        self.times, self.bodies = times, []

    async def __call__(self, scope, receive, send):
        self.bodies.append(json.loads((await receive())["body"]))
        busy = len(self.bodies) <= self.times
        await send({"type": "http.response.start", "status": 503 if busy else 201, "headers": []})
        await send({"type": "http.response.body", "body": b"half", "more_body": True})
        await send({"type": "http.response.body", "body": b" and half"})
        if busy:
            raise RuntimeError("database is locked")


def test_a_request_that_met_a_locked_database_is_made_again_whole():
    inner = Locked(3)
    reply = ask(asgi.Retry(inner, seconds=60, wait=0.0), body={"name": "n"})
    assert (reply.status_code, reply.text) == (201, "half and half")
    assert inner.bodies == [{"name": "n"}] * 4


def test_a_database_that_stays_locked_is_said_in_words():
    inner = Locked(1000)
    reply = ask(asgi.Retry(inner, seconds=0.0, wait=0.0))
    assert (reply.status_code, reply.json()) == (503, {"detail": asgi.BUSY})
    assert len(inner.bodies) == 1


def test_other_errors_are_not_tried_again():
    class Broken(Inner):
        async def __call__(self, scope, receive, send):
            self.runs.append(scope["path"])
            raise RuntimeError("broken")

    inner = Broken()
    with pytest.raises(RuntimeError, match="broken"):
        ask(asgi.Retry(inner, seconds=60, wait=0.0))
    assert len(inner.runs) == 1


def test_a_call_without_the_password_reaches_nothing_behind_the_door():
    made = f"ingot:{'x' * 43}"
    right = {"authorization": authorization(made)}
    inner = Inner()
    app = asgi.SignIn(inner, made)
    for headers in ({}, {"authorization": "Basic x"}, {"authorization": authorization("ingot:x")}):
        for path in (RUN, "/api", "/api/", "/api/health/", "/api/flows/health", "/apix"):
            assert ask(app, path=path, **headers).status_code == 401
    assert ask(app, method="POST", path="/api/health").status_code == 401
    assert inner.runs == []
    assert ask(app, method="GET", path="/api/health").status_code == 200
    assert ask(app, method="GET", path="/v2/dashboard").status_code == 200
    assert ask(app, **right).status_code == 200


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"host": "ingot.example"}, 200),
        ({"host": "ingot.example", "origin": "https://ingot.example"}, 200),
        ({"host": "ingot.example", "origin": "http://ingot.example"}, 403),
        ({"host": "ingot.example", "origin": "https://evil.example"}, 403),
        ({"host": "evil.example", "origin": "https://ingot.example"}, 403),
        ({"origin": "https://ingot.example"}, 403),
        ({}, 200),
    ],
)
def test_a_proxys_own_address_is_let_in_and_no_other(headers, status):
    inner = Inner()
    assert ask(asgi.Loopback(inner, "https://ingot.example"), **headers).status_code == status
    assert len(inner.runs) == (status == 200)


class Away:
    """In place of Prefect without its database: 500 and the error itself, `times` times."""

    def __init__(self, times, error=None):
        self.times, self.calls = times, 0
        self.error = error or ConnectionRefusedError(111, "Connect call failed")

    async def __call__(self, scope, receive, send):
        self.calls += 1
        is_away = self.calls <= self.times
        await send(
            {"type": "http.response.start", "status": 500 if is_away else 200, "headers": []}
        )
        await send({"type": "http.response.body", "body": b"whole"})
        if is_away:
            raise self.error


def test_a_request_waits_while_the_database_is_away():
    inner = Away(3)
    reply = ask(asgi.Retry(inner, seconds=60, wait=0.0))
    assert (reply.status_code, reply.text, inner.calls) == (200, "whole", 4)


def test_a_database_that_stays_away_is_said_in_words_and_when_to_ask_again():
    reply = ask(asgi.Retry(Away(1000), wait=0.0, away_seconds=0.0))
    assert (reply.status_code, reply.json()) == (503, {"detail": asgi.AWAY})
    assert reply.headers["retry-after"] == "5"


def test_an_error_of_the_program_is_answered_at_once():
    inner = Away(1, ValueError("broken"))
    with pytest.raises(ValueError, match="broken"):
        ask(asgi.Retry(inner, seconds=60, wait=0.0))
    assert inner.calls == 1


def test_a_probe_is_not_kept_waiting():
    inner = Away(1000)
    with pytest.raises(ConnectionRefusedError):
        ask(asgi.Retry(inner, seconds=60, wait=0.0), method="GET", path="/api/ready")
    assert inner.calls == 1


def test_an_outage_is_a_line_a_minute_in_the_log():
    def record(error):
        return logging.LogRecord(
            "n", logging.ERROR, "f", 1, "failed", (), (type(error), error, None)
        )

    quiet = asgi.QuietOutage(every=3600.0)
    first, second = (record(ConnectionRefusedError("refused")) for _ in range(2))
    assert [quiet.filter(one) for one in (first, second)] == [True, False]
    assert first.getMessage() == "the database does not answer: refused"
    assert first.exc_info is None
    other = record(ValueError("broken"))
    assert quiet.filter(other)
    assert other.exc_info is not None
    assert asgi.QuietOutage(every=0.0).filter(record(TimeoutError()))


def test_a_message_waits_for_the_database_and_is_not_put_aside():
    from flows.orchestration.messaging import patient

    calls = []

    async def handler(message):
        calls.append(message)
        if len(calls) < 4:
            raise ConnectionRefusedError

    asyncio.run(patient(handler, wait=0.0)("heartbeat"))
    assert calls == ["heartbeat"] * 4

    async def broken(message):
        raise ValueError("broken")

    async def slow(message):
        raise TimeoutError

    for bad, error in ((broken, ValueError), (slow, TimeoutError)):
        with pytest.raises(error):
            asyncio.run(patient(bad, wait=0.0, most=0.0)("heartbeat"))


def test_prefect_takes_the_broker():
    from prefect.server.utilities.messaging import BrokerModule

    from flows.orchestration import messaging

    assert isinstance(messaging, BrokerModule)


def test_the_check_of_a_form_is_not_given_the_passwords(monkeypatch, tmp_path):
    seen = tmp_path / "seen"
    fake = tmp_path / "python"
    fake.write_text(f"#!/bin/sh\nenv > {seen}\necho '{{\"problem\": null}}'\n")
    fake.chmod(0o755)
    monkeypatch.setattr(asgi.sys, "executable", str(fake))
    for name in asgi.SECRETS:
        monkeypatch.setenv(name, "hunter2")
    assert ask(asgi.Admission(Inner())).status_code == 200
    assert "PATH=" in seen.read_text()
    assert "hunter2" not in seen.read_text()


@pytest.mark.parametrize(
    ("one_writer", "path", "most"),
    [(True, "/api/logs/", 1), (True, "/api/flow_runs/filter", 3), (False, "/api/logs/", 3)],
)
def test_requests_that_write_take_turns_where_the_database_has_one_writer(one_writer, path, most):
    at_once = []
    running = 0

    async def app(scope, receive, send):
        nonlocal running
        running += 1
        at_once.append(running)
        for _ in range(5):
            await asyncio.sleep(0)
        running -= 1
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"{}"})

    async def go():
        transport = httpx.ASGITransport(app=asgi.Retry(app, one_writer=one_writer))
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
            return await asyncio.gather(*(client.post(path, json={}) for _ in range(3)))

    assert [reply.status_code for reply in asyncio.run(go())] == [200] * 3
    assert max(at_once) == most
