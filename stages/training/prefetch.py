"""Batches prepared ahead by one thread of the same process.

No worker processes: a batch is prepared by compiled code and system calls, which release the
interpreter's lock. So a thread is enough, and there is nothing to fork, to pickle or to share. The
values are those of a plain call, in any order of calls.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, Generic, Self, TypeVar

T = TypeVar("T")

on_batch: Callable[[int, Any], None] | None = None
"""Called with each number and its value, so that a proof can compare what runs read."""

PATIENCE_SECONDS = 5.0
"""How long `close` waits for a value that is being made, which may be a download."""


class Prefetch(Generic[T]):
    """`make(n)` by number; the next `ahead` numbers, up to `last`, are made while one is in use.

    A number that does not follow the last one (the first, after a skip or a rollback) restarts from
    there. What `make` raises for a number is raised when that number is asked for, and
    asking again tries again. With `ahead` 0 there is no thread. Use it in a `with`
    block: leaving it ends the thread.
    """

    def __init__(self, make: Callable[[int], T], *, ahead: int, last: int) -> None:
        self._make, self._ahead, self._last = make, ahead, last
        self._making = threading.Lock()
        self._run: _Run[T] | None = None

    def __call__(self, number: int) -> T:
        """The value of a number."""
        value = self._take(number)
        if on_batch is not None:
            on_batch(number, value)
        return value

    def _take(self, number: int) -> T:
        if self._ahead < 1 or number > self._last:
            return self._make_one(number)
        if self._run is None or self._run.next != number:
            self.close()
            self._run = _Run(self._make_one, number, self._last, self._ahead)
        return self._run.take().result()

    def close(self) -> None:
        """End the thread; a value that is being made is not waited for longer than a moment."""
        if self._run is not None:
            self._run.stop()
            self._run = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _make_one(self, number: int) -> T:
        with self._making:  # An abandoned thread may still make its last one.
            return self._make(number)


@dataclass(eq=False)
class _Run(Generic[T]):
    """One thread, from `next` on; `next` is the number that will be taken next."""

    make: Callable[[int], T]
    next: int
    last: int
    ahead: int
    _ready: deque[Future[T]] = field(default_factory=deque)
    _stopped: bool = False

    def __post_init__(self) -> None:
        self._changed = threading.Condition()
        self._thread = threading.Thread(
            target=self._work, args=(self.next,), name="prefetch", daemon=True
        )
        self._thread.start()

    def take(self) -> Future[T]:
        """The value of the next number, or what was raised instead of one."""
        with self._changed:
            while not self._ready:
                self._changed.wait()
            self.next += 1
            self._changed.notify()
            return self._ready.popleft()

    def stop(self) -> None:
        with self._changed:
            self._stopped = True
            self._changed.notify()
        self._thread.join(PATIENCE_SECONDS)

    def _work(self, number: int) -> None:
        while number <= self.last:
            result: Future[T] = Future()
            try:
                result.set_result(self.make(number))
            except BaseException as error:
                result.set_exception(error)
            with self._changed:
                self._ready.append(result)
                self._changed.notify()
                while len(self._ready) >= self.ahead and not self._stopped:
                    self._changed.wait()
                if self._stopped:
                    return
            number += 1
