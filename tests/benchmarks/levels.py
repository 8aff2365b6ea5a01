"""Snapshots in a row: indexes merged in levels against one index of each earlier snapshot.

    python -m tests.benchmarks.levels --work FOLDER [--snapshots 10] [--files 1] [--rounds 1]

Each snapshot is 10,000 planted documents (`planted_duplicates`) in `--files` files; copies lie in
any of them. `chain` gives `dedup` the index of every earlier snapshot, `levels` what a recipe with
`{levels: dedup}` gives it. Both run in turn, as whole processes with one worker and thread; of
several rounds the least CPU seconds count. For each snapshot: indexes that `dedup` reads, files in
them, CPU seconds of `dedup` and of the merges that the snapshot made possible. The tables that both
write are compared to the byte.

Start-up (`dedup` over 1,000 documents, a merge of two such indexes) is no part of the ratios.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path

from flows.recipe.levels import Block, read_blocks
from tests.benchmarks.dedup_runs import Corpora, Cost, Ingot
from tests.benchmarks.extraction import table
from tests.benchmarks.planted_duplicates import FILE_DOCUMENTS

WARM = 1_000
Costs = list[Cost]


class Chains:
    """Runs over the snapshots in both ways, and what they cost."""

    def __init__(self, ingot: Ingot, snapshots: Sequence[str]) -> None:
        self.ingot, self.snapshots = ingot, snapshots
        self.dedup: dict[str, list[Costs]] = {
            way: [[] for _ in snapshots] for way in ("chain", "levels")
        }
        self.merges: dict[Block, Costs] = {}
        self.read: dict[str, list[list[str]]] = {way: [[] for _ in snapshots] for way in self.dedup}

    def run(self) -> None:
        """One round."""
        for place, name in enumerate(self.snapshots):
            before = read_blocks(place)
            for block in before:
                if block.is_merged and block.end == place:
                    inputs = [_ref("levels", part) for part in block.parts]
                    cost = self._stage("merge_indexes", {}, inputs, _ref("levels", block))
                    self.merges.setdefault(block, []).append(cost)
            indexes = {
                "chain": [_ref("chain", Block(one, one + 1)) for one in range(place)],
                "levels": [_ref("levels", block) for block in before],
            }
            for way, read in indexes.items():
                self.read[way][place] = read
                documents = {
                    "documents": [f"{name}:documents"],
                    "earlier_documents": [f"{one}:documents" for one in self.snapshots[:place]],
                }
                ref = _ref(way, Block(place, place + 1))
                self.dedup[way][place].append(self._stage("dedup", documents, read, ref))

    def _stage(
        self, name: str, inputs: Mapping[str, Sequence[str]], indexes: Sequence[str], ref: str
    ) -> Cost:
        given = {**inputs, "dedup_index": [f"{one}:dedup_index" for one in indexes]}
        return self.ingot.stage(name, given, ref)

    def files(self, refs: Sequence[str]) -> tuple[int, int]:
        """Files and bytes of some indexes."""
        outputs = [self.ingot.outputs(ref)["dedup_index"] for ref in refs]
        files = [path for one in outputs for path in one.folder.rglob("*") if path.is_file()]
        return len(files), sum(path.stat().st_size for path in files)

    def equal_tables(self) -> int:
        """Snapshots whose tables are the same bytes in both ways; SystemExit if any differs."""
        for place in range(len(self.snapshots)):
            block = Block(place, place + 1)
            one, other = (
                self.ingot.outputs(_ref(way, block))["duplicates"].named() for way in self.dedup
            )
            if {name: path.read_bytes() for name, path in one.items()} != {
                name: path.read_bytes() for name, path in other.items()
            }:
                raise SystemExit(f"snapshot {place + 1}: the tables differ")
        return len(self.snapshots)


def _ref(way: str, block: Block) -> str:
    return f"{way}-{block.start + 1}-{block.end}"


def _least(costs: Costs) -> float:
    return min(cost.cpu for cost in costs)


def _snapshots(ingot: Ingot, number: int, files: int) -> list[str]:
    """Names of the ingested snapshots, each cut into so many files."""
    names = []
    for place, source in enumerate(ingot.corpora.files(number * FILE_DOCUMENTS)[:number]):
        name = f"snapshot-{place + 1}-of-{files}"
        folder = ingot.folder / name
        if not folder.exists():
            folder.mkdir()
            lines = source.read_text().splitlines(keepends=True)
            size = -(-len(lines) // files)
            for part in range(files):
                text = "".join(lines[part * size : (part + 1) * size])
                (folder / f"{part:04d}.jsonl").write_text(text)
            ingot.read(name, sorted(folder.glob("*.jsonl")))
        names.append(name)
    return names


def _start(ingot: Ingot) -> tuple[float, float]:
    """CPU seconds of a start of `dedup`, and of `merge_indexes`."""
    source = ingot.corpora.files(WARM)[0]
    lines = source.read_text().splitlines(keepends=True)
    names = []
    for half in range(2):
        path = ingot.folder / f"start-{half}.jsonl"
        path.write_text("".join(lines[half::2]))
        names.append(ingot.read(f"start-{half}", [path]))
    for _ in range(2):  # The first compiles.
        costs = [
            ingot.stage("dedup", {"documents": [f"{name}:documents"]}, f"{name}-index")
            for name in names
        ]
    merged = {"dedup_index": [f"{name}-index:dedup_index" for name in names]}
    return _least(costs), ingot.stage("merge_indexes", merged, "start-merged").cpu


def report(chains: Chains, start: tuple[float, float]) -> str:
    """The tables."""
    rows = []
    for place in range(len(chains.snapshots)):
        row: list[str] = [str(place + 1)]
        for way, costs in chains.dedup.items():
            read = chains.read[way][place]
            row += [str(len(read)), str(chains.files(read)[0]), f"{_least(costs[place]):.2f}"]
        made = [block for block in chains.merges if block.end == place]
        row.append(" ".join(f"{_least(chains.merges[block]):.2f}" for block in made))
        rows.append(row)
    head = ("", "chain: indexes", "files", "CPU s", "levels: indexes", "files", "CPU s", "merge")
    last = len(chains.snapshots) - 1
    lines = [table(head, rows), ""]
    merge = sum(max(_least(costs) - start[1], 0) for costs in chains.merges.values())
    for way, costs in chains.dedup.items():
        bare = [_least(one) - start[0] for one in costs]
        whole = _least(costs[last]) / _least(costs[1])
        refs = [_ref(way, Block(place, place + 1)) for place in range(last + 1)]
        merged = [_ref(way, block) for block in chains.merges] if way == "levels" else []
        files, size = chains.files([*refs, *merged])
        second, final = (max(one.peak for one in costs[place]) >> 20 for place in (1, last))
        read_by_second, read_by_last = (
            chains.files(chains.read[way][place])[1] / 1e6 for place in (1, last)
        )
        lines.append(
            f"{way}: the last over the second {bare[last] / bare[1]:.2f} (with start-up "
            f"{whole:.2f}); all dedup {sum(bare):.1f} CPU s beyond start-up, merges "
            f"{merge if merged else 0:.1f}; peak {second} and {final} MiB; indexes read "
            f"{read_by_second:.1f} and {read_by_last:.1f} MB; all indexes {files} files, "
            f"{size / 1e6:.1f} MB"
        )
    peak = max((one.peak for costs in chains.merges.values() for one in costs), default=0)
    loads = [one.load for costs in chains.dedup.values() for place in costs for one in place]
    lines.append(
        f"start-up: dedup {start[0]:.2f}, merge {start[1]:.2f} CPU s; peak of a merge "
        f"{peak >> 20} MiB; equal tables: {chains.equal_tables()} snapshots; load "
        f"{min(loads):.1f} to {max(loads):.1f}"
    )
    return "\n".join(lines)


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--work", type=Path, required=True, help="folder for corpora and store")
    parser.add_argument("--snapshots", type=int, default=10)
    parser.add_argument("--files", type=int, default=1, help="of a snapshot")
    parser.add_argument("--rounds", type=int, default=1)
    asked = parser.parse_args()
    ingot = Ingot(asked.work, Corpora(asked.work))
    chains = Chains(ingot, _snapshots(ingot, asked.snapshots, asked.files))
    start = _start(ingot)
    for _ in range(asked.rounds):
        chains.run()
    print(report(chains, start))


if __name__ == "__main__":
    main()
