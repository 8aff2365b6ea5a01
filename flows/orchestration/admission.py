"""What stands before our Prefect server: another origin, a stranger, a run that cannot run.

Prefect checks each field of a form against its schema. What crosses fields (a reference that does
not exist, a recipe that overrides break) is checked here, when the run is asked for: the same
validation as the command line's, in a process of its own, so that it sees the code as it is now.
Whatever goes wrong in the checking itself lets the run through; the flow checks again.
"""

from __future__ import annotations

import asyncio
import json
import logging
import re
import sys
import time
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any
from urllib.parse import urlsplit

import httpx

from flows.orchestration.password import is_password

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Message, Receive, Send], Awaitable[None]]

CHECK_SECONDS = 30.0
RETRY_SECONDS = 30.0
RETRY_WAIT_SECONDS = 0.5
BUSY = "the Prefect server is busy (its database is locked): try again in a moment"
PROBES = ("/api/health", "/api/ready")
LOOPBACK = ("127.0.0.1", "localhost", "::1")
POLICY = (
    "connect-src 'self' ws://127.0.0.1:* ws://localhost:*; img-src 'self' data: blob:; "
    "frame-ancestors 'none'; object-src 'none'; base-uri 'self'"
)
_RUN = re.compile(r"/api/deployments/([0-9a-f-]{36})/create_flow_run/?")

log = logging.getLogger(__name__)


class Loopback:
    """Keeps to this machine: no page of another origin gets in, the UI asks no other host.

    A page of the web may not start programs here; and Prefect's UI fetches the settings of its
    analytics from their maker even where analytics are off.
    """

    def __init__(self, app: App) -> None:
        self.app = app

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Pass on what comes from this machine's own tools and from the UI itself."""

        async def answer(message: Message) -> None:
            if message["type"] == "http.response.start":
                policy = (b"content-security-policy", POLICY.encode())
                message["headers"] = [*message.get("headers", ()), policy]
            await send(message)

        if scope["type"] == "lifespan" or _is_own(_headers(scope)):
            await self.app(scope, receive, answer)
        elif scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})
        else:
            await _refuse(send, 403, "only for programs and pages of this machine")


class SignIn:
    """Answers 401 to calls of the API without the password, before anything is read of them.

    Prefect asks for it again. The UI's own pages hold nothing, and say whether a server lives.
    """

    def __init__(self, app: App, password: str) -> None:
        self.app, self.password = app, password

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Pass on what carries the password; websockets carry it in their first message."""
        is_open = scope["type"] != "http" or not scope["path"].startswith("/api")
        is_probe = not is_open and scope["path"] in PROBES and scope["method"] in ("GET", "HEAD")
        given = None if is_open or is_probe else _headers(scope).get("authorization")
        if is_open or is_probe or is_password(given, self.password):
            await self.app(scope, receive, send)
        else:
            await _refuse(send, 401, "sign in with the line of the file that `ingot up` names")


class Admission:
    """Checks the parameters of a run of Ingot's before Prefect queues it."""

    def __init__(self, app: App) -> None:
        self.app = app

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Answer 422 with the reason if the run cannot run; else pass the request on."""
        asked = _RUN.fullmatch(scope["path"]) if scope["type"] == "http" else None
        if asked is None or scope["method"] != "POST":
            await self.app(scope, receive, send)
            return
        body = await _body(receive)
        try:
            problem = await self._problem(asked[1], body, _headers(scope))
        except Exception:
            log.warning("a form was not checked before its run was queued", exc_info=True)
            problem = None
        if problem:
            await _refuse(send, 422, problem)
        else:
            await self.app(scope, _replay(body, receive), send)

    async def _problem(self, id: str, body: bytes, headers: dict[str, str]) -> str | None:
        """Why the run cannot run; None if it can, or if it is none of ours."""
        given = json.loads(body or b"{}").get("parameters") or {}
        known = {name: headers[name] for name in ("authorization",) if name in headers}
        transport = httpx.ASGITransport(app=self.app)
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            reply = await client.get(f"/api/deployments/{id}", headers=known)
        if not reply.is_success:
            return None  # Prefect answers this request alike, so nothing is started for it.
        found = reply.json()
        parameters = {**found["parameters"], **given}
        if not str(found.get("entrypoint")).startswith("flows.orchestration."):
            return None
        if any(isinstance(value, dict) for value in parameters.values()):
            return None  # A template of Prefect's, filled in when the run is made.
        return await _check({"entrypoint": found["entrypoint"], "parameters": parameters})


class Retry:
    """Asks again where Prefect answers 503, which means that it did nothing and can be asked again.

    A database of SQLite is locked now and then on a busy machine. Prefect's clients ask again by
    themselves; its UI does not, and shows nothing.
    """

    def __init__(
        self, app: App, seconds: float = RETRY_SECONDS, wait: float = RETRY_WAIT_SECONDS
    ) -> None:
        self.app, self.seconds, self.wait = app, seconds, wait

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Pass on the first answer that is not 503; after `seconds` an answer that says so."""
        if scope["type"] != "http" or not scope["path"].startswith("/api/"):
            await self.app(scope, receive, send)
            return
        body, end = await _body(receive), time.monotonic() + self.seconds
        while True:
            is_busy = False

            async def answer(message: Message) -> None:
                nonlocal is_busy
                if message["type"] == "http.response.start":
                    is_busy = message["status"] == 503
                if not is_busy:
                    await send(message)

            try:
                await self.app(dict(scope), _replay(body, receive), answer)
            except Exception:
                if not is_busy:  # Starlette raises the error again after it has answered.
                    raise
            if not is_busy:
                return
            if time.monotonic() >= end:
                await _refuse(send, 503, BUSY)
                return
            await asyncio.sleep(self.wait)


async def _check(asked: dict[str, Any]) -> str | None:
    """Run `flows.orchestration.check`, which prints what is wrong."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-P", "-m", "flows.orchestration.check",
        stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
    )  # fmt: skip
    try:
        said, _ = await asyncio.wait_for(
            process.communicate(json.dumps(asked).encode()), CHECK_SECONDS
        )
    finally:
        if process.returncode is None:
            process.kill()
    return json.loads(said)["problem"]


def _is_own(headers: dict[str, str]) -> bool:
    host, origin = headers.get("host", ""), headers.get("origin")
    try:
        if urlsplit(f"//{host}").hostname not in LOOPBACK:
            return False
        return origin is None or urlsplit(origin).netloc == host
    except ValueError:  # An address such as `[`.
        return False


def _headers(scope: Message) -> dict[str, str]:
    return {
        name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]
    }


async def _body(receive: Receive) -> bytes:
    parts = []
    while True:
        message = await receive()
        parts.append(message.get("body", b""))
        if not message.get("more_body"):
            return b"".join(parts)


def _replay(body: bytes, receive: Receive) -> Receive:
    """A `receive` that gives the body once more, then whatever comes."""
    waiting: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def again() -> Message:
        return waiting.pop() if waiting else await receive()

    return again


async def _refuse(send: Send, status: int, why: str) -> None:
    headers = [(b"content-type", b"application/json")]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": json.dumps({"detail": why}).encode()})
