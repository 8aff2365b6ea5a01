"""Prompts equal to the character: our task files and those of lm-evaluation-harness 0.4.13.

The harness renders its own YAML files, with its own functions, on the same rows, in its own Python,
which INGOT_PEERS_LM_EVAL names (`setup.sh` makes it).
"""

from __future__ import annotations

import io
import json
import os
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import zstandard
from peers.corpus import DATA

from stages.examples.conversion import Origin
from stages.examples.lm_eval_task import harness_yaml
from stages.examples.task import Task
from stages.examples.task_files import shipped_files, shipped_tasks
from stages.examples.task_items import TaskRows, gather_examples
from tests.stages.benchmarks.published_rows import REBUILT, Row, made_rows

PEER = os.environ.get("INGOT_PEERS_LM_EVAL")
SCRIPT = Path(__file__).parent / "lm_eval_prompts.py"
MOST = 68
"""Real rows of each data set: the harness compiles its templates for each again."""
ORIGIN = Origin("0" * 32, "rows.jsonl", "rows")
FOLDERS = {
    "arc_easy": "arc/arc_easy", "arc_challenge": "arc/arc_challenge", "hellaswag": None,
    "winogrande": "winogrande/default", "commonsense_qa": "commonsense_qa/default",
    "social_iqa": "siqa/siqa", "boolq": "super_glue/boolq/default",
    "copa": "super_glue/copa/default", "truthfulqa_mc1": "truthfulqa/truthfulqa_mc1",
    "truthfulqa_mc2": "truthfulqa/truthfulqa_mc2", "lambada_openai": "lambada/lambada_openai",
    "lambada_standard": "lambada/lambada_standard",
    "minerva_math_*": "minerva_math/minerva_math_algebra",
    "mmlu_pro_*": "mmlu_pro/mmlu_pro_computer_science",
    "mmlu_*": "mmlu/default/mmlu_{subject}",
    "mmlu_*_continuation": "mmlu/continuation/mmlu_{subject}",
}  # fmt: skip
"""The harness's task → its file, where that is not `NAME/NAME`."""
ZERO_SHOT = ("lambada", "ifeval", "humaneval")
"""The harness joins LAMBADA's examples by two spaces, has no answer to one of IFEval, and shows the
tests as the answer to one of HumanEval."""
FAMILIES = {"xnli_": "xnli/{0}", "xcopa_": "xcopa/default_{1}", "belebele_": "belebele/{0}"}
FAMILIES |= {"xstorycloze_": "xstorycloze/default_{1}"}

pytestmark = [
    pytest.mark.full,
    pytest.mark.skipif(PEER is None, reason="INGOT_PEERS_LM_EVAL names no Python with lm_eval"),
]


def harness_file(harness: str, row: Row) -> str:
    """Path of a task of the harness in its folder of tasks."""
    if (path := FOLDERS.get(harness)) is not None:
        return path.format(**row) + ".yaml"
    for prefix, pattern in FAMILIES.items():
        if harness.startswith(prefix):
            return pattern.format(harness, harness.removeprefix(prefix)) + ".yaml"
    if "_flores_" in harness:
        bench, _, pair = harness.partition("_flores_")
        code = {"spanish": "es", "catalan": "ca", "basque": "eu", "galician": "gl"}
        language = {**code, "portuguese": "pt"}[bench.removesuffix("_bench")]
        return f"{bench}/flores_{language}/flores_{pair}.yaml"
    return f"{harness}/{harness}.yaml"


def real_rows(stem: str) -> list[Row]:
    """Rows of real data as they were published; none where there is no such data."""
    if stem not in REBUILT or not DATA.is_dir():
        return []
    file, convert = REBUILT[stem]
    with (DATA.parent / "bench" / f"{file}.jsonl.zst").open("rb") as raw:
        lines = io.TextIOWrapper(zstandard.ZstdDecompressor().stream_reader(raw), "utf-8")
        return [row for line in lines if (row := convert(json.loads(line))) is not None][:MOST]


def ours(task: Task, name: str, rows: list[Row], examples: list[Row], shots: int) -> list[Any]:
    """Our requests for rows, in the harness's form, with the index of the answer or references."""
    source: Sequence[Row] = examples or task.fewshot.examples
    gathered = gather_examples(task, source, shots, "rows", drawn=False) if shots else {}
    convert = TaskRows(task, (name,), (shots,), gathered)
    asked = []
    for row in rows:
        made = convert({key: value for key, value in row.items() if value is not None}, ORIGIN)
        (request,) = made["requests"]
        contexts = request["contexts"] or [""] * len(request["choices"])
        pairs = [
            [request["prompt"] + context, choice]
            for context, choice in zip(contexts, request["choices"], strict=True)
        ]
        asked.append(
            {
                "requests": pairs or [[request["prompt"], None]],
                "answer": made["answer"],
                "references": request["references"],
            }
        )
    return asked


