"""A dry batch leaves no trace, tries what the run would, and says how long it took."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from stages.model.config import Experts, ModelShape
from stages.model.decoder import Decoder
from stages.pretrain.preflight_trial import MOST_PASSES, try_batch
from stages.training.config import TrainingExecution
from stages.training.rows import Rows
from stages.training.runtime import runtime
from stages.training.task import MicroBatch, Task


class Trial(Task):
    """Random rows of two documents, in micro-batches of two; `left_out` steps are none."""

    def __init__(self, how, left_out=()):
        self.how, self.left_out, self.passes = how, left_out, 0

    def batch(self, training_step):
        if training_step in self.left_out:
            return None
        draw = np.random.default_rng(training_step)
        ids = draw.integers(0, 64, (4, 17))
        documents = np.zeros((4, 16), dtype=np.int32)
        documents[:, 9:] = 1
        return Rows(ids[:, :-1].astype(np.int32), ids[:, 1:].astype(np.int64), documents)

    def micro_batches(self, model, batch):
        for part in batch.split(2):
            self.passes += 1
            torch.rand(1)  # What a task may draw is undone as well.
            yield MicroBatch(self.how.losses(model, part).sum() / batch.targets, part.tokens)

    def measures(self, sums):
        return {}

    def held_out(self, model):
        return []


@pytest.fixture
def how():
    with runtime(TrainingExecution(device="cpu", threads=1), "fp32", seed=1) as found:
        yield found


@pytest.fixture
def model():
    experts = Experts(experts=4, chosen=2, width=16)
    shape = ModelShape(width=32, layers=2, heads=2, kv_heads=1, context=16, experts=experts)
    return Decoder(shape.with_vocabulary(64), seed=3)


def everything(model):
    tensors = [*model.named_parameters(), *model.named_buffers()]
    return {name: tensor.detach().clone() for name, tensor in tensors}


def test_it_leaves_weights_buffers_gradients_mode_and_random_state_as_they_were(how, model):
    model.eval()
    before, random = everything(model), torch.get_rng_state()
    dry = try_batch(model, Trial(how), 1, 9)
    assert dry.loss > 0
    after = everything(model)
    assert before.keys() == after.keys()
    assert all(torch.equal(before[name], after[name]) for name in before)
    assert all(parameter.grad is None for parameter in model.parameters())
    assert torch.equal(torch.get_rng_state(), random)
    assert not model.training


def test_a_forward_pass_would_have_left_a_trace(how, model):
    """Else the test above proves nothing: experts count their tokens."""
    before = everything(model)
    how.losses(model, Trial(how).batch(1).split(2)[0])
    after = everything(model)
    assert any(not torch.equal(before[name], after[name]) for name in before)


def passes(*seconds):
    """A clock by which passes take so long."""
    times = [0.0]
    for one in seconds:
        times += [times[-1], times[-1] + one]
    ticks = iter(times[1:])
    return lambda: next(ticks)


def test_the_first_pass_compiles_and_is_not_timed(how, model):
    """As with `compile: on`: 70 s to the first loss, then a second a pass."""
    task = Trial(how)
    dry = try_batch(model, task, 1, 9, clock=passes(70.0, 1.0))
    assert task.passes == 2
    assert dry.first_seconds == 70.0
    assert dry.seconds == pytest.approx(1.0)
    assert dry.tokens_per_second == pytest.approx(32)


def test_fast_passes_are_repeated_until_enough_is_known(how, model):
    task = Trial(how)
    dry = try_batch(model, task, 1, 9, clock=passes(0.01, 0.1, 0.05, 0.04))
    assert task.passes == MOST_PASSES == 4
    assert (dry.tokens, dry.first_seconds) == (32, 0.01)
    assert dry.seconds == pytest.approx(0.04)


def test_it_ends_once_the_passes_behind_the_first_took_long_enough(how, model):
    task = Trial(how)
    assert try_batch(model, task, 1, 9, clock=passes(0.3, 0.2, 0.1)).seconds == pytest.approx(0.1)
    assert task.passes == 3


def test_the_loss_is_that_of_the_first_micro_batch(how, model):
    rows = Trial(how).batch(4)
    expected = how.losses(model, rows.split(2)[0]).sum().item() / rows.targets
    dry = try_batch(model, Trial(how, left_out=(2, 3)), 2, 9)
    assert dry.training_step == 4
    assert dry.loss == pytest.approx(expected, rel=1e-6)


def test_a_run_that_leaves_out_all_has_nothing_to_try(how, model):
    assert try_batch(model, Trial(how, left_out=range(10)), 1, 9) is None


def test_an_error_leaves_no_trace_either(how, model):
    class Broken(Trial):
        def micro_batches(self, model, batch):
            yield from super().micro_batches(model, batch)
            raise AssertionError

        def batch(self, training_step):
            rows = super().batch(training_step)
            rows.tokens_BL[0, 0] = 10**6
            return rows

    before = everything(model)
    with pytest.raises((IndexError, RuntimeError)):
        try_batch(model, Broken(how), 1, 9)
    assert all(torch.equal(before[name], tensor) for name, tensor in everything(model).items())


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_a_gpu_tells_the_most_memory(how):
    device = torch.device("cuda")
    linear = nn.Linear(1024, 1024, device=device)

    class One(Task):
        columns = ()

        def micro_batches(self, model, batch):
            yield MicroBatch(model(torch.ones(1024, 1024, device=device)).mean(), 5)

        def measures(self, sums):
            return {}

        def held_out(self, model):
            return []

    assert try_batch(linear, One(), 1, 1).peak_bytes > 8 * 1024**2
