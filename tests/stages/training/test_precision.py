import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from stages.training.losses import autocast
from stages.training.optimizer import LossScaler


@pytest.mark.parametrize(
    ("precision", "dtype"),
    [("fp32", torch.float32), ("bf16", torch.bfloat16), ("fp16", torch.float16)],
)
def test_products_are_in_the_precision_and_weights_stay_float32(precision, dtype):
    layer = torch.nn.Linear(4, 4)
    with autocast(torch.device("cpu"), precision):
        found = layer(torch.ones(2, 4))
    assert found.dtype == dtype
    found.float().sum().backward()
    assert layer.weight.dtype == layer.weight.grad.dtype == torch.float32


def test_float32_inside_a_reduced_region_is_float32_again():
    with autocast(torch.device("cpu"), "bf16"), autocast(torch.device("cpu"), "fp32"):
        assert (torch.ones(2, 2) @ torch.ones(2, 2)).dtype == torch.float32


@settings(max_examples=30, deadline=None)
@given(overflows=st.lists(st.booleans(), max_size=40), grows_after=st.integers(1, 5))
def test_the_scale_goes_as_that_of_torch(overflows, grows_after):
    """The oracle: torch.amp.GradScaler, driven through the same overflows."""
    oracle = torch.amp.GradScaler("cpu", growth_interval=grows_after)
    scaler = LossScaler()
    scaler.GROWS_AFTER, scaler.MOST = grows_after, float("inf")
    parameter = torch.nn.Parameter(torch.ones(1))
    optimizer = torch.optim.SGD([parameter], lr=0.0)
    oracle.scale(torch.ones(1))
    for overflow in overflows:
        if oracle.get_scale() <= scaler.LEAST:
            break
        parameter.grad = torch.full((1,), float("inf") if overflow else 1.0)
        oracle.unscale_(optimizer)
        oracle.update()
        if overflow:
            assert scaler.overflowed()
        else:
            scaler.updated()
        assert scaler.scale == oracle.get_scale()


def test_it_has_a_floor_at_which_an_overflow_is_no_longer_explained():
    scaler = LossScaler()
    halved = 0
    while scaler.overflowed():
        halved += 1
    assert (halved, scaler.scale) == (16, 1.0)


def test_it_has_a_ceiling():
    scaler = LossScaler()
    for _ in range(20 * scaler.GROWS_AFTER):
        scaler.updated()
    assert scaler.scale == 2.0**24


@given(st.lists(st.booleans(), max_size=60))
def test_the_state_is_whole(history):
    one, two = LossScaler(), LossScaler()
    one.GROWS_AFTER = two.GROWS_AFTER = 3
    for overflow in history:
        one.overflowed() if overflow else one.updated()
    two.load(one.tensors())
    for scaler in (one, two):
        for overflow in (False, False, True, False, False, False):
            scaler.overflowed() if overflow else scaler.updated()
    assert (one.scale, one.clean) == (two.scale, two.clean)
