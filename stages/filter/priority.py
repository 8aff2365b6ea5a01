"""The order in which documents are decided on: of copies, the first stays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from artifacts_schema.errors import UsageError
from stages.filter.bounds import brought_by
from stages.filter.policies import Criterion

COLUMNS = {"source": "source", "snapshot": "snapshot", "date": "date"}
"""The column of documents that a criterion looks at."""


def decision_order(keys: Sequence[NDArray[np.float64]], criteria: int) -> NDArray[np.int64]:
    """The places of documents in the order of decision.

    `keys` are those of each shard (see `priority_keys`), in the order of the inputs, which decides
    where all criteria are equal.
    """
    joined = np.concatenate([np.empty((criteria, 0)), *keys], axis=1)
    if not criteria:
        return np.arange(joined.shape[1])
    # lexsort sorts by its last key first, and keeps the order of what is equal.
    return np.lexsort(joined[::-1]).astype(np.int64)


def priority_keys(
    criteria: Sequence[Criterion],
    documents: pa.Table,
    signals: pa.Table | None,
    characters: Callable[[], NDArray[np.int64]],
) -> NDArray[np.float64]:
    """[criterion, document] The lesser is wanted more; infinite where nothing is known.

    `documents` holds the `COLUMNS` of the criteria; `characters` counts those of the texts. A
    UsageError names a signal that was not measured.
    """
    keys = np.empty((len(criteria), len(documents)))
    for row, criterion in enumerate(criteria):
        if criterion.by == "quality":
            assert criterion.signal is not None
            keys[row] = _known(-_signal(criterion.signal, signals))
        elif criterion.by == "length":
            keys[row] = -characters()
        elif criterion.by == "date":
            sign = -1.0 if criterion.first == "latest" else 1.0
            keys[row] = _known(sign * _seconds(documents["date"]))
        else:
            place = pc.index_in(documents[criterion.by], value_set=pa.array(criterion.order))
            keys[row] = pc.fill_null(place, len(criterion.order)).to_numpy()
    return keys


def _known(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Infinite in place of NaN."""
    return np.where(np.isnan(values), np.inf, values)


def _signal(name: str, signals: pa.Table | None) -> NDArray[np.float64]:
    if signals is None or name not in signals.column_names:
        raise UsageError(
            f"duplicates.priority asks for signal '{name}', which was not measured",
            where="filter",
            hint="connect the signals of the documents" if signals is None else brought_by(name),
        )
    column = signals[name]
    if pa.types.is_string(column.type):
        raise UsageError(f"duplicates.priority: signal '{name}' is no number", where="filter")
    values: NDArray[np.float64] = column.cast(pa.float64()).to_numpy()
    return values


def _seconds(dates: pa.ChunkedArray) -> NDArray[np.float64]:
    """Seconds since 1970 of ISO 8601 dates, UTC where no zone is told; NaN for what is none."""
    encoded = dates.combine_chunks().dictionary_encode()
    known = np.array([_parsed(text) for text in encoded.dictionary.to_pylist()] + [np.nan])
    places = pc.fill_null(encoded.indices, len(known) - 1).to_numpy()
    return known[places]


def _parsed(text: str) -> float:
    """`2024`, `2024-05`, `2024-05-01`, `2024-05-01T10:00:00Z` and their like."""
    padded = {4: f"{text}-01-01", 7: f"{text}-01"}.get(len(text), text)
    try:
        told = datetime.fromisoformat(padded)
    except ValueError:
        return float("nan")
    return (told if told.tzinfo else told.replace(tzinfo=UTC)).timestamp()
