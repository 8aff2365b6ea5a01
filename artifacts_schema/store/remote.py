"""Stores in buckets, `s3://` or `gs://`, over fsspec; and the choice of a backend by URL.

Single requests are retried by the libraries themselves, with growing random delays; what is longer
than a request, a download, continues here from where the connection broke. No listing is kept: what
one node writes, the next one sees.

`s3://` is tested against a local server. `gs://` is written to the contract of `gcsfs`, where a
create is a write at generation 0, and has not met a server.

Why not obstore (0.12.1): against the same local server its puts took 22 ms and its gets 14 ms, s3fs
40 ms and 48 ms. But it reports a missing bucket as a missing object, so that a wrong store would
look empty, and a 409 (two writers met, try again) as "already exists", so that a key would look
taken that nobody has; the server's code is in the text of the message alone.
"""

from __future__ import annotations

import os
import random
import secrets
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import Any

from artifacts_schema.errors import CorruptArtifact, StoreError, UsageError
from artifacts_schema.store import layout
from artifacts_schema.store.backend import Backend, Entry, HashingWriter, LocalBackend, Range
from artifacts_schema.store.storage_errors import (
    Conflict,
    Unreachable,
    to_storage_error,
    translate_errors,
)

BLOCK = 16 << 20
"""Bytes of a part of an upload and of a range of a download; S3 takes 10,000 parts a file."""
BLOCKS_AT_ONCE = 4
REQUESTS_AT_ONCE = 16
TRIES = 5
"""How often a request, or the next range of a download, is tried before it is an error."""
LONGEST_WAIT_SECONDS = 20.0

sleep = time.sleep


