"""Documents modules, group by group, each group in a fresh interpreter; reads source files."""

from __future__ import annotations

import json
import subprocess
import sys
import tokenize
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from artifacts_schema.errors import IngotError
from stages.engine import ShardOutput

GROUP = 24
"""Modules documented by one interpreter: starting one takes as long as documenting a few."""
CLASS_PAGE = 2500
"""Characters of HTML above which a class gets a page of its own."""
ENVIRONMENT = {"PYTHONHASHSEED": "0", "LC_ALL": "C", "TZ": "UTC"}
"""All that the interpreter sees of its surroundings, so that every machine documents the same."""
FLAGS = ("-P", "-s", "-S", "-B", "-X", "utf8")
"""No script folder, user site, site packages or bytecode files; UTF-8 whatever the locale."""
SCRATCH = "modules.parquet"


@dataclass(frozen=True)
class Group:
    """Modules that one interpreter documents, in this order."""

    id: str
    modules: tuple[str, ...]


@dataclass(frozen=True)
class DocPage:
    """Content of a page: its place on the site (no suffix), title, HTML without the frame."""

    path: str
    title: str
    html: str


@dataclass(frozen=True)
class Entry:
    """A public function, class or method: name within its module, signature, whole docstring."""

    module: str
    kind: str
    name: str
    signature: str
    doc: str


@dataclass(frozen=True)
class Module:
    """What `pydoc` tells of a module: pages and entries."""

    name: str
    pages: tuple[DocPage, ...]
    entries: tuple[Entry, ...]


def groups(modules: Sequence[str]) -> list[Group]:
    """Modules in groups of `GROUP`."""
    starts = range(0, len(modules), GROUP)
    return [Group(f"{n:05d}", tuple(modules[s : s + GROUP])) for n, s in enumerate(starts)]


def document_group(group: Group, out: ShardOutput) -> dict[str, Any]:
    """Document a group into a scratch table (module, record: JSON); counts what is missing."""
    rows = run_documenter(group.modules)
    missing = {row["module"]: row["missing"] for row in rows if "missing" in row}
    records = [json.dumps(row) for row in rows if "missing" not in row]
    out.write_scratch(SCRATCH, pa.table({"record": pa.array(records, pa.string())}))
    return {"missing": missing}


def run_documenter(modules: Sequence[str]) -> list[dict[str, Any]]:
    """One row a module, as `documenter.py` answers. IngotError if the interpreter fails."""
    program = Path(__file__).with_name("documenter.py")
    done = subprocess.run(
        [sys.executable, *FLAGS, str(program)],
        input=json.dumps({"modules": list(modules), "class_page": CLASS_PAGE}).encode(),
        capture_output=True,
        env=ENVIRONMENT,
        check=False,
    )
    if done.returncode:
        last = done.stderr.decode(errors="replace").strip().splitlines()[-1:]
        raise IngotError(
            f"{sys.executable} could not document the standard library: {' '.join(last)}",
            where="sample",
            hint="check that this Python starts with an empty environment (env -i python3 -S)",
        )
    return [json.loads(line) for line in done.stdout.splitlines()]


def module_of(row: dict[str, Any]) -> Module:
    """A documented module from its row."""
    name = row["module"]
    return Module(
        name=name,
        pages=tuple(DocPage(**page) for page in row["pages"]),
        entries=tuple(Entry(module=name, **entry) for entry in row["entries"]),
    )


def source_file(module: str) -> tuple[str, str] | None:
    """Name within the standard library and text of a module's source file; None if it has none."""
    library = Path(json.__file__).parents[1]
    stem = module.replace(".", "/")
    for name in (f"{stem}.py", f"{stem}/__init__.py"):
        if (library / name).is_file():
            with tokenize.open(str(library / name)) as stream:
                return name, stream.read()
    return None
