"""What a run committed on its way, as the commands about artifacts tell it."""

from __future__ import annotations

import json

import pytest

from artifacts_schema.identity import interim_key
from artifacts_schema.store.commit import name_interims
from flows.report.subject import find_subject, load_pages
from stages.engine import Many, Milestone, One, Stage
from stages.engine.protocol import register


class Train(Stage):
    """Commits a checkpoint at 2, then its end at 3."""

    name, version, reproducible = "toy_train", 1, "bytes"
    outputs = {"checkpoint": "checkpoint"}

    @classmethod
    def milestones(cls, config, inputs):
        """Two of three."""
        return [Milestone(2, "2K"), Milestone(3, "3K")]

    def run(self, context):
        """Commit both."""
        with context.interim(Milestone(2, "2K"), ["checkpoint"], training_steps=2) as writers:
            writers.write_json("checkpoint", "state.json", {"training_step": 2})
        context.write_json("checkpoint", "state.json", {"training_step": 3})


class Score(Stage):
    """Reads checkpoints."""

    name, version, reproducible = "toy_score", 1, "bytes"
    inputs = {"checkpoint": One("checkpoint"), "more": Many("checkpoint")}
    outputs = {"exclusions": "exclusions"}

    def run(self, context):
        """Write nothing."""


@pytest.fixture
def run(run_stage, store):
    """A run as demo/train, its names as `ingot run` gives them, and a score of 2K."""
    made = run_stage(Train)
    store.set_ref("demo/train", "toy_train", made.key)
    name_interims(store, "demo/train", "toy_train", made.interims)
    two = store.manifest("toy_train", made.interims[0].key)
    score = run_stage(Score, {}, {"checkpoint": [(two, "checkpoint")]})
    store.set_ref("demo/score", "toy_score", score.key)
    return made


def test_ls_lists_both_by_their_names(run, ingot):
    rows = json.loads(ingot("ls", "demo/train", "--json").stdout)
    found = {tuple(row["names"]): row["interim_of"] for row in rows}
    assert found == {
        ("demo/train",): None,
        ("demo/train@2K",): {"run": run.key, "at": 2, "label": "2K", "history": []},
    }


def test_show_says_which_run_committed_it_and_what_a_run_committed(run, ingot):
    assert f"on its way    2K: {interim_key(run.key, 2)[:12]}" in ingot("show", "demo/train").output
    told = ingot("show", "demo/train@2K").output
    assert f"committed by  toy_train {run.key[:12]} on its way, at 2K (2)" in told


def test_lineage_leads_from_the_run_to_who_read_what_it_committed(run, ingot):
    lines = ingot("lineage", "demo/train", "--down").output.splitlines()
    assert lines[1].startswith("└─ checkpoint → on its way: toy_train ")
    assert lines[1].endswith("(demo/train@2K)")
    assert lines[2].startswith("   └─ checkpoint: toy_score ")


def test_verify_reads_them(run, ingot, store):
    assert json.loads(ingot("verify", "--json").stdout)["problems"] == []
    two = store.manifest("toy_train", interim_key(run.key, 2))
    store.backend.remove(store.payload(two, "checkpoint", "state.json"))
    problems = json.loads(ingot("verify", "demo/train@2K", "--json").stdout)
    assert problems["problems"][0]["what"] == "the file is gone"


def test_gc_keeps_them_with_their_run(run, ingot, store):
    store.backend.remove("refs/demo/train@2K.json")
    store.backend.remove("refs/demo/score.json")
    kept = json.loads(ingot("gc", "--min-age", 0, "--json").stdout)
    assert [one["stage"] for one in kept["artifacts"]] == ["toy_score"]
    store.backend.remove("refs/demo/train.json")
    gone = json.loads(ingot("gc", "--min-age", 0, "--json").stdout)
    assert sorted(one["stage"] for one in gone["artifacts"]) == [
        "toy_score", "toy_train", "toy_train",
    ]  # fmt: skip


def test_a_report_has_no_page_for_them_and_draws_them(run, store):
    subject = find_subject(store, "demo")
    pages = {page.step.instance: page for page in load_pages(subject)}
    assert pages["train@2K"].problem == ""
    assert pages["train@2K"].figures == ()
    (score,) = (step for step in subject.steps if step.instance == "score")
    assert score.parents == ("train@2K",)


def test_a_name_for_a_stage_run_by_itself_names_them_too(ingot, store, monkeypatch):
    from flows.cli import stage as command
    from stages.engine.runner import run_stage as run_spec

    register(Train)
    monkeypatch.setattr(
        command, "_run", lambda opened, step, *_: (run_spec(opened, step.spec).manifest, False)
    )
    assert ingot("stage", "toy_train", "--as", "mine").exit_code == 0
    assert set(store.refs()) == {"mine", "mine@2K"}
