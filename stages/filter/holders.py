"""Passages are cut where the document that holds them first stays: which of these holders do.

A shard's task leaves the names of the holders of its passages. They are matched with all documents
as the names of links are (`matching`), by ranges of numbers, and those of earlier runs in one task
that reads what these runs decided. The stage's own process holds a byte a document and no id.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from stages.filter.assess import HOLDERS, read_findings, read_holders
from stages.filter.copies import DecidedCopies, Map
from stages.filter.document_ids import id_words
from stages.filter.duplicates import EarlierDocuments, encode_names
from stages.filter.links import NUMBERS
from stages.filter.matching import LinkFiles, MatchedNames, match_names, number_ranges

if TYPE_CHECKING:
    from stages.engine import ShardOutput, ShardResult

KEPT = "kept"
"""Scratch table: `number` and `check` of the holders that an earlier run kept."""


@dataclass(frozen=True)
class EarlierHolders:
    """What earlier runs decided; the item of a map."""

    id: str
    documents: EarlierDocuments


def leave_kept_earlier(
    item: EarlierHolders, out: ShardOutput, *, shards: Sequence[ShardResult]
) -> None:
    """Leave `KEPT`: of the holders that shards name, those that an earlier run kept."""
    names, _ = encode_names([read_holders(result) for result in shards])
    words = id_words(item.documents.kept_among(names))
    out.write_scratch(KEPT, pa.table({"number": words[:, 0], "check": words[:, 1]}))


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
    kept_earlier = _kept_earlier(run_map, results, earlier)
    kept = _kept(starts, results, decided)
    stay = []
    for result in results:
        words = result.read_scratch(HOLDERS, ["number", "check"])
        nodes = matched.read(words["number"].to_numpy())
        own = nodes < documents
        own[own] = kept[nodes[own]]
        if len(kept_earlier):
            own |= np.isin(_as_items(words), kept_earlier)
        stay.append(own)
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


def _kept_earlier(
    run_map: Map, results: Sequence[ShardResult], earlier: EarlierDocuments
) -> NDArray[Any]:
    """Number and check of each holder that an earlier run kept."""
    if not any(folder.ledger is not None for folder in earlier.folders):
        return np.empty(0, dtype=_ITEM)
    items = [EarlierHolders("earlier", earlier)]
    (left,) = run_map(leave_kept_earlier, items, shards=tuple(results))
    return _as_items(left.read_scratch(KEPT))


_ITEM = np.dtype([("number", np.uint64), ("check", np.uint64)])


def _as_items(words: pa.Table) -> NDArray[Any]:
    """Numbers and checks as one array."""
    items = np.empty(len(words), dtype=_ITEM)
    for name in ("number", "check"):
        items[name] = words[name].to_numpy()
    return items
