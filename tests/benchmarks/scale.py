"""How the cost of the data stages grows with the number of shards.

    python -m tests.benchmarks.scale [--shards 100 400 1600] [--workers 2]

A crawl of so many JSON-lines files of two documents each, so that the work on texts is next to
nothing, goes through `ingest`, `signals`, `dedup` and `filter` in processes of this machine; then
its report is made. Told are CPU seconds of each stage and of the report, and the exponent of their
growth from each number of shards to the next: 1 is what a map over shards should cost, 2 what a
task costs that carries a list of all shards.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

from artifacts_schema.store import Store
from tests.benchmarks.extraction import table

STAGES = ("ingest", "signals", "dedup", "filter")
RECIPE = """\
name: scale
snapshots:
  crawl: {{files: ['{crawl}/*.jsonl']}}
steps:
  ingest: {{stage: ingest, inputs: {{snapshot: crawl}}, execution: {{workers: {workers}}}}}
  signals: {{stage: signals, inputs: {{documents: ingest}}, execution: {{workers: {workers}}}}}
  dedup: {{stage: dedup, inputs: {{documents: ingest}}, execution: {{workers: {workers}}}}}
  filter:
    stage: filter
    inputs:
      documents: ingest
      signals: signals
      views: "signals:views"
      duplicates: "dedup:duplicates"
    config: {{rules: [], duplicates: {{threshold: 0.8}}}}
    execution: {{workers: {workers}}}
"""
WORDS = ("rain", "field", "harbour", "copper", "lantern", "bridge", "letter", "engine")


def write_crawl(folder: Path, shards: int) -> None:
    """So many files of two documents; a tenth of the documents are copies of others."""
    folder.mkdir(parents=True)
    for number in range(shards):
        with open(folder / f"{number:06d}.jsonl", "w") as file:
            for row in (2 * number, 2 * number + 1):
                seed = row // 10 if row % 10 == 9 else row
                step = 3 + seed % 5
                words = [WORDS[(seed * 7 + place * step) % len(WORDS)] for place in range(60)]
                file.write(json.dumps({"id": row, "text": f"{' '.join(words)} {seed}."}) + "\n")


def measure(shards: int, workers: int) -> dict[str, float]:
    """CPU seconds by stage of a run in processes of its own, and of its report."""
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        write_crawl(work / "crawl", shards)
        recipe = work / "scale.yaml"
        recipe.write_text(RECIPE.format(crawl=work / "crawl", workers=workers))
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "INGOT_HOME": str(work / "home")}

        def ingot(*arguments: str) -> None:
            command = [sys.executable, "-m", "ingot_entry", *arguments]
            ran = subprocess.run(command, env=environment, capture_output=True, text=True, cwd=work)
            if ran.returncode:
                raise SystemExit(ran.stdout + ran.stderr)

        store_folder = str(work / "store")
        ingot("run", str(recipe), "--no-prefect", "--store", store_folder)
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        ingot("report", "scale", "--store", store_folder)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        report = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        store = Store.open(store_folder)
        made = {manifest.stage: manifest for manifest in store.manifests()}
        documents = made["filter"].conservation
        assert documents is not None
        assert documents.records_in == 2 * shards
        costs = {stage: float(made[stage].telemetry["cpu_seconds"]) for stage in STAGES}
        return {**costs, "report": report}


def exponent(sizes: Sequence[int], costs: Sequence[float]) -> list[float]:
    """Of growth from each size to the next."""
    return [
        math.log(after / before) / math.log(larger / smaller)
        for (smaller, larger), (before, after) in zip(pairwise(sizes), pairwise(costs), strict=True)
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])  # type: ignore[union-attr]
    parser.add_argument("--shards", type=int, nargs="+", default=[100, 400, 1600])
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args()
    costs = [measure(shards, options.workers) for shards in options.shards]
    rows = []
    for stage in (*STAGES, "report"):
        own = [cost[stage] for cost in costs]
        growth = exponent(options.shards, own)
        rows.append([stage, *(f"{one:.1f}" for one in own), *(f"{one:.2f}" for one in growth)])
    heads = [f"{shards:,} shards" for shards in options.shards]
    heads += [f"{a:,} to {b:,}" for a, b in pairwise(options.shards)]
    print(table(["CPU seconds", *heads], rows))


if __name__ == "__main__":
    main()