class RemoteBackend(Backend):
    """A bucket, or a folder of it. Opens no connection before it is used; survives a fork."""

    local = False

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self.protocol, _, self.root = url.partition("://")
        self._fs: Any = None
        self._process = 0

    @property
    def fs(self) -> Any:
        """The file system of this process: its event loop does not outlive a fork."""
        if self._fs is None or self._process != os.getpid():
            with translate_errors(self.url):
                self._fs, self._process = _file_system(self.protocol), os.getpid()
        return self._fs

    def local_path(self, path: str) -> Path:
        """There is none."""
        raise StoreError("this needs a store on a local file system", where=self.url)

    def read(self, path: str, start: int = 0) -> bytes:
        """The bytes of a file from `start` on, in one request."""
        with translate_errors(self.full(path)):
            if start:
                return self._tail(path, start)
            once = {"max_concurrency": 1} if self.protocol == "s3" else {}
            return bytes(self.fs.cat_file(self._place(path), **once))

    def _tail(self, path: str, start: int) -> bytes:
        try:
            return bytes(self.fs.cat_file(self._place(path), start=start))
        except OSError:
            size = self.size(path)
            if size is None or size > start:
                raise
            return b""  # A range behind the end is refused.

    def read_many(self, paths: Iterable[str]) -> dict[str, bytes]:
        """Several small files, many requests at once."""

        def read(path: str) -> tuple[str, bytes | None]:
            try:
                return path, self.read(path)
            except FileNotFoundError:
                return path, None

        return {path: data for path, data in self._at_once(read, paths) if data is not None}

    def blocks(self, path: str, size: int) -> Iterator[bytes]:
        """Ranges of a file, a few at once, in order; a lost one is requested again."""
        start, failures = 0, 0
        while start < size:
            starts = range(start, min(size, start + BLOCKS_AT_ONCE * BLOCK), BLOCK)
            ends = [min(size, begin + BLOCK) for begin in starts]
            with translate_errors(self.full(path)):
                ranges = self.fs.cat_ranges([self._place(path)] * len(ends), list(starts), ends)
            for block, begin, end in zip(ranges, starts, ends, strict=True):
                if isinstance(block, Exception) or len(block) != end - begin:
                    failures += 1
                    self._wait_or_raise(block, path, size, failures)
                    break
                yield bytes(block)
                start, failures = end, 0

    def read_ranges(self, ranges: Sequence[Range]) -> list[bytes]:
        """Parts of files, many requests at once."""
        parts: dict[int, bytes] = {}
        failures = 0
        while len(parts) < len(ranges):
            remaining = [number for number in range(len(ranges)) if number not in parts]
            requests = [ranges[number] for number in remaining]
            with translate_errors(self.url):
                answers = self.fs.cat_ranges(
                    [self._place(one.path) for one in requests],
                    [one.start for one in requests],
                    [one.end for one in requests],
                )
            lost = []
            for number, one, answer in zip(remaining, requests, answers, strict=True):
                if isinstance(answer, Exception) or len(answer) != one.end - one.start:
                    lost.append((one, answer))
                else:
                    parts[number] = bytes(answer)
            if lost:
                failures = failures + 1 if len(lost) == len(requests) else 1
                one, answer = lost[0]
                self._wait_or_raise(answer, one.path, one.size, failures)
        return [parts[number] for number in range(len(ranges))]

    def _wait_or_raise(self, block: Exception | bytes, path: str, size: int, failures: int) -> None:
        """Wait before another try, or raise what stopped the download."""
        error = block if isinstance(block, Exception) else ConnectionError("the answer was cut")
        problem = to_storage_error(error, self.full(path))
        if isinstance(problem, Unreachable) and failures < TRIES:
            sleep(backoff(failures))
            return
        there = None if isinstance(error, FileNotFoundError) else self.size(path)
        if there not in (None, size):
            what = f"the file changed from {size:,} to {there:,} bytes"
            raise CorruptArtifact(what, where=self.full(path)) from error
        raise (problem or error) from error

    def size(self, path: str) -> int | None:
        """Bytes of a file."""
        with translate_errors(self.full(path)):
            try:
                return int(self.fs.info(self._place(path))["size"])
            except FileNotFoundError:
                return None

    def put_if_absent(self, path: str, data: bytes) -> bool:
        """A conditional put. Its answer may be lost, so bytes that are there may be our own."""
        try:
            self._retry_conflicts(
                path, lambda: self.fs.pipe_file(self._place(path), data, mode="create")
            )
        except FileExistsError:
            return self._holds(path, data)
        return True

    def _retry_conflicts(self, path: str, request: Callable[[], Any]) -> Any:
        """Make a request on `path`, again while the server says that another one met it (409).

        botocore tries again after 500 and 503, not after 409, which S3 gives to any write.
        """
        for attempt in range(1, TRIES):
            try:
                with translate_errors(self.full(path)):
                    return request()
            except Conflict:
                sleep(backoff(attempt))
        with translate_errors(self.full(path)):
            return request()

    def _holds(self, path: str, data: bytes) -> bool:
        try:
            return self.read(path) == data
        except FileNotFoundError:
            return False

    def replace(self, path: str, data: bytes) -> None:
        """One put: whole, or not at all."""
        self._retry_conflicts(path, lambda: self.fs.pipe_file(self._place(path), data))

    @contextmanager
    def create(self, path: str, *, block: int = 0) -> Iterator[HashingWriter]:
        """Upload in parts while it is written; nothing is visible before the block ends well."""
        with translate_errors(self.full(path)):
            raw = self._retry_conflicts(
                path, lambda: self.fs.open(self._place(path), "wb", block_size=BLOCK)
            )
            if self.protocol == "s3":
                self._retry_requests(raw, path)
            try:
                yield HashingWriter(raw, block)
                raw.close()
            except BaseException:
                with suppress(Exception):
                    raw.discard()
                raw.closed = True  # Its end as an object must not try once more.
                raise

    def _retry_requests(self, raw: Any, path: str) -> None:
        """Let each request of an upload be made again after a 409.

        s3fs has no setting for that, and an upload cannot be taken up once one of its calls failed.
        """
        request = raw._call_s3

        def call(*arguments: Any, **options: Any) -> Any:
            return self._retry_conflicts(path, lambda: request(*arguments, **options))

        raw._call_s3 = call

    def link(self, pairs: Iterable[tuple[str, str]]) -> None:
        """Copies made by the server, many at once."""

        def copy(pair: tuple[str, str]) -> None:
            source, target = map(self._place, pair)
            self._retry_conflicts(pair[1], lambda: self.fs.cp_file(source, target))

        self._at_once(copy, pairs)

    def sync(self, folder: str) -> None:
        """Nothing to do: an object is durable when its put is answered."""

    def listing(self, folder: str) -> dict[str, Entry]:
        """All files below `folder`, by one listing."""
        start = self._place(folder) + "/"
        above, _, name = self._place(folder).rpartition("/")
        with translate_errors(self.full(folder)):
            try:
                entries = self.fs.find(
                    above or name, prefix=f"{name}/" if above else "", detail=True
                )
            except FileNotFoundError:
                return {}
        return {
            name[len(start) :]: Entry(
                int(entry["size"]), _modified(entry), entry.get("ETag") or entry.get("etag") or ""
            )
            for name, entry in entries.items()
            if name.startswith(start) and entry["type"] == "file"
        }

    def folders(self, folder: str) -> list[str]:
        """Names of the folders directly inside `folder`, sorted."""
        return sorted(
            entry["name"].rstrip("/").rsplit("/", 1)[-1]
            for entry in self._entries(folder)
            if entry["type"] == "directory"
        )

    def is_empty(self) -> bool:
        """Whether there is no object at all."""
        return not self._entries("")

    def remove(self, path: str) -> None:
        """Remove an object, or all below it, many at once."""

        def remove(name: str) -> None:
            with suppress(FileNotFoundError):
                self._retry_conflicts(name, lambda: self.fs.rm_file(self._place(name)))

        self._at_once(remove, [f"{path}/{name}" for name in self.listing(path)] or [path])

    def remove_empty(self, folder: str) -> None:
        """Nothing to do: a bucket has no empty folders."""

    def now(self) -> float:
        """The store's time: the date that it gives to an object written now."""
        path = f"{layout.CLOCK}/{secrets.token_hex(6)}"
        self.replace(path, b"now")
        try:
            return self.listing(layout.CLOCK)[path.rsplit("/", 1)[1]].modified
        finally:
            self.remove(path)

    def _place(self, path: str) -> str:
        """The file system's own name for `path`."""
        return f"{self.root}/{path}" if path else self.root

    def _entries(self, folder: str) -> list[dict[str, Any]]:
        with translate_errors(self.full(folder)):
            try:
                return list(self.fs.ls(self._place(folder), detail=True))
            except FileNotFoundError:
                return []

    def _at_once(self, function: Callable[[Any], Any], items: Iterable[Any]) -> list[Any]:
        items = list(items)
        if len(items) < 2:
            return [function(item) for item in items]
        _ = self.fs  # Opened once, before the threads ask for it.
        with ThreadPoolExecutor(min(REQUESTS_AT_ONCE, len(items))) as pool:
            return list(pool.map(function, items))


