"""Shapes by name: the parameters that their publishers count, the classes that load them."""

from __future__ import annotations

import pytest

from artifacts_schema.errors import UsageError
from stages.model.config import ModelShape, preset
from stages.model.huggingface.families import family_of, to_config
from stages.model.presets import PRESETS
from stages.model.size import count_parameters

# Name → (family, rows of the embedding, parameters as the Hub counts them in the published
# safetensors files, of which tied heads that are stored twice are taken once). DeepSeek-V3 without
# the 14 billion of its further layer: arXiv 2412.19437 says 671 billion; the 58 · 256 biases of its
# routers are no trained parameters and not among them here.
PUBLISHED = {
    "llama-2-7b": ("llama", 32000, 6_738_415_616),
    "llama-3-8b": ("llama", 128256, 8_030_261_248),
    "llama-3-70b": ("llama", 128256, 70_553_706_496),
    "llama-3.2-1b": ("llama", 128256, 1_235_814_400),
    "tinyllama-1.1b": ("llama", 32000, 1_100_048_384),
    "smollm2-135m": ("llama", 49152, 134_515_008),
    "smollm2-360m": ("llama", 49152, 361_821_120),
    "smollm2-1.7b": ("llama", 49152, 1_711_376_384),
    "qwen3-0.6b": ("qwen3", 151936, 596_049_920),
    "qwen3-1.7b": ("qwen3", 151936, 1_720_574_976),
    "qwen3-4b": ("qwen3", 151936, 4_022_468_096),
    "qwen3-8b": ("qwen3", 151936, 8_190_735_360),
    "olmo-2-1b": ("olmo2", 100352, 1_484_916_736),
    "olmo-2-7b": ("olmo2", 100352, 7_298_617_344),
    "olmo-2-13b": ("olmo2", 100352, 13_716_198_400),
    "olmo-2-32b": ("olmo2", 100352, 32_234_279_936),
    "smollm3-3b": ("smollm3", 128256, 3_075_098_624),
    "deepseek-v3": ("deepseek_v3", 129280, 671_026_404_352),
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_a_shape_has_the_parameters_of_the_published_model(name):
    family, vocabulary, parameters = PUBLISHED[name]
    config = preset(name).with_vocabulary(vocabulary)
    assert family_of(config).model_type == family
    assert count_parameters(config).total == parameters


def test_moonlight_has_the_parameters_that_its_report_gives():
    """arXiv 2502.16982, table 4: 15.29 billion without embeddings, 2.24 of them active."""
    count = count_parameters(preset("moonlight-16b-a3b").with_vocabulary(163840))
    assert count.without_embeddings == pytest.approx(15.29e9, rel=1e-3)
    assert count.active_without_embeddings == pytest.approx(2.24e9, rel=2e-2)


def test_every_shape_is_tested():
    assert set(PUBLISHED) | {"moonlight-16b-a3b"} == set(PRESETS)


def test_the_defaults_of_two_classes_are_their_published_models():
    """`transformers` wrote DeepSeek-V3's and SmolLM3's own numbers into the classes' defaults."""
    from transformers import DeepseekV3Config, SmolLM3Config

    for name, oracle, told_otherwise in (
        ("deepseek-v3", DeepseekV3Config(), {"max_position_embeddings", "num_mtp_layers"}),
        ("smollm3-3b", SmolLM3Config(), {"max_position_embeddings", "sliding_window"}),
    ):
        _, vocabulary, _ = PUBLISHED[name]
        ours = to_config(preset(name).with_vocabulary(vocabulary), bos=None, eos=None, pad=None)
        theirs = oracle.to_dict()
        own = {"rope_parameters", "rope_theta", "bos_token_id", "eos_token_id", "pad_token_id"}
        own |= {"architectures", "dtype", "num_nextn_predict_layers"} | told_otherwise
        shared = (ours.keys() & theirs.keys()) - own
        assert len(shared) > 15
        assert {key: ours[key] for key in shared} == {key: theirs[key] for key in shared}


def test_a_wrong_name_is_told_the_nearest():
    with pytest.raises(UsageError, match="did you mean 'smollm3-3b'"):
        preset("smollm3")


def test_a_recipe_names_a_preset_and_changes_what_it_writes_beside_it():
    given = ModelShape.parse({"preset": "qwen3-0.6b", "context": 256, "layers": 2}, where="model")
    written = {**PRESETS["qwen3-0.6b"], "context": 256, "layers": 2}  # 256 is the default as well.
    assert given == ModelShape.parse(written, where="model")
    assert given.identity() == ModelShape.parse(written, where="model").identity()
    assert "preset" not in given.plain()
    experts = ModelShape.parse(
        {"preset": "moonlight-16b-a3b", "experts": {"bias_rate": 0}}, where="model"
    ).experts
    assert (experts.bias_rate, experts.experts, experts.scale) == (0, 64, 2.446)
    with pytest.raises(UsageError, match=r"did you mean 'qwen3-0\.6b'"):
        ModelShape.parse({"preset": "qwen3-0.6"}, where="model")
    for wrong in (3, None, ["qwen3-0.6b"]):
        with pytest.raises(UsageError, match="no model preset"):
            ModelShape.parse({"preset": wrong}, where="model")
    with pytest.raises(UsageError, match="width"):
        ModelShape.parse({"preset": "qwen3-0.6b", "width": "wide"}, where="model")
