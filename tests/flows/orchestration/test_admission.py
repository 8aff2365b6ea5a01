"""What stands before the server: other origins, runs that cannot run, and its own failures."""

from __future__ import annotations

import asyncio
import json
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
