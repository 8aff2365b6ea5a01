"""The values of a published `config.json`, each read as the type that it must have."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from artifacts_schema.errors import InputError

_REQUIRED = object()
LARGEST = 2**31 - 1


class Fields:
    """A `config.json` that nobody vouches for; every InputError names the field and the file.

    Null counts as absent, as `transformers` writes what is not set.
    """

    def __init__(self, values: Mapping[str, Any], where: str) -> None:
        self.values, self.where = values, where
        self.read: set[str] = set()

    def size(
        self, name: str, default: Any = _REQUIRED, *, least: int = 1, most: int = LARGEST
    ) -> Any:
        """A whole number from `least` to `most`; `default` (None, too) where it is absent."""
        value = self._given(name, default)
        if value is default:
            return value
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            raise self.wrong(name, f"is {_shown(value)}, not a whole number in {least} … {most}")
        return value

    def number(self, name: str, default: Any = _REQUIRED) -> Any:
        """A finite number; `default` (None, too) where it is absent."""
        value = self._given(name, default)
        if value is default:
            return value
        good = isinstance(value, int | float) and not isinstance(value, bool)
        if not good or not math.isfinite(value):
            raise self.wrong(name, f"is {_shown(value)}, not a number")
        return float(value)

    def flag(self, name: str, default: bool) -> bool:
        """True or false; `default` where it is absent."""
        value = self._given(name, default)
        if not isinstance(value, bool):
            raise self.wrong(name, f"is {_shown(value)}, neither true nor false")
        return value

    def sequence(self, name: str) -> Sequence[Any] | None:
        """A list, None where it is absent."""
        value = self._given(name, None)
        if value is not None and not isinstance(value, list | tuple):
            raise self.wrong(name, f"is {_shown(value)}, not a list")
        return value

    def table(self, name: str) -> Fields | None:
        """A table in the table, None where it is absent or empty."""
        value = self._given(name, None)
        if value is not None and not isinstance(value, Mapping):
            raise self.wrong(name, f"is {_shown(value)}, not a table")
        return Fields(value, f"{self.where}: {name}") if value else None

    def demand(self, name: str, expected: Any, *, absent: Any = None) -> None:
        """InputError unless the field is `expected`; an absent one stands for `absent`."""
        found = self._given(name, expected if absent is None else absent)
        if found != expected:
            raise self.wrong(name, f"is {_shown(found)}, only {expected!r} can be expressed")

    def wrong(self, name: str, what: str) -> InputError:
        """The error to raise about a field."""
        return InputError(f"{name} {what}", where=self.where)

    def _given(self, name: str, default: Any) -> Any:
        self.read.add(name)
        value = self.values.get(name)
        if value is not None:
            return value
        if default is _REQUIRED:
            raise self.wrong(name, "is missing")
        return default


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:80]}…"
