"""Flat forms: the fields that the UI shows for a recipe or a stage, and what the answers mean.

A form is a JSON schema without nesting (but for a recipe's `values`), so that every field has its
own description, range and error. A stage's form is made of its `Config`: a nested model becomes
fields with dotted titles; a list of models, a mapping or a union of types, which no flat field can
hold, is a text in YAML.

| key of a field | meaning |
|---|---|
| `store`, `profile`, `name` | as the command line's --store, --profile, --as |
| `input__ROLE` | a name in the store or a key, with `:output` if several would fit |
| `config__A__B` | the value `a.b` of the stage's config |
| `values` | a recipe's values by path, `filter__duplicates__threshold`: the only nested field |

`python -P -m flows.orchestration.forms` checks a run before it is queued. Stdin:
`{"entrypoint": …, "parameters": {…}}` of a deployment; stdout: `{"problem": text or null}`.
"""

from __future__ import annotations

import json
import re
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from textwrap import indent
from typing import Any

from artifacts_schema.errors import IngotError, UsageError
from artifacts_schema.store import Store
from flows.recipe.fields import RecipeField, changed_settings, recipe_fields
from flows.recipe.notation import stored_input
from flows.recipe.pipeline import Pipeline, Request, store_to_read
from flows.recipe.profile import load_profile
from flows.recipe.recipe import BUNDLED, Recipe, find_recipe, load_recipe
from flows.recipe.upstream import check_stored
from flows.recipe.yaml_document import parse_yaml
from stages.engine.protocol import Role, Stage, stage_named
from stages.engine.spec import StageSpec

STORE_PATTERN = r"^(/|[a-z][a-z0-9+.-]*://).+"
REFERENCE_PATTERN = r"^@?[A-Za-z0-9][A-Za-z0-9._@/\[\]-]*(:[A-Za-z0-9_-]+)?$"
MOST_NAMES = 200
"""Names of a kind that a form offers."""
NAME_FIELD = "name"
VALUES_FIELD = "values"
NAME_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9._@\[\]-]*(/[A-Za-z0-9][A-Za-z0-9._@\[\]-]*)*$"
_SCALARS = ("string", "integer", "number", "boolean")
_SCHEMA_KEYS = (
    "type", "enum", "const", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum",
    "multipleOf", "minLength", "maxLength", "pattern", "items", "minItems", "maxItems", "format",
)  # fmt: skip
_YAML = {"type": "string", "format": "json-string"}


@dataclass
class Form:
    """Fields in the order in which they are shown."""

    fields: dict[str, dict[str, Any]] = field(default_factory=dict)
    required: list[str] = field(default_factory=list)

    def add(
        self,
        key: str,
        title: str,
        description: str,
        shape: Mapping[str, Any],
        *,
        required: bool = False,
    ) -> None:
        """Add a field; `shape` is its JSON schema, a default included where it has one."""
        about = {"title": title, "description": description, "position": len(self.fields)}
        self.fields[key] = {**shape, **about}
        if required:
            self.required.append(key)

    def fix(self, key: str, value: str) -> None:
        """Give a text field this value alone, which can neither be changed nor cleared."""
        about = {name: self.fields[key][name] for name in ("title", "description", "position")}
        self.fields[key] = {"type": "string", "enum": [value], "default": value, **about}
        self.required.append(key)

    def schema(self) -> dict[str, Any]:
        """As a JSON schema."""
        return {
            "title": "Parameters",
            "type": "object",
            "properties": self.fields,
            "required": self.required,
        }

    def defaults(self) -> dict[str, Any]:
        """The value of each field that has one before anybody types."""
        return {key: value["default"] for key, value in self.fields.items() if "default" in value}


# A recipe ----------------------------------------------------------------------------------------


