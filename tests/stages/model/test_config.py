import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from artifacts_schema.errors import UsageError
from stages.model.config import Experts, ModelConfig, ModelShape, default_mlp_width

LATENT = {"kv_rank": 8, "plain_width": 8, "rotary_width": 4, "value_width": 6}
EXPERTS = {"experts": 8, "chosen": 2, "width": 16}


def test_a_shape_becomes_a_config_when_the_tokenizer_gives_its_vocabulary():
    config = ModelShape(width=64, heads=4, kv_heads=2, layers=3).with_vocabulary(500)
    assert (config.vocabulary_size, config.width, config.head_width) == (500, 64, 16)


@pytest.mark.parametrize(
    ("width", "expected"),
    # 8/3 · width: 512 exactly, 170.67 -> 192, 10922.67 -> 10944 (multiples of 32)
    [(192, 512), (64, 192), (4096, 10944)],
)
def test_swiglu_width_defaults_to_eight_thirds_of_the_width(width, expected):
    assert default_mlp_width(width) == expected
    assert ModelConfig(vocabulary_size=8, width=width, heads=1, kv_heads=1).mlp_width == expected


def test_given_sizes_are_kept():
    config = ModelShape(mlp_width=100, head_width=40).with_vocabulary(8)
    assert (config.mlp_width, config.head_width, config.width) == (100, 40, 192)


@pytest.mark.parametrize(
    ("depth", "width", "heads"),
    # nanochat: 64 · depth up to a multiple of 128, heads of 128; d20 is 1280 wide, d32 2048
    [(1, 128, 1), (4, 256, 2), (5, 384, 3), (12, 768, 6), (20, 1280, 10), (32, 2048, 16)],
)
def test_one_dial_stands_for_the_sizes(depth, width, heads):
    shape = ModelShape(depth=depth)
    assert (shape.layers, shape.width, shape.heads, shape.kv_heads) == (depth, width, heads, heads)
    assert shape.with_vocabulary(8).head_width == 128


def test_numbers_that_are_given_win_over_the_dial():
    shape = ModelShape(depth=12, heads=12, kv_heads=4, layers=2)
    assert (shape.layers, shape.width, shape.heads, shape.kv_heads) == (2, 768, 12, 4)
    assert ModelShape(depth=6, head_width=64).heads == 6


def test_the_dial_and_its_numbers_are_one_architecture_with_one_key():
    dial, numbers = ModelShape(depth=12), ModelShape(width=768, layers=12, heads=6, kv_heads=6)
    assert dial == numbers
    assert dial.identity() == numbers.identity()
    # a form gives all fields, and a field at its default is never told from one left out
    defaults = {name: f.default for name, f in ModelShape.model_fields.items() if name != "depth"}
    assert ModelShape(**defaults, depth=12) == dial


@pytest.mark.parametrize(
    ("shape", "complaint"),
    [
        ({"width": 100, "heads": 6}, "width 100 is not a multiple of heads 6"),
        ({"heads": 6, "kv_heads": 4}, "heads 6 is not a multiple of kv_heads 4"),
        ({"width": 18, "heads": 6, "kv_heads": 6}, "even head width"),
        ({"head_width": 7}, "head_width is 7; rotary embeddings need an even head width"),
        ({"rope_share": 0.1}, "rope_share 0.1 leaves 3"),
        ({"vocab": 4}, "unknown key 'vocab'"),
        ({"depth": "12"}, "depth '12' is not a whole number|depth 12 is not a whole number"),
        ({"depth": 0}, "depth: input should be greater than or equal to 1"),
        ({"width": "wide"}, "width: input should be a valid integer"),
        ({"window_pattern": "SL"}, "window_pattern SL needs a window"),
        ({"window": 8, "window_pattern": "SX"}, "window_pattern: string should match"),
        ({"rope_scaling": {"factor": 4}}, "yarn needs original_context"),
        ({"rope_scaling": {"kind": "linear", "factor": 4, "mscale": 1}}, "belong to yarn"),
        (
            {"rope_scaling": {"factor": 4, "original_context": 8, "beta_slow": 40}},
            "beta_slow is not below beta_fast",
        ),
        ({"latent": LATENT, "kv_heads": 2}, "latent attention needs kv_heads 6, found 2"),
        ({"latent": LATENT, "qk_norm": "head"}, "latent attention needs qk_norm none"),
        ({"latent": LATENT, "head_width": 32}, "head_width is 32, that of latent attention 12"),
        ({"latent": {**LATENT, "rotary_width": 3}}, "latent.rotary_width: .* multiple of 2"),
        ({"latent": {"kv_rnk": 3}}, "unknown key 'latent.kv_rnk', did you mean 'kv_rank'"),
        ({"experts": {**EXPERTS, "groups": 3}}, "experts 8 is not a multiple of groups 3"),
        ({"experts": {**EXPERTS, "groups": 8}}, "groups of one expert"),
        ({"experts": {**EXPERTS, "chosen_groups": 2}}, "chosen_groups 2 of groups 1"),
        ({"experts": {**EXPERTS, "groups": 4, "chosen": 3}}, "fewer than the 3 chosen"),
        ({"experts": {**EXPERTS, "first": 6}}, "experts.first 6 leaves no layer with experts"),
    ],
)
def test_shapes_that_cannot_be_built_are_refused_by_name(shape, complaint):
    with pytest.raises(UsageError, match=complaint):
        ModelShape.parse(shape, where="recipe")
    if "vocab" not in shape:
        with pytest.raises(UsageError, match=complaint):
            ModelConfig.parse({**shape, "vocabulary_size": 9}, where="model.json")


