"""Runs of the stage over token shards made by hand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from packed_by_hand import Shards, read_megatron

from stages.export_tokens.stage import ExportTokens


@pytest.fixture
def export(run_stage: Callable[..., Any], given: Callable[..., Any]) -> Callable[..., Any]:
    """`export(*shards, execution=None, force=False, **config)` → the manifest.

    Shards are `Shards`, or their files.
    """

    def run(*shards: Any, execution: Any = None, force: bool = False, **config: Any) -> Any:
        made = [one.files() if isinstance(one, Shards) else one for one in shards]
        inputs = {"shards": [given("token_shards", files) for files in made]}
        return run_stage(ExportTokens, config, inputs, execution, force=force)

    return run


@pytest.fixture
def exported(export: Callable[..., Any], read_input: Callable[..., Any]) -> Callable[..., Any]:
    """`exported(*shards)` → (source → (documents, type)), dataset.json, the manifest)."""

    def run(*shards: Any, **options: Any) -> Any:
        manifest = export(*shards, **options)
        found = read_input(manifest, "dataset")
        table = found.read_json("dataset.json")
        read = {}
        for name, one in table["sources"].items():
            place = found.local_path(f"{one['prefix']}.bin")
            found.local_path(f"{one['prefix']}.idx")
            read[name] = read_megatron(place.with_name(one["prefix"]))
        return read, table, manifest

    return run