def recipe_form(recipe: Recipe, store: str) -> Form:
    """The form of `pipeline/RECIPE`."""
    form = Form()
    _add_place(form, store, recipe)
    steps = list(recipe.steps)
    step = {"type": "string", "enum": steps}
    names = "|".join(re.escape(name) for name in [*steps, "snapshots"])
    change = {"type": "string", "pattern": rf"^({names})\.[^=]+="}
    form.add("start", "from", "First step to bring up to date.", step)
    form.add("through", "through", "Last step to bring up to date.", step)
    form.add(
        "overrides",
        "set",
        "Changes to the recipe, each STEP.path=value, as filter.duplicates.threshold=0.7.",
        {"type": "array", "items": change, "default": []},
    )
    fields = recipe_fields(recipe)
    if fields:
        form.add(VALUES_FIELD, "values", _VALUES, _values_shape(fields))
    form.add(
        "force",
        "force",
        "Steps to run even if their artifact exists; the new bytes are compared.",
        {"type": "array", "items": step, "default": []},
    )
    form.add(
        "strict_code",
        "strict code",
        "Rerun steps whose program changed at an equal version.",
        {"type": "boolean", "default": False},
    )
    form.add(
        "accept_code",
        "accept code",
        "Continue from checkpoints that another program left under the same key.",
        {"type": "boolean", "default": False},
    )
    form.add("by", "by", "Who asks, for `ingot cost`.", {"type": "string"})
    return form


_VALUES = "What the recipe writes; a value that is left as it is, or cleared, is the recipe's."


def _values_shape(fields: Sequence[RecipeField]) -> dict[str, Any]:
    """An object with a property for each field, titled by its path."""
    properties = {
        one.key: {**one.shape, "title": one.path, "description": one.description, "position": place}
        for place, one in enumerate(fields)
    }
    return {"type": "object", "properties": properties}


def check_recipe(parameters: Mapping[str, Any]) -> None:
    """Raise the error that would reject a run of `pipeline`; reads no data files."""
    request = request_from(parameters)
    pipeline = Pipeline.bind(request)
    graph = pipeline.graph
    for flag, name in (
        ("from", request.start),
        ("through", request.through),
        *(("force", name) for name in request.force),
    ):
        if name is not None:
            graph.select(name, flag)
    pipeline.check()


def request_from(parameters: Mapping[str, Any]) -> Request:
    """The request of a run of `pipeline` with these parameters; cleared fields are omitted.

    What its `values` change becomes `--set`, before the `overrides`, which therefore win.
    """
    values = {name: value for name, value in parameters.items() if value not in (None, "")}
    for name in ("overrides", "force"):
        values[name] = tuple(values.get(name, ()))
    written = values.pop(VALUES_FIELD, None)
    if written:
        recipe = load_recipe(find_recipe(values["recipe"]))
        settings = changed_settings(recipe_fields(recipe), written)
        values["overrides"] = (*settings, *values["overrides"])
    return Request(**values)


# A stage -----------------------------------------------------------------------------------------


def stored_names(place: str) -> dict[str, list[str]]:
    """What the inputs of a kind can be chosen from: names of a store, with `:output` if needed.

    The newest `MOST_NAMES` of a kind. Empty if there is no store at `place`, or it cannot be read.
    """
    names: dict[str, list[tuple[str, str]]] = {}
    try:
        store = Store.open(place, create=False)
        for name, ref in store.refs().items():
            manifest = store.manifest(ref.stage, ref.key)
            if manifest is None:
                continue
            finished = str(manifest.telemetry.get("finished", ""))
            kinds = Counter(output.kind for output in manifest.outputs.values())
            for output, made in manifest.outputs.items():
                text = name if kinds[made.kind] == 1 else f"{name}:{output}"
                names.setdefault(made.kind, []).append((finished, text))
    except IngotError:
        return {}
    return {
        kind: sorted(text for _, text in sorted(known)[-MOST_NAMES:])
        for kind, known in names.items()
    }


