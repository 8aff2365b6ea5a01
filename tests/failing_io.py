"""Input and output that fails below Python, for files under one folder: a library to preload.

`failing_io.c` is compiled by the first test that needs it; without a C compiler (or on a system
without LD_PRELOAD) there is no library, and tests skip with that reason. All processes of a run
share one control file, so "the 120th read" is counted over all of them.
"""

from __future__ import annotations

import errno
import shutil
import struct
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

CALLS = ("list", "stat", "open", "read", "write", "sync", "name")
"""Classes of calls: list a folder, ask about a path, open to read, read, write, fsync, and make or
remove a name (open to write, mkdir, link, rename, unlink)."""
LASTING = 1 << 40
_SIZE = 8 * (8 + 5)


@dataclass(frozen=True)
class Fault:
    """What fails: from the `first` call of class `call` on, `times` calls, with `error`.

    `error` 0 makes reads and writes short: half of the bytes, without an error.
    """

    call: str
    error: int
    first: int = 1
    times: int = 1

    def __str__(self) -> str:
        what = errno.errorcode.get(self.error, "short")
        return f"{what} on {self.call} {self.first:,}{' and all after it' * (self.times > 1)}"


class FailingIO:
    """One run's control file, and the environment that preloads the library."""

    def __init__(self, library: Path, folder: Path, control: Path) -> None:
        self.library, self.folder, self.control = library, folder, control
        self.heal()

    @property
    def environment(self) -> dict[str, str]:
        """Variables for the processes whose calls are counted and fail."""
        return {
            "LD_PRELOAD": str(self.library),
            "FAILING_IO_FOLDER": str(self.folder),
            "FAILING_IO_CONTROL": str(self.control),
        }

    def heal(self) -> None:
        """Count from zero; nothing fails."""
        self._write(-1, 0, 0, 0)

    def strike(self, fault: Fault) -> None:
        """Count from zero; `fault` strikes."""
        self._write(CALLS.index(fault.call), fault.first, fault.times, fault.error)

    @property
    def calls(self) -> dict[str, int]:
        """Calls counted so far, by class."""
        counts = struct.unpack_from("8q", self.control.read_bytes())
        return dict(zip(CALLS, counts, strict=False))

    @property
    def struck(self) -> int:
        """How many calls have failed."""
        return int(struct.unpack_from("q", self.control.read_bytes(), 8 * 12)[0])

    def _write(self, *values: int) -> None:
        content = struct.pack("8q", *[0] * 8) + struct.pack("5q", *values, 0)
        if not self.control.exists():
            self.control.write_bytes(bytes(_SIZE))
        with self.control.open("r+b") as file:  # In place: processes have it mapped.
            file.write(content)


def compiled(folder: Path) -> Path:
    """The library, compiled into `folder`; skips the test where that cannot be."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if sys.platform != "linux" or compiler is None:
        pytest.skip("needs Linux and a C compiler (cc)")
    library = folder / "failing_io.so"
    if not library.exists():
        source = Path(__file__).with_suffix(".c")
        command = [compiler, "-O1", "-fPIC", "-shared", "-o", str(library), str(source), "-ldl"]
        subprocess.run(command, check=True)
    return library
