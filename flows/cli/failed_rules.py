"""Every check that a document failed, with the value that failed and the threshold it was held to.

The ledger names all failing rules, and gives the numbers of the first; those of the others stand in
the signals beside it and in the config of the filter.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from artifacts_schema.errors import UsageError
from artifacts_schema.manifest import Manifest
from stages.text.chat_rows import ID_COLUMN

if TYPE_CHECKING:
    from flows.cli.document_chain import Sighting
    from stages.filter.config import FilterConfig

Value = float | int | str | None


@dataclass(frozen=True)
class Failure:
    """One failed check: the signal behind it, its value, and the threshold; None where unknown."""

    rule: str
    value: Value = None
    threshold: Value = None
    signal: str | None = None

    def plain(self) -> dict[str, Any]:
        """As plain values."""
        return asdict(self)


def failures(ledger: Sighting, seen: Iterable[Sighting]) -> list[Failure]:
    """What a row of a ledger failed, in the order of decision; `seen` are all rows about it."""
    values = ledger.values
    first = Failure(values["reason"] or "", values["value"], values["threshold"])
    config = _config(ledger.manifest)
    if config is None:
        return [first if name == first.rule else Failure(name) for name in values["failing"]]
    from stages.filter import checks

    given = {
        role: next((s.values for s in seen if _was_given(ledger.manifest, role, s)), {})
        for role in ("documents", *ID_COLUMN, "signals", "contamination", "exclusions")
    }
    row = next((given[role] for role in ("documents", *ID_COLUMN) if given[role]), {})
    signals, link, copies = given["signals"], values["link"] or {}, config.duplicates
    told: dict[str, Callable[[], Failure]] = {
        checks.LANGUAGE: lambda: Failure(
            checks.LANGUAGE, signals.get("language"), " or ".join(config.languages), "language"
        ),
        checks.CONTAMINATION: lambda: Failure(
            checks.CONTAMINATION,
            given["contamination"].get("ngrams_hit"),
            config.contamination.min_ngrams_hit,
            "ngrams_hit",
        ),
        checks.EXCLUSION: lambda: Failure(checks.EXCLUSION, given["exclusions"].get("reason")),
        checks.NEAR_DUPLICATE: lambda: Failure(
            checks.NEAR_DUPLICATE, link.get(copies.measure), copies.threshold, copies.measure
        ),
    }
    rules = _rules(config, row, signals)
    found = []
    for name in values["failing"]:
        if name in rules:
            found.append(rules[name])
        elif name in told and (name != first.rule or first.value is None):
            found.append(told[name]())
        else:
            found.append(first if name == first.rule else Failure(name))
    return found


def _rules(
    config: FilterConfig, document: Mapping[str, Any], signals: Mapping[str, Any]
) -> dict[str, Failure]:
    """The rules that a document was asked, as if it had failed them."""
    asked = config.rules_for(document.get("source", ""), signals.get("language"))
    return {
        rule.name: Failure(
            rule.name,
            signals.get(rule.signal),
            " or ".join(rule.allowed) if rule.allowed else rule.threshold,
            rule.signal,
        )
        for rule in asked
    }


def _config(manifest: Manifest) -> FilterConfig | None:
    """The config of a filter; None of another stage, or of a version with another config."""
    if manifest.stage != "filter":
        return None
    from stages.filter.config import FilterConfig

    try:
        return FilterConfig.parse(manifest.config, where="config")
    except UsageError:
        return None


def _was_given(manifest: Manifest, role: str, sighting: Sighting) -> bool:
    return sighting.output in {
        reference.output
        for reference in manifest.inputs.get(role, ())
        if (reference.stage, reference.key) == (sighting.manifest.stage, sighting.manifest.key)
    }
