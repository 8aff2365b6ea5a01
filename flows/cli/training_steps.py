"""The training steps that read given sequences: the clock is asked again, nothing was stored."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from artifacts_schema.manifest import Manifest
from artifacts_schema.store import Store
from stages.engine.inputs import Input

Sequences = Mapping[str, Mapping[str, Sequence[int]]]
"""Digest of token shards → file of a shard → sequences within it."""


def steps_that_read(store: Store, run: Manifest, wanted: Sequences) -> list[int]:
    """The training steps of a pretraining run, from 1, that read any of these sequences, sorted.

    Every step is drawn again, about half a millisecond each.
    """
    import numpy as np

    from stages.engine.registry import stage_named
    from stages.pretrain.plan import make_plan
    from stages.training.data import TokenShards

    config: Any = stage_named(run.stage).Config.parse(run.config, where="the run's config")
    inputs = [Input.load(store, given, full_check=False) for given in run.inputs["train"]]
    shards = TokenShards(inputs)
    clock = make_plan(config, shards).clock
    is_wanted = [np.zeros(shards.sequences[source], dtype=bool) for source in shards.sources]
    for source, mask in zip(shards.sources, is_wanted, strict=True):
        start = 0
        for given in inputs:
            for shard in (
                given.read_json("shards.json")["sources"].get(source, {}).get("shards", [])
            ):
                held = wanted.get(given.digest, {}).get(shard["file"], ())
                mask[start + np.asarray(held, dtype=np.int64)] = True
                start += shard["sequences"]
    # One flat mask over all sources, so that a step is one look-up.
    first = np.cumsum([0, *(len(mask) for mask in is_wanted[:-1])])
    flat = np.concatenate(is_wanted)
    steps = []
    for step in range(1, clock.steps + 1):
        draw = clock.batch(step)
        if flat[first[draw.sources] + draw.sequences].any():
            steps.append(step)
    return steps
