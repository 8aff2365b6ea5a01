"""A forward and backward pass that leaves nothing behind: tried, looked at, and undone."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import nn

from stages.training.checkpointing import random_state, restore_random_state


@contextmanager
def undone(model: nn.Module) -> Iterator[None]:
    """Afterwards random state, buffers and mode are as before, and there are no gradients.

    There are none inside either, to begin with. Weights are the caller's to leave alone.
    """
    random, training = random_state(), model.training
    buffers = [(one, one.clone()) for one in model.buffers()]
    model.zero_grad(set_to_none=True)
    try:
        yield
    finally:
        restore_random_state(random)
        model.train(training)
        model.zero_grad(set_to_none=True)
        with torch.no_grad():
            for buffer, before in buffers:
                buffer.copy_(before)
