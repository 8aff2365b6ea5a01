"""The checks of a batch of documents, all of them at once: values, bounds and which ones fail."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from artifacts_schema.config import did_you_mean
from artifacts_schema.errors import UsageError
from stages.filter.presets import Rule

LANGUAGE = "language"
EMPTY_AFTER_EDITS = "empty_after_edits"
CONTAMINATION = "contamination"
EXCLUSION = "exclusion"
EXACT_DUPLICATE = "exact_duplicate"
NEAR_DUPLICATE = "near_duplicate"


@dataclass(frozen=True, eq=False)
class Check:
    """One check of a batch of documents; `value` and `threshold` are NaN where there is none."""

    name: str
    failing: NDArray[np.bool_]
    value: NDArray[np.float64]
    threshold: float


@dataclass(frozen=True, eq=False)
class Findings:
    """What a batch of documents fails, in the order of decision.

    The failing checks of document d are `codes[offsets[d] : offsets[d + 1]]`, as places in a list
    of names; `value` and `threshold` belong to the first of them (NaN where it has none).
    """

    offsets: NDArray[np.int32]
    codes: NDArray[np.int32]
    value: NDArray[np.float64]
    threshold: NDArray[np.float64]


def rule_checks(
    signals: pa.Table | None,
    sources: pa.ChunkedArray,
    rules: Sequence[Rule],
    rules_of_source: Mapping[str, Collection[str]],
) -> list[Check]:
    """One check for each of `rules`, in order, that some document's source has.

    `rules_of_source` names the rules of every source that occurs; a document of another source does
    not fail the rule. UsageError if there is no column for a rule's signal.
    """
    checks = []
    for rule in rules:
        having = [source for source, names in rules_of_source.items() if rule.name in names]
        if not having:
            continue
        values = signal_values(signals, rule)
        failing = outside(values, rule)
        if len(having) < len(rules_of_source):
            failing &= pc.is_in(sources, value_set=pa.array(having)).to_numpy()
        checks.append(Check(rule.name, failing, values, rule.threshold))
    return checks


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
    return plain_check(LANGUAGE, failing)


def signal_values(signals: pa.Table | None, rule: Rule) -> NDArray[np.float64]:
    """The rule's signal as float64, NaN where it is null; UsageError if it was not measured."""
    if signals is None:
        raise UsageError(
            f"rule '{rule.name}' needs signal '{rule.signal}', but no signals are given",
            where="filter",
            hint="connect the signals of the documents, or set rules to []",
        )
    if rule.signal not in signals.column_names:
        near = did_you_mean(rule.signal, signals.column_names)
        raise UsageError(
            f"rule '{rule.name}' needs signal '{rule.signal}', which was not measured{near}",
            where="filter",
            hint="some signals need inputs of `signals`: pages, url_lists, language_model",
        )
    return signals[rule.signal].cast(pa.float64()).to_numpy(zero_copy_only=False)


def outside(values: NDArray[np.float64], rule: Rule) -> NDArray[np.bool_]:
    """Where the rule fails; never for NaN."""
    if rule.minimum is not None:
        return values < rule.minimum
    return values > rule.threshold


def contamination_check(
    ngrams: NDArray[np.int64], hit: NDArray[np.int64], min_hit: int, min_share: float
) -> Check:
    """Documents with at least `min_hit` benchmark n-grams that are `min_share` of all of theirs."""
    failing = (hit >= min_hit) & (hit >= min_share * ngrams)
    return Check(CONTAMINATION, failing, hit.astype(np.float64), min_hit)


def plain_check(name: str, failing: NDArray[np.bool_]) -> Check:
    """A check without a number behind it."""
    return Check(name, failing, np.full(len(failing), np.nan), np.nan)


def findings(checks: Sequence[Check], names: Sequence[str], documents: int) -> Findings:
    """The failing checks of each document, by their places in `names`.

    `checks` are in the order of decision.
    """
    failing = np.zeros((documents, len(checks)), dtype=bool)
    values = np.full((documents, len(checks)), np.nan)
    for column, check in enumerate(checks):
        failing[:, column], values[:, column] = check.failing, check.value
    row, column_of = np.nonzero(failing)
    offsets = np.concatenate([[0], np.cumsum(failing.sum(axis=1))]).astype(np.int32)
    codes = np.array([names.index(check.name) for check in checks], dtype=np.int32)[column_of]
    value, threshold = np.full(documents, np.nan), np.full(documents, np.nan)
    is_first = np.diff(row, prepend=-1) > 0
    first_row, first_column = row[is_first], column_of[is_first]
    value[first_row] = values[first_row, first_column]
    threshold[first_row] = np.array([check.threshold for check in checks])[first_column]
    return Findings(offsets, codes, value, threshold)
