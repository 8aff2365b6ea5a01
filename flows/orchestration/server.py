"""The Prefect API that a run talks to: the one that is configured, or one of our own on loopback.

The local server is started in the background, kept, and found again by a small state file, so that
a finished run can still be looked at. `ingot up` and `ingot down` start and stop it by hand.
"""

from __future__ import annotations

import http.client
import json
import os
import socket
import sys
import tomllib
import urllib.error
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from artifacts_schema.errors import IngotError, UsageError
from flows.orchestration import background
from flows.orchestration.background import (
    home,
    log_of,
    one_at_a_time,
    private_folder,
    wait_until,
)
from flows.orchestration.password import (
    authorization,
    make_password,
    password_file,
    read_password,
)

HOST = "127.0.0.1"
PORT = 4200
START_SECONDS = 120.0
STOP_SECONDS = 10.0
DATABASE_SECONDS = "60"
"""Prefect's own are 10 and 5: too short where training keeps every core busy."""
AUTHENTICATION = "PREFECT_API_AUTH_STRING"
"""Prefect's clients take the password of a server from this variable."""
NAME = "prefect"
_chosen: set[str] = set()
"""APIs of our own that `use` has put into the environment: nobody configured those."""

Tell = Callable[[str], None]


@dataclass(frozen=True)
class Server:
    """A Prefect server: its API's URL, and its process if it is ours."""

    api: str
    process: int | None = None

    @property
    def ui(self) -> str:
        """Address of the UI."""
        return self.api.removesuffix("/api")


def find_server() -> Server | None:
    """The server that a run would use now: configured, or ours if it answers."""
    standing, configured = _standing(), _configured()
    if configured and (standing is None or standing.api != configured):
        return Server(configured)
    return standing if standing is not None and answers(standing) else None


def server_at(api: str) -> Server:
    """The server at `api`: ours, if it is ours that serves it."""
    standing = _standing()
    return standing if standing is not None and standing.api == api else Server(api)


def ensure_server(tell: Tell = lambda line: None, port: int | None = None) -> Server:
    """The configured server, which must answer; else ours, started in the background if need be.

    Ours listens on `port`; if None, on 4200 or, where that is taken, on any that is free. Raises
    UsageError for a port that is taken, and for a server of another version than the client's.
    """
    with one_at_a_time():
        standing, configured = _standing(), _configured()
        if configured and (standing is None or standing.api != configured):
            server = Server(configured)
            if not answers(server):
                raise IngotError(
                    "the Prefect API does not answer",
                    where=configured,
                    hint="start it, unset PREFECT_API_URL to use a local one, or add --no-prefect",
                )
        elif standing is not None:
            server = _joined(standing, port)
        else:
            tell("starting a Prefect server in the background (some seconds the first time)")
            server = _start(_listener(port))
            tell(f"Prefect UI: {server.ui}")
        check_password(server)
        _check_version(server)
        return server


def check_password(server: Server) -> None:
    """IngotError if our own server does not take the password in the file; others are not asked.

    The password goes to our own process only: it holds the port for as long as it lives.
    """
    if server.process is None:
        return
    if _standing() != server:
        raise IngotError(
            "the local server has ended", where=server.api, hint=f"its log is {log_of(NAME)}"
        )
    if _status(f"{server.api}/admin/version", read_password()) == 401:
        raise IngotError(
            f"the server at {server.ui} was started with another password",
            where=str(password_file()),
            hint="put it back, or `ingot down` and the same command again",
        )


def use(server: Server) -> None:
    """Point this process and its children at `server`; must come before Prefect is imported."""
    os.environ["PREFECT_API_URL"] = server.api
    if server.process is not None:
        _chosen.add(server.api)
        os.environ.setdefault("PREFECT_HOME", server_environment()["PREFECT_HOME"])
        os.environ[AUTHENTICATION] = read_password()
        _leave_proxies_out()
    defaults = {
        "PREFECT_LOGGING_HANDLERS_CONSOLE_LEVEL": "CRITICAL",
        "PREFECT_CLIENT_MAX_RETRIES": "2",
        "PREFECT_FLOWS_HEARTBEAT_FREQUENCY": "30",
        "DO_NOT_TRACK": "1",
    }
    for name, value in defaults.items():
        os.environ.setdefault(name, value)


def _leave_proxies_out() -> None:
    """Let no client of this process send the password through a proxy."""
    for name in ("no_proxy", "NO_PROXY"):
        hosts = [host for host in os.environ.get(name, "").split(",") if host]
        if HOST not in hosts:
            os.environ[name] = ",".join([*hosts, HOST])


def stop_server() -> Server | None:
    """Stop our own server; returns it, or None if there was none."""
    with one_at_a_time():
        process = background.stop(NAME, STOP_SECONDS)
        return Server(process.facts["api"], process.process) if process else None


def answers(server: Server, timeout: float = 2.0) -> bool:
    """Whether the API says that it is well."""
    return _get(f"{server.api}/health", timeout) is True


def server_version(server: Server) -> str | None:
    """Prefect's version there; None if it does not say (another product, or not without a key)."""
    password = read_password() if server.process is not None else None
    told = _get(f"{server.api}/admin/version", 5.0, password)
    return told if isinstance(told, str) else None


