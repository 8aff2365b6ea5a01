"""Functions compiled by numba at their first call, kept on disk for the next process.

Numba writes what a kernel calls and the constants it reads into its machine code, but looks at the
kernel's own file alone to see whether a kept one is stale (numba#1833). Here the key of a kept
kernel also holds the code of all kernels that it calls and the values of all constants that it
reads, whichever modules they come from. So editing a module recompiles its own kernels, and of
other modules those alone that the edit reaches.

A function is a kernel only where its NumPy or Arrow version would add more than a tenth to the CPU
time of its stage.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache
from types import CodeType, FunctionType, ModuleType
from typing import Any, TypeVar

import numba
import numpy as np
from numba.core import entrypoints, event
from numba.core.caching import FunctionCache

from stages.engine.transfers import report_compiling

F = TypeVar("F", bound=Callable[..., Any])

pread: Any = numba.types.ExternalFunction(
    "pread",
    numba.types.int64(numba.types.int32, numba.types.uintp, numba.types.uintp, numba.types.int64),
)
"""POSIX's, for kernels: descriptor, address (`array.ctypes.data`), bytes, position; returns the
bytes read, or -1."""


def kernel(function: F) -> F:
    """`function` compiled by numba: no Python objects, arithmetic as written (no fast-math).

    The machine code is kept beside the source, or in the user's cache folder; where neither can be
    written, each process compiles for itself. With NUMBA_DISABLE_JIT it stays a Python function.
    """
    compiled: Any = numba.njit(nogil=True)(function)
    if compiled is not function:
        with suppress(RuntimeError):  # "no locator available": no folder to keep it in.
            compiled._cache = _Cache(function)
    return compiled  # type: ignore[no-any-return]


class _Cache(FunctionCache):  # type: ignore[misc]
    """Numba's cache of a function, whose keys also name what is compiled into it."""

    def _index_key(self, sig: Any, codegen: Any) -> Any:
        return (*super()._index_key(sig, codegen), _digest(self._py_func))


@cache
def _digest(function: FunctionType) -> str:
    """sha256 of the code of a function and of all that it calls and reads."""
    return hashlib.sha256("\n".join(_describe(function, set())).encode()).hexdigest()


def _describe(value: Any, seen: set[int]) -> Iterator[str]:
    """What machine code depends on, line by line. TypeError for a value whose text says nothing.

    `seen` are the functions that were described already.
    """
    value = getattr(value, "py_func", getattr(value, "_defn", value))  # Of kernels and intrinsics.
    if isinstance(value, FunctionType):
        yield value.__qualname__
        if id(value) not in seen:
            seen.add(id(value))
            cells = tuple(cell.cell_contents for cell in value.__closure__ or ())
            yield from _describe((value.__defaults__, cells), seen)
            yield from _describe_code(value.__code__, value.__globals__, seen)
    elif isinstance(value, tuple | list):
        yield f"{type(value).__qualname__} {len(value)}"
        for item in value:
            yield from _describe(item, seen)
    elif isinstance(value, np.ndarray):
        yield f"{value.dtype} {value.shape} {hashlib.sha256(value.tobytes()).hexdigest()}"
    elif isinstance(value, ModuleType | type):
        yield f"{value.__name__} {getattr(value, '_fields', '')}"
    elif type(value).__repr__ is object.__repr__:  # type: ignore[comparison-overlap]
        raise TypeError(f"a kernel reads {value!r}; constants are numbers, text, tuples and arrays")
    else:
        yield repr(value)


def _describe_code(code: CodeType, names: dict[str, Any], seen: set[int]) -> Iterator[str]:
    yield code.co_code.hex()
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _describe_code(constant, names, seen)
        else:
            yield repr(constant)
    for name in code.co_names:
        yield name
        if name in names:
            yield from _describe(names[name], seen)
            if isinstance(names[name], ModuleType):
                held = (getattr(names[name], attribute, None) for attribute in code.co_names)
                values = [one for one in held if isinstance(one, int | float | tuple | np.ndarray)]
                yield from _describe(values, seen)


class _CompileTimer(event.Listener):  # type: ignore[misc]
    """Reports how many kernels this process has compiled so far, and how long that took."""

    def __init__(self) -> None:
        self._depth, self._kernels, self._seconds, self._begun = 0, 0, 0.0, 0.0

    def on_start(self, event: Any) -> None:
        """A kernel, or one that it calls, begins to be compiled."""
        if self._depth == 0:
            self._begun = time.perf_counter()
            report_compiling(self._kernels, self._seconds)
        self._depth += 1

    def on_end(self, event: Any) -> None:
        """It is compiled."""
        self._depth -= 1
        self._kernels += 1
        if self._depth == 0:
            self._seconds += time.perf_counter() - self._begun
            report_compiling(self._kernels, self._seconds)


event.register("numba:compile", _CompileTimer())

# At its first kernel numba imports every package that offers it an extension. Awkward Array, which
# comes with a tokenizer library, takes a quarter of a second for types that no kernel here has.
entrypoints._already_initialized = True


@kernel
def _one(number: int) -> int:
    return number


def start_compiler() -> None:
    """Load a kernel: the first one takes numba a third of a second, which forks then have."""
    _one(1)
