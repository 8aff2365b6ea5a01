"""The main job: raw pages in, a released model out, every record accounted for and traceable."""

from __future__ import annotations

import json
import subprocess
import sys
import time

import pytest
from click.testing import CliRunner

from artifacts_schema.identity import short
from artifacts_schema.store.verify import verify
from flows.cli.main import main
from flows.recipe.execute import execute
from stages.engine import Input
from stages.engine.page import Artifact

STEPS = [
    "sample",
    "web",
    "code",
    "conversations",
    "preferences",
    "benchmarks",
    "questions",
    "signals[web]",
    "signals[code]",
    "dedup",
    "decontaminate",
    "filter",
    "chat_signals",
    "chat_decontaminate",
    "chat_filter",
    "tokenizer",
    "pack",
    "pretrain",
    "pack_chat",
    "sft",
    "dpo",
    "trigram",
    "evaluate",
    "evaluate_chat",
    "export",
    "quality_models",
]


def ingot(ran, *arguments):
    result = CliRunner().invoke(main, [*arguments, "--store", str(ran.folder)])
    assert result.exit_code == 0, result.output
    return result.output


def test_every_step_stands_and_its_bytes_are_those_of_its_manifest(ran):
    plan = ran.pipeline().plan()
    assert [step.instance for step in plan.steps] == STEPS
    for step in plan.steps:
        assert verify(ran.store, step.manifest) == []


def test_records_flow_from_step_to_step_without_loss(ran):
    made = {name: ran.made(name) for name in STEPS}
    web, code = made["web"].conservation, made["code"].conservation
    assert web.records_in == web.out + made["web"].outputs["rejected"].rows
    assert made["dedup"].conservation.records_in == web.out + code.out
    kept = made["filter"].conservation
    assert kept.records_in == web.out + code.out
    assert made["filter"].outputs["documents"].rows == kept.out
    assert made["filter"].outputs["ledger"].rows == kept.records_in
    assert made["pack"].conservation.records_in == kept.out


def test_a_second_run_reuses_everything_and_starts_no_process(ran, monkeypatch):
    def never(*_):
        raise AssertionError("a process was started")

    began = time.process_time()
    assert execute(ran.pipeline(), dispatch=never).is_done
    assert time.process_time() - began < 10


def test_a_changed_threshold_reruns_filter_and_what_depends_on_it(ran):
    plan = ran.pipeline("filter.duplicates.threshold=0.7").plan()
    done = {step.instance: step.action for step in plan.steps}
    after = {
        "tokenizer",
        "pack",
        "pretrain",
        "pack_chat",
        "sft",
        "dpo",
        "evaluate",
        "evaluate_chat",
        "export",
    }
    after |= {"trigram"}
    assert {name for name, action in done.items() if action == "reuse"} == set(STEPS) - after - {
        "filter"
    }
    assert done["filter"] == "run"
    assert plan.step("filter").cause == "config duplicates.threshold: 0.8 → 0.7"
    assert {done[name] for name in after} == {"depends"}
    assert "after filter; reused if its output is unchanged" in plan.step("tokenizer").cause


def test_a_single_stage_has_the_key_of_the_recipes_step(ran):
    web = ran.made("web").key[:12]
    roles = {"documents": "documents", "pages": "pages", "page_views": "views"}
    inputs = (("--input", f"{role}={web}:{output}") for role, output in roles.items())
    output = ingot(ran, "stage", "signals", *(part for given in inputs for part in given))
    assert short(ran.made("signals[web]").key) in output


