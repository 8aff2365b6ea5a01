"""The Prefect API that a run talks to: the one that is configured, or one of our own on loopback.

The local server is started in the background, kept, and found again by a small state file, so that
a finished run can still be looked at. `ingot up` and `ingot down` start and stop it by hand.
"""

from __future__ import annotations

import fcntl
import json
import os
import signal
import socket
import subprocess
import sys
import time
import tomllib
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from artifacts_schema.errors import IngotError

HOST = "127.0.0.1"
PORT = 4200
START_SECONDS = 120.0
STOP_SECONDS = 10.0
_chosen: set[str] = set()
"""APIs of our own that `use` has put into the environment: nobody configured those."""


@dataclass(frozen=True)
class Server:
    """A Prefect server: its API's URL, and its process if it is ours."""

    api: str
    process: int | None = None
    started: str | None = None

    @property
    def ui(self) -> str:
        """Address of the UI."""
        return self.api.removesuffix("/api")


def home() -> Path:
    """Where the local server keeps its database, log and state: `$INGOT_HOME`, or `~/.ingot`."""
    folder = Path(os.environ.get("INGOT_HOME", "~/.ingot")).expanduser()
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise IngotError(
            f"cannot make the folder: {error.strerror}", where=str(folder), hint="set INGOT_HOME"
        ) from None
    return folder


def find_server() -> Server | None:
    """The server that a run would use now: configured, or ours if it answers."""
    standing, configured = _remembered(), _configured()
    if configured and (standing is None or standing.api != configured):
        return Server(configured)
    return standing if standing is not None and answers(standing) else None


def ensure_server(tell: Callable[[str], None] = lambda line: None) -> Server:
    """The configured server, which must answer; else ours, started in the background if need be."""
    with _one_at_a_time():
        standing, configured = _remembered(), _configured()
        if configured and (standing is None or standing.api != configured):
            if answers(Server(configured)):
                return Server(configured)
            raise IngotError(
                "the Prefect API does not answer",
                where=configured,
                hint="start it, unset PREFECT_API_URL to use a local one, or add --no-prefect",
            )
        if standing is not None and answers(standing):
            return standing
        tell("starting a Prefect server in the background (some seconds the first time)")
        server = _start()
        tell(f"Prefect UI: {server.ui}")
        return server


def use(server: Server) -> None:
    """Point this process and its children at `server`; must come before Prefect is imported."""
    os.environ["PREFECT_API_URL"] = server.api
    if server.process is not None:
        _chosen.add(server.api)
        os.environ.setdefault("PREFECT_HOME", server_environment()["PREFECT_HOME"])


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


def stop_server() -> Server | None:
    """Stop our own server; returns it, or None if there was none."""
    with _one_at_a_time():
        server = _remembered()
        _state().unlink(missing_ok=True)
        if server is None or not _is_ours(server):
            return None
        assert server.process is not None
        for number, grace in ((signal.SIGTERM, STOP_SECONDS), (signal.SIGKILL, STOP_SECONDS)):
            _signal(server.process, number)
            if _wait(lambda: not _is_ours(server), grace):
                return server
        raise IngotError(f"process {server.process} does not end", where=server.api)


def answers(server: Server, timeout: float = 2.0) -> bool:
    """Whether the API says that it is well."""
    try:
        with urllib.request.urlopen(f"{server.api}/health", timeout=timeout) as reply:
            return bool(reply.status == 200)
    except (urllib.error.URLError, OSError, ValueError):
        return False


def _start() -> Server:
    port = _free_port()
    log = home() / "prefect.log"
    with open(log, "ab") as sink:
        process = subprocess.Popen(
            [
                sys.executable,
                "-m",
                "prefect",
                "server",
                "start",
                "--host",
                HOST,
                "--port",
                str(port),
            ],
            stdin=subprocess.DEVNULL,
            stdout=sink,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            env={**os.environ, **server_environment()},
        )
    server = Server(f"http://{HOST}:{port}/api", process.pid, _start_time(process.pid))
    _state().write_text(json.dumps(asdict(server)))
    if _wait(lambda: answers(server) or process.poll() is not None, START_SECONDS) and answers(
        server
    ):
        return server
    if process.poll() is None:
        process.kill()
    _state().unlink(missing_ok=True)
    raise IngotError(
        "the Prefect server did not start", where=str(log), hint="read the log, or add --no-prefect"
    )


def server_environment() -> dict[str, str]:
    """Settings of our server: its own database, nothing sent anywhere."""
    return {
        "PREFECT_HOME": str(home() / "prefect"),
        "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
        "DO_NOT_TRACK": "1",
        "PREFECT_LOGGING_TO_API_ENABLED": "true",
    }


@contextmanager
def _one_at_a_time() -> Iterator[None]:
    with open(home() / "prefect.lock", "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _state() -> Path:
    return home() / "prefect.json"


def _remembered() -> Server | None:
    try:
        return Server(**json.loads(_state().read_text()))
    except (OSError, ValueError, TypeError):
        return None


def _free_port() -> int:
    for port in (PORT, 0):
        with socket.socket() as probe:
            try:
                probe.bind((HOST, port))
            except OSError:
                continue
            return int(probe.getsockname()[1])
    raise IngotError("no free port on loopback")


def _is_ours(server: Server) -> bool:
    """Whether the remembered process still runs and is the same one (ids are given out again)."""
    if server.process is None:
        return False
    now = _start_time(server.process)
    return now is not None and now == server.started


def _start_time(process: int) -> str | None:
    """Start of a process, as `ps` tells it; None for one that has ended."""
    import psutil

    try:
        found = psutil.Process(process)
        return None if found.status() == psutil.STATUS_ZOMBIE else f"{found.create_time():.2f}"
    except psutil.Error:
        return None


def _signal(process: int, number: int) -> None:
    try:
        os.killpg(process, number)
    except ProcessLookupError:
        return


def _wait(condition: Callable[[], bool], seconds: float) -> bool:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.1)
    return condition()
