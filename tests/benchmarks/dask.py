"""What a Dask cluster costs beside processes of one machine, at the same work.

    python -m tests.benchmarks.dask --work FOLDER [--documents 20000] [--files 20] [--rounds 6]

Planted documents (`planted_duplicates`) in so many files go through `ingest`, `signals`, `dedup`
and `filter`, by two worker processes and by two workers of a cluster on loopback, in turn. Told are
the CPU seconds of each stage with all its workers, Dask's over those of processes, by round. In the
first round workers start and import the stage. Equal digests are checked.
"""

from __future__ import annotations

import argparse
import os
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from artifacts_schema.manifest import InputRef, Manifest
from artifacts_schema.store import Store
from artifacts_schema.store.gc import remove_artifact
from flows.recipe.recipe import snapshot_entry
from flows.recipe.snapshots import take_snapshot
from stages.engine.protocol import stage_named
from stages.engine.runner import run_stage
from stages.engine.spec import StageSpec
from tests.benchmarks.extraction import table
from tests.benchmarks.planted_duplicates import Corpus, write
from tests.dask_server import DaskServer

WORKERS = 2


def write_crawl(folder: Path, documents: int, files: int) -> None:
    """So many planted documents in so many files of JSON lines."""
    if folder.exists():
        return
    lines = [
        line
        for path in write(folder.with_name("planted"), Corpus(seed=1), documents)
        for line in path.read_text(encoding="utf-8").splitlines(keepends=True)
    ]
    folder.mkdir()
    size = -(-len(lines) // files)
    for number, start in enumerate(range(0, len(lines), size)):
        part = "".join(lines[start : start + size])
        (folder / f"{number:05d}.jsonl").write_text(part, encoding="utf-8")


def cost(store: Store, spec: StageSpec) -> tuple[float, Manifest]:
    """CPU seconds of a stage that was not made yet; it is removed again by the caller."""
    manifest = run_stage(store, spec).manifest
    return float(manifest.telemetry["cpu_seconds"]), manifest


def in_turn(
    store: Store,
    name: str,
    inputs: Mapping[str, Sequence[InputRef]],
    config: Mapping[str, Any],
    server: DaskServer,
    rounds: int,
) -> tuple[list[float], Manifest]:
    """Quotients by round, and what was made."""
    stage, results = stage_named(name), list[float]()
    ways: list[dict[str, Any]] = [
        {"workers": WORKERS},
        {"workers": WORKERS, "engine": "dask", "scheduler": server.address},
    ]
    made: Manifest | None = None
    for number in range(rounds):
        costs = []
        for execution in ways if number % 2 == 0 else ways[::-1]:
            if made is not None:
                remove_artifact(store, made)
            seconds, manifest = cost(store, StageSpec.make(stage, config, inputs, execution))
            if made is not None and {n: o.digest for n, o in made.outputs.items()} != {
                n: o.digest for n, o in manifest.outputs.items()
            }:
                raise SystemExit(f"{name}: other digests")
            made = manifest
            costs.append(seconds)
        processes, dask = costs if number % 2 == 0 else costs[::-1]
        results.append(dask / processes)
    assert made is not None
    return results, made


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])  # type: ignore[union-attr]
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--documents", type=int, default=20_000)
    parser.add_argument("--files", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=6)
    options = parser.parse_args()
    os.environ["OMP_NUM_THREADS"] = "1"
    options.work.mkdir(parents=True, exist_ok=True)
    crawl = options.work / f"crawl-{options.documents}"
    write_crawl(crawl, options.documents, options.files)
    store = Store.open(str(options.work / "store"))
    entry = snapshot_entry("planted", {"root": str(crawl), "files": ["*.jsonl"]}, str(crawl))
    snapshot = take_snapshot(store, entry)
    rows = []
    with DaskServer(options.work / "dask", workers=WORKERS) as server:
        server.wait_for_workers(WORKERS)
        made: dict[str, Manifest] = {}

        def run(name: str, config: Mapping[str, Any], **inputs: Sequence[InputRef]) -> None:
            ratios, made[name] = in_turn(store, name, inputs, config, server, options.rounds)
            later = ratios[1:]
            rows.append(
                [
                    name,
                    f"{ratios[0]:.2f}",
                    ", ".join(f"{one:.2f}" for one in later),
                    f"{statistics.median(later):.2f}" if later else "",
                ]
            )

        def output(name: str, which: str) -> list[InputRef]:
            return [store.reference(made[name], which)]

        run("ingest", {}, snapshot=[store.reference(snapshot, "snapshot")])
        documents = output("ingest", "documents")
        run("signals", {}, documents=documents)
        run("dedup", {}, documents=documents)
        run(
            "filter",
            {"rules": [], "duplicates": {"threshold": 0.8}},
            documents=documents,
            signals=output("signals", "signals"),
            views=output("signals", "views"),
            duplicates=output("dedup", "duplicates"),
        )
    print(f"load {os.getloadavg()[0]:.1f}")
    print(table(["stage", "first round", "later rounds", "median of these"], rows))


if __name__ == "__main__":
    main()
