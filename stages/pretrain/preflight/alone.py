"""A pre-flight by itself: all that is looked at before a run, and no run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from artifacts_schema.store.backend import Backend
from stages.engine import Input
from stages.pretrain.config import PretrainConfig
from stages.pretrain.preflight.flight import Flight
from stages.pretrain.preflight.preflight import Preflight
from stages.pretrain.preflight.report import Finding, Report
from stages.pretrain.prepared import Prepared
from stages.training.config import TrainingExecution
from stages.training.out_of_memory import explaining_out_of_memory
from stages.training.placing import place
from stages.training.runtime import runtime


def preflight(
    config: PretrainConfig,
    execution: TrainingExecution,
    inputs: Mapping[str, Sequence[Input]],
    *,
    backend: Backend,
    work: Path,
    tell: Callable[[Finding], None] = lambda finding: None,
) -> Report:
    """Check a run that would work in `work`.

    Refusals stand in the report, without a dry batch. Raises what the stage would raise for inputs
    that are wrong, and IngotError where memory runs out.
    """
    execution = execution.model_copy(update={"preflight": "warn"})  # The whole report, always.
    ready = Prepared.of(config, inputs)
    kept: list[Report] = []
    with runtime(execution, config.precision, config.seed) as how:
        flight = Flight(ready, execution, how, backend, work)
        look = Preflight(flight, tell, kept.append)
        look.check()
        if kept[-1].refusals:  # A model that no memory holds is not made.
            return kept[-1]
        place(ready.model, execution, how, prefixes=ready.prefixes)
        with explaining_out_of_memory(flight.largest):
            look.started(ready.begin.training_step, ready.plan.clock.steps)
    return kept[-1]
