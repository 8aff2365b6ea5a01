"""Private files of Ingot (`$INGOT_HOME`): background processes and the server password.

A background process is started once, kept, and found again by a small state file.

Loopback is open to every user of a machine, and whoever may call Prefect's API may run commands as
the owner of its worker. So both servers ask for a password that only the owner can read: Prefect's
server by its own basic authentication, the report server by HTTP's. Programs read the file; people
sign in once with its line.
"""

from __future__ import annotations

import base64
import fcntl
import hmac
import json
import os
import secrets
import signal
import socket
import stat
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path

from artifacts_schema.errors import IngotError

KILL_SECONDS = 10.0


@dataclass(frozen=True)
class Process:
    """A background process: its id, its start time (ids are reused), and what it serves."""

    process: int
    started: str
    facts: dict[str, str]

    def lives(self) -> bool:
        """Whether it still runs and is the same one."""
        return _start_time(self.process) == self.started


def home() -> Path:
    """The folder of databases, logs, reports and state: `$INGOT_HOME`, or `~/.ingot`."""
    folder = Path(os.environ.get("INGOT_HOME", "~/.ingot")).expanduser().absolute()
    return private_folder(folder)


def private_folder(folder: Path) -> Path:
    """Make a folder that only its owner can read; remove others' read access to one of ours.

    A folder that others can write stays as it is: they may have put files there, so no password is
    kept in it.
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


def log_path(name: str) -> Path:
    """The log of the process called `name`."""
    return home() / f"{name}.log"


@contextmanager
def one_at_a_time() -> Iterator[None]:
    """Hold the lock under which one command at a time starts or stops services."""
    with open(home() / "prefect.lock", "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def start_process(
    name: str,
    command: Sequence[str],
    environment: Mapping[str, str],
    facts: Mapping[str, str],
    listener: socket.socket | None = None,
) -> Process:
    """Start `command` in its own session, its output in the log, and remember it.

    It inherits `listener` under the same file number.
    """
    with open(log_path(name), "ab") as sink:
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
    _state_file(name).write_text(json.dumps(asdict(process)))
    return process


def find_process(name: str) -> Process | None:
    """The process remembered as `name`, if it lives."""
    try:
        process = Process(**json.loads(_state_file(name).read_text()))
    except (OSError, ValueError, TypeError):
        return None
    return process if process.lives() else None


def stop_process(name: str, grace: float) -> Process | None:
    """End the process remembered as `name`, by force after `grace` seconds; None if none lives."""
    process = find_process(name)
    _state_file(name).unlink(missing_ok=True)
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
    """Wait until `condition` is true; whether it became true within `seconds`."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.1)
    return condition()


def _state_file(name: str) -> Path:
    return home() / f"{name}.json"


def _start_time(process: int) -> str | None:
    """Start time of a process; None if it has ended."""
    import psutil

    try:
        status = psutil.Process(process)
        return None if status.status() == psutil.STATUS_ZOMBIE else f"{status.create_time():.2f}"
    except psutil.Error:
        return None


USER = "ingot"
_NEW = "`ingot down`, delete the file, and the same command makes a new one"


def password_file() -> Path:
    """Where the password lies."""
    return home() / "password"


def make_password() -> str:
    """The password; created if there is none yet. A restart keeps it."""
    file = password_file()
    if not file.is_symlink() and not file.exists():
        _check_folder(file.parent)
        draft = file.with_name(f"password.{os.getpid()}.{secrets.token_hex(4)}")
        try:
            # Private from the start: with a later chmod others could open the file before.
            number = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
            with open(number, "w", encoding="ascii") as sink:
                sink.write(f"{USER}:{secrets.token_urlsafe(32)}\n")
                sink.flush()
                os.fsync(number)
            with suppress(FileExistsError):  # Another command was faster: use its password.
                os.link(draft, file)
        except OSError as error:
            raise IngotError(
                f"cannot write the server's password: {error.strerror}", where=str(file)
            ) from None
        finally:
            draft.unlink(missing_ok=True)
    return read_password()


def read_password() -> str:
    """`ingot:…`, as Prefect takes it; IngotError if it is missing or others can read it."""
    file = password_file()
    _check_folder(file.parent)
    if not file.is_symlink() and not file.exists():
        raise IngotError(
            "the server's password is gone",
            where=str(file),
            hint="`ingot down`, and the same command makes a new one",
        )
    text = read_private(file, "the server's password", _NEW)
    user, _, secret = text.partition(":")
    if user != USER or len(secret) < 32 or not text.isascii() or not text.isprintable():
        raise IngotError("this is not a password of Ingot", where=str(file), hint=_NEW)
    return text


def read_private(file: Path, what: str, hint: str) -> str:
    """The text of a file that only its owner, this user, can read and write; never waits.

    `what` names its content in the IngotError for any other file.
    """
    try:
        number = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise IngotError(
            f"cannot read {what}: {error.strerror}", where=str(file), hint=hint
        ) from None
    with open(number, encoding="utf-8", errors="replace") as source:
        about = os.fstat(number)
        if not stat.S_ISREG(about.st_mode) or about.st_uid != os.geteuid() or about.st_mode & 0o077:
            raise IngotError(f"others can read or write {what}", where=str(file), hint=hint)
        return source.read(100_000).strip()


def is_password(header: str | None, password: str) -> bool:
    """Whether an `Authorization` header is HTTP's basic one with `password`.

    A person may type the user and the rest apart, or the whole line as the password of any user.
    """
    scheme, _, credentials = (header or "").partition(" ")
    try:
        decoded = base64.b64decode(credentials.strip(), validate=True)
    except ValueError:
        return False
    expected = password.encode()
    whole = hmac.compare_digest(decoded, expected)
    pasted = hmac.compare_digest(decoded.partition(b":")[2], expected)
    return scheme.lower() == "basic" and (whole or pasted)


def authorization(password: str) -> str:
    """The `Authorization` header that carries `password`."""
    return f"Basic {base64.b64encode(password.encode()).decode()}"


def fingerprint(password: str) -> str:
    """A short hash that distinguishes passwords without revealing them."""
    return sha256(password.encode()).hexdigest()[:16]


def _check_folder(folder: Path) -> None:
    """IngotError if other users could replace the files in this folder."""
    about = folder.stat()
    if about.st_uid != os.geteuid() or about.st_mode & 0o022:
        raise IngotError(
            "others can write in the folder of the server's password",
            where=str(folder),
            hint=f"chmod go-w {folder}, or set INGOT_HOME to a folder of your own",
        )
