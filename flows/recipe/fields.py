"""The values that a recipe writes, as fields of a form: title, sentence, type and range of each.

What its author wrote is what people change. A field is a scalar, or a list of scalars, of a step's
config or of where a snapshot's files lie; phases are reached by position. Everything else is
reached by `--set`. `flows/orchestration/forms.py` and `ingot run --ask` show the same fields.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from artifacts_schema.errors import UsageError
from flows.recipe.recipe import Recipe
from stages.engine.protocol import stage_named

SEPARATOR = "__"
"""Between the parts of a field's key: dots would nest it in Prefect's forms."""
SCALARS = ("string", "integer", "number", "boolean")
_LIMITS = (
    "type", "enum", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "minLength",
    "pattern",
)  # fmt: skip
_PLACES = ("root", "crawl", "dataset")
Schema = Mapping[str, Any]


@dataclass(frozen=True)
class RecipeField:
    """A value of a recipe: `path` is that of `--set`, `shape` its JSON schema, default included."""

    path: str
    description: str
    shape: dict[str, Any]

    @property
    def key(self) -> str:
        """Its key in a form: `filter__duplicates__threshold`."""
        return self.path.replace(".", SEPARATOR)

    @property
    def default(self) -> Any:
        """What the recipe says."""
        return self.shape["default"]

    def setting(self, value: Any) -> str:
        """`filter.duplicates.threshold=0.7`: what `--set` takes."""
        return f"{self.path}={json.dumps(value, ensure_ascii=False)}"


def recipe_fields(recipe: Recipe) -> list[RecipeField]:
    """The fields of `recipe`: its snapshots' places, then the configs of its steps, as written."""
    fields = []
    for name, entry in recipe.document.section("snapshots").items():
        for key in _PLACES:
            if isinstance(entry, dict) and isinstance(entry.get(key), str):
                shape = {"type": "string", "minLength": 1, "default": entry[key]}
                about = f"Where the files of the snapshot {name} are."
                fields.append(RecipeField(f"snapshots.{name}.{key}", about, shape))
    for step in recipe.steps.values():
        try:
            schema: Schema = stage_named(step.stage).Config.model_json_schema()
        except UsageError:
            continue  # The plan reports it.
        models = schema.get("$defs", {})
        for path, value, part in _written(step.config, schema, models, (step.name,)):
            leaf = _shape(part, value)
            if leaf is not None:
                about = str(part.get("description", "")) or f"{path[-1]} of {step.name}."
                fields.append(RecipeField(".".join(path), about, {**leaf, "default": value}))
    return fields


def changed_settings(fields: list[RecipeField], values: Mapping[str, Any]) -> list[str]:
    """`--set` texts of the values (by key) that differ from the recipe's; None and "" are omitted.

    UsageError for a key that no field has.
    """
    known = {field.key: field for field in fields}
    settings = []
    for key, value in values.items():
        if key not in known:
            raise UsageError(f"no field '{key}'", hint="register the forms again: ingot up")
        if value not in (None, "") and value != known[key].default:
            settings.append(known[key].setting(value))
    return settings


def _written(
    value: Any, schema: Schema, models: Schema, path: tuple[str, ...]
) -> Iterator[tuple[tuple[str, ...], Any, Schema]]:
    """(path, value, schema) of each leaf that a config writes."""
    part = _resolve(schema, models)
    if isinstance(value, Mapping):
        for name, inner in value.items():
            known = part.get("properties", {}).get(name)
            extra = part.get("additionalProperties")
            inner_schema = known or (extra if isinstance(extra, Mapping) else {})
            yield from _written(inner, inner_schema, models, (*path, str(name)))
    elif isinstance(value, list) and any(isinstance(one, Mapping) for one in value):
        for index, inner in enumerate(value):
            items = part.get("items", {})
            yield from _written(inner, items, models, (*path, str(index)))
    else:
        yield path, value, {**part, "description": schema.get("description", "")}


def _resolve(schema: Schema, models: Schema) -> Schema:
    """A schema without references, and without the null of an optional value."""
    while True:
        branches = [one for one in schema.get("anyOf", ()) if one.get("type") != "null"]
        if "$ref" in schema:
            schema = models.get(str(schema["$ref"]).rsplit("/", 1)[-1], {})
        elif len(branches) == 1:
            schema = branches[0]
        else:
            return schema


def _shape(schema: Schema, value: Any) -> dict[str, Any] | None:
    """The JSON schema of a field that holds `value`; None if no flat field can.

    Of a union, the branch that the written value is of: `sequences_per_batch` is a number where
    the recipe writes one.
    """
    if isinstance(value, list):
        presets = schema.get("presets")
        items = {"type": "string", "enum": presets} if presets else schema.get("items", {})
        texts = all(isinstance(one, str) for one in value)
        is_flat = items.get("type") in SCALARS and (texts or items["type"] != "string")
        known = all(one in presets for one in value) if presets else True
        return {"type": "array", "items": dict(items)} if is_flat and known else None
    for branch in schema.get("anyOf", [schema]):
        if branch.get("type") in SCALARS and is_of(value, branch["type"]):
            return {name: branch[name] for name in _LIMITS if name in branch}
    return None


def is_of(value: Any, kind: str) -> bool:
    """Whether a value is of one of `SCALARS`; a whole number is a number too."""
    if isinstance(value, bool) or kind == "boolean":
        return isinstance(value, bool) and kind == "boolean"
    allowed = {"integer": int, "number": (int, float), "string": str}[kind]
    return isinstance(value, allowed)  # type: ignore[arg-type]
