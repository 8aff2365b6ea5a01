"""Rules and other checks applied to a batch of documents: which documents fail, and by how much.

Each rule is evaluated once for all documents, whatever presets share it. Documents are grouped by
source, and by language where that matters; a rule has one bound for each group, none if it does not
apply there. A check holds no row for a document that passes, so its cost beyond reading the signals
grows with the failures only.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from itertools import product

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from artifacts_schema.config import did_you_mean
from artifacts_schema.errors import UsageError
from stages.filter.config import REASONS, FilterConfig
from stages.filter.rules import Rule

LANGUAGE, EMPTY_AFTER_EDITS, CONTAMINATION, EXCLUSION, EXACT_DUPLICATE, NEAR_DUPLICATE = REASONS


@dataclass(frozen=True, eq=False)
class Check:
    """The documents that fail one check, as rising rows of the batch.

    `value` and `threshold` are those of each such row, NaN where there is none.
    """

    name: str
    rows: NDArray[np.intp]
    value: NDArray[np.float64]
    threshold: NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Findings:
    """The checks that a batch of documents fails, in the order of decision.

    The failing checks of document d are `codes[offsets[d] : offsets[d + 1]]`, as places in a list
    of names; `value` and `threshold` belong to the first of them (NaN where it has none).
    """

    offsets: NDArray[np.int32]
    codes: NDArray[np.int32]
    value: NDArray[np.float64]
    threshold: NDArray[np.float64]

    @property
    def passes(self) -> NDArray[np.bool_]:
        """Which documents fail nothing."""
        return np.diff(self.offsets) == 0


def language_check(
    signals: pa.Table | None,
    sources: pa.ChunkedArray,
    languages: Collection[str],
    exempt: Collection[str],
) -> Check:
    """Documents in no language of `languages`, those without any included; `exempt` sources pass.

    UsageError if the language was not measured.
    """
    if signals is None or LANGUAGE not in signals.column_names:
        raise UsageError(
            "`languages` needs the language of each document, which was not measured",
            where="filter",
            hint="give `signals` a language_model, a snapshot of one fastText file",
        )
    failing = ~pc.is_in(signals[LANGUAGE], value_set=pa.array(languages)).to_numpy()
    if exempt:
        failing &= ~pc.is_in(sources, value_set=pa.array(exempt)).to_numpy()
    return mask_check(LANGUAGE, failing)


def contamination_check(
    ngrams: NDArray[np.int64], hit: NDArray[np.int64], min_hit: int, min_share: float
) -> Check:
    """Documents with at least `min_hit` benchmark n-grams that are `min_share` of all of theirs."""
    rows = np.flatnonzero((hit >= min_hit) & (hit >= min_share * ngrams))
    return Check(CONTAMINATION, rows, hit[rows].astype(float), np.full(len(rows), float(min_hit)))


def mask_check(name: str, failing: NDArray[np.bool_]) -> Check:
    """A check that compares no number."""
    rows = np.flatnonzero(failing)
    none = np.full(len(rows), np.nan)
    return Check(name, rows, none, none)


def collect_findings(checks: Sequence[Check], names: Sequence[str], documents: int) -> Findings:
    """The failing checks of each document, by their places in `names`.

    `checks` are in the order of decision, that of `names`.
    """
    place = {name: code for code, name in enumerate(names)}
    value, threshold = np.full(documents, np.nan), np.full(documents, np.nan)
    decided = np.zeros(documents, dtype=bool)
    # One number a failure, document before check: sorted, they are the lists of all documents.
    keys = [np.empty(0, dtype=np.int64)]
    for check in checks:
        first = ~decided[check.rows]
        rows = check.rows[first]
        value[rows], threshold[rows] = check.value[first], check.threshold[first]
        decided[rows] = True
        keys.append(check.rows * len(names) + place[check.name])
    failures = np.sort(np.concatenate(keys))
    owners, codes = np.divmod(failures, len(names) or 1)
    offsets = np.zeros(documents + 1, dtype=np.int32)
    np.cumsum(np.bincount(owners, minlength=documents), out=offsets[1:])
    return Findings(offsets, codes.astype(np.int32), value, threshold)


_LABEL_BOUND = 0.0
"""The bound of a rule on labels, for groups that it applies to."""


@dataclass(frozen=True, eq=False)
class RuleGroups:
    """Documents by their rules: the group of each, and the rules of each group by name."""

    group: NDArray[np.int64]
    rules: tuple[dict[str, Rule], ...]

    def bounds(self, rule: Rule) -> NDArray[np.float64]:
        """The rule's bound for each group; NaN where it does not apply."""
        bounds = np.full(len(self.rules), np.nan)
        for group, rules in enumerate(self.rules):
            if rule.name in rules:
                bounds[group] = _LABEL_BOUND if rule.allowed else rules[rule.name].threshold
        return bounds


