"""lm-evaluation-harness as a library: imported once it is needed, offline, its templates sandboxed.

What a task file may make the library do by itself is code on a load path: Jinja templates reach
Python's objects, metrics that it does not know are looked up as scripts, data sets are downloaded.
Here templates are rendered in Jinja's sandbox, and `task_files` refuses the rest.
"""

from __future__ import annotations

import logging
import os
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from artifacts_schema.errors import InputError, UsageError

VERSION = "0.4.13"
"""The version whose results the tests pin."""
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


def find_own_task(name: str) -> Path:
    """The file of a task that comes with lm-eval; InputError if it has none of this name.

    Lines are searched: to parse all 13,000 files takes the library 18 seconds.
    """
    import lm_eval

    line = f"task: {name}"
    quoted = {line, f'task: "{name}"', f"task: '{name}'"}
    root = Path(lm_eval.__file__).parent / "tasks"
    for path in sorted(root.rglob("*.yaml")):
        text = path.read_text(encoding="utf-8")
        if name in text and any(one.rstrip() in quoted for one in text.splitlines()):
            return path
    raise InputError(
        f"neither the snapshot nor lm-eval has a task '{name}'",
        where="tasks",
        hint="a group is named by its tasks; `lm_eval ls tasks` prints the names",
    )


def load_own_task(name: str) -> dict[str, Any]:
    """The settings of a task that comes with lm-eval, with its functions: code of the library."""
    from lm_eval.tasks._yaml_loader import load_yaml

    path = find_own_task(name)
    try:
        settings: dict[str, Any] = load_yaml(path)
    except Exception as error:
        raise InputError(
            f"the task does not load without a network: {error}",
            where=f"task {name}",
            hint="its code needs a package or a download; write a task file of your own",
        ) from None
    return settings
