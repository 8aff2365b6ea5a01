"""Deduplication beside its peers, on planted documents: quality, then cost, memory and growth.

    python -m tests.benchmarks.dedup --work FOLDER [--quality] [--speed] [--memory] [--growth]
        [--incremental] [--workers] [--documents N] [--peers PYTHON] [--peers-rensa PYTHON]

Corpora (`planted_duplicates`) and the store lie in FOLDER and are made once. Peers run by the
Pythons of environments that have them (`tests/peers/setup.sh`, INGOT_PEERS, INGOT_PEERS_RENSA);
what they cost and found is kept in `--peer-results` and not measured again, but for the rounds at
the small number.

quality      pairs, clusters and removals against the exact similarity of 8,000 documents to all:
             `documents` and `pairs` at .8 that are linked, by a pair of Ingot's and by a cluster of
             a peer's (`dedup_quality.Scores` has the meaning of each column)
speed        CPU seconds (user and system) of whole processes with all children, start-up and
             input and output included, one thread and worker each, in turn: A B A B; medians, with
             the least and greatest quotient of two rounds. `x PEER`: so many times as fast.
             `marginal` is between the small and the large number of documents, so start-up is no
             part of it. Ingot's are `ingot stage dedup`, and with `ingot stage filter`, which
             writes the corpus as datatrove's fourth stage does. On a machine that others use CPU
             seconds grow with the load: a quotient holds where both sides ran at the same load
memory       peak of the largest process and of all together, and what a document adds
growth       the exponent of the cost in the number of documents
workers      CPU and wall seconds with one worker and two, in turn: the least of the rounds; `less
             start-up` is the quotient of what they take more than for 1,000 documents
incremental  nine tenths, then the last tenth with the index, against all at once
"""

from __future__ import annotations

import argparse
import os
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from math import log
from pathlib import Path

from tests.benchmarks.dedup_quality import Found, found_by_tables, scores, truth_of
from tests.benchmarks.dedup_runs import Corpora, Cost, Ingot, Peers
from tests.benchmarks.extraction import table
from tests.benchmarks.planted_duplicates import FILE_DOCUMENTS, MEDIAN_WORDS, plainly_written
from tests.benchmarks.quotients import cpu, middle, seconds, times
from tests.peers.corpus import DATA

WARM = 1_000
"""Documents of the runs that do not count: they compile, and fill caches."""
GROWTH = (20_000, 100_000, 400_000, 1_000_000)
MEMORY = (100_000, 400_000)
KEEP_ALL = ("rules=[]", "views=[]", "personal_data=keep")
"""For `filter`: duplicates alone decide."""
UNVERIFIED = "verify=false"
LEAN = ("index=false", "recall_sample=0")
"""Without what peers do not do either: an index for later runs, and measuring the own recall."""
VARIANTS: dict[str, tuple[str, ...]] = {
    "ingot": (),
    "ingot, not verified": (UNVERIFIED,),
    "ingot, lean": LEAN,
    "ingot, lean, not verified": (*LEAN, UNVERIFIED),
    "fineweb": ("preset=fineweb",),
    "fineweb, not verified": ("preset=fineweb", UNVERIFIED),
}
Runs = dict[str, list[Cost]]
"""The rounds of each work."""
PARTS = ("quality", "speed", "memory", "growth", "incremental", "workers")


@dataclass(frozen=True)
class Bench:
    """What the parts work with."""

    ingot: Ingot
    corpora: Corpora
    peers: Peers
    variants: Mapping[str, tuple[str, ...]]
    rounds: int
    peer_rounds: int

    def dedup(self, variant: str, documents: int, look_every: float = 0) -> Cost:
        """Run the stage over the first documents."""
        inputs = {"documents": [self.ingot.documents(documents)]}
        ref = self.ref(variant, documents)
        settings = self.variants[variant]
        return self.ingot.stage("dedup", inputs, ref, settings, look_every=look_every)

    def filter(self, variant: str, documents: int) -> Cost:
        """Run `filter` on what the last run of the variant found."""
        ref = self.ref(variant, documents)
        inputs = {
            "documents": [self.ingot.documents(documents)],
            "duplicates": [f"{ref}:duplicates"],
        }
        settings: tuple[str, ...] = KEEP_ALL
        if UNVERIFIED in self.variants[variant]:
            settings += ("duplicates.unverified=accept",)
        return self.ingot.stage("filter", inputs, f"{ref}-kept", settings)

    def ref(self, variant: str, documents: int) -> str:
        """The name of a run's output."""
        return f"{variant.replace(', ', '-').replace(' ', '-')}-{documents}"

    def found(self, variant: str, documents: int) -> Found:
        """Pairs and removals of a variant."""
        self.dedup(variant, documents)
        self.filter(variant, documents)
        ref = self.ref(variant, documents)
        read, measured, decided = (
            self.ingot.outputs(name)
            for name in (self.ingot.documents(documents), ref, f"{ref}-kept")
        )
        index = measured.get("dedup_index")
        return found_by_tables(
            read["documents"].files(),
            measured["duplicates"].files(),
            decided["ledger"].files(),
            index.files("pairs/*.pairs") if index else (),
        )


