"""The recipes that come with Ingot: what they are called, and the data that they need."""

from __future__ import annotations

import os
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any

from artifacts_schema.errors import InputError
from flows.recipe.local_files import anchor_of
from flows.recipe.recipe import BUNDLED, Recipe, load_recipe
from flows.recipe.snapshot_entry import SnapshotFiles


@dataclass(frozen=True)
class Bundled:
    """A recipe that comes with Ingot, and where data of its own lies that is not there."""

    name: str
    description: str
    path: str
    snapshots: tuple[str, ...]
    missing: dict[str, str] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """As plain values."""
        return {**self.__dict__, "snapshots": list(self.snapshots)}


def bundled_recipes() -> list[Bundled]:
    """Every recipe that comes with Ingot, by name."""
    found = []
    for path in sorted(BUNDLED.glob("*.yaml")):
        recipe = load_recipe(path)
        missing = missing_data(recipe, recipe.snapshots)
        names = tuple(recipe.snapshots)
        found.append(Bundled(path.stem, recipe.description, str(path), names, missing))
    return found


def missing_data(recipe: Recipe, needed: Collection[str]) -> dict[str, str]:
    """Snapshot → the folder that a bundled recipe names for it, where that folder is not there.

    The folders are those of data beside a checkout of Ingot, so an installed one has none of them.
    """
    return {
        name: os.path.normpath(anchor_of(source))
        for name, source in recipe.snapshots.items()
        if name in needed and _is_bundled(source) and not anchor_of(source).is_dir()
    }


def check_bundled_data(recipe: Recipe, needed: Collection[str]) -> None:
    """Raise InputError that names all data that is missing, and how to point to it."""
    missing = missing_data(recipe, needed)
    if not missing:
        return
    listed = ", ".join(f"{name} ({recipe.snapshots[name].told})" for name in missing)
    first = next(iter(missing))
    raise InputError(
        f"the recipe reads data that does not come with Ingot: {listed}",
        where=str(recipe.path),
        hint=f"point each to yours: --set snapshots.{first}.root=FOLDER, with "
        f"--set 'snapshots.{first}.files=[PATTERN]' where the names differ",
    )


def _is_bundled(source: SnapshotFiles) -> bool:
    """Whether a bundled recipe says where the files lie, by a folder beside it."""
    return source.base == BUNDLED and source.root is not None and "://" not in source.root
