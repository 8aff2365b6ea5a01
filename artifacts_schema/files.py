"""Files of this machine: opened only if reading them can end, absent only if that is proven.

Opening a FIFO waits for a writer, /dev/zero has no end, and opening some devices does something.
`Path.glob`, and in newer Pythons `Path.exists`, take what cannot be read for what is not there.
"""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import BinaryIO

_KINDS = {
    stat.S_IFIFO: "a FIFO",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFDIR: "a folder",
}
_NEVER_WAIT = os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC


def names_in(folder: Path) -> list[str]:
    """What lies in a folder, sorted; nothing only if there is no such folder. OSError otherwise."""
    try:
        return sorted(os.listdir(folder))
    except FileNotFoundError:
        return []


def exists(path: Path) -> bool:
    """Whether something lies at `path`. OSError where that cannot be told."""
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
    """Size, time of writing, time of change and inode: equal while nobody touched the file.

    Size and time of writing alone can be kept over a change (`touch -r`, `cp -p`, a coarse clock);
    no program can set the time of change.
    """
    return status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino
