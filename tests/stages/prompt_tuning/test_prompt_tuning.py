"""The prompt_tuning stage: `peft`'s function and files, its trajectory, resume, refusals."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch
from safetensors.torch import load, save_file

from artifacts_schema.errors import InputError, UsageError
from stages.engine.page import Artifact
from stages.examples.messages import message
from stages.model.files import read_model
from stages.model.huggingface.families import to_config, to_weights
from stages.pack.stage import PackChat
from stages.prompt_tuning.conversations import read_conversations
from stages.prompt_tuning.page import page
from stages.prompt_tuning.prompt import attach_prompt, first_vectors
from stages.prompt_tuning.stage import PromptTuning
from stages.tokenizer.training import transformers_config
from stages.training.examples import ExampleClock
from stages.training.token_shards import IGNORED, TokenShards

pytest.importorskip("peft")

LENGTH, VIRTUAL = 48, 4
QUICK = {"device": "cpu", "threads": 1, "micro_batch": 2, "checkpoint_every": 2}
QUICK |= {"tensorboard": False}
RATE = {"peak": 3e-2, "decay": "linear"}
TINY = {
    "virtual_tokens": VIRTUAL,
    "epochs": 2,
    "conversations_per_batch": 4,
    "learning_rate": RATE,
    "precision": "fp32",
    "held_out_every": 5,
}


def conversation(number, weight=None, words=1):
    return {
        "conversation_id": f"{number:032x}",
        "source": "ab"[number % 2],
        "messages": [
            message("user", ["say yes", "the sky", "Paris"][number % 3]),
            message("assistant", ["yes", "blue", "France"][number % 3] * words, weight=weight),
        ],
        "tools": None,
        "metadata": "{}",
    }


@pytest.fixture
def pack(run_stage, given, tokenizer):
    """`pack(rows, **config)` → packed conversations."""
    files = {
        "tokenizer.json": tokenizer.to_str().encode(),
        "tokenizer_config.json": transformers_config("llama-bpe"),
        "training.json": {"vocabulary_size": 400, "padded_vocabulary_size": 400},
    }

    def run(rows, **config):
        inputs = {
            "conversations": [given("conversations", {"0.parquet": rows})],
            "tokenizer": [given("tokenizer", files)],
        }
        return run_stage(PackChat, {"sequence_length": LENGTH, **config}, inputs)

    return run


@pytest.fixture
def tune(run_stage, checkpoint, pack):
    """`tune(execution, **config)` → a run of the stage on 30 conversations, six held out."""
    shards = pack([conversation(i) for i in range(30)], held_out_share=0.2)

    def run(execution=None, made=shards, **config):
        inputs = {"checkpoint": [checkpoint], "train": [(made, "train")]}
        if made is shards:
            inputs["held_out"] = [(made, "held_out")]
        return run_stage(PromptTuning, {**TINY, **config}, inputs, {**QUICK, **(execution or {})})

    run.shards = shards
    return run


@pytest.fixture
def released(checkpoint, read_input, tmp_path):
    """The checkpoint as `transformers` loads it."""
    from transformers import AutoModelForCausalLM

    model = read_model(read_input(*checkpoint))
    folder = tmp_path / "released"
    folder.mkdir()
    config = to_config(model.config, bos=0, eos=1, pad=2)
    (folder / "config.json").write_text(json.dumps(config))
    save_file(to_weights(model), folder / "model.safetensors", {"format": "pt"})
    return AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)


def conversations_of(manifest, read_input, longest=64):
    shards = TokenShards([read_input(manifest, "train")])
    return read_conversations(shards, np.arange(400, 400 + VIRTUAL), longest, "drop")


def test_it_loads_in_peft_beside_the_release_with_the_same_logits(
    tune, checkpoint, read_input, released, tmp_path
):
    from peft import PeftModel

    manifest = tune()
    prompt = read_input(manifest, "prompt")
    folder = tmp_path / "prompt"
    folder.mkdir()
    for name in ("adapter_config.json", "adapter_model.safetensors"):
        (folder / name).write_bytes(prompt.read_bytes(name))
    theirs = PeftModel.from_pretrained(released, folder)
    ids = torch.tensor([[5, 17, 250, 9, 33]])
    with torch.no_grad():
        expected = theirs(input_ids=ids, attention_mask=torch.ones_like(ids)).logits
    ours = read_model(read_input(*checkpoint))
    vectors = load(prompt.read_bytes("adapter_model.safetensors"))["prompt_embeddings"]
    attach_prompt(ours, vectors)
    with torch.no_grad():
        logits = ours(torch.cat([torch.arange(400, 400 + VIRTUAL)[None], ids], dim=1))
    torch.testing.assert_close(logits, expected, rtol=1e-5, atol=1e-5)


def test_the_losses_are_those_of_peft_over_20_steps(
    tune, read_input, read_table, released, checkpoint, tokenizer
):
    """Its model, one conversation at a time and padded by nothing, torch's AdamW."""
    from peft import PromptTuningConfig as PeftConfig
    from peft import get_peft_model

    flat = {"peak": 3e-2, "decay": "none"}
    manifest = tune(epochs=4, learning_rate=flat)
    losses = read_table(manifest, "training_run", "metrics.parquet")["loss"].to_pylist()
    assert len(losses) >= 20
    data = conversations_of(tune.shards, read_input)
    theirs = get_peft_model(released, PeftConfig(task_type="CAUSAL_LM", num_virtual_tokens=VIRTUAL))
    parameter = theirs.prompt_encoder["default"].embedding.weight
    start = read_model(read_input(*checkpoint))
    with torch.no_grad():
        parameter.copy_(first_vectors(start, tokenizer, VIRTUAL, None, seed=0))
    optimizer = torch.optim.AdamW(
        [parameter], lr=3e-2, betas=(0.9, 0.95), eps=1e-8, weight_decay=0.0
    )
    clock = ExampleClock(len(data), 4, 4, 0)
    for step, loss in enumerate(losses[:20], start=1):
        total, targets = 0.0, 0
        for index in clock.batch(step).tolist():
            example = data.examples[index]
            ids = torch.from_numpy(example.ids[VIRTUAL:])[None]
            trained = torch.from_numpy(example.trained[VIRTUAL:])[None]
            labels = torch.where(trained, ids, IGNORED)
            count = int(trained[:, 1:].sum())
            out = theirs(input_ids=ids, attention_mask=torch.ones_like(ids), labels=labels)
            total, targets = total + out.loss * count, targets + count
        mean = total / targets
        assert loss == pytest.approx(mean.item(), abs=1e-4), step
        optimizer.zero_grad()
        mean.backward()
        torch.nn.utils.clip_grad_norm_([parameter], 1.0)
        optimizer.step()


