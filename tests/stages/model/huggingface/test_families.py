"""Which family a shape is of, what its config says, and what of other configs is refused."""

from __future__ import annotations

import pytest
import torch
from published_shapes import EXPERTS, LATENT, OWN, PLAIN_LATENT, SHAPES, shape

from artifacts_schema.errors import CorruptArtifact, InputError
from stages.model.decoder import Decoder
from stages.model.huggingface.families import (
    FAMILIES,
    family_of,
    from_config,
    from_weights,
    to_config,
    to_weights,
    unread,
)
from stages.model.huggingface.family import repeated_unit


def config_of(name, **changes):
    return {**to_config(SHAPES[name], bos=0, eos=1, pad=2), **changes}


@pytest.mark.parametrize("name", SHAPES)
def test_a_shape_is_of_its_native_family(name):
    assert family_of(SHAPES[name]).model_type == name.split()[0]


@pytest.mark.parametrize(
    "config",
    [
        *OWN.values(),
        shape(qk_norm="width", norm="output", head_width=12),
        shape(latent=LATENT, window=4),
        shape(latent=LATENT, experts=EXPERTS.model_copy(update={"shared": 0})),
        shape(latent=PLAIN_LATENT, nope_every=4),
    ],
)
def test_what_no_native_class_has_a_place_for_is_of_our_own(config):
    assert family_of(config).model_type == "ingot"
    objections = {name: family.objection(config) for name, family in FAMILIES.items()}
    assert [name for name, objection in objections.items() if objection is None] == ["ingot"]
    assert from_config(to_config(config, bos=0, eos=1, pad=2), where="config.json") == config


def test_a_plain_decoder_keeps_the_config_that_it_was_always_released_with():
    found = to_config(SHAPES["llama"], bos=0, eos=[1, 4], pad=2)
    assert found == {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "vocab_size": 61,
        "hidden_size": 32,
        "intermediate_size": 48,
        "num_hidden_layers": 4,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "head_dim": 8,
        "hidden_act": "silu",
        "max_position_embeddings": 64,
        "initializer_range": 0.2,
        "rms_norm_eps": 1e-5,
        "rope_theta": 500.0,
        "rope_parameters": {"rope_type": "default", "rope_theta": 500.0},
        "attention_bias": False,
        "attention_dropout": 0.0,
        "mlp_bias": False,
        "tie_word_embeddings": True,
        "use_cache": True,
        "bos_token_id": 0,
        "eos_token_id": [1, 4],
        "pad_token_id": 2,
        "dtype": "float32",
        "torch_dtype": "float32",
    }


@pytest.mark.parametrize("name", ["llama yarn", "llama 3.1", "llama linear"])
def test_stretched_positions_are_written_for_transformers_4_too(name):
    """Version 4 knows `rope_scaling` and `rope_theta` alone, version 5 still reads them."""
    values = config_of(name)
    del values["rope_parameters"]
    assert from_config(values, where="config.json") == SHAPES[name]


def test_a_factor_that_yarn_leaves_out_is_the_ratio_of_the_lengths():
    rope = {"rope_type": "yarn", "original_max_position_embeddings": 16}
    found = from_config(config_of("llama", rope_parameters=rope), where="config.json")
    assert found.rope_scaling.factor == 4.0


