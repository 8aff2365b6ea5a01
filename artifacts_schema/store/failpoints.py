"""Failpoints: named moments of a run at which a test can stop it.

In production `hit_failpoint` does nothing. A fault test sets `on_failpoint` in the process under
test and kills it, or raises "disk full", at the failpoint it wants.
"""

from __future__ import annotations

from collections.abc import Callable

on_failpoint: Callable[[str], None] | None = None


def hit_failpoint(point: str) -> None:
    """Report that the run is at `point`."""
    if on_failpoint is not None:
        on_failpoint(point)
