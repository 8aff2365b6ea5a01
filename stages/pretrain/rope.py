"""Rotary positions by phase: a longer context comes with another base, or with a scaling."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from stages.model.config import RopeScaling
from stages.model.decoder import Decoder
from stages.pretrain.config import PhaseConfig
from stages.training.phases import Timeline


class RopeByPhase:
    """The base and scaling of each phase, as a function of the training step alone.

    What a phase does not say is that of the phase before, of the first one the model's own.
    """

    def __init__(self, model: Decoder, phases: Sequence[PhaseConfig], timeline: Timeline) -> None:
        self._timeline = timeline
        base, scaling = model.config.rope_base, model.config.rope_scaling
        self.by_phase: list[tuple[float, RopeScaling | None]] = []
        for phase in phases:
            base = phase.rope_base or base
            scaling = phase.rope_scaling or scaling
            self.by_phase.append((base, scaling))

    def at(self, model: Any, training_step: int) -> None:
        """Give `model` the rotary positions of a training step (from 1), if it has others.

        Before the first step the model has its own.
        """
        if training_step < 1:
            return
        base, scaling = self.by_phase[self._timeline.phase_of(training_step)]
        if (model.config.rope_base, model.config.rope_scaling) != (base, scaling):
            model.set_rope(base, scaling)
