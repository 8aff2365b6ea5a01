"""The data of a pretraining run, opened anew from what its manifest says: shards and clock."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from artifacts_schema.errors import UsageError
from artifacts_schema.identity import short
from artifacts_schema.manifest import Manifest
from artifacts_schema.store import Store
from stages.engine.inputs import Input

if TYPE_CHECKING:
    from stages.training.clock import SampleClock
    from stages.training.data import TokenShards


@dataclass(frozen=True)
class RunData:
    """What a run read, and in which training step."""

    shards: TokenShards
    clock: SampleClock


def run_data(store: Store, run: Manifest, *, where: str) -> RunData:
    """The token shards and the sample clock of a pretraining run.

    Raises UsageError (about `where`) if `run` is none, InputError if its shards were collected.
    """
    if run.stage != "pretrain":
        raise UsageError(
            f"{run.stage} {short(run.key)} is not a pretraining run",
            where=where,
            hint="give the ref of a pretrain step",
        )
    from stages.engine.registry import stage_named
    from stages.training.clock import clock_of_run
    from stages.training.data import TokenShards

    config: Any = stage_named(run.stage).Config.parse(run.config, where="the run's config")
    shards = TokenShards(
        [Input.load(store, reference, full_check=False) for reference in run.inputs["train"]]
    )
    return RunData(shards, clock_of_run(config, shards.sequences, shards.sequence_length))
