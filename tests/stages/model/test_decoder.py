"""The decoder against `transformers`' classes, its masks against documents and prefixes apart."""

import math

import pytest
import torch

from artifacts_schema.errors import UsageError
from stages.model.config import ModelConfig, RopeScaling
from stages.model.decoder import Decoder
from stages.model.experts import update_balance
from stages.model.files import model_files
from stages.model.huggingface.families import family_of, to_config, to_weights


def tiny(**changes) -> ModelConfig:
    values = {"vocabulary_size": 97, "width": 32, "layers": 2, "heads": 4, "kv_heads": 2}
    return ModelConfig(**{**values, "init_std": 0.2, **changes})


def tokens(rows: int = 3, length: int = 40) -> torch.Tensor:
    return torch.randint(97, (rows, length), generator=torch.Generator().manual_seed(0))


def random_norms(model: Decoder) -> Decoder:
    """Norms that are not 1, so that one left out or in another place is seen."""
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if "norm" in name:
                weight.uniform_(0.5, 1.5, generator=torch.Generator().manual_seed(len(name)))
    return model


YARN = {"factor": 4, "original_context": 16}
ARCHITECTURES = {
    "multi-query": {"kv_heads": 1},
    "grouped": {"kv_heads": 2, "rope_base": 500.0, "norm_epsilon": 1e-3},
    "multi-head, untied": {"kv_heads": 4, "tied_embeddings": False},
    "free head width": {"head_width": 10},
    "yarn": {"rope_scaling": YARN, "context": 64},
    "linear": {"rope_scaling": {"kind": "linear", "factor": 4}, "context": 64},
    "llama3": {"rope_scaling": {**YARN, "kind": "llama3"}, "context": 64},
    "norm of each head": {"qk_norm": "head", "head_width": 16},
    "norm over heads, of outputs": {"qk_norm": "width", "norm": "output", "kv_heads": 4},
    "no positions every third": {"nope_every": 3, "layers": 4},
    "window": {"window": 7, "window_pattern": "LS", "qk_norm": "head", "layers": 4},
}


@pytest.mark.parametrize("changes", ARCHITECTURES.values(), ids=ARCHITECTURES.keys())
def test_logits_equal_those_of_transformers(changes):
    """Those of the native class of this architecture (layers of DeepSeek-V3: apart)."""
    from transformers import AutoConfig, AutoModelForCausalLM

    model = random_norms(Decoder(tiny(**changes), seed=3))
    assert family_of(model.config).model_type != "ingot", "no native class to compare with"
    published = to_config(model.config, bos=0, eos=1, pad=2)
    theirs = AutoModelForCausalLM.from_config(AutoConfig.for_model(**published)).eval()
    missing, unexpected = theirs.load_state_dict(to_weights(model), strict=False)
    assert unexpected == []
    assert missing in ([], ["lm_head.weight"])
    with torch.no_grad():
        torch.testing.assert_close(model(tokens()), theirs(tokens()).logits, atol=1e-5, rtol=1e-6)


def test_logits_are_capped_as_in_gemma_2():
    # Gemma 2, section 2: soft_cap · tanh(logits / soft_cap), here with the logits of no cap
    plain, capped = Decoder(tiny()), Decoder(tiny(logit_softcap=2.0))
    with torch.no_grad():
        logits = plain(tokens())
        assert logits.abs().max() > 4
        torch.testing.assert_close(capped(tokens()), 2 * (logits / 2).tanh())


