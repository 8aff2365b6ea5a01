"""A corpus before and after: what was added, what was removed and why, by snapshot."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from artifacts_schema.errors import UsageError
from artifacts_schema.manifest import Conservation
from flows.analysis.corpus_database import open_database
from flows.analysis.corpus_tables import CorpusTables, Decision, Flow, Volume
from flows.analysis.drift import DriftTable, measure_drift
from flows.analysis.run_corpus import RunCorpus
from flows.analysis.snapshot_copies import Copies, count_copies
from stages.filter.config import DuplicatesPolicy, FilterConfig
from stages.filter.stage import Filter

MEMORY = 1 << 30
"""Bytes that the database holds in memory."""


@dataclass(frozen=True)
class CorpusChange:
    """A corpus before and after, snapshots in the order in which they were decided on."""

    before: str
    after: str
    snapshots: tuple[str, ...]
    new: tuple[str, ...]
    retired: tuple[str, ...]
    flows: tuple[Flow, ...]
    decisions: tuple[Decision, ...]
    records: Mapping[str, Conservation]
    """By snapshot what the reading steps of the run after account for."""
    forgotten: tuple[int, int]
    """Documents on the lists of forgotten ones that the filters read, before and after."""
    displaced: int
    """Within one run, documents of other snapshots dropped as copies of kept ones in the newest.

    0 where each snapshot is decided on after the earlier ones.
    """
    other_tokenizer: bool
    """Whether both were packed, and by different tokenizers."""
    copies: Copies | None
    """None if the filter was given no duplicates."""
    drift: DriftTable | None
    """None without a new snapshot, an earlier one of the same sources, or signals."""

    def volumes(self, *, after: bool, by: str = "snapshot") -> dict[str, Volume]:
        """What the corpus holds by `snapshot`, `source`, `language` or `cause`."""
        sums: dict[str, Volume] = {}
        for flow in self.flows:
            volume = flow.after if after else flow.before
            if volume.documents:
                name = getattr(flow, by)
                sums[name] = sums.get(name, Volume()) + volume
        return sums

    def total(self, *, after: bool) -> Volume:
        """All of one side."""
        return sum(self.volumes(after=after).values(), Volume())


def compare_corpora(
    before: RunCorpus | None, after: RunCorpus, *, memory: int = MEMORY
) -> CorpusChange:
    """What differs between two corpora; without `before`, what the newest snapshot added to one.

    UsageError if there is no `before` and no source has two snapshots.
    """
    with open_database(memory) as database:
        tables = CorpusTables(database)
        for side, corpus in enumerate((before or after, after)):
            tables.add(corpus, side)
        order = tables.snapshots()
        new = _newest(tables, after) if before is None else None
        tables.join(new)
        was, now = ({*tables.present(side)} for side in ("before", "after"))
        added = tuple(name for name in order if name in now and name not in was)
        last = [*after.filters.values()][-1]
        policy = DuplicatesPolicy()
        if last.stage == Filter.name:
            policy = FilterConfig.model_validate(last.config).duplicates
        return CorpusChange(
            before=before.name if before is not None else f"the same run without {new}",
            after=after.name,
            snapshots=tuple(order),
            new=added,
            retired=tuple(name for name in order if name in was and name not in now),
            flows=tuple(tables.flows()),
            decisions=tuple(tables.decisions()),
            records=after.records(),
            forgotten=(
                sum((before or after).exclusions().values()),
                sum(after.exclusions().values()),
            ),
            displaced=tables.displaced(new) if new is not None else 0,
            other_tokenizer=before is not None and _other_tokenizer(before, after),
            copies=count_copies(database, after, policy, [n for n in order if n in now]),
            drift=measure_drift(database, [after, before or after], added),
        )


def _other_tokenizer(before: RunCorpus, after: RunCorpus) -> bool:
    was, now = (
        {r.digest for one in side.packs.values() for r in one.references if r.kind == "tokenizer"}
        for side in (before, after)
    )
    return bool(was and now and was != now)


def _newest(tables: CorpusTables, after: RunCorpus) -> str:
    """The last snapshot of a source that has an earlier one."""
    first: dict[str, str] = {}
    newest = ""
    for snapshot, source in tables.sources():
        if first.setdefault(source, snapshot) != snapshot:
            newest = snapshot
    if not newest:
        raise UsageError(
            "no source of this corpus has two snapshots, so there is nothing before it",
            where=after.name,
            hint="name an earlier run with --against",
        )
    return newest
