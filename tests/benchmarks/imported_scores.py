"""CPU seconds to import 20,000 samples of lm-eval, and to ask a judge on loopback 400 questions.

python -m tests.benchmarks.imported_scores
"""

from __future__ import annotations

import json
import time
from io import BytesIO

from stages.harness.config import ImportScoresConfig
from stages.harness.result_files import read_result_files
from stages.judge.config import JudgeExecution
from stages.judge.endpoint import Endpoint, ask_all
from tests.stages.judge.judge_server import JudgeServer, completion

ROWS, QUESTIONS = 20_000, 400


class File:
    """A file of a snapshot, in memory."""

    def __init__(self, name: str, raw: bytes) -> None:
        self.name, self.raw, self.bytes = name, raw, len(raw)

    def open(self) -> BytesIO:
        """Its bytes."""
        return BytesIO(self.raw)


def main() -> None:
    """Print both."""
    results = {"results": {"made": {"acc,none": 0.5}}, "model_name": "org/model"}
    rows = (
        {"doc_id": n, "doc": {"question": "x" * 300}, "filter": "none", "metrics": ["acc"],
         "acc": float(n % 2), "doc_hash": f"{n:064x}"[::-1],
         "arguments": {f"gen_args_{k}": {"arg_0": "x" * 300, "arg_1": " a"} for k in range(4)}}
        for n in range(ROWS)
    )  # fmt: skip
    samples = "".join(json.dumps(row) + "\n" for row in rows).encode()
    files = [
        File("results.json", json.dumps(results).encode()),
        File("samples_made.jsonl", samples),
    ]
    start = time.process_time()
    (task,) = read_result_files(files, ImportScoresConfig())  # type: ignore[arg-type]
    seconds = time.process_time() - start
    assert len(task.observed) == ROWS
    print(f"{ROWS:,} samples, {len(samples) / 1e6:.0f} MB: {seconds:.2f} CPU seconds")

    server = JudgeServer(lambda *_: completion("Verdict: A"))
    endpoint = Endpoint(JudgeExecution(url=server.url), None)
    bodies = {
        str(n): {"model": "m", "messages": [{"role": "user", "content": f"{n}" * 500}]}
        for n in range(QUESTIONS)
    }
    start = time.process_time()
    ask_all(endpoint, bodies, lambda _: None, lambda: None)
    seconds = time.process_time() - start
    print(f"{QUESTIONS} questions: {seconds:.2f} CPU seconds, those of the server among them")
    server.close()


if __name__ == "__main__":
    main()
