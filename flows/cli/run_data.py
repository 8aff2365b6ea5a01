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
    from stages.training.clock import SampleClock, clock_of_run
    from stages.training.data import TokenShards

    config: Any = stage_named(run.stage).Config.parse(run.config, where="the run's config")
    shards = TokenShards(
        [Input.load(store, reference, full_check=False) for reference in run.inputs["train"]]
    )
    clock = clock_of_run(config, shards.sequences, shards.lengths)
    left_out = _left_out(store, run)
    if left_out:
        clock = SampleClock(shards.sequences, clock.phases, config.seed, [*clock.skip, *left_out])
    return RunData(shards, clock)


def _left_out(store: Store, run: Manifest) -> list[tuple[int, int]]:
    """Ranges of training steps that the run's rollbacks left out."""
    if "training_run" not in run.outputs:
        return []
    account = Input.of(store, run, "training_run").read_json("run.json")
    return [(first, last) for first, last in account.get("left_out_training_steps", ())]