def stage_form(
    stage: type[Stage], store: str, names: Mapping[str, Sequence[str]] | None = None
) -> Form:
    """The form of `stage/NAME`: the store, its inputs, every value of its config.

    `names` are those of the store by kind; an input is chosen from them, or typed.
    """
    form = Form()
    _add_place(form, store, None)
    form.add(
        NAME_FIELD,
        "name",
        "Names the artifact, so that other forms can refer to it.",
        {"type": "string", "pattern": NAME_PATTERN},
    )
    for name, role in stage.inputs.items():
        _add_input(form, name, role, (names or {}).get(role.kind, ()))
    schema = stage.Config.model_json_schema()
    for path, description, shape, required in _leaves(schema, schema.get("$defs", {}), (), {}):
        key, title = "__".join(("config", *path)), ".".join(path)
        form.add(key, title, description, shape, required=required)
    return form


def stage_spec(store: Store, name: str, values: Mapping[str, Any]) -> StageSpec:
    """The spec of the form's `values`, fully validated.

    Raises UsageError for a wrong value or reference, naming the field.
    """
    stage = stage_named(name)
    form = stage_form(stage, "")
    unknown = sorted(set(values) - set(form.fields))
    if unknown:
        raise UsageError(f"no field '{unknown[0]}'", where=f"stage {name}")
    filled = {**form.defaults(), **{k: v for k, v in values.items() if v is not None}}
    config: dict[str, Any] = {}
    for key, value in filled.items():
        kind, *path = key.split("__")
        if kind == "config" and path:
            _put(config, path, _read(form.fields[key], value))
    references = {
        role: [
            stored_input(store, stage, role, text, where=f"input '{role}'")
            for text in _split_texts(filled[key])
        ]
        for role in stage.inputs
        if (key := f"input__{role}") in filled
    }
    execution = load_profile(filled.get("profile") or None, BUNDLED).execution(name, {}, {})
    spec = StageSpec.make(stage, config, references, execution, where=f"stage {name}")
    check_stored(stage, spec.config, spec.inputs, store, where=f"stage {name}")
    return spec


def list_inputs(values: Mapping[str, Any]) -> list[str]:
    """The references that a stage's form names."""
    return [
        text
        for key, value in values.items()
        if key.startswith("input__") and value
        for text in _split_texts(value)
    ]


def _add_place(form: Form, store: str, recipe: Recipe | None) -> None:
    form.add(
        "store",
        "store",
        "Where artifacts are stored: an absolute folder or a URL.",
        {"type": "string", "pattern": STORE_PATTERN, "default": store},
    )
    folders = [BUNDLED, *([recipe.path.parent] if recipe else [])]
    known = sorted({p.stem for folder in folders for p in (folder / "profiles").glob("*.yaml")})
    shape: dict[str, Any] = {"type": "string", "enum": known} if known else {"type": "string"}
    form.add("profile", "profile", "Where and how it runs; does not change results.", shape)


def _add_input(form: Form, name: str, role: Role, names: Sequence[str]) -> None:
    one: dict[str, Any] = {"type": "string", "pattern": REFERENCE_PATTERN}
    if names:
        choice = {"type": "string", "enum": list(names), "title": "in the store"}
        one = {"anyOf": [choice, {**one, "title": "another name or a key"}]}
    required = role.least > 0
    if role.most == 1:
        description = f"A name in the store (RECIPE/STEP) or a key, of kind {role.kind}."
        shape: dict[str, Any] = one
    else:
        description = f"Names in the store (RECIPE/STEP) or keys, of kind {role.kind}, in order."
        shape = {"type": "array", "items": one, **({"minItems": role.least} if required else {})}
    form.add(f"input__{name}", f"input: {name}", description, shape, required=required)


