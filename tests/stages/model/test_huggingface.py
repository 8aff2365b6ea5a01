import pytest
import torch

from artifacts_schema.errors import CorruptArtifact, InputError
from stages.model.config import ModelConfig
from stages.model.decoder import Decoder
from stages.model.huggingface import (
    from_llama_config,
    from_llama_weights,
    to_llama_config,
    to_llama_weights,
)

CONFIG = ModelConfig(
    vocabulary_size=60, width=32, layers=2, heads=4, kv_heads=2, rope_base=1234.0, context=64
)


@pytest.mark.parametrize("tied", [True, False])
def test_config_and_weights_go_to_llama_and_back(tied):
    config = ModelConfig(**{**CONFIG.model_dump(), "tied_embeddings": tied})
    model = Decoder(config, seed=2)
    back = from_llama_config(to_llama_config(config, bos=0, eos=[1, 4], pad=2), where="config")
    assert back == config
    again = from_llama_weights(back, to_llama_weights(model), where="weights")
    for name, weight in model.state_dict().items():
        assert torch.equal(weight, again.state_dict()[name])


def test_a_llama_made_by_transformers_becomes_a_decoder_with_its_logits():
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(0)
    llama = LlamaForCausalLM(
        LlamaConfig(
            vocab_size=60,
            hidden_size=32,
            intermediate_size=48,
            num_hidden_layers=2,
            num_attention_heads=4,
            num_key_value_heads=2,
            tie_word_embeddings=True,
            initializer_range=0.3,
        )
    ).eval()
    config = from_llama_config(llama.config.to_dict(), where="config.json")
    model = from_llama_weights(config, llama.state_dict(), where="weights")
    tokens_BL = torch.arange(20)[None]
    with torch.no_grad():
        torch.testing.assert_close(model(tokens_BL), llama(tokens_BL).logits, atol=1e-5, rtol=0)


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"model_type": "qwen3"}, "model_type is 'qwen3'"),
        ({"attention_bias": True}, "attention_bias is True"),
        ({"hidden_act": "gelu"}, "hidden_act is 'gelu'"),
        ({"head_dim": 128}, "head_dim is 128"),
        ({"rope_parameters": {"rope_type": "yarn", "factor": 4.0}}, "rope_type is 'yarn'"),
    ],
)
def test_a_llama_that_the_decoder_cannot_express_is_refused(change, complaint):
    values = {**to_llama_config(CONFIG, bos=0, eos=1, pad=2), **change}
    with pytest.raises(InputError, match=complaint):
        from_llama_config(values, where="config.json")


def test_weights_that_do_not_fit_are_named():
    weights = to_llama_weights(Decoder(CONFIG))
    del weights["model.norm.weight"]
    with pytest.raises(CorruptArtifact, match=r"'norm\.weight' is missing"):
        from_llama_weights(CONFIG, weights, where="weights")
