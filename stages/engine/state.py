"""What a stage keeps for itself between kills: on this machine, and in a remote store as well.

A stage works in a local folder. On a remote store it publishes there what another machine would
need to continue: named sets of files, each with a list of sizes and checksums that is written last.
A set without its list, or with bytes that differ from it, is never used.

Every holder of the run's lease has a folder and published sets of its own. So one that was silent,
was succeeded and wakes up cannot write into what its successor reads. The successor takes over from
the newest predecessor that had taken over whole.
"""

from __future__ import annotations

import json
import logging
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from artifacts_schema.errors import CorruptArtifact, StoreError
from artifacts_schema.file_table import File
from artifacts_schema.files import exists, list_names
from artifacts_schema.store import layout
from artifacts_schema.store.backend import Backend, fsync_folder
from artifacts_schema.store.cache import download
from artifacts_schema.store.failpoints import hit_failpoint
from artifacts_schema.store.lease import Lease, is_over, local_work
from artifacts_schema.store.storage_errors import translate_errors

_BLOCK = 16 << 20

ACCEPTED = "accepted.json"
"""In a state's folder: programs that its work was taken over from, in order."""
WHOLE = ".whole"
"""In a state's folder: all that its predecessor left has been taken over. Written last."""


def open_state(
    backend: Backend, lease: Lease, code: str, log: logging.Logger, *, accept: bool = False
) -> State:
    """The state of a lease's holder, with what its predecessors left.

    With `accept`, where no holder of this `code` left anything, the newest state of another program
    is taken over: for who knows that a change of the program does not bear on the work, or wants to
    go on even so. That is noted in `ACCEPTED`. Killed at any moment, the next holder finds all of
    it. Raises StoreError where it cannot be read or written.
    """
    root = local_work(backend, lease.key, "state")
    own = root / code / lease.holder
    with translate_errors(str(own)):
        before = _newest_complete(root / code, lease.holder)
        accept = accept and (before is None or not _holds_anything(before))
        other = _newest_other(root, code) if accept else None
        if other is not None:
            _carry(other, own)
        elif before is not None:
            _take_over(backend, lease.key, before, own)
        own.mkdir(parents=True, exist_ok=True)
        published = _Published.newest(backend, lease, code)
        from_code = other.parent.name if other is not None else None
        if accept and not published.sets:
            from_code = published.take_newest_other() or from_code
        if from_code is not None:
            log.warning("continuing the work of another program: code %s → %s", from_code, code)
            changes = json.dumps([*accepted_changes(own), {"from": from_code, "to": code}])
            (own / ACCEPTED).write_text(changes, encoding="utf-8")
        published.note()
        hit_failpoint("state taken over")
        (own / WHOLE).touch()
        fsync_folder(own)
        _remove_predecessors(own, other)
    place = f"{code}/{lease.holder}"
    return State(backend, lease.key, place, own, log, published.sets, lease.check)


def accepted_changes(folder: Path) -> list[dict[str, str]]:
    """The changes of program that the work in a state's folder went through: `from`, `to`."""
    try:
        return list(json.loads((folder / ACCEPTED).read_text(encoding="utf-8")))
    except FileNotFoundError:
        return []


def _never_lost(*, ask: bool = True) -> None:
    """The check of a state that no other run can take over."""


