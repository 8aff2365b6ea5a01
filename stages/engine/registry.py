"""Stages by name: Ingot's own and anybody's, found by the entry point group `ingot.stages`."""

from __future__ import annotations

from functools import cache
from importlib.metadata import entry_points

from artifacts_schema.config import did_you_mean
from artifacts_schema.errors import UsageError
from stages.engine.protocol import Stage

GROUP = "ingot.stages"
_registered: dict[str, type[Stage]] = {}


def register(stage: type[Stage]) -> type[Stage]:
    """Make a stage known to this process alone, beside the installed ones."""
    _registered[stage.name] = stage
    return stage


def names() -> list[str]:
    """Names of all known stages, sorted; imports none of them."""
    return sorted({*_installed(), *_registered})


def stage_named(name: str) -> type[Stage]:
    """The stage called `name`. UsageError if there is none, or if it does not import."""
    if name in _registered:
        return _registered[name]
    if name not in _installed():
        raise UsageError(f"no stage '{name}'{did_you_mean(name, names())}")
    return _load(name)


def stages() -> dict[str, type[Stage]]:
    """All known stages by name."""
    return {name: stage_named(name) for name in names()}


@cache
def _installed() -> dict[str, str]:
    return {point.name: point.value for point in entry_points(group=GROUP)}


@cache
def _load(name: str) -> type[Stage]:
    point = next(point for point in entry_points(group=GROUP) if point.name == name)
    try:
        found = point.load()
    except Exception as error:
        raise UsageError(
            f"stage '{name}' does not import: {error}", where=point.value, hint="check its package"
        ) from error
    if not (isinstance(found, type) and issubclass(found, Stage) and found.name == name):
        raise UsageError(f"entry point '{name}' is not a Stage of that name", where=point.value)
    return found
