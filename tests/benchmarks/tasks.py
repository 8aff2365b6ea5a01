"""Prompts of ARC-easy with five solved examples: ours beside lm-evaluation-harness's.


    INGOT_PEERS_LM_EVAL=… python -m tests.benchmarks.tasks

Both render the same real rows, in CPU seconds; loading of libraries and rows is left out.
"""

from __future__ import annotations

import json
import os
import subprocess
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from stages.examples.conversion import Origin
from stages.examples.task_files import shipped_task
from stages.examples.task_items import TaskRows, gather_examples
from tests.stages.benchmarks.published_rows import Row, real_rows

SHOTS = 5
PEERS = Path(__file__).parents[1] / "peers"
PEER_PROGRAM = """
import json, sys, time
sys.path.insert(0, sys.argv[1])
from lm_eval_prompts import load_task
job = json.load(open(sys.argv[2]))
task = load_task(job["yaml"], job["rows"], job["examples"])
docs = list(task.eval_docs)
start = time.process_time()
for doc in docs:
    task.construct_requests(doc, task.fewshot_context(doc, job["shots"]))
print(time.process_time() - start)
"""


def our_seconds(rows: list[Row], examples: list[Row], formulations: tuple[str, ...]) -> float:
    """CPU seconds of all requests."""
    task, origin = shipped_task("arc_easy"), Origin("0" * 32, "rows", "rows")
    start = time.process_time()
    gathered = gather_examples(task, examples, SHOTS, "rows", drawn=False)
    convert = TaskRows(task, formulations, (SHOTS,), gathered)
    for row in rows:
        convert(dict(row), origin)
    return time.process_time() - start


def peer_seconds(rows: list[Row], examples: list[Row]) -> float:
    """CPU seconds of the same prompts in the harness's own Python."""
    job = {"yaml": "arc/arc_easy.yaml", "rows": rows, "examples": examples, "shots": SHOTS}
    with TemporaryDirectory() as folder:
        path = Path(folder) / "job.json"
        path.write_text(json.dumps(job))
        command = [os.environ["INGOT_PEERS_LM_EVAL"], "-c", PEER_PROGRAM, str(PEERS), str(path)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    return float(done.stdout)


def main() -> None:
    """Print both, and the ratio."""
    rows = real_rows("arc_easy")
    examples, items = rows[:10], rows[10:]
    ours = our_seconds(items, examples, ("cloze",))
    three = our_seconds(items, examples, ("cloze", "multiple_choice", "hybrid"))
    peer = peer_seconds(items, examples)
    print(f"{len(items)} items, {SHOTS} examples each, CPU seconds")
    print(f"one formulation {ours:.2f}, three {three:.2f}, harness (one) {peer:.2f}")
    print(f"{peer / ours:.0f} times")


if __name__ == "__main__":
    main()
