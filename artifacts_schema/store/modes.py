"""The modes of a folder that the members of a Unix group share, and the kernel that keeps them.

The folder has the setgid bit and a default ACL; all that is made below it inherits both: folders
are 2770 and files 660, whatever the umask, and whichever process, thread or library makes them. The
files of running work are made by libraries too (pyarrow, safetensors, DuckDB), which ask no backend
of ours. A umask for Ingot's processes, PostgreSQL's way (`initdb --allow-group-access`), would
reach what a run writes outside the store: byte code, compiled kernels and caches would become
writable for the user's own group.

Members trust each other with the store, and with nothing else: what one of them removes is never
reached through a symbolic link that another one put there (`removal.py`).
"""

from __future__ import annotations

import errno
import grp
import os
import pwd
import secrets
import stat
import struct
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from artifacts_schema.config import did_you_mean
from artifacts_schema.errors import StoreError, UsageError
from artifacts_schema.store.storage_errors import translate_errors

FOLDER_MODE = 0o2770

_ATTRIBUTE = "system.posix_acl_default"
_OWNER, _GROUP, _MASK, _OTHER, _NO_ID = 0x01, 0x04, 0x10, 0x20, 0xFFFFFFFF
_RIGHTS = {_OWNER: 7, _GROUP: 7, _MASK: 7, _OTHER: 0}
_HEADER, _ENTRY = struct.Struct("<I"), struct.Struct("<HHI")
"""The kernel's form of an ACL (linux/posix_acl_xattr.h): its version, then tag, rights and id."""
_ACL = _HEADER.pack(2) + b"".join(
    _ENTRY.pack(tag, _RIGHTS[tag], _NO_ID) for tag in (_OWNER, _GROUP, _OTHER)
)
_UNSUPPORTED = (errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS)


# Users and groups --------------------------------------------------------------------------------


def find_group(name: str) -> int:
    """The id of a group; UsageError unless this user is a member of it, or root."""
    user, mine = user_name(os.geteuid()), {os.getegid(), *os.getgroups()}
    try:
        group = grp.getgrnam(name)
    except KeyError:
        raise UsageError(
            f"no group '{name}' on this machine{did_you_mean(name, map(group_name, mine))}",
            where="--group",
            hint=f"an administrator makes it: groupadd {name}; usermod -aG {name} {user}",
        ) from None
    if group.gr_gid not in mine and os.geteuid() != 0:
        raise UsageError(
            f"{user} is no member of the group '{name}'", where="--group", hint=_join_hint(group)
        )
    return group.gr_gid


def user_name(number: int) -> str:
    """The name of a user; the number of one that has no name on this machine."""
    with suppress(KeyError):
        return pwd.getpwuid(number).pw_name
    return str(number)


def group_name(number: int) -> str:
    """The name of a group; the number of one that has no name on this machine."""
    with suppress(KeyError):
        return grp.getgrgid(number).gr_name
    return str(number)


def explain_denied(folder: Path) -> StoreError | None:
    """Why this user may not enter a group's folder; None where it is no such folder."""
    try:
        status = folder.stat()
    except OSError:
        return None
    mine = {os.getegid(), *os.getgroups()}
    is_shared = stat.S_IMODE(status.st_mode) == FOLDER_MODE
    if not is_shared or status.st_gid in mine or os.geteuid() in (0, status.st_uid):
        return None
    user, name = user_name(os.geteuid()), group_name(status.st_gid)
    try:
        hint = _join_hint(grp.getgrgid(status.st_gid))
    except KeyError:
        hint = f"ask its owner, {user_name(status.st_uid)}"
    what = f"permission denied: the store is shared by the group '{name}', {user} is no member"
    return StoreError(what, where=str(folder), hint=hint)


def _join_hint(group: grp.struct_group) -> str:
    user = user_name(os.geteuid())
    if user in group.gr_mem:
        return "you were added after this session began: log in again"
    return f"an administrator adds you: usermod -aG {group.gr_name} {user}; then log in again"


# A folder's modes --------------------------------------------------------------------------------


def share_folder(folder: Path, group: int) -> None:
    """Let all that is made in `folder` from now on be the group's.

    It is tried at once, with the umask of this process changed for a moment. StoreError, with the
    folder as it was, where the file system does not keep these modes.
    """
    before = folder.stat()
    if os.geteuid() not in (0, before.st_uid):
        owner = user_name(before.st_uid)
        raise StoreError("only its owner can share it", where=str(folder), hint=f"ask {owner}")
    with translate_errors(str(folder)), _opened(str(folder)) as descriptor:
        wrong = _set_modes(descriptor, before, group) or _try_modes(folder, group)
        if wrong is not None:
            _restore(descriptor, before)
            raise StoreError(
                f"the file system does not keep a group's modes: {wrong}",
                where=str(folder),
                hint="it needs groups, modes and default ACLs, as ext4, XFS and tmpfs have them; "
                "choose another folder, or a bucket",
            )


