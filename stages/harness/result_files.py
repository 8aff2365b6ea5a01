"""Result files that lm-eval wrote elsewhere: results_*.json, and samples_*.jsonl beside them."""

from __future__ import annotations

import json
import math
import posixpath
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from itertools import islice
from typing import Any

from artifacts_schema.errors import InputError
from stages.engine.reading.row import RowLimits
from stages.engine.reading.rows import read_rows, row_format
from stages.engine.sources import SourceFile
from stages.engine.strict_json import parse_json
from stages.harness.config import ImportScoresConfig
from stages.harness.groups import DEPTH, LEAVES, weighted_mean
from stages.harness.scores import Score, TaskScores, make_record, observe, read_scores

RECORD_BYTES = 20_000
"""Of a task's settings, longest JSON that its record keeps of each."""
KEPT_SETTINGS = ("output_type", "metric_list", "filter_list", "generation_kwargs", "repeats")
WRONG = "these are no results of lm-eval 0.4"


@dataclass(frozen=True)
class ResultFile:
    """A file of results, and the files of samples of the same run."""

    name: str
    content: dict[str, Any]
    samples: tuple[SourceFile, ...]

    @property
    def model(self) -> str:
        """The model's name; nothing else of its arguments, which may hold keys."""
        config = self.content.get("config")
        config = config if isinstance(config, dict) else {}
        arguments = config.get("model_args")
        if isinstance(arguments, str):
            pairs = (part.partition("=") for part in arguments.split(","))
            arguments = {key.strip(): value.strip() for key, _, value in pairs}
        arguments = arguments if isinstance(arguments, dict) else {}
        for value in (
            self.content.get("model_name"),
            arguments.get("pretrained"),
            arguments.get("model"),
            config.get("model"),
        ):
            if isinstance(value, str) and value:
                return _without_address(value)
        return "unknown"

    def leaves(self, name: str) -> list[str]:
        """Tasks of a group, those of groups within too; none of a task, or of a broken list.

        InputError for more than a group may have.
        """
        leaves = list(islice(self._leaves(name, ()), LEAVES + 1)) if self._members(name) else []
        if len(leaves) > LEAVES:
            raise InputError(f"group '{name}' has more than {LEAVES:,} tasks", where=self.name)
        return leaves

    def _leaves(self, name: str, path: tuple[str, ...]) -> Iterator[str]:
        members = self._members(name)
        if not members or name in path or len(path) >= DEPTH:
            yield name
            return
        for one in members:
            yield from self._leaves(one, (*path, name))

    def _members(self, name: str) -> list[str]:
        members = _member(self.content, "group_subtasks", name)
        members = members if isinstance(members, list) else []
        return [one for one in members if isinstance(one, str)]

    def samples_of(self, task: str) -> list[SourceFile]:
        """Files named after the task: `samples_TASK.jsonl` or `samples_TASK_DATE.jsonl`."""
        pattern = re.compile(rf"samples_{re.escape(task)}(_\d[\dT.:-]*)?\.jsonl(\.\w+)?")
        return [one for one in self.samples if pattern.fullmatch(posixpath.basename(one.name))]


def read_result_files(files: Sequence[SourceFile], config: ImportScoresConfig) -> list[TaskScores]:
    """Scores of every task that the config takes, in the order of their names.

    InputError for results of several models, for a task that two files have, and for nothing.
    """
    runs = list(_result_files(files, config))
    models = sorted({one.model for one in runs})
    if config.model is not None:
        runs = [one for one in runs if one.model == config.model]
    elif len(models) > 1:
        raise InputError(
            f"holds results of several models: {', '.join(models)[:300]}",
            where="snapshot",
            hint="name one: model: NAME",
        )
    tasks: dict[str, tuple[str, TaskScores]] = {}
    for one in runs:
        for task in one.content["results"]:
            if config.tasks and not any(fnmatchcase(task, part) for part in config.tasks):
                continue
            if task in tasks:
                raise InputError(
                    f"task '{task}' is in {tasks[task][0]} too",
                    where=one.name,
                    hint="take a snapshot of the files of one run",
                )
            read = _read_task(one, task, config)
            if read.scores or not one.leaves(task):  # A group may have no aggregate.
                tasks[task] = one.name, read
    if not tasks:
        known = f"models: {', '.join(models)[:300]}" if models else "it has no results_*.json"
        raise InputError(
            "the snapshot has no results that were named", where="snapshot", hint=known
        )
    return [tasks[name][1] for name in sorted(tasks)]


def _result_files(files: Sequence[SourceFile], config: ImportScoresConfig) -> Iterator[ResultFile]:
    """Every JSON file as results; with the samples of its folder, of its date where it has one."""
    jsons = [one for one in files if row_format(one.name) == "json"]
    for file in jsons:
        folder = posixpath.dirname(file.name)
        siblings = [one for one in jsons if posixpath.dirname(one.name) == folder]
        date = re.sub(r"^.*?(\d{4}-\d\d-\d\dT[\d.:-]+)?\.json.*$", r"\1", file.name) or None
        samples = tuple(
            one
            for one in files
            if row_format(one.name) == "jsonl"
            and posixpath.dirname(one.name) == folder
            and (len(siblings) == 1 or (date is not None and date.rstrip(".") in one.name))
        )
        yield ResultFile(file.name, _parse(file, config.max_file_bytes), samples)


