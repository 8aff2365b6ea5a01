"""The guard of a run: judges each training step before its update, and counts what is wrong.

What it says follows from losses and gradient norms alone, and what it remembers travels with the
checkpoints: a run that was killed decides as one that was not.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from torch import nn

from artifacts_schema.errors import IngotError
from stages.training.divergence import Divergence
from stages.training.spikes import Spike, Spikes
from stages.training.stability_config import StabilityConfig
from stages.training.stalls import Stalls

ADVICE = (
    "lower learning_rate.peak, warm up for longer or clip harder (optimizer.clip); "
    "ingot branch goes on from a permanent checkpoint with such a change"
)


@dataclass(frozen=True)
class Trouble:
    """Why the update of a training step is not made: `kind` is that of its event."""

    kind: str
    what: str
    details: Mapping[str, float] = field(default_factory=dict)


@dataclass
class Memory:
    """All that the guard keeps between training steps."""

    phase: int = 0
    spikes: Spikes = field(default_factory=Spikes)
    divergence: Divergence = field(default_factory=Divergence)
    stalls: Stalls = field(default_factory=Stalls)
    strikes: list[int] = field(default_factory=list)


class Guard:
    """Judges the training steps of one run."""

    def __init__(self, settings: StabilityConfig) -> None:
        self.settings = settings
        self.memory = Memory()

    def judge(self, step: int, phase: int, loss: float, grad_norm: float) -> Trouble | None:
        """What speaks against the update of a training step; None where nothing does.

        Raises IngotError where no skipping helps: the loss has been climbing, or nothing changes.
        """
        memory, settings = self.memory, self.settings
        memory.strikes = [one for one in memory.strikes if one > step - settings.window]
        if not (math.isfinite(loss) and math.isfinite(grad_norm)):
            memory.strikes.append(step)
            return Trouble("not_finite", f"loss {loss:g}, gradient norm {grad_norm:g}")
        if not settings.enabled:
            return None
        if phase != memory.phase:  # Another mixture, length or batch: another level of both.
            memory.phase, memory.spikes = phase, Spikes()
            memory.divergence.new_phase()
        spike = memory.spikes.find(loss, grad_norm, settings)
        if spike is not None:
            memory.strikes.append(step)
            return Trouble("spike", _told(spike, loss, grad_norm), asdict(spike))
        memory.spikes.add(loss, grad_norm, settings.window)
        self._check_course(step, loss, grad_norm)
        return None

    def check_moved(self, step: int, rate: float, model: nn.Module) -> None:
        """After the update of a training step: IngotError if updates no longer move any weight."""
        if self.settings.enabled:
            stalled = self.memory.stalls.unmoved(model, rate, self.settings.stall)
            if stalled is not None:
                raise _stalled(step, stalled)

    @property
    def strikes(self) -> tuple[int, ...]:
        """The training steps in trouble within the last `window`, oldest first."""
        return tuple(self.memory.strikes)

    def gives_up(self) -> bool:
        """Whether skipping is not enough any more."""
        return self.settings.enabled and len(self.memory.strikes) >= self.settings.strikes

    def state(self) -> dict[str, Any]:
        """What it remembers, JSON-ready."""
        return asdict(self.memory)

    def restore(self, state: Mapping[str, Any]) -> None:
        """Remember what `state` gave."""
        self.memory = Memory(
            phase=state["phase"],
            spikes=Spikes(**state["spikes"]),
            divergence=Divergence(**state["divergence"]),
            stalls=Stalls(**state["stalls"]),
            strikes=list(state["strikes"]),
        )

    def _check_course(self, step: int, loss: float, grad_norm: float) -> None:
        memory, settings = self.memory, self.settings
        stalled = memory.stalls.find(loss, grad_norm, settings.stall)
        if stalled is not None:
            raise _stalled(step, stalled)
        climb = memory.divergence.find(memory.spikes.losses, settings.window, settings.divergence)
        if climb is not None:
            raise IngotError(
                f"training diverges: the median loss of {settings.window} training steps was "
                f"{climb.lowest:.4g} and is {climb.now:.4g}, of {climb.lowest + climb.allowed:.4g} "
                "allowed",
                where=f"training step {step}",
                hint=f"{ADVICE}; stability.divergence allows more",
            )


def _stalled(step: int, what: str) -> IngotError:
    return IngotError(
        f"nothing is learnt: {what}",
        where=f"training step {step}",
        hint="look for a loss that does not depend on the weights, frozen parameters, or a "
        "learning rate below what the precision resolves",
    )


def _told(spike: Spike, loss: float, grad_norm: float) -> str:
    parts = (("loss", loss, spike.loss_z), ("gradient norm", grad_norm, spike.grad_norm_z))
    return ", ".join(f"{name} {value:.4g} ({z:+.1f} sigma)" for name, value, z in parts)
