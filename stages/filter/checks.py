"""The checks of a batch of documents, all of them at once: which documents fail, and by how much.

No check holds a row for a document that passes, so what they cost beyond reading the signals grows
with the failures alone.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from artifacts_schema.errors import UsageError

LANGUAGE = "language"
EMPTY_AFTER_EDITS = "empty_after_edits"
CONTAMINATION = "contamination"
EXCLUSION = "exclusion"
EXACT_DUPLICATE = "exact_duplicate"
NEAR_DUPLICATE = "near_duplicate"


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
    """What a batch of documents fails, in the order of decision.

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
    return plain_check(LANGUAGE, failing)


def contamination_check(
    ngrams: NDArray[np.int64], hit: NDArray[np.int64], min_hit: int, min_share: float
) -> Check:
    """Documents with at least `min_hit` benchmark n-grams that are `min_share` of all of theirs."""
    rows = np.flatnonzero((hit >= min_hit) & (hit >= min_share * ngrams))
    return Check(CONTAMINATION, rows, hit[rows].astype(float), np.full(len(rows), float(min_hit)))


def plain_check(name: str, failing: NDArray[np.bool_]) -> Check:
    """A check without a number behind it."""
    rows = np.flatnonzero(failing)
    none = np.full(len(rows), np.nan)
    return Check(name, rows, none, none)


def findings(checks: Sequence[Check], names: Sequence[str], documents: int) -> Findings:
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
