"""Published rule sets as data: a named bound on a signal, and where the number comes from.

A preset is named for its rules and, after `@`, for the implementation whose definitions the signals
follow. Rules stand in the order in which that implementation checks them, so the first failing rule
is the reason that it would give. Presets share rules: one name is one rule everywhere.
"""

from __future__ import annotations

from collections.abc import Iterable

from artifacts_schema.config import did_you_mean
from artifacts_schema.errors import UsageError
from stages.filter.presets import (
    c4,
    curator,
    fineweb,
    fineweb_2,
    gopher,
    models,
    pages,
    refinedweb,
)
from stages.filter.presets.rule import NOT_ASKED, Rule

__all__ = ["NOT_ASKED", "PRESETS", "Rule", "rules_of"]

PRESETS: dict[str, tuple[Rule, ...]] = {
    **gopher.PRESETS,
    **c4.PRESETS,
    **fineweb.PRESETS,
    **fineweb_2.PRESETS,
    **refinedweb.PRESETS,
    **models.PRESETS,
    **curator.PRESETS,
    **pages.PRESETS,
}


def rules_of(presets: Iterable[str]) -> tuple[Rule, ...]:
    """The rules of `presets` in order, each once.

    UsageError if a preset is unknown or named twice.
    """
    rules: dict[str, Rule] = {}
    seen: set[str] = set()
    for preset in presets:
        if preset not in PRESETS:
            raise UsageError(f"no rule preset '{preset}'{did_you_mean(preset, PRESETS)}")
        if preset in seen:
            raise UsageError(f"rule preset '{preset}' is named twice")
        seen.add(preset)
        rules.update((rule.name, rule) for rule in PRESETS[preset] if rule.name not in rules)
    return tuple(rules.values())
