"""Precision fp8: which layers, which rounding, what is refused."""

import pytest
import torch
from parallel_training import STEPS, Training
from ranks import run_ranks

from artifacts_schema.errors import UsageError
from stages.model.config import ModelConfig
from stages.model.decoder import Decoder
from stages.parallel.layout import Layout
from stages.training.float8 import use_float8

pytest.importorskip("torchao", reason="needs torchao: pip install 'ingot[float8]'")

CPU = torch.device("cpu")
LARGEST = 448.0
"""Of e4m3 (Micikevicius et al. 2022, table 1)."""
FP8 = {"precision": "fp8"}


def decoder(**config):
    settings = {
        "vocabulary_size": 96,
        "width": 32,
        "layers": 2,
        "heads": 4,
        "kv_heads": 4,
        "mlp_width": 48,
    }
    return Decoder(ModelConfig(**{**settings, "context": 16, **config}), seed=3)


def rounded(x_NK):
    """Each row in e4m3, under a power of two that brings its largest magnitude below 448."""
    scale_N1 = torch.exp2(torch.floor(torch.log2(LARGEST / x_NK.abs().amax(1, keepdim=True))))
    return (x_NK * scale_N1).to(torch.float8_e4m3fn).float() / scale_N1


def test_operands_are_rounded_by_row_and_multiplied():
    model = decoder()
    layer = model.blocks[0].mlp.up
    matrix_KN = layer.weight.detach().clone()
    use_float8(model, CPU, Layout())
    x_MN = torch.randn(48, 32).mul(torch.logspace(-6, 3, 48)[:, None]).requires_grad_()
    y_MK = model.blocks[0].mlp.up(x_MN)
    assert torch.equal(y_MK, rounded(x_MN) @ rounded(matrix_KN).T)
    gradient_MK = torch.randn_like(y_MK)
    y_MK.backward(gradient_MK)
    dx_MN = rounded(gradient_MK) @ rounded(matrix_KN.T).T
    assert torch.allclose(x_MN.grad, dx_MN, rtol=1e-4, atol=1e-5)
    weight = model.blocks[0].mlp.up.weight
    assert weight.dtype == weight.grad.dtype == torch.float32
    dw_KN = rounded(gradient_MK.T) @ rounded(x_MN.detach().T).T
    assert torch.allclose(weight.grad, dw_KN, rtol=1e-4, atol=1e-2)


def test_layers_of_blocks_alone_and_all_parameters_as_before():
    model = decoder(
        kv_heads=1, tied_embeddings=False
    )  # Keys and values are 8 wide: not divisible by 16.
    before = dict(model.named_parameters())
    assert use_float8(model, CPU, Layout()) == 2 * 5
    kinds = {name: type(module).__name__ for name, module in model.blocks[0].named_modules()}
    assert kinds["attention.query"] == kinds["mlp.down"] == "Float8Linear"
    assert kinds["attention.key"] == "Linear"
    assert type(model.head).__name__ == "Linear"
    after = dict(model.named_parameters())
    assert after.keys() == before.keys()
    assert all(after[name] is parameter for name, parameter in before.items())


def train(layout, case):
    training = Training(layout, case)
    return [training.step(step)["loss"] for step in range(STEPS)]


def test_it_learns_as_bf16_does():
    half, eighth = train(Layout(), {"precision": "bf16"}), train(Layout(), FP8)
    assert eighth != half
    assert max(abs(a - b) for a, b in zip(half, eighth, strict=True)) < 0.05


@pytest.mark.full
@pytest.mark.parametrize("layout", [Layout(shard=2), Layout(pipeline=2), Layout(context=2)])
def test_ranks_learn_as_one_process_does(layout):
    """Scales are of one row: those of tokens do not depend on which ranks have which."""
    one = train(Layout(), FP8)
    ranks = run_ranks(2, train, layout, FP8)[0]
    assert max(abs(a - b) for a, b in zip(one, ranks, strict=True)) < 5e-3


@pytest.mark.parametrize(
    ("what", "where", "change"),
    [
        ("torchao", "precision", {}),
        ("no float8", "precision", {"device": torch.device("cuda", 0)}),
        ("tensor", "execution.layout.tensor", {"layout": Layout(tensor=2)}),
        (
            "16 divides",
            "precision",
            {"model": {"width": 24, "heads": 3, "kv_heads": 3, "mlp_width": 40}},
        ),
    ],
)
def test_what_cannot_be_is_refused_with_its_reason(monkeypatch, what, where, change):
    model = decoder(**change.get("model", {}))
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: (8, 0))
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda device: "A100")
    if what == "torchao":
        monkeypatch.setattr("stages.training.float8.find_spec", lambda name: None)
    with pytest.raises(UsageError) as caught:
        use_float8(model, change.get("device", CPU), change.get("layout", Layout()))
    assert what in caught.value.what
    assert caught.value.where == where
    assert caught.value.hint