def _try_modes(folder: Path, group: int) -> str | None:
    """What is wrong with a folder and a file made under a umask that leaves the group nothing."""
    place = folder / f".modes-{secrets.token_hex(6)}"
    umask = os.umask(0o077)
    try:
        place.mkdir()
        try:
            (place / "file").touch()
            faults = [_fault(path.stat(), group) for path in (place, place / "file")]
        finally:
            (place / "file").unlink(missing_ok=True)
            place.rmdir()
    finally:
        os.umask(umask)
    return next((fault for fault in faults if fault), None)


def _set_modes(descriptor: int, status: os.stat_result, group: int) -> str | None:
    """Give an open file or folder its group, mode and default ACL; returns why that failed.

    Some file systems have no ACLs of this form and inherit modes all the same: no error.
    """
    try:
        if status.st_gid != group:
            os.fchown(descriptor, -1, group)
        if stat.S_ISDIR(status.st_mode) and hasattr(os, "setxattr"):
            try:
                os.setxattr(descriptor, _ATTRIBUTE, _ACL)
            except OSError as error:
                if error.errno not in _UNSUPPORTED:
                    raise
        os.fchmod(descriptor, _right_mode(status))
    except PermissionError as error:
        return error.strerror
    return None


def _restore(descriptor: int, before: os.stat_result) -> None:
    with suppress(OSError):
        os.removexattr(descriptor, _ATTRIBUTE)
    os.fchown(descriptor, -1, before.st_gid)
    os.fchmod(descriptor, stat.S_IMODE(before.st_mode))


# All that is in a folder -------------------------------------------------------------------------


@dataclass(frozen=True)
class WrongMode:
    """A folder or file that not all members of the group can use, or that others can."""

    path: str
    """Below the shared folder; empty for that folder itself."""
    what: str
    owner: int
    """User id of the one who may change it, beside root."""

    def __str__(self) -> str:
        return f"{self.path or 'its folder'}: {self.what}"


def wrong_modes(folder: Path, group: int, *, mend: bool = False) -> list[WrongMode]:
    """The files and folders in `folder`, and itself, that are not its group's as they should be.

    A folder's group has all rights and its default ACL, a file's those of its owner, others none.
    With `mend` they are corrected, and those are returned that this user may not change. Symbolic
    links are not followed. Raises StoreError where `folder` itself cannot be read.
    """
    with translate_errors(str(folder)), _opened(str(folder)) as descriptor:
        return list(_walk("", descriptor, group, mend))


def _walk(path: str, folder: int, group: int, mend: bool) -> Iterator[WrongMode]:
    """Of an open folder and all in it, by descriptors: no other user can put a link in between."""
    yield from _check(path, folder, group, mend)
    for name in sorted(os.listdir(folder)):
        inner = f"{path}/{name}" if path else name
        with suppress(FileNotFoundError):  # It went away meanwhile.
            status = os.stat(name, dir_fd=folder, follow_symlinks=False)
            is_folder = stat.S_ISDIR(status.st_mode)
            if not is_folder and (not stat.S_ISREG(status.st_mode) or not _fault(status, group)):
                continue
            try:
                with _opened(name, folder) as descriptor:
                    check = _walk if is_folder else _check
                    yield from check(inner, descriptor, group, mend)
            except PermissionError:
                what = _fault(status, group) or "it cannot be read"
                yield WrongMode(inner, what, status.st_uid)


def _check(path: str, descriptor: int, group: int, mend: bool) -> Iterator[WrongMode]:
    """The fault of an open file or folder, unless it is mended now."""
    status = os.fstat(descriptor)
    fault = _fault(status, group) or _acl_fault(descriptor, status)
    if fault and mend:
        fault = _set_modes(descriptor, status, group) and fault
    if fault:
        yield WrongMode(path, fault, status.st_uid)


def _fault(status: os.stat_result, group: int) -> str | None:
    """How group and mode differ from what they should be."""
    mode, right = stat.S_IMODE(status.st_mode), _right_mode(status)
    if status.st_gid != group:
        return f"group {group_name(status.st_gid)}, not {group_name(group)}"
    return None if mode == right else f"mode {mode:o}, not {right:o}"


def _right_mode(status: os.stat_result) -> int:
    if stat.S_ISDIR(status.st_mode):
        return FOLDER_MODE
    own = status.st_mode & stat.S_IRWXU
    return own | own >> 3


def _acl_fault(descriptor: int, status: os.stat_result) -> str | None:
    """Whether new files in a folder will get other modes; None where there are no such ACLs."""
    if not stat.S_ISDIR(status.st_mode) or not hasattr(os, "getxattr"):
        return None
    try:
        raw = os.getxattr(descriptor, _ATTRIBUTE)
    except OSError as error:
        return None if error.errno in _UNSUPPORTED else "no default ACL: umasks will decide here"
    rights = {tag: bits for tag, bits, _ in _ENTRY.iter_unpack(raw[_HEADER.size :])}
    if all(rights.get(tag, right) == right for tag, right in _RIGHTS.items()):
        return None
    return "a default ACL with other rights"


@contextmanager
def _opened(name: str, folder: int | None = None) -> Iterator[int]:
    """A file or folder, opened without following a link or waiting."""
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC
    flags |= 0 if folder is None else os.O_NOFOLLOW
    descriptor = os.open(name, flags, dir_fd=folder)
    try:
        yield descriptor
    finally:
        os.close(descriptor)
