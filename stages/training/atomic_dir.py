"""Atomic directories: files that count only once a list of their sizes and checksums is with them.

A process may die at any moment; a directory without its list, or with a file that differs from it,
was never finished or was damaged, and is not read.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from artifacts_schema.files import exists, make_read_only
from artifacts_schema.store.failpoints import hit_failpoint
from artifacts_schema.store.storage_errors import translate_errors

SEAL = "sealed.json"


class IncompleteDir(Exception):
    """The folder is incomplete or damaged; the message says how."""


def write_atomic_dir(
    folder: Path, writers: Mapping[str, Callable[[Path], object]], facts: Mapping[str, Any]
) -> None:
    """Write each file by its writer, then the list with `facts`; whatever lay there is replaced.

    The files are read-only: nobody writes into them again, so they can be linked. An error leaves
    no folder; a writer's is a StoreError where the disk is full.
    """
    remove_atomic_dir(folder)
    folder.mkdir(parents=True)
    try:
        files = {}
        for name, write in writers.items():
            path = folder / name
            with translate_errors(str(path)):  # A library's own error for a full disk, too.
                write(path)
            _sync(path)
            make_read_only(path)
            files[name] = {"bytes": path.stat().st_size, "sha256": _sha256(path)}
        hit_failpoint("checkpoint files written")
        temporary = folder / f"{SEAL}.partial"
        temporary.write_text(json.dumps({"files": files, "facts": facts}), encoding="utf-8")
        _sync(temporary)
        make_read_only(temporary)
        os.replace(temporary, folder / SEAL)
        _sync(folder)
        _sync(folder.parent)
    except Exception:
        shutil.rmtree(folder, ignore_errors=True)
        raise


def read_atomic_dir(folder: Path) -> dict[str, Any]:
    """The facts of a folder whose every file is whole; IncompleteDir with the fault otherwise."""
    try:
        content = json.loads((folder / SEAL).read_text(encoding="utf-8"))
        files, facts = content["files"], content["facts"]
    except FileNotFoundError:
        raise IncompleteDir("was never finished") from None
    except (ValueError, KeyError, TypeError):
        raise IncompleteDir(f"{SEAL} is damaged") from None
    for name, entry in files.items():
        path = folder / name
        if not exists(path):
            raise IncompleteDir(f"{name} is missing")
        if path.stat().st_size != entry["bytes"] or _sha256(path) != entry["sha256"]:
            raise IncompleteDir(f"{name} is damaged")
    return dict(facts)


def remove_atomic_dir(folder: Path) -> None:
    """Remove a folder, its list first, so that a half-removed one is not taken for whole."""
    (folder / SEAL).unlink(missing_ok=True)
    if exists(folder):
        shutil.rmtree(folder)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
