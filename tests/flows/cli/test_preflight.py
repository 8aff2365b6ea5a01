"""`ingot preflight`: what a pretraining step needs and would fail of, without training it."""

from __future__ import annotations

import json
import re

import pytest

from stages.pack.stage import Pack
from stages.tokenizer.stage import TokenizerStage

RECIPE = """
name: demo
steps:
  base:
    stage: pretrain
    config:
      model: {width: 32, layers: 2, heads: 2, kv_heads: 1, context: 32}
      phases: [{tokens: 1280, sequences_per_batch: 4, learning_rate: {peak: 0.01}}]
      precision: fp32
    inputs:
      train: "@made/pack:train"
      held_out: "@made/pack:held_out"
      tokenizer: "@made/tokenizer"
    execution: {device: cpu, threads: 1, micro_batch: 2}
"""


@pytest.fixture
def recipe(store, run_stage, make_documents, tmp_path):
    """A recipe whose token shards stand."""
    texts = [" ".join(["the cat sat on a mat and ran far away"] * (n % 5 + 1)) for n in range(200)]
    documents = [make_documents([texts])]
    settings = {"vocabulary_size": 300, "held_share": 0.0}
    tokenizer = run_stage(TokenizerStage, settings, {"documents": documents})
    packed = run_stage(
        Pack,
        {"sequence_length": 32, "held_out_share": 0.1},
        {"documents": documents, "tokenizer": [(tokenizer, "tokenizer")]},
    )
    store.set_ref("made/tokenizer", tokenizer.stage, tokenizer.key)
    store.set_ref("made/pack", packed.stage, packed.key)
    path = tmp_path / "demo.yaml"
    path.write_text(RECIPE)
    return path


def test_a_person_sees_a_line_a_check_and_nothing_is_trained(ingot, store, recipe):
    before = store.keys()
    result = ingot("preflight", recipe)
    assert result.exit_code == 0, result.output
    head, *lines, verdict = result.stdout.splitlines()
    assert head == "demo/base:"
    checks = [line.split("  ")[1] for line in lines if not line.strip().startswith("→")]
    assert checks[0] == "device"
    assert checks[-3:] == ["dry batch", "isolation", "time"]
    assert "warning: no document was compared with benchmarks" in result.stdout
    assert verdict.startswith("  nothing keeps it; looked for ")
    assert store.keys() == before
    # The rest of a second look is the same, in JSON.
    (told,) = json.loads(ingot("preflight", recipe, "--json").stdout)["preflights"]
    assert (told["name"], told["waits_for"], told["refused"]) == ("demo/base", [], False)
    assert told["findings"][0]["check"] == "device"
    memory = told["findings"][1]
    assert memory["total_bytes"] > memory["weights_bytes"] > 0
    assert len(memory["savings"]) == 3


def test_a_model_that_cannot_fit_is_refused_and_never_made(ingot, recipe, monkeypatch):
    from stages.pretrain import run_setup

    def made(*_):
        raise AssertionError("made")

    monkeypatch.setattr(run_setup, "starting_model", made)
    # 2 layers of 65,536 channels: 2 · (3 · 65,536² + 3 · 65,536 · 174,784) = 9.4 · 10^10
    # parameters, of 16 bytes each with gradient and moments.
    result = ingot("preflight", recipe, "--set", "base.model.width=65536")
    assert result.exit_code == 1, result.output
    assert re.search(r"REFUSED: .* 1\.5 TB", result.stdout)


def test_a_run_that_leaves_out_all_has_no_dry_batch_and_a_wrong_plan_is_an_error(ingot, recipe):
    result = ingot("preflight", recipe, "--set", "base.skip=[{first: 1, last: 10}]")
    assert result.exit_code == 0, result.output
    assert "dry batch" not in result.stdout
    result = ingot("preflight", recipe, "--set", "base.max_epochs=0.001")
    assert result.exit_code == 2
    assert "would be read" in result.stderr


def test_a_refusal_is_exit_code_1(ingot, recipe, monkeypatch):
    from stages.pretrain import preflight
    from stages.pretrain.preflight_checks import Finding

    refusal = Finding("disk", "refusal", "no room", "free space")
    monkeypatch.setattr(preflight, "check_writable", lambda backend: refusal)
    result = ingot("preflight", recipe, "--step", "base")
    assert result.exit_code == 1
    assert "REFUSED: no room" in result.stdout
    assert "→ free space" in result.stdout
    assert result.stdout.splitlines()[-1].startswith("  1 would keep it from running")
    assert ingot("preflight", recipe, "--json").exit_code == 1


def test_inputs_that_are_not_there_name_the_step_that_makes_them(ingot):
    result = ingot("preflight", "quickstart")
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith("quickstart/pretrain: its inputs are not there yet; ")
    told, tuning = json.loads(ingot("preflight", "quickstart", "--json").stdout)["preflights"]
    assert told["name"] == "quickstart/pretrain"
    assert (tuning["name"], set(tuning["waits_for"])) == (
        "quickstart/sft",
        {"pretrain", "pack_chat", "pack", "tokenizer"},
    )
    assert "pack" in told["waits_for"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["quickstart", "--step", "pack"],
            "'pack' is not a pretraining step (it has pretrain, sft)",
        ),
        (["quickstart", "--step", "pak"], "no step 'pak', did you mean 'pack'?"),
        (["none.yaml"], "none.yaml: no such file"),
    ],
)
def test_what_is_no_pretraining_step_is_refused(ingot, arguments, message):
    result = ingot("preflight", *arguments)
    assert result.exit_code == 2
    assert message in result.stderr
