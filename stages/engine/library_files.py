"""Files that a library writes: there in whole or not at all, whatever the library reports.

Libraries report a failed write as an error of their own kind (safetensors, DuckDB), or not at all:
fastText's `save_model` leaves a cut file and returns. So they write to a temporary name; the file
is checked, synced to the disk and renamed. What a killed run left under the final name can be used.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

from artifacts_schema.errors import InputError, StoreError
from artifacts_schema.store.backend import fsync_folder
from artifacts_schema.store.refusals import explained

_HINT = "the disk may be full: free space and run again; finished parts are kept"


def write_whole(
    path: Path, write: Callable[[Path], object], check: Callable[[Path], object] | None = None
) -> None:
    """Let `write` make the file or folder `path`.

    `write` gets a temporary path beside it; `check`, where a library may not report failed writes,
    raises InputError for what is not whole. After an error nothing is left. Raises StoreError for
    an error of the file system (no space, input or output error), and where `check` fails.
    """
    temporary = path.with_name(f"{path.name}.unfinished")
    remove(temporary)
    try:
        with explained(str(path)):
            write(temporary)
            if check is not None:
                _check(check, temporary, path)
            _sync(temporary)
            os.replace(temporary, path)
            fsync_folder(path.parent)
    except BaseException as error:
        remove(temporary)
        if isinstance(error, OSError):  # NumPy tells a short write without its errno.
            raise StoreError(f"cannot be written: {error}", where=str(path), hint=_HINT) from error
        raise


def _check(check: Callable[[Path], object], written: Path, path: Path) -> None:
    try:
        check(written)
    except InputError as damage:
        raise StoreError(
            f"it was not written whole: {damage.what}",
            where=str(path),
            hint=_HINT,
        ) from None


def remove(path: Path) -> None:
    """Remove a file, or a folder with all it holds; nothing there is fine."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _sync(path: Path) -> None:
    """Sync a file, or each file and folder below a folder."""
    if path.is_dir():
        for inner in path.iterdir():
            _sync(inner)
        fsync_folder(path)
        return
    with open(path, "rb") as file:
        os.fsync(file.fileno())
