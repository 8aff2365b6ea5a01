"""Which documents are copies of which: from what shards left, by maps, to tables by group.

Names of links are matched with documents by ranges of numbers (`matching`), linked documents are
grouped by connected component (`components`), and each group is decided for itself (`groups`).
None of these reads a text, and the stage's own process no id.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from artifacts_schema.store.backend import HashingWriter, LocalBackend
from artifacts_schema.store.storage_errors import translate_errors
from stages.engine.outputs import LeftFile, ShardOutput, ShardResult
from stages.filter.components import AllLinks, LinkedShards, group_links
from stages.filter.config import DuplicatesPolicy
from stages.filter.decide import Copies
from stages.filter.document_ids import DocumentIds
from stages.filter.duplicates import EarlierDocuments
from stages.filter.earlier import EarlierRuns, leave_earlier
from stages.filter.groups import DECIDED, DECIDED_ROWS, Group, decide_group
from stages.filter.matching import LinkFiles, MatchedNames, match_names, number_ranges
from stages.filter.ordered import read_range

if TYPE_CHECKING:
    from stages.filter.sidecars import AlignedShard

Map = Callable[..., Sequence[ShardResult]]
"""As `Context.map`: function, items, and what the calls share."""


def group_documents(
    run_map: Map,
    shards: Sequence[AlignedShard],
    results: Sequence[ShardResult],
    earlier: EarlierDocuments,
    policy: DuplicatesPolicy,
    memory: int,
) -> tuple[ShardResult | None, list[Group]]:
    """The links by group, from what `assess_shard` left of each shard; None if there are none.

    InputError if two documents have one id; UsageError for pairs that were not verified.
    """
    starts = shard_starts(shards)
    ids = DocumentIds(tuple(shard.documents for shard in shards))
    files = [
        LinkFiles.from_result(result, start) for result, start in zip(results, starts, strict=False)
    ]
    names = sum(result.value["names"] for result in results)
    known = None
    if earlier.folders:
        runs = [EarlierRuns("earlier", earlier, ids)]
        (known,) = run_map(leave_earlier, runs, shards=tuple(results), measure=policy.measure)
        files.append(LinkFiles.from_result(known, starts[-1], numbered=False))
        names += known.value["names"]
    ranges = number_ranges(starts[-1] + names, memory)
    matches = run_map(match_names, ranges, files=tuple(files))
    if not names:
        return None, []
    matched = MatchedNames(ranges, matches, starts[-1])
    linked = LinkedShards(tuple(results), tuple(starts), known, matched)
    (grouped,) = run_map(group_links, [AllLinks()], linked=linked, policy=policy, memory=memory)
    return grouped, [Group(number, size) for number, size in enumerate(grouped.value["bytes"])]


@dataclass(frozen=True)
class DecidedCopies:
    """Tables of what was decided, one of each group of linked documents. Picklable."""

    files: tuple[LeftFile, ...] = ()

    @classmethod
    def decide(
        cls,
        run_map: Map,
        shards: Sequence[AlignedShard],
        results: Sequence[ShardResult],
        earlier: EarlierDocuments,
        policy: DuplicatesPolicy,
        *,
        ledgers: int,
        memory: int,
    ) -> DecidedCopies:
        """Decide on the documents of all shards (see `group_documents`), with so many ledgers."""
        grouped, groups = group_documents(run_map, shards, results, earlier, policy, memory)
        if grouped is None:
            return cls()
        decided = run_map(
            decide_group,
            groups,
            grouped=grouped,
            documents=sum(shard.documents.rows for shard in shards),
            ledgers=ledgers,
            policy=policy,
            memory=memory,
        )
        return cls(tuple(result.left(None, DECIDED) for result in decided))

    def among(self, start: int, stop: int) -> ShardCopies:
        """What was decided about the documents `start : stop`."""
        tables = [DECIDED_ROWS.empty_table()]
        for left in self.files:
            tables += read_range(left.path(), start, stop)
        rows = pa.concat_tables(tables)
        return ShardCopies(start, stop - start, rows.sort_by("row").combine_chunks())

    def dropped(self) -> Iterator[NDArray[np.int64]]:
        """The documents that are copies, part by part."""
        for left in self.files:
            for rows in read_range(left.path(), 0, 1 << 62, ["row", "partner"]):
                yield rows["row"].filter(rows["partner"].is_valid()).to_numpy()


@dataclass(frozen=True, eq=False)
class ShardCopies:
    """What was decided about the documents of a shard; rows are numbered from its first."""

    start: int
    documents: int
    decided: pa.Table
    """`DECIDED_ROWS`, ascending."""

    def copies(self) -> Copies:
        """What is known of each document as a copy; partners are places in `decided`."""
        is_copy = self.decided["partner"].is_valid().to_numpy()
        similarity = self.decided["similarity"].to_numpy()
        places = np.where(is_copy, np.arange(len(is_copy)), -1)
        own = Copies(places, similarity, self.decided["exact"].to_numpy())
        return own.spread(self._rows(), self.documents)

    def partners(self) -> pa.StringArray:
        """The kept document that each copies; null for one that is no copy."""
        places = np.full(self.documents, -1, dtype=np.int64)
        places[self._rows()] = np.arange(len(self.decided))
        names = self.decided["partner"].combine_chunks()
        return names.take(pa.array(places, mask=places < 0))

    def column(self, name: str) -> tuple[NDArray[np.int64], pa.Array]:
        """The rows for which a column has a value, and these."""
        known = self.decided.filter(self.decided[name].is_valid())
        return known["row"].to_numpy() - self.start, known[name].combine_chunks()

    def _rows(self) -> NDArray[np.int64]:
        rows: NDArray[np.int64] = self.decided["row"].to_numpy() - self.start
        return rows


class _TemporaryFiles(LocalBackend):
    """A folder whose files are of no use after this process: nothing waits for the disk."""

    @contextmanager
    def create(self, path: str, *, block: int = 0) -> Iterator[HashingWriter]:
        """Write a file."""
        target = self.local_path(path)
        with translate_errors(str(target)):
            target.parent.mkdir(parents=True, exist_ok=True)
            with open(target, "xb") as raw:
                yield HashingWriter(raw, block)


class LocalMaps:
    """Maps in this process, whose tasks leave their files in a folder."""

    def __init__(self, folder: Path) -> None:
        self._backend = _TemporaryFiles(str(folder))

    def __call__(
        self,
        function: Callable[..., Any],
        items: Sequence[Any],
        *,
        name: str | None = None,
        **shared: Any,
    ) -> list[ShardResult]:
        """What the tasks return and leave, in the order of the items."""
        results, name = [], name or function.__name__
        for item in items:
            out = ShardOutput(self._backend, f"{name}/{item.id}", {})
            value = function(item, out, **shared) or {}
            files = {(one.output, one.file.path): one for one in out.written}
            results.append(ShardResult(item.id, value, self._backend, files))
        return results


def shard_starts(shards: Sequence[AlignedShard]) -> list[int]:
    """The first document of each shard, and the number of all."""
    rows = [shard.documents.rows for shard in shards]
    return [0, *np.cumsum(rows, dtype=np.int64).tolist()]
