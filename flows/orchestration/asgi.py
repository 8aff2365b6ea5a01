"""Our own Prefect server: `python -P -m flows.orchestration.asgi FILE`, on loopback.

Prefect's server with its own authentication, behind four middlewares: `Loopback` lets in no web
page of another origin, `SignIn` nobody without the password, `Admission` refuses a run whose form
cannot run before it is queued, and `Retry` asks again if the database was locked or away.

Prefect checks each field of a form against its schema. What crosses fields (a reference that does
not exist, a recipe that overrides break) is checked by `Admission` when the run is requested: the
same validation as the command line's, in a process of its own, so that it sees the current code.
If the check itself fails, the run is let through; the flow checks again.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import re
import socket
import sys
import time
from contextlib import nullcontext
from typing import Any
from urllib.parse import urlsplit

import httpx
from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from flows.orchestration.database import PASSWORD_VARIABLE, is_away
from flows.orchestration.local_state import is_password, read_password
from flows.orchestration.service_settings import load_settings

CHECK_SECONDS = 30.0
RETRY_SECONDS = 30.0
AWAY_SECONDS = 50.0
"""While the database is away: less than the 60 seconds after which Prefect's clients give up."""
RETRY_WAIT_SECONDS = 0.5
BUSY = (
    "the Prefect server is busy (its database is locked): try again in a moment; for many runs at "
    "a time give it PostgreSQL, `ingot up --database`"
)
AWAY = "the database of the Prefect server does not answer: try again when PostgreSQL is back"
RETRY_AFTER = {"retry-after": "5"}
"""Seconds that Prefect's clients wait; without it they wait twice as long after each attempt."""
SECRETS = (PASSWORD_VARIABLE, "PREFECT_SERVER_API_AUTH_STRING")
"""Variables that this process sets itself; its children do not get them."""
PROBES = ("/api/health", "/api/ready")
READS = ("/filter", "/count", "/history", "/paginate", "/next")
"""Ends of the paths of queries that are POST requests."""
LOOPBACK = ("127.0.0.1", "localhost", "::1")
POLICY = (
    "connect-src 'self' ws://127.0.0.1:* ws://localhost:*; img-src 'self' data: blob:; "
    "frame-ancestors 'none'; object-src 'none'; base-uri 'self'"
)
_RUN = re.compile(r"/api/deployments/([0-9a-f-]{36})/create_flow_run/?")

log = logging.getLogger(__name__)


class Loopback:
    """Rejects requests of other origins, and keeps the UI from calling other hosts.

    A web page must not start programs here; and Prefect's UI fetches the settings of its analytics
    from their maker even if analytics are off.
    """

    def __init__(self, app: ASGIApp, address: str | None = None) -> None:
        self.app = app
        self.address = address
        """The origin of a reverse proxy that passes on its own `Host` and `Origin`."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on requests of this machine's programs and of the UI itself."""

        async def answer(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).append("content-security-policy", POLICY)
            await send(message)

        if scope["type"] == "lifespan" or _is_own(Headers(scope=scope), self.address):
            await self.app(scope, receive, answer)
        elif scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})
        else:
            why = "only for programs and pages of this machine"
            await _error(403, why)(scope, receive, send)


class SignIn:
    """Answers 401 to API calls without the password, before their body is read.

    Prefect checks the password again. The UI's own pages hold no data and need none.
    """

    def __init__(self, app: ASGIApp, password: str) -> None:
        self.app, self.password = app, password

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on requests with the password; websockets send it in their first message."""
        is_open = scope["type"] != "http" or not scope["path"].startswith("/api")
        is_probe = not is_open and scope["path"] in PROBES and scope["method"] in ("GET", "HEAD")
        header = None if is_open or is_probe else Headers(scope=scope).get("authorization")
        if is_open or is_probe or is_password(header, self.password):
            await self.app(scope, receive, send)
        else:
            why = "sign in with the line of the file that `ingot up` names"
            await _error(401, why)(scope, receive, send)


class Admission:
    """Checks the parameters of a run of Ingot's before Prefect queues it."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer 422 with the reason if the run cannot run; else pass the request on."""
        match = _RUN.fullmatch(scope["path"]) if scope["type"] == "http" else None
        if match is None or scope["method"] != "POST":
            await self.app(scope, receive, send)
            return
        body = await _body(receive)
        try:
            problem = await self._problem(match[1], body, Headers(scope=scope))
        except Exception:
            log.warning("a form was not checked before its run was queued", exc_info=True)
            problem = None
        if problem:
            await _error(422, problem)(scope, receive, send)
        else:
            await self.app(scope, _replay(body, receive), send)

    async def _problem(self, id: str, body: bytes, headers: Headers) -> str | None:
        """Why the run cannot run; None if it can, or if it is not a run of Ingot."""
        form = json.loads(body or b"{}").get("parameters") or {}
        sign_in = {name: headers[name] for name in ("authorization",) if name in headers}
        transport = httpx.ASGITransport(app=self.app)
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            reply = await client.get(f"/api/deployments/{id}", headers=sign_in)
        if not reply.is_success:
            return None  # Prefect answers the request itself in the same way and starts nothing.
        deployment = reply.json()
        parameters = {**deployment["parameters"], **form}
        if not str(deployment.get("entrypoint")).startswith("flows.orchestration."):
            return None
        if any(isinstance(value, dict) for value in parameters.values()):
            return None  # A template of Prefect's, filled in when the run is made.
        return await _run_check({"entrypoint": deployment["entrypoint"], "parameters": parameters})


