import json

import pytest
import torch
from safetensors.torch import load, save

from artifacts_schema.errors import IngotError, InputError
from artifacts_schema.store.gc import remove_artifact
from stages.engine.page import Artifact
from stages.export.folder import model_folder
from stages.export.page import summary
from stages.export.stage import Export
from stages.export.verify import verify_release
from stages.model.config import ModelConfig
from stages.model.decoder import Decoder
from stages.model.files import model_files
from stages.text.chat import CHAT_TEMPLATE
from stages.tokenizer.training import transformers_config

TOKENIZER_CONFIG = {**transformers_config("llama-bpe"), "chat_template": CHAT_TEMPLATE}


@pytest.fixture
def evaluation(given):
    result = {"benchmark": "quiz", "metric": "accuracy", "value": 0.5, "count": 10}
    item = {"benchmark": "quiz", "item_id": "1", "metric": "accuracy", "value": 1.0}
    return given(
        "evaluation",
        {
            "results.parquet": [{**result, "standard_error": 0.1, "baseline": 0.25}],
            "items.parquet": [item],
            "generations.parquet": [{"prompt": "A", "completion": "B", "form": "text"}],
        },
    )


def test_a_release_loads_by_transformers_alone_and_twice_to_the_same_bytes(
    store, run_stage, read_input, chat_checkpoint, evaluation, model
):
    inputs = {"checkpoint": [chat_checkpoint], "evaluation": [evaluation]}
    config = {"name": "tiny", "license": "apache-2.0"}
    made = run_stage(Export, config, inputs)
    # The stage commits only what a fresh process has loaded and compared.
    assert made.counts["logit_difference"] <= 1e-4
    release = read_input(made, "release")
    assert release.paths() == [
        "README.md",
        "chat_template.jinja",
        "config.json",
        "generation_config.json",
        "ingot.json",
        "model.safetensors",
        "tokenizer.json",
        "tokenizer_config.json",
    ]
    assert release.read_json("generation_config.json")["eos_token_id"] == [1, 4]
    assert release.read_json("config.json")["architectures"] == ["LlamaForCausalLM"]
    assert release.read_json("ingot.json")["checkpoint"]["digest"] == (
        chat_checkpoint[0].output("checkpoint").digest
    )
    assert "| quiz | accuracy | 0.5000 | 0.1000 | 0.2500 | 10 |" in (
        release.read_bytes("README.md").decode()
    )
    remove_artifact(store, made)
    assert run_stage(Export, config, inputs).output("release").digest == release.digest


def test_a_model_that_never_saw_a_conversation_is_released_without_a_chat_template(
    run_stage, read_input, checkpoint
):
    release = read_input(run_stage(Export, {}, {"checkpoint": [checkpoint]}), "release")
    assert "chat_template.jinja" not in release.paths()
    assert "chat_template" not in release.read_json("tokenizer_config.json")
    card = release.read_bytes("README.md").decode()
    assert "apply_chat_template" not in card
    assert "no chat template" in card


def test_a_release_that_transformers_reads_otherwise_is_refused_by_what_differs(
    tmp_path, model, tokenizer
):
    files = model_folder(model, tokenizer, TOKENIZER_CONFIG)
    weights = load(files["model.safetensors"])
    weights["model.norm.weight"] = weights["model.norm.weight"] * 1.01
    files["model.safetensors"] = save(weights, metadata={"format": "pt"})
    files["chat_template.jinja"] += b"!"
    with pytest.raises(IngotError, match=r"chat_equal is False; logits differ by"):
        verify_release(files, model, tokenizer, tmp_path)


def test_a_release_that_does_not_load_is_refused_with_the_reason(tmp_path, model, tokenizer):
    files = model_folder(model, tokenizer, TOKENIZER_CONFIG)
    files["config.json"] = json.dumps({"model_type": "no-such-model"}).encode()
    with pytest.raises(IngotError, match=r"cannot load the release: .*no-such-model"):
        verify_release(files, model, tokenizer, tmp_path)


def test_untied_weights_are_released_with_their_output_projection(model, tokenizer):
    untied = Decoder(ModelConfig(**{**model.config.plain(), "tied_embeddings": False}), seed=3)
    files = model_folder(untied, tokenizer, TOKENIZER_CONFIG)
    assert torch.equal(load(files["model.safetensors"])["lm_head.weight"], untied.head.weight)


def test_a_tokenizer_with_more_tokens_than_the_model_is_refused(model, tokenizer):
    small = Decoder(ModelConfig(**{**model.config.plain(), "vocabulary_size": 300}))
    with pytest.raises(InputError, match="the tokenizer has 400 tokens, the model 300"):
        model_folder(small, tokenizer, TOKENIZER_CONFIG)


def test_a_decoder_of_experts_and_latent_attention_is_released_as_a_native_class(
    tmp_path, make_model, tokenizer
):
    latent = {"kv_rank": 12, "plain_width": 10, "rotary_width": 8, "value_width": 6}
    experts = {"experts": 8, "chosen": 3, "shared": 1, "width": 16, "first": 1}
    shape = {"latent": latent, "experts": experts, "kv_heads": 4}
    model = make_model(**shape, rope_scaling={"factor": 4.0, "original_context": 32})
    files = model_folder(model, tokenizer, TOKENIZER_CONFIG)
    assert json.loads(files["config.json"])["architectures"] == ["DeepseekV3ForCausalLM"]
    assert verify_release(files, model, tokenizer, tmp_path).logit_difference <= 1e-5


def test_what_no_native_class_expresses_is_released_as_our_own_without_code(
    store, run_stage, read_input, given, make_model, tokenizer
):
    model = make_model(rope_share=0.5, logit_softcap=20.0, window=16, window_pattern="SL")
    files = {
        **model_files(model),
        "tokenizer.json": tokenizer.to_str().encode(),
        "tokenizer_config.json": TOKENIZER_CONFIG,
        "state.json": {},
    }
    made = run_stage(Export, {}, {"checkpoint": [given("checkpoint", files)]})
    assert made.counts["logit_difference"] <= 1e-5
    release = read_input(made, "release")
    assert not [path for path in release.paths() if path.endswith(".py")]
    config = release.read_json("config.json")
    assert config["model_type"] == "ingot"
    assert "auto_map" not in config
    card = release.read_bytes("README.md").decode()
    assert "import stages.model.huggingface.auto_classes" in card
    assert "on 50% of the channels" in card
    assert "sliding windows of 16 tokens (layers SL)" in card
    loading = [figure.text for figure in summary(Artifact(store, made))]
    assert loading[1].startswith("import stages.model.huggingface.auto_classes\n")
