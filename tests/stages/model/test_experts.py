"""Mixture of experts against `transformers`' DeepSeek-V3, its loop, and its balancing by hand."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.utils.checkpoint import checkpoint

from stages.model.config import Experts, ModelConfig
from stages.model.decoder import Decoder
from stages.model.experts import (
    MixtureOfExperts,
    Router,
    count_expert_tokens,
    grouped_linear,
    has_grouped_product,
    linear_per_expert,
    mask_other_groups,
    reset_counts,
    update_balance,
)


def layer(width: int = 16, seed: int = 0, **changes) -> MixtureOfExperts:
    """A layer of random weights and biases."""
    values = {"experts": 8, "chosen": 3, "width": 12, "shared": 2}
    module = MixtureOfExperts(width, Experts(**{**values, **changes}))
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for weight in module.parameters():
            weight.normal_(0.0, 0.5, generator=generator)
        module.router.bias.normal_(0.0, 0.2, generator=generator)
    return module


def tokens(count: int, width: int = 16) -> torch.Tensor:
    return torch.randn(count, width, generator=torch.Generator().manual_seed(count))


@pytest.mark.parametrize("normalise", [True, False])
@pytest.mark.parametrize(("groups", "chosen_groups"), [(1, 1), (4, 2), (2, 2)])
def test_it_is_deepseeks_mixture(groups, chosen_groups, normalise):
    from transformers import DeepseekV3Config
    from transformers.models.deepseek_v3.modeling_deepseek_v3 import DeepseekV3MoE

    ours = layer(groups=groups, chosen_groups=chosen_groups, scale=2.5, normalise=normalise)
    config = DeepseekV3Config(
        hidden_size=16,
        moe_intermediate_size=12,
        n_routed_experts=8,
        num_experts_per_tok=3,
        n_shared_experts=2,
        n_group=groups,
        topk_group=chosen_groups,
        routed_scaling_factor=2.5,
        norm_topk_prob=normalise,
        experts_implementation="eager",
    )
    theirs = DeepseekV3MoE(config)
    state = ours.state_dict()
    theirs.load_state_dict(
        {
            "gate.weight": state["router.weight"],
            "gate.e_score_correction_bias": state["router.bias"],
            "experts.gate_up_proj": torch.cat((state["experts.gate"], state["experts.up"]), dim=1),
            "experts.down_proj": state["experts.down"],
            **{
                f"shared_experts.{name}_proj.weight": state[f"shared.{name}.weight"]
                for name in ("gate", "up", "down")
            },
        }
    )
    x_BLD = tokens(40).view(2, 20, 16)
    with torch.no_grad():
        torch.testing.assert_close(ours(x_BLD), theirs(x_BLD), atol=1e-5, rtol=1e-5)


def test_gradients_are_those_of_every_token_through_its_experts_one_by_one():
    ours = layer(shared=0)
    x_ND = tokens(25).requires_grad_()
    ours(x_ND).square().sum().backward()
    found = [x_ND.grad.clone(), *(weight.grad.clone() for weight in ours.parameters())]
    ours.zero_grad()
    x_ND.grad = None

    weights_NX, chosen_NX = ours.router(x_ND)
    stack, rows = ours.experts, []
    for x, weights, chosen in zip(x_ND, weights_NX, chosen_NX, strict=True):
        each = [
            stack.down[expert]
            @ (torch.nn.functional.silu(stack.gate[expert] @ x) * (stack.up[expert] @ x))
            for expert in chosen.tolist()
        ]
        rows.append(sum(weight * y for weight, y in zip(weights, each, strict=True)))
    torch.stack(rows).square().sum().backward()
    expected = [x_ND.grad, *(weight.grad for weight in ours.parameters())]
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("counts", [[3, 0, 5, 1], [0, 0, 0, 9], [9, 0, 0, 0], [0, 0, 0, 0]])
def test_the_grouped_product_equals_one_product_for_each_expert(counts):
    # rows of whole 16 bytes: 8 and 12 channels of float32
    weight_EFD = torch.randn(4, 12, 8, generator=torch.Generator().manual_seed(1))
    results = []
    for product in (grouped_linear, linear_per_expert):
        x_SD, weight = tokens(sum(counts), 8).requires_grad_(), weight_EFD.clone().requires_grad_()
        assert has_grouped_product(x_SD, weight)
        y_SF = product(x_SD, weight, torch.tensor(counts).cumsum(0).int())
        (y_SF * torch.arange(12.0)).sum().backward()
        results.append((y_SF, x_SD.grad, weight.grad))
    for one, other in zip(*results, strict=True):
        torch.testing.assert_close(one, other, atol=1e-5, rtol=1e-5)


def test_rows_that_the_grouped_product_cannot_take_go_one_expert_at_a_time():
    weight_EFD = torch.randn(2, 3, 5, generator=torch.Generator().manual_seed(1))
    x_SD, ends_E = tokens(6, 5), torch.tensor([2, 6], dtype=torch.int32)
    assert not has_grouped_product(x_SD, weight_EFD)
    expected = torch.cat((x_SD[:2] @ weight_EFD[0].T, x_SD[2:] @ weight_EFD[1].T))
    torch.testing.assert_close(grouped_linear(x_SD, weight_EFD, ends_E), expected)


def test_products_are_in_bfloat16_under_autocast_and_scores_in_float32():
    ours, x_BLD = layer(width=16), tokens(30).view(1, 30, 16)
    exact = ours.router(x_BLD[0])
    with torch.autocast("cpu", torch.bfloat16):
        weights_NX, chosen_NX = ours.router(x_BLD[0])
        y_BLD = ours(x_BLD)
    assert torch.equal(weights_NX, exact[0])
    assert torch.equal(chosen_NX, exact[1])
    assert y_BLD.dtype == torch.bfloat16
    with torch.no_grad():
        error = (y_BLD.float() - ours(x_BLD)).norm() / ours(x_BLD).norm()
    assert 1e-4 < error < 2e-2  # 8 bits of mantissa


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 1000), groups=st.sampled_from([1, 2, 4]), data=st.data())
def test_chosen_experts_are_the_best_of_the_best_groups(seed, groups, data):
    chosen_groups = data.draw(st.integers(1, groups))
    config = Experts(
        experts=8, chosen=2, width=4, groups=groups, chosen_groups=chosen_groups, shared=0
    )
    scores = torch.rand(8, generator=torch.Generator().manual_seed(seed))
    chosen = mask_other_groups(scores[None], config)[0].topk(2).indices.tolist()

    size = 8 // groups
    split = [range(g * size, (g + 1) * size) for g in range(groups)]
    by_value = sorted(split, key=lambda g: -sum(sorted(scores[e].item() for e in g)[-2:]))
    allowed = [expert for group in by_value[:chosen_groups] for expert in group]
    assert chosen == sorted(allowed, key=lambda expert: -scores[expert].item())[:2]


def test_the_bias_decides_who_is_chosen_and_not_what_they_weigh():
    router = Router(2, Experts(experts=4, chosen=1, width=4, normalise=False))
    with torch.no_grad():
        router.weight.copy_(torch.tensor([[2.0, 0], [1, 0], [0, 0], [-1, 0]]))
    x_ND = torch.tensor([[1.0, 0.0]])
    with torch.no_grad():
        weights, chosen = router(x_ND)
        assert (chosen.item(), weights.item()) == (0, pytest.approx(0.880797))  # sigmoid(2)
        router.bias[3] = 1.0
        weights, chosen = router(x_ND)
        assert chosen.item() == 3
        assert weights.item() == pytest.approx(0.26894142)  # sigmoid(-1)


def model(**experts) -> Decoder:
    values = {"experts": 4, "chosen": 2, "width": 8, "first": 1, "bias_rate": 0.01}
    config = ModelConfig(
        vocabulary_size=40, width=16, layers=3, heads=2, kv_heads=1, experts={**values, **experts}
    )
    return Decoder(config, seed=2)


def batch(rows: int = 4) -> torch.Tensor:
    return torch.randint(40, (rows, 10), generator=torch.Generator().manual_seed(3))


def routers(decoder: Decoder) -> list[Router]:
    return [module for module in decoder.modules() if isinstance(module, Router)]


def test_biases_follow_algorithm_1_of_the_paper():
    # Wang et al. 2024: b_i += u · sign(mean - c_i). 3 experts, 9 assignments, mean 3.
    router = Router(4, Experts(experts=3, chosen=1, width=4, bias_rate=0.25))
    router.tokens += torch.tensor([5, 3, 1])
    update_balance(router)
    assert router.bias.tolist() == [-0.25, 0.0, 0.25]
    assert router.tokens.tolist() == [0, 0, 0]
    update_balance(router)  # no tokens, no change
    assert router.bias.tolist() == [-0.25, 0.0, 0.25]


def test_tokens_add_up_over_micro_batches_and_checkpointed_layers_count_alike():
    decoder, tokens_BL = model(), batch()
    decoder(tokens_BL).sum().backward()
    whole = [router.tokens.clone() for router in routers(decoder)]
    assert [counts.sum().item() for counts in whole] == [4 * 10 * 2] * 2
    reset_counts(decoder)
    assert not any(router.tokens.any() for router in routers(decoder))
    for part in tokens_BL.split(1):
        decoder(part).sum().backward()
    assert all(torch.equal(r.tokens, c) for r, c in zip(routers(decoder), whole, strict=True))

    reset_counts(decoder)
    for block in decoder.blocks:
        plain = block.forward
        block.forward = lambda *x, plain=plain: checkpoint(plain, *x, use_reentrant=False)
    decoder(tokens_BL).sum().backward()
    biases = []
    for counts in ([2 * c for c in whole], whole):
        for router, count in zip(routers(decoder), counts, strict=True):
            router.bias.zero_()
            router.tokens.copy_(count)
        update_balance(decoder)
        biases.append([router.bias.clone() for router in routers(decoder)])
    assert all(torch.equal(one, two) for one, two in zip(*biases, strict=True))


def test_equal_steps_give_equal_bits_where_torch_allows_nothing_else():
    before = torch.get_deterministic_debug_mode()
    torch.set_deterministic_debug_mode("error")
    try:
        runs = []
        for _ in range(2):
            decoder = model(groups=2, chosen_groups=1)
            for _ in range(2):
                decoder(batch()).square().mean().backward()
                update_balance(decoder)
            runs.append([*(w.grad for w in decoder.parameters()), *decoder.buffers()])
    finally:
        torch.set_deterministic_debug_mode(before)
    assert all(torch.equal(one, two) for one, two in zip(*runs, strict=True))


def test_passes_without_gradients_are_not_counted():
    decoder = model()
    with torch.no_grad():
        decoder(batch())
    assert not any(router.tokens.any() for router in routers(decoder))


def test_balancing_evens_out_a_router_that_prefers_few_experts():
    decoder = model(bias_rate=0.005, first=0)
    generator = torch.Generator().manual_seed(0)
    for router in routers(decoder):
        with torch.no_grad():
            router.weight.normal_(0.0, 0.5, generator=generator)
            router.bias.copy_(torch.tensor([0.3, 0.1, -0.1, -0.3]))
    tokens_BL = torch.randint(40, (16, 32), generator=generator)

    def imbalance():
        reset_counts(decoder)
        decoder(tokens_BL)
        # MaxVio of Wang et al. 2024, eq. 4: the largest load over the mean, less one
        return [(r.tokens.max() / r.tokens.float().mean() - 1).item() for r in routers(decoder)]

    before = imbalance()
    for _ in range(120):
        decoder(tokens_BL)
        update_balance(decoder)
    after = imbalance()
    assert max(before) > 0.5
    assert max(after) < 0.2


def test_no_balancing_at_rate_zero_and_none_without_experts():
    decoder = model(bias_rate=0.0)
    decoder(batch())
    update_balance(decoder)
    assert not any(router.bias.any() for router in routers(decoder))
    update_balance(Decoder(ModelConfig(vocabulary_size=4, width=8, heads=1, kv_heads=1, layers=1)))


def test_dense_layers_come_first_and_the_bias_is_saved_but_not_the_counts():
    names = model().state_dict().keys()
    assert "blocks.0.mlp.gate.weight" in names
    assert "blocks.1.mlp.router.bias" in names
    assert not any("tokens" in name for name in names)
    assert "blocks.1.mlp.router.bias" not in dict(model().named_parameters())


def test_every_token_is_counted_once_for_each_of_its_experts():
    assert count_expert_tokens(torch.tensor([[0, 2], [2, 3]]), 5).tolist() == [1, 0, 2, 1, 0]


def test_a_model_of_experts_comes_back_from_its_files_and_trains(tmp_path):
    from stages.model.files import build

    decoder = model()
    again = build(decoder.config, decoder.state_dict(), where="test")
    tokens_BL = batch()
    assert torch.equal(again(tokens_BL), decoder(tokens_BL))
    again(tokens_BL).sum().backward()
    update_balance(again)
    assert any(router.bias.any() for router in routers(again))


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device here")
def test_a_gpu_gives_what_a_cpu_gives_in_bf16():
    results = []
    for device in ("cpu", "cuda"):
        ours, x_ND = layer().to(device), tokens(40).to(device)
        with torch.autocast(device, torch.bfloat16):
            y_ND = ours(x_ND)
        y_ND.float().square().mean().backward()
        tensors = (y_ND, *(weight.grad for weight in ours.parameters()))
        results.append([tensor.float().cpu() for tensor in tensors])
    for one, other in zip(*results, strict=True):
        assert (one - other).norm() / one.norm() < 0.02  # 8 bits of mantissa, in another order
