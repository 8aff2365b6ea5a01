"""Processes of ours in the background: started once, kept, found again by a small state file."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import socket
import stat
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from artifacts_schema.errors import IngotError

KILL_SECONDS = 10.0


@dataclass(frozen=True)
class Process:
    """A background process: its id, when it began (ids are given out again), and what it serves."""

    process: int
    started: str
    facts: dict[str, str]

    def lives(self) -> bool:
        """Whether it still runs and is the same one."""
        return _start_time(self.process) == self.started


def home() -> Path:
    """Where databases, logs, reports and state lie: `$INGOT_HOME`, or `~/.ingot`."""
    folder = Path(os.environ.get("INGOT_HOME", "~/.ingot")).expanduser().absolute()
    return private_folder(folder)


def private_folder(folder: Path) -> Path:
    """Make a folder that only its owner can read; one of ours that others can read is closed.

    A folder that others can write stays as it is: they may have put files there, so the password
    is refused in it.
    """
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        about = folder.stat()
        mode = stat.S_IMODE(about.st_mode)
        if about.st_uid == os.geteuid() and mode & 0o077 and not mode & 0o022:
            folder.chmod(0o700)
    except OSError as error:
        raise IngotError(
            f"cannot make the folder private: {error.strerror}",
            where=str(folder),
            hint="set INGOT_HOME",
        ) from None
    return folder


def log_of(name: str) -> Path:
    """The log of the process called `name`."""
    return home() / f"{name}.log"


@contextmanager
def one_at_a_time() -> Iterator[None]:
    """Only one command at a time starts or stops what is kept here."""
    with open(home() / "prefect.lock", "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def start(
    name: str,
    command: Sequence[str],
    environment: Mapping[str, str],
    facts: Mapping[str, str],
    listener: socket.socket | None = None,
) -> Process:
    """Start `command` in a session of its own, its words going to the log, and remember it.

    It inherits `listener` under the same file number.
    """
    with open(log_of(name), "ab") as sink:
        started = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=sink,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            cwd=home(),
            env={**os.environ, **environment},
            pass_fds=() if listener is None else (listener.fileno(),),
        )
    process = Process(started.pid, _start_time(started.pid) or "", dict(facts))
    _state(name).write_text(json.dumps(asdict(process)))
    return process


def find(name: str) -> Process | None:
    """The process remembered as `name`, if it lives."""
    try:
        process = Process(**json.loads(_state(name).read_text()))
    except (OSError, ValueError, TypeError):
        return None
    return process if process.lives() else None


def stop(name: str, grace: float) -> Process | None:
    """End the process remembered as `name`, by force after `grace` seconds; None if none lives."""
    process = find(name)
    _state(name).unlink(missing_ok=True)
    if process is None:
        return None
    for number, seconds in ((signal.SIGTERM, grace), (signal.SIGKILL, KILL_SECONDS)):
        try:
            os.killpg(process.process, number)
        except ProcessLookupError:
            return process
        if wait_until(lambda: not process.lives(), seconds):
            return process
    raise IngotError(f"process {process.process} does not end", where=name)


def wait_until(condition: Callable[[], bool], seconds: float) -> bool:
    """Whether `condition` came true within `seconds`."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.1)
    return condition()


def _state(name: str) -> Path:
    return home() / f"{name}.json"


def _start_time(process: int) -> str | None:
    """Start of a process, as `ps` tells it; None for one that has ended."""
    import psutil

    try:
        found = psutil.Process(process)
        return None if found.status() == psutil.STATUS_ZOMBIE else f"{found.create_time():.2f}"
    except psutil.Error:
        return None
