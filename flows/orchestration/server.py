"""The Prefect API that a run talks to: the one that is configured, or one of our own on loopback.

The local server is started in the background, kept, and found again by a small state file, so that
a finished run can still be looked at. `ingot up` and `ingot down` start and stop it by hand.
"""

from __future__ import annotations

import os
import socket
import sys
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from urllib.parse import urlsplit

import httpx

from artifacts_schema.errors import IngotError, UsageError
from flows.orchestration import local_state
from flows.orchestration.local_state import (
    authorization,
    home,
    log_path,
    make_password,
    one_at_a_time,
    password_file,
    private_folder,
    read_password,
    wait_until,
)
from flows.orchestration.service_settings import (
    HEARTBEAT_SECONDS,
    ServiceSettings,
    load_settings,
    save_settings,
)

HOST = "127.0.0.1"
PORT = 4200
START_SECONDS = 120.0
STOP_SECONDS = 10.0
AUTHENTICATION = "PREFECT_API_AUTH_STRING"
"""Prefect's clients take the password of a server from this variable."""
SERVER = "prefect"
_own_apis: set[str] = set()
"""APIs of our own that `use_server` has put into the environment; no person configured those."""

PrintLine = Callable[[str], None]


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
    own, configured = _own_server(), _configured()
    if configured and (own is None or own.api != configured):
        return Server(configured)
    return own if own is not None and is_answering(own) else None


def server_at(api: str) -> Server:
    """The server at `api`: ours, if ours serves it."""
    own = _own_server()
    return own if own is not None and own.api == api else Server(api)


def ensure_server(
    tell: PrintLine = lambda line: None,
    port: int | None = None,
    settings: ServiceSettings | None = None,
) -> Server:
    """The configured server, which must answer; else ours, started in the background if necessary.

    Ours listens on `port`; if None, on 4200 or, where that is taken, on any that is free. It has
    `settings`; if None, those of the last start. Raises UsageError for a port that is taken, for
    settings that a running server does not have, for a server of another version than the client's
    and for one that rejects our credentials.
    """
    with one_at_a_time():
        own, configured = _own_server(), _configured()
        if configured and (own is None or own.api != configured):
            server = _check_configured(Server(configured), settings)
        elif own is not None:
            if settings is not None and settings != load_settings():
                raise UsageError(
                    f"the local server runs with other settings, in {load_settings().place}",
                    hint="`ingot down` first, then the same command",
                )
            server = _wait_until_ready(own, port)
        else:
            settings = load_settings() if settings is None else settings
            if settings.database is not None:
                settings.database.check()
            listener = _listener(port)
            save_settings(settings)
            tell("starting a Prefect server in the background (some seconds the first time)")
            server = _start_server(listener, settings)
            tell(f"Prefect UI: {server.ui}")
        check_password(server)
        _check_version(server)
        return server


def _check_configured(server: Server, settings: ServiceSettings | None) -> Server:
    """The configured server, if it answers and takes our credentials; it has its own settings."""
    if settings is not None and settings != load_settings():
        raise UsageError(
            "PREFECT_API_URL names a server, which has its own settings",
            where=server.api,
            hint="unset it to start one here",
        )
    if not is_answering(server):
        raise IngotError(
            "the Prefect API does not answer",
            where=server.api,
            hint="start it, unset PREFECT_API_URL to use a local one, or add --no-prefect",
        )
    _check_credentials(server)
    return server


def check_password(server: Server) -> None:
    """IngotError if our own server rejects the password in the file; others are not checked.

    The password is sent to our own process only, which holds its port while it lives.
    """
    if server.process is None:
        return
    if _own_server() != server:
        raise IngotError(
            "the local server has ended", where=server.api, hint=f"its log is {log_path(SERVER)}"
        )
    answer = _get(f"{server.api}/admin/version", password=read_password())
    if answer is not None and answer.status_code == 401:
        raise IngotError(
            f"the server at {server.ui} was started with another password",
            where=str(password_file()),
            hint="restore the file, or `ingot down` and the same command again",
        )


def use_server(server: Server) -> None:
    """Make this process and its children use `server`; call it before Prefect is imported."""
    os.environ["PREFECT_API_URL"] = server.api
    if server.process is not None:
        _own_apis.add(server.api)
        os.environ.setdefault("PREFECT_HOME", str(home() / "prefect"))
        os.environ[AUTHENTICATION] = read_password()
        _leave_proxies_out()
    defaults = {
        "PREFECT_LOGGING_HANDLERS_CONSOLE_LEVEL": "CRITICAL",
        "PREFECT_CLIENT_MAX_RETRIES": "2",
        "PREFECT_FLOWS_HEARTBEAT_FREQUENCY": HEARTBEAT_SECONDS,
        "DO_NOT_TRACK": "1",
    }
    for name, value in defaults.items():
        os.environ.setdefault(name, value)


def _leave_proxies_out() -> None:
    """Keep clients of this process from sending the password through a proxy."""
    for name in ("no_proxy", "NO_PROXY"):
        hosts = [host for host in os.environ.get(name, "").split(",") if host]
        if HOST not in hosts:
            os.environ[name] = ",".join([*hosts, HOST])


