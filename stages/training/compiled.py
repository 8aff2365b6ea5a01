"""Blocks compiled by torch.compile, and whether they are compiled again and again.

Each block apart: equal blocks share their compiled code, so a deep model takes no longer to compile
than a shallow one. Each shape of a batch has kernels of its own, chosen by rule: which bits a step
gives must not depend on what the process saw before it, or a resumed run would differ. So compiling
is for batches of few shapes; compiling on and on is a fault, and said aloud (a step then takes
seconds, allenai/OLMo-core#500).
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING

import torch
from torch import nn

from stages.training.listener import Listener, StepDone

if TYPE_CHECKING:
    from stages.engine import Context

_KINDS = 128
"""Ways to compile a block before torch gives up: kinds of layers × training or not × shapes."""


def compile_blocks(model: nn.Module, backend: str = "inductor") -> None:
    """Compile each of `model.blocks` at its first call; names stay as they are.

    To be called behind `checkpoint_activations`. A block that does not compile as a whole is an
    error of torch, not a slow run; but blocks that route to experts may break in parts.
    """
    torch._dynamo.config.recompile_limit = max(torch._dynamo.config.recompile_limit, _KINDS)
    for block in getattr(model, "blocks", ()):
        routes = hasattr(getattr(block, "mlp", None), "experts")
        block.forward = torch.compile(
            block.forward, backend=backend, dynamic=False, fullgraph=not routes
        )


@contextmanager
def kernels_by_rule() -> Iterator[None]:
    """Inside it, kernels are not chosen by a race of candidates, whose sums differ in order."""
    from torch._inductor import config

    before, config.deterministic = config.deterministic, True
    try:
        yield
    finally:
        config.deterministic = before


def uncompiled() -> AbstractContextManager[None]:
    """Inside it, blocks run as they are written: compiled ones call no hooks of their modules."""
    if "torch._dynamo" not in sys.modules:
        return nullcontext()
    return torch.compiler.set_stance("force_eager")


def compiled_graphs() -> int:
    """Graphs that torch has compiled in this process so far."""
    return int(torch._dynamo.utils.counters["stats"]["unique_graphs"])


def graph_breaks() -> dict[str, int]:
    """Why torch could not compile something as a whole in this process so far: reason → times."""
    counted = torch._dynamo.utils.counters["graph_break"]
    return {reason.partition("\n")[0]: times for reason, times in counted.items()}


class CompileWatch(Listener):
    """Counts what is compiled during a run; warns where that does not end.

    A block that breaks into parts, or runs as it is written, is named in an alert and in the
    layout: it was asked to be compiled, and is slower than that.
    """

    SETTLED = 20
    """Training steps of this process in which compiling is expected."""
    LATE = 3
    """Of later steps, the first that warns: a batch that grows compiles once each time."""

    def __init__(self, log: logging.Logger, context: Context | None = None) -> None:
        self.log, self.context = log, context
        self.before = self.last = compiled_graphs()
        self.steps = self.late = 0
        self.breaks_before, self.breaks = graph_breaks(), list[str]()

    def step_done(self, done: StepDone) -> None:
        """Look whether the step, or a measurement before it, compiled something."""
        self.steps += 1
        self._tell_breaks(done.training_step)
        now = compiled_graphs()
        if now > self.last and self.steps > self.SETTLED:
            self.late += 1
            if self.late >= self.LATE:
                self.log.warning(
                    "training step %d compiled %d more graphs: shapes still change",
                    done.training_step,
                    now - self.last,
                )
        self.last = now

    def _tell_breaks(self, training_step: int) -> None:
        new = [
            reason
            for reason, times in graph_breaks().items()
            if times > self.breaks_before.get(reason, 0) and reason not in self.breaks
        ]
        if not new:
            return
        self.breaks += new
        text = f"blocks are not compiled as a whole, parts of them run as written: {'; '.join(new)}"
        if self.context is None:
            self.log.warning("training step %d: %s", training_step, text)
            return
        self.context.alert("compile", text, training_step=training_step)
        self.context.layout(graph_breaks=list(self.breaks))

    def ended(self, error: BaseException | None) -> None:
        """Say how many graphs the run compiled."""
        if self.context is not None:
            self.context.telemetry(compiled_graphs=compiled_graphs() - self.before)
