"""A task with its settings and its solved examples, ready to convert rows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from artifacts_schema.errors import UsageError
from stages.engine import Context
from stages.engine.reading.row import RowLimits
from stages.engine.reading.rows import read_rows
from stages.engine.sources import SourceFile, snapshot_name, source_files
from stages.examples.config import BenchmarksConfig
from stages.examples.conversion import BadExample, matching_files, row_fields
from stages.examples.task import Task
from stages.examples.task_files import find_task, is_shipped, shipped_task
from stages.examples.task_items import Example, TaskRows, gather_examples


def check_settings(config: BenchmarksConfig, task: Task, *, has_source: bool) -> None:
    """UsageError for formulations that the task lacks, and for examples without a source."""
    for name in config.formulations:
        task.way(name)
    most, inline = max(_shots(config, task)), len(task.fewshot.examples)
    if not most or has_source or config.fewshot_files:
        return
    if not inline:
        raise UsageError(
            f"{most} shots of task '{task.name}' need solved examples",
            where="shots",
            hint="give the role `fewshot` a snapshot, name `fewshot_files`, or set `shots: [0]`",
        )
    if inline < most:
        raise UsageError(
            f"task '{task.name}' holds {inline} solved examples, {most} shots are set",
            where="shots",
            hint="give the role `fewshot` a snapshot, or take fewer",
        )


def prepare_task(context: Context) -> TaskRows:
    """Find the task, check the settings against it, and read its solved examples."""
    config: BenchmarksConfig = context.config
    task = _task(context)
    source = context.maybe("fewshot")
    check_settings(config, task, has_source=source is not None)
    shots = _shots(config, task)
    examples: dict[str, list[Example]] = {}
    if any(shots):
        examples = _examples(context, task, max(shots))
        context.count(fewshot_examples=sum(map(len, examples.values())))
    formulations = config.formulations or (task.default,)
    return TaskRows(task, formulations, shots, examples, config.fewshot_seed)


def _shots(config: BenchmarksConfig, task: Task) -> tuple[int, ...]:
    return config.shots or (task.fewshot.shots,)


def _task(context: Context) -> Task:
    config: BenchmarksConfig = context.config
    assert config.task is not None
    own = context.maybe("tasks")
    if own is None:
        task = shipped_task(config.task)
        if task.digest != config.task_digest:
            raise UsageError(
                f"the plan names task '{task.name}' with digest {config.task_digest}, this "
                f"version of Ingot has {task.digest}",
                where="task_digest",
                hint="plan again here",
            )
        return task
    if is_shipped(config.task):
        raise UsageError(
            f"a task '{config.task}' comes with Ingot",
            where=f"snapshot '{snapshot_name(own)}'",
            hint="give the file of your own another name",
        )
    return find_task(config.task, source_files(own))


def _examples(context: Context, task: Task, most: int) -> dict[str, list[Example]]:
    """Solved examples of the role `fewshot`, of the snapshot, or of the task itself."""
    config: BenchmarksConfig = context.config
    drawn = config.fewshot_seed is not None
    source = context.maybe("fewshot")
    if source is None and config.fewshot_files is None:
        return gather_examples(task, task.fewshot.examples, most, f"task {task.name}", drawn=drawn)
    source = source or context.one("snapshot")
    where = f"snapshot '{snapshot_name(source)}'"
    files = matching_files(source_files(source), config.fewshot_files, where)
    return gather_examples(task, _read_rows(files, config), most, where, drawn=drawn)


def _read_rows(files: list[SourceFile], config: BenchmarksConfig) -> Iterator[dict[str, Any]]:
    limits = RowLimits(row=config.max_row_bytes, expansion=config.max_expansion)
    for file in files:
        for row in read_rows(file, limits):
            try:
                yield row_fields(row, config.rename)
            except BadExample:  # A faulty row is no example; items have an account of theirs.
                continue
