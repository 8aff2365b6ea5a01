import pytest
import torch

from artifacts_schema.errors import CorruptArtifact
from stages.model.config import ModelShape
from stages.model.decoder import Decoder
from stages.training.config import AdamWConfig
from stages.training.optimizer import (
    adamw,
    decays,
    load_optimizer,
    optimizer_tensors,
    set_learning_rate,
)


def tiny(tied: bool = True) -> Decoder:
    shape = ModelShape(width=16, layers=1, heads=2, kv_heads=1, context=8, tied_embeddings=tied)
    return Decoder(shape.with_vocabulary(11))


def update(model, optimizer, seed):
    generator = torch.Generator().manual_seed(seed)
    for parameter in model.parameters():
        parameter.grad = torch.randn(parameter.shape, generator=generator)
    set_learning_rate(optimizer, 0.01)
    optimizer.step()


@pytest.mark.parametrize("tied", [True, False])
def test_every_parameter_is_in_one_group_and_only_matrices_decay(tied):
    model = tiny(tied)
    optimizer = adamw(model, AdamWConfig(weight_decay=0.3))
    grouped = [p for group in optimizer.param_groups for p in group["params"]]
    assert sorted(map(id, grouped)) == sorted(map(id, model.parameters()))
    plain = {name for name, chosen in decays(model).items() if not chosen}
    assert plain == {
        "embedding.weight",
        "norm.weight",
        "blocks.0.attention_norm.weight",
        "blocks.0.mlp_norm.weight",
    }
    assert {group["weight_decay"] for group in optimizer.param_groups} == {0.3, 0.0}


def test_first_update_is_adamw_as_published():
    """Loshchilov & Hutter 2019, algorithm 2: after bias correction the first step is lr * sign(g)
    (epsilon aside), plus lr * weight_decay * weight for the matrices that decay."""
    model = tiny()
    optimizer = adamw(model, AdamWConfig(weight_decay=0.5, epsilon=1e-12))
    before = {name: p.detach().clone() for name, p in model.named_parameters()}
    update(model, optimizer, seed=1)
    for name, parameter in model.named_parameters():
        decay = 0.5 if decays(model)[name] else 0.0
        expected = before[name] * (1 - 0.01 * decay) - 0.01 * parameter.grad.sign()
        torch.testing.assert_close(parameter.detach(), expected)


def test_state_goes_out_and_in_and_the_next_update_is_bit_equal():
    model = tiny()
    optimizer = adamw(model, AdamWConfig())
    for seed in range(3):
        update(model, optimizer, seed)
    tensors = {name: t.clone() for name, t in optimizer_tensors(optimizer).items()}
    other = tiny()
    other.load_state_dict(model.state_dict())
    fresh = adamw(other, AdamWConfig())
    load_optimizer(fresh, tensors, where="here")
    update(model, optimizer, 9)
    update(other, fresh, 9)
    for one, two in zip(model.parameters(), other.parameters(), strict=True):
        assert torch.equal(one, two)
    assert tensors["norm.weight.step"].item() == 3


def test_an_optimizer_that_never_stepped_has_no_state_and_stays_so():
    """pytorch/torchtitan#4382: exporting through a dummy update leaves step 1 behind."""
    model = tiny()
    optimizer = adamw(model, AdamWConfig())
    assert optimizer_tensors(optimizer) == {}
    load_optimizer(optimizer, {}, where="here")
    update(model, optimizer, 0)
    assert all(state["step"].item() == 1 for state in optimizer.state.values())


def test_state_is_complete_while_gradients_are_set():
    """pytorch/pytorch#140898: a state that is silently empty when gradients are still there."""
    model = tiny()
    optimizer = adamw(model, AdamWConfig())
    update(model, optimizer, 0)
    assert len(optimizer_tensors(optimizer)) == 3 * len(list(model.parameters()))


def test_state_of_another_model_is_refused_by_name():
    model, optimizer = (small := tiny()), adamw(small, AdamWConfig())
    update(model, optimizer, 0)
    tensors = optimizer_tensors(optimizer)
    del tensors["norm.weight.exp_avg"]
    with pytest.raises(CorruptArtifact, match=r"norm\.weight\.exp_avg"):
        load_optimizer(adamw(tiny(), AdamWConfig()), tensors, where="here")
    tensors["norm.weight.exp_avg"] = torch.zeros(3)
    with pytest.raises(CorruptArtifact, match=r"shape \[3\], expected \[16\]"):
        load_optimizer(adamw(tiny(), AdamWConfig()), tensors, where="here")
