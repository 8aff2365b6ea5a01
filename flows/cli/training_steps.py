"""The training steps that read given sequences: the clock is asked backwards."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from artifacts_schema.manifest import Manifest
from artifacts_schema.store import Store
from stages.engine.inputs import Input

Sequences = Mapping[str, Mapping[str, Sequence[int]]]
"""Digest of token shards → file of a shard → sequences within it."""


def steps_that_read(store: Store, run: Manifest, wanted: Sequences) -> list[int]:
    """The training steps of a pretraining run, from 1, that read any of these sequences, sorted."""
    from stages.engine.registry import stage_named
    from stages.pretrain.plan import make_plan
    from stages.training.data import TokenShards

    config: Any = stage_named(run.stage).Config.parse(run.config, where="the run's config")
    inputs = [Input.load(store, given, full_check=False) for given in run.inputs["train"]]
    shards = TokenShards(inputs)
    clock = make_plan(config, shards).clock
    steps: set[int] = set()
    for source in shards.sources:
        start, held = 0, list[int]()
        for given in inputs:
            of_source = given.read_json("shards.json")["sources"].get(source, {})
            for shard in of_source.get("shards", []):
                found = wanted.get(given.digest, {}).get(shard["file"], ())
                held += [start + sequence for sequence in found]
                start += shard["sequences"]
        if held:
            steps.update(clock.steps_of(source, held))
    return sorted(steps)
