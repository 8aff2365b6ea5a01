"""What a Dask worker must agree on with the stage before it is given a shard.

The manifest names one program and one version of each library for all of an artifact's bytes, and
the promise of equal bytes holds for those. So a worker with other code or other versions is
refused, not warned about: the record would be untrue. And it must see the files that the stage
reads and read the stage's own, or its shards would be lost.
"""

from __future__ import annotations

import os
import pickle
import secrets
import socket
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

from artifacts_schema.identity import short
from artifacts_schema.store import layout
from artifacts_schema.store.backend import Backend, backend_at
from stages.engine.code import code_digest, engine_digest, library_versions
from stages.engine.cost import process_seconds
from stages.engine.launch import THREAD_VARIABLES, WAITING
from stages.engine.protocol import Stage
from stages.engine.workers import answered

FOLDER = "dask"
"""In a work folder: where the stage and its workers show each other a file."""
_asked_by: set[str] = set()
"""In a worker: tokens of the pools that asked this process."""


@dataclass(frozen=True)
class Place:
    """A folder that the stage and a worker must both see. Picklable."""

    url: str
    folder: str
    token: str

    @cached_property
    def backend(self) -> Backend:
        """Where the folder lies."""
        return backend_at(self.url)

    def show(self) -> None:
        """Write the file that workers look for; StoreError where nothing can be written."""
        self.backend.replace(f"{self.folder}/{self.token}", self.token.encode())

    def answer(self) -> str:
        """In a worker: read that file, write one beside it, and return its name.

        Raises what reading or writing raises, and FileNotFoundError where another file lies there.
        """
        if self.backend.read(f"{self.folder}/{self.token}") != self.token.encode():
            raise FileNotFoundError(self.folder)
        name = f"{self.token}-{secrets.token_hex(4)}"
        self.backend.replace(f"{self.folder}/{name}", self.token.encode())
        return name

    def holds(self, name: str) -> bool:
        """Whether the stage sees what a worker wrote."""
        return bool(self.backend.read_many([f"{self.folder}/{name}"]))

    def clear(self) -> None:
        """Remove what was shown and answered."""
        self.backend.remove(self.folder)


@dataclass(frozen=True)
class Question:
    """What a worker is asked. Picklable where Ingot is, even if the stage is not there."""

    stage: bytes
    places: tuple[Place, ...]
    threads: int
    token: str


@dataclass(frozen=True)
class Answer:
    """What a worker says of itself; `problem` where it cannot even do that."""

    process: int
    host: str
    engine: str = ""
    code: str = ""
    libraries: Mapping[str, str] = field(default_factory=dict)
    written: tuple[str, ...] = ()
    problem: str | None = None
    cpu_seconds: float = 0.0
    """What it took to find out: mostly the import of the stage."""


@dataclass(frozen=True)
class Terms:
    """The stage's side: its program (`code` is its digest here), and where its work lies.

    `folder` is the stage's own folder on this machine, of which shards may read what the stage laid
    there: on a local store it lies in the store.
    """

    stage: type[Stage]
    code: str
    backend: Backend
    key: str
    folder: Path
    threads: int
    token: str = field(default_factory=lambda: secrets.token_hex(8))

    def places(self) -> tuple[Place, ...]:
        """The store's work folder; of a remote store also the stage's own, once it holds a file."""
        shared = Place(self.backend.url, layout.work(self.key, FOLDER), self.token)
        if self.backend.local or not any(p.is_file() for p in self.folder.rglob("*")):
            return (shared,)
        return shared, Place(str(self.folder), FOLDER, self.token)

    def question(self, places: tuple[Place, ...]) -> Question:
        """What each worker is asked."""
        return Question(pickle.dumps(self.stage), places, self.threads, self.token)

    def differences(self, given: Answer, places: tuple[Place, ...]) -> list[str]:
        """Why a worker that answers so cannot be given a shard; empty if it can."""
        if given.problem is not None:
            return [given.problem]
        found = []
        for name, theirs, ours in (
            (f"code of {self.stage.name}", given.code, self.code),
            ("code of Ingot's engine", given.engine, engine_digest()),
        ):
            if theirs != ours:
                found.append(f"other {name} ({short(theirs)}, here {short(ours)})")
        for name, version in library_versions(self.stage).items():
            other = given.libraries.get(name, "absent")
            if other != version:
                found.append(f"{name} {other}, here {version}")
        for place, name in zip(places, given.written, strict=True):
            if not place.holds(name):
                found.append(_unseen(place, "what it writes there is not seen here"))
        return found


def introduced(question: Question) -> Answer:
    """In a worker: the answer to a question. What is wrong is told, never raised."""
    begun = process_seconds()
    who = Answer(os.getpid(), socket.gethostname())
    try:
        stage = pickle.loads(question.stage)
    except Exception as error:
        return replace(who, problem=f"it cannot import the stage: {type(error).__name__}: {error}")
    written = []
    for place in question.places:
        try:
            written.append(place.answer())
        except Exception as error:
            said = "no such file" if isinstance(error, FileNotFoundError) else str(error)
            return replace(who, problem=_unseen(place, said))
    threads = dict.fromkeys(THREAD_VARIABLES, str(question.threads))
    for name, value in {**threads, **WAITING}.items():  # Where the worker was started without.
        os.environ.setdefault(name, value)
    _asked_by.add(question.token)
    return replace(
        who,
        engine=engine_digest(),
        code=code_digest(stage),
        libraries=library_versions(stage),
        written=tuple(written),
        cpu_seconds=process_seconds() - begun,
    )


def _unseen(place: Place, said: str) -> str:
    return f"it does not share {place.backend.full(place.folder)} with this machine: {said}"


def served(token: str, call: bytes) -> tuple[bytes, float] | None:
    """In a worker: a shard's call, answered, and the CPU seconds it took.

    None where this process was not asked by the pool of that token: it is a new one behind an old
    address.
    """
    if token not in _asked_by:
        return None
    begun = process_seconds()
    return bytes(answered(call)), process_seconds() - begun