@pytest.mark.parametrize(
    "shape",
    [
        {"width": 64, "heads": 2, "kv_heads": 1},
        {
            "latent": LATENT,
            "experts": EXPERTS,
            "rope_scaling": {"factor": 2, "original_context": 9},
        },
        {"head_width": 64, "window": 4, "window_pattern": "SSL", "logit_softcap": 30.0},
    ],
)
def test_resolved_config_survives_its_own_plain_values(shape):
    config = ModelShape(**shape).with_vocabulary(77)
    assert ModelConfig.parse(config.plain(), where="model.json") == config


def test_the_plain_decoder_is_written_as_before_other_architectures_were_added():
    # checkpoints of the same bytes have the same digest, and what follows from them the same key
    assert set(ModelShape().with_vocabulary(9).plain()) == {
        *("width", "layers", "heads", "kv_heads", "mlp_width", "context", "rope_base"),
        *("norm_epsilon", "tied_embeddings", "init_std", "vocabulary_size"),
    }
    assert ModelShape().identity() == {}


def test_layers_without_positions_are_every_nth():
    # SmolLM3: 3 layers with positions, then one without
    config = ModelShape(layers=8, nope_every=4).with_vocabulary(9)
    assert [config.rotates(layer) for layer in range(8)] == [True, True, True, False] * 2
    assert all(ModelShape().with_vocabulary(9).rotates(layer) for layer in range(6))


def test_windows_follow_their_pattern_to_the_last_layer():
    # OLMo 3: [4096, 4096, 4096, all] repeated
    config = ModelShape(layers=6, window=8, window_pattern="SSSL").with_vocabulary(9)
    assert [config.window_of(layer) for layer in range(6)] == [8, 8, 8, None, 8, 8]
    assert ModelShape().with_vocabulary(9).window_of(0) is None


def test_heads_of_latent_attention_have_a_key_and_value_each():
    config = ModelShape(heads=5, latent=LATENT).with_vocabulary(9)
    assert (config.kv_heads, config.head_width, config.rotary_width, config.value_width) == (
        *(5, 12, 4, 6),
    )


@settings(deadline=None)
@given(
    experts=st.integers(2, 12),
    chosen=st.integers(1, 12),
    groups=st.integers(1, 12),
    chosen_groups=st.integers(1, 12),
)
def test_experts_that_are_accepted_can_be_chosen(experts, chosen, groups, chosen_groups):
    import torch

    from stages.model.experts import mask_other_groups

    values = {"experts": experts, "chosen": chosen, "groups": groups, "width": 4}
    try:
        config = Experts.parse({**values, "chosen_groups": chosen_groups}, where="")
    except UsageError:
        return
    found = mask_other_groups(torch.rand(3, experts), config).topk(chosen, dim=-1).values
    assert torch.isfinite(found).all()


def test_what_a_recipe_sets_otherwise_than_a_checkpoint_is_named():
    checkpoint = ModelShape(layers=4, experts=EXPERTS, head_width=64).with_vocabulary(9)
    assert checkpoint.unlike(ModelShape()) == []
    assert checkpoint.unlike(ModelShape(layers=4, experts=EXPERTS)) == []
    assert checkpoint.unlike(ModelShape(layers=5, head_width=64)) == ["layers"]
    assert checkpoint.unlike(ModelShape(experts={**EXPERTS, "chosen": 1})) == ["experts"]
    assert checkpoint.unlike(ModelShape(mlp_width=512)) == []  # what 192 wide ones have anyway
