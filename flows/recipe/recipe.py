"""A recipe as it is written in YAML: read, merged and checked for its shape.

    name: demo
    description: One sentence.
    extends: base.yaml                 # deep merge; a null removes a step, snapshot or role,
                                       # and a step or snapshot from the lists that name it too
    snapshots:
      crawl-A: {root: ../data, files: ["warc/*.warc.gz"]}
    steps:
      ingest:   {stage: ingest, for_each: snapshots, inputs: {snapshot: each}}
      dedup:    {stage: dedup, config: {preset: …}, inputs: {documents: ingest}}
      measure:  {stage: evaluate, for_each: {checkpoints: pretrain}, inputs: {checkpoint: each}}
      merge:    {stage: merge_indexes, for_each: {levels: dedup}, inputs: {dedup_index: each}}

Only the shape is checked here; `graph` checks whether stages, roles and values fit together.
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
from flows.recipe.notation import Override, apply_overrides
from flows.recipe.snapshot_entry import (
    SNAPSHOT_KEYS,
    SnapshotFiles,
    find_problems,
    read_entry,
    superseded_keys,
)
from flows.recipe.yaml_document import Document, Place, merge, read_yaml
from stages.engine.remote import without_secrets

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
class Levels:
    """What `for_each: {levels: STEP}` repeats over: blocks of 2, 4, 8, … instances of the step."""

    step: str


@dataclass(frozen=True)
class Step:
    """A stage placed in a recipe, as written."""

    name: str
    stage: str
    config: dict[str, Any] = field(default_factory=dict)
    inputs: dict[str, tuple[str, ...]] = field(default_factory=dict)
    for_each: str | tuple[str, ...] | Checkpoints | Levels | None = None
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
    """The problems of a recipe, reported together."""

    def __init__(self, where: str) -> None:
        self.where = where
        self.messages: list[str] = []

    def add(self, what: str, *, where: str, hint: str | None = None) -> None:
        """Note a problem once."""
        text = str(UsageError(what, where=where, hint=hint))
        if text not in self.messages:
            self.messages.append(text)

    def raise_any(self) -> None:
        """Raise one UsageError that lists every problem, if there is any."""
        if len(self.messages) == 1:
            raise UsageError(self.messages[0])
        if self.messages:
            lines = "".join(f"\n  {text}" for text in self.messages)
            raise UsageError(f"{len(self.messages)} problems:{lines}", where=self.where)


def find_recipe(name: str, folder: Path = Path()) -> Path:
    """The file of a recipe: a path from `folder`, or one that comes with Ingot.

    The latter are found by name (`quickstart`) or by their path in Ingot's sources
    (`flows/recipes/quickstart.yaml`) from every folder; an existing file takes precedence.
    """
    path = folder / name
    if path.exists() and not path.is_dir():
        return path
    known = {file.stem: file for file in BUNDLED.glob("*.yaml")}
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
    recipe = _read_shape(document, path, tuple(applied), problems)
    problems.raise_any()
    return recipe


def _read_with_bases(path: Path, readers: tuple[Path, ...]) -> Document:
    """The recipe at `path` merged over its base; `readers` are the recipes that extend it."""
    here = Path(os.path.realpath(path))  # `resolve` of a link to itself is a RuntimeError.
    if here in readers:
        chain = " → ".join(recipe.name for recipe in (*readers[readers.index(here) :], here))
        raise UsageError(f"recipes extend each other: {chain}", where=str(path))
    document = read_yaml(path)
    base = document.values.get("extends")
    if base is None:
        return document
    where = f"{document.place('extends')}: extends"
    if not isinstance(base, str):
        raise UsageError("expected the path or the name of a recipe", where=where)
    try:
        file = find_recipe(base, path.parent)
    except UsageError as error:
        raise UsageError(error.what, where=where, hint=error.hint) from None
    extended = _read_with_bases(file, (*readers, here))
    for key in ("name", "description"):  # Refs begin with the name, so it is never inherited.
        extended.values.pop(key, None)
    _drop_superseded(extended, document)
    return merge(extended, document)


def _drop_superseded(base: Document, document: Document) -> None:
    """Remove a base's location of a snapshot's files if the recipe itself gives one."""
    for name, entry in document.section("snapshots").items():
        base_entry = base.section("snapshots").get(name)
        if isinstance(entry, dict) and isinstance(base_entry, dict):
            for key in superseded_keys(entry):
                base_entry.pop(key, None)


def _read_shape(
    document: Document, path: Path, overrides: tuple[Override, ...], problems: Problems
) -> Recipe:
    values = document.values
    check = _Check(document, problems)
    check.keys(values, RECIPE_KEYS)
    name = check.text(values, "name", default=path.stem)
    if not _NAME.fullmatch(name):
        check.problem("a name is letters, digits, _ and -, a letter first", "name")
    snapshots = {
        key: _read_snapshot(check, key, value)
        for key, value in check.mapping(values, "snapshots").items()
        if value is not None
    }
    written = {**check.mapping(values, "snapshots"), **check.mapping(values, "steps")}
    removed = {key for key, value in written.items() if value is None}
    steps = {
        key: _without(_read_step(check, key, value), removed)
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
    entry = _read_snapshot(_Check(document, problems), name, values)
    problems.raise_any()
    return replace(entry, where=source)


def _read_snapshot(check: _Check, name: str, value: Any) -> SnapshotFiles:
    where = ("snapshots", name)
    written = check.as_mapping(value, *where)
    check.keys(written, SNAPSHOT_KEYS, *where)
    values = {key: item for key, item in written.items() if item is not None}
    problems = find_problems(values)
    for key, what, hint in problems:
        check.problem(what, *where, *([key] if key else []), hint=hint)
    if problems:
        values = {}

    def base(key: str) -> Path:
        place = check.document.place(*where, key)
        return Path(place.source).parent if place.line is not None else Path()

    return read_entry(name, values, base, lambda key: str(check.document.place(*where, key)))


def _read_step(check: _Check, name: str, value: Any) -> Step:
    where = ("steps", name)
    values = check.as_mapping(value, *where)
    check.keys(values, STEP_KEYS, *where)
    stage = check.text(values, "stage", *where, default="")
    if "stage" not in values:
        check.problem("needs a stage", *where)
    written = check.mapping(values, "inputs", *where)
    roles = [role for role in written if written[role] is not None]
    inputs = {role: check.texts(written, role, *where, "inputs") for role in roles}
    config = check.mapping(values, "config", *where)
    for_each = _read_for_each(check, values, name)
    execution = check.mapping(values, "execution", *where)
    return Step(name, stage, config, inputs, for_each, execution)


def _without(step: Step, removed: set[str]) -> Step:
    """The step without what a null removed, in lists that have other items left.

    A reference that stands alone stays, and is then an error: the step needs it, or a null too.
    """

    def rest(texts: tuple[str, ...]) -> tuple[str, ...]:
        left = tuple(text for text in texts if re.split(r"[\[@:]", text.strip())[0] not in removed)
        return left or texts

    inputs = {role: rest(texts) for role, texts in step.inputs.items()}
    repeats = rest(step.for_each) if isinstance(step.for_each, tuple) else step.for_each
    return replace(step, inputs=inputs, for_each=repeats)


def _read_for_each(
    check: _Check, values: Mapping[str, Any], name: str
) -> str | tuple[str, ...] | Checkpoints | Levels | None:
    """What a step repeats over, as written: snapshots, a list, a step's checkpoints or levels."""
    written = values.get("for_each")
    if written is None or written == "snapshots":
        return written
    if not isinstance(written, dict):
        return check.texts(values, "for_each", "steps", name)
    where = ("steps", name, "for_each")
    check.keys(written, ("checkpoints", "levels"), *where)
    if "levels" in written and "checkpoints" in written:
        check.problem("give `checkpoints` or `levels`, not both", *where)
    if "levels" in written:
        return Levels(check.text(written, "levels", *where, default=""))
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
            self.problem(f"'{name}' is a reserved word and cannot be a name", *where, name)

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
