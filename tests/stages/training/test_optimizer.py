import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from artifacts_schema.errors import CorruptArtifact
from stages.model.config import ModelShape
from stages.model.decoder import Decoder
from stages.training.config import OptimizerConfig, ParameterGroup
from stages.training.optimizer import LossScaler, Optimizer

MUON = OptimizerConfig(name="muon")
BOTH = pytest.mark.parametrize("config", [OptimizerConfig(), MUON], ids=["adamw", "muon"])


def tiny(tied: bool = True) -> Decoder:
    shape = ModelShape(width=16, layers=1, heads=2, kv_heads=1, context=8, tied_embeddings=tied)
    return Decoder(shape.with_vocabulary(11))


def gradients(model, seed):
    generator = torch.Generator().manual_seed(seed)
    for parameter in model.parameters():
        parameter.grad = torch.randn(parameter.shape, generator=generator)


def update(model, optimizer, seed):
    gradients(model, seed)
    optimizer.set_rate(0.01)
    optimizer.step()


def copied(optimizer):
    return {name: tensor.clone() for name, tensor in optimizer.tensors().items()}


def test_first_update_is_adamw_as_published():
    """Loshchilov & Hutter 2019, algorithm 2: after bias correction the first step is lr * sign(g)
    (epsilon aside), plus lr * weight_decay * weight for the matrices that decay."""
    model = tiny()
    optimizer = Optimizer(model, OptimizerConfig(weight_decay=0.5, epsilon=1e-12))
    before = {name: p.detach().clone() for name, p in model.named_parameters()}
    update(model, optimizer, seed=1)
    for name, parameter in model.named_parameters():
        decay = 0.0 if "norm" in name or "embedding" in name else 0.5
        expected = before[name] * (1 - 0.01 * decay) - 0.01 * parameter.grad.sign()
        torch.testing.assert_close(parameter.detach(), expected)


def test_ten_updates_equal_those_of_torch_adamw():
    """The oracle in its plain form: one tensor at a time, not fused."""
    model, other = tiny(), tiny()
    optimizer = Optimizer(model, OptimizerConfig(beta2=0.99, weight_decay=0.3))
    plain = [p for name, p in other.named_parameters() if p.ndim < 2 or "embedding" in name]
    decaying = [p for name, p in other.named_parameters() if p.ndim > 1 and "embedding" not in name]
    groups = [{"params": plain, "weight_decay": 0.0}, {"params": decaying, "weight_decay": 0.3}]
    oracle = torch.optim.AdamW(groups, lr=0.01, betas=(0.9, 0.99), eps=1e-8, foreach=False)
    for seed in range(10):
        update(model, optimizer, seed)
        gradients(other, seed)
        oracle.step()
    for one, two in zip(model.parameters(), other.parameters(), strict=True):
        torch.testing.assert_close(one, two, rtol=1e-6, atol=1e-7)


@BOTH
def test_state_goes_out_and_in_and_the_next_update_is_bit_equal(config):
    model = tiny()
    optimizer = Optimizer(model, config)
    for seed in range(3):
        update(model, optimizer, seed)
    tensors = copied(optimizer)
    other = tiny()
    other.load_state_dict(model.state_dict())
    fresh = Optimizer(other, config)
    fresh.load(tensors, where="here")
    update(model, optimizer, 9)
    update(other, fresh, 9)
    for one, two in zip(model.parameters(), other.parameters(), strict=True):
        assert torch.equal(one, two)
    assert tensors["norm.weight.step"].item() == 3


@BOTH
def test_an_optimizer_that_never_stepped_has_no_state_and_stays_so(config):
    """pytorch/torchtitan#4382: exporting through a dummy update leaves step 1 behind."""
    model = tiny()
    optimizer = Optimizer(model, config)
    gradients(model, 0)
    assert optimizer.tensors() == {}
    optimizer.load({}, where="here")
    assert optimizer.tensors() == {}
    update(model, optimizer, 0)
    steps = {n: t.item() for n, t in optimizer.tensors().items() if n.endswith(".step")}
    assert steps
    assert set(steps.values()) == {1}


@BOTH
def test_an_empty_state_forgets_what_was_there(config):
    """`fresh`: a checkpoint without state must not leave the moments of the run before."""
    model = tiny()
    optimizer = Optimizer(model, config)
    update(model, optimizer, 0)
    optimizer.load({}, where="here")
    assert optimizer.tensors() == {}


@BOTH
def test_state_is_complete_while_gradients_are_set(config):
    """pytorch/pytorch#140898: a state that is silently empty when gradients are still there."""
    model = tiny()
    optimizer = Optimizer(model, config)
    update(model, optimizer, 0)
    muon = sum("blocks" in name and p.ndim == 2 for name, p in model.named_parameters())
    muon = muon if config is MUON else 0
    assert len(optimizer.tensors()) == 3 * (len(list(model.parameters())) - muon) + muon


def test_state_of_another_model_is_refused_by_name():
    model = tiny()
    optimizer = Optimizer(model, OptimizerConfig())
    update(model, optimizer, 0)
    tensors = optimizer.tensors()
    del tensors["norm.weight.exp_avg"]
    fresh = Optimizer(tiny(), OptimizerConfig())
    with pytest.raises(CorruptArtifact, match=r"norm\.weight\.exp_avg"):
        fresh.load(tensors, where="here")
    tensors["norm.weight.exp_avg"] = torch.zeros(3)
    with pytest.raises(CorruptArtifact, match=r"shape \[3\], expected \[16\]"):
        fresh.load(tensors, where="here")


