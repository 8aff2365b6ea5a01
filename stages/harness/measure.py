"""One task of lm-eval put to a checkpoint, in a worker."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import numpy as np
import torch

from artifacts_schema.errors import IngotError, InputError, Stopped
from stages.engine import Input, ShardOutput, ShardResult
from stages.engine.sources import SourceFile, source_files
from stages.harness.config import HarnessConfig, HarnessExecution
from stages.harness.library import load_own_task, open_library
from stages.harness.scores import Score, TaskScores, make_record, observe, read_scores
from stages.harness.task_files import (
    CODE_FIELDS,
    TaskFile,
    check_task,
    data_files,
    find_file,
    read_dataset,
    read_task_files,
    write_trusted,
)
from stages.model.files import read_model, read_tokenizer
from stages.scoring.dtypes import arithmetic, weights_type
from stages.scoring.observations import from_table, to_table
from stages.tokens.chat_template import read_template

OBSERVATIONS = "observations"
KEPT_SETTINGS = ("output_type", "metric_list", "filter_list", "generation_kwargs", "repeats")
"""Of a task's settings, those that its record keeps."""


@dataclass(frozen=True)
class TaskPart:
    """A task, which one worker measures as a whole."""

    id: str
    name: str


def measure_task(
    part: TaskPart,
    out: ShardOutput,
    *,
    checkpoint: Input,
    snapshot: Input | None,
    config: HarnessConfig,
    execution: HarnessExecution,
    device: str,
    folder: str,
) -> dict[str, Any]:
    """Measure a task: samples as lm-eval logs them, observations as scratch, the rest as value."""
    harness = open_library(Path(folder))
    from stages.harness.adapter import CheckpointModel

    def check_stop() -> None:
        if out.stopping:
            raise Stopped()

    files = source_files(snapshot) if snapshot is not None else []
    task = build_task(part.name, files, config, Path(folder))
    place = torch.device(device)
    with arithmetic(place, config.dtype, execution.threads):
        model = CheckpointModel(
            read_model(checkpoint).to(place, weights_type(config.dtype)).eval(),
            read_tokenizer(checkpoint),
            checkpoint.read_json("tokenizer_config.json"),
            batch_tokens=execution.batch_tokens,
            seed=config.seed,
            max_new_tokens=config.max_new_tokens,
            template=read_template(checkpoint) if config.chat else None,
            check_stop=check_stop,
        )
        results = _evaluate(part.name, task, model, config)
    samples = [logged_sample(one) for one in results["samples"][part.name]]
    samples.sort(key=lambda one: (one["doc_id"], one["filter"]))
    name = f"samples_{part.id}.jsonl"
    lines = (json.dumps(one, ensure_ascii=False, sort_keys=True) + "\n" for one in samples)
    out.write_bytes("samples", name, "".join(lines).encode())
    shots = int(results["n-shot"][part.name])
    better = results["higher_is_better"].get(part.name, {})
    scores = read_scores(results["results"][part.name], better)
    out.write_scratch(OBSERVATIONS, to_table(observe(part.name, shots, samples, scores)))
    record = make_record(
        part.name,
        str(results["versions"].get(part.name)),
        scores,
        harness=harness,
        model=None,
        settings={**_kept_settings(task, config), "samples": name},
    )
    return {
        "shots": shots,
        "count": int(results["n-samples"][part.name]["effective"]),
        "scores": [asdict(one) for one in scores],
        "record": record,
    }


def _evaluate(name: str, task: Any, model: Any, config: HarnessConfig) -> dict[str, Any]:
    """What lm-eval makes of one task, seeded; InputError for what it cannot measure."""
    from lm_eval.evaluator import evaluate

    random.seed(config.seed)
    np.random.seed(config.seed)
    torch.manual_seed(config.seed)
    try:
        results: dict[str, Any] = evaluate(
            model,
            {"tasks": {name: task}, "groups": {}, "group_map": {}},
            limit=config.limit,
            bootstrap_iters=0,
            apply_chat_template=config.chat,
            fewshot_as_multiturn=config.multiturn,
        )
    except IngotError:
        raise
    except Exception as error:
        raise InputError(
            f"lm-eval cannot measure it: {type(error).__name__}: {str(error)[:300]}",
            where=f"task {name}",
        ) from error
    return results


def _kept_settings(task: Any, config: HarnessConfig) -> dict[str, Any]:
    settings = {name: getattr(task.config, name) for name in KEPT_SETTINGS}
    plain: dict[str, Any] = json.loads(json.dumps(settings, default=_text))
    return {**plain, "chat": config.chat, "limit": config.limit, "seed": config.seed}