def backoff(failures: int) -> float:
    """Seconds to wait after so many failures in a row: doubling, at random up to the full delay."""
    return random.uniform(0.5, 1.0) * min(LONGEST_WAIT_SECONDS, 0.5 * 2.0**failures)


def _file_system(protocol: str) -> Any:
    """The fsspec file system. Its library finds credentials as it always does."""
    import fsspec

    options: dict[str, Any] = {"use_listings_cache": False}
    if protocol == "s3":
        retries = {"mode": "standard", "max_attempts": TRIES}
        options["config_kwargs"] = {"retries": retries, "max_pool_connections": 32}
    try:
        fs = fsspec.filesystem(protocol, **options)
    except ImportError:
        raise StoreError(
            f"{protocol}:// needs a library that is not installed",
            hint=f'pip install "ingot[{protocol}]"',
        ) from None
    if protocol == "s3":
        fs.retries = 2  # On top of botocore's own: for a connection that breaks in a body.
    return fs


def _modified(entry: dict[str, Any]) -> float:
    modified = entry.get("LastModified") or entry.get("updated") or entry.get("mtime")
    if isinstance(modified, str):
        modified = datetime.fromisoformat(modified)
    return modified.timestamp() if isinstance(modified, datetime) else 0.0


def backend_at(url: str) -> Backend:
    """The backend for a folder's path, `s3://BUCKET/…` or `gs://BUCKET/…`; UsageError otherwise."""
    protocol, separator, rest = str(url).partition("://")
    if not separator or protocol == "file":
        return LocalBackend(os.path.abspath(os.path.expanduser(rest if separator else str(url))))
    if protocol not in ("s3", "gs"):
        raise UsageError(
            f"no store can be at {protocol}://",
            where="--store",
            hint="give a folder, s3://BUCKET/… or gs://BUCKET/…",
        )
    if "@" in rest.split("/")[0]:
        raise UsageError(
            "the URL holds credentials",
            where=f"{protocol}://…",
            hint="leave them out of the URL, and set them in the environment",
        )
    if not rest.strip("/"):
        raise UsageError("the URL names no bucket", where=f"{protocol}://")
    return RemoteBackend(f"{protocol}://{rest.strip('/')}")
