import pytest
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from stages.model.config import ModelConfig
from stages.model.decoder import Decoder
from stages.model.size import (
    count_parameters,
    forward_flops_per_token,
    mfu_flops_per_token,
    training_flops_per_token,
)

LATENT = {"query_rank": 20, "kv_rank": 12, "plain_width": 8, "rotary_width": 6, "value_width": 14}
EXPERTS = {"experts": 6, "chosen": 2, "width": 20, "shared": 2, "first": 1}
SHAPES = {
    "plain": {},
    "untied": {"tied_embeddings": False},
    "free head width, norm of heads": {"head_width": 20, "qk_norm": "head"},
    "norm over heads": {"qk_norm": "width", "norm": "output"},
    "latent": {"kv_heads": 6, "latent": LATENT},
    "latent, queries as they are": {"kv_heads": 6, "latent": {**LATENT, "query_rank": None}},
    "experts": {"experts": EXPERTS},
    "experts everywhere, none shared": {"experts": {**EXPERTS, "first": 0, "shared": 0}},
}


def config(**changes) -> ModelConfig:
    values = {"vocabulary_size": 71, "width": 48, "layers": 3, "heads": 6, "kv_heads": 2}
    return ModelConfig(**{**values, **changes})


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES.keys())
def test_counted_parameters_are_those_of_the_module(shape):
    module = Decoder(config(**shape))
    count = count_parameters(config(**shape))

    def held(*parts):
        named = module.named_parameters()
        return sum(p.numel() for name, p in named if any(part in name for part in parts))

    assert count.total == sum(p.numel() for p in module.parameters())
    assert count.norms == held("norm")
    assert count.router == held("router")
    assert count.experts == held("mlp.experts")
    assert count.embedding + count.head == held("embedding", "head")
    assert count.without_embeddings == count.total - held("embedding", "head")


def test_a_token_meets_only_the_experts_that_it_goes_to():
    # 2 of 6 experts of 3 · 48 · 20 weights, in 2 of 3 layers
    count = count_parameters(config(experts=EXPERTS))
    assert count.total - count.active == 4 * 3 * 48 * 20 * 2
    assert count.without_embeddings - count.active_without_embeddings == 4 * 3 * 48 * 20 * 2
    plain = count_parameters(config())
    assert (plain.active, plain.active_without_embeddings) == (
        plain.total,
        plain.without_embeddings,
    )


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES.keys())
def test_forward_operations_are_those_that_torch_counts(shape, monkeypatch):
    # torch counts neither the fused attention of a CPU nor grouped products
    monkeypatch.setattr("stages.model.experts.has_grouped_product", lambda *_: False)
    tokens_BL = torch.randint(71, (2, 16), generator=torch.Generator().manual_seed(0))
    # keys and values repeated for each head are no products, but torch counts what it makes of them
    model = Decoder(config(**{"kv_heads": 6, **shape}))
    with sdpa_kernel(SDPBackend.MATH), FlopCounterMode(display=False) as counter:
        model(tokens_BL)
    expected = forward_flops_per_token(model.config, length=16)
    assert counter.get_total_flops() == 2 * 16 * expected


def test_training_operations_follow_six_n_plus_twelve_l_d_t():
    # arithmetic for width 8, 1 layer, 2 heads of 4, mlp 16, vocabulary 10, length 5:
    # matrices 4·8² + 3·8·16 + 10·8 = 720; 6·720 + 12·1·8·5 = 4800
    config = ModelConfig(vocabulary_size=10, width=8, layers=1, heads=2, kv_heads=2, mlp_width=16)
    assert training_flops_per_token(config, length=5) == 4800
    # without the output projection, with the norms (3 · 8): 6·(720 - 80 + 24) + 480 = 4464
    assert mfu_flops_per_token(config, length=5) == 4464


def test_utilisation_counts_what_a_window_lets_a_token_see():
    # 6 · N as without a window; per layer 12 · 48 · T, T at most 10 in two of three layers
    full, narrow = config(), config(window=10, window_pattern="SL")
    difference = mfu_flops_per_token(full, 100) - mfu_flops_per_token(narrow, 100)
    assert difference == 2 * 12 * 48 * 90
    assert mfu_flops_per_token(full, 8) == mfu_flops_per_token(narrow, 8)


def test_utilisation_counts_the_experts_that_a_token_goes_to():
    count = count_parameters(config(experts=EXPERTS))
    expected = 6 * count.active_without_embeddings + 12 * 3 * 48 * 7
    assert mfu_flops_per_token(config(experts=EXPERTS), 7) == expected
    # two shared and two chosen of 3 · 48 · 20 weights, and the router's 48 · 6, in 2 layers of 3
    dense = count_parameters(config(experts={**EXPERTS, "first": 2}))
    a_layer = 4 * 3 * 48 * 20 + 48 * 6 - 3 * 48 * config().mlp_width
    assert count.active - dense.active == a_layer


def test_published_operations_of_a_gpt_2_size_are_met():
    # 124M class: 12 layers of 768, 12 · 12 · 768² = 85.0M without embeddings; at length 2048
    # 6 · 84.95M + 12 · 12 · 768 · 2048 = 0.736 GFLOP a token (SwiGLU of 2048 weighs 4 · 768 twice)
    count = count_parameters(ModelConfig(vocabulary_size=50304, depth=12))
    assert count.without_embeddings == 12 * 12 * 768**2 + 25 * 768
    flops = mfu_flops_per_token(ModelConfig(vocabulary_size=50304, depth=12), 2048)
    assert flops == pytest.approx(0.736e9, rel=1e-3)
