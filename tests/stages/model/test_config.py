import pytest

from artifacts_schema.errors import UsageError
from stages.model.config import ModelConfig, ModelShape, default_mlp_width


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


def test_a_given_swiglu_width_is_kept():
    assert ModelShape(mlp_width=100).with_vocabulary(8).mlp_width == 100


@pytest.mark.parametrize(
    ("shape", "complaint"),
    [
        ({"width": 100, "heads": 6}, "width 100 is not a multiple of heads 6"),
        ({"heads": 6, "kv_heads": 4}, "heads 6 is not a multiple of kv_heads 4"),
        ({"width": 18, "heads": 6, "kv_heads": 6}, "even head width"),
        ({"vocab": 4}, "unknown key 'vocab'"),
    ],
)
def test_shapes_that_cannot_be_built_are_refused_by_name(shape, complaint):
    with pytest.raises(UsageError, match=complaint):
        ModelShape.parse(shape, where="recipe")


def test_resolved_config_survives_its_own_plain_values():
    config = ModelShape(width=64, heads=2, kv_heads=1).with_vocabulary(77)
    assert ModelConfig.parse(config.plain(), where="model.json") == config
