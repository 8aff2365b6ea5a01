"""The record of a run: what happened, how it ended, and that it is found again."""

from __future__ import annotations

import pytest

from artifacts_schema.errors import IngotError, Stopped, UsageError
from artifacts_schema.store.runs import find_run, load_runs, run_ids
from flows.recipe.execute import execute


def states(run):
    return {step.instance: step.state for step in run.steps}


def test_a_run_leaves_a_record_of_every_step_with_its_key_and_seconds(open_pipeline, inline, store):
    plan = execute(open_pipeline(), dispatch=inline)
    run = find_run(store, "demo")
    assert run.state == "done"
    assert set(states(run).values()) == {"made"}
    assert {step.instance: step.key for step in run.steps} == {
        step.instance: step.key for step in plan.steps
    }
    assert all(step.seconds is not None for step in run.steps)
    (choose,) = [step for step in run.steps if step.instance == "choose"]
    assert choose.waits_for


def test_a_run_in_which_nothing_is_new_leaves_no_record(open_pipeline, inline, store):
    execute(open_pipeline(), dispatch=inline)
    execute(open_pipeline(), dispatch=inline)
    assert len(run_ids(store, "demo")) == 1


def test_a_change_and_the_way_back_are_two_more_runs_newest_first(open_pipeline, inline, store):
    execute(open_pipeline(), dispatch=inline)
    execute(open_pipeline("choose.least.characters=9"), dispatch=inline)
    execute(open_pipeline(), dispatch=inline)
    back, changed, first = load_runs(store, "demo")
    assert changed.overrides == ("choose.least.characters=9",)
    assert states(changed)["choose"] == "made"
    assert states(changed)["read[crawl-A]"] == "reused"
    assert set(states(back).values()) == {"reused"}
    assert [s.key for s in back.steps] == [s.key for s in first.steps]
    assert find_run(store, changed.name) == changed
    with pytest.raises(UsageError, match="demo@1999"):
        find_run(store, "demo@1999")
    assert find_run(store, "nothing") is None


def test_a_failed_run_says_which_step_failed_and_what_waits(open_pipeline, inline, store, project):
    (project / "data/b/three.txt").write_text("good\nFAIL\n")
    with pytest.raises(IngotError):
        execute(open_pipeline(), dispatch=inline)
    run = find_run(store, "demo")
    assert run.state == "failed"
    assert "ValueError" in run.error
    assert states(run)["read[crawl-B]"] == "failed"
    assert states(run)["choose"] == "waiting"


class Endless:
    """A job that ends when it is stopped."""

    code = None

    def events(self):
        return []

    def poll(self):
        return self.code

    def stop(self):
        self.code = 75

    def last_words(self):
        return "error: stopped on request"


def test_a_stopped_run_says_so(open_pipeline, store):
    job = Endless()
    with pytest.raises(Stopped):
        execute(
            open_pipeline(), dispatch=lambda *_: job, stopping=lambda: True, wait=lambda _: None
        )
    run = find_run(store, "demo")
    assert run.state == "stopped"
    assert "running" not in states(run).values()
    assert "stopped" in states(run).values()


def test_a_record_that_cannot_be_written_does_not_stop_the_run(
    open_pipeline, inline, monkeypatch, caplog
):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("flows.recipe.observers.write_run", full)
    assert execute(open_pipeline(), dispatch=inline).is_done
    assert "record of this run was not written" in caplog.text
