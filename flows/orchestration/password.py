"""The password of our own Prefect server and of the reports: a line in a file of its owner's.

Loopback is open to every user of a machine, and whoever may call Prefect's API may run commands as
the owner of its worker. So both servers ask for this password: Prefect's server by its own basic
authentication, the reports by HTTP's. Programs read the file; people sign in once with its line.
"""

from __future__ import annotations

import base64
import hmac
import os
import secrets
import stat
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

from artifacts_schema.errors import IngotError
from flows.orchestration.background import home

USER = "ingot"
_NEW = "`ingot down`, delete the file, and the same command makes a new one"


def password_file() -> Path:
    """Where the password lies."""
    return home() / "password"


def make_password() -> str:
    """The password; made if there is none yet. A restart keeps it."""
    file = password_file()
    if not file.is_symlink() and not file.exists():
        _check_folder(file.parent)
        draft = file.with_name(f"password.{os.getpid()}.{secrets.token_hex(4)}")
        try:
            # Private from its first moment: a mode set later leaves time to open the file before.
            number = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
            with open(number, "w", encoding="ascii") as sink:
                sink.write(f"{USER}:{secrets.token_urlsafe(32)}\n")
                sink.flush()
                os.fsync(number)
            with suppress(FileExistsError):  # Another command was faster: its password counts.
                os.link(draft, file)
        except OSError as error:
            raise IngotError(
                f"cannot write the server's password: {error.strerror}", where=str(file)
            ) from None
        finally:
            draft.unlink(missing_ok=True)
    return read_password()


def read_password() -> str:
    """`ingot:…`, as Prefect takes it; IngotError if it is missing or not its owner's alone."""
    file = password_file()
    _check_folder(file.parent)
    try:
        number = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        raise IngotError(
            "the server's password is gone",
            where=str(file),
            hint="`ingot down`, and the same command makes a new one",
        ) from None
    except OSError as error:
        raise IngotError(
            f"cannot read the server's password: {error.strerror}", where=str(file), hint=_NEW
        ) from None
    with open(number, encoding="ascii", errors="replace") as source:
        about = os.fstat(number)
        if not stat.S_ISREG(about.st_mode) or about.st_uid != os.geteuid() or about.st_mode & 0o077:
            raise IngotError(
                "others can read or write the server's password", where=str(file), hint=_NEW
            )
        text = source.read(1000).strip()
    user, _, secret = text.partition(":")
    if user != USER or len(secret) < 32 or not text.isascii() or not text.isprintable():
        raise IngotError("this is not a password that Ingot made", where=str(file), hint=_NEW)
    return text


def is_password(header: str | None, password: str) -> bool:
    """Whether an `Authorization` header is HTTP's basic one with `password`.

    A person may type the user and the rest apart, or the whole line as the password of any user.
    """
    scheme, _, credentials = (header or "").partition(" ")
    try:
        given = base64.b64decode(credentials.strip(), validate=True)
    except ValueError:
        return False
    wanted = password.encode()
    whole = hmac.compare_digest(given, wanted)
    pasted = hmac.compare_digest(given.partition(b":")[2], wanted)
    return scheme.lower() == "basic" and (whole or pasted)


def authorization(password: str) -> str:
    """The `Authorization` header that carries `password`."""
    return f"Basic {base64.b64encode(password.encode()).decode()}"


def fingerprint(password: str) -> str:
    """What tells two passwords apart and gives neither away."""
    return sha256(password.encode()).hexdigest()[:16]


def _check_folder(folder: Path) -> None:
    """IngotError where others could put a file of theirs, or another server's address, in place."""
    about = folder.stat()
    if about.st_uid != os.geteuid() or about.st_mode & 0o022:
        raise IngotError(
            "others can write in the folder of the server's password",
            where=str(folder),
            hint=f"chmod go-w {folder}, or set INGOT_HOME to a folder of your own",
        )
