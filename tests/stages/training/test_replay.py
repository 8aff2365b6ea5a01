"""Which module was the first whose values were not finite: faults injected into a real decoder."""

import json

import pytest
import torch
from line_run import Lines, train
from torch import nn

from artifacts_schema.errors import IngotError
from stages.model.config import ModelShape
from stages.model.decoder import Decoder
from stages.training.config import TrainingExecution
from stages.training.diagnosis import Fault, find_fault
from stages.training.runtime import checkpoint_activations
from stages.training.task import MicroBatch, Task

POISON = 7
"""A token that injected faults look for."""


class ThreeParts(Task):
    """Three micro-batches of four tokens; the second holds the poisoned one."""

    def micro_batches(self, model, batch):
        for tokens in ([1, 2, 3, 4], [5, 6, POISON, 8], [9, 1, 2, 3]):
            logits_BLV = model(torch.tensor([tokens]))
            yield MicroBatch(logits_BLV.logsumexp(-1).mean(), 4)

    def measures(self, sums):
        return {}

    def held_out(self, model):
        return []


class NoBackward(torch.autograd.Function):
    """The identity, whose gradient is NaN."""

    @staticmethod
    def forward(context, x):
        return x.clone()

    @staticmethod
    def backward(context, gradient):
        return gradient * float("nan")


class Faulty(nn.Module):
    """A module as it was, with something done to what it gives for a poisoned micro-batch."""

    def __init__(self, inner, fault, model):
        super().__init__()
        self.inner, self.fault, self.poisoned = inner, fault, False
        model.embedding.register_forward_pre_hook(
            lambda module, given: setattr(self, "poisoned", bool((given[0] == POISON).any()))
        )

    def forward(self, *given):
        result = self.inner(*given)
        return self.fault(result) if self.poisoned else result


@pytest.fixture
def model():
    shape = ModelShape(width=16, layers=3, heads=2, kv_heads=1, context=8)
    return Decoder(shape.with_vocabulary(16), seed=3)


def inject(model, fault):
    """Put `fault` on the output of the second block's MLP."""
    model.blocks[1].mlp = Faulty(model.blocks[1].mlp, fault, model)


def test_nothing_is_found_where_all_is_finite(model):
    assert find_fault(model, ThreeParts(), 1) is None


def test_a_weight_that_is_nan_is_named_before_anything_is_computed(model):
    with torch.no_grad():
        model.blocks[1].mlp.up.weight[3, 2] = torch.nan
    fault = find_fault(model, ThreeParts(), 1)
    assert fault == Fault("weights", "blocks.1.mlp.up.weight")
    assert str(fault) == "the weights of blocks.1.mlp.up.weight"


def test_the_innermost_module_that_overflows_in_the_forward_pass_is_named(model):
    with torch.no_grad():
        model.blocks[2].attention.value.weight.fill_(1e30)
        model.blocks[2].attention.output.weight.fill_(1e30)
    fault = find_fault(model, ThreeParts(), 1)
    assert fault == Fault("forward", "blocks.2.attention.output", 0)


def test_the_micro_batch_is_named(model):
    inject(model, lambda result: result * torch.nan)
    fault = find_fault(model, ThreeParts(), 1)
    assert fault == Fault("forward", "blocks.1.mlp", 1)
    assert str(fault) == "the forward pass of blocks.1.mlp of micro-batch 1"


@pytest.mark.parametrize("checkpointing", ["none", "full"])
def test_a_gradient_that_turns_nan_is_put_on_the_module_that_makes_it(model, checkpointing):
    inject(model, NoBackward.apply)
    checkpoint_activations(model, TrainingExecution(activation_checkpointing=checkpointing))
    assert find_fault(model, ThreeParts(), 1) == Fault("backward", "blocks.1.mlp", 1)


def test_a_gradient_that_overflows_in_a_weight_alone_is_put_on_its_module():
    """Inputs of 1e30 under a gradient of 1e12: 1e42 in the weight, 1e-8 in what goes further back.

    The weights are 1e-20, so the output is 1e10 and the loss finite.
    """

    class Times(nn.Module):
        def __init__(self, factor):
            super().__init__()
            self.factor = factor

        def forward(self, x):
            return x * self.factor

    class Means(ThreeParts):
        def micro_batches(self, model, batch):
            yield MicroBatch(model(torch.ones(4, 2)).mean(), 4)

    model = nn.Sequential(nn.Linear(2, 2), Times(1e30), nn.Linear(2, 2), Times(1e12))
    with torch.no_grad():
        model[0].weight.fill_(0.5)
        model[2].weight.fill_(1e-20)
    assert find_fault(model, Means(), 1) == Fault("backward", "2", 0)


def test_a_loss_that_is_not_finite_behind_finite_modules_is_the_losss(model):
    class Divides(ThreeParts):
        def micro_batches(self, model, batch):
            for share in super().micro_batches(model, batch):
                yield MicroBatch(share.loss / 0.0, 4)

    assert find_fault(model, Divides(), 1) == Fault("loss", "", 0)


def test_looking_changes_nothing(model):
    inject(model, NoBackward.apply)
    model.register_buffer("seen", torch.zeros(1))

    def counts(module, given):
        model.seen.add_(1)
        torch.rand(1)

    model.embedding.register_forward_pre_hook(counts)
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    hooks = sum(len(m._forward_hooks) + len(m._forward_pre_hooks) for m in model.modules())
    random = torch.get_rng_state()
    find_fault(model, ThreeParts(), 1)
    assert all(torch.equal(tensor, before[name]) for name, tensor in model.state_dict().items())
    assert all(parameter.grad is None for parameter in model.parameters())
    assert torch.equal(torch.get_rng_state(), random)
    assert hooks == sum(len(m._forward_hooks) + len(m._forward_pre_hooks) for m in model.modules())


def test_the_event_of_a_step_that_went_nan_names_module_and_micro_batch(tmp_path):
    line = train(tmp_path, broken=(20,))
    (event,) = line.tables["events"].to_pylist()
    details = json.loads(event["details"])
    assert (event["training_step"], event["kind"]) == (20, "not_finite")
    assert details["loss"] == "nan"
    assert details["fault"]["where"] == "loss"
    assert "the loss behind the model of micro-batch 0" in line.context.alerts[0][1]


def test_a_weight_that_turned_nan_stops_the_run_and_is_named(tmp_path):
    class Poisoned(Lines):
        def held_out(self, model):
            if self.drawn and self.drawn[-1] == 14:
                with torch.no_grad():
                    model.bias.fill_(torch.nan)
            return []

    with pytest.raises(IngotError, match="weights of bias"):
        train(tmp_path, task=Poisoned(), skip_limit=1)
