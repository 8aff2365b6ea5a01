"""What a stage keeps for itself between kills: on this machine, and in a remote store as well.

A stage works in a local folder. On a remote store it publishes there what another machine would
need to go on: named sets of files, each with a list of sizes and checksums that is written last. A
set without its list, or with bytes that differ from it, is never taken.
"""

from __future__ import annotations

import json
import logging
import shutil
from dataclasses import dataclass
from pathlib import Path

from artifacts_schema.errors import CorruptArtifact, StoreError
from artifacts_schema.manifest import File
from artifacts_schema.store import layout
from artifacts_schema.store.backend import Backend
from artifacts_schema.store.cache import download
from artifacts_schema.store.points import reached
from artifacts_schema.store.work import local_work

_BLOCK = 16 << 20


ACCEPTED = "accepted.json"
"""In a state's folder: programs that its work was taken over from, in order."""


def accept_state(backend: Backend, key: str, code: str, log: logging.Logger) -> Path:
    """The folder of `code`'s state, with the newest state of another program if it has none.

    For who knows that a change of the program does not bear on the work, or wants to go on even so.
    What is taken over is noted in `ACCEPTED`, and is not the other program's any more.
    """
    root = local_work(backend, key, "state")
    own = root / code
    if any(path.name != ACCEPTED for path in own.glob("*")):
        return own
    others = [one for one in root.glob("*") if one != own and one.is_dir() and any(one.iterdir())]
    found = max(others, key=_changed, default=None)
    before = accepted(found) if found is not None else []
    if found is not None:
        shutil.rmtree(own, ignore_errors=True)
        found.rename(own)
    elif (published := _newest_published(backend, key, code)) is not None:
        found = published
        own.mkdir(parents=True, exist_ok=True)
        theirs = State(backend, key, published.name, own, log)
        for name in theirs.published():
            theirs.fetch(name)
    if found is not None:
        log.warning("going on from the work of another program: code %s → %s", found.name, code)
        noted = json.dumps([*before, {"from": found.name, "to": code}])
        (own / ACCEPTED).write_text(noted, encoding="utf-8")
    return own


def accepted(folder: Path) -> list[dict[str, str]]:
    """The changes of program that the work in a state's folder went through: `from`, `to`."""
    try:
        return list(json.loads((folder / ACCEPTED).read_text(encoding="utf-8")))
    except FileNotFoundError:
        return []


@dataclass(frozen=True)
class State:
    """The sets that one program (`code`) published while it worked on `key`.

    On a local store there is nothing to publish: the folder lies in the store.
    """

    backend: Backend
    key: str
    code: str
    folder: Path
    log: logging.Logger

    def publish(self, name: str, *paths: Path) -> None:
        """Keep files, and folders with all in them, as the set `name`, over what it held.

        They lie below `folder`. A store that cannot be reached is a warning: the next set may
        do better, and the work goes on from what lies here.
        """
        if self.backend.local:
            return
        try:
            self.withdraw(name)
            listed = [self._upload(name, path) for path in _files(paths)]
            reached("state files published")
            text = json.dumps([file.model_dump() for file in listed])
            self.backend.replace(self._list(name), text.encode())
            reached("state published")
        except StoreError as error:
            self.log.warning("%s is kept on this machine only: %s", name, error)

    def published(self) -> list[str]:
        """Names of the whole sets, sorted; none on a local store."""
        if self.backend.local:
            return []
        files = self.backend.files(self._place())
        return [name.removesuffix(".json") for name in files if "/" not in name]

    def fetch(self, name: str) -> bool:
        """Lay the files of the set `name` where they were published from; False if it is not whole.

        Files that already lie there are replaced.
        """
        if name not in self.published():
            return False
        try:
            listed = json.loads(self.backend.read(self._list(name)))
            for plain in listed:
                file = File(**plain)
                place = self._place(name, file.path)
                download(self.backend, place, file, self.folder / file.path)
        except (FileNotFoundError, CorruptArtifact, ValueError, TypeError) as problem:
            self.log.warning("%s in the store is not used: %s", name, problem)
            return False
        return True

    def withdraw(self, name: str) -> None:
        """Remove a set from the store, its list first."""
        if not self.backend.local:
            self.backend.remove(self._list(name))
            self.backend.remove(self._place(name))

    def _upload(self, name: str, path: Path) -> File:
        inside = path.relative_to(self.folder).as_posix()
        with open(path, "rb") as source, self.backend.create(self._place(name, inside)) as target:
            while block := source.read(_BLOCK):
                target.write(block)
        return File(path=inside, bytes=target.bytes, sha256=target.sha256)

    def _list(self, name: str) -> str:
        return self._place(f"{name}.json")

    def _place(self, *parts: str) -> str:
        return layout.work(self.key, "state", self.code, *parts)


def _changed(folder: Path) -> float:
    """When something in a folder was written last."""
    return max(path.stat().st_mtime for path in (folder, *folder.rglob("*")))


def _newest_published(backend: Backend, key: str, code: str) -> Path | None:
    """The state folder (its name is a program's) that was published to last in a remote store."""
    if backend.local:
        return None
    folder = layout.work(key, "state")
    written: dict[str, float] = {}
    for name, entry in backend.listing(folder).items():
        theirs = name.split("/", 1)[0]
        if theirs != code:
            written[theirs] = max(written.get(theirs, 0.0), entry.modified)
    return Path(max(written, key=lambda one: written[one])) if written else None


def _files(paths: tuple[Path, ...]) -> list[Path]:
    below = ((path.rglob("*") if path.is_dir() else [path]) for path in paths)
    return sorted(file for found in below for file in found if file.is_file())
