"""A reward model as a release: `transformers` gives its scores, and what reads text refuses it."""

from __future__ import annotations

import json
import shutil

import pytest
import torch
from click.testing import CliRunner

from artifacts_schema.errors import CorruptArtifact, IngotError, InputError, UsageError
from flows.cli.main import main
from stages.engine.page import Artifact
from stages.export.certificate import CERTIFICATE, repeat_check
from stages.export.gguf_check import check_gguf
from stages.export.page import page
from stages.export.stage import Export
from stages.export_gguf.stage import ExportGguf
from stages.model.files import model_files
from stages.model.huggingface.families import family_of, from_config
from stages.model.reward import RewardModel, from_language_model, reward_config
from stages.tokenizer.training import transformers_config
from stages.tokens.chat import CHAT_TEMPLATE, render_segments
from stages.tokens.chat_template import make_trained_record
from stages.training.examples import encode_example

TALK = [
    {"role": "user", "content": "say yes or no to the man"},
    {"role": "assistant", "content": "yes"},
]


@pytest.fixture
def scorer(given, tokenizer):
    """`scorer(model)` → a committed reward model that begins with this language model."""

    def make(model, **described):
        reward = from_language_model(model, seed=5)
        with torch.no_grad():
            reward.score.weight.mul_(2)  # Scores of several units, as training makes them.
        files = {
            **model_files(reward),
            "tokenizer.json": tokenizer.to_str().encode(),
            "tokenizer_config.json": {
                **transformers_config("llama-bpe"),
                "chat_template": CHAT_TEMPLATE,
                **described,
            },
            "state.json": {
                "stage": "reward",
                "training_step": 3,
                "tokens": 4,
                "chat_template": make_trained_record("reward", None),
            },
        }
        return reward, given("reward_model", files)

    return make


@pytest.fixture
def copied(read_input, tmp_path):
    """`copied(manifest)` → the folder of a release, out of the store."""

    def copy(made):
        release, folder = read_input(made, "release"), tmp_path / "release"
        folder.mkdir()
        for name in release.paths():
            shutil.copyfile(release.local_path(name), folder / name)
        return folder

    return copy


def test_transformers_alone_gives_the_same_scores_alone_and_in_a_padded_batch(
    run_stage, scorer, copied, model, tokenizer
):
    """The stage itself compares in an isolated process; here once more, with conversations."""
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    reward, stored = scorer(model)
    made = run_stage(Export, {"name": "scorer"}, {"reward_model": [stored]})
    assert made.counts["logit_difference"] <= 1e-5
    folder = copied(made)
    config = json.loads((folder / "config.json").read_bytes())
    assert config["architectures"] == ["LlamaForSequenceClassification"]
    assert not (folder / "generation_config.json").exists()
    loaded = AutoModelForSequenceClassification.from_pretrained(folder)
    assert loaded.config.num_labels == 1
    theirs = AutoTokenizer.from_pretrained(folder)
    talks = [[TALK[0], {"role": "assistant", "content": "yes " * n}] for n in (1, 5, 20)]
    with torch.no_grad():
        expected = [
            reward(torch.tensor([encode_example(tokenizer, render_segments(talk)).ids.tolist()]))
            for talk in talks
        ]
        batch = theirs.apply_chat_template(
            talks, padding=True, return_tensors="pt", return_dict=True
        )
        scores = loaded(**batch).logits
    assert (batch["attention_mask"] == 0).any()
    torch.testing.assert_close(
        scores[:, 0], torch.stack([one[0, -1] for one in expected]), atol=1e-5, rtol=0
    )
    assert scores.std() > 0.1
    card = (folder / "README.md").read_text()
    assert "pipeline_tag: text-classification" in card
    assert "AutoModelForSequenceClassification" in card
    assert "generate(" not in card


@pytest.mark.usefixtures("loaded_here")
@pytest.mark.parametrize(
    "shape",
    [
        {"qk_norm": "head"},
        {"qk_norm": "width", "norm": "output", "kv_heads": 4, "tied_embeddings": False},
        {"nope_every": 4, "layers": 4},
    ],
    ids=["qwen3", "olmo2", "smollm3"],
)
def test_reward_models_of_other_families_are_released(run_stage, scorer, make_model, shape):
    _, stored = scorer(make_model(context=128, **shape))
    made = run_stage(Export, {"dtype": "bfloat16"}, {"reward_model": [stored]})
    assert made.counts["logit_difference"] <= 1e-4


