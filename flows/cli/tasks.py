"""`ingot tasks [NAME]`: the evaluation tasks that come with Ingot, or one and what it asks."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from flows.cli.options import json_option
from flows.cli.output import Column, echo, print_json, print_table

if TYPE_CHECKING:
    from stages.examples.task import Free, Ranked, Task


@click.command("tasks")
@click.argument("name", required=False, metavar="[NAME|FILE]")
@click.option("--formulation", metavar="F", help="Show this one alone; by default all.")
@click.option("--shots", type=click.IntRange(0, 100), help="Solved examples before the question.")
@click.option(
    "--lm-eval",
    "harness_file",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Write a formulation as a task file of lm-evaluation-harness.",
)
@click.option(
    "--lm-eval-group",
    "group_folder",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="FOLDER",
    help="Write all variants of a task as its task files, and a group of them.",
)
@json_option
def tasks(
    name: str | None,
    formulation: str | None,
    shots: int | None,
    harness_file: Path | None,
    group_folder: Path | None,
    as_json: bool,
) -> None:
    """List the tasks: formulations, metric, licence and the fields that they read.

    With NAME, or the path of a task FILE of your own (`.yaml`), show what it asks about its example
    row. A file with variants stands for the first one; NAME may be any, as in `xnli_de`.
    """
    if name is None:
        if formulation or harness_file or group_folder or shots is not None:
            raise click.UsageError("name a task")
        _list(as_json=as_json)
        return
    task = _find(name)
    names = [formulation] if formulation else list(task.ways)
    for one in names:
        task.way(one)
    if harness_file is not None:
        _write(task, formulation or task.default, shots, harness_file)
    if group_folder is not None:
        _write_group(name, formulation or task.default, shots, group_folder)
    if harness_file is not None or group_folder is not None:
        return
    rendered = _rendered(task, names, shots or 0)
    if as_json:
        print_json({**task.described(), "rendered": rendered})
    else:
        _show(task, names, rendered)


def _find(name: str) -> Task:
    from stages.examples.task_files import (
        read_task_file,
        shipped_files,
        shipped_task,
        shipped_tasks,
    )

    if name.endswith(".yaml"):
        return next(iter(read_task_file(name).values()))
    if name in shipped_files():
        return next(iter(shipped_tasks(name).values()))
    return shipped_task(name)


def _list(*, as_json: bool) -> None:
    from stages.examples.task_files import shipped_files, shipped_tasks

    files = {stem: shipped_tasks(stem) for stem in shipped_files()}
    if as_json:
        every = [task.described() for variants in files.values() for task in variants.values()]
        print_json({"tasks": every})
        return
    rows = []
    for stem, variants in files.items():
        task = next(iter(variants.values()))
        suffix = f" ({len(variants)} variants)" if len(variants) > 1 else ""
        ways = ", ".join(sorted(task.ways, key=lambda way: way != task.default))
        fields = ", ".join(task.fields)
        rows.append((stem + suffix, ways, metric_name(task), task.licence, fields))
    ways_column, fields_column = Column("formulations", wraps=True), Column("fields", wraps=True)
    print_table(["task", ways_column, "metric", "licence", fields_column], rows)


def metric_name(task: Task) -> str:
    """How the default formulation is judged."""
    way: Ranked | Free = task.ways[task.default]
    return str(getattr(way, "metric", "accuracy"))


def _rendered(task: Task, names: list[str], shots: int) -> list[dict[str, Any]]:
    """The requests about the task's example row; none without one."""
    from artifacts_schema.errors import UsageError
    from stages.examples.conversion import BadExample, Origin
    from stages.examples.task_items import TaskRows, gather_examples

    if task.example is None:
        return []
    examples = {}
    if shots:
        inline = task.fewshot.examples
        if not inline:
            raise UsageError(
                f"task '{task.name}' holds no solved examples",
                where="--shots",
                hint="a step reads them from a snapshot",
            )
        examples = gather_examples(task, inline, shots, f"task {task.name}", drawn=False)
    convert = TaskRows(task, tuple(names), (shots,), examples)
    try:
        row = convert(dict(task.example), Origin("example", "example", task.name))
    except BadExample as bad:
        raise UsageError(
            f"{bad.reason} {bad.detail}".rstrip(), where=f"example of task '{task.name}'"
        ) from None
    requests: list[dict[str, Any]] = row["requests"]
    return [{**request, "answer": row["answer"]} for request in requests]


def _show(task: Task, names: list[str], rendered: list[dict[str, Any]]) -> None:
    echo(f"{task.name}, version {task.version}, digest {task.digest}")
    facts = [
        ("measures", task.description),
        ("licence", task.licence),
        ("source", task.source),
        ("fields", ", ".join(task.fields)),
        ("metric", metric_name(task)),
        ("shots", f"{task.fewshot.shots}" + (", of its own" if task.fewshot.examples else "")),
        ("chat", "yes" if task.chat else "no"),
    ]
    for label, text in facts:
        echo(f"  {label:9} {text}")
    for name in names:
        harness = task.ways[name].harness
        echo(f"\n{name}" + (f", as lm-evaluation-harness's {harness}" if harness else ""))
        for request in rendered:
            if request["formulation"] == name:
                _print_request(request)


def _print_request(request: dict[str, Any]) -> None:
    """The prompt between bars, then what is ranked after it, or the right answers."""
    for line in request["prompt"].split("\n"):
        echo(f"  | {line}")
    contexts = request["contexts"] or [""] * len(request["choices"])
    for place, (context, choice) in enumerate(zip(contexts, request["choices"], strict=True)):
        mark = "→" if place == request["answer"] else " "
        echo(f"  {mark} {context!r} + {choice!r}" if context else f"  {mark} {choice!r}")
    for reference in request["references"]:
        echo(f"  → {reference!r}")


def _write(task: Task, name: str, shots: int | None, path: Path) -> None:
    from stages.examples.lm_eval_task import harness_yaml

    text = harness_yaml(task, name, task.fewshot.shots if shots is None else shots)
    _write_new(path, text)
    echo(f"{path}: task {task.name}_{name}")


def _write_group(stem: str, name: str, shots: int | None, folder: Path) -> None:
    from artifacts_schema.errors import UsageError
    from stages.examples.lm_eval_task import harness_group
    from stages.examples.task_files import read_task_file, shipped_files, shipped_tasks

    if stem.endswith(".yaml"):
        variants = read_task_file(stem)
    else:
        variants = shipped_tasks(stem) if stem in shipped_files() else {}
    if len(variants) < 2:
        raise UsageError(
            f"'{stem}' has no variants to make a group of",
            where="--lm-eval-group",
            hint="name a task that has some (`ingot tasks` says which), or use --lm-eval",
        )
    stem = Path(stem).stem
    tasks = list(variants.values())
    files = harness_group(tasks, stem, name, tasks[0].fewshot.shots if shots is None else shots)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"cannot be made: {error.strerror}", where=str(folder)) from None
    for file, text in files.items():
        _write_new(folder / file, text)
    echo(f"{folder}: group {stem}_{name}, {len(tasks)} tasks")


def _write_new(path: Path, text: str) -> None:
    from artifacts_schema.errors import UsageError

    try:
        with path.open("x", encoding="utf-8") as stream:
            stream.write(text)
    except FileExistsError:
        raise UsageError("it exists already", where=str(path), hint="remove it first") from None
    except OSError as error:
        raise UsageError(f"cannot be written: {error.strerror}", where=str(path)) from None
