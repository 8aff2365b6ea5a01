"""The two one-line notations: references in `inputs`, and `--set STEP.path=value`.

| reference | meaning |
|---|---|
| `ingest` | that step; all its instances, or the matching one if both steps repeat alike |
| `ingest:documents` | the same, and which output, if the kind alone is ambiguous |
| `each` | the `for_each` item of this instance |
| `dedup[each]` | the instance of `dedup` with this instance's label |
| `dedup[previous]` | the instance before this one (none for the first) |
| `dedup[earlier]` | all instances before this one |
| `merge[earlier]` | of a step over `{levels: dedup}`: all of `dedup` before, in merged blocks |
| `merge` | of such a step: all of `dedup`, in merged blocks |
| `ingest[crawl-A]` | one instance by its label |
| `pretrain@1.6M` | a checkpoint that a step commits during its run, by its tokens |
| `crawl-A` | a snapshot of this recipe |
| `quickstart/filter:documents` | a name in the store |
| `@mine`, `@mine:documents` | the same, if a step or snapshot is called `mine` too |
| `3fa4bc90d1e2` | a key in the store, 12 or more hex digits |

`--set filter.duplicates.threshold=0.7` sets a field of a step's config,
`snapshots.crawl-A.files=[…]` a snapshot's files, `pretrain.execution.device=cpu` a field of a
step's execution, which changes no key. Whether the field exists and the value fits is checked with
the whole recipe. `files`, `paths`, `crawl`, `dataset` and `model` say where a snapshot's files are,
so setting one removes the others and the keys that belong to them, unless those are set too or the
new files are relative to them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from artifacts_schema.config import did_you_mean
from artifacts_schema.errors import UsageError
from artifacts_schema.manifest import InputRef
from artifacts_schema.store import Store
from flows.recipe.snapshot_entry import PLACES, SNAPSHOT_KEYS, superseded_keys
from flows.recipe.yaml_document import Document, KeyPath, Place, parse_value
from stages.engine.protocol import Stage

_WRITTEN = re.compile(
    r"(?P<name>[A-Za-z0-9][A-Za-z0-9._-]*)(\[(?P<index>[^\[\]]+)\])?(@(?P<at>[A-Za-z0-9.]+))?"
    r"(:(?P<output>[A-Za-z0-9_-]+))?"
)
_KEY = re.compile(r"[0-9a-f]{12,64}")


@dataclass(frozen=True)
class Reference:
    """A parsed reference. With `stored`, the name is one of the store instead of a step's."""

    text: str
    name: str
    index: str | None = None
    output: str | None = None
    stored: bool = False
    at: str | None = None

    @property
    def is_key(self) -> bool:
        """Whether the name could be an artifact's key."""
        return self.stored or bool(_KEY.fullmatch(self.name))


def parse_reference(text: str) -> Reference:
    """Parse a reference; UsageError if it has none of the forms above."""
    text = text.strip()
    if text.startswith("@") or "/" in text:  # No step, snapshot or key has a slash.
        name, _, output = text.removeprefix("@").partition(":")
        return Reference(text, name, None, output or None, stored=True)
    match = _WRITTEN.fullmatch(text)
    if match is None:
        raise UsageError(
            f"'{text}' is not a reference",
            hint="step, step:output, step[each], step[previous], step@1.6M, a snapshot, @name or "
            "a key",
        )
    return Reference(text, match["name"], match["index"], match["output"], at=match["at"])


def choose_output(
    kind: str, role: str, outputs: dict[str, str], reference: Reference, owner: str
) -> str:
    """The output that a role of `kind` takes; UsageError if none or several would fit."""
    if reference.output is not None:
        if reference.output not in outputs:
            near = did_you_mean(reference.output, outputs)
            raise UsageError(f"'{owner}' has no output '{reference.output}'{near}")
        if outputs[reference.output] != kind:
            actual = outputs[reference.output]
            raise UsageError(f"role '{role}' takes {kind}, '{reference.text}' is {actual}")
        return reference.output
    matches = [name for name, output_kind in outputs.items() if output_kind == kind]
    if not matches:
        kinds = ", ".join(sorted(set(outputs.values())))
        raise UsageError(f"role '{role}' takes {kind}, '{reference.text}' makes {kinds}")
    if len(matches) > 1:
        raise UsageError(
            f"'{reference.text}' makes several outputs of kind {kind}: {', '.join(matches)}",
            hint=f"write {reference.text}:{matches[0]}",
        )
    return matches[0]


def stored_input(store: Store, stage: type[Stage], role: str, text: str, *, where: str) -> InputRef:
    """The output that `REF` or `REF:output` of the store gives to a role; UsageError at `where`."""
    try:
        manifest, output = store.resolve(text)
        kinds = {name: info.kind for name, info in manifest.outputs.items()}
        reference = Reference(text, text, output=output)
        output = choose_output(stage.inputs[role].kind, role, kinds, reference, manifest.stage)
    except UsageError as error:
        raise UsageError(error.what, where=where, hint=error.hint) from None
    return store.reference(manifest, output)


