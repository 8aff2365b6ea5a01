"""Muon against torch.optim.Muon, singular values and arithmetic."""

import math

import pytest
import torch
from torch import nn

from stages.training import optimizer
from stages.training.config import MuonConfig
from stages.training.optimizer import Muon, orthogonalise, shape_scale

SHAPES = [(8, 24), (24, 8), (16, 16), (8, 24), (1, 8)]


def matrices(shapes=SHAPES, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return [nn.Parameter(torch.randn(shape, generator=generator)) for shape in shapes]


def with_gradients(parameters, seed):
    generator = torch.Generator().manual_seed(100 + seed)
    for parameter in parameters:
        parameter.grad = torch.randn(parameter.shape, generator=generator)


def ours(parameters, rate=0.02, weight_decay=0.1, **settings):
    group = {"params": parameters, "lr": rate, "weight_decay": weight_decay}
    return Muon([group], MuonConfig(**settings))


@pytest.mark.parametrize("nesterov", [True, False])
@pytest.mark.parametrize(
    ("scale", "theirs"), [("spectral", None), ("match_rms", "match_rms_adamw")]
)
def test_it_equals_torch_muon_where_that_can_do_it(scale, theirs, nesterov):
    """Torch takes single matrices. Both iterate in bfloat16; bits are equal on today's CPUs, but a
    batched product may sum in another order: one rounding of an update is allowed."""
    rate = 0.02
    one, two = matrices(), matrices()
    mine = ours(one, rate, scale=scale, nesterov=nesterov)
    oracle = torch.optim.Muon(
        two, lr=rate, weight_decay=0.1, momentum=0.95, nesterov=nesterov, adjust_lr_fn=theirs
    )
    for seed in range(4):
        with_gradients(one, seed)
        with_gradients(two, seed)
        mine.step()
        oracle.step()
    for left, right in zip(one, two, strict=True):
        torch.testing.assert_close(
            left, right, rtol=0, atol=2**-8 * rate * shape_scale(left.shape, scale)
        )
        torch.testing.assert_close(
            mine.state[left]["momentum"], oracle.state[right]["momentum_buffer"]
        )


@pytest.mark.parametrize("shape", [(12, 12), (8, 24), (24, 8)])
def test_singular_vectors_stay_and_values_go_through_the_quintic(shape):
    """What the matrix iteration does is what 3.4445 x - 4.775 x³ + 2.0315 x⁵ does five times to
    each singular value, over the Frobenius norm at first (Jordan 2024)."""
    small = min(shape)
    left, right = (
        torch.linalg.qr(torch.randn(n, small, generator=torch.Generator().manual_seed(n)))[0]
        for n in shape
    )
    values = torch.linspace(0.5, 2, small)
    expected = values / values.norm()
    for _ in range(5):
        expected = 3.4445 * expected - 4.775 * expected**3 + 2.0315 * expected**5
    assert (expected > 0.65).all()
    assert (expected < 1.25).all()
    found = orthogonalise((left @ torch.diag(values) @ right.T)[None], 5)[0].float()
    inner = left.T @ found @ right
    torch.testing.assert_close(inner, torch.diag(expected), rtol=0, atol=0.03)  # bfloat16


def test_a_stack_of_experts_is_updated_one_expert_at_a_time():
    stacked = [nn.Parameter(torch.stack([p.detach() for p in matrices([(8, 24)] * 3)]))]
    apart = matrices([(8, 24)] * 3)
    with_gradients(apart, 0)
    stacked[0].grad = torch.stack([p.grad for p in apart])
    ours(stacked).step()
    ours(apart).step()
    torch.testing.assert_close(stacked[0][1], apart[1], rtol=0, atol=1e-6)
    assert not torch.allclose(stacked[0][1], matrices([(8, 24)] * 3)[1])


def test_how_much_is_stacked_at_once_changes_nothing_but_order(monkeypatch):
    one, two = matrices(), matrices()
    with_gradients(one, 0)
    with_gradients(two, 0)
    ours(one).step()
    monkeypatch.setattr(optimizer, "_STACKED", 1)
    ours(two).step()
    for left, right in zip(one, two, strict=True):
        torch.testing.assert_close(left, right, rtol=0, atol=1e-3)


def test_a_gradient_of_zeros_moves_nothing_but_by_decay():
    (parameter,) = matrices([(4, 6)])
    before = parameter.detach().clone()
    parameter.grad = torch.zeros_like(parameter)
    ours([parameter], rate=0.5, weight_decay=0.1).step()
    assert torch.equal(parameter, before * 0.95)


def test_scales_are_those_of_their_sources():
    """Moonlight, eq. 4: 0.2 √max(A, B); Jordan's code: √max(1, rows/columns)."""
    assert shape_scale((1024, 4096), "match_rms") == pytest.approx(0.2 * 64)
    assert shape_scale((4096, 1024), "match_rms") == pytest.approx(0.2 * 64)
    assert shape_scale((4096, 1024), "spectral") == 2.0
    assert shape_scale((1024, 4096), "spectral") == 1.0


def test_matched_updates_are_as_large_as_those_of_adamw():
    """Moonlight, section 2.2: the root mean square of AdamW's updates is 0.2 to 0.4 of the rate,
    and so is Muon's with match_rms: 0.2, times the mean singular value of about 0.9."""
    for shape in ((64, 64), (32, 128), (128, 32)):
        (parameter,) = matrices([shape])
        before = parameter.detach().clone()
        with_gradients([parameter], 5)
        ours([parameter], rate=1.0, weight_decay=0.0, scale="match_rms").step()
        rms = (parameter - before).square().mean().sqrt().item()
        assert rms == pytest.approx(0.2 * 0.9, rel=0.15), (shape, math.sqrt(rms))
