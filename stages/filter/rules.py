"""A rule: a named bound on one signal, and the rules that `personal_data` makes."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

NOT_ASKED = math.nan
"""As a bound: the rule applies only to the languages in `by_language`."""


@dataclass(frozen=True)
class Rule:
    """A document fails where the signal lies below `minimum`, above `maximum`, or not in `allowed`.

    A rule has one of the three. The bound itself passes, and so does a document for which the
    signal has no value. `by_language` holds other bounds for languages, as a model names them.
    With `sources` or `languages` the rule applies only to documents of these.
    """

    name: str
    signal: str
    source: str
    minimum: float | None = None
    maximum: float | None = None
    allowed: tuple[str, ...] = ()
    by_language: Mapping[str, float] = field(default_factory=dict)
    sources: tuple[str, ...] = ()
    languages: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        bounds = (self.minimum is not None, self.maximum is not None, bool(self.allowed))
        assert sum(bounds) == 1, self.name
        assert not (self.allowed and self.by_language), self.name

    @property
    def threshold(self) -> float:
        """The bound of the rule; NaN for labels, and for a rule with bounds by language only."""
        bound = self.maximum if self.minimum is None else self.minimum
        return math.nan if bound is None else bound

    @property
    def view(self) -> str | None:
        """The view after whose edits the signal is measured; None for the text without edits."""
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

    def applies(self, source: str, language: str | None) -> bool:
        """Whether the rule applies to documents of a source in a language."""
        here = not self.sources or source in self.sources
        return here and (not self.languages or language in self.languages)

    def at(self, threshold: float) -> Rule:
        """The same rule with another bound, for all languages."""
        if self.minimum is None:
            return replace(self, maximum=threshold, by_language={})
        return replace(self, minimum=threshold, by_language={})

    def for_language(self, language: str | None) -> Rule:
        """The rule with its bound for documents of `language`."""
        if language is None or language not in self.by_language:
            return replace(self, by_language={}) if self.by_language else self
        return self.at(self.by_language[language])


_PERSONAL_DATA_SOURCE = "Ingot: `personal_data` of the config"

PERSONAL_DATA_RULES = {
    label: Rule(f"personal_data_{label}", signal, _PERSONAL_DATA_SOURCE, maximum=0)
    for label, signal in (
        ("email", "email_count"),
        ("ip_address", "ip_count"),
        ("phone", "phone_count"),
        ("iban", "iban_count"),
        ("card", "card_count"),
        ("secret", "secret_count"),
    )
}
"""By the sort of data; not a preset: `personal_data` of the config chooses them."""
