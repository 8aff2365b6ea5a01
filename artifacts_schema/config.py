"""What a stage is told: `Config` is what (bears identity), `Execution` is how (does not)."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from typing import Any, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from artifacts_schema.errors import UsageError


class _Settings(BaseModel):
    """Frozen, strict about names, loud about values."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    @classmethod
    def parse(cls, values: Mapping[str, Any] | None, *, where: str) -> Self:
        """Validate plain values; a UsageError names every wrong field and the nearest right one."""
        try:
            return cls.model_validate(dict(values or {}))
        except ValidationError as error:
            problems = "; ".join(_describe(cls, problem) for problem in error.errors())
            raise UsageError(problems, where=where) from None

    def plain(self) -> dict[str, Any]:
        """All values, defaults included, as JSON-ready Python."""
        return self.model_dump(mode="json")


class Config(_Settings):
    """What a stage makes. Every field bears identity unless it equals its default."""

    def identity(self) -> dict[str, Any]:
        """The values that differ from their default, nested configs likewise.

        A field left at its default never enters a key, so adding a field with a default that keeps
        the old behaviour keeps every key. A changed default needs a new stage version.
        """
        return {
            name: _identity(getattr(self, name))
            for name, field in type(self).model_fields.items()
            if getattr(self, name) != field.get_default(call_default_factory=True)
        }


class Execution(_Settings):
    """How a stage runs: never part of a key, never able to change a byte of a `bytes` stage."""

    workers: int | None = Field(
        default=None, ge=1, description="Worker processes; by default one for each core."
    )
    threads: int = Field(default=1, ge=1, description="Native threads in each process.")
    verify_inputs: bool = Field(
        default=True, description="Hash input files before use; otherwise only sizes are compared."
    )


def _identity(value: Any) -> Any:
    if isinstance(value, Config):
        return value.identity()
    if isinstance(value, BaseModel):
        raise TypeError(f"{type(value).__name__} inside a Config must be a Config")
    if isinstance(value, Mapping):
        return {key: _identity(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_identity(item) for item in value]
    return value


def _describe(cls: type[BaseModel], problem: Any) -> str:
    location = [str(part) for part in problem["loc"]]
    path = ".".join(location)
    if problem["type"] == "extra_forbidden":
        return f"unknown key '{path}'{did_you_mean(location[-1], _keys_at(cls, location[:-1]))}"
    given = problem.get("input")
    shown = f" (got {given!r})" if isinstance(given, str | int | float | bool) else ""
    said = problem["msg"].removeprefix("Value error, ")
    return f"{path}: {said[:1].lower()}{said[1:]}{shown}" if path else said


def _keys_at(cls: type[BaseModel], path: list[str]) -> list[str]:
    """Field names of the model that `path` leads to; of all models, where the path is ambiguous."""
    model: Any = cls
    for part in path:
        field = getattr(model, "model_fields", {}).get(part)
        nested = _nested_models(field.annotation) if field is not None else []
        if nested:
            model = nested[0]
    return list(model.model_fields)


def _nested_models(annotation: Any) -> list[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [m for arg in getattr(annotation, "__args__", ()) for m in _nested_models(arg)]


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """', did you mean …?' with the nearest known name, or the list of names when none is near."""
    names = sorted(known)
    near = difflib.get_close_matches(name, names, n=1, cutoff=0.6)
    if near:
        return f", did you mean '{near[0]}'?"
    return f"; known here: {', '.join(names)}" if names else ""
