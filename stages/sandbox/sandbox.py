"""Untrusted Python programs, apart from this machine: `run_program` runs one to its end.

Inside is a read-only root with the interpreter's own library and nothing else: no home, no store,
no site-packages, no /proc, no network (loopback is down too), no environment, no descriptor but the
program's own; a small /tmp. Users, mounts, processes, IPC, network and host name are namespaces of
its own (`namespaces(7)`), its user has no privilege in them and can make no others. Processor time,
memory, processes, files, output and time are bounded. `enter.py` builds it.

Where the kernel or a container forbids such namespaces it refuses, unless `isolation` is `limits`:
then a program is an ordinary process of this user, in a temporary folder, without environment and
with the same bounds (except on the number of processes): it can read what this user can, and reach
the network. That stops accidents, not attacks.
"""

from __future__ import annotations

import json
import os
import select
import shutil
import struct
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Literal

from artifacts_schema.errors import IngotError

Isolation = Literal["namespaces", "limits"]
ENTER = Path(__file__).with_name("enter.py")
ENVIRONMENT = {"PYTHONHASHSEED": "0", "PYTHONUTF8": "1", "PYTHONCOERCECLOCALE": "0"}
STATUS_BYTES = 4096
SECONDS_TO_END = 10.0
"""For a sandbox that was told to end; the kernel needs milliseconds."""


@dataclass(frozen=True)
class Limits:
    """Bounds of one program and what it starts."""

    wall_seconds: float = 20.0
    cpu_seconds: int = 10
    memory_bytes: int = 512 << 20
    """Address space of each process."""
    processes: int = 1
    """Threads included; with 1 it can start none."""
    disk_bytes: int = 16 << 20
    """All of /tmp, and each file."""
    output_bytes: int = 1 << 20
    """Each of stdout and stderr."""


Reason = Literal["exited", "signal", "time", "output"]


@dataclass(frozen=True)
class Outcome:
    """How a program ended.

    `code` is its exit code, or minus the number of the signal that ended it; None where this
    process ended it, because its time or its output was over (`reason`).
    """

    reason: Reason
    code: int | None
    stdout: bytes = b""
    stderr: bytes = b""
    cpu_seconds: float | None = None

    @property
    def succeeded(self) -> bool:
        """Whether it ended by itself, with exit code 0."""
        return self.code == 0


@dataclass
class Sandbox:
    """A program that runs apart. Close it, or leave the block, and everything inside is gone.

    `files` are texts beside `main.py`, all read-only inside; descriptor n of the program is
    `descriptors[n]` of this process. `status` is readable once the program has ended.
    """

    files: Mapping[str, str]
    descriptors: Sequence[int]
    limits: Limits
    isolation: Isolation
    status: int = field(init=False)

    def __post_init__(self) -> None:
        folder = tempfile.mkdtemp(prefix="ingot-sandbox-") if self.isolation == "limits" else None
        self._folder = folder
        for name, text in self.files.items() if folder else ():
            Path(folder or "", name).write_text(text, encoding="utf-8", newline="")
        self.status, reported = os.pipe()
        controlled, self._control = os.pipe()
        spec = {
            "folder": folder,
            "files": dict(self.files),
            "arguments": [python(), "-s", "-B", f"{folder or '/program'}/main.py"],
            "environment": {**ENVIRONMENT, **_library_path()},
            "binds": interpreter_files() if folder is None else [],
            "hidden": hidden_folders(),
            "descriptors": list(self.descriptors),
            "status": reported,
            "limits": asdict(self.limits),
        }
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-S", "-B", str(ENTER), str(controlled)],
                pass_fds=[controlled, reported, *self.descriptors],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                env=_library_path(),
                start_new_session=True,
            )
        finally:
            os.close(controlled)
            os.close(reported)
        message = json.dumps(spec).encode()
        with suppress(BrokenPipeError):  # It failed at its start: `read_outcome` says so.
            os.write(self._control, struct.pack("<Q", len(message)))
            for start in range(0, len(message), 1 << 16):
                os.write(self._control, message[start : start + (1 << 16)])

    def close(self) -> None:
        """End it and wait until all of it is gone."""
        for descriptor in (self._control, self.status):
            os.close(descriptor)
        try:
            self._process.wait(SECONDS_TO_END)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        if self._folder is not None:
            shutil.rmtree(self._folder)

    def __enter__(self) -> Sandbox:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def read_outcome(reported: bytes) -> Outcome:
    """What init or the supervisor reported of the end; IngotError if there was no beginning."""
    if not reported:
        raise _refuse("its first process ended without a word")
    values = json.loads(reported.splitlines()[0])
    if "refused" in values:
        raise _refuse(values["refused"])
    code = values["code"]
    return Outcome("exited" if code >= 0 else "signal", code, cpu_seconds=values["cpu_seconds"])


