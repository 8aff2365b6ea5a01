"""Rules held against signal columns: every document against the bounds of its source and language.

Each rule is evaluated once for all documents, whatever presets share it. Documents fall into groups
by source, and by language where that matters; a rule has one bound for each group, none where the
group is not asked.
"""

from __future__ import annotations

from dataclasses import dataclass
from difflib import get_close_matches
from itertools import product

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from artifacts_schema.config import did_you_mean
from artifacts_schema.errors import UsageError
from stages.filter.checks import LANGUAGE, Check
from stages.filter.config import FilterConfig
from stages.filter.presets import Rule

_LABEL_ASKED = 0.0
"""The bound of a rule on labels, for groups that are asked."""


@dataclass(frozen=True, eq=False)
class Groups:
    """Documents that are asked the same: the group of each, and the rules of each group by name."""

    of: NDArray[np.int64]
    rules: tuple[dict[str, Rule], ...]

    def bounds(self, rule: Rule) -> NDArray[np.float64]:
        """The rule's bound for each group; NaN where it is not asked."""
        bounds = np.full(len(self.rules), np.nan)
        for group, rules in enumerate(self.rules):
            if rule.name in rules:
                bounds[group] = _LABEL_ASKED if rule.allowed else rules[rule.name].threshold
        return bounds


def groups_of(config: FilterConfig, sources: pa.ChunkedArray, signals: pa.Table | None) -> Groups:
    """The groups that occur. UsageError if the language matters and was not measured."""
    source, source_names = _coded(sources)
    if not config.asks_language:
        return Groups(source, tuple(_by_name(config, name, None) for name in source_names))
    if signals is None or LANGUAGE not in signals.column_names:
        raise UsageError(
            "some rules depend on the language of each document, which was not measured",
            where="filter",
            hint="give `signals` a language_model, a snapshot of one fastText file",
        )
    language, language_names = _coded(signals[LANGUAGE])
    pairs = product(source_names, language_names)
    return Groups(
        source * len(language_names) + language,
        tuple(_by_name(config, name, spoken) for name, spoken in pairs),
    )


def rule_checks(
    config: FilterConfig, sources: pa.ChunkedArray, signals: pa.Table | None
) -> list[Check]:
    """One check for each rule that some document is asked, in the order of decision.

    UsageError if there is no column for such a rule's signal.
    """
    groups = groups_of(config, sources, signals)
    values = Values(signals)
    bounds = {rule.name: groups.bounds(rule) for rule in config.rule_order()}
    asked = [rule for rule in config.rule_order() if not np.isnan(bounds[rule.name]).all()]
    for rule in asked:
        values.demand(rule)
    # Signal by signal, so that each column is turned into numbers once.
    by_signal = sorted(asked, key=lambda rule: rule.signal)
    checks = {rule.name: _check(rule, bounds[rule.name], groups.of, values) for rule in by_signal}
    return [checks[rule.name] for rule in asked]


class Values:
    """Signal columns as numbers; the last one is kept, for the next rule on its signal."""

    def __init__(self, signals: pa.Table | None) -> None:
        columns = {} if signals is None else zip(signals.column_names, signals.columns, strict=True)
        self._given = signals is not None
        self._columns: dict[str, pa.ChunkedArray] = dict(columns)
        self._last: tuple[str, NDArray[np.float64]] = ("", np.empty(0))

    def demand(self, rule: Rule) -> None:
        """UsageError if the signal of a rule was not measured."""
        if rule.signal in self._columns:
            return
        if not self._given:
            raise UsageError(
                f"rule '{rule.name}' needs signal '{rule.signal}', but no signals are given",
                where="filter",
                hint="connect the signals of the documents, or set rules to []",
            )
        close = get_close_matches(rule.signal, self._columns, n=1)
        near = did_you_mean(rule.signal, close) if close else ""
        raise UsageError(
            f"rule '{rule.name}' needs signal '{rule.signal}', which was not measured{near}",
            where="filter",
            hint=brought_by(rule.signal),
        )

    def column(self, rule: Rule) -> pa.ChunkedArray:
        """The column of a rule's signal."""
        return self._columns[rule.signal]

    def numbers(self, rule: Rule) -> NDArray[np.float64]:
        """The rule's signal as float64, NaN where it is null."""
        if self._last[0] != rule.signal:
            column = self.column(rule)
            if column.type != pa.float64():
                column = column.cast(pa.float64())
            self._last = rule.signal, column.to_numpy()
        return self._last[1]


_BROUGHT_BY = (
    (("language", "line_language_share"), "a language_model, a snapshot of one fastText file"),
    (("perplexity", "line_perplexity"), "an ngram_model"),
    (("perplexity_bucket",), "an ngram_model and its cutoffs"),
    (("bad_words", "bad_word_share"), "word_lists"),
    (("ai_opt_out_marks", "robots_noindex", "is_truncated"), "the pages of the documents"),
)


def brought_by(signal: str) -> str:
    """What to do so that `signals` measures a signal."""
    for names, needed in _BROUGHT_BY:
        if signal in names or signal.removesuffix("_score") in names:
            return f"give `signals` {needed}"
    if signal.startswith("url_"):
        return "give `signals` url_lists"
    if signal.endswith("_score"):
        return f"give `signals` a classifier named '{signal.removesuffix('_score')}'"
    if "/" in signal:
        return f"let `signals` measure the text after the view '{signal.rsplit('/', 1)[0]}'"
    return "run `signals` again: these were made by an older one, or without this signal's group"


def _check(rule: Rule, bounds: NDArray[np.float64], of: NDArray[np.int64], values: Values) -> Check:
    """The documents that fail one rule."""
    bound: NDArray[np.float64] = bounds[:1] if (bounds == bounds[0]).all() else bounds[of]
    if rule.allowed:
        known = pc.is_in(values.column(rule), value_set=pa.array(rule.allowed))
        null = pc.is_null(values.column(rule))
        rows = np.flatnonzero(~pc.or_(known, null).to_numpy() & ~np.isnan(bound))
        none = np.full(len(rows), np.nan)
        return Check(rule.name, rows, none, none)
    numbers = values.numbers(rule)
    # A comparison with NaN, a missing value or a group that is not asked, is false.
    rows = np.flatnonzero(numbers < bound if rule.minimum is not None else numbers > bound)
    asked = bound[rows] if len(bound) > 1 else np.broadcast_to(bound, len(rows))
    return Check(rule.name, rows, numbers[rows], asked)


def _coded(column: pa.ChunkedArray) -> tuple[NDArray[np.int64], list[str | None]]:
    """Each value as a place among the different ones."""
    encoded = column.combine_chunks().dictionary_encode(null_encoding="encode")
    return encoded.indices.to_numpy().astype(np.int64), encoded.dictionary.to_pylist()


def _by_name(config: FilterConfig, source: str | None, language: str | None) -> dict[str, Rule]:
    return {rule.name: rule for rule in config.rules_for(source or "", language)}