@dataclass(frozen=True)
class State:
    """The folder of one holder of a run's lease, and the sets that it published.

    On a local store there is nothing to publish: the folder is in the store.
    """

    backend: Backend
    key: str
    place: str
    """Below the run's `state/` in the store: the program, and the holder of the lease."""
    folder: Path
    log: logging.Logger
    inherited: dict[str, str] = field(default_factory=dict)
    """Sets that predecessors published: name → place."""
    check: Callable[..., None] = _never_lost
    """Raises LeaseLost once another run has taken the key over; see `Lease.check`."""

    def publish(self, name: str, *paths: Path) -> bool:
        """Keep files, and folders with all in them, as the set `name`; False if that failed.

        They are below `folder`; earlier files of the set are removed. A store that cannot be
        reached is a warning: the next set may succeed, and the work continues with the local
        files. Raises LeaseLost once another run has taken the key over.
        """
        if self.backend.local:
            self.check()
            return True
        try:
            self.check()
            before = self.inherited.get(name)
            if before is None:
                self._remove(self.place, name)
            uploaded = [self._upload(name, path) for path in _files(paths)]
            hit_failpoint("state files published")
            text = json.dumps([file.model_dump() for file in uploaded])
            self.backend.replace(self._list(self.place, name), text.encode())
            hit_failpoint("state published")
            if before is not None:
                self._remove(self.inherited.pop(name), name)
        except StoreError as error:
            self.log.warning("%s is kept on this machine only: %s", name, error)
            return False
        return True

    def published(self) -> list[str]:
        """Names of the whole sets, sorted; none on a local store."""
        if self.backend.local:
            return []
        places = {self.place, *self.inherited.values()}
        lists = {place: self._lists(place) for place in places}
        inherited = {name for name, place in self.inherited.items() if name in lists[place]}
        return sorted(lists[self.place] | inherited)

    def fetch(self, name: str) -> bool:
        """Lay the files of the set `name` where they were published from; False if it is not whole.

        Existing files are replaced.
        """
        if name not in self.published():
            return False
        place = self.inherited.get(name, self.place)
        try:
            entries = json.loads(self.backend.read(self._list(place, name)))
            for plain in entries:
                file = File(**plain)
                source = _path(self.key, place, name, file.path)
                download(self.backend, source, file, self.folder / file.path)
        except (FileNotFoundError, CorruptArtifact, ValueError, TypeError) as problem:
            self.log.warning("%s in the store is not used: %s", name, problem)
            return False
        return True

    def withdraw(self, name: str) -> None:
        """Remove a set from the store, its list first. Raises LeaseLost as `publish` does."""
        self.check()
        if not self.backend.local:
            self._remove(self.inherited.pop(name, self.place), name)

    def _remove(self, place: str, name: str) -> None:
        self.backend.remove(self._list(place, name))
        self.backend.remove(_path(self.key, place, name))

    def _upload(self, name: str, path: Path) -> File:
        inside = path.relative_to(self.folder).as_posix()
        target_path = _path(self.key, self.place, name, inside)
        with open(path, "rb") as source, self.backend.create(target_path) as target:
            while block := source.read(_BLOCK):
                target.write(block)
        return File(path=inside, bytes=target.bytes, sha256=target.sha256)

    def _lists(self, place: str) -> set[str]:
        files = self.backend.files(_path(self.key, place))
        return {name.removesuffix(".json") for name in files if "/" not in name}

    def _list(self, place: str, name: str) -> str:
        return _path(self.key, place, f"{name}.json")


# Taking over on this machine ----------------------------------------------------------------------


def _newest_complete(folder: Path, before: str | None = None) -> Path | None:
    """The folder of the newest holder that had taken over whole, of those before `before`."""
    whole = [one for one in _folders(folder) if exists(one / WHOLE)]
    earlier = [one for one in whole if before is None or _is_earlier(one.name, before)]
    return max(earlier, default=None)


def _is_earlier(holder: str, than: str) -> bool:
    """Whether a holder of the lease came before another one."""
    return holder.partition("-")[0] < than.partition("-")[0]


def _newest_other(root: Path, code: str) -> Path | None:
    """What the newest holder left of those that ran another program."""
    newest = (_newest_complete(one) for one in _folders(root) if one.name != code)
    left = [one for one in newest if one is not None and _holds_anything(one)]
    return max(left, key=lambda one: one.name, default=None)


