import json

import pytest
from huggingface_hub import ModelCard
from safetensors.torch import load, save

from artifacts_schema.errors import IngotError, InputError
from artifacts_schema.store.gc import remove_artifact
from stages.engine.page import Artifact
from stages.evaluate.stage import Evaluate
from stages.export.folder import model_folder
from stages.export.page import summary
from stages.export.stage import Export
from stages.export.verify import verify_release, write_probes
from stages.model.config import ModelConfig
from stages.model.files import model_files
from stages.model.huggingface.families import to_weights
from stages.tokenizer.training import transformers_config
from stages.tokens.chat import CHAT_TEMPLATE

TOKENIZER_CONFIG = {**transformers_config("llama-bpe"), "chat_template": CHAT_TEMPLATE}


@pytest.fixture
def evaluation(given):
    result = {"benchmark": "quiz", "metric": "accuracy", "value": 0.5, "count": 10}
    item = {"benchmark": "quiz", "item_id": "1", "metric": "accuracy", "value": 1.0, "weight": 1.0}
    return given(
        "evaluation",
        {
            "results.parquet": [
                {**result, "standard_error": 0.1, "low": 0.3, "high": 0.7, "baseline": 0.25}
            ],
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
        "certificate.json",
        "chat_template.jinja",
        "config.json",
        "generation_config.json",
        "ingot.json",
        "model.safetensors",
        "tokenizer.json",
        "tokenizer_config.json",
    ]
    assert release.read_json("generation_config.json")["eos_token_id"] == [1, 4]
    # transformers 4 would add token_type_ids, with which `generate` fails.
    names = release.read_json("tokenizer_config.json")["model_input_names"]
    assert names == ["input_ids", "attention_mask"]
    assert release.read_json("config.json")["architectures"] == ["LlamaForCausalLM"]
    assert release.read_json("ingot.json")["checkpoint"]["digest"] == (
        chat_checkpoint[0].output("checkpoint").digest
    )
    # Nothing says which checkpoint this evaluation measured, so it is no score of the release.
    card = release.read_bytes("README.md").decode()
    assert "model-index" not in card
    assert (
        "| quiz | – | – | accuracy | 0.5000 | 0.3000 to 0.7000 | 0.2500 | 10 | not checked | – |"
        in (card.split("## Other checkpoints")[1])
    )
    remove_artifact(store, made)
    assert run_stage(Export, config, inputs).output("release").digest == release.digest


@pytest.mark.usefixtures("loaded_here")
def test_a_model_that_never_saw_a_conversation_is_released_without_a_chat_template(
    run_stage, read_input, checkpoint
):
    release = read_input(run_stage(Export, {}, {"checkpoint": [checkpoint]}), "release")
    assert "chat_template.jinja" not in release.paths()
    assert "chat_template" not in release.read_json("tokenizer_config.json")
    card = release.read_bytes("README.md").decode()
    assert "apply_chat_template" not in card
    assert "no chat template" in card


@pytest.mark.usefixtures("loaded_here")
def test_only_evaluations_of_the_released_checkpoint_are_its_scores(
    run_stage, read_input, given, checkpoint, make_model, tokenizer
):
    """Two real evaluations of equal data: that of the release is listed as its own, by digest."""
    files = {
        **model_files(make_model(layers=1, context=128)),
        "tokenizer.json": tokenizer.to_str().encode(),
        "tokenizer_config.json": TOKENIZER_CONFIG,
        "state.json": {},
    }
    base = given("checkpoint", files)
    question = {"form": "multiple_choice", "choices": ["Paris", "Rome"], "metadata": "{}"}
    items = [
        {**question, "benchmark": "quiz", "item_id": str(n), "prompt": f"{n}:", "answer": 0}
        for n in range(4)
    ]
    asked = [given("benchmarks", {"00000.parquet": items})]
    quiet = {"text_prompts": ["Once"], "chat_prompts": [], "max_new_tokens": 2}
    own, others = (
        run_stage(Evaluate, quiet, {"checkpoint": [one], "benchmarks": asked})
        for one in (checkpoint, base)
    )
    evaluations = [(others, "evaluation"), (own, "evaluation")]
    config = {"dtype": "bfloat16"}  # The scores are of the float32 checkpoint.
    made = run_stage(Export, config, {"checkpoint": [checkpoint], "evaluation": evaluations})
    release = read_input(made, "release")
    assert "before its weights were stored as bfloat16" in release.read_bytes("README.md").decode()
    measured = release.read_json("ingot.json")["evaluations"]
    assert [one["of_this_release"] for one in measured] == [False, True]
    assert measured[0]["measured"][0]["digest"] == base[0].output("checkpoint").digest
    card = release.read_bytes("README.md").decode()
    data = ModelCard(card).data
    scores = {row["metric"]: row["value"] for row in read_rows(read_input(own, "evaluation"))}
    assert {r.metric_type: r.metric_value for r in data.eval_results} == pytest.approx(
        scores, abs=1e-6
    )
    assert {r.dataset_revision for r in data.eval_results} == {
        asked[0][0].output("benchmarks").digest[:12]
    }
    assert card.count("Sample (text, prompt first)") == 1
    assert f"`{base[0].stage}/{base[0].key[:12]}`" in card.split("## Other checkpoints")[1]


def read_rows(evaluation):
    return evaluation.read_table("results.parquet").to_pylist()


@pytest.fixture
def folder(tmp_path, tokenizer):
    """`folder(model)` → a release folder, its probes, and how many tokens these have."""

    def make(model):
        release, probes = tmp_path / "release", tmp_path / "probes"
        files = model_folder(model.config, tokenizer, TOKENIZER_CONFIG, "float32")
        files["model.safetensors"] = save(to_weights(model), metadata={"format": "pt"})
        for place in (release, probes):
            place.mkdir()
        for name, content in files.items():
            (release / name).write_bytes(content)
        return release, probes, write_probes(model, tokenizer, TOKENIZER_CONFIG, probes)

    return make


@pytest.mark.usefixtures("loaded_here")
def test_a_release_that_transformers_reads_otherwise_is_refused_by_what_differs(folder, model):
    release, probes, tokens = folder(model)
    weights = load((release / "model.safetensors").read_bytes())
    weights["model.norm.weight"] = weights["model.norm.weight"] * 1.01
    (release / "model.safetensors").write_bytes(save(weights, metadata={"format": "pt"}))
    with (release / "chat_template.jinja").open("a") as file:
        file.write("!")
    with pytest.raises(IngotError, match=r"chat_equal is False; logits differ by"):
        verify_release(release, probes, model.config, tokens)


def test_a_release_that_does_not_load_is_refused_with_the_reason(folder, model):
    release, probes, tokens = folder(model)
    (release / "config.json").write_text('{"model_type": "no-such-model", "dtype": "float32"}')
    with pytest.raises(IngotError, match="no-such-model"):
        verify_release(release, probes, model.config, tokens)


def test_a_tokenizer_with_more_tokens_than_the_model_is_refused(model, tokenizer):
    small = ModelConfig(**{**model.config.plain(), "vocabulary_size": 300})
    with pytest.raises(InputError, match=r"400 .*300"):
        model_folder(small, tokenizer, TOKENIZER_CONFIG, "float32")


@pytest.mark.usefixtures("loaded_here")
def test_a_decoder_of_experts_and_latent_attention_is_released_as_a_native_class(
    folder, make_model
):
    latent = {"kv_rank": 12, "plain_width": 10, "rotary_width": 8, "value_width": 6}
    experts = {"experts": 8, "chosen": 3, "shared": 1, "width": 16, "first": 1}
    shape = {"latent": latent, "experts": experts, "kv_heads": 4}
    model = make_model(**shape, rope_scaling={"factor": 4.0, "original_context": 32})
    release, probes, tokens = folder(model)
    config = json.loads((release / "config.json").read_bytes())
    assert config["architectures"] == ["DeepseekV3ForCausalLM"]
    assert verify_release(release, probes, model.config, tokens).logit_difference <= 1e-5


@pytest.mark.full
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
