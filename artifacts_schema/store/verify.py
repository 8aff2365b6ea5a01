"""Whether an artifact's bytes are still the bytes that its manifest names."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

from artifacts_schema.errors import CorruptArtifact
from artifacts_schema.identity import short
from artifacts_schema.manifest import File, Manifest
from artifacts_schema.store import layout
from artifacts_schema.store.backend import Backend
from artifacts_schema.store.cache import cached
from artifacts_schema.store.store import Store


@dataclass(frozen=True)
class Problem:
    """One file that is not what it should be."""

    path: str
    what: str


def verify(store: Store, manifest: Manifest, *, full: bool = True) -> list[Problem]:
    """Every payload file that is missing, of another size, or (`full`) of other bytes."""
    problems = []
    there = store.backend.listing(layout.payload(manifest.stage, manifest.key, manifest.attempt))
    for name, output in manifest.outputs.items():
        for file in output.files:
            path = store.payload(manifest, name, file.path)
            entry = there.get(f"{name}/{file.path}")
            size = entry.bytes if entry is not None else None
            what = _difference(store.backend, path, file, size, full=full)
            if what:
                problems.append(Problem(path, what))
    return problems


def checked_path(backend: Backend, path: str, file: File, *, full: bool, owner: str) -> Path:
    """A file of this machine with the bytes of `file`: the store's own, or a verified copy of it.

    Raises CorruptArtifact unless the stored bytes are those of `file`: its size, and `full` its
    sha256 (of a copy that is made now, always).
    """
    if backend.local:
        what = _difference(backend, path, file, backend.size(path), full=full)
        if what is None:
            return backend.local_path(path)
    else:
        try:
            return cached(backend, path, file, full=full)
        except FileNotFoundError:
            what = "the file is gone"
        except CorruptArtifact as error:
            what = error.what
    raise CorruptArtifact(
        f"{what} since it was committed by {owner}",
        where=backend.full(path),
        hint="restore it, or remove the artifact and run again: "
        f"ingot gc --artifact {short(owner.split()[-1])} --delete",
    )


def _difference(
    backend: Backend, path: str, file: File, size: int | None, *, full: bool
) -> str | None:
    """How the stored file, of `size` bytes if it is there, differs from its manifest, or None."""
    if size is None:
        return "the file is gone"
    if size != file.bytes:
        return f"the file changed from {file.bytes:,} to {size:,} bytes"
    if full and _sha256(backend, path, size) != file.sha256:
        return "the file's bytes changed"
    return None


def _sha256(backend: Backend, path: str, size: int) -> str:
    digest = hashlib.sha256()
    for block in backend.blocks(path, size):
        digest.update(block)
    return digest.hexdigest()