def server_environment() -> dict[str, str]:
    """Settings of our server: its own database, nothing sent anywhere, its UI at any address."""
    return {
        "PREFECT_HOME": str(home() / "prefect"),
        "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
        "DO_NOT_TRACK": "1",
        "PREFECT_LOGGING_TO_API_ENABLED": "true",
        "PREFECT_UI_API_URL": "/api",
        "PREFECT_SERVER_DATABASE_TIMEOUT": DATABASE_SECONDS,
        "PREFECT_SERVER_DATABASE_CONNECTION_TIMEOUT": DATABASE_SECONDS,
        "PREFECT_SERVER_UI_SHOW_PROMOTIONAL_CONTENT": "false",
    }


def listen(port: int, or_any: bool = False) -> socket.socket:
    """A socket that listens on `port` of loopback; on any, if it is taken and `or_any` is set.

    OSError for a port that is taken. A free port must not be chosen first and opened later by the
    child: another user could open it in between, and be sent the password.
    """
    try:
        return socket.create_server((HOST, port))
    except (OSError, OverflowError):
        if not or_any:
            raise
    return socket.create_server((HOST, 0))


def _standing() -> Server | None:
    process = background.find(NAME)
    return Server(process.facts["api"], process.process) if process else None


def _configured() -> str | None:
    """The API that the person has set up: by variable, or in Prefect's active profile."""
    url = os.environ.get("PREFECT_API_URL")
    if url and url not in _chosen:
        return url
    folder = Path(os.environ.get("PREFECT_HOME", "~/.prefect")).expanduser()
    try:
        profiles = tomllib.loads((folder / "profiles.toml").read_text())
        active = os.environ.get("PREFECT_PROFILE", profiles["active"])
        return str(profiles["profiles"][active]["PREFECT_API_URL"])
    except (OSError, KeyError, ValueError):
        return None


def _joined(server: Server, port: int | None) -> Server:
    """Our server that runs already; it is given time to come up."""
    if port is not None and server.api != f"http://{HOST}:{port}/api":
        raise UsageError(
            f"the local server already runs at {server.ui}",
            where=f"--port {port}",
            hint="leave --port out, or `ingot down` first",
        )
    if not wait_until(lambda: answers(server), START_SECONDS):
        raise IngotError(
            "the local server runs but does not answer",
            where=server.api,
            hint=f"`ingot down` ends it; its log is {log_of(NAME)}",
        )
    return server


def _check_version(server: Server) -> None:
    there, here = server_version(server), version("prefect")
    if there is None or there.split(".")[:2] == here.split(".")[:2]:
        return
    raise UsageError(
        f"the server is Prefect {there}, this is Prefect {here}",
        where=server.api,
        hint="`ingot down` and the same command start one of this version"
        if server.process is not None
        else f"install prefect {there}, unset PREFECT_API_URL for a local one, or add --no-prefect",
    )


def _listener(wanted: int | None) -> socket.socket:
    port = PORT if wanted is None else wanted
    try:
        return listen(port, or_any=wanted is None)
    except OSError:
        other = Server(f"http://{HOST}:{port}/api")
    use_it = f", or use the Prefect server there: PREFECT_API_URL={other.api}"
    raise UsageError(
        f"port {port} is taken by another program",
        hint=f"choose another with --port{use_it if answers(other) else ''}",
    )


def _start(listener: socket.socket) -> Server:
    with listener:
        make_password()
        private_folder(home() / "prefect")
        command = [sys.executable, "-P", "-m", "flows.orchestration.serve", str(listener.fileno())]
        api = f"http://{HOST}:{listener.getsockname()[1]}/api"
        process = background.start(NAME, command, server_environment(), {"api": api}, listener)
    server = Server(api, process.process)
    # The order counts: a process that lives after the answer held the port when it was given.
    if (
        wait_until(lambda: answers(server) or not process.lives(), START_SECONDS)
        and answers(server)
        and process.lives()
    ):
        return server
    background.stop(NAME, STOP_SECONDS)
    raise IngotError(
        "the Prefect server did not start",
        where=str(log_of(NAME)),
        hint="read the log, or add --no-prefect",
    )


def _get(url: str, timeout: float, password: str | None = None) -> object:
    """The JSON value at a URL; None if nothing sensible comes back."""
    try:
        with _opened(url, timeout, password) as reply:
            return json.loads(reply.read())
    except (OSError, http.client.HTTPException, ValueError):
        return None


def _status(url: str, password: str) -> int | None:
    """The HTTP status that a URL answers with; None if it does not answer."""
    try:
        with _opened(url, 5.0, password) as reply:
            return int(reply.status)
    except urllib.error.HTTPError as error:
        return error.code
    except (OSError, http.client.HTTPException):
        return None


def _opened(url: str, timeout: float, password: str | None) -> Any:
    """The reply of a URL; this machine's own is not asked for through a proxy."""
    headers = {} if password is None else {"Authorization": authorization(password)}
    request = urllib.request.Request(url, headers=headers)
    if urlsplit(url).hostname == HOST:
        return _DIRECT.open(request, timeout=timeout)
    return urllib.request.urlopen(request, timeout=timeout)


_DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}))
