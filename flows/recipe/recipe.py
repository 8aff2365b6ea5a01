"""A recipe as it is written: what a person put in the YAML, merged and given its shape.

    name: demo
    description: One sentence.
    extends: base.yaml                 # deep merge; a null removes a step, snapshot or role
    snapshots:
      crawl-A: {root: ../data, files: ["warc/*.warc.gz"]}
    steps:
      ingest:   {stage: ingest, for_each: snapshots, inputs: {snapshot: each}}
      dedup:    {stage: dedup, config: {preset: …}, inputs: {documents: ingest}}
      measure:  {stage: evaluate, for_each: {checkpoints: pretrain}, inputs: {checkpoint: each}}

Whether stages, roles and values fit together is `graph`'s question; here it is only the shape.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from artifacts_schema.config import did_you_mean
from artifacts_schema.errors import UsageError
from flows.recipe.overrides import Override, apply_overrides
from flows.recipe.reading import Document, Place, merge, read_yaml
from flows.recipe.snapshot_entry import (
    SNAPSHOT_KEYS,
    SnapshotFiles,
    problems_of,
    read_entry,
    superseded,
)
from stages.engine.urls import without_secrets

RECIPE_KEYS = ("name", "description", "extends", "snapshots", "steps")
STEP_KEYS = ("stage", "config", "inputs", "for_each", "execution")
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")
SNAPSHOT_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
RESERVED = ("each", "previous", "earlier", "snapshots")

BUNDLED = Path(__file__).parent.parent / "recipes"
"""Recipes that come with Ingot; `ingot run quickstart` finds them by name."""


@dataclass(frozen=True)
class Checkpoints:
    """What `for_each: {checkpoints: STEP}` repeats over: each one that the step commits."""

    step: str


@dataclass(frozen=True)
class Step:
    """A stage placed in a recipe, as written."""

    name: str
    stage: str
    config: dict[str, Any] = field(default_factory=dict)
    inputs: dict[str, tuple[str, ...]] = field(default_factory=dict)
    for_each: str | tuple[str, ...] | Checkpoints | None = None
    execution: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Recipe:
    """Steps and snapshots by name, in the order in which they were written."""

    name: str
    description: str
    path: Path
    snapshots: dict[str, SnapshotFiles]
    steps: dict[str, Step]
    document: Document
    overrides: tuple[Override, ...] = ()

    def place(self, *where: str | int) -> str:
        """`file:line: steps.filter.config`, for an error about the value at `where`."""
        return f"{self.document.place(*where)}: {'.'.join(str(part) for part in where)}"


class Problems:
    """Everything wrong with a recipe, told at once."""

    def __init__(self, where: str) -> None:
        self.where = where
        self.found: list[str] = []

    def add(self, what: str, *, where: str, hint: str | None = None) -> None:
        """Note a problem once."""
        text = str(UsageError(what, where=where, hint=hint))
        if text not in self.found:
            self.found.append(text)

    def raise_any(self) -> None:
        """Raise one UsageError that lists every problem, if there is any."""
        if len(self.found) == 1:
            raise UsageError(self.found[0])
        if self.found:
            lines = "".join(f"\n  {text}" for text in self.found)
            raise UsageError(f"{len(self.found)} problems:{lines}", where=self.where)


def find_recipe(name: str, folder: Path = Path()) -> Path:
    """The file of a recipe: a path from `folder`, or one that comes with Ingot.

    Those go by their name (`quickstart`) or by their path in Ingot's own sources
    (`flows/recipes/quickstart.yaml`), from every folder; a file of that path is taken before them.
    """
    path = folder / name
    if path.exists() and not path.is_dir():
        return path
    known = {found.stem: found for found in BUNDLED.glob("*.yaml")}
    if name in known:
        return known[name]
    parts = Path(name).parts
    if parts[-3:-1] == ("flows", "recipes") and parts[-1].removesuffix(".yaml") in known:
        return known[parts[-1].removesuffix(".yaml")]
    if path.suffix in (".yaml", ".yml") or "/" in name:
        return path
    raise UsageError(f"no recipe '{name}'{did_you_mean(name, known)}", hint="or give a path")


def load_recipe(path: Path, overrides: tuple[str, ...] = ()) -> Recipe:
    """Read the recipe at `path` with all that it extends, and apply `--set` texts.

    Raises InputError if a file cannot be read, UsageError listing every problem of its shape.
    """
    document = _read_with_bases(path, ())
    problems = Problems(str(path))
    applied = apply_overrides(document, overrides, problems.add)
    recipe = _shape(document, path, tuple(applied), problems)
    problems.raise_any()
    return recipe


def _read_with_bases(path: Path, above: tuple[Path, ...]) -> Document:
    here = Path(os.path.realpath(path))  # `resolve` of a link to itself is a RuntimeError.
    if here in above:
        chain = " → ".join(step.name for step in (*above[above.index(here) :], here))
        raise UsageError(f"recipes extend each other: {chain}", where=str(path))
    document = read_yaml(path)
    base = document.values.get("extends")
    if base is None:
        return document
    if not isinstance(base, str):
        where = f"{document.place('extends')}: extends"
        raise UsageError("expected the path or the name of a recipe", where=where)
    try:
        found = find_recipe(base, path.parent)
    except UsageError as error:
        where = f"{document.place('extends')}: extends"
        raise UsageError(error.what, where=where, hint=error.hint) from None
    below = _read_with_bases(found, (*above, here))
    for own in ("name", "description"):  # Refs begin with the name, so it is never inherited.
        below.values.pop(own, None)
    _take_back(below, document)
    return merge(below, document)


def _take_back(below: Document, document: Document) -> None:
    """Remove what a base says of where a snapshot's files lie, where the recipe itself says it."""
    snapshots = document.values.get("snapshots")
    for name, entry in snapshots.items() if isinstance(snapshots, dict) else ():
        base = (below.values.get("snapshots") or {}).get(name)
        if isinstance(entry, dict) and isinstance(base, dict):
            for key in superseded(entry):
                base.pop(key, None)


