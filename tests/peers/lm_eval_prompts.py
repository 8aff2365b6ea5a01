"""Run by lm-evaluation-harness's Python: what its tasks ask, for rows from a file.

    python lm_eval_prompts.py JOBS.json ANSWERS.json

A job is {"yaml": path in lm_eval/tasks or absolute, "rows": [...], "examples": [...], "shots": n}.
Its answer is a list, for each row, of what the harness would send: [context, continuation] pairs of
a ranked task, [context, null] of one in which the model writes; and the target of such a row. The
job {"normalise": [...]} asks how the harness writes these answers of MATH.
"""

from __future__ import annotations

import json
import sys
from copy import deepcopy
from pathlib import Path
from typing import Any
from unittest import mock

import datasets
import evaluate
import lm_eval.tasks
import nltk
from lm_eval.api.task import ConfigurableTask
from lm_eval.tasks._yaml_loader import load_yaml

SPLITS = ("training_split", "validation_split", "test_split")


def load_task(
    path: str, rows: list[dict[str, Any]], examples: list[dict[str, Any]]
) -> ConfigurableTask:
    """A task of the harness on these rows, its examples the first of `examples`."""
    config = deepcopy(load_yaml(Path(lm_eval.tasks.__file__).parent / path, resolve_func=True))
    for key in ("tag", "group", "include", "task_alias"):
        config.pop(key, None)
    splits = {"items": datasets.Dataset.from_list(rows)}
    for key in SPLITS:
        config.pop(key, None)
    config["test_split"] = "items"
    own = config.get("fewshot_config") or {}
    if "samples" not in own:
        splits["examples"] = datasets.Dataset.from_list(examples or rows)
        config["fewshot_split"] = "examples"
        config["fewshot_config"] = {**own, "sampler": "first_n"}

    class OnRows(ConfigurableTask):
        def download(self, dataset_kwargs: Any = None, **_: Any) -> None:
            self.dataset = splits

    return OnRows(config=config)


def requests(job: dict[str, Any]) -> list[Any]:
    """What the harness asks for each row, and the target."""
    if "normalise" in job:
        from lm_eval.tasks.minerva_math.utils import normalize_final_answer

        return [normalize_final_answer(text) for text in job["normalise"]]
    task = load_task(job["yaml"], job["rows"], job["examples"])
    asked = []
    for doc in task.eval_docs:
        context = task.fewshot_context(doc, job["shots"])
        made = task.construct_requests(doc, context)
        pairs = made if isinstance(made, list) else [made]
        sent = [
            [one.arguments[0], one.arguments[1] if isinstance(one.arguments[1], str) else None]
            for one in pairs
        ]
        asked.append({"requests": sent, "target": task.doc_to_target(doc)})
    return asked


def main() -> None:
    """Answer every job."""
    jobs = json.loads(Path(sys.argv[1]).read_text())
    # HumanEval and MBPP fetch a metric while their modules are imported, IFEval a list of words:
    # nothing is measured here.
    no_metric = mock.patch.object(evaluate, "load", return_value=mock.MagicMock())
    with no_metric, mock.patch.object(nltk.data, "find"):
        answers = [requests(job) for job in jobs]
    Path(sys.argv[2]).write_text(json.dumps(answers))


if __name__ == "__main__":
    main()
