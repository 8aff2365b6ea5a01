"""`--set` and `--sweep` of `ingot what-if`: thresholds by rule, other values by their path."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from artifacts_schema.errors import UsageError
from flows.recipe.overrides import set_value
from stages.filter.config import FilterConfig
from stages.filter.presets import PRESETS

MOST_VALUES = 100
"""Of a sweep: each is a decision about all documents."""


def changed(config: FilterConfig, settings: Sequence[str]) -> FilterConfig:
    """`config` with every `RULE=VALUE` or `path=value` set; UsageError where that cannot be."""
    values: dict[str, Any] = config.plain()
    for text in settings:
        text = text.strip().removeprefix("filter.")  # As a run of the recipe is told.
        path, equals, _ = text.partition("=")
        is_field = not equals or path.strip().split(".")[0] in FilterConfig.model_fields
        set_value(values, text if is_field else f"thresholds.{text}")
    where = " ".join(f"--set {text}" for text in settings) or "config"
    try:
        return FilterConfig.parse(values, where=where)
    except UsageError as error:
        raise UsageError(error.what, where=where, hint=_hint(error.what, settings)) from None


def _hint(what: str, settings: Sequence[str]) -> str | None:
    """What to do about a rule that no chosen preset has."""
    for text in settings:
        name = text.partition("=")[0].strip()
        having = [preset for preset, rules in PRESETS.items() if any(r.name == name for r in rules)]
        if having and f"'{name}'" in what:
            return f"it is a rule of {', '.join(having[:3])}: choose that with --set 'rules=[…]'"
    if "no chosen preset has a rule" in what and any(s.startswith("rules") for s in settings):
        return "thresholds of the old rules stand in its config: add --set 'thresholds={}'"
    return None


def swept(text: str) -> tuple[str, list[float]]:
    """`RULE=A:B:N` as the rule (or path) and its N values; whole numbers stay whole."""
    name, equals, span = text.partition("=")
    where = f"--sweep {text}"
    try:
        first, last, number = span.split(":")
        start, stop, count = float(first), float(last), int(number)
    except ValueError:
        raise UsageError(
            "expected RULE=A:B:N, e.g. gopher_few_words=10:100:10", where=where
        ) from None
    if not equals or not name.strip() or not 2 <= count <= MOST_VALUES:
        raise UsageError(f"expected RULE=A:B:N with N from 2 to {MOST_VALUES}", where=where)
    values = [start + (stop - start) * place / (count - 1) for place in range(count)]
    return name.strip(), [round(value, 10) for value in values]