def _shape(
    document: Document, path: Path, overrides: tuple[Override, ...], problems: Problems
) -> Recipe:
    values = document.values
    check = _Check(document, problems)
    check.keys(values, RECIPE_KEYS)
    name = check.text(values, "name", default=path.stem)
    if not _NAME.fullmatch(name):
        check.problem("a name is letters, digits, _ and -, a letter first", "name")
    snapshots = {
        key: _snapshot(check, key, value)
        for key, value in check.mapping(values, "snapshots").items()
        if value is not None
    }
    steps = {
        key: _step(check, key, value)
        for key, value in check.mapping(values, "steps").items()
        if value is not None
    }
    for key in steps:
        check.name(key, _NAME, "steps")
        if key in snapshots:
            check.problem(f"'{key}' is both a step and a snapshot", "steps", key)
    for key in snapshots:
        check.name(key, SNAPSHOT_NAME, "snapshots")
    if not steps:
        check.problem("a recipe needs steps", "steps")
    description = check.text(values, "description", default="")
    return Recipe(name, description, path, snapshots, steps, document, overrides)


def snapshot_entry(name: str, values: dict[str, Any], source: str) -> SnapshotFiles:
    """An entry of `snapshots:` that a command line gives; UsageError if it is wrong."""
    document = Document({"snapshots": {name: values}}, {(): Place(source)})
    problems = Problems(source)
    entry = _snapshot(_Check(document, problems), name, values)
    problems.raise_any()
    return replace(entry, where=source)


def _snapshot(check: _Check, name: str, value: Any) -> SnapshotFiles:
    where = ("snapshots", name)
    written = check.as_mapping(value, *where)
    check.keys(written, SNAPSHOT_KEYS, *where)
    values = {key: item for key, item in written.items() if item is not None}
    found = problems_of(values)
    for key, what, hint in found:
        check.problem(what, *where, *([key] if key else []), hint=hint)
    if found:
        values = {}

    def base(key: str) -> Path:
        place = check.document.place(*where, key)
        return Path(place.source).parent if place.line is not None else Path()

    return read_entry(name, values, base, lambda key: str(check.document.place(*where, key)))


def _step(check: _Check, name: str, value: Any) -> Step:
    values = check.as_mapping(value, "steps", name)
    check.keys(values, STEP_KEYS, "steps", name)
    stage = check.text(values, "stage", "steps", name, default="")
    if "stage" not in values:
        check.problem("needs a stage", "steps", name)
    inputs = check.mapping(values, "inputs", "steps", name)
    return Step(
        name,
        stage,
        check.mapping(values, "config", "steps", name),
        {
            role: check.texts(inputs, role, "steps", name, "inputs")
            for role in inputs
            if inputs[role] is not None
        },
        _for_each(check, values, name),
        check.mapping(values, "execution", "steps", name),
    )


def _for_each(
    check: _Check, values: Mapping[str, Any], name: str
) -> str | tuple[str, ...] | Checkpoints | None:
    """What a step repeats over, as written: all snapshots, a list, or a step's checkpoints."""
    written = values.get("for_each")
    if written is None or written == "snapshots":
        return written
    if not isinstance(written, dict):
        return check.texts(values, "for_each", "steps", name)
    where = ("steps", name, "for_each")
    check.keys(written, ("checkpoints",), *where)
    return Checkpoints(check.text(written, "checkpoints", *where, default=""))


class _Check:
    """Reads a value of the expected type, or notes a problem and gives an empty one."""

    def __init__(self, document: Document, problems: Problems) -> None:
        self.document, self.problems = document, problems

    def problem(self, what: str, *where: str, hint: str | None = None) -> None:
        path = ".".join(where)
        place = without_secrets(str(self.document.place(*where)))
        self.problems.add(what, where=f"{place}: {path}" if path else place, hint=hint)

    def keys(self, values: Mapping[str, Any], known: tuple[str, ...], *where: str) -> None:
        for key in values:
            if key not in known:
                self.problem(f"unknown key '{key}'{did_you_mean(key, known)}", *where, key)

    def name(self, name: str, pattern: re.Pattern[str], *where: str) -> None:
        if not pattern.fullmatch(name):
            self.problem(f"'{name}' cannot be a name: letters, digits, _ and -", *where, name)
        elif name in RESERVED:
            self.problem(f"'{name}' has a meaning of its own and cannot be a name", *where, name)

    def as_mapping(self, value: Any, *where: str) -> dict[str, Any]:
        if value is None:
            return {}
        if not isinstance(value, dict):
            self.problem(f"expected keys and values, got {value!r}", *where)
            return {}
        return value

    def mapping(self, values: Mapping[str, Any], key: str, *where: str) -> dict[str, Any]:
        return self.as_mapping(values.get(key), *where, key)

    def text(self, values: Mapping[str, Any], key: str, *where: str, default: str) -> str:
        value = values.get(key, default)
        if not isinstance(value, str):
            self.problem(f"expected text, got {value!r}", *where, key)
            return default
        return value

    def texts(self, values: Mapping[str, Any], key: str, *where: str) -> tuple[str, ...]:
        """One text or a list of texts."""
        value = values.get(key)
        items = value if isinstance(value, list) else [] if value is None else [value]
        if not all(isinstance(item, str) for item in items):
            self.problem(f"expected a name or a list of names, got {value!r}", *where, key)
            return ()
        return tuple(items)