def test_the_model_stays_and_the_held_out_loss_falls(tune, read_input, read_table):
    manifest = tune(epochs=12)
    rows = read_table(manifest, "training_run", "held_out.parquet").to_pylist()
    losses = [row["loss"] for row in rows if row["source"] == "all"]
    assert losses[-1] < 0.8 * losses[0]
    assert {row["source"] for row in rows} == {"all", "a", "b"}
    prompt = read_input(manifest, "prompt")
    tensors = load(prompt.read_bytes("adapter_model.safetensors"))
    assert {name: list(one.shape) for name, one in tensors.items()} == {
        "prompt_embeddings": [VIRTUAL, 32]
    }
    account = read_input(manifest, "training_run").read_json("run.json")["conversations"]
    assert account["train"] + account["held_out"] == 30


@pytest.mark.parametrize("visit", [1, 4])
def test_killed_and_started_again_it_commits_the_same_bytes(tune, store, killed_at, visit):
    whole = tune()
    store.backend.remove(f"artifacts/prompt_tuning/{whole.key}.json")
    with killed_at("checkpoint files written", visit):
        tune()
    assert {n: o.digest for n, o in tune().outputs.items()} == {
        n: o.digest for n, o in whole.outputs.items()
    }


def test_micro_batches_of_any_size_give_the_same_prompt(tune, store, read_input):
    vectors = []
    for size in (1, 2, 4):
        manifest = tune({"micro_batch": size})
        store.backend.remove(f"artifacts/prompt_tuning/{manifest.key}.json")
        content = read_input(manifest, "prompt").read_bytes("adapter_model.safetensors")
        vectors.append(load(content)["prompt_embeddings"])
    for other in vectors[1:]:
        torch.testing.assert_close(other, vectors[0], rtol=1e-5, atol=1e-6)