def group_documents(
    config: FilterConfig, sources: pa.ChunkedArray, signals: pa.Table | None
) -> RuleGroups:
    """The groups that occur. UsageError if the language matters and was not measured."""
    source, source_names = _encode(sources)
    if not config.asks_language:
        return RuleGroups(source, tuple(_by_name(config, name, None) for name in source_names))
    if signals is None or LANGUAGE not in signals.column_names:
        raise UsageError(
            "some rules depend on the language of each document, which was not measured",
            where="filter",
            hint="give `signals` a language_model, a snapshot of one fastText file",
        )
    language, language_names = _encode(signals[LANGUAGE])
    pairs = product(source_names, language_names)
    return RuleGroups(
        source * len(language_names) + language,
        tuple(_by_name(config, name, spoken) for name, spoken in pairs),
    )


def rule_checks(
    config: FilterConfig, sources: pa.ChunkedArray, signals: pa.Table | None
) -> list[Check]:
    """One check for each rule that applies to some document, in the order of decision.

    UsageError if there is no column for such a rule's signal.
    """
    groups = group_documents(config, sources, signals)
    values = SignalColumns(signals)
    bounds = {rule.name: groups.bounds(rule) for rule in config.rule_order()}
    rules = [rule for rule in config.rule_order() if not np.isnan(bounds[rule.name]).all()]
    for rule in rules:
        values.demand(rule)
    # Signal by signal, so that each column is turned into numbers once.
    by_signal = sorted(rules, key=lambda rule: rule.signal)
    checks = {
        rule.name: _rule_check(rule, bounds[rule.name], groups.group, values) for rule in by_signal
    }
    return [checks[rule.name] for rule in rules]


class SignalColumns:
    """Signal columns as numbers; the last one is kept, for the next rule on its signal."""

    def __init__(self, signals: pa.Table | None) -> None:
        columns = {} if signals is None else zip(signals.column_names, signals.columns, strict=True)
        self._has_signals = signals is not None
        self._columns: dict[str, pa.ChunkedArray] = dict(columns)
        self._last: tuple[str, NDArray[np.float64]] = ("", np.empty(0))

    def demand(self, rule: Rule) -> None:
        """UsageError if the signal of a rule was not measured."""
        if rule.signal in self._columns:
            self._check_type(rule)
            return
        if not self._has_signals:
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
            hint=signal_hint(rule.signal),
        )

    def _check_type(self, rule: Rule) -> None:
        holds_labels = pa.types.is_string(self._columns[rule.signal].type)
        if holds_labels != bool(rule.allowed):
            kind = "labels" if holds_labels else "numbers"
            raise UsageError(
                f"rule '{rule.name}': signal '{rule.signal}' holds {kind}", where="filter"
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


_SIGNAL_INPUTS = (
    (("language", "line_language_share"), "a language_model, a snapshot of one fastText file"),
    (("perplexity", "line_perplexity"), "an ngram_model"),
    (("perplexity_bucket",), "an ngram_model and its cutoffs"),
    (("bad_words", "bad_word_share"), "word_lists"),
    (("ai_opt_out_marks", "robots_noindex", "is_truncated"), "the pages of the documents"),
)


def signal_hint(signal: str) -> str:
    """How to make `signals` measure a signal."""
    for names, needed in _SIGNAL_INPUTS:
        if signal in names or signal.removesuffix("_score") in names:
            return f"give `signals` {needed}"
    if signal.endswith("@fineweb-2"):
        return "name languages in `language_splitters` of `signals` (extra `splitters`)"
    if signal.startswith("url_"):
        return "give `signals` url_lists"
    if signal.endswith("_score"):
        return f"give `signals` a classifier named '{signal.removesuffix('_score')}'"
    if "/" in signal:
        return f"let `signals` measure the text after the view '{signal.rsplit('/', 1)[0]}'"
    return "run `signals` again: these were made by an older one, or without this signal's group"


def _rule_check(
    rule: Rule, bounds: NDArray[np.float64], group: NDArray[np.int64], values: SignalColumns
) -> Check:
    """The documents that fail one rule."""
    bound: NDArray[np.float64] = bounds[:1] if (bounds == bounds[0]).all() else bounds[group]
    if rule.allowed:
        known = pc.is_in(values.column(rule), value_set=pa.array(rule.allowed))
        null = pc.is_null(values.column(rule))
        rows = np.flatnonzero(~pc.or_(known, null).to_numpy() & ~np.isnan(bound))
        none = np.full(len(rows), np.nan)
        return Check(rule.name, rows, none, none)
    numbers = values.numbers(rule)
    # A comparison with NaN, a missing value or a group without the rule, is false.
    rows = np.flatnonzero(numbers < bound if rule.minimum is not None else numbers > bound)
    thresholds = bound[rows] if len(bound) > 1 else np.broadcast_to(bound, len(rows))
    return Check(rule.name, rows, numbers[rows], thresholds)


def _encode(column: pa.ChunkedArray) -> tuple[NDArray[np.int64], list[str | None]]:
    """Each value as a place among the different ones."""
    encoded = column.combine_chunks().dictionary_encode(null_encoding="encode")
    return encoded.indices.to_numpy().astype(np.int64), encoded.dictionary.to_pylist()


def _by_name(config: FilterConfig, source: str | None, language: str | None) -> dict[str, Rule]:
    return {rule.name: rule for rule in config.rules_for(source or "", language)}
