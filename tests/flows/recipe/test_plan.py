"""What a plan says, and why, over the whole life of an artifact."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import ingot_test_stages as fakes
import pytest

from artifacts_schema.errors import UsageError
from artifacts_schema.store import layout
from flows.recipe.execute import execute
from stages.engine import protocol

STEPS = ["read[crawl-A]", "read[crawl-B]", "measure[crawl-A]", "measure[crawl-B]", "choose", "pack"]


@pytest.fixture
def made(open_pipeline, inline):
    """The demo recipe, run to its end."""
    pipeline = open_pipeline()
    execute(pipeline, dispatch=inline)
    return pipeline


def actions(plan):
    return {step.instance: step.action for step in plan.steps}


def test_in_a_new_store_everything_runs_and_what_can_start_is_known(open_pipeline):
    plan = open_pipeline().plan()
    assert [step.instance for step in plan.steps] == STEPS
    assert set(actions(plan).values()) == {"run"}
    assert [step.instance for step in plan.steps if step.is_ready] == STEPS[:2]
    assert plan.step("read[crawl-A]").cause == "missing"
    assert plan.step("choose").cause == (
        "missing, after read[crawl-A], read[crawl-B], measure[crawl-A] and 1 more"
    )
    assert plan.step("choose").key is None


def test_after_a_run_everything_is_reused(made, open_pipeline):
    plan = open_pipeline().plan()
    assert plan.is_done
    assert plan.summary() == "nothing to do: all 6 steps are made"


def test_a_changed_threshold_runs_its_step_and_names_the_field(made, open_pipeline):
    plan = open_pipeline("choose.least.characters=5").plan()
    assert actions(plan) == {
        **dict.fromkeys(STEPS[:4], "reuse"),
        "choose": "run",
        "pack": "depends",
    }
    assert plan.step("choose").cause == "config least.characters: 4 → 5"
    assert plan.step("pack").cause == "after choose; reused if its output is unchanged"


def test_equal_output_of_a_rerun_stops_the_cascade(made, open_pipeline, inline):
    # No text of the corpus has exactly 3 characters, so 3 and 4 keep the same documents; the
    # ledger differs in its thresholds alone, and `pack` does not read it.
    pipeline = open_pipeline("choose.least.characters=3")
    started = []

    def dispatch(store, step):
        started.append(step.instance)
        return inline(store, step)

    assert execute(pipeline, dispatch=dispatch).is_done
    assert started == ["choose"]


def test_a_changed_file_runs_what_reads_it(made, open_pipeline, project, inline):
    before = open_pipeline().plan().step("read[crawl-B]").key
    (project / "data/b/three.txt").write_text("delta epsilon\nmu nu xi\n")
    pipeline = open_pipeline()
    plan = pipeline.plan()
    assert plan.step("read[crawl-B]").cause == "input snapshot changed (crawl-B)"
    assert plan.step("read[crawl-B]").key != before
    assert actions(plan)["read[crawl-A]"] == "reuse"
    assert actions(plan)["measure[crawl-B]"] == "depends"
    execute(pipeline, dispatch=inline, jobs=4)
    assert open_pipeline().plan().is_done


def test_inputs_that_changed_are_named_by_the_step_they_come_from(made, open_pipeline, inline):
    execute(open_pipeline("read.upper=true", through="measure"), dispatch=inline)
    plan = open_pipeline("read.upper=true").plan()
    # Only `documents` differ: shouting keeps every length, so the signals are the same bytes.
    assert plan.step("choose").cause == "input documents changed (read[crawl-A], read[crawl-B])"


def test_a_moved_folder_is_the_same_snapshot(made, open_pipeline, project):
    (project / "data").rename(project / "moved")
    text = (project / "demo.yaml").read_text().replace("data/", "moved/")
    (project / "demo.yaml").write_text(text)
    assert open_pipeline().plan().is_done


def test_a_new_version_of_a_stage_runs_it(made, open_pipeline, monkeypatch):
    class Measure2(fakes.Measure):
        version = 2

    monkeypatch.setitem(protocol._registered, "measure", Measure2)
    plan = open_pipeline().plan()
    assert plan.step("measure[crawl-A]").cause == "version 1 → 2"
    assert actions(plan)["read[crawl-A]"] == "reuse"


def test_a_field_at_its_default_changes_nothing(made, open_pipeline):
    assert open_pipeline("read.upper=false", "choose.note=null").plan().is_done


def test_execution_and_profile_change_nothing(made, open_pipeline, project):
    profile = project / "fast.yaml"
    profile.write_text("jobs: 3\ndefault: {workers: 7}\nstages: {choose: {threads: 2}}\n")
    pipeline = open_pipeline(profile=str(profile))
    assert pipeline.plan().is_done
    assert pipeline.plan().step("choose").spec.execution["threads"] == 2
    assert pipeline.plan().step("choose").spec.execution["workers"] == 7


def test_a_missing_file_is_a_corrupt_artifact(made, open_pipeline, store, inline):
    manifest = open_pipeline().plan().step("choose").manifest
    Path(store.backend.full(store.payload(manifest, "documents", "00000.parquet"))).unlink()
    pipeline = open_pipeline()
    plan = pipeline.plan()
    assert plan.step("choose").action == "run"
    assert plan.step("choose").cause == "corrupt: documents/00000.parquet: the file is gone"
    assert execute(pipeline, dispatch=inline).is_done


def test_an_unreadable_manifest_is_made_again(made, open_pipeline, store, inline):
    key = open_pipeline().plan().step("pack").key
    Path(store.backend.full(layout.manifest("characters", key))).write_text("{")
    pipeline = open_pipeline()
    assert pipeline.plan().step("pack").cause.startswith("corrupt: not a manifest")
    assert execute(pipeline, dispatch=inline).is_done


def test_forced_steps_run_once_and_compare(made, open_pipeline, inline):
    pipeline = open_pipeline(force=("choose",))
    assert pipeline.plan().step("choose").cause == "forced"
    assert pipeline.plan().step("choose").force
    assert pipeline.plan().step("pack").cause == "after choose; reused if its output is unchanged"
    assert execute(pipeline, dispatch=inline).is_done


def test_other_code_is_told_and_a_miss_only_on_request(made, open_pipeline, monkeypatch, inline):
    monkeypatch.setattr("flows.recipe.plan.code_digest", lambda stage: "other")
    plan = open_pipeline().plan()
    assert plan.is_done
    assert {step.note for step in plan.steps} == {"code differs, version equal"}
    strict = open_pipeline(strict_code=True)
    assert (
        strict.plan().step("read[crawl-A]").cause == "code differs, version equal (--strict-code)"
    )
    assert execute(strict, dispatch=inline).is_done


def test_finished_shards_are_resumed(open_pipeline, store):
    pipeline = open_pipeline()
    key = pipeline.plan().step("read[crawl-A]").key
    for shard in ("00000", "00001"):
        store.backend.replace(layout.work(key, "done", f"map/{shard}.json"), b"{}")
    step = pipeline.plan().step("read[crawl-A]")
    assert (step.action, step.cause) == ("resume", "2 shards done; missing")


def test_through_and_from_select_a_part(made, open_pipeline):
    assert [s.instance for s in open_pipeline(through="measure").plan().steps] == STEPS[:4]
    part = open_pipeline("choose.note=x", start="choose", through="pack").plan()
    assert actions(part) == {
        **dict.fromkeys(STEPS[:4], "reuse"),
        "choose": "run",
        "pack": "depends",
    }
    # `choose` changed as well, but what starts behind it takes what stands, or says it does not.
    with pytest.raises(UsageError, match=r"choose.* config note: null → x"):
        open_pipeline("choose.note=x", start="pack").plan()


def test_from_needs_what_comes_before(open_pipeline):
    with pytest.raises(UsageError, match=r"'pack'.*read\[crawl-A\].*missing"):
        open_pipeline(start="pack").plan()
    with pytest.raises(UsageError, match=r"'pck'.*'pack'"):
        open_pipeline(start="pck").plan()
    with pytest.raises(UsageError, match=r"--from: .*'pack'.*'read'"):
        open_pipeline(start="pack", through="read").plan()
    with pytest.raises(UsageError, match="--force: pack"):
        open_pipeline(through="choose", force=("pack",)).plan()


def test_a_plan_is_plain_json(made, open_pipeline):
    import json

    plan = json.loads(json.dumps(open_pipeline("choose.least.characters=9").plan().to_json()))
    assert plan["steps"][4] == {
        "step": "choose",
        "stage": "choose",
        "action": "run",
        "cause": "config least.characters: 4 → 9",
        "key": plan["steps"][4]["key"],
        "waits_for": [],
        "note": None,
    }
    assert len(plan["steps"][4]["key"]) == 64


def test_planning_twice_says_the_same(made, open_pipeline):
    pipeline = open_pipeline("choose.note=x")
    first, second = pipeline.plan(), pipeline.plan()
    assert [dataclasses.asdict(s)["cause"] for s in first.steps] == [s.cause for s in second.steps]


def test_a_step_depends_when_any_artifact_of_its_config_stands(
    made, open_pipeline, project, inline
):
    # The name has moved on to 9, but what 4 made still stands and may be met again.
    execute(open_pipeline("choose.least.characters=9"), dispatch=inline)
    (project / "data/b/three.txt").write_text("delta epsilon\nnu\n")
    assert open_pipeline().plan().step("choose").action == "depends"
    changed = open_pipeline("choose.least.characters=7").plan().step("choose")
    assert changed.action == "run"
    assert changed.cause.startswith("config least.characters: 9 → 7, after read[crawl-B], measure")


def test_another_order_and_number_of_inputs_are_told(made, open_pipeline, project):
    text = (project / "demo.yaml").read_text()
    for given, told in (
        ("['read[crawl-B]', 'read[crawl-A]']", "order of input documents changed"),
        ("['read[crawl-B]']", "input documents changed (without read[crawl-A])"),
    ):
        changed = text.replace("documents: read, signals", f"documents: {given}, signals")
        assert changed != text
        (project / "demo.yaml").write_text(changed)
        assert open_pipeline().plan().step("choose").cause == told