def test_state_of_another_optimizer_is_refused():
    model = tiny()
    optimizer = Optimizer(model, OptimizerConfig())
    update(model, optimizer, 0)
    with pytest.raises(CorruptArtifact, match="another optimizer"):
        Optimizer(tiny(), MUON).load(optimizer.tensors(), where="here")


def test_a_parameter_without_gradient_is_not_passed_over_in_silence():
    model = tiny()
    optimizer = Optimizer(model, OptimizerConfig())
    gradients(model, 0)
    model.norm.weight.grad = None
    with pytest.raises(ValueError, match=r"norm\.weight has no gradient"):
        optimizer.step()


def test_what_is_frozen_is_left_alone():
    model = tiny()
    model.embedding.weight.requires_grad_(False)
    optimizer = Optimizer(model, OptimizerConfig())
    before = model.embedding.weight.clone()
    update(model, optimizer, 0)
    assert torch.equal(model.embedding.weight, before)
    assert not any(name.startswith("embedding") for name in optimizer.tensors())


def test_the_rate_of_a_group_is_a_multiple():
    """With the first update of AdamW every weight without decay moves by exactly its rate."""
    model = tiny()
    groups = (ParameterGroup(match="norm.*", rate=0.25),)
    optimizer = Optimizer(model, OptimizerConfig(groups=groups, epsilon=1e-12))
    before = {name: p.detach().clone() for name, p in model.named_parameters()}
    update(model, optimizer, 3)
    moved = {name: (p - before[name]).abs().mean().item() for name, p in model.named_parameters()}
    assert moved["norm.weight"] == pytest.approx(0.0025, rel=1e-4)
    assert moved["embedding.weight"] == pytest.approx(0.01, rel=1e-4)


@settings(max_examples=30, deadline=None)
@given(limit=st.floats(0.01, 100), seed=st.integers(0, 1000))
def test_clipping_gives_the_norm_before_and_leaves_one_below_the_limit(limit, seed):
    model = tiny()
    optimizer = Optimizer(model, OptimizerConfig(clip=limit))
    gradients(model, seed)
    before = torch.cat([p.grad.flatten() for p in model.parameters()])
    given_norm = optimizer.clip()
    after = torch.cat([p.grad.flatten() for p in model.parameters()])
    assert given_norm.item() == pytest.approx(before.norm().item(), rel=1e-5)
    assert after.norm().item() == pytest.approx(min(limit, before.norm().item()), rel=1e-4)
    assert torch.nn.functional.cosine_similarity(before, after, dim=0) == pytest.approx(1.0)


def fp16_gradients(model, optimizer, factor=1.0):
    """Gradients of a small loss, as the loop has them before `clip`."""
    optimizer.zero_grad()
    optimizer.backward(factor * sum(p.square().sum() for p in model.parameters()))


def test_under_fp16_gradients_are_scaled_until_they_are_clipped_and_no_bit_changes():
    """The scale is a power of two: bits are those of a run without it."""
    model, plain = tiny(), tiny()
    scaled = Optimizer(model, OptimizerConfig(), "fp16")
    unscaled = Optimizer(plain, OptimizerConfig())
    fp16_gradients(model, scaled)
    fp16_gradients(plain, unscaled)
    assert torch.equal(model.norm.weight.grad, plain.norm.weight.grad * LossScaler.FIRST)
    assert torch.equal(scaled.clip(), unscaled.clip())
    for one, two in zip(model.parameters(), plain.parameters(), strict=True):
        assert torch.equal(one.grad, two.grad)


def test_under_fp16_an_overflow_halves_the_scale_and_touches_nothing_else():
    model = tiny()
    optimizer = Optimizer(model, OptimizerConfig(), "fp16")
    before = [p.detach().clone() for p in model.parameters()]
    fp16_gradients(model, optimizer, factor=1e35)
    assert not torch.isfinite(optimizer.clip())
    assert optimizer.overflowed()
    assert optimizer.scaler.scale == LossScaler.FIRST / 2
    assert all(torch.equal(one, p) for one, p in zip(before, model.parameters(), strict=True))
    assert not any("exp_avg" in name for name in optimizer.tensors())


def test_under_fp16_updates_without_overflow_double_the_scale_in_time(monkeypatch):
    monkeypatch.setattr(LossScaler, "GROWS_AFTER", 2)
    model = tiny()
    optimizer = Optimizer(model, OptimizerConfig(), "fp16")
    for seed in range(3):
        update(model, optimizer, seed)
    assert optimizer.scaler.scale == 2 * LossScaler.FIRST


def test_an_overflow_without_a_loss_scale_is_cause_for_alarm():
    assert not Optimizer(tiny(), OptimizerConfig(), "bf16").overflowed()


def test_the_loss_scale_travels_with_the_state_and_is_no_concern_of_other_precisions():
    model = tiny()
    optimizer = Optimizer(model, OptimizerConfig(), "fp16")
    update(model, optimizer, 0)
    optimizer.overflowed()
    tensors = copied(optimizer)
    fresh, other = (Optimizer(tiny(), OptimizerConfig(), p) for p in ("fp16", "bf16"))
    fresh.load(tensors, where="here")
    assert fresh.scaler.scale == LossScaler.FIRST / 2
    assert copied(fresh).keys() == tensors.keys()
    other.load(tensors, where="here")
    assert other.tensors().keys() == {n for n in tensors if not n.startswith("loss_scaler")}
    fresh.load(other.tensors(), where="here")
    assert fresh.scaler.scale == LossScaler.FIRST / 2
