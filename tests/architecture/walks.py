"""The two walks through the code, counted by a tracer on `tests/pipeline/tiny.yaml`.

    python -m tests.architecture.walks [--work FOLDER]

prints the files of each:
step      a training step, from asking for its batch to the callbacks after `Optimizer.step`
way       from `ingot run` to `Optimizer.step`: the files on the parent's call stacks where it
          starts the child, and on the child's
document  from WARC record to token: all functions that the processes of ingest (web), signals,
          dedup, filter and pack call, workers included
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).parents[2]
TINY = ROOT / "tests/pipeline/tiny.yaml"
TRACER = Path(__file__).with_name("trace")
DOCUMENT_STAGES = ("ingest", "signals", "dedup", "filter", "pack")
MOST_FILES = {"step": 19, "way": 25, "document": 70}
"""By walk. A step was to take 15; many processes added three: ranks, boxes and layout of a mesh.

One more is counted or not: on a busy machine the thread that prepares batches works at other times.
"""

Functions = dict[str, set[str]]
"""Names of functions by file."""


def trace_walks(folder: Path) -> dict[str, Functions]:
    """Run the tiny recipe up to pretraining in `folder`; the functions of each walk."""
    traces = folder / "traces"
    traces.mkdir(parents=True)
    command = [
        str(Path(sys.executable).with_name("ingot")), "run", str(TINY), "--no-prefect",
        "--jobs", "2", "--through", "pretrain", "--store", str(folder / "store"),
    ]  # fmt: skip
    environment = {
        **os.environ,
        "INGOT_TRACE": str(traces),
        "PYTHONPATH": os.pathsep.join([str(TRACER), os.environ.get("PYTHONPATH", "")]),
    }
    subprocess.run(command, env=environment, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    return read_walks(traces)


def read_walks(traces: Path) -> dict[str, Functions]:
    """The functions of each walk, from what the tracer wrote."""
    walks: dict[str, Functions] = {name: defaultdict(set) for name in MOST_FILES}
    for path in sorted(traces.iterdir()):
        stage = path.name.rpartition("-")[0]
        for line in path.read_text().splitlines():
            part, file, function = line.split(" ", 2)
            if part == "step":
                walks["step"][file].add(function)
            elif part in ("parent", "child"):
                walks["way"][file].add(function)
            elif part == "run" and stage in DOCUMENT_STAGES:
                walks["document"][file].add(function)
    return walks


def main() -> None:
    """Print the walks."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--work", type=Path, help="an empty folder; by default a temporary one")
    work = parser.parse_args().work
    with tempfile.TemporaryDirectory() as temporary:
        walks = trace_walks(work or Path(temporary))
    for name, functions in walks.items():
        print(format_walk(name, functions))


def format_walk(name: str, functions: Mapping[str, set[str]]) -> str:
    """The files of a walk, with the number of functions called in each."""
    lines = [f"{name}: {len(functions)} files of at most {MOST_FILES[name]}"]
    lines += [f"    {file} ({len(called)})" for file, called in sorted(functions.items())]
    return "\n".join(lines)


if __name__ == "__main__":
    main()
