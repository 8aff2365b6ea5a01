"""When a run is killed: at random training steps, and inside a save; the same for the same seed."""

from __future__ import annotations

import random
from dataclasses import dataclass

ROLLING = ("checkpoint files written", "checkpoint written")
PERMANENT = ("interim written", "interim committed")
"""Points inside and right behind a save (`artifacts_schema.store.points`)."""


@dataclass(frozen=True)
class Kill:
    """One SIGKILL: within a training step, or as often as `visit` says at a named point."""

    step: int | None = None
    point: str = ""
    visit: int = 1

    @property
    def strike(self) -> str:
        """As `child` takes it."""
        if self.step is not None:
            return f"step:{self.step}"
        return f"point:{self.point}:{self.visit}"

    def __str__(self) -> str:
        if self.step is not None:
            return f"in training step {self.step}"
        return f"in a save, at '{self.point}'"


def drawn(number: int, steps: int, seed: int, interim: int | None = None) -> list[Kill]:
    """`number` kills in the order in which they strike a run of `steps` training steps.

    One of them strikes inside a save, the others within training steps. Each life comes as far as
    its own kill: steps rise; a rolling save is the last kill, since there is one at the end; that
    of a permanent checkpoint (`interim`: the training step of the first) comes in its place.
    ValueError if the run is too short for so many.
    """
    if number - 1 > steps - 1:
        raise ValueError(f"{number - 1} training steps to die in, but there are {steps}")
    draw = random.Random(f"ingot prove-resume {seed}")
    kills = [Kill(step=one) for one in sorted(draw.sample(range(2, steps + 1), number - 1))]
    save = Kill(point=draw.choice(ROLLING if interim is None else (*ROLLING, *PERMANENT)))
    place = len(kills)
    if interim is not None and save.point in PERMANENT:
        place = sum(kill.step is not None and kill.step <= interim for kill in kills)
    return [*kills[:place], save, *kills[place:]]