def cases(stem: str) -> Iterator[tuple[Task, str, str, list[Row], list[Row], int]]:
    """Task, formulation, the harness's file, rows, examples, shots: one for each job."""
    for task in shipped_tasks(stem).values():
        own = made_rows(stem)
        sets = [(own[: 14 if len(shipped_tasks(stem)) < 3 else 3], own[14:])]
        real = real_rows(stem)
        if real and len(shipped_tasks(stem)) < 3:
            sets.append((real[8:], real[:8]))
        for name, way in task.ways.items():
            if way.harness is None:
                continue
            for rows, examples in sets:
                files: dict[str, tuple[list[Row], list[Row]]] = {}
                for number, row in enumerate((*rows, *examples)):
                    path = harness_file(way.harness, row)
                    files.setdefault(path, ([], []))[number >= len(rows)].append(row)
                for path, (items, pool) in files.items():
                    inline = task.fewshot.examples
                    most = 0 if stem in ZERO_SHOT else len(inline) or min(3, len(pool))
                    for shots in {0, most} if items else set():
                        yield task, name, path, items, [] if inline else pool, shots


def ask(jobs: list[dict[str, Any]], folder: Path) -> list[Any]:
    """The harness's answers to jobs."""
    (folder / "jobs.json").write_text(json.dumps(jobs))
    environment = {
        "PATH": os.environ["PATH"], "HOME": str(folder), "HF_HUB_OFFLINE": "1",
        "HF_DATASETS_OFFLINE": "1", "HF_DATASETS_DISABLE_PROGRESS_BARS": "1",
    }  # fmt: skip
    assert PEER is not None
    command = [PEER, str(SCRIPT), str(folder / "jobs.json"), str(folder / "answers.json")]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    answers: list[Any] = json.loads((folder / "answers.json").read_text())
    return answers


PUBLISHED = [one for one in shipped_files() if one not in ("multilingual_hatecheck", "xstest")]
"""Tasks that lm-evaluation-harness has too."""


@pytest.mark.timeout(900)
@pytest.mark.parametrize("stem", PUBLISHED)
def test_prompts_are_those_of_the_harness(stem: str, tmp_path: Path) -> None:
    chosen = list(cases(stem))
    jobs: list[dict[str, Any]] = [
        {"yaml": path, "rows": rows, "examples": examples, "shots": shots}
        for _, _, path, rows, examples, shots in chosen
    ]
    boxed: list[tuple[str, str]] = []
    assert chosen
    for (task, name, path, rows, examples, shots), theirs in zip(
        chosen, ask(jobs, tmp_path), strict=True
    ):
        for mine, peer in zip(ours(task, name, rows, examples, shots), theirs, strict=True):
            assert mine["requests"] == peer["requests"], (path, shots)
            target = peer["target"]
            if stem == "math":
                boxed.append((mine["references"][0], target))
            elif stem == "commonsense_qa":
                assert "ABCDE"[mine["answer"]] == target
            elif stem in ("copa", "lambada", "winogrande"):
                assert mine["requests"][mine["answer"]][1].strip() == target.strip()
            elif stem == "gsm8k":
                assert target.endswith(f"#### {mine['references'][0]}")
            elif stem == "ifeval":
                assert target == 0  # No answer: what is checked stands in the row.
            elif name == "free":
                assert mine["references"][0] == target
            else:
                assert mine["answer"] == int(target)
    if boxed:
        (normal,) = ask([{"normalise": [mine for mine, _ in boxed]}], tmp_path)
        assert normal == [target for _, target in boxed]


def exported() -> Iterator[tuple[Task, str, int]]:
    """Each task in each formulation that can be written as a file of the harness."""
    for stem in PUBLISHED:
        task = next(iter(shipped_tasks(stem).values()))
        for name, way in task.ways.items():
            if getattr(way, "contexts", None) is None:
                yield task, name, 0
                if not task.fewshot.match and stem not in ZERO_SHOT:
                    yield task, name, 2


@pytest.mark.timeout(900)
def test_the_files_that_are_written_for_the_harness_ask_the_same(tmp_path: Path) -> None:
    chosen, jobs = list(exported()), list[dict[str, Any]]()
    for task, name, shots in chosen:
        path = tmp_path / f"{task.name}_{name}_{shots}.yaml"
        path.write_text(harness_yaml(task, name, shots))
        rows = made_rows(stem_of(task))
        items, examples = rows[:14], [] if task.fewshot.examples else rows[14:]
        jobs.append({"yaml": str(path), "rows": items, "examples": examples, "shots": shots})
    for (task, name, shots), job, theirs in zip(chosen, jobs, ask(jobs, tmp_path), strict=True):
        for mine, peer in zip(
            ours(task, name, job["rows"], job["examples"], shots), theirs, strict=True
        ):
            assert mine["requests"] == peer["requests"], (task.name, name, shots)
            if name != "free":
                assert mine["answer"] == int(peer["target"])


def stem_of(task: Task) -> str:
    """The file that defines a task."""
    return next(stem for stem in shipped_files() if task.name in shipped_tasks(stem))
