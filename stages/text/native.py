"""Functions compiled to machine code when they are first called, and kept for the next process."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import numba

F = TypeVar("F", bound=Callable[..., Any])

pread: Any = numba.types.ExternalFunction(
    "pread",
    numba.types.int64(numba.types.int32, numba.types.uintp, numba.types.uintp, numba.types.int64),
)
"""POSIX's, for compiled functions: descriptor, address (`array.ctypes.data`), bytes, position;
returns the bytes read, or -1."""

_TEXT = Path(__file__).parent
_STAGES = _TEXT.parent


def compiled(function: F) -> F:
    """`function` compiled by numba: no Python objects, arithmetic as written (no fast-math).

    The machine code is kept beside the source, or in the user's cache folder; where neither can be
    written, each process compiles for itself.
    """
    try:
        dispatcher: Any = numba.njit(cache=True, nogil=True)(function)
    except RuntimeError:  # "no locator available": no folder to keep it in.
        uncached: Any = numba.njit(nogil=True)(function)
        return uncached
    # Constants and functions of other modules are compiled in, but numba looks at the function's
    # own file alone to see whether what it kept is stale (numba#1833).
    file = dispatcher._cache._cache_file
    file._source_stamp = (file._source_stamp, _sources(_room(Path(function.__code__.co_filename))))
    return dispatcher


def _room(path: Path) -> Path:
    """The folder that holds all a file may import besides `stages/text`: a room, or its own."""
    if path.is_relative_to(_STAGES):
        return _STAGES / path.relative_to(_STAGES).parts[0]
    return path.parent


@cache
def _sources(room: Path) -> tuple[tuple[str, int, int], ...]:
    """Name, time and size of the sources whose change makes what was compiled stale."""
    paths = sorted({path for folder in (room, _TEXT) for path in folder.rglob("*.py")})
    return tuple((str(path), s.st_mtime_ns, s.st_size) for path in paths for s in (path.stat(),))
