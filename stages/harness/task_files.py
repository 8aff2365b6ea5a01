"""Task files of lm-eval from a snapshot: read as data, checked, and given rows of the snapshot.

A task file is YAML. Its tag `!function` names Python that the library imports: such a file is
refused unless the config trusts it. So is whatever makes the library run or fetch something: data
sets by name, scripts of metrics, prompts from elsewhere, classes. What is left is templates, which
`library` renders in a sandbox. Rows are read by Ingot's own reader from files of the snapshot, so
nothing is downloaded or cached.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import yaml

from artifacts_schema.config import did_you_mean
from artifacts_schema.errors import InputError
from stages.engine.reading.rows import read_rows
from stages.engine.sources import SourceFile
from stages.harness.groups import Catalogue

TASK_BYTES = 1_000_000
"""Of the longest task file that is read."""
TASK_VALUES = 100_000
"""Values of a task file once its aliases are followed: a few lines can stand for billions."""
CODE_HINT = "write it as templates and filters, or read the Python and set `trust_task_code: true`"

PLAIN_FIELDS = frozenset(
    {
        "task", "task_alias", "tag", "dataset_path", "dataset_name", "dataset_kwargs",
        "training_split", "validation_split", "test_split", "fewshot_split", "doc_to_text",
        "doc_to_target", "doc_to_choice", "description", "target_delimiter", "fewshot_delimiter",
        "fewshot_config", "num_fewshot", "metric_list", "output_type", "generation_kwargs",
        "repeats", "filter_list", "should_decontaminate", "doc_to_decontamination_query",
        "gen_prefix", "metadata", "include",
    }
)  # fmt: skip
CODE_FIELDS = frozenset({"process_docs", "process_results"})
"""Fields that only a function can fill."""
REFUSED = {
    "class": "is a Python class",
    "custom_dataset": "makes its data by code",
    "use_prompt": "takes its prompt from a library of prompts",
    "doc_to_image": "has images",
    "doc_to_audio": "has sound",
    "unsafe_code": "runs code that a model writes: measure it as a benchmark of Ingot's own, whose "
    "`score` has a sandbox",
}


@dataclass(frozen=True)
class CodeReference:
    """`!function` in a task file: Python that the file wants imported."""

    name: str


@dataclass(frozen=True)
class TaskFile:
    """The settings of one task of a snapshot, its includes merged."""

    name: str
    file: str
    settings: dict[str, Any]

    @property
    def has_code(self) -> bool:
        """Whether it names Python."""
        return _find_code(self.settings) is not None


class _Loader(yaml.SafeLoader):
    """SafeLoader that reads `!function` as a reference, and imports nothing."""


def _construct_function(loader: yaml.SafeLoader, node: yaml.Node) -> CodeReference:
    return CodeReference(str(node.value)[:200])


_Loader.add_constructor("!function", _construct_function)


def read_task_files(files: Sequence[SourceFile]) -> dict[str, TaskFile]:
    """Every task of the YAML files, by name. InputError for a file that is no task, and for two
    tasks of one name; a file without `task` is one that others include."""
    return {one.name: one for one in _read_files(files) if "group" not in one.settings}


def read_catalogue(files: Sequence[SourceFile]) -> Catalogue:
    """Names of the snapshot's tasks and tags, and its groups."""
    catalogue = Catalogue()
    for one in _read_files(files):
        if "group" in one.settings:
            catalogue.groups[one.name] = one.settings
            continue
        catalogue.tasks.add(one.name)
        tags = one.settings.get("tag") or ()
        for tag in [tags] if isinstance(tags, str) else tags:
            catalogue.tags.setdefault(str(tag), []).append(one.name)
    return catalogue


def _read_files(files: Sequence[SourceFile]) -> list[TaskFile]:
    """Tasks and groups; InputError for two of one name."""
    texts = {one.name: one for one in files if one.name.endswith((".yaml", ".yml"))}
    parsed: dict[str, dict[str, Any]] = {}
    read: dict[str, TaskFile] = {}
    for file in sorted(texts):
        settings = _merged(file, texts, parsed, ())
        kind = "group" if "group" in settings else "task"
        name = settings.get(kind)
        if not isinstance(name, str):
            continue
        if name in read:
            raise InputError(
                f"{kind} '{name}' is in {read[name].file} too",
                where=file,
                hint="name one otherwise",
            )
        read[name] = TaskFile(name, file, settings)
    return list(read.values())


