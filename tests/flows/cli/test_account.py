"""`ingot account`: what pretraining plans to read before anything runs, and what it read after."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from artifacts_schema.config import Config, Execution
from stages.engine import Stage, protocol

RECIPE = """
name: demo
steps:
  base:
    stage: pretrain
    config:
      model: {{width: 8, layers: 1, heads: 1, kv_heads: 1, context: 8}}
      phases:
        - tokens: 640
          mixture: {{web: 0.75, code: 0.25}}
          sequences_per_batch: 4
          learning_rate: {{peak: 0.1}}
        - {{tokens: 320, mixture: {{web: 1.0}}, mixture_end: {{code: 1.0}}, sequences_per_batch: 4}}
      skip: [{{first: 31, last: 40}}]
    inputs: {{train: "{shards}", tokenizer: "{tokenizer}"}}
"""
"""120 sequences of 8 tokens in 30 steps; about 80 of web, 40 of code."""


def shards_table(**sources):
    """`shards.json` of sources as (sequences, tokens, languages)."""
    return {
        "dtype": "uint16",
        "sequence_length": 8,
        "strategy": "best_fit",
        "vocabulary_size": 50,
        "padded_vocabulary_size": 64,
        "tokenizer": "0" * 64,
        "begin_id": 0,
        "end_id": 1,
        "padding_id": 2,
        "sources": {
            name: {
                "shards": [{"file": f"{name}/0.tokens", "sequences": count, "tokens": tokens}],
                "sequences": count,
                "tokens": tokens,
                "documents": count,
                "bytes": tokens,
                "languages": languages,
                "repetitive": 0,
                "cut": 0,
            }
            for name, (count, tokens, languages) in sources.items()
        },
    }


@pytest.fixture
def recipe(store, given, tmp_path):
    """A recipe whose token shards stand: 200 sequences of web, 20 of code, half full."""
    table = shards_table(web=(200, 1600, {"en": 1200, "de": 400}), code=(20, 80, {"": 80}))
    files = {"shards.json": table, "token_bytes.bin": b"", "train_counts.bin": b""}
    for name, one in table["sources"].items():
        files[f"{name}/0.tokens"] = b"\3\0" * 8 * one["sequences"]
        files[f"{name}/0.index.parquet"] = []
    tokenizer = {"tokenizer.json": {}, "tokenizer_config.json": {}, "training.json": {}}
    keys = {}
    for kind, content in (("token_shards", files), ("tokenizer", tokenizer)):
        manifest, _ = given(kind, content)
        store.set_ref(f"made/{kind}", manifest.stage, manifest.key)
        keys[kind] = f"@made/{kind}"
    path = tmp_path / "demo.yaml"
    path.write_text(RECIPE.format(shards=keys["token_shards"], tokenizer=keys["tokenizer"]))
    return path


def told(result):
    return json.loads(result.stdout)["accounts"]


def test_a_plan_is_told_before_anything_is_launched(ingot, recipe):
    result = ingot("account", recipe, "--json", "--set", "base.skip=[]")
    assert result.exit_code == 0, result.stderr
    (one,) = told(result)
    assert (one["name"], one["waits_for"], one["refusals"]) == ("demo/base", [], [])
    assert [phase["training_steps"] for phase in one["phases"]] == [20, 10]
    web, code = one["sources"]["web"], one["sources"]["code"]
    assert web["planned_sequences"] + code["planned_sequences"] == 120
    assert abs(code["planned_sequences"] - 40) <= 4
    assert web["planned_tokens"] == 8 * web["planned_sequences"]
    assert code["planned_tokens"] == 4 * code["planned_sequences"]
    assert code["repeated_tokens"] == code["planned_tokens"] - 80
    assert web["left_tokens"] == 1600 - web["planned_tokens"]
    assert one["languages"]["de"]["planned_tokens"] == pytest.approx(
        web["planned_tokens"] / 4, abs=1
    )
    assert one["languages"][""]["planned_tokens"] == code["planned_tokens"]
    assert all(entry["realised_tokens"] is None for entry in one["sources"].values())


def test_a_person_sees_sources_languages_phases_and_what_is_left_out(ingot, recipe):
    shown = ingot("account", recipe, "--set", "base.skip=[{first: 2, last: 3}]").stdout
    assert (
        "demo/base: 30 training steps in 2 phases, 960 token positions in sequences of 8" in shown
    )
    lines = [line.split() for line in shown.splitlines()]
    assert ["source", "epochs", "available", "planned", "repeated", "left"] in lines
    (all_of_it,) = [line for line in lines if line[:1] == ["all"] and line[1] == "1,680"][:1]
    assert len(all_of_it) == 5
    assert [line[0] for line in lines if line and line[0] in ("de", "en", "(none)")]
    assert ["planned", "in", "phase", "1", "phase", "2"] in lines
    assert "skipped: training steps 2 to 3" in shown


def test_a_plan_over_its_caps_is_shown_and_refused_with_the_numbers(ingot, recipe):
    change = ["--set", "base.skip=[]", "--set", "base.epochs={code: 1}"]
    result = ingot("account", recipe, *change)
    assert result.exit_code == 2
    assert " of 1 " in result.stdout
    assert result.stderr.startswith("error: demo/base: source 'code' would be read ")
    assert "20 allowed (20 available)" in result.stderr
    assert "of all sequences (now 0.3" in result.stderr
    assert result.stderr.count("\n") == 1
    refused = ingot("account", recipe, "--json", *change)
    assert refused.exit_code == 2
    (one,) = told(refused)
    assert one["sources"]["code"]["max_epochs"] == 1
    assert "too many" in one["refusals"][0]


def test_what_cannot_be_planned_is_an_error(ingot, recipe):
    result = ingot("account", recipe)
    assert result.exit_code == 2
    assert result.stderr.startswith("error: demo/base: skip.0: begins at 31, but the run's last of")
    change = ["--set", "base.skip=[]", "--set", "base.phases.0.mixture={web: 0.5, cod: 0.5}"]
    result = ingot("account", recipe, *change)
    assert "no source 'cod' in the token shards, did you mean 'code'?" in result.stderr


def test_shards_that_are_not_there_name_the_step_that_makes_them(ingot):
    result = ingot("account", "quickstart")
    assert result.exit_code == 0, result.stderr
    assert result.stdout == (
        "quickstart/pretrain: the token shards are not there yet; pack makes them "
        "(`ingot run quickstart --through pack`)\n"
        "quickstart/sft: the token shards are not there yet; pretrain and pack_chat and pack make "
        "them (`ingot run quickstart --through pretrain`, `ingot run quickstart --through "
        "pack_chat`, `ingot run quickstart --through pack`)\n"
    )
    one, tuning = told(ingot("account", "quickstart", "--json"))
    assert set(tuning["waits_for"]) == {"pretrain", "pack_chat", "pack"}
    assert one == {"name": "quickstart/pretrain", "waits_for": ["pack"], "refusals": []}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["quickstart", "--step", "pack"],
            "'pack' is not a pretraining step (it has pretrain, sft)",
        ),
        (["quickstart", "--step", "pak"], "no step 'pak', did you mean 'pack'?"),
        (["gone"], "no ref 'gone'"),
        (["none.yaml"], "none.yaml: no such file"),
        (["made/tokenizer"], "is not a pretraining run"),
    ],
)
def test_a_target_that_plans_no_tokens_is_refused(ingot, recipe, arguments, message):
    result = ingot("account", *arguments)
    assert result.exit_code == 2
    assert message in result.stderr


def test_a_run_in_the_store_tells_what_it_read(ingot, store, run_stage, monkeypatch):
    monkeypatch.setattr(protocol, "_registered", dict(protocol._registered))
    entry = {
        "available_tokens": 100,
        "planned_tokens": 50,
        "epochs": 0.5,
        "repeated_tokens": 0,
        "left_tokens": 50,
        "realised_tokens": 48,
    }
    account = {
        "phases": [{"training_steps": 3, "tokens": 64, "sequence_length": 8}],
        "skipped_training_steps": [],
        "sources": {"web": {**entry, "max_epochs": None}},
        "languages": {"en": entry},
        "languages_are": "expected",
    }

    def run(self, context):
        context.write_json("training_run", "run.json", {**account, "parameters": 7})

    members = {
        "name": "pretrain",
        "version": 1,
        "reproducible": "bytes",
        "outputs": {"training_run": "training_run"},
        "Config": Config,
        "Execution": Execution,
        "run": run,
    }
    manifest = run_stage(type("Trained", (Stage,), members))
    store.set_ref("demo/pretrain", manifest.stage, manifest.key)
    (one,) = told(ingot("account", "demo/pretrain", "--json"))
    assert {name: one[name] for name in account} == account
    shown = ingot("account", "demo/pretrain").stdout
    assert "(demo/pretrain): 3 training steps in 1 phase, 64 token positions" in shown
    assert ["web", "0.50", "100", "50", "0", "50", "48"] in [
        line.split() for line in shown.splitlines()
    ]


def test_no_account_imports_what_trains(recipe, store):
    script = (
        "import sys; from flows.cli.main import main\n"
        f"arguments = [{str(recipe)!r}, '--set', 'base.skip=[]', '--store', {store.url!r}]\n"
        "try: main(['account', *arguments])\n"
        "except SystemExit as end: assert not end.code, end.code\n"
        "print('HEAVY', [m for m in ('torch', 'prefect', 'duckdb') if m in sys.modules])"
    )
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert run.stdout.strip().endswith("HEAVY []")
