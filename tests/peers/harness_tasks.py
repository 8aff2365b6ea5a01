"""The same items for Ingot and for lm-evaluation-harness: prompts and choices in task files.

Real data sets, put to a model as `cloze` and `multiple_choice` with any number of shots.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import yaml
from tokenizers import Tokenizer

from stages.evaluate.benchmarks import MULTIPLE_CHOICE, TEXT, Item, ItemRequest
from stages.examples.conversion import Origin
from stages.examples.shapes import benchmark_row
from stages.model.decoder import Decoder
from stages.tokenizer.training import transformers_config

CHOICES = (
    "arc_challenge", "arc_easy", "boolq", "commonsenseqa", "copa", "hellaswag", "mmlu-dev",
    "mmlu-test", "openbookqa", "piqa", "siqa", "winogrande",
)  # fmt: skip
"""Data sets of multiple choice in the folder of real data."""


def read_rows(shared: Path, name: str, count: int) -> list[dict[str, Any]]:
    """The first rows of a data set."""
    import zstandard

    with zstandard.open(shared / "bench" / f"{name}.jsonl.zst", "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line, _ in zip(lines, range(count), strict=False)]


def read_choices(shared: Path, name: str, count: int) -> list[Item]:
    """Items of a data set as the stage `benchmarks` reads them."""
    rows = [
        benchmark_row(row, Origin("0" * 32, name, name)) for row in read_rows(shared, name, count)
    ]
    return [
        Item(name, row["item_id"], MULTIPLE_CHOICE, row["prompt"], tuple(row["choices"]),
             row["answer"])
        for row in rows
    ]  # fmt: skip


def read_lambada(shared: Path, count: int) -> list[Item]:
    """Its last words, each the one choice of an item."""
    return [
        Item("lambada", row["id"], MULTIPLE_CHOICE, row["context"], (row["continuation"],), 0,
             requests=(ItemRequest(row["context"], (f" {row['continuation']}",), "cloze", 0),))
        for row in read_rows(shared, "lambada", count)
    ]  # fmt: skip


def put(items: Sequence[Item], formulations: Sequence[str], shots: int) -> list[Item]:
    """Each item in these formulations, after `shots` others with their answers."""
    if shots:
        pool, items = items[:shots], items[shots:]
    else:
        pool = []
    requests = []
    for item in items:
        ways = []
        for formulation in formulations:
            solved = [_solved(one, formulation) for one in pool]
            prompt, choices = _put(item, formulation)
            ways.append(ItemRequest("\n\n".join([*solved, prompt]), choices, formulation, shots))
        requests.append(replace(item, requests=tuple(ways)))
    return requests


def _put(item: Item, formulation: str) -> tuple[str, tuple[str, ...]]:
    question = item.prompt.strip()
    if formulation == "cloze":
        return f"{question}\nAnswer:", tuple(f" {choice.strip()}" for choice in item.choices)
    letters = "ABCDEFGH"[: len(item.choices)]
    listed = "\n".join(
        f"{letter}. {choice.strip()}" for letter, choice in zip(letters, item.choices, strict=True)
    )
    return f"{question}\n{listed}\nAnswer:", tuple(f" {letter}" for letter in letters)


def _solved(item: Item, formulation: str) -> str:
    prompt, choices = _put(item, formulation)
    return prompt + choices[item.answer]


def write_task(folder: Path, name: str, items: Sequence[Item], formulation: str | None) -> str:
    """A task file of the harness with these items in one formulation; returns its name."""
    documents = []
    puts = [one for item in items for one in item.ranked(" ") if one.formulation == formulation]
    # The harness counts characters of a choice without its delimiter.
    delimiter = " " if all(c.startswith(" ") for one in puts for c in one.choices) else ""
    for item in items:
        if item.form == TEXT:
            documents.append({"prompt": "", "target": item.prompt})
            continue
        (way,) = (one for one in item.ranked(" ") if one.formulation == formulation)
        choices = [choice.removeprefix(delimiter) for choice in way.choices]
        document = {"prompt": way.prompt, "choices": choices, "answer": item.answer}
        # It puts no delimiter before the one text of `loglikelihood`.
        documents.append({**document, "target": way.choices[item.answer]})
    kind = "multiple_choice"
    if items[0].form == TEXT:
        kind = "loglikelihood_rolling"
    elif len(items[0].choices) == 1:
        kind = "loglikelihood"
    data, tasks = folder / "data", folder / "tasks"
    for place in (data, tasks):
        place.mkdir(parents=True, exist_ok=True)
    lines = "".join(json.dumps(document) + "\n" for document in documents)
    (data / f"{name}.jsonl").write_text(lines)
    metrics = {
        "multiple_choice": ["acc", "acc_norm", "acc_bytes"],
        "loglikelihood": ["perplexity", "acc"],
        "loglikelihood_rolling": ["bits_per_byte"],
    }
    task = {
        "task": name,
        "dataset_path": "json",
        "dataset_kwargs": {"data_files": {"test": str(data / f"{name}.jsonl")}},
        "test_split": "test",
        "output_type": kind,
        "doc_to_text": "prompt",
        "doc_to_target": "answer" if kind == "multiple_choice" else "target",
        "target_delimiter": delimiter,
        "metric_list": [{"metric": metric} for metric in metrics[kind]],
    }
    if kind == "multiple_choice":
        task["doc_to_choice"] = "choices"
    (tasks / f"{name}.yaml").write_text(yaml.safe_dump(task))
    return name


def write_model(
    folder: Path,
    model: Decoder,
    tokenizer: Tokenizer,
    described: Mapping[str, Any] | None = None,
) -> None:
    """The released form of a model, in its own type; `described` is its tokenizer_config.json."""
    from safetensors.torch import save_file

    from stages.export.folder import model_folder
    from stages.model.huggingface.families import to_weights

    place = folder / "model"
    place.mkdir(parents=True, exist_ok=True)
    dtype = str(model.embedding.weight.dtype).removeprefix("torch.")
    settings = dict(described or transformers_config("llama-bpe"))
    for name, raw in model_folder(model.config, tokenizer, settings, dtype).items():
        (place / name).write_bytes(raw)
    weights = {name: weight.contiguous() for name, weight in to_weights(model).items()}
    save_file(weights, place / "model.safetensors", metadata={"format": "pt"})


def ask_harness(
    python: str, folder: Path, *runs: Sequence[str], **settings: Any
) -> list[dict[str, Any]]:
    """What `lm_eval_scores.py` prints of one evaluation for each of `runs`, names of tasks."""
    usual = {"dtype": "float32", "batch_size": 16, "bos": True}
    (folder / "settings.json").write_text(json.dumps({**usual, "runs": runs, **settings}))
    program = Path(__file__).with_name("lm_eval_scores.py")
    environment = {**os.environ, "HF_HOME": str(folder / "cache"), "OMP_NUM_THREADS": "1"}
    result = subprocess.run(
        [python, str(program), str(folder)], capture_output=True, text=True, env=environment
    )
    if result.returncode:
        raise RuntimeError(result.stderr[-4_000:])
    answers: list[dict[str, Any]] = json.loads(result.stdout.splitlines()[-1])
    return answers
