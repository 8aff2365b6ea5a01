"""Passages that an earlier document holds too: cut where that document stays, else left.

`dedup` finds them and writes them as views, in which the label of a span is the doc_id of the
document that holds the first occurrence. Whether that one stays is known once copies are decided.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from stages.filter.edits import Spans
from stages.filter.names import coded
from stages.filter.policies import PASSAGES, other_views, passage_views

if TYPE_CHECKING:
    from stages.filter.earlier import Earlier

__all__ = [
    "PASSAGES",
    "are_lost",
    "are_passages",
    "holders",
    "holders_kept",
    "other_views",
    "passage_views",
]


def holders(spans: Spans, views: Sequence[str]) -> pa.StringArray:
    """The documents, each once, that hold passages of `views` first."""
    return pc.unique(spans.flat.field("label").filter(pa.array(are_passages(spans, views))))


def are_passages(spans: Spans, views: Sequence[str]) -> NDArray[np.bool_]:
    """Which spans are those of `views`."""
    chosen = pc.is_in(spans.flat.field("view"), value_set=pa.array(views, pa.string()))
    return chosen.to_numpy(zero_copy_only=False)


def are_lost(spans: Spans, views: Sequence[str], kept: pa.StringArray) -> NDArray[np.bool_]:
    """Which spans are passages of `views` whose first holder is not among `kept`: they stay.

    What a document that stays repeats of itself is not lost: it stands in it before.
    """
    label_kept = pc.is_in(spans.flat.field("label"), value_set=kept)
    return are_passages(spans, views) & ~label_kept.to_numpy(zero_copy_only=False)


def holders_kept(
    named: Sequence[pa.StringArray],
    doc_ids: pa.StringArray,
    kept: NDArray[np.bool_],
    earlier: Earlier,
) -> list[pa.StringArray]:
    """Of the holders that each shard names, those that this run keeps or an earlier one kept."""
    names, places = coded(named)
    found = pc.index_in(doc_ids, value_set=names)
    stay = np.zeros(len(names), dtype=bool)
    stay[found.filter(pa.array(kept)).drop_null().to_numpy()] = True
    stay |= pc.is_in(names, value_set=earlier.kept_of(names)).to_numpy(zero_copy_only=False)
    return [names.take(pa.array(own[stay[own]])) for own in places]
