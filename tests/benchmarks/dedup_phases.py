"""CPU seconds of each map of runs of `dedup`: where an incremental run spends them.

    python -m tests.benchmarks.dedup --work FOLDER --incremental --variants ingot
    python -m tests.benchmarks.dedup_phases --store FOLDER/median-359/store

Each run that the first command left is made again, in a process of its own with one worker, in turn
with the others; its bytes must be the same. The least of the rounds is shown, since other work on a
machine only adds. The first run is of few documents: what it takes is the start of a map, and is
taken off the share.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from artifacts_schema.store import Store
from stages.engine.context import Context
from stages.engine.meter import process_seconds
from stages.engine.runner import run_stage
from stages.engine.spec import StageSpec
from stages.engine.tasks import Item
from tests.benchmarks.extraction import table

RUNS = ("ingot-1000", "second", "whole")
"""As `tests.benchmarks.dedup` names them: 1,000 documents, the last tenth, all at once."""
Phases = dict[str, float]


def measured(store: str, name: str) -> Phases:
    """Run again what `name` stands for, in this process."""
    opened = Store.open(store)
    manifest, _ = opened.resolve(name)
    from stages.dedup.stage import Dedup

    spec = StageSpec.make(Dedup, manifest.config, manifest.inputs, {"workers": 1})
    phases: Phases = {}
    run_map = Context.map

    def timed(self: Context, function: Any, items: Iterable[Item], **options: Any) -> Any:
        # Maps of closure are named by generation.
        phase = str(options.get("name") or function.__name__).rstrip("0123456789").rstrip("_")
        begin = process_seconds()
        results = run_map(self, function, items, **options)
        phases[phase] = phases.get(phase, 0) + process_seconds() - begin
        return results

    Context.map = timed  # type: ignore[method-assign, assignment]
    run_stage(opened, spec, force=True)
    return phases


def least_of_rounds(store: str, names: Iterable[str], rounds: int) -> dict[str, Phases]:
    """The least of each phase of each run, in processes of their own."""
    least: dict[str, Phases] = {name: {} for name in names}
    for _ in range(rounds):
        for name, phases in least.items():
            command = [sys.executable, "-m", "tests.benchmarks.dedup_phases", "--store", store]
            out = subprocess.run([*command, "--one", name], check=True, stdout=subprocess.PIPE)
            for phase, took in json.loads(out.stdout.splitlines()[-1]).items():
                phases[phase] = min(phases.get(phase, took), took)
    return least


def report(least: dict[str, Phases]) -> str:
    """A table of the phases; the last column is what the second run takes of all the third does."""
    start, part, whole = least.values()
    total = sum(whole.values()) - sum(start.values())
    names = sorted(part, key=lambda phase: start.get(phase, 0) - part[phase])
    names += [phase for phase in whole if phase not in part]
    rows = []
    for phase in names:
        columns = [run.get(phase, 0.0) for run in (start, part, whole)]
        share = (columns[1] - columns[0]) / total
        rows.append([phase, *(f"{column:.2f}" for column in columns), f"{share:.1%}"])
    sums = [sum(run.values()) for run in (start, part, whole)]
    share = (sums[1] - sums[0]) / total
    rows.append(["together", *(f"{column:.2f}" for column in sums), f"{share:.1%}"])
    return table(("CPU s", *least, "share of the whole, less start"), rows)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--store", type=Path, required=True)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--one", help="run this one alone, and print its phases as JSON")
    chosen = parser.parse_args()
    if chosen.one:
        print(json.dumps(measured(str(chosen.store), chosen.one)))
    else:
        print(report(least_of_rounds(str(chosen.store), RUNS, chosen.rounds)))


if __name__ == "__main__":
    main()