MAX_DEPTH = 50
"""Most names in a path; every config is much flatter."""
CONFIG, EXECUTION = "config", "execution"
"""The parts of a step that can be set; no stage's config has a field `execution`."""

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
    """Write every `--set` into `document`; invalid ones are reported and skipped."""
    applied, set_paths = [], set[KeyPath]()
    for text in sort_presets_first(texts):
        source = f"--set {text}"
        try:
            parts, value = split_setting(text)
            where = _document_path(document, parts, source)
            _set_at(document.values, where, value, source)
        except UsageError as error:
            report(error.what, where=error.where, hint=error.hint)
            continue
        for path in [p for p in document.places if p[: len(where)] == where]:
            del document.places[path]
        document.places[where] = Place(source)
        set_paths.add(where)
        if where[0] == "steps":
            _, step, section, *within = map(str, where)
            applied.append(Override(text, step, tuple(within), section))
    for where in set_paths:
        *entry_path, field = where
        if entry_path[0] == "snapshots" and field in PLACES:  # It replaces the recipe's location.
            entry = document.section("snapshots")[str(entry_path[1])]
            for key in superseded_keys({field: entry[field]}):
                if (*entry_path, key) not in set_paths:
                    entry.pop(key, None)
    return applied


def sort_presets_first(texts: Sequence[str]) -> list[str]:
    """`--set` texts in the order to apply them: a model's preset before its numbers."""
    preset = "model.preset"
    return sorted(texts, key=lambda text: not text.partition("=")[0].strip().endswith(preset))


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
    _set_at(values, path, value, f"--set {text}")
    return path


def set_step_value(config: dict[str, Any], execution: dict[str, Any], text: str) -> None:
    """Write `path=value` into a step's config, `execution.path=value` into its execution."""
    parts, value = split_setting(text)
    source = f"--set {text}"
    section, *path = _step_path(parts, "", source)
    _set_at(config if section == CONFIG else execution, tuple(path), value, source)


def _step_path(parts: tuple[str, ...], step: str, source: str) -> KeyPath:
    """The path of a value within a step: in its config, or after `execution` in its execution."""
    if parts[:1] != (EXECUTION,):
        return (CONFIG, *parts)
    if len(parts) == 1:
        raise UsageError(f"name a value: {step}execution.field=value", where=source)
    return parts


def _document_path(document: Document, parts: tuple[str, ...], source: str) -> KeyPath:
    """The path of a value within a recipe; UsageError if it names no step or snapshot."""
    first, *rest = parts
    if first != "snapshots":
        steps = document.section("steps")
        if first not in steps:
            near = did_you_mean(first, [*steps, "snapshots"])
            raise UsageError(f"no step '{first}'{near}", where=source)
        if not rest:
            raise UsageError(f"name a config value: {first}.field=value", where=source)
        return "steps", first, *_step_path(tuple(rest), f"{first}.", source)
    # Names of snapshots may contain dots, so the field is what follows the last one.
    snapshots = document.section("snapshots")
    name, field = ".".join(rest[:-1]), rest[-1] if rest else ""
    if name not in snapshots:
        raise UsageError(f"no snapshot '{name}'{did_you_mean(name, snapshots)}", where=source)
    if field not in SNAPSHOT_KEYS:
        raise UsageError(
            f"a snapshot has no '{field}'{did_you_mean(field, SNAPSHOT_KEYS)}", where=source
        )
    return "snapshots", name, field


def _set_at(values: dict[str, Any], where: KeyPath, value: Any, source: str) -> None:
    """Follow `where` through mappings and list positions and put `value` at its end."""
    here: Any = values
    for depth, part in enumerate(where[:-1]):
        key = _find_position(here, part, where, depth, source)
        child = here[key] if isinstance(here, list) else here.get(key)
        names_model = part == "model" and where[depth + 1] == "preset"
        if child is None or names_model:  # A preset replaces the numbers of the previous model.
            child = {}
            here[key] = child
        here = child
    here[_find_position(here, where[-1], where, len(where) - 1, source)] = value


def _find_position(here: Any, part: str | int, where: KeyPath, depth: int, source: str) -> Any:
    path = ".".join(str(p) for p in where[:depth])
    if isinstance(here, dict):
        return part
    if isinstance(here, list):
        if not str(part).isdecimal() or int(part) >= len(here):
            raise UsageError(
                f"{path} is a list of {len(here)}, '{part}' is not a position in it (from 0)",
                where=source,
            )
        return int(part)
    raise UsageError(f"{path} is {here!r} and has no '{part}'", where=source)
