"""Named moments of a run, so that a test can stop it exactly there.

In production `reached` does nothing. A fault test sets `on_reach` in the process under test and
kills it, or raises "disk full", at the point it wants.
"""

from __future__ import annotations

from collections.abc import Callable

on_reach: Callable[[str], None] | None = None

POINTS = (
    "lease taken",
    "state taken over",
    "shard written",
    "shard recorded",
    "payload written",
    "before manifest",
    "manifest linked",
    "work removed",
    "checkpoint files written",
    "checkpoint written",
    "rollback decided",
    "rollback cleared",
    "interim written",
    "interim committed",
    "interim listed",
    "state files published",
    "state published",
)
"""The moments between which a run's state on disk differs; the kill campaign visits each."""


def reached(point: str) -> None:
    """Tell whoever listens that `point` is now."""
    if on_reach is not None:
        on_reach(point)
