"""Files of this machine, opened only if reading them can end, and written whole or not at all.

Opening a FIFO waits for a writer, /dev/zero has no end, and opening some devices does something.
`Path.glob`, and in newer Pythons `Path.exists`, report a file that cannot be read as absent; the
functions here raise instead.

Libraries report a failed write as an error of their own kind (safetensors, DuckDB), or not at all:
fastText's `save_model` leaves a truncated file and returns. So they write to a temporary name; the
file is checked, synced to the disk and renamed. A file under its final name is always complete.
"""

from __future__ import annotations

import errno
import os
import shutil
import stat
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

from artifacts_schema.errors import InputError, StoreError
from artifacts_schema.store.backend import fsync_folder
from artifacts_schema.store.storage_errors import translate_errors

_KINDS = {
    stat.S_IFIFO: "a FIFO",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFDIR: "a folder",
}
_NEVER_WAIT = os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC


def list_names(folder: Path) -> list[str]:
    """The names in a folder, sorted; empty only if there is no such folder. OSError otherwise."""
    try:
        return sorted(os.listdir(folder))
    except FileNotFoundError:
        return []


def exists(path: Path) -> bool:
    """Whether `path` exists. OSError if that cannot be found out."""
    try:
        os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return False
    return True


def open_regular(path: str | Path) -> BinaryIO:
    """Open a regular file (or a link to one) for reading; never waits.

    OSError as `open` raises it, and for a FIFO, socket, device or folder.
    """
    _check(path, _status(path))
    # It may have been replaced since: O_NONBLOCK keeps a FIFO from waiting, then look again.
    file = open(path, "rb", opener=lambda name, flags: os.open(name, flags | _NEVER_WAIT))  # noqa: SIM115
    try:
        _check(path, os.fstat(file.fileno()))
    except BaseException:
        file.close()
        raise
    return file


def _status(path: str | Path) -> os.stat_result:
    try:
        return os.stat(path)
    except ValueError:
        raise OSError(errno.EINVAL, "its name holds a NUL", str(path)) from None


def _check(path: str | Path, status: os.stat_result) -> None:
    if not stat.S_ISREG(status.st_mode):
        kind = _KINDS.get(stat.S_IFMT(status.st_mode), "no regular file")
        raise OSError(errno.EINVAL, f"it is {kind}, and only regular files are read", str(path))


def file_state(status: os.stat_result) -> tuple[int, int, int, int]:
    """Size, time of writing, time of change and inode: equal while the file is unchanged.

    Size and time of writing alone can be kept over a change (`touch -r`, `cp -p`, a coarse clock);
    no program can set the time of change.
    """
    return status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino


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
    remove_path(temporary)
    try:
        with translate_errors(str(path)):
            write(temporary)
            if check is not None:
                _check_written(check, temporary, path)
            _sync(temporary)
            os.replace(temporary, path)
            fsync_folder(path.parent)
    except BaseException as error:
        remove_path(temporary)
        if isinstance(error, OSError):  # NumPy reports a short write without its errno.
            raise StoreError(f"cannot be written: {error}", where=str(path), hint=_HINT) from error
        raise


def _check_written(check: Callable[[Path], object], written: Path, path: Path) -> None:
    try:
        check(written)
    except InputError as damage:
        raise StoreError(
            f"it was not written whole: {damage.what}", where=str(path), hint=_HINT
        ) from None


def make_read_only(path: Path) -> None:
    """Let a file be read by those who may enter its folder, and written by nobody.

    Only its owner may do that. Some libraries make files that their owner alone may read
    (safetensors).
    """
    path.chmod(0o444 & path.parent.stat().st_mode)


def remove_path(path: Path) -> None:
    """Remove a file, or a folder with all it holds; no-op if there is none."""
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
