"""Whether an artifact's bytes are still the bytes that its manifest names."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from artifacts_schema.errors import CorruptArtifact
from artifacts_schema.identity import short
from artifacts_schema.manifest import File, Manifest
from artifacts_schema.store.backend import Backend
from artifacts_schema.store.store import Store

_BLOCK = 1 << 20


@dataclass(frozen=True)
class Problem:
    """One file that is not what it should be."""

    path: str
    what: str


def verify(store: Store, manifest: Manifest, *, full: bool = True) -> list[Problem]:
    """Every payload file that is missing, of another size, or (`full`) of other bytes."""
    problems = []
    for name, output in manifest.outputs.items():
        for file in output.files:
            path = store.payload(manifest, name, file.path)
            what = difference(store.backend, path, file, full=full)
            if what:
                problems.append(Problem(path, what))
    return problems


def check_file(backend: Backend, path: str, file: File, *, full: bool, owner: str) -> None:
    """Raise CorruptArtifact unless the stored bytes are those of `file`."""
    what = difference(backend, path, file, full=full)
    if what:
        raise CorruptArtifact(
            f"{what} since it was committed by {owner}",
            where=backend.full(path),
            hint="restore it, or remove the artifact and run again: "
            f"ingot gc --artifact {short(owner.split()[-1])} --delete",
        )


def difference(backend: Backend, path: str, file: File, *, full: bool) -> str | None:
    """How the stored file differs from what its manifest says, or None."""
    size = backend.size(path)
    if size is None:
        return "the file is gone"
    if size != file.bytes:
        return f"the file changed from {file.bytes:,} to {size:,} bytes"
    if full and file_sha256(backend, path) != file.sha256:
        return "the file's bytes changed"
    return None


def file_sha256(backend: Backend, path: str) -> str:
    """sha256 of a stored file, read in blocks."""
    digest = hashlib.sha256()
    with backend.open(path) as file:
        while block := file.read(_BLOCK):
            digest.update(block)
    return digest.hexdigest()
