"""One thing at a time done by a thread, its failure raised where someone looks for it."""

from __future__ import annotations

import threading
from collections.abc import Callable


class Background:
    """A thread for one job after another; at most one at a time."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._thread: threading.Thread | None = None
        self._raised: BaseException | None = None

    def start(self, job: Callable[[], None]) -> None:
        """Do `job` now, once the one before it is done; raises what that one raised."""
        self.settle()
        self._thread = threading.Thread(target=self._work, args=(job,), name=self._name)
        self._thread.start()

    def follow(self, job: Callable[[], None]) -> None:
        """Do `job` once the one that is under way is done; not at all if that one raises."""
        before = self._thread

        def after() -> None:
            if before is not None:
                before.join()
            if self._raised is None:
                job()

        self._thread = threading.Thread(target=self._work, args=(after,), name=self._name)
        self._thread.start()

    def check(self) -> None:
        """Raise what a job raised, if one is done; waits for none."""
        if self._thread is not None and not self._thread.is_alive():
            self.settle()

    def settle(self) -> None:
        """Wait for the job that is under way, and raise what it raised."""
        self.wait()
        if self._raised is not None:
            raised, self._raised = self._raised, None
            raise raised

    def wait(self) -> None:
        """Wait for the job that is under way."""
        if self._thread is not None:
            self._thread.join()
            self._thread = None

    def _work(self, job: Callable[[], None]) -> None:
        try:
            job()
        except BaseException as error:
            self._raised = error
