"""Pretraining on two processes, beside one process, a bare FSDP2 loop and Hugging Face's `Trainer`.

    python -m tests.benchmarks.parallel --work FOLDER [--size 22M] [--rounds 3] [--ranks 2]
        [--device cuda] [--layouts shard data]

Each rank has one thread. A figure is tokens a CPU second (user and system, all processes together),
between a run of few training steps and one of many, so that start-up is no part. Rounds in turn
A B C A B C; medians, with the least and greatest quotient of two rounds.

On GPUs it is tokens a second of the clock on each GPU, with the MFU. One process then trains on
the rows of one rank, so the quotient with it is that of weak scaling.
"""

from __future__ import annotations

import argparse
import os
import statistics
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from tests.benchmarks.dedup_runs import Cost, Ingot
from tests.benchmarks.extraction import table
from tests.benchmarks.tokens_corpus import Texts
from tests.benchmarks.training import SIZES, Bench, Size, mfu, token_rates
from tests.peers.corpus import DATA

LAYOUTS = ("shard", "data", "tensor", "pipeline", "context")
ALONE = "ingot, one process"
PEERS = {ALONE: "", "bare FSDP2 loop": "bare", "Trainer": "trainer"}
"""Side → peer; `Trainer` with accelerate is data parallel (DDP)."""


def run_side(one: Bench, side: str, ranks: int, size: Size, steps: int) -> Cost:
    """A run of one side: Ingot in a layout called by its key, or one of the peers."""
    if side in LAYOUTS:
        return replace(one, layout={side: ranks}).own(size, steps)
    if peer := PEERS[side]:
        return replace(one, layout={"shard": ranks}).peer(peer, size, steps)
    return replace(one, threads=1).own(size_of(one, side, ranks, size), steps)


def size_of(one: Bench, side: str, ranks: int, size: Size) -> Size:
    """What a side trains on."""
    weak = one.device == "cuda" and side == ALONE
    return replace(size, rows=size.rows // ranks) if weak else size


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--work", type=Path, required=True, help="folder for shards and runs")
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--size", choices=SIZES, default="22M")
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--documents", type=int, default=5_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--layouts", nargs="+", choices=LAYOUTS, default=("shard", "data"))
    chosen = parser.parse_args(arguments)
    if not DATA.exists() and not (chosen.work / "store").exists():
        print(f"skipped: the documents are made of {DATA}, which is not here")
        return
    chosen.work.mkdir(parents=True, exist_ok=True)
    ingot = Ingot(chosen.work, Texts(chosen.work))  # type: ignore[arg-type]
    one = Bench(ingot, chosen.device, chosen.ranks, "", False, chosen.documents)
    sides = (*chosen.layouts, *PEERS)
    size = SIZES[chosen.size]
    costs: dict[tuple[str, int], list[Cost]] = {}
    for _ in range(chosen.rounds):
        for steps in size.steps:
            for side in sides:
                cost = run_side(one, side, chosen.ranks, size, steps)
                costs.setdefault((side, steps), []).append(cost)
                print(f"{side}, {steps} training steps: {cost.cpu:.1f} CPU s", flush=True)
    rates = {}
    for side in sides:
        trained = size_of(one, side, chosen.ranks, size)
        devices = chosen.ranks if chosen.device == "cuda" and side != ALONE else 1
        rates[side] = [rate / devices for rate in token_rates(one, trained, costs, side)]
    rows = []
    for side in sides:
        rate = statistics.median(rates[side])
        rows.append([side, f"{rate:,.0f}", mfu(one, size, rate)])
        for layout in chosen.layouts:
            quotients = [own / other for own in rates[layout] for other in rates[side]]
            median = statistics.median(rates[layout]) / statistics.median(rates[side])
            rows[-1].append(f"{median:.3g} ({min(quotients):.3g}-{max(quotients):.3g})")
    loads = [run.load for runs in costs.values() for run in runs]
    print(f"{os.cpu_count()} cores, {chosen.ranks} ranks, load {min(loads):.1f}-{max(loads):.1f}")
    unit = "GPU second" if chosen.device == "cuda" else "CPU s"
    print(table(("side", f"tokens a {unit}", "MFU", *(f"{one} x" for one in chosen.layouts)), rows))


if __name__ == "__main__":
    main()