def test_partial_positions_turn_only_their_share_of_a_head():
    """With zeros where other channels are, half of each head is a model of half the head width."""
    half = Decoder(tiny(head_width=8, rope_share=0.5, width=32), seed=1)
    whole = Decoder(tiny(head_width=4, width=32), seed=1)
    first = torch.tensor([channel % 8 < 4 for channel in range(32)])
    with torch.no_grad():
        for ours, theirs in zip(half.blocks, whole.blocks, strict=True):
            attention, narrow = ours.attention, theirs.attention
            for name in ("query", "key", "value"):
                weight = getattr(attention, name).weight
                rows = first[: len(weight)]
                weight[~rows] = 0
                # scores are divided by the root of the head width, which differs by sqrt(2)
                factor = 2**-0.5 if name == "query" else 1.0
                getattr(narrow, name).weight.copy_(weight[rows] * factor)
            narrow.output.weight.copy_(attention.output.weight[:, first])
            for name in ("gate", "up", "down"):
                getattr(theirs.mlp, name).weight.copy_(getattr(ours.mlp, name).weight)
        whole.embedding.weight.copy_(half.embedding.weight)
        torch.testing.assert_close(half(tokens()), whole(tokens()), atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize(
    "changes",
    [{}, {"window": 4, "window_pattern": "SL"}, {"nope_every": 2}, {"rope_scaling": YARN}],
)
def test_packed_documents_give_the_logits_and_gradients_of_documents_apart(changes):
    model = Decoder(tiny(**changes), seed=1)
    generator = torch.Generator().manual_seed(5)
    pieces = [torch.randint(97, (1, length), generator=generator) for length in (5, 9, 1)]
    padding = torch.full((1, 3), 2)
    packed_BL = torch.cat([*pieces, padding], dim=1)
    documents_BL = torch.tensor([[0] * 5 + [1] * 9 + [2] * 1 + [-1] * 3])

    logits_BLV = model(packed_BL, documents_BL=documents_BL)
    logits_BLV[:, :15].square().sum().backward()
    packed = {name: weight.grad.clone() for name, weight in model.named_parameters()}
    model.zero_grad()
    apart = [model(piece) for piece in pieces]
    sum(piece.square().sum() for piece in apart).backward()

    torch.testing.assert_close(logits_BLV[:, :15], torch.cat(apart, dim=1), atol=1e-5, rtol=1e-5)
    assert torch.isfinite(logits_BLV).all()
    for name, weight in model.named_parameters():
        torch.testing.assert_close(packed[name], weight.grad, atol=1e-3, rtol=1e-4, msg=name)


def changed_by(model: Decoder, position: int, **arguments) -> list[int]:
    """Positions whose logits change when the token at `position` does."""
    first = tokens(1, 12)
    second = first.clone()
    second[0, position] = (first[0, position] + 1) % 97
    with torch.no_grad():
        one, two = model(first, **arguments), model(second, **arguments)
    return (one != two).any(dim=-1)[0].nonzero().flatten().tolist()


def test_no_token_sees_a_later_one():
    model = Decoder(tiny(), seed=1)
    for documents in (None, torch.zeros(1, 12, dtype=torch.int64)):
        assert changed_by(model, 7, documents_BL=documents) == [7, 8, 9, 10, 11]


def test_a_prefix_is_seen_from_everywhere_in_its_document():
    model = Decoder(tiny(), seed=1)
    documents_BL = torch.tensor([[0] * 6 + [1] * 6])
    prefix_BL = torch.tensor([[True, True, True, False, False, False] * 2])
    arguments = {"documents_BL": documents_BL, "prefix_BL": prefix_BL}
    assert changed_by(model, 2, **arguments) == [0, 1, 2, 3, 4, 5]
    assert changed_by(model, 4, **arguments) == [4, 5]
    assert changed_by(model, 8, **arguments) == [6, 7, 8, 9, 10, 11]


def test_a_prefix_of_all_is_attention_in_both_directions():
    model = Decoder(tiny(), seed=1)
    prefix_BL = torch.ones(1, 12, dtype=torch.bool)
    assert changed_by(model, 7, prefix_BL=prefix_BL) == list(range(12))
    none = torch.zeros(1, 12, dtype=torch.bool)
    with torch.no_grad():
        torch.testing.assert_close(
            model(tokens(1, 12), prefix_BL=none), model(tokens(1, 12)), atol=1e-5, rtol=1e-5
        )


def test_a_window_reaches_further_with_each_layer_that_has_it():
    # each layer with a window of 3 carries a token at most 2 further
    assert changed_by(Decoder(tiny(window=3, layers=1)), 2) == [2, 3, 4]
    assert changed_by(Decoder(tiny(window=3, layers=2)), 2) == [2, 3, 4, 5, 6]
    assert changed_by(Decoder(tiny(window=3, layers=2, window_pattern="SL")), 2) == [*range(2, 12)]


def test_layers_without_positions_do_not_know_the_order_of_earlier_tokens():
    model = Decoder(tiny(nope_every=1, layers=1), seed=1)
    first = tokens(1, 8)
    second = first[:, [3, 0, 2, 1, 4, 5, 6, 7]]
    with torch.no_grad():
        torch.testing.assert_close(model(first)[:, 7], model(second)[:, 7], atol=1e-5, rtol=1e-5)
        ordered = Decoder(tiny(layers=1), seed=1)
        assert not torch.allclose(ordered(first)[:, 7], ordered(second)[:, 7], atol=1e-3)


def test_rotary_positions_change_in_mid_training_and_the_config_says_so():
    stretched = RopeScaling(**YARN)
    fresh = Decoder(tiny(rope_base=5e6, rope_scaling=stretched), seed=1)
    model = Decoder(tiny(), seed=1)
    with torch.no_grad():
        before = model(tokens())
        model.set_rope(5e6, stretched)
        assert torch.equal(model(tokens()), fresh(tokens()))
        assert not torch.equal(model(tokens()), before)
    assert model.config == fresh.config
    assert model_files(model) == model_files(fresh)
    model.set_rope(10_000.0)
    assert model.config == tiny()
    model.set_context(1024)
    assert model.config == tiny(context=1024)


def test_initial_weights_have_the_stated_spread():
    config = tiny(
        vocabulary_size=2000,
        width=128,
        layers=8,
        init_std=0.02,
        experts={"experts": 4, "chosen": 1, "width": 64, "first": 4},
        latent={"kv_rank": 64, "plain_width": 64, "rotary_width": 32, "value_width": 64},
        kv_heads=4,
    )
    model = Decoder(config)
    spread = {name: weight.std().item() for name, weight in model.named_parameters()}
    # a sample standard deviation of n values is within 1 ± 4/sqrt(2n) of the true one; n >= 8192
    plain = ("embedding.weight", "blocks.0.attention.kv_down.weight", "blocks.5.mlp.experts.gate")
    for name in plain:
        assert spread[name] == pytest.approx(0.02, rel=0.04)
    assert spread["blocks.5.mlp.router.weight"] == pytest.approx(0.02, rel=0.13)  # n = 512
    for name in (
        "blocks.3.attention.output.weight",
        "blocks.3.mlp.down.weight",
        "blocks.5.mlp.experts.down",
        "blocks.5.mlp.shared.down.weight",
    ):
        assert spread[name] == pytest.approx(0.02 / math.sqrt(16), rel=0.04)
    norms = [weight for name, weight in model.named_parameters() if "norm" in name]
    assert len(norms) == 8 * 3 + 1
    assert all((weight == 1).all() for weight in norms)


def test_weights_follow_from_the_seed_and_leave_the_global_random_state_alone():
    before = torch.get_rng_state()
    one, two, other = Decoder(tiny(), seed=4), Decoder(tiny(), seed=4), Decoder(tiny(), seed=5)
    assert torch.equal(before, torch.get_rng_state())
    assert all(torch.equal(a, b) for a, b in zip(one.parameters(), two.parameters(), strict=True))
    assert not torch.equal(one.embedding.weight, other.embedding.weight)


def test_another_backend_is_taken_at_once_unless_it_cannot_do_the_model():
    model = Decoder(tiny())
    model.set_attention("varlen")
    with pytest.raises(UsageError, match="'varlen' does not run on cpu"):
        model(tokens())
    odd = Decoder(tiny(head_width=12))
    with pytest.raises(UsageError, match="no heads of 12 channels"):
        odd.set_attention("varlen")
    odd(tokens())


@pytest.mark.parametrize(
    ("changes", "kinds"),
    [
        ({"qk_norm": "width", "norm": "output", "layers": 3}, 1),
        ({"window": 5, "window_pattern": "SL", "nope_every": 4, "layers": 4}, 3),
        ({"experts": {"experts": 4, "chosen": 2, "width": 24}, "layers": 3}, 2),
    ],
)
def test_blocks_compile_whole_and_once_whatever_documents_a_batch_has(changes, kinds):
    """Each sort of layer is one graph; a second would be a break, or a recompile by the step."""
    from torch._dynamo.utils import counters

    plain, compiled = Decoder(tiny(**changes), seed=1), Decoder(tiny(**changes), seed=1)
    torch._dynamo.reset()
    counters.clear()
    for block in compiled.blocks:
        block.forward = torch.compile(block.forward, fullgraph=True, backend="eager")
    for size in (5, 9, 40):
        documents_BL = (torch.arange(40) // size).expand(3, -1)
        with torch.autocast("cpu", torch.bfloat16):
            expected = plain(tokens(), documents_BL=documents_BL)
            found = compiled(tokens(), documents_BL=documents_BL)
        assert torch.equal(found, expected)
    assert counters["stats"]["unique_graphs"] <= kinds
    for (name, one), (_, two) in zip(plain.named_buffers(), compiled.named_buffers(), strict=True):
        assert torch.equal(one, two), name


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("changes", [{"qk_norm": "head"}, {"qk_norm": "width", "norm": "output"}])
def test_norms_of_what_a_bfloat16_product_gives_are_in_float32(changes):
    """And fused: torch warns of a norm whose input has another type than its weights."""
    exact, model = Decoder(tiny(**changes), seed=1), Decoder(tiny(**changes), seed=1)
    kinds = set()
    for name, module in model.named_modules():
        if name.endswith("norm"):
            module.register_forward_hook(lambda _, given, gave: kinds.add(gave.dtype))
    with torch.autocast("cpu", torch.bfloat16), torch.no_grad():
        found = model(tokens())
    assert kinds == {torch.float32}
    with torch.no_grad():
        expected = exact(tokens())
    assert (found.float() - expected).norm() / expected.norm() < 0.03  # 8 bits of mantissa


LATENT = {"query_rank": 20, "kv_rank": 12, "plain_width": 8, "rotary_width": 4, "value_width": 8}


@pytest.mark.parametrize("precision", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize(
    "changes",
    [
        {"qk_norm": "width", "norm": "output", "logit_softcap": 30.0, "tied_embeddings": False},
        {"qk_norm": "head", "rope_share": 0.5, "window": 6, "window_pattern": "SL"},
        {"kv_heads": 4, "latent": LATENT, "experts": {"experts": 4, "chosen": 2, "width": 24}},
    ],
)
def test_every_parameter_learns_a_batch_by_heart(changes, precision):
    model = Decoder(tiny(init_std=0.05, **changes), seed=1)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    tokens_BL = tokens(2, 24)
    documents_BL = (torch.arange(24) // 13).expand(2, -1)
    losses = []
    for _ in range(20):
        with torch.autocast("cpu", torch.bfloat16, enabled=precision == torch.bfloat16):
            logits_BLV = model(tokens_BL, documents_BL=documents_BL)
        loss = torch.nn.functional.cross_entropy(
            logits_BLV[:, :-1].flatten(0, 1).float(), tokens_BL[:, 1:].flatten()
        )
        optimizer.zero_grad()
        loss.backward()
        still = [name for name, w in model.named_parameters() if not w.grad.abs().sum() > 0]
        assert still == []
        optimizer.step()
        update_balance(model)
        losses.append(loss.item())
    assert losses[0] == pytest.approx(math.log(97), rel=0.1)
    assert losses[-1] < losses[0] / 4