def stop_server() -> Server | None:
    """Stop our own server; returns it, or None if there was none."""
    with one_at_a_time():
        process = local_state.stop_process(SERVER, STOP_SECONDS)
        return Server(process.facts["api"], process.process) if process else None


def is_answering(server: Server, timeout: float = 2.0) -> bool:
    """Whether the API reports that it is healthy."""
    return _json(_get(f"{server.api}/health", timeout)) is True


def is_ready(server: Server, timeout: float = 2.0) -> bool:
    """Whether the API can use its database, too."""
    return _json(_get(f"{server.api}/ready", timeout)) is not None


def server_version(server: Server) -> str | None:
    """Prefect's version there; None if it is not given (another product, or a key is required)."""
    password = read_password() if server.process is not None else None
    value = _json(_get(f"{server.api}/admin/version", password=password))
    return value if isinstance(value, str) else None


def open_listener(port: int, or_any: bool = False) -> socket.socket:
    """A socket that listens on `port` of loopback; on any, if it is taken and `or_any` is set.

    OSError for a port that is taken. The child must not open a port that was chosen before: another
    user could open it in between and receive the password.
    """
    try:
        return socket.create_server((HOST, port))
    except (OSError, OverflowError):
        if not or_any:
            raise
    return socket.create_server((HOST, 0))


def _own_server() -> Server | None:
    process = local_state.find_process(SERVER)
    return Server(process.facts["api"], process.process) if process else None


def _configured() -> str | None:
    """The API that the user has configured: by variable, or in Prefect's active profile."""
    url = os.environ.get("PREFECT_API_URL")
    return url if url and url not in _own_apis else _profile_value("PREFECT_API_URL")


def _profile_value(name: str) -> str | None:
    folder = Path(os.environ.get("PREFECT_HOME", "~/.prefect")).expanduser()
    try:
        profiles = tomllib.loads((folder / "profiles.toml").read_text())
        active = os.environ.get("PREFECT_PROFILE", profiles["active"])
        return str(profiles["profiles"][active][name])
    except (OSError, KeyError, ValueError):
        return None


def _check_credentials(server: Server) -> None:
    """UsageError if the configured server wants a password and rejects the one that we have.

    A server that asks for a key (Prefect Cloud) is not checked.
    """
    if os.environ.get("PREFECT_API_KEY") or _profile_value("PREFECT_API_KEY"):
        return
    password = os.environ.get(AUTHENTICATION) or _profile_value(AUTHENTICATION)
    answer = _get(f"{server.api}/admin/version", password=password)
    if answer is not None and answer.status_code == 401:
        raise UsageError(
            "the server rejects this password: it was changed there"
            if password
            else "the server asks for a password",
            where=server.api,
            hint=f"{AUTHENTICATION}=USER:PASSWORD, as its owner has it now",
        )


def _wait_until_ready(server: Server, port: int | None) -> Server:
    """Our running server, once it answers."""
    if port is not None and server.api != f"http://{HOST}:{port}/api":
        raise UsageError(
            f"the local server already runs at {server.ui}",
            where=f"--port {port}",
            hint="omit --port, or `ingot down` first",
        )
    if not wait_until(lambda: is_answering(server), START_SECONDS):
        raise IngotError(
            "the local server runs but does not answer",
            where=server.api,
            hint=f"`ingot down` ends it; its log is {log_path(SERVER)}",
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
        return open_listener(port, or_any=wanted is None)
    except OSError:
        other = Server(f"http://{HOST}:{port}/api")
    use_it = f", or use the Prefect server there: PREFECT_API_URL={other.api}"
    raise UsageError(
        f"port {port} is taken by another program",
        hint=f"choose another with --port{use_it if is_answering(other) else ''}",
    )


def _start_server(listener: socket.socket, settings: ServiceSettings) -> Server:
    with listener:
        make_password()
        private_folder(home() / "prefect")
        command = [sys.executable, "-P", "-m", "flows.orchestration.asgi", str(listener.fileno())]
        ui = f"http://{HOST}:{listener.getsockname()[1]}"
        api = f"{ui}/api"
        environment = {**settings.environment(), "PREFECT_UI_URL": settings.address or ui}
        process = local_state.start_process(SERVER, command, environment, {"api": api}, listener)
    server = Server(api, process.process)
    # In this order: a process that lives after the answer held the port when it answered.
    if (
        wait_until(lambda: is_answering(server) or not process.lives(), START_SECONDS)
        and is_answering(server)
        and process.lives()
    ):
        return server
    local_state.stop_process(SERVER, STOP_SECONDS)
    raise IngotError(
        "the Prefect server did not start",
        where=str(log_path(SERVER)),
        hint="read the log, or add --no-prefect",
    )


def _get(url: str, timeout: float = 5.0, password: str | None = None) -> httpx.Response | None:
    """The response of a URL, through no proxy if it is on this machine; None without an answer."""
    headers = {} if password is None else {"Authorization": authorization(password)}
    use_proxies = urlsplit(url).hostname != HOST
    try:
        return httpx.get(
            url, timeout=timeout, headers=headers, trust_env=use_proxies, follow_redirects=True
        )
    except (httpx.HTTPError, httpx.InvalidURL):
        return None


def _json(answer: httpx.Response | None) -> object:
    """The JSON value of a successful response; None for any other."""
    try:
        return answer.json() if answer is not None and answer.is_success else None
    except ValueError:
        return None
