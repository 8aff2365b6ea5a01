"""A file behind a URL: what its server says that it is, its bytes from any point on, and patience.

`https://` is `web`, `s3://` and `gs://` are `objects`. Both give an `Identity` and blocks of bytes,
and raise `Interrupted` for what may pass and `SourceChanged` for a file that is another one now.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from artifacts_schema.errors import InputError
from stages.engine.transfers import pause
from stages.engine.urls import OBJECTS, without_secrets

BLOCK = 1 << 20


@dataclass(frozen=True)
class Identity:
    """What a server says of a file.

    `etag` is its strong ETag as sent, quotes included, or else its Last-Modified: as weak as a time
    in seconds beside a length is. A server that knows the bytes' `sha256` needs none ("").
    """

    bytes: int
    etag: str
    sha256: str | None = None


class Interrupted(Exception):
    """A fault that may pass: a lost connection, a busy server."""

    def __init__(self, what: str, wait: float | None = None) -> None:
        super().__init__(what)
        self.what, self.wait = what, wait


class NoSuchFile(InputError):
    """There is no file behind a URL."""


class Refused(InputError):
    """A server does not give a file to this person, or does not say that there is none."""


class SourceChanged(InputError):
    """The file behind a URL is not the one that the snapshot pinned."""

    def __init__(
        self,
        what: str = "the file changed since the snapshot pinned it",
        *,
        where: str | None = None,
        hint: str | None = "plan again to take the changed file as a new snapshot",
    ) -> None:
        super().__init__(what, where=where and without_secrets(where), hint=hint)


@dataclass(frozen=True)
class Patience:
    """How often, and how long apart, a server is asked again.

    The wait doubles from `first` seconds to `longest`, times a random half to one, so that many
    workers do not come back at once; a server's own Retry-After counts up to `longest_asked`.
    """

    attempts: int = 10
    first: float = 1.0
    longest: float = 60.0
    longest_asked: float = 300.0
    sleep: Callable[[float], None] = pause
    jitter: Callable[[], float] = random.random

    def pause(self, failures: int, error: Interrupted, url: str) -> None:
        """Wait after the `failures`-th fault in a row; InputError once there were `attempts`."""
        if failures >= self.attempts:
            raise InputError(
                f"{error.what} ({failures} tries)",
                where=without_secrets(url),
                hint="try again later: what has arrived is kept",
            )
        if error.wait is not None:
            self.sleep(min(error.wait, self.longest_asked))
        else:
            doubled = min(self.longest, self.first * 2.0 ** (failures - 1))
            self.sleep(doubled * (0.5 + 0.5 * self.jitter()))


def look(url: str, patience: Patience) -> Identity:
    """What the server says of the file at `url`.

    Raises InputError if there is none, if it may not be read, or if the server gives no identity.
    """
    failures = 0
    while True:
        try:
            return _identity(url)
        except Interrupted as error:
            failures += 1
            patience.pause(failures, error, url)


def blocks(url: str, pinned: Identity, start: int) -> Iterator[bytes]:
    """The bytes of `url` from `start` on, as far as they come.

    Raises Interrupted, SourceChanged, or InputError for what asking again will not mend.
    """
    if url.startswith(OBJECTS):
        from stages.engine import objects

        return objects.blocks(url, pinned, start)
    from stages.engine import web

    return web.blocks(url, pinned, start)


def _identity(url: str) -> Identity:
    if url.startswith(OBJECTS):
        from stages.engine import objects

        return objects.identity(url)
    from stages.engine import web

    return web.identity(url)


def no_such_file(url: str) -> NoSuchFile:
    """The error for a file that is not there."""
    return NoSuchFile(
        "no such file", where=without_secrets(url), hint="check the URL; files move and expire"
    )
