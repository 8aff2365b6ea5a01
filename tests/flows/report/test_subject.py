"""What a report is about: a run as its record tells, or an artifact and all above it."""

from __future__ import annotations

import pytest

from artifacts_schema.errors import IngotError, UsageError
from artifacts_schema.store import layout
from artifacts_schema.store.gc import remove_artifact
from artifacts_schema.store.lease import this_process
from artifacts_schema.store.runs import Run, RunStep, find_run, write_run
from flows.recipe.execute import execute
from flows.report.subject import Step, find_subject


def find_step(subject, instance):
    return next(step for step in subject.steps if step.instance == instance)


@pytest.fixture
def ran(open_pipeline, inline, store):
    execute(open_pipeline(), dispatch=inline)
    return store


def states(subject):
    return {step.instance: step.state for step in subject.steps}


def test_a_recipe_is_its_newest_run_and_an_id_is_that_run(ran, open_pipeline, inline):
    first = find_run(ran, "demo")
    execute(open_pipeline("choose.least.characters=9"), dispatch=inline)
    newest = find_subject(ran, "demo")
    assert newest.run == find_run(ran, "demo") != first
    old = find_subject(ran, first.name)
    assert old.run == first
    assert find_step(old, "choose").key != find_step(newest, "choose").key
    assert newest.state == "done"


def test_snapshots_are_given_from_outside_and_stand_first(ran):
    subject = find_subject(ran, "demo")
    assert [(s.instance, s.state) for s in subject.steps[:2]] == [
        ("crawl-A", "given"),
        ("crawl-B", "given"),
    ]
    assert find_step(subject, "read[crawl-A]").parents == ("crawl-A",)
    assert all(step.state != "given" for step in subject.own)
    seen = set()
    for step in subject.steps:
        assert set(step.parents) <= seen
        seen.add(step.instance)


def test_a_store_without_records_is_read_by_its_names(ran):
    ran.backend.remove("runs")
    subject = find_subject(ran, "demo")
    assert subject.run is None
    assert "No record of a run" in subject.remarks[0]
    assert subject.state == "done"
    assert {"choose", "read[crawl-A]"} <= set(states(subject))
    names = [step.instance for step in subject.steps]
    assert names.index("read[crawl-A]") < names.index("choose")


@pytest.mark.parametrize("by", ["ref", "key", "ref with output"])
def test_an_artifact_comes_after_everything_it_was_made_of(ran, by):
    key = ran.ref("demo/choose").key
    text = {"ref": "demo/choose", "key": key[:12], "ref with output": "demo/choose:ledger"}[by]
    subject = find_subject(ran, text)
    assert subject.steps[-1].key == key
    names = [step.instance for step in subject.steps]
    assert names.index("read[crawl-A]") < names.index("choose")
    assert len(names) == len(set(names))


def test_collected_ancestors_are_named(ran):
    ref = ran.ref("demo/read[crawl-A]")
    remove_artifact(ran, ran.manifest(ref.stage, ref.key))
    by_artifact = states(find_subject(ran, "demo/choose"))
    assert by_artifact["read[crawl-A]"] == "collected"
    assert states(find_subject(ran, "demo"))["read[crawl-A]"] == "collected"
    ran.backend.remove("runs")
    assert states(find_subject(ran, "demo"))["read[crawl-A]"] == "collected"
    assert find_subject(ran, "demo").state == "incomplete"


def test_a_manifest_that_cannot_be_read_costs_its_step_alone(ran):
    ref = ran.ref("demo/choose")
    ran.backend.replace(layout.manifest(ref.stage, ref.key), b"{}")
    step = find_step(find_subject(ran, "demo"), "choose")
    assert step.state == "corrupt"
    assert "not a manifest" in step.error


def test_a_failed_run_keeps_errors_and_what_waits(open_pipeline, inline, store, project):
    (project / "data/b/three.txt").write_text("good\nFAIL\n")
    with pytest.raises(IngotError):
        execute(open_pipeline(), dispatch=inline)
    subject = find_subject(store, "demo")
    assert subject.state == "failed"
    assert find_step(subject, "read[crawl-B]").state == "failed"
    assert "ValueError" in find_step(subject, "read[crawl-B]").error
    assert find_step(subject, "choose").state == "waiting"
    assert "read[crawl-B]" in find_step(subject, "choose").parents


def test_steps_have_places_of_their_own_in_the_page():
    names = ["a[b]", "a-b-", "a_b", "a.b", "a b", "é"]
    assert len({Step(name, "s", None, "waiting").anchor for name in names}) == len(names)


def run_of(process, started):
    step = RunStep(instance="a", stage="lines", key=None, state="running")
    return Run(
        id="20260101T000000000-abcd", recipe="long", state="running",
        started="2026-01-01T00:00:00Z", updated="2026-01-01T00:00:01Z",
        steps=(step,), machine=this_process().machine, process=process,
        process_started=started,
    )  # fmt: skip


def test_a_run_whose_process_is_gone_was_interrupted(store):
    me = this_process()
    write_run(store, run_of(me.process, me.started))
    assert find_subject(store, "long").state == "running"
    write_run(store, run_of(me.process, "another start"))
    assert find_subject(store, "long").state == "interrupted"


@pytest.mark.parametrize("text", ["dmeo", "demo/chose", "ffffffff", "", "../..", "demo@1999"])
def test_what_means_nothing_is_one_line(ran, text):
    with pytest.raises(UsageError):
        find_subject(ran, text)


def test_the_nearest_name_is_told(ran):
    with pytest.raises(UsageError, match="'demo'"):
        find_subject(ran, "dmeo")