def _parse(file: SourceFile, limit: int) -> dict[str, Any]:
    if file.bytes > limit:
        raise InputError(
            f"has {file.bytes:,} bytes, more than {limit:,}",
            where=file.name,
            hint="set `max_file_bytes` if these are results of lm-eval",
        )
    with file.open() as stream:
        raw = stream.read()
    try:
        # lm-eval writes NaN where it has no error: no score, as its "N/A".
        value = parse_json(raw, parse_constant=lambda _: None)
    except ValueError as error:
        raise InputError(f"is not JSON: {error}", where=file.name) from None
    results = value.get("results") if isinstance(value, dict) else None
    if not isinstance(results, dict) or not all(isinstance(one, dict) for one in results.values()):
        raise InputError(WRONG, where=file.name, hint="an object with `results` by task")
    if results and not any("," in key for one in results.values() for key in one):
        raise InputError(
            "its metrics name no filter",
            where=file.name,
            hint="lm-eval before 0.4 wrote it, or another program: run it again with 0.4",
        )
    parsed: dict[str, Any] = value
    return parsed


def _read_task(file: ResultFile, task: str, config: ImportScoresConfig) -> TaskScores:
    content = file.content
    shots = _member(content, "n-shot", task)
    shots = shots if isinstance(shots, int) and not isinstance(shots, bool) else None
    better = _member(content, "higher_is_better", task)
    scores = read_scores(content["results"][task], better if isinstance(better, dict) else {})
    samples = [row for one in file.samples_of(task) for row in _rows(one, scores, config)]
    observed = observe(task, shots, samples, scores)
    settings = _member(content, "configs", task)
    version = _member(content, "versions", task)
    leaves = file.leaves(task)
    count = _count(content, task, len(samples)) or sum(_count(content, one, 0) for one in leaves)
    record = make_record(
        task,
        str(version)[:80] if version is not None else "unknown",
        scores,
        harness=str(content.get("lm_eval_version") or "of an unknown version")[:80],
        model=file.model,
        settings={
            **_kept(settings if isinstance(settings, dict) else {}),
            "chat": bool(content.get("chat_template")),
            "limit": _limit(content),
            **({"tasks": leaves, "weighted_by": _weights(file, leaves, scores)} if leaves else {}),
        },
    )
    return TaskScores(task, shots, count, tuple(scores), tuple(observed), record)


def _weights(file: ResultFile, leaves: Sequence[str], scores: Sequence[Score]) -> dict[str, str]:
    """By which weights each score of a group is the mean of its tasks'; others are left out.

    `rows` or `tasks`; a group of 0.4 does not say so itself.
    """
    results = file.content["results"]
    parts = [
        (one, _count(file.content, name, 0))
        for name in leaves
        if name in results
        for one in read_scores(results[name], {})
    ]
    weights: dict[str, str] = {}
    for score in scores:
        own = [(one.value, size) for one, size in parts if one.metric == score.metric]
        values, sizes = [one for one, _ in own], [size for _, size in own]
        for name, by_size in (("rows", True), ("tasks", False)):
            if not own or (by_size and not sum(sizes)):
                continue
            mean = weighted_mean(values, sizes, by_size=by_size)
            if math.isclose(mean, score.value, rel_tol=1e-9):
                weights.setdefault(score.metric, name)
    return weights


def _rows(
    file: SourceFile, scores: Sequence[Any], config: ImportScoresConfig
) -> Iterator[dict[str, Any]]:
    """Samples of a file; InputError for a row that lm-eval does not write."""
    for row in read_rows(file, RowLimits(row=config.max_row_bytes)):
        where = f"{file.name}, row at {row.record}"
        if row.value is None:
            raise InputError(f"{row.reason} {row.detail or ''}".strip(), where=where)
        sample = row.value
        if not isinstance(sample.get("doc_hash"), str):
            raise InputError(
                "a sample has no doc_hash, by which rows are paired",
                where=where,
                hint="leave files of samples out of the snapshot, or run lm-eval 0.4.3 or later",
            )
        if not isinstance(sample.get("metrics"), list):
            raise InputError("a sample does not say its metrics", where=where, hint=WRONG)
        yield sample


def _member(content: Mapping[str, Any], section: str, task: str) -> Any:
    values = content.get(section)
    return values.get(task) if isinstance(values, dict) else None


def _count(content: Mapping[str, Any], task: str, samples: int) -> int:
    """Rows of the task that were measured."""
    rows = _member(content, "n-samples", task)
    counts = (
        rows.get("effective") if isinstance(rows, dict) else None,
        (_member(content, "results", task) or {}).get("sample_len"),
    )
    return next((one for one in counts if isinstance(one, int) and one >= 0), samples)


def _limit(content: Mapping[str, Any]) -> float | None:
    config = content.get("config")
    limit = config.get("limit") if isinstance(config, dict) else None
    return limit if isinstance(limit, int | float) else None


def _kept(settings: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: settings[name]
        for name in KEPT_SETTINGS
        if name in settings and len(json.dumps(settings[name])) <= RECORD_BYTES
    }


def _without_address(name: str) -> str:
    """A model's name; of a URL, which may hold credentials, its last part."""
    if "://" in name:
        name = name.split("?")[0].rstrip("/").rsplit("/", 1)[-1]
    return name[:200]
