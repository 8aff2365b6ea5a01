"""The same bits in less memory: losses, gradients and how much is kept and computed again."""

from collections import Counter

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from stages.model.config import Experts, ModelShape
from stages.model.decoder import Decoder
from stages.model.experts import update_balance
from stages.training.config import TrainingExecution
from stages.training.losses import autocast
from stages.training.runtime import checkpoint_activations

CPU = torch.device("cpu")
DENSE: dict = {}
ROUTED = {"experts": Experts(experts=4, chosen=2, width=8)}


def decoder(shape):
    base = {"width": 16, "layers": 3, "heads": 2, "kv_heads": 1, "context": 16}
    return Decoder(ModelShape(**{**base, **shape}).with_vocabulary(31), seed=1)


def checkpointed(shape, mode, every=1):
    model = decoder(shape)
    execution = TrainingExecution(
        activation_checkpointing=mode, activation_checkpointing_every=every
    )
    checkpoint_activations(model, execution)
    return model


def step(model, precision="fp32"):
    """Loss and gradients of one batch of two rows with two documents each."""
    tokens = torch.arange(32).view(2, 16) * 7 % 31
    documents = (torch.arange(16) // 8).expand(2, 16)
    with autocast(CPU, precision):
        logits = model(tokens, documents_BL=documents)
        loss = torch.nn.functional.cross_entropy(logits.float().flatten(0, 1), tokens.flatten())
    loss.backward()
    return loss.detach(), {name: p.grad for name, p in model.named_parameters()}


@pytest.mark.parametrize("shape", [DENSE, ROUTED], ids=["dense", "experts"])
@pytest.mark.parametrize("precision", ["fp32", "bf16"])
@pytest.mark.parametrize(("mode", "every"), [("full", 1), ("full", 2), ("cheap", 1), ("cheap", 2)])
def test_losses_and_gradients_are_bit_equal(shape, precision, mode, every):
    plain, found = (step(m, precision) for m in (decoder(shape), checkpointed(shape, mode, every)))
    assert torch.equal(plain[0], found[0])
    for name, gradient in plain[1].items():
        assert torch.equal(gradient, found[1][name]), name


@pytest.mark.parametrize("mode", ["full", "cheap"])
def test_experts_are_balanced_as_without(mode):
    """The forward pass that is done again counts the tokens again; the balance is the same."""
    plain, found = decoder(ROUTED), checkpointed(ROUTED, mode)
    for model in (plain, found):
        step(model)
        update_balance(model)
    for name, buffer in plain.named_buffers():
        if name.endswith("bias"):
            assert buffer.abs().sum() > 0
            assert torch.equal(buffer, dict(found.named_buffers())[name])


class Counted(TorchDispatchMode):
    """How often each ATen operation is called inside."""

    def __init__(self):
        super().__init__()
        self.calls = Counter()

    def __torch_dispatch__(self, operation, types, args=(), kwargs=None):
        self.calls[operation.name().removeprefix("aten::")] += 1
        return operation(*args, **(kwargs or {}))


def calls(model):
    with Counted() as counted:
        step(model)
    return counted.calls


def test_full_does_every_product_of_the_blocks_again_and_cheap_none():
    """Seven matrices a block (query, key, value, output, gate, up, down), three blocks."""
    plain, cheap, full = (calls(checkpointed(DENSE, m)) for m in ("none", "cheap", "full"))
    assert cheap["mm"] == plain["mm"]
    # The last product of a block is not needed for its backward pass: torch stops before it.
    assert 3 * 6 <= full["mm"] - plain["mm"] <= 3 * 7
    assert cheap["silu"] == full["silu"] == 2 * plain["silu"] == 6


def test_every_second_block_does_half_of_it_again():
    plain, half, full = (
        calls(checkpointed(DENSE, mode, every))
        for mode, every in (("none", 1), ("full", 2), ("full", 1))
    )
    assert half["silu"] - plain["silu"] == 2
    assert full["silu"] - plain["silu"] == 3


def test_full_keeps_only_what_goes_into_a_block():
    """Beside embedding, output and loss, a block keeps its input [2, 16, 16] of float32."""

    def kept(model):
        sizes = {}

        def pack(tensor):
            sizes[tensor.data_ptr()] = tensor.untyped_storage().nbytes()
            return tensor

        own = {p.data_ptr() for p in model.parameters()}
        with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
            step(model)
        return sum(size for pointer, size in sizes.items() if pointer not in own)

    plain, full = (kept(checkpointed(DENSE, mode)) for mode in ("none", "full"))
    assert full < plain / 3


def test_without_gradients_nothing_is_kept_or_done_again():
    model = checkpointed(DENSE, "full")
    with torch.no_grad(), Counted() as counted:
        model(torch.zeros(1, 4, dtype=torch.int64))
    assert counted.calls["silu"] == 3


def test_names_and_what_is_saved_are_those_of_the_model():
    plain, found = decoder(DENSE), checkpointed(DENSE, "cheap")
    assert plain.state_dict().keys() == found.state_dict().keys()
    assert [n for n, _ in plain.named_modules()] == [n for n, _ in found.named_modules()]


def test_a_model_without_blocks_is_left_as_it_is():
    model = torch.nn.Linear(2, 2)
    checkpoint_activations(model, TrainingExecution(activation_checkpointing="full"))
    model(torch.ones(1, 2)).sum().backward()
