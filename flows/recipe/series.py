"""A series of snapshots: those of a store whose names match, in the order of their names.

    snapshots:
      crawls: {series: "crawl-*"}
    steps:
      ingest: {stage: ingest, for_each: crawl-*, inputs: {snapshot: each}}

A recipe with a series reads each snapshot that is in the store when the plan is made, so it does
not change when one is added (`ingot snapshot watch`, `ingot snapshot add`). A null leaves one out,
as it does for snapshots that the recipe itself names: `crawl-2024-30: null`.
"""

from __future__ import annotations

import re
from dataclasses import replace
from fnmatch import fnmatchcase

from artifacts_schema.errors import InputError
from artifacts_schema.store import Store
from flows.recipe.recipe import Recipe
from flows.recipe.snapshot_entry import SnapshotFiles

REFS = "snapshots/"
"""Prefix of the names that snapshots have in a store."""


def expand_series(recipe: Recipe, store: Store) -> Recipe:
    """The recipe with the snapshots of its series in their place.

    InputError for a series without a snapshot.
    """
    if not any(entry.series for entry in recipe.snapshots.values()):
        return recipe
    written = recipe.document.section("snapshots")
    names = [name.removeprefix(REFS) for name in store.refs(REFS)]
    snapshots: dict[str, SnapshotFiles] = {}
    for label, entry in recipe.snapshots.items():
        if entry.series is None:
            snapshots[label] = entry
            continue
        matches = [name for name in names if fnmatchcase(name, entry.series)]
        if not matches:
            raise InputError(
                f"the store has no snapshot '{entry.series}' yet",
                where=entry.where,
                hint="take one: `ingot snapshot add NAME FILES`, or `ingot snapshot watch`",
            )
        for name in sorted(matches, key=series_order):
            if name not in written:
                snapshots[name] = replace(entry, name=name, series=None, ref=f"{REFS}{name}")
    return replace(recipe, snapshots=snapshots)


def series_order(name: str) -> list[tuple[int, int, str]]:
    """A key that sorts names with their numbers as numbers: crawl-9 before crawl-10."""
    parts = re.findall(r"\d+|\D+", name)
    return [(0, int(part), "") if part.isdigit() else (1, 0, part) for part in parts]