def choose_tasks(patterns: Sequence[str], tasks: Iterable[str]) -> list[str]:
    """Names in the order of `patterns`; a pattern with * or ? must fit a task of the snapshot."""
    chosen: dict[str, None] = {}
    for pattern in patterns:
        if not any(sign in pattern for sign in "*?["):
            chosen[pattern] = None
            continue
        matches = sorted(name for name in tasks if fnmatchcase(name, pattern))
        if not matches:
            known = ", ".join(sorted(tasks)) or "none"
            raise InputError(f"no task is named like '{pattern}'", where="tasks", hint=known)
        chosen.update(dict.fromkeys(matches))
    return list(chosen)


def check_task(task: TaskFile, *, trusted: bool) -> None:
    """InputError for a task that would run or fetch something, or has a field that none has."""
    where = f"{task.file}: task {task.name}"
    code = _find_code(task.settings)
    if code is not None and not trusted:
        raise InputError(f"names Python code: {code.name}", where=where, hint=CODE_HINT)
    for field, what in REFUSED.items():
        if task.settings.get(field) not in (None, False):
            raise InputError(what, where=where)
    for field in task.settings:
        if field not in PLAIN_FIELDS | CODE_FIELDS | set(REFUSED):
            raise InputError(f"no field '{field}'{did_you_mean(field, PLAIN_FIELDS)}", where=where)
    for field in sorted(CODE_FIELDS & set(task.settings)):
        if not isinstance(task.settings[field], CodeReference) and not trusted:
            raise InputError(f"{field} is no function", where=where, hint=CODE_HINT)
    _check_metrics(task, where)


def _check_metrics(task: TaskFile, where: str) -> None:
    """InputError for a metric that the library would look up elsewhere, as a script."""
    from lm_eval.api import metrics, registry

    assert metrics
    for entry in task.settings.get("metric_list") or ():
        if not isinstance(entry, dict) or "metric" not in entry:
            raise InputError("an entry of metric_list has no `metric`", where=where)
        name = entry["metric"]
        if entry.get("hf_evaluate"):
            raise InputError(f"metric {name} is a script of `evaluate`", where=where)
        known = list(registry.metric_registry.keys())
        if isinstance(name, str) and name not in known and "process_results" not in task.settings:
            raise InputError(
                f"lm-eval has no metric '{name}'{did_you_mean(name, known)}", where=where
            )


def data_files(task: TaskFile, names: Sequence[str]) -> dict[str, list[str]]:
    """Split → files of the snapshot. InputError for a data set that is not in it."""
    where = f"{task.file}: task {task.name}"
    path = task.settings.get("dataset_path")
    if path not in ("json", "parquet"):
        raise InputError(
            f"reads data set '{path}', which would be downloaded",
            where=where,
            hint="put its rows into the snapshot: `dataset_path: json` and "
            "`dataset_kwargs: {data_files: {test: FILE.jsonl}}`",
        )
    settings = task.settings.get("dataset_kwargs") or {}
    more = sorted(set(settings) - {"data_files", "trust_remote_code"})
    if more or not settings.get("data_files"):
        what = f"has {more[0]}" if more else "names no data_files"
        raise InputError(f"dataset_kwargs {what}", where=where, hint="only data_files is read")
    value = settings["data_files"]
    splits = value if isinstance(value, dict) else {"train": value}
    folder = posixpath.dirname(task.file)
    return {
        str(split): [
            find_file(str(one), names, folder=folder, where=where)
            for one in (files if isinstance(files, list) else [files])
        ]
        for split, files in splits.items()
    }


def find_file(name: str, names: Sequence[str], *, folder: str, where: str) -> str:
    """The snapshot's file of this name, from the folder of the task file or from the root."""
    for candidate in (posixpath.normpath(posixpath.join(folder, name)), posixpath.normpath(name)):
        if candidate in names:
            return candidate
    raise InputError(
        f"the snapshot has no file '{name}'{did_you_mean(name, names)}",
        where=where,
        hint="name data files as the snapshot has them",
    )


