"""The safety net under third-party parsers: a page that hangs or crashes a worker is set aside.

Budgets of bytes, nodes and depth decide about pages, the same everywhere. A page that gets through
them and still hangs native code, which no timer of Python interrupts, or takes the process down, is
found here: the kernel ends the worker after so many seconds of CPU time on one page (a paused
machine kills nothing), a mark on the disk names the page, and the stage puts it on a list that
outlives kills and travels with the work to another machine. The page's unit is done again, without
it. A unit that was finished holds no page of the list, so finished units stay as they are.

`CrashingPages` is the list, in the stage's process; `Watch.over` makes the `Guard` of a unit in its
worker. Nothing may be yielded inside `guard.page`, or the work of the reader counts as the page's.
"""

from __future__ import annotations

import hashlib
import json
import mmap
import os
import shutil
import signal
import struct
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Self

from artifacts_schema.errors import IngotError, printable
from artifacts_schema.store.remote import backend_at
from stages.engine.state import State
from stages.engine.workers import WorkerCrash

DETAILS = {
    "hung": "did not end within the time limit of a page",
    "crashed": "ended the process that parsed it",
}
"""Reasons of rejected records that come from here, with a detail that is the same in every run."""

_LIST = "crashing-pages.json"
_SET = "crashing-pages-"
_HUNG = signal.SIGPROF
_CRASHES = frozenset(
    {
        signal.SIGSEGV, signal.SIGBUS, signal.SIGABRT, signal.SIGILL, signal.SIGFPE,
        signal.SIGTRAP,
    }
)  # fmt: skip
_HEAD = struct.Struct("<BI")  # Whether a page is being parsed; bytes of its name, which follows.
_MARK_BYTES = 4096


def page_name(file: str, record: int | str) -> str:
    """The name of a record among all of its snapshot."""
    return f"{record} {file}"


@dataclass(frozen=True)
class CrashingPage:
    """A page that ended its worker: unit of work, name, and the reason it is rejected with."""

    unit: str
    page: str
    reason: str


@dataclass(frozen=True)
class Watch:
    """What a worker must know: folder of marks, CPU seconds a page may take, pages to skip."""

    folder: Path
    seconds: float
    crashing_pages: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Unit → page → reason."""

    def over(self, unit: str) -> Guard:
        """The guard over the pages of one unit, in its worker."""
        return Guard(self, unit)

    def page_at(self, unit: str, process: int) -> str | None:
        """The page of a unit that a dead process of this machine was at; asked once."""
        path = _mark_path(self.folder, unit, process)
        try:
            mark = path.read_bytes()
        except OSError:
            return None
        path.unlink(missing_ok=True)
        if len(mark) != _MARK_BYTES or not mark[0]:
            return None
        _, length = _HEAD.unpack_from(mark)
        return mark[_HEAD.size : _HEAD.size + length].decode("utf-8", "surrogatepass")


class Guard:
    """Marks the page that a worker is at, and limits its CPU time. Costs about 1 µs a page."""

    def __init__(self, watch: Watch, unit: str) -> None:
        self._seconds = watch.seconds
        self._known = watch.crashing_pages.get(unit, {})
        self._path = _mark_path(watch.folder, unit, os.getpid())

    def __enter__(self) -> Self:
        # An ignored or blocked signal is inherited, and would make the limit none.
        signal.signal(_HUNG, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {_HUNG})
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with open(self._path, "w+b") as file:
            file.write(bytes(_MARK_BYTES))
            file.flush()
            self._mark = mmap.mmap(file.fileno(), _MARK_BYTES)
        self._page = _Page(self._mark, self._seconds)
        return self

    def __exit__(self, *_: object) -> None:
        self._mark.close()
        self._path.unlink(missing_ok=True)

    def reason_to_skip(self, page: str) -> str | None:
        """Why a page must not be parsed: hung, crashed, or None."""
        return self._known.get(_key(page)) if self._known else None

    def page(self, page: str) -> _Page:
        """`with guard.page(name):` around everything that parses a page's bytes."""
        name = _key(page).encode("utf-8", "surrogatepass")
        self._mark[_HEAD.size : _HEAD.size + len(name)] = name
        _HEAD.pack_into(self._mark, 0, 0, len(name))
        return self._page


