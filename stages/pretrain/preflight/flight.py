"""A run that is to be, and the checks of it that need no model."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from artifacts_schema.store import Store
from artifacts_schema.store.backend import Backend
from stages.pretrain.checkpoints import milestones_of
from stages.pretrain.plan import Plan
from stages.pretrain.preflight.data import (
    check_contamination,
    check_epochs,
    check_held_out,
    check_ids,
)
from stages.pretrain.preflight.device import check_device
from stages.pretrain.preflight.disk import (
    CheckpointSizes,
    check_disk,
    check_writable,
    disk_needs,
)
from stages.pretrain.preflight.dry_batch import Dry
from stages.pretrain.preflight.memory import check_memory
from stages.pretrain.preflight.prediction import Work
from stages.pretrain.preflight.rehearsal import check_resume
from stages.pretrain.preflight.report import Finding
from stages.pretrain.prepared import Prepared
from stages.training.config import TrainingExecution
from stages.training.out_of_memory import StepMemory
from stages.training.placing import chosen_attention
from stages.training.runtime import Runtime, device_name
from stages.training.telemetry.peaks import peak_flops


@dataclass(frozen=True)
class Flight:
    """A run that is to be: what it starts with, how and where it works."""

    ready: Prepared
    execution: TrainingExecution
    runtime: Runtime
    backend: Backend
    work: Path

    @property
    def plan(self) -> Plan:
        """What each training step reads."""
        return self.ready.plan

    @property
    def peak(self) -> float | None:
        """Operations a second that the device can do at most, where that is known."""
        return peak_flops(device_name(self.runtime.device), self.execution.peak_tflops)

    @property
    def attention(self) -> str:
        """The backend that the run will have."""
        ready = self.ready
        return chosen_attention(
            ready.model_config, self.execution, self.runtime, prefixes=ready.prefixes
        )

    def steps(self) -> list[StepMemory]:
        """What a step of each phase is to memory."""
        phases, averages = self.plan.clock.phases, self.ready.config.averages
        rows = [max(one.sequences for one in phase.stretches) for phase in phases]
        return [
            StepMemory(
                self.ready.model_config,
                min(count, self.runtime.micro_batch),
                phase.sequence_length,
                self.ready.config.precision,
                self.ready.config.optimizer,
                self.execution,
                self.runtime.device,
                averages=(averages.ema is not None) + (averages.last > 0),
                attention=self.attention,
            )
            for count, phase in zip(rows, phases, strict=True)
        ]

    @property
    def largest(self) -> StepMemory:
        """The step that needs most memory."""
        return max(self.steps(), key=lambda one: one.need.total)

    def work_ahead(self, done: int, dry: Dry) -> Work:
        """What is left behind `done` training steps."""
        clock, account = self.plan.clock, self.plan.account
        tokens = [0.0] * len(clock.phases)
        for source in account.sources:
            for phase, planned in enumerate(source.tokens_by_phase):
                tokens[phase] += planned
        for phase, one in enumerate(clock.phases):
            first = clock.first_steps[phase] - 1
            read = clock.tokens_until(max(done, first)) - clock.tokens_until(first)
            tokens[phase] *= 1 - min(1.0, read / one.tokens)
        every = self.ready.config.held_out_every
        measurements = -(-clock.steps // every) - done // every + (done == 0)
        length = clock.phases[-1].sequence_length
        return Work(
            tokens,
            [phase.sequence_length for phase in clock.phases],
            clock.phase_of(dry.training_step),
            float(measurements * len(self.ready.held_out.sources_B) * length),
        )


def checks(flight: Flight) -> list[Finding]:
    """All that is known without the model itself, cheapest first."""
    ready, runtime = flight.ready, flight.runtime
    payload = flight.backend.local_path("data") if flight.backend.local else None
    need = flight.largest.need
    kept = len(milestones_of(flight.ready.config, flight.plan))
    sizes = CheckpointSizes(need.weights + need.optimizer, kept)
    return [
        check_device(runtime.device, device_name(runtime.device), flight.peak),
        *check_memory(flight.largest),
        *check_disk(disk_needs(flight.work, payload, sizes)),
        check_writable(flight.backend),
        check_epochs(flight.plan.account),
        check_ids(ready.train),
        check_held_out(ready.held_out),
        check_contamination(Store(flight.backend.url), ready.train),
        check_resume(
            flight.work,
            ready.model_config,
            ready.config.optimizer,
            runtime,
            flight.execution,
            prefixes=ready.prefixes,
        ),
    ]
