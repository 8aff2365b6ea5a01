"""`peak_growth(function, *arguments)`: how much memory a call takes at its peak."""

from __future__ import annotations

import ctypes
import gc
import threading
import traceback
from collections.abc import Callable
from multiprocessing import get_context
from pathlib import Path
from typing import Any

EVERY_SECONDS = 0.001
_M_MMAP_THRESHOLD = -3  # malloc.h


def anonymous_bytes() -> int:
    """Memory of this process that no file backs: pages of a mapped file can be dropped any time."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    line = next(line for line in status.splitlines() if line.startswith("RssAnon:"))
    return int(line.split()[1]) * 1024


def peak_growth(function: Callable[..., Any], *arguments: Any) -> int:
    """Call `function(*arguments)` in a fork; the most bytes that it had beyond those of the start.

    AssertionError with the traceback where it fails.
    """
    context = get_context("fork")
    results = context.SimpleQueue()
    process = context.Process(target=_measure, args=(results, function, arguments))
    process.start()
    growth, failure = results.get()
    process.join()
    assert failure is None, failure
    return int(growth)


def _measure(results: Any, function: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
    # What is freed goes back at once: by default glibc raises the size from which it does so, and
    # how far depends on what the parent has freed.
    ctypes.CDLL(None).mallopt(_M_MMAP_THRESHOLD, 1 << 17)
    try:
        with Sampled() as sampled:
            result = function(*arguments)
        del result
        results.put((sampled.growth, None))
    except BaseException:
        results.put((0, traceback.format_exc()))


class Sampled:
    """The peak of this process's memory within the block, by a thread that looks every so often."""

    growth = 0

    def __enter__(self) -> Sampled:
        # What is free by now is given back, or it would be taken again without any growth.
        gc.collect()
        ctypes.CDLL(None).malloc_trim(0)
        self._start, self._done = anonymous_bytes(), threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()
        self._look()

    def _watch(self) -> None:
        while not self._done.wait(EVERY_SECONDS):
            self._look()

    def _look(self) -> None:
        self.growth = max(self.growth, anonymous_bytes() - self._start)
