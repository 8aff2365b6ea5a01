"""Why a step must run: how what is asked differs from what its name meant before."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from artifacts_schema.manifest import InputRef, Manifest

MISSING = "missing"
_SHOWN = 48
_ABSENT = object()


def config_changes(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    """`a.b: 3 → 4` for every field that differs between two plain configs, nested ones by path."""
    return [
        f"{path}: {_shown(old)} → {_shown(new)}"
        for path, old, new in _differences("", before, after)
    ]


def without_new_defaults(config: Any, identity: Any, other: Any) -> Any:
    """A config without fields that `other` does not know and that stand at their default.

    Such a field came with a later program and changes no key.
    """
    if not isinstance(config, Mapping) or not isinstance(other, Mapping):
        return config
    told = identity if isinstance(identity, Mapping) else {}
    return {
        name: without_new_defaults(value, told.get(name), other.get(name, {}))
        for name, value in config.items()
        if name in other or name in told
    }


def input_changes(
    before: Mapping[str, Sequence[InputRef]],
    after: Mapping[str, Sequence[InputRef]],
    names: Mapping[str, str],
) -> list[str]:
    """One sentence for each role whose content differs; `names`: which step a digest is from."""
    changes = []
    for role in sorted({*before, *after}):
        old = [reference.digest for reference in before.get(role, ())]
        new = [reference.digest for reference in after.get(role, ())]
        if old == new:
            continue
        if not old or not new:
            changes.append(f"input {role} {'added' if new else 'removed'}")
        elif sorted(old) == sorted(new):
            changes.append(f"order of input {role} changed")
        else:
            fresh = list(dict.fromkeys(names.get(d, d[:12]) for d in new if d not in old))
            shown = f" ({some(fresh)})" if fresh else f" ({len(old) - len(new)} fewer)"
            changes.append(f"input {role} changed{shown}")
    return changes


@dataclass(frozen=True)
class Asked:
    """What a step is to make, apart from its inputs."""

    version: int
    config: Mapping[str, Any]
    identity: Mapping[str, Any]

    def is_of(self, manifest: Manifest) -> bool:
        """Whether `manifest` was made by this version and config."""
        return manifest.version == self.version and manifest.identity == self.identity


def changes_since(
    previous: Manifest | None,
    asked: Asked,
    inputs: Mapping[str, Sequence[InputRef]] | None,
    names: Mapping[str, str],
) -> str:
    """Why nothing stands under the key of a step, told against what its name meant before.

    `inputs` is None while they are not known yet; then only version and config are compared.
    `names` tells which step a digest is from.
    """
    if previous is None:
        return MISSING
    parts = []
    if previous.version != asked.version:
        parts.append(f"version {previous.version} → {asked.version}")
    config = without_new_defaults(asked.config, asked.identity, previous.config)
    parts += [f"config {change}" for change in config_changes(previous.config, config)]
    if inputs is not None:
        parts += input_changes(previous.inputs, inputs, names)
    return "; ".join(parts) or MISSING


def some(names: Sequence[str], most: int = 3) -> str:
    """The first few names, and how many more there are."""
    rest = len(names) - most
    return ", ".join(names[:most]) + (f" and {rest} more" if rest > 0 else "")


def _differences(path: str, before: Any, after: Any) -> list[tuple[str, Any, Any]]:
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        stem = f"{path}." if path else ""
        pairs = [
            (f"{stem}{key}", before.get(key, _ABSENT), after.get(key, _ABSENT))
            for key in dict.fromkeys([*before, *after])
        ]
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        pairs = [(f"{path}.{i}", before[i], after[i]) for i in range(len(before))]
    else:
        return [] if before == after else [(path, before, after)]
    return [found for pair in pairs for found in _differences(*pair)]


def _shown(value: Any) -> str:
    if value is _ABSENT:
        return "unset"
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"