def read_dataset(splits: Mapping[str, Sequence[str]], files: Mapping[str, SourceFile]) -> Any:
    """A `datasets` dictionary of the rows, in memory. InputError for a bad row: no row is left out,
    since scores of fewer rows are another task's."""
    import datasets
    import pyarrow as pa

    tables = {}
    for split, names in splits.items():
        rows: list[dict[str, Any]] = []
        for name in names:
            for row in read_rows(files[name]):
                if row.value is None:
                    where = f"{name}, row at {row.record}"
                    raise InputError(f"{row.reason} {row.detail or ''}".strip(), where=where)
                rows.append(row.value)
        if not rows:
            raise InputError("has no row", where=", ".join(names))
        fields = dict.fromkeys(field for row in rows for field in row)
        try:
            columns = {field: [row.get(field) for row in rows] for field in fields}
            tables[split] = datasets.Dataset(pa.table(columns))
        except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
            raise InputError(
                f"rows do not have one shape: {error}", where=", ".join(names)
            ) from None
    return datasets.DatasetDict(tables)


def write_trusted(files: Sequence[SourceFile], folder: Path) -> None:
    """Lay out task files and their Python, for a library that reads them by path."""
    for one in files:
        if not one.name.endswith((".yaml", ".yml", ".py")):
            continue
        place = (folder / one.name).resolve()
        if not place.is_relative_to(folder.resolve()):
            raise InputError("leads out of the snapshot", where=one.name)
        place.parent.mkdir(parents=True, exist_ok=True)
        with one.open() as source:
            place.write_bytes(source.read())


def _merged(
    name: str,
    files: Mapping[str, SourceFile],
    parsed: dict[str, dict[str, Any]],
    path: tuple[str, ...],
) -> dict[str, Any]:
    """Settings of a file over those that it includes, as the library merges them."""
    if name in path:
        raise InputError(f"includes itself by way of {path[-1]}", where=name)
    if name not in parsed:
        parsed[name] = _parse(files[name])
    own = dict(parsed[name])
    included = own.pop("include", None)
    merged: dict[str, Any] = {}
    for one in included if isinstance(included, list) else [included] if included else []:
        target = find_file(str(one), list(files), folder=posixpath.dirname(name), where=name)
        merged.update(_merged(target, files, parsed, (*path, name)))
        merged.pop("task_list", None)
    return {**merged, **own}


def _parse(file: SourceFile) -> dict[str, Any]:
    if file.bytes > TASK_BYTES:
        raise InputError(
            f"has {file.bytes:,} bytes, more than {TASK_BYTES:,} of a task file", where=file.name
        )
    with file.open() as stream:
        raw = stream.read()
    try:
        value = yaml.load(raw, Loader=_Loader)  # A SafeLoader: see its class.
    except (yaml.YAMLError, UnicodeDecodeError, ValueError, RecursionError) as error:
        problem = getattr(error, "problem", None) or type(error).__name__
        mark = getattr(error, "problem_mark", None)
        place = f", line {mark.line + 1}" if mark is not None else ""
        raise InputError(f"is no YAML of a task: {problem}{place}", where=file.name) from None
    if not isinstance(value, dict):
        raise InputError(f"is no task but {type(value).__name__}", where=file.name)
    _count_values(value, file.name)
    return {str(key): item for key, item in value.items()}


def _count_values(value: Any, where: str) -> None:
    """InputError for more values than a task has, aliases followed, or for one inside itself."""
    left, count = [value], 0
    while left:
        one = left.pop()
        if isinstance(one, dict | list):
            count += len(one)
            if count > TASK_VALUES:
                raise InputError(f"has more than {TASK_VALUES:,} values", where=where)
            left.extend(one.values() if isinstance(one, dict) else one)


def _find_code(value: Any) -> CodeReference | None:
    if isinstance(value, CodeReference):
        return value
    if isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            if (code := _find_code(item)) is not None:
                return code
    return None