def quality(bench: Bench, documents: int) -> str:
    """Every variant and peer against the truth."""
    files = bench.corpora.files(documents)
    plain = plainly_written(files[0].parents[1] / "planted.jsonl")
    truth = truth_of(files, plain, bench.corpora.folder / f"truth-{documents}")
    asked: dict[str, Callable[[], Found]] = {
        name: partial(bench.found, name, documents) for name in bench.variants
    }
    asked |= {name: partial(bench.peers.found, name, documents) for name in bench.peers.names}
    rows = []
    for name, found in asked.items():
        one = scores(found(), truth)
        row = [name, *(f"{x:.4f}" for x in (one.documents, one.plain, one.pairs, one.closest))]
        row += [f"{one.clustered:.4f}", f"{one.precision:.4%}", f"{one.error:.1e}"]
        rows.append([*row, f"{one.loose:.2%}", one.removed, one.unfounded, f"{one.lost:.2%}"])
    near = truth.near.similarity
    steps = [f"{low:.1f}: {((near >= low) & (near < low + 0.1)).sum():,}" for low in _tenths()]
    head = ("", "documents", "plain", "pairs >= .8", ">= .9", "in a cluster", "precision", "error")
    return (
        f"{documents:,} documents, {len(truth.near.sample):,} of them against all; pairs by "
        f"similarity: {', '.join(steps)}, 1: {(near == 1).sum():,}\n"
        + table((*head, "loose", "removed", "unfounded", "lost"), rows)
    )


def _tenths() -> Iterable[float]:
    return (0.5, 0.6, 0.7, 0.8, 0.9)


def speed(bench: Bench, small: int, large: int) -> str:
    """CPU seconds at both sizes, and between them."""
    for variant in bench.variants:
        _own(bench, variant, WARM)
    for peer in bench.peers.names:
        if bench.peer_rounds:
            bench.peers.run(peer, WARM, keep=False)
    few: Runs = {}
    many: Runs = {}
    for number in range(max(bench.rounds, bench.peer_rounds)):
        for variant in bench.variants if number < bench.rounds else ():
            for runs, size in ((few, small), (many, large)):
                for name, cost in _own(bench, variant, size).items():
                    runs.setdefault(name, []).append(cost)
        for peer in bench.peers.names if number < bench.peer_rounds else ():
            few.setdefault(peer, []).append(bench.peers.run(peer, small))
    for peer in bench.peers.names:
        few.setdefault(peer, bench.peers.costs(peer, small))
        many[peer] = bench.peers.costs(peer, large)
    over = [peer for peer in bench.peers.names if peer != "datasketch"]
    loads = [run.load for runs in (*few.values(), *many.values()) for run in runs]
    return "\n".join(
        (
            f"load {min(loads):.1f} to {max(loads):.1f}",
            _at_once(few, small, over),
            "",
            _marginal(few, many, large, large - small, over),
            "",
            *(f"{name}:\n{_indented(runs[-1].command)}" for name, runs in many.items()),
        )
    )


def _own(bench: Bench, variant: str, documents: int) -> dict[str, Cost]:
    cost = bench.dedup(variant, documents)
    return {variant: cost, f"{variant}, + filter": cost + bench.filter(variant, documents)}


def _at_once(few: Runs, small: int, over: Sequence[str]) -> str:
    rows = []
    for name, runs in few.items():
        row = [name, middle([run.cpu for run in runs]), f"{small / cpu(runs):,.0f}"]
        row += [f"{max(run.peak for run in runs) / 1e6:.0f}"]
        rows.append([*row, *(times(seconds(few[peer]), seconds(runs)) for peer in over)])
    head = (f"{small:,} documents", "CPU s", "a CPU s", "peak MB", *(f"x {peer}" for peer in over))
    return table(head, rows)