def _leaves(
    schema: Mapping[str, Any],
    models: Mapping[str, Any],
    parents: tuple[str, ...],
    defaults: Mapping[str, Any],
) -> Iterator[tuple[tuple[str, ...], str, dict[str, Any], bool]]:
    """(path, description, shape, required) of every value of a model.

    `defaults` are those of its owner, which override the model's own.
    """
    for name, value in schema.get("properties", {}).items():
        path, description = (*parents, name), value.get("description", "")
        default = defaults.get(name, value.get("default"))
        nested = models.get(str(value.get("$ref")).rsplit("/", 1)[-1])
        if nested is not None and nested.get("type") == "object":
            yield from _leaves(nested, models, path, default or {})
            continue
        shape = _flat(nested if nested is not None else value)
        if default is not None and _is_text(shape):
            shape["default"] = json.dumps(_brief(default, value, models), indent=2)
        elif default is not None:
            shape["default"] = default
        required = name in schema.get("required", ()) and name not in defaults
        if _is_text(shape):
            description += " In YAML or JSON."
        yield path, description, shape, required


def _brief(default: Any, value: Mapping[str, Any], models: Mapping[str, Any]) -> Any:
    """A default without the fields that equal their own defaults; at least one field stays."""
    if isinstance(default, list):
        return [_brief(one, value.get("items", {}), models) for one in default]
    fields = models.get(str(value.get("$ref")).rsplit("/", 1)[-1], {}).get("properties", {})
    if not isinstance(default, dict) or not fields:
        return default
    brief = {
        name: _brief(one, fields[name], models)
        for name, one in default.items()
        if one != fields[name].get("default")
    }
    return brief or {name: default[name] for name in list(fields)[:1] if name in default}


def _flat(value: Mapping[str, Any]) -> dict[str, Any]:
    """The JSON schema of a flat field; a YAML text if a flat field cannot hold the value."""
    types = [branch for branch in value.get("anyOf", [value]) if branch.get("type") != "null"]
    shape = {key: types[0][key] for key in _SCHEMA_KEYS if key in types[0]}
    is_list = shape.get("type") == "array" and shape.get("items", {}).get("type") in _SCALARS
    return shape if len(types) == 1 and (shape.get("type") in _SCALARS or is_list) else dict(_YAML)


def _is_text(shape: Mapping[str, Any]) -> bool:
    return shape.get("format") == _YAML["format"]


def _read(field: Mapping[str, Any], value: Any) -> Any:
    """The value of a field, parsed if the field is a YAML text."""
    if _is_text(field) and isinstance(value, str):
        return parse_yaml(f"value:\n{indent(value, '  ')}", str(field["title"])).values["value"]
    return value


def _put(config: dict[str, Any], path: list[str], value: Any) -> None:
    for name in path[:-1]:
        config = config.setdefault(name, {})
    config[path[-1]] = value


def _split_texts(value: Any) -> list[str]:
    texts = value if isinstance(value, list) else [value]
    return [str(text).strip() for text in texts if str(text).strip()]


TAG = "ingot"
"""Tag of every flow run of Ingot, so that automations can select them."""
PIPELINE = "flows.orchestration.flow.pipeline"
STAGE_PREFIX = "stage_"
STAGES = f"flows.orchestration.flow.{STAGE_PREFIX}"
"""Entrypoints of the flows; that of a stage ends with its name."""


def find_problem(entrypoint: str, parameters: Mapping[str, Any]) -> str | None:
    """The problem of a run's parameters; None if the run would start."""
    place = readable = str(parameters["store"])
    try:
        with store_to_read(place) as readable:
            if entrypoint == PIPELINE:
                check_recipe({**parameters, "store": readable})
            elif entrypoint.startswith(STAGES):
                values = {name: value for name, value in parameters.items() if name != "store"}
                stage_spec(Store.open(readable), entrypoint.removeprefix(STAGES), values)
    except IngotError as error:
        return str(error).replace(readable, place)
    return None


if __name__ == "__main__":
    run = json.load(sys.stdin)
    print(json.dumps({"problem": find_problem(run["entrypoint"], run["parameters"])}))
