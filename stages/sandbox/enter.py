"""What runs first in a sandbox: it builds the walls, starts the program inside and waits for it.

`sandbox.py` starts this file as a script of its own, without Ingot, so it needs only the standard
library. Three processes follow from it:

- the *supervisor* (this one) waits until the sandbox ends or its starter is gone, and ends it then;
- the *init* process is the first in the PID namespace: it builds the root folder, and when it ends
  the kernel kills every process inside, those that detached themselves too;
- the *program*, without privileges, descriptors, environment, network or /proc.

A program cannot forge how it ended: init reports it, over a descriptor that the program lacks.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import json
import os
import resource
import select
import signal
import struct
import sys
from contextlib import suppress
from typing import Any, NoReturn

CLONE_NEWNS, CLONE_NEWCGROUP, CLONE_NEWUTS = 0x00020000, 0x02000000, 0x04000000
CLONE_NEWIPC, CLONE_NEWUSER, CLONE_NEWPID = 0x08000000, 0x10000000, 0x20000000
CLONE_NEWNET = 0x40000000
MS_NOSUID, MS_NODEV, MS_NOEXEC = 2, 4, 8
MS_BIND, MS_REC, MS_PRIVATE = 4096, 16384, 1 << 18
MNT_DETACH = 2
MOUNT_ATTR_RDONLY, MOUNT_ATTR_NOSUID, MOUNT_ATTR_NODEV, MOUNT_ATTR_NOEXEC = 1, 2, 4, 8
AT_FDCWD, AT_RECURSIVE = -100, 0x8000
SYS_MOUNT_SETATTR = 442  # The same on every architecture; glibc has a wrapper since 2.36 only.
PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_CAPBSET_DROP = 1, 4, 24
PR_SET_CHILD_SUBREAPER, PR_SET_NO_NEW_PRIVS = 36, 38
NOBODY = 65534
"""User and group of the program, inside and outside, where root starts it."""

_libc = ctypes.CDLL(None, use_errno=True)


def main(control: int) -> None:
    """Read what to run from `control`, and run it; an end of `control` ends it."""
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # A report that nobody reads ends this.
    (size,) = struct.unpack("<Q", _read(control, 8))
    spec = json.loads(_read(control, size))
    os.umask(0o022)
    _write("/proc/self/oom_score_adj", "1000")  # Where memory ends, this goes first.
    try:
        if spec["folder"] is None:
            spec["is_nobody"] = _leave_namespaces()
        else:
            _prctl(PR_SET_CHILD_SUBREAPER, 1)  # Detached processes become ours, to be ended.
    except OSError as error:
        _report(spec, refused=str(error))
        return
    child = os.fork()
    if child == 0:
        os.close(control)
        _run_init(spec) if spec["folder"] is None else _run_program(spec)
    for descriptor in set(spec["descriptors"]):
        os.close(descriptor)  # Whoever reads a pipe of the program waits for all its writers.
    handle = os.pidfd_open(child)
    ready, _, _ = select.select([control, handle], [], [])
    if handle not in ready:
        os.kill(child, signal.SIGKILL)
    _, status, usage = os.wait4(child, 0)
    if spec["folder"] is not None:
        _end_descendants(child)
        _report_end(spec, status, usage)


def _read(descriptor: int, size: int) -> bytes:
    parts = b""
    while len(parts) < size:
        part = os.read(descriptor, size - len(parts))
        if not part:
            raise SystemExit("the starter of this sandbox is gone")
        parts += part
    return parts


def _report(spec: dict[str, Any], **values: object) -> None:
    os.write(spec["status"], json.dumps(values).encode() + b"\n")


def _report_end(spec: dict[str, Any], status: int, usage: resource.struct_rusage) -> None:
    code = os.waitstatus_to_exitcode(status)
    _report(spec, code=code, cpu_seconds=usage.ru_utime + usage.ru_stime)


def _call(step: str, result: int) -> None:
    """OSError that names the step, if a call of the C library failed."""
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{step}: {os.strerror(number)}")


def _prctl(option: int, value: int) -> None:
    _call(f"prctl {option}", _libc.prctl(option, value, 0, 0, 0))


# Namespaces


def _leave_namespaces() -> bool:
    """Become root of a new user namespace, within new namespaces of all other kinds.

    Real root maps `NOBODY` as well, as whom the program runs: the kernel limits no processes of
    root. It takes a process outside, since nobody inside may map more than himself. Returns
    whether it is mapped.
    """
    user, group = os.geteuid(), os.getegid()
    both = f"0 0 1\n{NOBODY} {NOBODY} 1\n"
    left, leaving = os.pipe()
    mapper = os.fork() if user == 0 else None
    if mapper == 0:
        os.close(leaving)
        os.read(left, 1)
        os._exit(0 if _map_ids(os.getppid(), both, both) else 1)
    try:
        _call("new user namespace", _libc.unshare(CLONE_NEWUSER))
    finally:
        os.close(left)
        os.close(leaving)
    is_mapped = mapper is not None and os.waitpid(mapper, 0)[1] == 0
    if not is_mapped:
        _write("/proc/self/setgroups", "deny")
        if not _map_ids("self", f"0 {user} 1\n", f"0 {group} 1\n"):
            raise PermissionError("mapping of users: not permitted")
    flags = CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS
    _call("new namespaces", _libc.unshare(flags | CLONE_NEWCGROUP))
    return is_mapped


def _map_ids(process: object, users: str, groups: str) -> bool:
    """Whether the maps were accepted; a map that was refused is not written."""
    try:
        _write(f"/proc/{process}/uid_map", users)
        _write(f"/proc/{process}/gid_map", groups)
    except PermissionError:
        return False
    return True


def _write(path: str, text: str) -> None:
    with open(path, "w") as file:
        file.write(text)


# The root folder


def _mount(source: str, target: str, kind: str | None, flags: int, data: str | None = None) -> None:
    result = _libc.mount(
        source.encode(),
        target.encode(),
        kind and kind.encode(),
        ctypes.c_ulong(flags),
        data and data.encode(),
    )
    _call(f"mount {target}", result)


def _restrict_mount(path: str, attributes: int = 0, *, is_deep: bool = True) -> None:
    """Make a mount, and all in it if `is_deep`, read-only and without privileges."""
    value = struct.pack("<QQQQ", MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | attributes, 0, 0, 0)
    flags = ctypes.c_uint(AT_RECURSIVE if is_deep else 0)
    result = _libc.syscall(
        ctypes.c_long(SYS_MOUNT_SETATTR), ctypes.c_int(AT_FDCWD), path.encode(), flags,
        value, ctypes.c_size_t(len(value)),
    )  # fmt: skip
    _call(f"mount_setattr {path}", result)


def _make_root(spec: dict[str, Any]) -> None:
    """An empty read-only root with the interpreter and the program's files, and a small /tmp.

    Sources are opened before the new root covers /tmp: one of them may lie there.
    """
    sources = [(path, os.open(path, os.O_PATH)) for path in spec["binds"]]
    devices = [(path, os.open(path, os.O_PATH)) for path in ("/dev/null", "/dev/urandom")]
    _mount("none", "/", None, MS_REC | MS_PRIVATE)
    _mount("tmpfs", "/tmp", "tmpfs", MS_NOSUID | MS_NODEV, "size=64m,mode=755")
    os.chdir("/tmp")
    for folder in ("tmp", "program"):
        os.mkdir(folder)
    size = f"size={spec['limits']['disk_bytes']},nr_inodes=1k,mode=1777"
    _mount("tmpfs", "./tmp", "tmpfs", MS_NOSUID | MS_NODEV | MS_NOEXEC, size)
    for path, source in sources:
        _bind(path, source)
        _restrict_mount(f".{path}", MOUNT_ATTR_NODEV)
    for path in spec["hidden"]:
        if os.path.isdir(f".{path}"):
            _mount("tmpfs", f".{path}", "tmpfs", MS_NOSUID | MS_NODEV, "size=4k,mode=755")
            _restrict_mount(f".{path}", MOUNT_ATTR_NODEV)
    for path, source in devices:
        _bind(path, source)
        _restrict_mount(f".{path}", MOUNT_ATTR_NOEXEC)
    for name, text in spec["files"].items():
        with open(f"program/{name}", "w", encoding="utf-8", newline="") as file:
            file.write(text)
    _restrict_mount(".", MOUNT_ATTR_NODEV, is_deep=False)
    _call("pivot_root", _libc.pivot_root(b".", b"."))
    _call("umount of the old root", _libc.umount2(b".", MNT_DETACH))
    os.chdir("/tmp")


def _bind(path: str, source: int) -> None:
    """Bind an open file or folder at `path` below the working folder."""
    target = f".{path}"
    if os.path.isdir(f"/proc/self/fd/{source}"):
        os.makedirs(target, exist_ok=True)
    else:
        os.makedirs(os.path.dirname(target), exist_ok=True)
        _write(target, "")
    _mount(f"/proc/self/fd/{source}", target, None, MS_BIND | MS_REC)


def _run_init(spec: dict[str, Any]) -> NoReturn:
    """Build the root folder, run the program in it, report how it ended; ends all processes."""
    try:
        _prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        _prctl(PR_SET_DUMPABLE, 0)  # Nothing inside may trace this process or read its memory.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        _call("sethostname", _libc.sethostname(b"sandbox", 7))
        _write("/proc/sys/user/max_user_namespaces", "0")  # Nobody inside is root of another one.
        with suppress(PermissionError):  # Memory outside of a process; before Linux 6.0 root's.
            _write("/proc/sys/kernel/shmmni", "0")
        _make_root(spec)
    except OSError as error:
        _report(spec, refused=str(error))
        os._exit(1)
    program = os.fork()
    if program == 0:
        _run_program(spec)
    while True:
        process, status, usage = os.wait4(-1, 0)
        if process == program:
            _report_end(spec, status, usage)
            os._exit(0)


# The program


def _run_program(spec: dict[str, Any]) -> NoReturn:
    """Give up all privileges and become the program."""
    try:
        if spec["folder"] is not None:
            _prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
            os.chdir(spec["folder"])
        os.setsid()
        _prctl(PR_SET_NO_NEW_PRIVS, 1)
        _arrange_descriptors(spec)
        _set_limits(spec)
        if spec["folder"] is None:
            _drop_privileges(spec["is_nobody"])
        os.execve(spec["arguments"][0], spec["arguments"], spec["environment"])
    except OSError as error:
        _report(spec, refused=f"the program did not start: {error}")
    os._exit(127)


def _set_limits(spec: dict[str, Any]) -> None:
    """Limits of the process, and of what it starts.

    Processes are counted for a user within a namespace (since Linux 5.14): of a user who is not
    root the supervisor and init count too. Without namespaces all processes of the user would.
    """
    limits = spec["limits"]
    seconds = limits["cpu_seconds"]
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 1))  # SIGXCPU, then SIGKILL.
    for kind, most in (
        (resource.RLIMIT_AS, limits["memory_bytes"]),
        (resource.RLIMIT_FSIZE, limits["disk_bytes"]),
        (resource.RLIMIT_NOFILE, 64),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_MEMLOCK, 0),
        (resource.RLIMIT_MSGQUEUE, 0),
    ):
        resource.setrlimit(kind, (most, most))
    if spec["folder"] is None:
        count = limits["processes"] + (0 if spec["is_nobody"] else 2)
        resource.setrlimit(resource.RLIMIT_NPROC, (count, count))


def _arrange_descriptors(spec: dict[str, Any]) -> None:
    """Make those of the spec 0, 1, 2, …, and close all others; that of the status at exec."""
    status = spec["status"] = fcntl.fcntl(spec["status"], fcntl.F_DUPFD_CLOEXEC, 64)
    kept = [fcntl.fcntl(one, fcntl.F_DUPFD, 64) for one in spec["descriptors"]]
    for number, descriptor in enumerate(kept):
        os.dup2(descriptor, number, inheritable=True)
    os.closerange(len(kept), status)
    os.closerange(status + 1, 1 << 16)


def _drop_privileges(is_nobody: bool) -> None:
    """No capabilities after exec: it gives those of the bounding set at most."""
    number = 0
    while _libc.prctl(PR_CAPBSET_DROP, number, 0, 0, 0) == 0:
        number += 1
    if ctypes.get_errno() != errno.EINVAL:  # So it is after the last one that there is.
        _call("prctl: no capabilities", -1)
    if is_nobody:
        os.setgroups([])
        os.setresgid(NOBODY, NOBODY, NOBODY)
        os.setresuid(NOBODY, NOBODY, NOBODY)


def _end_descendants(group: int) -> None:
    """Kill what the program left running, which this process has adopted."""
    with suppress(ProcessLookupError):
        os.killpg(group, signal.SIGKILL)
    while True:
        for child in _children():
            os.kill(child, signal.SIGKILL)
        try:
            os.wait()
        except ChildProcessError:
            return


def _children() -> list[int]:
    with open(f"/proc/self/task/{os.getpid()}/children") as file:
        return [int(number) for number in file.read().split()]


if __name__ == "__main__":
    if sys.platform != "linux":
        raise SystemExit("programs are isolated on Linux only")
    main(int(sys.argv[1]))