def _marginal(few: Runs, many: Runs, large: int, more: int, over: Sequence[str]) -> str:
    def between(name: str) -> list[float]:
        return [last.cpu - first.cpu for first in few[name] for last in many[name]]

    rows = []
    for name, runs in many.items():
        row = [name, middle(seconds(runs)), f"{large / cpu(runs):,.0f}"]
        row += [f"{max(run.peak for run in runs) / 1e6:.0f}"]
        row += [f"{more / statistics.median(between(name)):,.0f}"]
        rows.append([*row, *(times(between(peer), between(name)) for peer in over)])
    head = (f"{large:,} documents", "CPU s", "a CPU s", "peak MB", f"marginal ({more:,}), a CPU s")
    return table((*head, *(f"marginal x {peer}" for peer in over)), rows)


def _indented(command: str) -> str:
    return "\n".join(f"  {line}" for line in command.split("\n"))


def memory(bench: Bench, sizes: Sequence[int] = MEMORY) -> str:
    """Peaks of the variants, and bytes a document between the sizes."""
    rows = []
    for variant in bench.variants:
        bench.dedup(variant, WARM)
        runs = [bench.dedup(variant, size, look_every=0.05) for size in sizes]
        for what, peaks in (
            ("largest process", [run.peak for run in runs]),
            ("all together", [run.together for run in runs]),
        ):
            slope = (peaks[-1] - peaks[0]) / (sizes[-1] - sizes[0])
            rows.append([variant, what, *(f"{peak / 1e6:.0f}" for peak in peaks), f"{slope:.0f}"])
    return table(("", "", *(f"{size:,}: MB" for size in sizes), "bytes a document"), rows)


def growth(bench: Bench, sizes: Sequence[int] = GROWTH) -> str:
    """Exponents of the first variant's cost, with start-up and without."""
    variant = next(iter(bench.variants))
    start = _start(bench, variant)
    costs = [bench.dedup(variant, size).cpu for size in sizes]
    rows = []
    for (few, low), (many, high) in pairwise(zip(sizes, costs, strict=True)):
        rows.append(_growth(few, low, many, high, start))
    if len(sizes) > 2:
        rows.append(_growth(sizes[0], costs[0], sizes[-1], costs[-1], start))
    head = ("from", "to", "CPU s", "CPU s", "exponent", "exponent without start-up")
    said = f"{variant}; {WARM:,} documents cost {start:.2f} CPU s, taken as start-up"
    return f"{said}\n{table(head, rows)}"


def _start(bench: Bench, variant: str) -> float:
    """CPU seconds of a run over few documents, after one that does not count."""
    return cpu([bench.dedup(variant, WARM) for _ in range(1 + bench.rounds)][1:])


def _growth(few: int, low: float, many: int, high: float, start: float) -> list[str]:
    row = [f"{few:,}", f"{many:,}", f"{low:.2f}", f"{high:.2f}"]
    for off in (0, start):
        known = low > off and high > off
        row.append(f"{log((high - off) / (low - off)) / log(many / few):.3f}" if known else "-")
    return row