def _take_over(backend: Backend, key: str, source: Path, target: Path) -> None:
    """Move what a holder left, if it has ended for certain; else link or copy it.

    A file that is read-only is linked: it is never written again. Any other may be written by a
    holder that wakes up, so it is copied.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    if is_over(backend, key, source.name):
        source.rename(target)
        fsync_folder(target.parent)
        return
    _carry(source, target)


def _carry(source: Path, target: Path) -> None:
    """What vanishes meanwhile is left out: its owner may be awake."""
    target.mkdir(parents=True, exist_ok=True)
    for name in list_names(source):
        path, copy = source / name, target / name
        if path.is_dir() and not path.is_symlink():
            _carry(path, copy)
        elif path.is_file() and name != WHOLE:
            with suppress(FileNotFoundError):
                _link_or_copy(path, copy)
    fsync_folder(target)


def _link_or_copy(path: Path, copy: Path) -> None:
    if not path.stat().st_mode & 0o222:
        with suppress(OSError):  # A file system without links.
            os.link(path, copy)
            return
    shutil.copy2(path, copy)
    with open(copy, "rb") as file:
        os.fsync(file.fileno())


def _remove_predecessors(own: Path, other: Path | None) -> None:
    """Remove what was taken over from, and what never was whole."""
    earlier = [one for one in _folders(own.parent) if _is_earlier(one.name, own.name)]
    for folder in [*earlier, *([other.parent] if other is not None else [])]:
        # One that is awake may write into it at this moment; what is left goes with the run.
        shutil.rmtree(folder, ignore_errors=True)


def _holds_anything(folder: Path) -> bool:
    return any(name not in (ACCEPTED, WHOLE) for name in list_names(folder))


def _folders(folder: Path) -> list[Path]:
    return [folder / name for name in list_names(folder) if (folder / name).is_dir()]


def _walk_files(folder: Path) -> Iterator[Path]:
    """All files below a folder; OSError where one of its folders cannot be read."""

    def refuse(error: OSError) -> None:
        raise error

    for place, _, names in os.walk(folder, onerror=refuse):
        yield from (Path(place, name) for name in names)


# Taking over in the store -------------------------------------------------------------------------


@dataclass
class _Published:
    """What the predecessors of a lease's holder published; nothing on a local store.

    A note in the store, `<code>/<holder>.json`, names the sets that a holder took over: so the next
    one finds them, and whatever a predecessor publishes after that is ignored.
    """

    backend: Backend
    lease: Lease
    code: str
    files: set[str] = field(default_factory=set)
    """Below the run's `state/`."""
    sets: dict[str, str] = field(default_factory=dict)
    """Name → place (`<code>/<holder>`) of each whole set."""

    @classmethod
    def newest(cls, backend: Backend, lease: Lease, code: str) -> _Published:
        """Those of the newest holder of this `code`."""
        published = cls(backend, lease, code)
        if not backend.local:
            published.files = set(backend.files(layout.work(lease.key, "state")))
            own = [one for one in published._holders() if published._is_predecessor(one)]
            published.sets = published._sets_of(max(own)) if own else {}
        return published

    def take_newest_other(self) -> str | None:
        """Take those of the newest holder that ran another program; its code, if there is one."""
        theirs = [one for one in self._holders() if not one.startswith(f"{self.code}/")]
        for one in sorted(theirs, key=lambda one: one.partition("/")[2], reverse=True):
            if sets := self._sets_of(one):
                self.sets = sets
                return one.partition("/")[0]
        return None

    def note(self) -> None:
        """Say in the store what was taken over; then remove what predecessors left half done."""
        if self.backend.local:
            return
        mine = _path(self.lease.key, self.code, f"{self.lease.holder}.json")
        self.backend.replace(mine, json.dumps({"sets": self.sets}, sort_keys=True).encode())
        kept = {f"{place}/{name}" for name, place in self.sets.items()}
        parts = (name.removesuffix(".json").split("/") for name in self.files)
        begun = {"/".join(one[:3]) for one in parts if len(one) > 2}
        for one in sorted(begun - kept):
            if self._is_predecessor(one.rpartition("/")[0]):
                self.backend.remove(_path(self.lease.key, f"{one}.json"))
                self.backend.remove(_path(self.lease.key, one))

    def _holders(self) -> list[str]:
        return [name.removesuffix(".json") for name in self.files if name.count("/") == 1]

    def _is_predecessor(self, place: str) -> bool:
        code, _, holder = place.partition("/")
        return code == self.code and _is_earlier(holder, self.lease.holder)

    def _sets_of(self, place: str) -> dict[str, str]:
        """The whole sets that a holder had: those it published, and those it had taken over."""
        note = json.loads(self.backend.read(_path(self.lease.key, f"{place}.json")))
        taken = {name: at for name, at in note["sets"].items() if f"{at}/{name}.json" in self.files}
        own = [one for one in self.files if one.startswith(f"{place}/") and one.count("/") == 2]
        return taken | {one.rpartition("/")[2].removesuffix(".json"): place for one in own}


def _path(key: str, *parts: str) -> str:
    return layout.work(key, "state", *parts)


def _files(paths: tuple[Path, ...]) -> list[Path]:
    below = (_walk_files(path) if path.is_dir() else [path] for path in paths)
    return sorted(file for group in below for file in group if file.is_file())