class _Page:
    """Raises and lowers the flag; while it is up, the clock runs."""

    def __init__(self, mark: mmap.mmap, seconds: float) -> None:
        self._mark, self._seconds = mark, seconds

    def __enter__(self) -> None:
        self._mark[0] = 1
        signal.setitimer(signal.ITIMER_PROF, self._seconds)

    def __exit__(self, *_: object) -> None:
        signal.setitimer(signal.ITIMER_PROF, 0)
        self._mark[0] = 0


class CrashingPages:
    """The stage's list of pages that ended a worker; `limit` of them end the stage."""

    def __init__(self, state: State, *, seconds: float, limit: int = 1_000) -> None:
        self._state, self._seconds, self._limit = state, seconds, limit
        self._folder = state.folder / "guard"
        self._marks = self._folder / "marks"
        shutil.rmtree(self._marks, ignore_errors=True)
        self._pages = {(page.unit, page.page): page for page in self._known_pages()}

    @property
    def pages(self) -> list[CrashingPage]:
        """In the order of their crashes."""
        return list(self._pages.values())

    def watch(self) -> Watch:
        """What the workers must know as of now."""
        reasons: dict[str, dict[str, str]] = {}
        for page in self._pages.values():
            reasons.setdefault(page.unit, {})[page.page] = page.reason
        return Watch(self._marks, self._seconds, reasons)

    def on_crash(self, crash: WorkerCrash) -> dict[str, Watch] | None:
        """Put the page that ended a worker on the list; the map then goes on without it.

        None where no page is to blame: the worker was killed from outside, ran out of memory, or
        died between pages. Raises IngotError for more crashing pages than `limit`.
        """
        page, reason = crash.mark, _reason(crash)
        if crash.item is None or page is None or reason is None:
            if page is not None:
                self._state.log.warning("a worker died (%s) at %s", crash.how, page)
            return None
        if (crash.item, page) in self._pages:
            raise IngotError(
                f"a worker died again at a page that it had to skip ({crash.how})",
                where=page,
                hint="this is a bug in the stage",
            )
        if len(self._pages) >= self._limit:
            raise IngotError(
                f"more than {self._limit:,} pages hang or crash their parser",
                where=page,
                hint="see 'hung' and 'crashed' in log.txt; lower the limits of bytes, nodes or "
                "depth, or take another extractor",
            )
        self._pages[crash.item, page] = CrashingPage(crash.item, page, reason)
        self._keep()
        self._state.log.warning(
            "%s: %s (%s); going on without it", printable(page), reason, crash.how
        )
        return {"watch": self.watch()}

    def _known_pages(self) -> list[CrashingPage]:
        """Of earlier runs: those on this machine's list, and on the one that was published."""
        here = self._read()
        published = [name for name in self._state.published() if name.startswith(_SET)]
        if not any(self._state.fetch(name) for name in reversed(published)):
            return here
        there = self._read()
        both = [*there, *(page for page in here if page not in there)]
        self._write(both)
        return both

    def _read(self) -> list[CrashingPage]:
        try:
            rows = json.loads((self._folder / _LIST).read_bytes())
            return [CrashingPage(**plain) for plain in rows]
        except FileNotFoundError:
            return []
        except (ValueError, TypeError) as problem:
            self._state.log.warning(
                "the list of crashing pages is unreadable and starts empty: %s", problem
            )
            return []

    def _write(self, pages: list[CrashingPage]) -> None:
        plain = [asdict(page) for page in pages]
        backend_at(str(self._folder)).replace(_LIST, json.dumps(plain, indent=1).encode())

    def _keep(self) -> None:
        """On the disk and, under a new name before the old one goes, in a remote store."""
        self._write(self.pages)
        mine = f"{_SET}{len(self._pages):06d}"
        self._state.publish(mine, self._folder / _LIST)
        published = self._state.published()
        for name in published:
            if name.startswith(_SET) and name < mine and mine in published:
                self._state.withdraw(name)


def _reason(crash: WorkerCrash) -> str | None:
    """Why a worker crashed; None for a crash that no page causes (SIGKILL, SIGTERM, exit)."""
    if crash.exit_code == -_HUNG:
        return "hung"
    return "crashed" if -crash.exit_code in _CRASHES else None


def _mark_path(folder: Path, unit: str, process: int) -> Path:
    return folder / f"{unit}.{process}"


def _key(page: str) -> str:
    """The name, or its hash where a mark cannot hold it."""
    if len(page) <= (_MARK_BYTES - _HEAD.size) // 4:
        return page
    return "sha256:" + hashlib.sha256(page.encode("utf-8", "surrogatepass")).hexdigest()