def _refuse(reason: str) -> IngotError:
    return IngotError(
        f"programs cannot be isolated on this machine: {reason}",
        where="sandbox",
        hint="it needs Linux 5.14 with user namespaces (sysctl user.max_user_namespaces, "
        "kernel.unprivileged_userns_clone, kernel.apparmor_restrict_unprivileged_userns; in a "
        "container its seccomp profile); `isolation: limits` runs programs as this user, and lets "
        "them read files and reach the network",
    )


def collect(
    most: Mapping[int, int], seconds: float, until: int | None = None
) -> tuple[dict[int, bytes], Reason]:
    """What descriptors yield until `until`, or all of them, ended: at most `most` bytes of each.

    The reason is `time` or `output` where that ended it first; else `exited`.
    """
    parts: dict[int, bytearray] = {descriptor: bytearray() for descriptor in most}
    open_ones, deadline = set(most), time.monotonic() + seconds
    reason: Reason = "exited"
    while open_ones:
        left = deadline - time.monotonic()
        ready, _, _ = select.select(list(open_ones), [], [], max(0.0, left))
        if not ready:
            reason = "time"
            break
        for descriptor in ready:
            part = os.read(descriptor, 1 << 16)
            parts[descriptor] += part
            if not part:
                open_ones.discard(descriptor)
        if any(len(parts[one]) > most[one] for one in parts):
            reason = "output"
            break
        if until is not None and until not in open_ones:
            break
    return {one: bytes(part[: most[one]]) for one, part in parts.items()}, reason


def run_program(
    source: str,
    stdin: bytes = b"",
    *,
    limits: Limits | None = None,
    isolation: Isolation = "namespaces",
    files: Mapping[str, str] | None = None,
) -> Outcome:
    """Run Python source to its end, with `files` in /program beside it.

    IngotError where this machine cannot isolate it.
    """
    limits = limits or Limits()
    entered, (output, written), (errors, complained) = _in_memory(stdin), os.pipe(), os.pipe()
    try:
        sandbox = Sandbox(
            {**(files or {}), "main.py": source}, [entered, written, complained], limits, isolation
        )
    finally:
        for descriptor in (entered, written, complained):
            os.close(descriptor)
    with sandbox:
        most = {output: limits.output_bytes, errors: limits.output_bytes}
        try:
            read, reason = collect({**most, sandbox.status: STATUS_BYTES}, limits.wall_seconds)
        finally:
            os.close(output)
            os.close(errors)
    texts = (read[output], read[errors])
    if reason in ("time", "output"):
        return Outcome(reason, None, *texts)
    end = read_outcome(read[sandbox.status])
    return Outcome(end.reason, end.code, *texts, end.cpu_seconds)


def _in_memory(content: bytes) -> int:
    """A descriptor that reads `content`, from memory."""
    descriptor = os.memfd_create("stdin")
    os.write(descriptor, content)
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor


# The interpreter


def _library_path() -> dict[str, str]:
    """Of the environment only this, without which some interpreters do not start."""
    return {name: os.environ[name] for name in ("LD_LIBRARY_PATH",) if name in os.environ}


def python() -> str:
    """The interpreter itself, outside of any virtual environment."""
    return os.path.realpath(sys.executable)


def hidden_folders() -> list[str]:
    """Installed packages within the library."""
    library = sysconfig.get_path("stdlib", vars=_BASE)
    return [f"{library}/{name}" for name in ("site-packages", "dist-packages")]


_BASE = {"base": sys.base_prefix, "installed_base": sys.base_prefix}


@lru_cache(maxsize=1)
def interpreter_files() -> list[str]:
    """Files and folders that the interpreter and its library need, shared libraries included."""
    library = sysconfig.get_path("stdlib", vars=_BASE)
    compiled = sysconfig.get_path("platstdlib", vars={**_BASE, "platbase": sys.base_exec_prefix})
    modules = Path(compiled, "lib-dynload").glob("*.so")
    wanted = [python(), *(str(one) for one in modules if not one.name.startswith("_tkinter"))]
    try:
        listing = subprocess.run(["ldd", *wanted], capture_output=True, text=True, check=False)
    except FileNotFoundError as error:
        raise _refuse("ldd, which tells the libraries of the interpreter, is missing") from error
    words = (line.split() for line in listing.stdout.splitlines())
    libraries = {word for line in words for word in line if word[0] == "/" and word[-1] != ":"}
    return sorted({python(), library, compiled, *libraries, *_loader_cache()})


def _loader_cache() -> list[str]:
    """Where the loader finds libraries in unusual folders; it holds only their names."""
    return [path for path in ("/etc/ld.so.cache",) if os.path.exists(path)]
