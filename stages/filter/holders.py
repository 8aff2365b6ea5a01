"""Passages are cut where the document that holds them first stays: which of these holders do.

A shard's task leaves the names of the holders of its passages. They are matched with all documents
as the names of links are (`matching`), by ranges of numbers, and those of earlier runs in one task
that reads what these runs decided. The stage's own process holds a byte a document and no id.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from stages.filter.assess import HOLDERS, read_findings, read_holders
from stages.filter.copies import DecidedCopies, Map
from stages.filter.duplicates import EarlierDocuments, encode_names
from stages.filter.links import NUMBERS
from stages.filter.matching import LinkFiles, MatchedNames, match_names, number_ranges

if TYPE_CHECKING:
    from stages.engine import ShardOutput, ShardResult

KEPT = "kept"
"""Scratch table: whether an earlier run kept each holder, shard after shard."""


@dataclass(frozen=True)
class EarlierHolders:
    """What earlier runs decided; the item of a map."""

    id: str
    documents: EarlierDocuments


def leave_kept_earlier(
    item: EarlierHolders, out: ShardOutput, *, shards: Sequence[ShardResult]
) -> None:
    """Leave `KEPT` of the holders that shards name."""
    names, places = encode_names([read_holders(result) for result in shards])
    kept = pc.is_in(names, value_set=item.documents.kept_among(names))
    out.write_scratch(KEPT, pa.table({KEPT: kept.take(pa.array(np.concatenate(places)))}))


def staying_holders(
    run_map: Map,
    starts: Sequence[int],
    results: Sequence[ShardResult],
    decided: DecidedCopies,
    earlier: EarlierDocuments,
    memory: int,
) -> list[NDArray[np.bool_]]:
    """For each shard, which rows of its `HOLDERS` this run keeps or an earlier one kept.

    `starts` are the first document of each shard, and the number of all.
    """
    documents, names = starts[-1], sum(result.value["holders"] for result in results)
    files = tuple(
        LinkFiles(result.left(None, NUMBERS), result.left(None, HOLDERS), start)
        for result, start in zip(results, starts, strict=False)
    )
    ranges = number_ranges(documents + names, memory)
    matched = MatchedNames(
        ranges, run_map(match_names, ranges, name="match_holders", files=files), documents
    )
    kept, stay = _kept(starts, results, decided), []
    for result in results:
        nodes = matched.read(result.read_scratch(HOLDERS, ["number"])["number"].to_numpy())
        own = nodes < documents
        own[own] = kept[nodes[own]]
        stay.append(own)
    if any(folder.ledger is not None for folder in earlier.folders):
        items = [EarlierHolders("earlier", earlier)]
        (left,) = run_map(leave_kept_earlier, items, shards=tuple(results))
        before = np.split(left.read_scratch(KEPT)[KEPT].to_numpy(), np.cumsum([*map(len, stay)]))
        stay = [own | other for own, other in zip(stay, before, strict=False)]
    return stay


def _kept(
    starts: Sequence[int], results: Sequence[ShardResult], decided: DecidedCopies
) -> NDArray[np.bool_]:
    """Whether each document stays."""
    kept = np.empty(starts[-1], dtype=bool)
    for result, (start, stop) in zip(results, pairwise(starts), strict=True):
        kept[start:stop] = read_findings(result).passes
    for rows in decided.dropped():
        kept[rows] = False
    return kept
