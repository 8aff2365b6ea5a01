"""Rows of many token files, read into memory of their own by `pread`.

Why no memory maps: what a map has touched counts as the process's memory for as long as the map
lives, a row that is not in the page cache stops all Python threads while the disk seeks, and a
file that is cut while it is read kills the process by a signal. `pread` has none of the three.

Shapes: B rows of L tokens.
"""

from __future__ import annotations

import os
import resource
import threading
import weakref
from collections import OrderedDict
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from artifacts_schema.errors import CorruptArtifact, StoreError
from stages.text.native import compiled, pread
from stages.training.reused_memory import ReusedMemory

if TYPE_CHECKING:
    from stages.engine import Input

_MOST_OPEN = 1024
_READ = os.O_RDONLY | os.O_CLOEXEC


def open_at_once() -> int:
    """Files that a reader keeps open: a quarter of what the process may, at most 1,024."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return _MOST_OPEN if soft == resource.RLIM_INFINITY else max(16, min(_MOST_OPEN, soft // 4))


class ShardFiles:
    """Token files by number, opened when first read; the least recently read ones are closed.

    `paths[f]` is file f within `inputs[input_of[f]]`, `sequences[f]` its rows, `lengths[f]` the
    ids of each. Threads may share it.
    """

    def __init__(
        self,
        inputs: Sequence[Input],
        input_of: NDArray[np.int32],
        paths: Sequence[str],
        sequences: NDArray[np.int64],
        lengths: NDArray[np.int64],
        dtype: np.dtype[Any],
    ) -> None:
        self._inputs, self._input_of, self._paths = inputs, input_of, paths
        self._sequences = sequences
        self._lengths, self._dtype = lengths, dtype
        self._most = open_at_once()
        self._open: OrderedDict[int, int] = OrderedDict()
        self._known: dict[int, str] = {}
        self._lock = threading.Lock()
        self._memory = ReusedMemory(keep=1)
        weakref.finalize(self, _close, self._open)

    def read(self, files_B: NDArray[np.int64], lines_B: NDArray[np.int64]) -> NDArray[Any]:
        """[B, L] ids of row `lines_B[i]` of file `files_B[i]`; all of these have one length.

        Raises CorruptArtifact for a file that is gone, cut or changed, StoreError for one that
        cannot be read.
        """
        length = int(self._lengths[files_B[0]] if len(files_B) else self._lengths[:1].sum())
        (raw_BL,) = self._memory.arrays(((len(files_B), length), self._dtype))
        offsets_B = lines_B * (length * self._dtype.itemsize)
        with self._lock:
            for start in range(0, len(files_B), self._most):
                part = slice(start, start + self._most)
                self._read(files_B[part], offsets_B[part], raw_BL[part])
        return raw_BL

    def where(self, file: int) -> str:
        """A file's name for people."""
        given = self._inputs[self._input_of[file]]
        return f"{given.stage} {given.key[:12]}: {given.output}/{self._paths[file]}"

    def _read(
        self, files_B: NDArray[np.int64], offsets_B: NDArray[np.int64], raw_BL: NDArray[Any]
    ) -> None:
        descriptors_B = np.array([self._descriptor(f) for f in files_B.tolist()], dtype=np.int32)
        row = 0
        while (row := _read_rows(descriptors_B, offsets_B, raw_BL, row)) < len(raw_BL):
            self._read_one(int(files_B[row]), int(offsets_B[row]), raw_BL[row])
            row += 1

    def _read_one(self, file: int, offset: int, raw_L: NDArray[Any]) -> None:
        """A row that one call did not give: in parts, or the error."""
        view, done = memoryview(raw_L.data).cast("B"), 0
        while done < len(view):
            try:
                got = os.preadv(self._open[file], [view[done:]], offset + done)
            except OSError as error:
                raise StoreError(
                    f"cannot be read: {error.strerror}", where=self.where(file)
                ) from None
            if not got:
                raise CorruptArtifact(
                    "the file was cut while it was read", where=self.where(file), hint="pack again"
                )
            done += got

    def _descriptor(self, file: int) -> int:
        descriptor = self._open.get(file)
        if descriptor is None:
            descriptor = self._opened(file)
            self._open[file] = descriptor
            if len(self._open) > self._most:
                os.close(self._open.popitem(last=False)[1])
        else:
            self._open.move_to_end(file)
        return descriptor

    def _opened(self, file: int) -> int:
        """Open a file; its bytes are checked the first time, its size every time."""
        try:
            try:
                descriptor = os.open(self._known.get(file) or self._checked(file), _READ)
            except FileNotFoundError:  # A copy of a remote file that made room for another one.
                descriptor = os.open(self._checked(file), _READ)
        except OSError as error:
            raise StoreError(
                f"cannot be opened: {error.strerror}", where=self.where(file)
            ) from None
        size = os.fstat(descriptor).st_size
        expected = int(self._sequences[file] * self._lengths[file]) * self._dtype.itemsize
        if size != expected:
            os.close(descriptor)
            raise CorruptArtifact(
                f"{size:,} bytes, expected {expected:,}", where=self.where(file), hint="pack again"
            )
        return descriptor

    def _checked(self, file: int) -> str:
        path = str(self._inputs[self._input_of[file]].local_path(self._paths[file]))
        self._known[file] = path
        return path


def _close(files: OrderedDict[int, int]) -> None:
    for descriptor in files.values():
        os.close(descriptor)
    files.clear()


@compiled
def _read_rows(descriptors_B: Any, offsets_B: Any, raw_BL: Any, row: Any) -> Any:
    """Read rows from `row` on; the first that did not come whole, or how many there are."""
    size = np.int64(raw_BL.shape[1] * raw_BL.itemsize)
    while row < len(raw_BL):
        target = raw_BL[row].ctypes.data
        if pread(descriptors_B[row], target, np.uintp(size), offsets_B[row]) != size:
            break
        row += 1
    return row