class Retry:
    """Retries requests that failed because the database was locked, or did not answer.

    Prefect answers 503 where SQLite's database is locked, and 500 where PostgreSQL cannot be
    reached. Its clients retry the first by themselves; its UI does not, and shows nothing.

    With `one_writer`, requests that write take turns. SQLite has one writer at a time, and
    transactions of Prefect's read before they write: of two at once, the one that began before the
    other's commit fails, however long it would wait.
    """

    def __init__(
        self,
        app: ASGIApp,
        seconds: float = RETRY_SECONDS,
        wait: float = RETRY_WAIT_SECONDS,
        away_seconds: float = AWAY_SECONDS,
        one_writer: bool = False,
    ) -> None:
        self.app, self.wait = app, wait
        self.turn = asyncio.Lock() if one_writer else None
        self.seconds = {BUSY: seconds, AWAY: away_seconds}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on the first other answer; when time is up, an answer that says what is wrong."""
        path = scope["path"] if scope["type"] == "http" else ""
        if not path.startswith("/api/") or path in PROBES:
            await self.app(scope, receive, send)
            return
        body, start = await _body(receive), time.monotonic()
        is_write = scope["method"] not in ("GET", "HEAD") and not path.endswith(READS)
        turn = self.turn if is_write and self.turn is not None else nullcontext()
        while True:
            async with turn:
                problem = await self._attempt(scope, _replay(body, receive), send)
            if problem is None:
                return
            if time.monotonic() - start >= self.seconds[problem]:
                await JSONResponse({"detail": problem}, 503, RETRY_AFTER)(scope, receive, send)
                return
            await asyncio.sleep(self.wait)

    async def _attempt(self, scope: Scope, receive: Receive, send: Send) -> str | None:
        """Send the answer; if it is one to be retried, send nothing and return what is wrong."""
        kept: list[Message] = []

        async def answer(message: Message) -> None:
            if kept or message.get("status") in (500, 503):
                kept.append(message)
            else:
                await send(message)

        failure: Exception | None = None
        try:
            await self.app(dict(scope), receive, answer)
        except Exception as error:  # Starlette raises it again after it has answered.
            failure = error
        if is_away(failure):
            return AWAY
        if kept and kept[0]["status"] == 503:
            return BUSY
        for message in kept:
            await send(message)
        if failure is not None:
            raise failure
        return None


class QuietOutage(logging.Filter):
    """While the database is away: one line a minute, in place of a traceback for each attempt."""

    def __init__(self, every: float = 60.0) -> None:
        super().__init__()
        self.every, self.next = every, 0.0

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether the record is written."""
        error = record.exc_info[1] if record.exc_info else None
        if not is_away(error):
            return True
        if time.monotonic() < self.next:
            return False
        self.next = time.monotonic() + self.every
        record.msg, record.args = "the database does not answer: %s", (error,)
        record.exc_info = record.exc_text = None
        return True


async def _run_check(run: dict[str, Any]) -> str | None:
    """Run `flows.orchestration.forms`, which prints what is wrong."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-P", "-m", "flows.orchestration.forms",
        stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
        env={name: value for name, value in os.environ.items() if name not in SECRETS},
    )  # fmt: skip
    try:
        output, _ = await asyncio.wait_for(
            process.communicate(json.dumps(run).encode()), CHECK_SECONDS
        )
    finally:
        if process.returncode is None:
            process.kill()
    return json.loads(output)["problem"]


def _is_own(headers: Headers, address: str | None) -> bool:
    host, origin = headers.get("host", ""), headers.get("origin")
    if address is not None and host == urlsplit(address).netloc:
        return origin in (None, address)
    try:
        if urlsplit(f"//{host}").hostname not in LOOPBACK:
            return False
        return origin is None or urlsplit(origin).netloc == host
    except ValueError:  # An address such as `[`.
        return False


async def _body(receive: Receive) -> bytes:
    parts = []
    while True:
        message = await receive()
        parts.append(message.get("body", b""))
        if not message.get("more_body"):
            return b"".join(parts)


def _replay(body: bytes, receive: Receive) -> Receive:
    """A `receive` that returns the body again, then the messages that follow."""
    waiting: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def again() -> Message:
        return waiting.pop() if waiting else await receive()

    return again


def _error(status: int, why: str) -> JSONResponse:
    return JSONResponse({"detail": why}, status)


GRACE_SECONDS = 3


def main(file: int) -> None:
    """Serve on the listening socket with this file number, until told to end."""
    os.umask(0o077)
    # Uvicorn closes its copy before its last requests end; ours holds the port until we have ended.
    listener = socket.socket(fileno=file)
    listener.set_inheritable(False)
    # Prefect reads its settings when it is imported. What is set here stands in no command line,
    # and not in what the system shows as this process's environment.
    password = os.environ["PREFECT_SERVER_API_AUTH_STRING"] = read_password()
    settings = load_settings()
    if settings.database is not None and (secret := settings.database.read_password()):
        os.environ[PASSWORD_VARIABLE] = secret
    import uvicorn
    from prefect.server.api.server import create_app

    config = uvicorn.Config(
        Loopback(
            SignIn(
                Admission(Retry(create_app(final=True), one_writer=settings.database is None)),
                password,
            ),
            settings.address,
        ),
        log_level="warning",
        timeout_graceful_shutdown=GRACE_SECONDS,
    )

    class Server(uvicorn.Server):
        """Thins the log lines of an outage, once all handlers of logging are there."""

        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            await super().startup(sockets)  # Prefect sets up its logging here once more.
            quiet = QuietOutage()
            for name in ("", "prefect", "uvicorn", "fastapi"):
                for handler in logging.getLogger(name).handlers:
                    handler.addFilter(quiet)

    Server(config).run(sockets=[listener.dup()])


if __name__ == "__main__":
    main(int(sys.argv[1]))