def incremental(bench: Bench, documents: int) -> str:
    """The last tenth with the index of the others, against all at once."""
    if documents % (10 * FILE_DOCUMENTS):
        raise SystemExit(
            f"--incremental cuts files: a multiple of {10 * FILE_DOCUMENTS:,} documents"
        )
    variant, ingot = next(iter(bench.variants)), bench.ingot
    settings = bench.variants[variant]
    first = ingot.documents(documents * 9 // 10, 0, documents)
    second = ingot.documents(documents, documents * 9 // 10, documents)
    start = _start(bench, variant)
    costs: Runs = {"first": [], "second": [], "whole": []}
    for _ in range(bench.rounds):
        asked = {
            "first": {"documents": [first]},
            "second": {
                "documents": [second],
                "earlier_documents": [first],
                "dedup_index": ["first:dedup_index"],
            },
            "whole": {"documents": [first, second]},
        }
        for name, inputs in asked.items():
            costs[name].append(ingot.stage("dedup", inputs, name, settings))
    parts = [ingot.outputs(name)["duplicates"] for name in ("first", "second")]
    both = {name: path.read_bytes() for part in parts for name, path in part.named().items()}
    whole = ingot.outputs("whole")["duplicates"].named()
    equal = sum(path.read_bytes() == both.get(name) for name, path in whole.items())
    share = cpu(costs["second"]) / cpu(costs["whole"])
    bare = (cpu(costs["second"]) - start) / (cpu(costs["whole"]) - start)
    rows = [[name, middle(seconds(runs))] for name, runs in costs.items()]
    return (
        table((f"{variant}, {documents:,} documents", "CPU s"), rows)
        + f"\nsecond over whole: {share:.1%}; without start-up ({start:.2f} CPU s): {bare:.1%}; "
        f"tables equal to the whole run's: {equal} of {len(whole)}"
    )


def workers(bench: Bench, documents: int) -> str:
    """One worker and two, in turn, for each variant: whole processes, and less the start-up."""
    rows, loads = [], list[float]()
    for variant in bench.variants:
        runs = {(number, size): list[Cost]() for number in (1, 2) for size in (WARM, documents)}
        for _ in range(bench.rounds):
            for (number, size), costs in runs.items():
                bench.ingot.use_workers(number)
                costs.append(bench.dedup(variant, size))
        bench.ingot.use_workers(1)
        loads += [run.load for costs in runs.values() for run in costs]
        row = [variant]
        for part in ("cpu", "wall"):
            least = {name: min(getattr(one, part) for one in runs[name]) for name in runs}
            one, two = (least[number, documents] for number in (1, 2))
            more = [least[number, documents] - least[number, WARM] for number in (1, 2)]
            row += [f"{one:.2f}", f"{two:.2f}", f"{two / one:.3f}", f"{more[1] / more[0]:.3f}"]
        rows.append(row)
    columns = ("1", "2", "2 over 1", "less start-up")
    head = [
        f"{documents:,} documents",
        *(f"{part} {c}" for part in ("CPU s", "s") for c in columns),
    ]
    return f"load {min(loads):.1f} to {max(loads):.1f}\n{table(head, rows)}"


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--work", type=Path, required=True, help="folder for corpora and store")
    for part in PARTS:
        parser.add_argument(f"--{part}", action="store_true")
    parser.add_argument(
        "--documents", type=int, help="of quality (20,000); incremental, workers (100,000)"
    )
    parser.add_argument("--small", type=int, default=20_000)
    parser.add_argument("--large", type=int, default=100_000)
    parser.add_argument("--sizes", type=int, nargs="+", help="of memory and growth")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--peer-rounds", type=int, default=2, help="0: their kept runs alone")
    parser.add_argument("--median-words", type=int, default=MEDIAN_WORDS, help="of a document")
    parser.add_argument("--variants", nargs="*", choices=VARIANTS, default=list(VARIANTS))
    parser.add_argument("--peers", default=os.environ.get("INGOT_PEERS"))
    parser.add_argument("--peers-rensa", default=os.environ.get("INGOT_PEERS_RENSA"))
    parser.add_argument("--peer-results", type=Path, help="default: peers.json in the work folder")
    chosen = parser.parse_args()
    if not DATA.exists():
        print(f"skipped: the documents are made of {DATA}, which is not here")
        return
    pythons = {"datatrove": chosen.peers, "rensa": chosen.peers_rensa}
    for name, python in pythons.items():
        if not python:
            print(f"without {name}: name its Python (sh tests/peers/setup.sh FOLDER)")
    corpora = Corpora(chosen.work / f"median-{chosen.median_words}", chosen.median_words)
    bench = Bench(
        Ingot(corpora.folder, corpora),
        corpora,
        Peers(
            corpora.folder, corpora, pythons, chosen.peer_results or corpora.folder / "peers.json"
        ),
        {name: VARIANTS[name] for name in chosen.variants},
        chosen.rounds,
        chosen.peer_rounds,
    )
    asked = {
        "quality": partial(quality, bench, chosen.documents or 20_000),
        "speed": partial(speed, bench, chosen.small, chosen.large),
        "memory": partial(memory, bench, chosen.sizes or MEMORY),
        "growth": partial(growth, bench, chosen.sizes or GROWTH),
        "incremental": partial(incremental, bench, chosen.documents or 100_000),
        "workers": partial(workers, bench, chosen.documents or 100_000),
    }
    wanted = [part for part in PARTS if getattr(chosen, part)] or ["quality", "speed"]
    for part in wanted:
        print(f"\n{part}\n{asked[part]()}", flush=True)


if __name__ == "__main__":
    main()