def read_task(part: TaskPart, result: ShardResult) -> TaskScores:
    """What `measure_task` handed over."""
    value = result.value
    return TaskScores(
        part.name,
        value["shots"],
        value["count"],
        tuple(Score(**one) for one in value["scores"]),
        tuple(from_table(result.read_scratch(OBSERVATIONS))),
        value["record"],
    )


def build_task(name: str, files: Sequence[SourceFile], config: HarnessConfig, folder: Path) -> Any:
    """lm-eval's task, its rows in memory. InputError for one that would download or run code."""
    from lm_eval.api.task import ConfigurableTask

    by_name = {one.name: one for one in files}
    task = read_task_files(files).get(name)
    if task is not None:
        check_task(task, trusted=config.trust_task_code)
        splits = data_files(task, list(by_name))
        settings = task.settings
        if task.has_code:
            settings = _with_functions(task, files, folder / "trusted")
    else:
        settings = load_own_task(name)
        splits = _own_splits(name, settings, config.data, list(by_name))
    dataset = read_dataset(splits, by_name)
    settings = {
        key: value
        for key, value in settings.items()
        if key not in ("dataset_path", "dataset_name", "dataset_kwargs", "include", "task_list")
    }
    metadata = settings.get("metadata")
    settings["metadata"] = dict(metadata) if isinstance(metadata, dict) else {}
    try:
        made = ConfigurableTask(config={**settings, "custom_dataset": lambda **_: dataset})
    except IngotError:
        raise
    except Exception as error:
        raise InputError(
            f"lm-eval does not take the task: {type(error).__name__}: {str(error)[:300]}",
            where=f"task {name}",
            hint="splits, fields and templates must fit the rows",
        ) from error
    if config.shots is not None and made.get_config("num_fewshot") != 0:
        made.set_config("num_fewshot", config.shots)
    elif made.get_config("num_fewshot") is None:
        made.set_config("num_fewshot", 0)
    made.set_fewshot_seed(config.seed)
    return made


def _own_splits(
    name: str,
    settings: Mapping[str, Any],
    data: Mapping[str, Mapping[str, str]],
    names: Sequence[str],
) -> dict[str, list[str]]:
    """Files of the splits of a task that comes with lm-eval; InputError where it would download."""
    where = f"task {name}"
    for field in ("class", "doc_to_image", "doc_to_audio", "unsafe_code"):
        if settings.get(field) not in (None, False):
            raise InputError(f"has {field}, which is not run here", where=where)
    chosen = name if name in data else next((key for key in data if fnmatchcase(name, key)), None)
    if chosen is None:
        raise InputError(
            f"would download data set '{settings.get('dataset_path')}'",
            where=where,
            hint=f"put its rows into a snapshot and name them: data: {{{name}: {{test: FILE}}}}",
        )
    return {
        split: [find_file(_filled(file, name, settings), names, folder="", where=where)]
        for split, file in data[chosen].items()
    }


def _filled(file: str, name: str, settings: Mapping[str, Any]) -> str:
    part = str(settings.get("dataset_name") or "")
    return file.replace("{task}", name).replace("{dataset_name}", part)


def _with_functions(task: TaskFile, files: Sequence[SourceFile], folder: Path) -> dict[str, Any]:
    """The settings with the functions that they name: imports Python of the snapshot."""
    from lm_eval.tasks._yaml_loader import load_yaml

    write_trusted(files, folder)
    try:
        loaded: dict[str, Any] = load_yaml(folder / task.file)
    except Exception as error:
        raise InputError(
            f"its Python does not import: {type(error).__name__}: {str(error)[:300]}",
            where=f"{task.file}: task {task.name}",
        ) from error
    return {key: value for key, value in loaded.items() if key in {*task.settings, *CODE_FIELDS}}


def logged_sample(sample: Mapping[str, Any]) -> dict[str, Any]:
    """A sample in the form of lm-eval's files of samples (`EvaluationTracker`)."""
    arguments = {
        f"gen_args_{number}": {f"arg_{n}": value for n, value in enumerate(values)}
        for number, values in enumerate(sample["arguments"])
    }
    plain = {
        **sample,
        "arguments": arguments,
        "resps": _as_text(sample["resps"]),
        "filtered_resps": _as_text(sample["filtered_resps"]),
        "target": str(sample["target"]),
    }
    made: dict[str, Any] = json.loads(json.dumps(plain, default=_number))
    return made


def _as_text(value: Any) -> Any:
    """Nested lists of texts, as `sanitize_list` makes them."""
    return [_as_text(one) for one in value] if isinstance(value, list | tuple) else str(value)


def _number(value: Any) -> Any:
    return value.item() if hasattr(value, "item") else str(value)


def _text(value: Any) -> str:
    return f"function {value.__name__}" if callable(value) else str(value)
