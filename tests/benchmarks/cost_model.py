"""What 10⁹ to 10¹¹ documents cost, computed from what small corpora were measured to cost.

    python -m tests.benchmarks.cost_model [--documents 1e9 1e10 1e11] [--nodes 1 10 100 1000]
        [--cores 64] [--link 3.1]

Nothing is measured here: `STAGES` holds the constants, docs/speed.md and docs/scale.md the commands
that gave them. The rest is arithmetic:

core hours   CPU seconds a GB times the bytes that a stage reads
storage      the bytes that it writes
requests     to a bucket, of one pass: two for each file that is written or read, of which one is
             for its table of blocks
wall time    the greater of core hours over all cores, as if none ever waited, and of the bytes read
             and written over what the links of all nodes carry (`--link` GB/s each)
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass

from tests.benchmarks.extraction import table

PAGES = 2.5e9
"""Of one snapshot of Common Crawl: 90,000 files, 85 TB of compressed WARC, 9 TB of text."""
SHARDS, ARCHIVE, TEXT = 90_000 / PAGES, 85e12 / PAGES, 9e12 / PAGES
"""Files and bytes of a document."""


@dataclass(frozen=True)
class Stage:
    """CPU seconds for a GB read, bytes written for a byte of text, files of a shard."""

    name: str
    seconds: float
    written: float
    files: int
    reads: float = TEXT

    def core_hours(self, documents: float) -> float:
        """Of all cores."""
        return documents * self.reads / 1e9 * self.seconds / 3600

    def stored(self, documents: float) -> float:
        """Bytes."""
        return documents * TEXT * self.written

    def requests(self, documents: float) -> float:
        """For files read and written, and the table of blocks of each."""
        return documents * SHARDS * 2 * self.files

    def moved(self, documents: float) -> float:
        """Bytes that cross the network."""
        return documents * self.reads + self.stored(documents)


STAGES = (
    Stage("ingest", 363, 0.24, 5, ARCHIVE),
    Stage("signals", 630, 0.27, 4),
    Stage("dedup", 130, 0.66, 9),
    Stage("decontaminate", 280, 0.01, 2),
    Stage("filter", 180, 0.24, 8),
    Stage("pack", 440, 0.48, 5),
)


def hours(stage: Stage, documents: float, nodes: int, cores: int, link: float) -> float:
    """By the clock."""
    computing = stage.core_hours(documents) / (nodes * cores)
    moving = stage.moved(documents) / (link * 1e9 * nodes) / 3600
    return max(computing, moving)


def by_stage(documents: float) -> str:
    """Core hours, storage and requests of each stage, and of all."""
    rows = [
        [one.name, one.core_hours(documents), one.stored(documents) / 1e12, one.requests(documents)]
        for one in STAGES
    ]
    rows.append(["all", *(sum(row[column] for row in rows) for column in (1, 2, 3))])  # type: ignore[misc]
    written = [
        [name, *(f"{value:,.3g}" if value < 10 else f"{value:,.0f}" for value in values)]
        for name, *values in rows
    ]
    return table([f"{documents:.0e} documents", "core hours", "TB written", "requests"], written)


def by_nodes(documents: Sequence[float], nodes: Sequence[int], cores: int, link: float) -> str:
    """Hours by the clock of all stages together."""
    rows = []
    for many in documents:
        clock = [sum(hours(one, many, count, cores, link) for one in STAGES) for count in nodes]
        rows.append([f"{many:.0e}", *(_time(one) for one in clock)])
    heads = [f"{count:,} node{'s' if count > 1 else ''}" for count in nodes]
    return table(["documents", *heads], rows)


def _time(hours: float) -> str:
    if hours >= 48:
        return f"{hours / 24:,.0f} days"
    return f"{hours:.0f} h" if hours >= 2 else f"{60 * hours:.0f} min"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])  # type: ignore[union-attr]
    parser.add_argument("--documents", type=float, nargs="+", default=[1e9, 1e10, 1e11])
    parser.add_argument("--nodes", type=int, nargs="+", default=[1, 10, 100, 1000])
    parser.add_argument("--cores", type=int, default=64)
    parser.add_argument("--link", type=float, default=3.1)
    options = parser.parse_args()
    for documents in options.documents:
        print(by_stage(documents), end="\n\n")
    print(by_nodes(options.documents, options.nodes, options.cores, options.link))


if __name__ == "__main__":
    main()
