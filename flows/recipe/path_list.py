"""Lists of paths, one a line, as Common Crawl publishes them (`warc.paths.gz`).

What a list says is checked before it is followed: it comes from outside.
"""

from __future__ import annotations

import gzip
import os
import zlib
from pathlib import Path
from typing import IO
from urllib.parse import quote, urlsplit

from artifacts_schema.errors import InputError, UsageError
from artifacts_schema.files import open_regular
from flows.recipe.crawl import CRAWLS
from flows.recipe.remote_files import PLANNING, joined
from flows.recipe.snapshot_entry import SnapshotFiles, located
from stages.engine.fetch import open_copy
from stages.engine.remote import NoSuchFile, Refused, look
from stages.engine.urls import WEB, check_url, is_url, without_secrets

MAX_BYTES = 200_000_000
"""Longest list, decompressed: a million and a half paths as long as Common Crawl's."""
MAX_LINES, MAX_LINE = 2_000_000, 2_048
_GZIP = b"\x1f\x8b"
_SAFE = "/%!$&'()*+,;=:@~"


def listed_files(source: SnapshotFiles) -> list[tuple[str, str]]:
    """(name, path or URL) of every line of the list `source.paths`, in its order.

    A path is relative to `root`; without one, to the site or bucket that the list came from, or to
    the folder it lies in. A URL is taken as it is. Raises InputError with the line that is neither.
    """
    assert source.paths is not None
    root = located(source.root, source.base) if source.root is not None else _home(source.paths)
    where = f"{source.where}: {source.paths}"
    try:
        lines = _lines(source.paths, where)
    except (NoSuchFile, Refused) as error:
        if source.crawl is None:
            raise
        raise InputError(
            f"no list of {source.crawl} lies at {without_secrets(source.paths)}: {error.what}",
            where=source.where,
            hint=f"not every week has a crawl: {CRAWLS}",
        ) from None
    found: dict[str, str] = {}
    for number, line in enumerate(lines, 1):
        if line:
            name, place = _entry(line, root, f"{where} line {number}")
            found[name] = place
    if not found:
        raise InputError("the list holds no paths", where=where)
    return list(found.items())


def _home(paths: str) -> str:
    """What the paths of a list are relative to where nobody says."""
    if not is_url(paths):
        return str(Path(paths).parent)
    parts = urlsplit(paths)
    return f"{parts.scheme}://{parts.netloc}"


def _entry(line: str, root: str, where: str) -> tuple[str, str]:
    """(name, path or URL) of a line."""
    if not line.isprintable() or "\\" in line:
        raise InputError(f"not a path: {line[:80]!a}", where=where)
    below = root.rstrip("/") + "/"
    if is_url(line):
        try:
            check_url(line)
        except UsageError as error:
            raise InputError(error.what, where=where, hint=error.hint) from None
        if line.startswith("http:") and not root.startswith("http:"):
            raise InputError(f"leads to this machine: {line[:80]!a}", where=where)
        inside = line.startswith(below)
        path = line.removeprefix(below) if inside else line.partition("://")[2]
        name, place = path.partition("?")[0], line
    elif is_url(root):
        name, place = line, joined(root, quote(line, safe=_SAFE) if _is_web(root) else line)
    else:
        name, place = line, os.path.join(os.path.realpath(root), line)
    if {"..", ".", ""} & set(name.split("/")):
        raise InputError(f"leads out of {root}: {line[:80]!a}", where=where)
    return name, place


def _is_web(url: str) -> bool:
    return url.partition("://")[0] in WEB


def _lines(paths: str, where: str) -> list[str]:
    try:
        with _opened(paths) as file:
            text = _decompressed(file).decode()
    except FileNotFoundError:
        raise NoSuchFile("no such list", where=where) from None
    except UnicodeDecodeError as error:
        raise InputError(f"not UTF-8 at byte {error.start:,}", where=where) from None
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise InputError(f"damaged: {error}", where=where, hint="get the list again") from None
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", where=where) from None
    except _TooLong:
        raise InputError(
            f"more than {MAX_BYTES:,} bytes or {MAX_LINES:,} lines",
            where=where,
            hint="cut the list into parts",
        ) from None
    lines = [line.strip() for line in text.split("\n")]
    longest = max(range(len(lines)), key=lambda number: len(lines[number]))
    if len(lines[longest]) > MAX_LINE:
        raise InputError(
            f"more than {MAX_LINE:,} characters", where=f"{where} line {longest + 1:,}"
        )
    return lines


def _opened(paths: str) -> IO[bytes]:
    if not is_url(paths):
        return open_regular(paths)
    identity = look(paths, PLANNING)
    if identity.bytes > MAX_BYTES:
        raise _TooLong
    return open_copy(paths, identity, patience=PLANNING)


def _decompressed(file: IO[bytes]) -> bytes:
    packed = file.read(len(_GZIP)) == _GZIP
    file.seek(0)
    data = (gzip.GzipFile(fileobj=file) if packed else file).read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES or data.count(b"\n") > MAX_LINES:
        raise _TooLong
    return data


class _TooLong(Exception):
    """More bytes than a list may have."""
