"""A rule: a named bound on one signal."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

NOT_ASKED = math.nan
"""As a bound: only the documents of the languages in `by_language` are asked."""


@dataclass(frozen=True)
class Rule:
    """A document fails where the signal lies below `minimum`, above `maximum`, or not in `allowed`.

    A rule has one of the three. The bound itself passes, and so does a document for which the
    signal has no value. `by_language` gives languages, as a model names them, another bound.
    """

    name: str
    signal: str
    source: str
    minimum: float | None = None
    maximum: float | None = None
    allowed: tuple[str, ...] = ()
    by_language: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        given = (self.minimum is not None, self.maximum is not None, bool(self.allowed))
        assert sum(given) == 1, self.name
        assert not (self.allowed and self.by_language), self.name

    @property
    def threshold(self) -> float:
        """The one bound that the rule has; NaN where labels are asked for, or languages alone."""
        bound = self.maximum if self.minimum is None else self.minimum
        return math.nan if bound is None else bound

    @property
    def view(self) -> str | None:
        """The view whose edits the signal takes for made; None for the text as it is."""
        return self.signal.rsplit("/", 1)[0] if "/" in self.signal else None

    @property
    def bound(self) -> str:
        """What the signal of a document that passes is, e.g. `≥ 50`."""
        if self.allowed:
            return " or ".join(self.allowed)
        sign = "≤" if self.minimum is None else "≥"
        named = "(by language)" if math.isnan(self.threshold) else f"{self.threshold:,.10g}"
        return f"{sign} {named}"

    @property
    def passes(self) -> str:
        """What a document must be, e.g. `words ≥ 50`."""
        return f"{self.signal} {'is ' if self.allowed else ''}{self.bound}"

    def at(self, threshold: float) -> Rule:
        """The same rule with another bound, for all languages."""
        if self.minimum is None:
            return replace(self, maximum=threshold, by_language={})
        return replace(self, minimum=threshold, by_language={})

    def for_language(self, language: str | None) -> Rule:
        """The rule with the bound that documents of `language` are asked for."""
        if language is None or language not in self.by_language:
            return replace(self, by_language={}) if self.by_language else self
        return self.at(self.by_language[language])
