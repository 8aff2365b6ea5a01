"""What is said of a run that rollbacks have not helped."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from artifacts_schema.errors import IngotError
from stages.training.guard import ADVICE
from stages.training.rollback import Rollbacks
from stages.training.suspects import TROUBLE, Suspect, told

LISTED = 10
"""Training steps that are named, the last ones."""


def verdict(
    rollbacks: Rollbacks,
    strikes: Sequence[int],
    events: Sequence[Mapping[str, Any]],
    documents: Callable[[int, Sequence[int]], Sequence[Suspect]],
) -> IngotError:
    """The steps in trouble, `strikes` the last of them, with the documents of these.

    `events` are rows of the run's table; `documents(training_step, rows)` knows what a step read.
    """
    every = [step for one in rollbacks.made for step in one.strikes] + list(strikes)
    suspects = {
        suspect
        for row in events
        if row["kind"] in TROUBLE and row["training_step"] in strikes
        for suspect in documents(row["training_step"], json.loads(row["details"])["rows"])
    }
    return IngotError(
        f"{len(rollbacks.made)} rollbacks have not helped: trouble at training steps "
        f"{listed(every)}" + (f"; {told(suspects)}" if suspects else ""),
        where=f"training step {strikes[-1]}",
        hint=f"{ADVICE}; the log names a list of all documents",
    )


def listed(steps: Sequence[int]) -> str:
    """The last of these steps, in a line."""
    shown = ", ".join(f"{step:,}" for step in steps[-LISTED:])
    return f"{'…, ' if len(steps) > LISTED else ''}{shown}"
