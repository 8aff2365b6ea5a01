"""Figures about the rules themselves: how presets disagree here, and bounds by language."""

from __future__ import annotations

import math
from collections.abc import Sequence

from stages.engine.figures import (
    Cell,
    Column,
    Figure,
    MatrixFigure,
    TableFigure,
    number,
)
from stages.engine.page import Artifact
from stages.engine.tally import at_hand, sentences
from stages.filter.comparison import Comparison, compare_presets
from stages.filter.config import FilterConfig
from stages.filter.coverage import about_chat
from stages.filter.presets import PRESETS, Rule
from stages.filter.verdicts import Given

LANGUAGES = 8
MATRIX = 20


def preset_figures(artifact: Artifact) -> list[Figure]:
    """What each preset alone would keep of these documents, and where two disagree.

    Nothing where no signals were given, or where some of them were collected since.
    """
    signals = at_hand(artifact, "signals")
    references = artifact.manifest.inputs.get("signals", ())
    if not signals or len(signals) < len(references):
        return []
    signals = [given for given in signals if not about_chat(given)]
    found = compare_presets(Given([], signals, [], [], [], None, []), list(PRESETS))
    if not found.documents or not found.presets:
        return []
    return [_kept(found), *_disagreement(found)]


def language_figures(config: FilterConfig, spoken: Sequence[str]) -> list[Figure]:
    """The bounds that differ by language; `spoken` are the corpus' languages, the largest first."""
    if not config.asks_language:
        return []
    told = {*config.thresholds_by_language, *config.rules_by_language}
    varying = {label for rule in config.rule_order() for label in rule.by_language}
    shown = [label for label in spoken if label in told | varying]
    shown = [*shown, *sorted(told - set(shown))][:LANGUAGES]
    asked = {label: {r.name: r for r in config.rules_for("", label)} for label in shown}
    rows: list[tuple[Cell, ...]] = []
    for rule in config.rule_order():
        own = tuple(_bound(asked[label].get(rule.name)) for label in shown)
        if len({_bound(rule), *own}) > 1:
            rows.append((rule.name, rule.signal, _bound(rule), *own))
    if not rows:
        return []
    columns = (Column("rule"), Column("signal"), number("others"), *map(number, shown))
    return [
        TableFigure(
            "Thresholds by language",
            columns,
            tuple(rows),
            "An empty cell: documents of the language are not asked.",
        )
    ]


def _bound(rule: Rule | None) -> float | None:
    return None if rule is None or math.isnan(rule.threshold) else rule.threshold


def _kept(found: Comparison) -> TableFigure:
    rows = tuple(
        (name, int(kept), kept / found.documents)
        for name, kept in zip(found.presets, found.kept.tolist(), strict=True)
    )
    columns = (Column("preset"), number("kept"), number("share", ".1%"))
    missing = ", ".join(found.missing)
    left = f"Not asked, as their signals were not measured: {missing}." if missing else ""
    note = sentences("Each preset alone on every document, whatever its source.", left)
    return TableFigure("What each preset would keep (documents)", columns, rows, note)


def _disagreement(found: Comparison) -> list[Figure]:
    order = sorted(range(len(found.presets)), key=lambda place: -found.dropped[place])
    most = {place for place in order[:MATRIX] if found.dropped[place]}
    shown = [place for place in range(len(found.presets)) if place in most]
    if len(shown) < 2:
        return []
    labels = tuple(found.presets[place] for place in shown)
    only = found.only
    values = tuple(tuple(int(only[a, b]) or None for b in shown) for a in shown)
    return [
        MatrixFigure(
            "Documents that one preset drops and another keeps",
            labels,
            labels,
            values,
            note="The row's preset drops them, the column's keeps them; empty: none. Presets that "
            "drop nothing are left out.",
        )
    ]
