"""A dry batch: forward and backward of the first micro-batch, then everything as it was before."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from stages.model.decoder import Decoder
from stages.training.task import Task
from stages.training.undone import undone

ENOUGH_SECONDS, MOST_PASSES = 0.25, 4
"""The first pass compiles and loads, so it is not timed; at least one follows, and more until these
took so many seconds."""


@dataclass(frozen=True)
class Dry:
    """What one micro-batch took: its tokens, seconds of the fastest pass, GPU bytes at most.

    `loss` is its share of the step's; `first_seconds` are those of the first pass, with what is
    compiled or loaded in it, which `seconds` never are.
    """

    training_step: int
    tokens: int
    seconds: float
    first_seconds: float
    loss: float
    peak_bytes: int | None = None

    @property
    def tokens_per_second(self) -> float:
        """Of forward and backward passes alone."""
        return self.tokens / self.seconds


def dry_batch(
    model: nn.Module,
    task: Task,
    training_step: int,
    last: int,
    *,
    clock: Callable[[], float] = time.perf_counter,
) -> Dry | None:
    """Try the first training step from `training_step` to `last` that the run does not leave out.

    None where it leaves out all. Weights, buffers and random state are afterwards what they were,
    and there is no gradient.
    """
    batch = None
    while training_step <= last and (batch := task.batch(training_step)) is None:
        training_step += 1
    if batch is None:
        return None
    device = next(model.parameters()).device
    cuda = device.type == "cuda"
    if cuda:
        torch.cuda.reset_peak_memory_stats(device)
    spent: list[float] = []
    tokens, loss = 0, math.nan
    with _tried(model):
        while len(spent) < 2 or (len(spent) < MOST_PASSES and sum(spent[1:]) < ENOUGH_SECONDS):
            model.zero_grad(set_to_none=True)
            began = clock()
            share = next(iter(task.shares(model, batch)))
            share.loss.backward()  # type: ignore[no-untyped-call]
            tokens, loss = share.tokens, share.loss.item()  # Waits for the device.
            if cuda:
                torch.cuda.synchronize(device)
            spent.append(clock() - began)
    peak = torch.cuda.max_memory_allocated(device) if cuda else None
    return Dry(training_step, tokens, min(spent[1:]), spent[0], loss, peak)


@contextmanager
def _tried(model: nn.Module) -> Iterator[None]:
    """Everything that a pass in training changes is put back; the phase's positions, too."""
    rope = _rope(model)
    try:
        with undone(model):
            model.train()
            yield
    finally:
        if isinstance(model, Decoder) and _rope(model) != rope:
            model.set_rope(*rope)


def _rope(model: nn.Module) -> tuple[Any, ...]:
    if not isinstance(model, Decoder):
        return ()
    return model.config.rope_base, model.config.rope_scaling