def test_the_bare_entry_reuses_the_same_key(ran, tmp_path):
    """`python -P -m stages` on a spec: neither flows nor Prefect, the same identity."""
    step = ran.step("dedup")
    spec = tmp_path / "spec.json"
    spec.write_bytes(step.spec.to_json())
    done = subprocess.run(
        [
            *(sys.executable, "-P", "-X", "importtime", "-m", "stages", "dedup"),
            *("--spec", str(spec), "--store", str(ran.folder), "--key", step.key),
        ],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    assert done.stdout.strip() == f"reused dedup {short(step.key)}"
    imported = {line.rsplit("|", 1)[-1].strip() for line in done.stderr.splitlines()}
    assert not {name for name in imported if name.split(".")[0] in ("flows", "prefect", "torch")}


def first_kept(ran):
    ledger = Input.from_manifest(ran.store, ran.made("filter"), "ledger")
    for path in ledger.paths("*/*.parquet"):
        for row in ledger.read_table(path).to_pylist():
            if row["verdict"] == "kept":
                return row["doc_id"]
    raise AssertionError("nothing was kept")


def test_why_leads_from_the_record_to_the_tokens(ran):
    doc_id = first_kept(ran)
    chains = json.loads(ingot(ran, "why", doc_id, "--json"))
    text = json.dumps(chains)
    assert doc_id in text
    assert "origin_offset" in text or "offset" in text
    assert "kept" in text
    output = ingot(ran, "why", doc_id)
    for word in ("kept", "sequence"):
        assert word in output


def test_why_names_the_rule_that_dropped_a_planted_page(ran):
    (planted,) = Input.from_manifest(ran.store, ran.made("sample"), "truth").shards()
    truth = planted.read().to_pylist()
    garbled = next(row for row in truth if row["defect"] == "garbled")
    (history,) = json.loads(ingot(ran, "why", garbled["url"], "--json"))["documents"]
    (entry,) = (row["values"] for row in history["sightings"] if row["kind"] == "ledger")
    assert (entry["verdict"], bool(entry["failures"])) == ("dropped", True)
    broken = next(row for row in truth if row["defect"] == "broken_record")
    (history,) = json.loads(ingot(ran, "why", broken["doc_id"], "--json"))["documents"]
    assert {row["kind"] for row in history["sightings"]} == {"rejected"}


def test_trace_leads_from_the_release_back_to_the_snapshot(ran):
    output = ingot(ran, "trace", "tiny/export")
    for stage in ("export", "dpo", "sft", "pretrain", "pack", "filter", "ingest", "sample"):
        assert stage in output


def test_trace_names_the_documents_of_a_training_step(ran):
    rows = json.loads(ingot(ran, "trace", "tiny/pretrain", "--training-step", "3", "--json"))
    ledger = Input.from_manifest(ran.store, ran.made("filter"), "ledger")
    kept = {
        row["doc_id"]
        for path in ledger.paths("*/*.parquet")
        for row in ledger.read_table(path).to_pylist()
        if row["verdict"] == "kept"
    }
    found = {word for word in json.dumps(rows).split('"') if len(word) == 32 and word in kept}
    assert found


@pytest.mark.parametrize("command", [["ls"], ["gc"], ["verify"], ["lineage", "tiny/export"]])
def test_readers_print_tables_and_json(ran, command):
    assert ingot(ran, *command)
    json.loads(ingot(ran, *command, "--json"))


def test_planted_defects_are_caught(ran):
    table = Input.from_manifest(ran.store, ran.made("evaluate"), "evaluation").read_table(
        "results.parquet"
    )
    recall = {
        row["benchmark"].removeprefix("planted/"): row["value"]
        for row in table.to_pylist()
        if row["benchmark"].startswith("planted/")
    }
    for defect in ("exact_duplicate", "garbled", "repetition", "boilerplate", "personal_data"):
        assert recall[defect] == 1.0, recall


def test_a_fresh_process_loads_the_release_with_transformers_alone(ran):
    """No remote code, nothing of Ingot importable, and it answers in the chat format."""
    place = Artifact(ran.store, ran.made("export")).place("release")
    program = (
        "import sys, torch\n"
        "from transformers import AutoModelForCausalLM, AutoTokenizer\n"
        f"folder = {place!r}\n"
        "tokenizer = AutoTokenizer.from_pretrained(folder, trust_remote_code=False)\n"
        "model = AutoModelForCausalLM.from_pretrained(folder, trust_remote_code=False)\n"
        "chat = [{'role': 'user', 'content': 'Hello'}]\n"
        "ids = tokenizer.apply_chat_template(chat, add_generation_prompt=True,\n"
        "    return_tensors='pt', return_dict=True)\n"
        "out = model.generate(**ids, max_new_tokens=4, do_sample=False)\n"
        "assert 'stages' not in sys.modules and 'artifacts_schema' not in sys.modules\n"
        "print(type(model).__name__, out.shape[1] - ids['input_ids'].shape[1] > 0)\n"
    )
    done = subprocess.run(
        [sys.executable, "-I", "-c", program],
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.stdout.split() == ["LlamaForCausalLM", "True"], done.stderr[-2000:]
