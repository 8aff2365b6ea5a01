"""What a training step is said to hold, against the tensors that torch really holds."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import partial

import numpy as np
import pytest
import torch
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from stages.model.config import ModelConfig
from stages.model.decoder import Decoder
from stages.model.experts import MixtureOfExperts
from stages.model.memory import training_memory
from stages.training.config import OptimizerConfig, TrainingExecution
from stages.training.losses import Arithmetic
from stages.training.optimizer import Optimizer
from stages.training.rows import Rows
from stages.training.runtime import checkpoint_activations

ROWS, LENGTH = 2, 24
LATENT = {"query_rank": 20, "kv_rank": 12, "plain_width": 12, "rotary_width": 4, "value_width": 8}
EXPERTS = {"experts": 4, "chosen": 2, "width": 24, "shared": 2, "first": 1}
SHAPES = {
    "plain": {},
    "untied, wide": {"tied_embeddings": False, "mlp_width": 72, "kv_heads": 4},
    "norm of heads": {"qk_norm": "head", "head_width": 16},
    "norm over heads, of outputs": {"qk_norm": "width", "norm": "output"},
    "partial positions": {"rope_share": 0.5},
    "windows": {"window": 5, "window_pattern": "SL", "layers": 3},
    "latent": {"kv_heads": 4, "latent": LATENT},
    "latent, queries as they are": {"kv_heads": 4, "latent": {**LATENT, "query_rank": None}},
    "experts": {"experts": EXPERTS, "layers": 3},
    "experts, none shared": {"experts": {**EXPERTS, "shared": 0, "first": 0, "normalise": False}},
}


def config(**changes) -> ModelConfig:
    values = {"vocabulary_size": 71, "width": 32, "layers": 2, "heads": 4, "kv_heads": 2}
    return ModelConfig(**{**values, "mlp_width": 40, **changes})


class Held(TorchDispatchMode):
    """Storages that operations made inside the mode, as long as something holds them."""

    def __init__(self, before: Iterable[torch.Tensor], *, watches_peak: bool = False) -> None:
        super().__init__()
        self.before = {tensor.untyped_storage().data_ptr() for tensor in before}
        self.watches_peak, self.peak = watches_peak, 0
        self.storages: dict[int, tuple[StorageWeakRef, int]] = {}

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        given = function(*args, **(kwargs or {}))
        for tensor in tree_leaves(given):
            if isinstance(tensor, torch.Tensor):
                storage = tensor.untyped_storage()
                self.storages[storage.data_ptr()] = (StorageWeakRef(storage), storage.nbytes())
        self.peak = max(self.peak, self.bytes) if self.watches_peak else 0
        return given

    @property
    def bytes(self) -> int:
        """Of those that are still held, without what was there before."""
        return sum(
            size
            for address, (storage, size) in self.storages.items()
            if address not in self.before and not storage.expired()
        )


@contextmanager
def precision(name: str) -> Iterator[None]:
    with torch.autocast("cpu", torch.bfloat16, enabled=name == "bf16"):
        yield


def batch(vocabulary: int, rows: int, length: int) -> Rows:
    generator = np.random.default_rng(0)
    tokens_BL = generator.integers(0, vocabulary, (rows, length))
    documents_BL = np.tile(np.arange(length) // 10, (rows, 1))
    return Rows(tokens_BL, np.roll(tokens_BL, -1, axis=1), documents_BL)


def checkpointed(config: ModelConfig, checkpointing: str, every: int = 1) -> Decoder:
    model = Decoder(config)
    values = {"activation_checkpointing": checkpointing, "activation_checkpointing_every": every}
    checkpoint_activations(model, TrainingExecution(**values))
    return model


def held_by(model: Decoder, precision_name: str) -> int:
    """Bytes that wait for the backward pass when the states of a batch are computed."""
    rows = batch(71, ROWS, LENGTH)
    tokens_BL, documents_BL = torch.from_numpy(rows.tokens_BL), torch.from_numpy(rows.documents_BL)
    with Held([*model.parameters(), *model.buffers(), tokens_BL, documents_BL]) as held:
        with precision(precision_name):
            states = model(tokens_BL, documents_BL=documents_BL, output=lambda x, _: x)
        # The numbers of tokens are held for the gradient of their table.
        return held.bytes + tokens_BL.nbytes - states.nbytes


@pytest.mark.parametrize("checkpointing", ["none", "full", "cheap"])
@pytest.mark.parametrize("precision_name", ["fp32", "bf16"])
@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES.keys())
def test_what_is_kept_is_to_the_byte_what_torch_holds(shape, precision_name, checkpointing):
    model = checkpointed(config(**shape), checkpointing)
    how = {"precision": precision_name, "checkpointing": checkpointing}
    said = training_memory(model.config, rows=ROWS, length=LENGTH, **how)
    # where each expert's tokens end is a number for each expert, not for each token: left out
    routed = sum(isinstance(block.mlp, MixtureOfExperts) for block in model.blocks)
    ends = 4 * 4 * routed if checkpointing == "none" else 0
    assert said.kept == held_by(model, precision_name) - ends


def test_every_second_block_checkpointed_keeps_the_others():
    model = checkpointed(config(layers=5), "full", every=2)
    how = {"precision": "fp32", "checkpointing": "full", "checkpointing_every": 2}
    said = training_memory(model.config, rows=ROWS, length=LENGTH, **how)
    assert said.kept == held_by(model, "fp32")


@pytest.mark.parametrize("checkpointing", ["none", "full", "cheap"])
@pytest.mark.parametrize("precision_name", ["fp32", "bf16"])
@pytest.mark.parametrize("name", ["plain", "latent", "experts"])
def test_the_height_of_a_step_is_met(name, precision_name, checkpointing):
    """What a single operation needs besides is a tenth here, and nothing for a model of size."""
    vocabulary, rows, length = 500, 4, 64
    sizes = {"vocabulary_size": vocabulary, "layers": 4, "width": 64, "mlp_width": 160}
    model = checkpointed(config(**{**SHAPES[name], **sizes}), checkpointing)
    at_once = 64 * vocabulary
    arithmetic = Arithmetic(torch.device("cpu"), precision_name, logits=at_once)
    train = partial(arithmetic.train, model, batch(vocabulary, rows, length), targets=256)
    train().loss.backward()  # so that there are gradients to add to
    before = [tensor for weight in model.parameters() for tensor in (weight, weight.grad)]
    with Held([*before, *model.buffers()], watches_peak=True) as held:
        train().loss.backward()
    how = {"precision": precision_name, "checkpointing": checkpointing, "logits": at_once}
    said = training_memory(model.config, rows=rows, length=length, **how)
    found = held.peak + said.gradients
    assert 0.94 < (said.gradients + said.activations + said.logits) / found < 1.16


@pytest.mark.parametrize("optimizer", ["adamw", "muon"])
@pytest.mark.parametrize("shape", [{}, {"tied_embeddings": False}, {"experts": EXPERTS}])
def test_the_optimizer_holds_what_is_said(shape, optimizer):
    model = Decoder(config(**shape))
    updates = Optimizer(model, OptimizerConfig(name=optimizer))
    model(torch.arange(71)[None]).square().mean().backward()
    updates.set_rate(1e-3)
    updates.step()
    tensors = updates.tensors()
    found = sum(tensor.nbytes for tensor in tensors.values())
    said = training_memory(model.config, rows=1, length=4, optimizer=optimizer, averages=2)
    assert said.optimizer == found
    parameters = sum(weight.nbytes for weight in model.parameters())
    assert said.gradients == sum(weight.grad.nbytes for weight in model.parameters())
    assert said.weights == 3 * parameters


def test_a_published_size_is_of_the_order_that_is_known():
    # Llama 3 8B with AdamW: 16 bytes a parameter are 128.5 GB before any activation; of each of
    # the 9 tensors of a layer, and 3 outside of them, the number of updates
    shape = {"width": 4096, "layers": 32, "heads": 32, "kv_heads": 8, "mlp_width": 14336}
    llama = ModelConfig(vocabulary_size=128256, tied_embeddings=False, **shape)
    said = training_memory(llama, rows=1, length=8192)
    assert said.state == 16 * 8_030_261_248 + 4 * (9 * 32 + 3)
    full = training_memory(llama, rows=1, length=8192, checkpointing="full")
    # the input of each block in float32: 32 · 8192 · 4096 · 4 bytes
    assert full.norms == 32 * 8192 * 4096 * 4 + 8192 * (4 * (2 * 4096 + 1) + 8)
    assert full.activations < said.activations / 8
