"""The few kinds of error that a person sees, each with the exit code that a scheduler sees.

Every message says what was wrong, where, and what to do. Anything else that escapes is a bug in
Ingot and keeps its traceback.
"""

from __future__ import annotations

from artifacts_schema.printable import printable

EXIT_OK = 0
EXIT_FAILED = 1
EXIT_USAGE = 2
EXIT_RESUME = 75
"""`EX_TEMPFAIL` of sysexits.h: what was finished is kept; start the same thing again to go on."""


class IngotError(Exception):
    """A run failed for a reason that a person can act on."""

    exit_code = EXIT_FAILED

    def __init__(self, what: str, *, where: str | None = None, hint: str | None = None) -> None:
        self.what, self.where, self.hint = what, where, hint
        super().__init__(str(self))

    def __str__(self) -> str:
        place = f"{printable(self.where)}: " if self.where else ""
        advice = f" ({self.hint})" if self.hint else ""
        return f"{place}{self.what}{advice}"

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuild, (type(self), self.what, self.where, self.hint)


def _rebuild(kind: type[IngotError], what: str, where: str | None, hint: str | None) -> IngotError:
    """Carry the three parts over a process border (exceptions lose keyword arguments there)."""
    return kind(what, where=where, hint=hint)


class UsageError(IngotError):
    """The request itself cannot be run: a wrong recipe, config, reference or command line."""

    exit_code = EXIT_USAGE


class InputError(IngotError):
    """An input is missing, unreadable, empty or not what its kind promises."""

    exit_code = EXIT_USAGE


class CorruptArtifact(InputError):
    """Bytes in the store are not the bytes that the manifest names."""


class StoreError(IngotError):
    """The store cannot be read or written: permission, space, a lost connection."""


class NotDeterministic(IngotError):
    """Two runs of one key gave different bytes where the stage promises equal ones."""


class NotConserved(IngotError):
    """Documents in and documents accounted for differ; nothing was committed."""


class LeaseLost(IngotError):
    """Another run took this key over; this one must not commit."""


class Stopped(IngotError):
    """Stopped on request; what is finished is kept and the same command continues."""

    exit_code = EXIT_RESUME
