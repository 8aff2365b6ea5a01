"""What every page and protocol on loopback shares: who may ask, the key, the socket, the server.

A request must name this server as its host, so that no page of another site can reach it by a name
that leads here; it must come from no other site; and it must carry the key, which is in a file that
its owner alone can read. A page holds its one script and one style itself.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import logging
import os
import re
import secrets
import socket
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

import uvicorn
from pydantic import BaseModel, ValidationError
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp, ExceptionHandler, Receive, Scope, Send

from artifacts_schema.errors import IngotError, UsageError

MOST_BODY_BYTES = 4 * 2**20
AnyBody = TypeVar("AnyBody", bound=BaseModel)


def page_policy(page: str) -> str:
    """The policy of a page whose one script and one style it holds itself: by their hashes.

    What a model writes into the page can be neither (CSP, level 2: hash sources).
    """

    def hashed(tag: str) -> str:
        (text,) = re.findall(f"<{tag}>(.*?)</{tag}>", page, re.DOTALL)
        return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()

    return (
        f"default-src 'none'; script-src 'sha256-{hashed('script')}'; "
        f"style-src 'sha256-{hashed('style')}'; connect-src 'self'; base-uri 'none'; "
        "form-action 'none'; frame-ancestors 'none'"
    )


class Refused(Exception):
    """An answer in the protocol's form for errors."""

    def __init__(self, status: int, message: str, code: str, **headers: str) -> None:
        super().__init__(message)
        self.status, self.code, self.headers = status, code, headers

    def response(self) -> Response:
        """As clients read it."""
        kind = "server_error" if self.status >= 500 else "invalid_request_error"
        error = {"message": str(self), "type": kind, "param": None, "code": self.code}
        return JSONResponse({"error": error}, self.status, self.headers)


class Guard:
    """Lets requests through that name this server as host, come from no other site, and have the
    key; the page alone needs none."""

    def __init__(self, app: ASGIApp, hosts: frozenset[str], key: str) -> None:
        self.app, self.hosts, self.key = app, hosts, key.encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """See the class."""
        if scope["type"] == "http":
            refused = self._refuse(Request(scope))
            if refused is not None:
                await refused.response()(scope, receive, send)
                return
        await self.app(scope, receive, send)

    def _refuse(self, request: Request) -> Refused | None:
        if request.headers.get("host", "").lower() not in self.hosts:
            return Refused(421, "this server has another name", "wrong_host")
        origin = request.headers.get("origin")
        if origin is not None and origin.lower() not in {f"http://{one}" for one in self.hosts}:
            return Refused(403, "no other site may ask this server", "wrong_origin")
        if request.url.path == "/":
            return None
        scheme, _, key = request.headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer" and hmac.compare_digest(key.strip().encode(), self.key):
            return None
        headers = {"WWW-Authenticate": "Bearer"}
        return Refused(401, "the key is missing or wrong", "invalid_api_key", **headers)


def make_guarded(page: str, routes: list[BaseRoute], *, hosts: frozenset[str], key: str) -> ASGIApp:
    """The application: `routes`, and a page at `/`; `hosts` are the Host headers that it takes."""
    policy = page_policy(page)

    async def send_page(request: Request) -> Response:
        return HTMLResponse(
            page,
            headers={
                "Content-Security-Policy": policy,
                "X-Content-Type-Options": "nosniff",
                "Referrer-Policy": "no-referrer",
            },
        )

    async def refused(request: Request, error: Exception) -> Response:
        assert isinstance(error, Refused)
        return error.response()

    async def no_route(request: Request, error: Exception) -> Response:
        return Refused(404, "no such route", "not_found").response()

    handlers: dict[type[Exception] | int, ExceptionHandler] = {Refused: refused, 404: no_route}
    app = Starlette(routes=[Route("/", send_page), *routes], exception_handlers=handlers)
    return Guard(app, hosts, key)


async def read_body(request: Request, kind: type[AnyBody]) -> AnyBody:
    """The body of a request, checked; Refused says what is wrong with it."""
    raw = b""
    async for part in request.stream():
        raw += part
        if len(raw) > MOST_BODY_BYTES:
            raise Refused(413, f"the body has over {MOST_BODY_BYTES:,} bytes", "body_too_large")
    try:
        return kind.model_validate_json(raw)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
        place = ".".join(map(str, first["loc"]))
        text = first["msg"].removeprefix("Value error, ")
        raise Refused(400, f"{place}: {text}" if place else text, "invalid_body") from None


def host_names(listener: socket.socket) -> frozenset[str]:
    """The values of the Host header that name a server on this socket."""
    port = listener.getsockname()[1]
    names = frozenset(f"{host}:{port}" for host in ("127.0.0.1", "localhost"))
    return names | (frozenset(("127.0.0.1", "localhost")) if port == 80 else frozenset())


def run_server(app: ASGIApp, listener: socket.socket) -> None:
    """Serve until Ctrl-C or SIGTERM."""
    config = uvicorn.Config(
        app,
        log_level="error",
        access_log=False,
        lifespan="off",
        server_header=False,
        timeout_graceful_shutdown=2,
    )
    logging.getLogger("uvicorn.error").setLevel(logging.ERROR)
    with suppress(KeyboardInterrupt):
        uvicorn.Server(config).run(sockets=[listener])


def listen(port: int) -> socket.socket:
    """A socket on loopback, to be opened before a model is loaded; UsageError for a port in use."""
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind(("127.0.0.1", port))
        listener.listen(128)
    except OSError as error:
        listener.close()
        raise UsageError(
            f"port {port} cannot be had: {error.strerror}",
            where="--port",
            hint="name another one; 0 takes any that is free",
        ) from None
    return listener


def key_path(option: str | None, name: str) -> Path:
    """The file that an option names, by default `name` in $INGOT_HOME."""
    if option is not None:
        return Path(option).absolute()
    folder = Path(os.environ.get("INGOT_HOME", "~/.ingot")).expanduser().absolute()
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return folder / name


def read_key(path: Path) -> str:
    """The key in a file that only its owner can read; a new one where there is none.

    IngotError for a file that others can read, or that holds something else.
    """
    if not path.is_symlink() and not path.exists():
        try:
            number = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
            with open(number, "w", encoding="ascii") as file:
                file.write(secrets.token_urlsafe(32) + "\n")
        except FileExistsError:  # Another server was faster: use its key.
            pass
        except OSError as error:
            raise IngotError(f"cannot write the key: {error.strerror}", where=str(path)) from None
    try:
        number = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError as error:
        raise IngotError(f"cannot read the key: {error.strerror}", where=str(path)) from None
    with open(number, encoding="utf-8", errors="replace") as file:
        about = os.fstat(number)
        if about.st_uid != os.geteuid() or about.st_mode & 0o077:
            raise IngotError(
                "others can read the key", where=str(path), hint="chmod 600, or delete the file"
            )
        key = file.read(1000).strip()
    if len(key) < 16 or not key.isascii() or not key.isprintable() or " " in key:
        raise IngotError(
            "this is no key: 16 or more letters and digits", where=str(path), hint="delete the file"
        )
    return key
