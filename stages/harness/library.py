"""lm-evaluation-harness as a library: imported once it is needed, offline, its templates sandboxed.

What a task file may make the library do by itself is code on a load path: Jinja templates reach
Python's objects, metrics that it does not know are looked up as scripts, data sets are downloaded.
Here templates are rendered in Jinja's sandbox, and `task_files` refuses the rest.
"""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Sequence
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from artifacts_schema.errors import InputError, UsageError
from stages.engine.sources import SourceFile
from stages.harness.groups import Catalogue, Group, resolve
from stages.harness.task_files import choose_tasks, read_catalogue

VERSION = "0.4.13"
"""The version whose results the tests pin."""
_TASK_LINE = re.compile(r"""^["']?task["']?: +["']?(?P<name>[^"'\[{\n]+?)["']?[ ]*$""", re.M)
_GROUP_LINE = re.compile(r"""^["']?group["']?:""", re.M)
HINT = "pip install 'ingot[harness]'"


def check_installed() -> None:
    """UsageError where the extra is absent; imports nothing."""
    if find_spec("lm_eval") is None:
        raise UsageError("lm-evaluation-harness is not installed", where="harness", hint=HINT)


def open_library(cache_folder: Path) -> str:
    """Import lm-eval, offline; returns its version. UsageError where the extra is absent.

    `cache_folder` is for what its libraries keep, so that nothing is written elsewhere.
    """
    check_installed()
    os.environ.update(
        HF_HUB_OFFLINE="1",
        HF_DATASETS_OFFLINE="1",
        HF_EVALUATE_OFFLINE="1",
        HF_UPDATE_DOWNLOAD_COUNTS="0",
        HF_HUB_DISABLE_TELEMETRY="1",
        HF_DATASETS_CACHE=str(cache_folder / "datasets"),
        HF_MODULES_CACHE=str(cache_folder / "modules"),
        HF_METRICS_CACHE=str(cache_folder / "metrics"),
        LMEVAL_LOG_LEVEL="ERROR",
        TQDM_DISABLE="1",
    )
    from importlib.metadata import version

    import datasets
    from jinja2 import BaseLoader, StrictUndefined
    from jinja2.sandbox import ImmutableSandboxedEnvironment
    from lm_eval import utils

    datasets.disable_progress_bars()
    datasets.disable_caching()
    logging.getLogger("lm_eval").setLevel(logging.ERROR)
    sandbox = ImmutableSandboxedEnvironment(
        loader=BaseLoader(), undefined=StrictUndefined, keep_trailing_newline=True
    )
    sandbox.filters["regex_replace"] = utils.regex_replace
    utils.env = sandbox  # Of `apply_template`, which renders every template of a task.
    return version("lm_eval")


@cache
def own_task_files() -> dict[str, Path]:
    """The file of each task that comes with lm-eval.

    Lines are searched: to parse all 13,000 files takes the library some 5 CPU seconds.
    """
    files: dict[str, Path] = {}
    for path in sorted(_tasks_folder().rglob("*.yaml")):
        text = path.read_text(encoding="utf-8")
        if (line := _TASK_LINE.search(text)) and not _GROUP_LINE.search(text):
            files.setdefault(line["name"], path)
    return files


@cache
def own_catalogue() -> Catalogue:
    """Tasks, tags and groups that come with lm-eval, as its own index has them."""
    from lm_eval.tasks._index import Kind, TaskIndex

    catalogue = Catalogue()
    for name, entry in TaskIndex.build([_tasks_folder()]).items():
        if entry.kind is Kind.GROUP:
            catalogue.groups[name] = entry.cfg or {}
        elif entry.kind is Kind.TAG:
            catalogue.tags[name] = sorted(entry.tags)
        else:
            catalogue.tasks.add(name)
    return catalogue


def select(patterns: Sequence[str], files: Sequence[SourceFile]) -> tuple[list[str], list[Group]]:
    """Tasks, each once, and groups behind patterns of names. InputError for a name of neither."""
    catalogue = read_catalogue(files)
    names = choose_tasks(patterns, catalogue.tasks)
    members = [one for group in catalogue.groups.values() for one in _named(group.get("task"))]
    missing = {*names, *members} - {*catalogue.names()}
    own = missing & own_task_files().keys() if missing else set()
    if own:
        catalogue.tasks |= own
    if missing - own:
        every = own_catalogue()
        catalogue = Catalogue(
            every.tasks | catalogue.tasks,
            {**every.groups, **catalogue.groups},
            {**every.tags, **catalogue.tags},
        )
    tasks: dict[str, None] = {}
    groups: dict[str, Group] = {}
    for name in names:
        if name not in catalogue.names():
            raise InputError(
                f"neither the snapshot nor lm-eval has a task '{name}'",
                where="tasks",
                hint="`lm_eval ls tasks` and `lm_eval ls groups` print its names",
            )
        leaves, within = resolve(name, catalogue)
        tasks.update(dict.fromkeys(leaves))
        groups.update({one.name: one for one in within})
    return list(tasks), list(groups.values())


def _named(members: Any) -> list[str]:
    """Names in a group's list of members, those of inline groups too."""
    if isinstance(members, str):
        return [members]
    if not isinstance(members, list):
        return []
    inner = [one.get("task") if isinstance(one, dict) else one for one in members]
    return [name for one in inner for name in ([one] if isinstance(one, str) else _named(one))]


def _tasks_folder() -> Path:
    import lm_eval

    return Path(lm_eval.__file__).parent / "tasks"


def load_own_task(name: str) -> dict[str, Any]:
    """The settings of a task that comes with lm-eval, with its functions: code of the library."""
    from lm_eval.tasks._yaml_loader import load_yaml

    path = own_task_files()[name]
    try:
        settings: dict[str, Any] = load_yaml(path)
    except Exception as error:
        raise InputError(
            f"the task does not load without a network: {error}",
            where=f"task {name}",
            hint="its code needs a package or a download; write a task file of your own",
        ) from None
    return settings