@pytest.mark.parametrize(
    ("name", "change", "complaint"),
    [
        ("llama", {"model_type": "mistral"}, "model_type is 'mistral'; known here"),
        ("llama", {"attention_bias": True}, "attention_bias is True"),
        ("llama", {"mlp_bias": True}, "mlp_bias is True"),
        ("llama", {"hidden_act": "gelu"}, "hidden_act is 'gelu'"),
        ("llama", {"rope_interleaved": True}, "rope_interleaved is True"),
        ("llama yarn", {"rope_scaling": None, "rope_parameters": {
            "rope_type": "yarn", "factor": 2.0, "truncate": False}}, "truncate is False"),
        ("llama", {"rope_parameters": {"rope_type": "dynamic", "factor": 2.0}}, "'dynamic'; known"),
        ("llama", {"rope_parameters": {"rope_type": "linear"}}, "factor is missing"),
        ("llama", {"rope_parameters": {"rope_type": ["yarn"]}}, "rope_type is ..yarn..; known"),
        ("llama", {"rope_parameters": {"full_attention": {"rope_theta": 1e6}}}, "n is not known"),
        ("qwen3 tied, windows", {"layer_types": ["sliding_attention"]}, "layer_types is not 4 tim"),
        ("qwen3 tied, windows", {"layer_types": ["chunked"] * 4}, "layer_types is not 4 times"),
        ("qwen3 tied, windows", {"layer_types": [["sliding_attention"]] * 4}, "layer_types"),
        ("llama", {"rms_norm_eps": 10**400}, "rms_norm_eps"),
        ("smollm3", {"no_rope_layers": [1, 0, 1, 1]}, "no_rope_layers are not every n-th layer"),
        ("smollm3", {"no_rope_layers": [1, 1]}, "no_rope_layers are not every n-th layer"),
        ("deepseek_v3", {"scoring_func": "softmax"}, "scoring_func is 'softmax'"),
        ("deepseek_v3", {"topk_method": "greedy"}, "topk_method is 'greedy'"),
        ("deepseek_v3", {"n_group": 3}, "experts 8 is not a multiple of groups 3"),
        ("deepseek_v3", {"n_shared_experts": 0}, "n_shared_experts is 0"),
        ("deepseek_v3", {"qk_rope_head_dim": 7}, "multiple of 2"),
        ("deepseek_v3", {"num_key_value_heads": 2}, "kv_heads 4, found 2"),
    ],
)  # fmt: skip
def test_what_the_decoder_cannot_express_is_refused_by_field(name, change, complaint):
    with pytest.raises(InputError, match=complaint):
        from_config(config_of(name, **change), where="config.json")


def test_windows_are_those_of_the_layers_listed_or_else_of_the_last_ones():
    listed = config_of("qwen3 tied, windows")
    assert listed["layer_types"][2:] == ["full_attention", "sliding_attention"]
    unlisted = {**listed, "layer_types": None, "max_window_layers": 3}
    found = from_config(unlisted, where="config.json")
    assert [found.window_of(layer) for layer in range(4)] == [None, None, None, 5]
    off = from_config({**listed, "use_sliding_window": False}, where="config.json")
    assert off.window is None


@pytest.mark.parametrize(
    ("slides", "unit"),
    [([True] * 4, "S"), ([True, True, False, True], "SSL"), ([False, True] * 3, "LS")],
)
def test_a_pattern_is_the_shortest_that_gives_the_list(slides, unit):
    assert repeated_unit(slides) == unit


def test_experts_are_published_one_by_one_and_stacked_again():
    model = Decoder(SHAPES["deepseek_v3"], seed=1)
    weights = to_weights(model)
    stacked = model.blocks[2].mlp.experts.down
    for expert in range(8):
        name = f"model.layers.2.mlp.experts.{expert}.down_proj.weight"
        assert torch.equal(weights[name], stacked[expert])


def test_rotary_rows_are_published_in_neighbouring_pairs():
    """Row i of the first half and row i of the second stand beside each other, head by head."""
    model = Decoder(SHAPES["deepseek_v3"], seed=1)
    ours = model.blocks[0].attention.query_up.weight.unflatten(0, (4, 18))
    theirs = to_weights(model)["model.layers.0.self_attn.q_b_proj.weight"].unflatten(0, (4, 18))
    assert torch.equal(theirs[:, :10], ours[:, :10])
    assert torch.equal(theirs[:, 10::2], ours[:, 10:14])
    assert torch.equal(theirs[:, 11::2], ours[:, 14:18])


def test_weights_that_do_not_fit_are_named():
    weights = to_weights(Decoder(SHAPES["llama"]))
    values = config_of("llama")
    with pytest.raises(InputError, match=r"'model\.norm\.weight' is missing"):
        from_weights(values, {k: v for k, v in weights.items() if "norm.weight" not in k}, where="")
    with pytest.raises(InputError, match=r"no place for: 'model\.extra'"):
        from_weights(values, {**weights, "model.extra": weights["model.norm.weight"]}, where="w")
    wrong = {**weights, "model.norm.weight": torch.ones(3)}
    with pytest.raises(CorruptArtifact, match=r"'norm\.weight' is \[3\], expected \[32\]"):
        from_weights(values, wrong, where="w")


def test_fields_that_nobody_reads_are_told_and_those_of_no_meaning_are_not():
    values = config_of("llama", attention_multiplier=2.0, pretraining_tp=1, sliding_window=None)
    assert unread(values, where="config.json") == ["attention_multiplier"]
