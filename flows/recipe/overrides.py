"""`--set STEP.path=value`: change one value of a recipe from the command line or a form.

`filter.duplicates.threshold=0.7` sets a field of a step's config, `snapshots.crawl-A.files=[…]` a
snapshot's files, `pretrain.execution.device=cpu` a field of a step's execution, which changes no
key. Whether the field exists and the value fits is checked with the whole recipe.

`files`, `paths`, `crawl`, `dataset` and `model` say where a snapshot's files lie, so setting one
takes back the others and what belonged to them, unless that is set too or the new files are
relative to it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from artifacts_schema.config import did_you_mean
from artifacts_schema.errors import UsageError
from flows.recipe.reading import Document, Place, Where, parse_value
from flows.recipe.snapshot_entry import PLACES, SNAPSHOT_KEYS, superseded

MAX_DEPTH = 50
"""Most names in a path; every config is far flatter."""
CONFIG, EXECUTION = "config", "execution"
"""What of a step a value can be set in; no stage's config has a field of the second name."""

Report = Callable[..., None]
"""Called with what is wrong, `where=` and `hint=`."""


@dataclass(frozen=True)
class Override:
    """One `--set`: the text as typed, the step, and the path within its config or execution."""

    text: str
    step: str
    path: tuple[str, ...]
    section: str = CONFIG


def apply_overrides(document: Document, texts: Sequence[str], report: Report) -> list[Override]:
    """Write every `--set` into `document`; what cannot be applied is reported and left out."""
    applied, placed = [], set[Where]()
    for text in presets_first(texts):
        source = f"--set {text}"
        try:
            where, value = _split(document, text, source)
            _set(document.values, where, value, source)
        except UsageError as error:
            report(error.what, where=error.where, hint=error.hint)
            continue
        for path in [p for p in document.places if p[: len(where)] == where]:
            del document.places[path]
        document.places[where] = Place(source)
        placed.add(where)
        if where[0] == "steps":
            _, step, section, *within = map(str, where)
            applied.append(Override(text, step, tuple(within), section))
    for where in placed:
        if where[0] == "snapshots":
            _take_back(_section(document, "snapshots")[str(where[1])], where, placed)
    return applied


def _take_back(entry: dict[str, Any], where: Where, placed: set[Where]) -> None:
    """Remove what the recipe says of where a snapshot's files lie, now that `--set` says it."""
    field = where[-1]
    if field not in PLACES:
        return
    for key in superseded({field: entry[field]}):
        if (*where[:-1], key) not in placed:
            entry.pop(key, None)


def presets_first(texts: Sequence[str]) -> list[str]:
    """`--set` texts in the order to apply them: a model's preset before numbers beside it."""
    return sorted(texts, key=lambda text: not text.partition("=")[0].strip().endswith(_PRESET))


_PRESET = "model.preset"


def split_setting(text: str) -> tuple[tuple[str, ...], Any]:
    """`a.b=value` as (("a", "b"), value); UsageError if it has another form."""
    path, equals, value = text.partition("=")
    parts = tuple(path.strip().split("."))
    if not equals or not all(parts) or len(parts) > MAX_DEPTH:
        raise UsageError("expected path=value", where=f"--set {text}")
    return parts, parse_value(value, f"--set {text}")


def set_value(values: dict[str, Any], text: str) -> tuple[str, ...]:
    """Write `a.b=value` into a plain config; returns the path. UsageError if it cannot be."""
    path, value = split_setting(text)
    _set(values, path, value, f"--set {text}")
    return path


def set_of_step(config: dict[str, Any], execution: dict[str, Any], text: str) -> None:
    """Write `path=value` into a step's config, `execution.path=value` into its execution."""
    path, _ = split_setting(text)
    if path[0] != EXECUTION:
        set_value(config, text)
    elif len(path) == 1:
        raise UsageError("name a value: execution.field=value", where=f"--set {text}")
    else:
        values = {EXECUTION: execution}
        set_value(values, text)


def _split(document: Document, text: str, source: str) -> tuple[Where, Any]:
    parts, value = split_setting(text)
    steps = _section(document, "steps")
    if parts[0] == "snapshots":
        return _snapshot_path(document, parts[1:], source), value
    if parts[0] not in steps:
        raise UsageError(
            f"no step '{parts[0]}'{did_you_mean(parts[0], [*steps, 'snapshots'])}", where=source
        )
    if len(parts) == 1:
        raise UsageError(f"name a config value: {parts[0]}.field=value", where=source)
    if parts[1] == EXECUTION:
        if len(parts) == 2:
            raise UsageError(f"name a value: {parts[0]}.execution.field=value", where=source)
        return ("steps", parts[0], *parts[1:]), value
    return ("steps", parts[0], CONFIG, *parts[1:]), value


def _snapshot_path(document: Document, parts: tuple[str, ...], source: str) -> Where:
    """Names of snapshots may hold dots, so the field is what follows the last one."""
    snapshots = _section(document, "snapshots")
    name, field = ".".join(parts[:-1]), parts[-1] if parts else ""
    if name not in snapshots:
        raise UsageError(f"no snapshot '{name}'{did_you_mean(name, snapshots)}", where=source)
    if field not in SNAPSHOT_KEYS:
        raise UsageError(
            f"a snapshot has no '{field}'{did_you_mean(field, SNAPSHOT_KEYS)}", where=source
        )
    return "snapshots", name, field


def _section(document: Document, name: str) -> dict[str, Any]:
    section = document.values.get(name)
    return section if isinstance(section, dict) else {}


def _set(values: dict[str, Any], where: Where, value: Any, source: str) -> None:
    """Follow `where` through mappings and list positions and put `value` at its end."""
    here: Any = values
    for depth, part in enumerate(where[:-1]):
        key = _position(here, part, where, depth, source)
        child = here[key] if isinstance(here, list) else here.get(key)
        names_model = part == "model" and where[depth + 1] == "preset"
        if child is None or names_model:  # A model by its name has no number of the one before.
            child = {}
            here[key] = child
        here = child
    here[_position(here, where[-1], where, len(where) - 1, source)] = value


def _position(here: Any, part: str | int, where: Where, depth: int, source: str) -> Any:
    shown = ".".join(str(p) for p in where[:depth])
    if isinstance(here, dict):
        return part
    if isinstance(here, list):
        if not str(part).isdecimal() or int(part) >= len(here):
            raise UsageError(
                f"{shown} is a list of {len(here)}, '{part}' is no position in it (from 0)",
                where=source,
            )
        return int(part)
    raise UsageError(f"{shown} is {here!r} and has no '{part}'", where=source)
