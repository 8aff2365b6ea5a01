"""What an artifact says, against the program that made it: what the store alone cannot check."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from artifacts_schema.errors import UsageError
from artifacts_schema.manifest import Manifest
from artifacts_schema.store import Store, layout
from artifacts_schema.store.verify import Problem, verify
from stages.engine.registry import stages


def check_artifact(store: Store, manifest: Manifest, *, full: bool = True) -> list[Problem]:
    """Everything that is wrong with an artifact; without `full`, by file sizes alone.

    Raises StoreError if the store cannot be read.
    """
    problems = verify(store, manifest, full=full)
    if full and not problems:
        place = layout.manifest(manifest.stage, manifest.key)
        problems = [Problem(place, what) for what in _wrong_statements(manifest)]
    return problems


def _wrong_statements(manifest: Manifest) -> Iterator[str]:
    """What the stage would not have said; nothing where another version of it is installed."""
    stage = stages().get(manifest.stage)
    if stage is None or stage.version != manifest.version:
        return
    if manifest.reproducible != stage.reproducible:
        yield f"it says reproducible: {manifest.reproducible}, its stage: {stage.reproducible}"
    whole = manifest.interim_of is None
    kinds = {name: output.kind for name, output in manifest.outputs.items()}
    if not kinds.items() <= stage.outputs.items() or (whole and len(kinds) < len(stage.outputs)):
        yield "its outputs are not those of its stage"
    if whole and stage.handles_documents and manifest.conservation is None:
        yield "it does not account for its records"
    try:
        config = stage.Config.parse(manifest.identity, where=stage.name).plain()
    except UsageError as error:
        yield f"its identity is not a config of its stage: {error.what}"
        return
    if not _agrees(manifest.config, config):
        yield "its config differs from the defaults where its identity names no value"


def _agrees(stored: Any, expected: Any) -> bool:
    """Whether all values of a stored config are expected; fields that came later are not in it."""
    if isinstance(stored, Mapping) and isinstance(expected, Mapping):
        return all(
            name in expected and _agrees(value, expected[name]) for name, value in stored.items()
        )
    if isinstance(stored, list) and isinstance(expected, list):
        return len(stored) == len(expected) and all(map(_agrees, stored, expected))
    return bool(stored == expected)