def test_what_no_native_class_expresses_is_scored_by_our_own(run_stage, scorer, make_model, copied):
    _, stored = scorer(make_model(context=128, rope_share=0.5, window=16, window_pattern="SL"))
    made = run_stage(Export, {}, {"reward_model": [stored]})
    config = json.loads((copied(made) / "config.json").read_bytes())
    assert config["architectures"] == ["IngotForSequenceClassification"]


@pytest.mark.usefixtures("loaded_here")
def test_a_score_that_differs_is_refused(run_stage, scorer, model, monkeypatch):
    from stages.export.folder import ReleasedModel

    original = ReleasedModel.__call__
    monkeypatch.setattr(ReleasedModel, "__call__", lambda own, tokens: original(own, tokens) + 0.01)
    with pytest.raises(IngotError, match=r"logits differ by 0\.01"):
        run_stage(Export, {}, {"reward_model": [scorer(model)[1]]})


@pytest.mark.usefixtures("loaded_here")
def test_a_tokenizer_that_pads_with_what_ends_conversations_scores_otherwise_and_is_refused(
    run_stage, scorer, model
):
    """A newline ends each conversation in ChatML: transformers would score the token before it."""
    with pytest.raises(IngotError, match="logits differ by"):
        run_stage(Export, {}, {"reward_model": [scorer(model, pad_token="Ċ")[1]]})


def test_one_model_is_released(run_stage, scorer, model, checkpoint):
    with pytest.raises(UsageError, match="a checkpoint or a reward model"):
        run_stage(Export, {}, {})
    with pytest.raises(UsageError, match="a checkpoint or a reward model"):
        run_stage(Export, {}, {"checkpoint": [checkpoint], "reward_model": [scorer(model)[1]]})


@pytest.mark.usefixtures("loaded_here")
def test_the_certificate_repeats_the_scores_and_finds_others(
    run_stage, store, scorer, copied, model, monkeypatch
):
    made = run_stage(Export, {}, {"reward_model": [scorer(model)[1]]})
    figures = {figure.title: figure for figure in page(Artifact(store, made))}
    assert "largest difference of a score" in dict(figures["Verified before release"].rows)
    assert "AutoModelForSequenceClassification" in figures["How to load it"].text
    monkeypatch.undo()
    folder = copied(made)
    result = repeat_check(folder)
    assert (result.generation, result.uncertified) == ("none", [])
    assert result.logit_difference <= 1e-5
    shown = CliRunner().invoke(main, ["verify-release", str(folder)])
    assert shown.exit_code == 0
    assert "scores " in shown.output
    certificate = json.loads((folder / CERTIFICATE).read_bytes())
    certificate["scores"][2] += 0.5
    (folder / CERTIFICATE).write_text(json.dumps(certificate))
    with pytest.raises(CorruptArtifact, match=r"scores differ by 0\.5"):
        repeat_check(folder)
    with pytest.raises(InputError, match="is a reward model"):
        check_gguf(folder, folder / "config.json")
    certificate["lengths"][0] += 1
    (folder / CERTIFICATE).write_text(json.dumps(certificate))
    with pytest.raises(InputError, match="is no certificate"):
        repeat_check(folder)


@pytest.mark.usefixtures("loaded_here")
def test_what_reads_a_language_model_refuses_the_release_by_its_class(
    run_stage, read_input, scorer, model
):
    made = run_stage(Export, {}, {"reward_model": [scorer(model)[1]]})
    values = read_input(made, "release").read_json("config.json")
    with pytest.raises(InputError, match="LlamaForSequenceClassification, which writes no text"):
        from_config(values, where="config.json")
    with pytest.raises(InputError, match="LlamaForSequenceClassification"):
        run_stage(ExportGguf, {}, {"release": [(made, "release")]})


def test_a_reward_model_has_no_output_projection(make_model):
    untied = make_model(tied_embeddings=False).config
    with pytest.raises(UsageError, match="output projection"):
        RewardModel(untied)
    assert family_of(reward_config(untied)).classifier == "LlamaForSequenceClassification"
