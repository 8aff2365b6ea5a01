"""The chat template from a published folder to a release, and what fine-tuning makes of it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from stages.evaluate.stage import Evaluate
from stages.examples.messages import message
from stages.export.folder import model_folder
from stages.export.stage import Export
from stages.import_model.stage import ImportModel
from stages.model.huggingface.families import to_config, to_weights
from stages.pack.stage import PackChat
from stages.preference.stage import Dpo
from stages.pretrain.stage import Sft
from stages.tokenizer.training import transformers_config
from stages.tokens.chat import CHAT_TEMPLATE, render_segments

pytestmark = pytest.mark.usefixtures("loaded_here")

OWN = (
    "{{- bos_token }}{%- for message in messages %}"
    "{{- '[' + message['role'] | upper + '] ' + message['content'] + eos_token }}"
    "{%- endfor %}{%- if add_generation_prompt %}{{- '[ASSISTANT] ' }}{%- endif %}"
)
TALK = [
    {"role": "system", "content": "say yes"},
    {"role": "user", "content": " what is the colour of the sky \n"},
    {"role": "assistant", "content": "blue"},
    {"role": "user", "content": "and of the man"},
]
QUICK = {"device": "cpu", "threads": 1, "preflight": "off", "tensorboard": False}
TINY = {
    "phases": [{"epochs": 1, "learning_rate": {"peak": 2e-4, "decay": "linear"}}],
    "precision": "fp32",
}


@pytest.fixture
def published(model, tokenizer) -> dict[str, bytes]:
    """A folder as the Hub has it, with a template of its own."""
    from safetensors.torch import save

    config = to_config(model.config, bos=0, eos=1, pad=2)
    described = {**transformers_config("llama-bpe"), "chat_template": "not this one"}
    return {
        "config.json": json.dumps(config).encode(),
        "model.safetensors": save(to_weights(model)),
        "tokenizer.json": tokenizer.to_str().encode(),
        "tokenizer_config.json": json.dumps(described).encode(),
        "chat_template.jinja": OWN.encode(),
    }


@pytest.fixture
def imported(run_stage, snapshot, published):
    return run_stage(ImportModel, {}, {"snapshot": snapshot(published, "llama")}), "checkpoint"


@pytest.fixture
def tuned(run_stage, given, read_input, tokenizer):
    """`tuned(checkpoint, template="chatml")` → the checkpoint after a few steps of sft."""

    def make(checkpoint, template="chatml"):
        talk = [message("user", "say yes"), message("assistant", "yes")]
        rows = [
            {"conversation_id": f"{n:032x}", "source": "s", "messages": talk, "metadata": "{}"}
            for n in range(4)
        ]
        start = read_input(*checkpoint)
        files = {
            "tokenizer.json": start.read_bytes("tokenizer.json"),
            "tokenizer_config.json": start.read_json("tokenizer_config.json"),
            "training.json": {
                "vocabulary_size": tokenizer.get_vocab_size(),
                "padded_vocabulary_size": tokenizer.get_vocab_size(),
            },
        }
        vocabulary = [given("tokenizer", files)]
        packed = run_stage(
            PackChat,
            {"sequence_length": 64, "held_out_share": 0, "template": template},
            {
                "conversations": [given("conversations", {"00000.parquet": rows})],
                "tokenizer": vocabulary,
            },
        )
        inputs = {
            "checkpoint": [checkpoint],
            "train": [(packed, "train")],
            "tokenizer": vocabulary,
        }
        return run_stage(Sft, TINY, inputs, QUICK), "checkpoint"

    return make


def oracle(release, folder: Path):
    """The release as `transformers` loads it."""
    from transformers import AutoTokenizer

    folder.mkdir()
    for path in release.paths():
        (folder / path).write_bytes(release.read_bytes(path))
    return AutoTokenizer.from_pretrained(folder)


def rendered(loaded, messages):
    return loaded.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)


def test_an_imported_chat_model_is_evaluated_and_released_with_its_own_template(
    run_stage, read_input, read_table, imported, published, tmp_path
):
    from transformers import AutoTokenizer

    config = {"text_prompts": [], "chat_prompts": ["Hi"], "max_new_tokens": 2}
    measured = run_stage(Evaluate, config, {"checkpoint": [imported]})
    (row,) = read_table(measured, "evaluation", "generations.parquet").to_pylist()
    assert row["prompt"] == "<|begin_of_text|>[USER] Hi<|end_of_text|>[ASSISTANT] "

    release = read_input(run_stage(Export, {}, {"checkpoint": [imported]}), "release")
    assert release.read_bytes("chat_template.jinja") == OWN.encode()
    (tmp_path / "published").mkdir()
    for name, data in published.items():
        (tmp_path / "published" / name).write_bytes(data)
    own = AutoTokenizer.from_pretrained(tmp_path / "published")
    loaded = oracle(release, tmp_path / "release")
    for talk in (TALK, TALK[1:2], TALK[:2]):
        assert rendered(loaded, talk) == rendered(own, talk)
    record = release.read_json("ingot.json")["state"]["chat_template"]
    assert (record["format"], record["source"]) == ("imported", "snapshot llama")
    assert "its own, unchanged (from snapshot llama)" in release.read_bytes("README.md").decode()


def test_after_fine_tuning_chatml_is_released_and_the_card_says_what_it_replaced(
    run_stage, read_input, imported, tuned, tmp_path, caplog
):
    checkpoint = tuned(imported)
    assert any("replaced by ChatML" in record.getMessage() for record in caplog.records)
    release = read_input(run_stage(Export, {}, {"checkpoint": [checkpoint]}), "release")
    loaded = oracle(release, tmp_path / "release")
    assert loaded.chat_template == CHAT_TEMPLATE
    for talk in (TALK, TALK[1:2]):
        ours = "".join(part.text for part in render_segments(talk, add_generation_prompt=True))
        assert rendered(loaded, talk) == ours
    card = release.read_bytes("README.md").decode()
    assert "ChatML, which stage sft trained with" in card
    assert "(snapshot llama)" in card


def test_fine_tuning_by_the_template_of_an_imported_model_keeps_it(
    run_stage, read_input, imported, tuned, tmp_path
):
    checkpoint = tuned(imported, template="tokenizer")
    release = read_input(run_stage(Export, {}, {"checkpoint": [checkpoint]}), "release")
    assert release.read_bytes("chat_template.jinja") == OWN.encode()
    card = release.read_bytes("README.md").decode()
    assert "its own, unchanged (from snapshot llama)" in card


def test_a_release_of_tuned_imported_weights_says_that_their_data_is_not_known(
    run_stage, read_input, imported, tuned
):
    made = run_stage(Export, {}, {"checkpoint": [tuned(imported)]})
    release = read_input(made, "release")
    (origin,) = release.read_json("ingot.json")["began_with"]
    assert (origin["stage"], origin["key"]) == ("import_model", imported[0].key)
    card = release.read_bytes("README.md").decode()
    assert f"`import_model/{imported[0].key[:12]}`, trained elsewhere" in card
    assert "trained with Ingot from imported weights" in card
    assert "scratch" not in card


def test_a_base_model_has_a_template_from_its_fine_tuning_on(read_input, checkpoint, tuned):
    assert "chat_template" not in read_input(*checkpoint).read_json("tokenizer_config.json")
    after = read_input(*tuned(checkpoint))
    assert after.read_json("tokenizer_config.json")["chat_template"] == CHAT_TEMPLATE
    assert after.read_json("state.json")["chat_template"]["replaced"] is None


def test_several_named_templates_survive_the_way(
    run_stage, read_input, snapshot, published, model, tokenizer, tmp_path
):
    from transformers import AutoTokenizer

    files = {**published, "additional_chat_templates/tool_use.jinja": b"{{ 'tools' }}"}
    made = run_stage(ImportModel, {}, {"snapshot": snapshot(files, "llama")})
    described = read_input(made, "checkpoint").read_json("tokenizer_config.json")
    for name, data in model_folder(model.config, tokenizer, described, "float32").items():
        (tmp_path / name).write_bytes(data)
    named = {"default": OWN, "tool_use": "{{ 'tools' }}"}
    assert AutoTokenizer.from_pretrained(tmp_path).chat_template == named


@pytest.mark.parametrize("template", ["tokenizer", "chatml"])
def test_preferences_keep_the_template_that_the_model_was_tuned_with(
    run_stage, read_input, given, imported, tuned, template
):
    checkpoint = tuned(imported, template=template)
    rows = [
        {
            "preference_id": f"{n:032x}",
            "source": "s",
            "prompt": [message("user", f"say yes {n}")],
            "chosen": [message("assistant", "yes")],
            "rejected": [message("assistant", "no")],
            "metadata": "{}",
        }
        for n in range(8)
    ]
    inputs = {
        "checkpoint": [checkpoint],
        "preferences": [given("preferences", {"00000.parquet": rows})],
    }
    preferred = run_stage(Dpo, {"precision": "fp32"}, inputs, QUICK), "checkpoint"
    before, after = (
        read_input(run_stage(Export, {}, {"checkpoint": [one]}), "release")
        for one in (checkpoint, preferred)
    )
    own = OWN if template == "tokenizer" else CHAT_TEMPLATE
    assert before.read_bytes("chat_template.jinja") == own.encode()
    assert after.read_bytes("chat_template.jinja") == own.encode()
    card = after.read_bytes("README.md").decode()
    assert ("its own, unchanged (from snapshot llama)" in card) == (template == "tokenizer")
