"""Removal of what lies in a folder that several users share.

Whoever may write into a store could let a symbolic link lead to files of another user, who would
remove them with their own rights. So a link on the way is followed only if this user, root or the
owner of the store made it, and each folder is held open before the next one is looked for: nobody
can exchange it meanwhile.
"""

from __future__ import annotations

import errno
import os
import shutil
import stat
from collections.abc import Collection, Iterator
from contextlib import contextmanager

from artifacts_schema.errors import StoreError

REMOVALS = 10
"""How often a folder is emptied again when somebody writes into it while it is removed."""
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC


def remove_below(root: str, path: str) -> None:
    """Remove a file or a folder with all it holds. OSError, also if there is none."""
    above, _, name = path.rpartition("/")
    try:
        with _open_folder(root, above) as folder:
            _remove(name, folder)
    except OSError as error:
        error.filename = os.path.join(root, above, error.filename or name)
        raise


def remove_empty_below(root: str, path: str) -> None:
    """Remove a folder. OSError if something is in it."""
    above, _, name = path.rpartition("/")
    with _open_folder(root, above) as folder:
        os.rmdir(name, dir_fd=folder)


@contextmanager
def _open_folder(root: str, path: str) -> Iterator[int]:
    """The folder `path` below `root`, held open."""
    folder = os.open(root, _FOLDER)
    try:
        trusted = trusted_users(folder)
        place = root
        for name in filter(None, path.split("/")):
            place = f"{place}/{name}"
            try:
                inner = os.open(name, _FOLDER | os.O_NOFOLLOW, dir_fd=folder)
            except NotADirectoryError:
                inner = _follow_link(place, folder, trusted)
            os.close(folder)
            folder = inner
        yield folder
    finally:
        os.close(folder)


def trusted_users(root: int | str) -> set[int]:
    """Users whose symbolic links in the store at `root` are followed."""
    return {0, os.geteuid(), os.stat(root).st_uid}


def _follow_link(place: str, folder: int, trusted: Collection[int]) -> int:
    """Open the folder that a symbolic link in an open folder leads to, if one of `trusted` made it.

    Raises NotADirectoryError for what is no link.
    """
    name = os.path.basename(place)
    if not hasattr(os, "O_PATH"):  # Not Linux: there are no shared stores.
        return os.open(name, _FOLDER, dir_fd=folder)
    link = os.open(name, os.O_PATH | os.O_NOFOLLOW, dir_fd=folder)
    try:
        status = os.fstat(link)
        if not stat.S_ISLNK(status.st_mode):
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), place)
        if status.st_uid not in trusted:
            raise StoreError(
                "a symbolic link that another user made, which is not followed",
                where=place,
                hint="nothing was removed through it; remove the link",
            )
        return os.open(os.readlink("", dir_fd=link), _FOLDER, dir_fd=folder)
    finally:
        os.close(link)


def _remove(name: str, folder: int) -> None:
    """Remove a file or folder in an open folder; another process may write into it meanwhile."""
    if not stat.S_ISDIR(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode):
        os.unlink(name, dir_fd=folder)
        return
    for left in range(REMOVALS, 0, -1):
        try:
            shutil.rmtree(name, dir_fd=folder)
            return
        except OSError as error:
            if left == 1 or error.errno not in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOENT):
                raise
