"""What a signal says about itself: its type, what it is, who defined it, its unit and its view."""

from __future__ import annotations

from dataclasses import dataclass

from artifacts_schema.kinds import Column


@dataclass(frozen=True)
class Signal:
    """A column of the signals table. `view` names the edit of the text it was computed on."""

    name: str
    type: str
    unit: str
    source: str
    description: str
    view: str = "text"

    @property
    def column(self) -> Column:
        """The column of the Arrow schema."""
        return Column(self.name, self.type, self.description)


def share(name: str, source: str, description: str, *, null: bool = False) -> Signal:
    """A part of a whole; `null` where some documents have none."""
    return Signal(name, "float64?" if null else "float64", "share", source, description)


def count(name: str, unit: str, source: str, description: str, *, null: bool = False) -> Signal:
    """A number of things; `null` where some documents have none."""
    return Signal(name, "int64?" if null else "int64", unit, source, description)
