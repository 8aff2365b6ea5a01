"""Batches prepared ahead by one thread of the same process.

No worker processes: what prepares a batch is compiled code and system calls, which let go of the
interpreter's lock, so a thread is enough, and there is nothing to fork, to pickle or to share. The
values are those that a plain call gives, in any order of calls.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Generic, NamedTuple, Self, TypeVar, cast

T = TypeVar("T")

on_batch: Callable[[int, Any], None] | None = None
"""Told each number and its value as it is taken, so that a proof can compare what runs read."""

PATIENCE_SECONDS = 5.0
"""How long `close` waits for a value that is being made, which may be a download."""


class Prefetch(Generic[T]):
    """`make(n)` by number; the next `ahead` numbers, up to `last`, are made while one is in use.

    A number that is not the one behind the last (the first, after a skip or a rollback) starts
    anew from there. What `make` raises for a number is raised when that number is asked for, and
    asking again tries again. With `ahead` 0 there is no thread. Use it in a `with`
    block: leaving it ends the thread.
    """

    def __init__(self, make: Callable[[int], T], *, ahead: int, last: int) -> None:
        self._make, self._ahead, self._last = make, ahead, last
        self._making = threading.Lock()
        self._run: _Run[T] | None = None

    def __call__(self, number: int) -> T:
        """The value of a number."""
        value = self._taken(number)
        if on_batch is not None:
            on_batch(number, value)
        return value

    def _taken(self, number: int) -> T:
        if self._ahead < 1 or number > self._last:
            return self._made(number)
        if self._run is None or self._run.next != number:
            self.close()
            self._run = _Run(self._made, number, self._last, self._ahead)
        made = self._run.take()
        if made.error is not None:
            raise made.error
        return cast(T, made.value)

    def close(self) -> None:
        """End the thread; a value that is being made is not waited for longer than a moment."""
        if self._run is not None:
            self._run.stop()
            self._run = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _made(self, number: int) -> T:
        with self._making:  # A thread that was given up may still be at its last one.
            return self._make(number)


class _Made(NamedTuple, Generic[T]):
    """A value, or what was raised instead of one."""

    value: T | None
    error: BaseException | None


@dataclass(eq=False)
class _Run(Generic[T]):
    """One thread, from `next` on; `next` is the number that will be taken next."""

    make: Callable[[int], T]
    next: int
    last: int
    ahead: int
    _ready: deque[_Made[T]] = field(default_factory=deque)
    _stopped: bool = False

    def __post_init__(self) -> None:
        self._changed = threading.Condition()
        self._thread = threading.Thread(
            target=self._work, args=(self.next,), name="prefetch", daemon=True
        )
        self._thread.start()

    def take(self) -> _Made[T]:
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
            try:
                made: _Made[T] = _Made(self.make(number), None)
            except BaseException as error:
                made = _Made(None, error)
            with self._changed:
                self._ready.append(made)
                self._changed.notify()
                while len(self._ready) >= self.ahead and not self._stopped:
                    self._changed.wait()
                if self._stopped:
                    return
            number += 1