def test_it_may_begin_as_a_text(tune, checkpoint, read_input, tokenizer):
    model = read_model(read_input(*checkpoint))
    ids = tokenizer.encode("say yes", add_special_tokens=False).ids
    vectors = first_vectors(model, tokenizer, len(ids) + 1, "say yes", seed=0)
    assert vectors.equal(model.embedding.weight.detach()[[*ids, ids[0]]])
    assert tune(text="say yes", epochs=1).key != tune(epochs=1).key


def test_drawn_tokens_are_of_the_vocabulary_and_not_special(checkpoint, read_input, tokenizer):
    model = read_model(read_input(*checkpoint))
    vectors = first_vectors(model, tokenizer, 500, None, seed=3)
    table = model.embedding.weight.detach()
    drawn = {int((table == one).all(dim=1).nonzero()[0]) for one in vectors}
    added = tokenizer.get_added_tokens_decoder().items()
    assert not drawn & {index for index, one in added if one.special}
    assert len(drawn) > 200


def test_what_does_not_fit_beside_the_virtual_tokens_is_counted(tune, pack, read_input):
    rows = [conversation(i, words=1 + 6 * (i % 3 == 0)) for i in range(30)]
    made = pack(rows, held_out_share=0.0)
    lengths = [len(one) - VIRTUAL for one in conversations_of(made, read_input).examples]
    virtual = 64 - sorted(lengths)[15]
    beyond = sum(length + virtual > 64 for length in lengths)
    assert 0 < beyond < 15

    def counts(**config):
        manifest = tune(made=made, virtual_tokens=virtual, max_bad_share=1.0, **config)
        return read_input(manifest, "training_run").read_json("run.json")["conversations"]

    assert counts()["too_long"] == beyond
    assert counts(too_long="truncate")["truncated"] == beyond
    with pytest.raises(InputError, match="records are bad"):
        tune(made=made, virtual_tokens=virtual)
    with pytest.raises(InputError, match="no conversation is left"):
        tune(made=made, virtual_tokens=63, max_bad_share=1.0)
    with pytest.raises(UsageError, match="64 virtual tokens leave no room in a context of 64"):
        tune(made=made, virtual_tokens=64)


def test_weights_of_messages_are_refused(tune, pack):
    made = pack([conversation(i, weight=0.5) for i in range(8)], held_out_share=0.2)
    with pytest.raises(UsageError, match="weights other than 0 and 1"):
        tune(made=made)


def test_text_is_refused(run_stage, checkpoint, given, make_documents, tokenizer):
    from stages.pack.stage import Pack

    files = {
        "tokenizer.json": tokenizer.to_str().encode(),
        "tokenizer_config.json": transformers_config("llama-bpe"),
        "training.json": {"vocabulary_size": 400, "padded_vocabulary_size": 400},
    }
    rows = [{"text": f"The capital number {n}. " * 6} for n in range(40)]
    inputs = {
        "documents": [make_documents([rows], snapshot="made")],
        "tokenizer": [given("tokenizer", files)],
    }
    text = run_stage(Pack, {"sequence_length": LENGTH, "held_out_share": 0}, inputs)
    inputs = {"checkpoint": [checkpoint], "train": [(text, "train")]}
    with pytest.raises(InputError, match="holds text, and a prompt is trained on conversations"):
        run_stage(PromptTuning, TINY, inputs, QUICK)


def test_its_page_has_the_losses(tune, store):
    figures = page(Artifact(store, tune()))
    titles = [figure.title for figure in figures]
    assert "Conversations" in titles
    assert "Held-out loss during training" in titles
    assert "Loss" in titles
