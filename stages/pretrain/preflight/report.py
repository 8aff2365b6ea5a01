"""What a pre-flight found: one line a check, and what the run is expected to take."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from artifacts_schema.errors import IngotError

Level = Literal["ok", "warning", "refusal"]


@dataclass(frozen=True)
class Finding:
    """What one check says; a `refusal` is what the run would fail of. `numbers` are behind it."""

    check: str
    level: Level
    said: str
    hint: str = ""
    numbers: Mapping[str, Any] = field(default_factory=dict)
    error: IngotError | None = None
    """What the run would end with, where that says it all."""

    def line(self) -> str:
        """For a log, which says the level itself."""
        advice = f" ({self.hint})" if self.hint else ""
        return f"{self.check}: {self.said}{advice}"

    def to_json(self) -> dict[str, Any]:
        """As plain values."""
        return {
            "check": self.check,
            "level": self.level,
            "said": self.said,
            "hint": self.hint,
            **self.numbers,
        }


@dataclass(frozen=True)
class Report:
    """All findings, in the order of the checks, and how long they took."""

    findings: Sequence[Finding]
    seconds: float

    @property
    def refusals(self) -> list[Finding]:
        """What the run would fail of."""
        return [one for one in self.findings if one.level == "refusal"]

    def to_json(self) -> dict[str, Any]:
        """As plain values."""
        return {
            "findings": [one.to_json() for one in self.findings],
            "refused": bool(self.refusals),
            "seconds": round(self.seconds, 3),
        }

    def raise_refusals(self) -> None:
        """Raise IngotError with all refusals, if there are any; a single one's own error."""
        if len(self.refusals) == 1 and self.refusals[0].error is not None:
            raise self.refusals[0].error
        if self.refusals:
            raise IngotError(
                "; ".join(f"{one.check}: {one.said}" for one in self.refusals),
                where="pre-flight",
                hint="; ".join(one.hint for one in self.refusals if one.hint)
                or "execution.preflight: warn goes on all the same",
            )


def span(seconds: float) -> str:
    """Seconds for people: `42 s`, `3 min`, `5.2 h`, `12.4 days`."""
    for unit, size, least in (("days", 86400, 172800), ("h", 3600, 7200), ("min", 60, 120)):
        if seconds >= least:
            return f"{seconds / size:,.1f} {unit}"
    return f"{seconds:.0f} s"
