"""What stages find wrong with a plan is told before anything runs, all of it at once."""

from __future__ import annotations

import ingot_test_stages as fakes
import pytest

from artifacts_schema.errors import UsageError
from flows.cli.stage import make_spec
from flows.orchestration.forms import check_recipe, stage_spec
from flows.recipe.execute import execute
from flows.recipe.profile import Profile
from stages.engine import protocol, source_names

TWO = """\
name: two
snapshots:
  crawl: {files: ["data/a/*.txt"]}
steps:
  read: {stage: lines, config: {source: notes}, inputs: {snapshot: crawl}}
  measure: {stage: measure, inputs: {documents: read}}
  short: {stage: choose, config: {least: {characters: 60}}, inputs: {documents: read}}
  long: {stage: choose, config: {least: {characters: 70}}, inputs: {documents: short}}
"""


class Lines(fakes.Lines):
    @classmethod
    def sources(cls, config, inputs):
        return frozenset([config.source])


class Choose(fakes.Choose):
    """Refuses what needs more than 50 characters, and records what it was asked."""

    asked: list = []

    @classmethod
    def check_plan(cls, config, inputs):
        cls.asked.append((config, inputs))
        if config.least.characters > 50:
            raise UsageError(
                f"{config.least.characters} of 50 characters", where="least.characters", hint="less"
            )
        return [f"keeps {config.least.characters}"]

    @classmethod
    def sources(cls, config, inputs):
        return source_names(inputs["documents"])


@pytest.fixture(autouse=True)
def checking_stages(monkeypatch):
    monkeypatch.setitem(protocol._registered, "lines", Lines)
    monkeypatch.setitem(protocol._registered, "choose", Choose)
    monkeypatch.setattr(Choose, "asked", [])


@pytest.fixture
def bind(project, open_pipeline):
    (project / "given.yaml").write_text(TWO)
    return lambda *overrides, **more: open_pipeline(
        *overrides, recipe=project / "given.yaml", **more
    )


def test_a_plan_lists_the_problems_of_all_steps_with_their_names(bind):
    with pytest.raises(UsageError) as error:
        bind().plan()
    said = str(error.value)
    assert "2 problems" in said
    assert "steps.short: config.least.characters: 60 of 50 characters (less)" in said
    assert "steps.long: config.least.characters: 70 of 50 characters (less)" in said


def test_a_step_sees_configs_and_stages_all_the_way_up(bind):
    bind("short.least.characters=1", "long.least.characters=2").plan()
    config, inputs = Choose.asked[-1]
    (short,) = inputs["documents"]
    (read,) = short.inputs["documents"]
    (snapshot,) = read.inputs["snapshot"]
    assert config.least.characters == 2
    assert (short.name, short.stage, short.config.least.characters) == ("short", Choose, 1)
    assert (read.name, read.config.source, read.manifest) == ("read", "notes", None)
    assert (snapshot.name, snapshot.stage, snapshot.kind) == ("crawl", None, "snapshot")
    assert snapshot.manifest is not None
    assert short.sources == {"notes"}
    assert source_names([read, snapshot]) is None


def test_what_exists_is_checked_by_its_manifest_and_what_is_reused_is_not_checked(bind, inline):
    small = ("short.least.characters=1", "long.least.characters=2")
    execute(bind(*small, through="short"), dispatch=inline)
    Choose.asked.clear()
    plan = bind(*small).plan()
    ((_, inputs),) = Choose.asked
    assert inputs["documents"][0].manifest.key == plan.step("short").key
    assert plan.step("short").note is None
    assert plan.step("long").note == "keeps 2"


def test_steps_that_were_not_selected_are_not_checked(bind):
    assert bind(through="read").plan().step("read").action == "run"


def test_a_stage_alone_and_a_form_are_checked_alike(bind, inline, project):
    pipeline = bind(through="read")
    execute(pipeline, dispatch=inline)
    given = "documents=two/read:documents"
    values = {"config__least__characters": 99, "input__documents": ["@two/read:documents"]}
    with pytest.raises(UsageError, match=r"least\.characters: 99 of 50"):
        make_spec(pipeline.store, "choose", None, ("least.characters=99",), (given,), Profile())
    with pytest.raises(UsageError, match=r"least\.characters: 99 of 50"):
        stage_spec(pipeline.store, "choose", values)
    with pytest.raises(UsageError, match="2 problems"):
        check_recipe({"recipe": str(project / "given.yaml"), "store": pipeline.store.url})


def test_inputs_of_a_stored_artifact_are_read_from_its_manifest(bind, inline):
    pipeline = bind("short.least.characters=1", through="short")
    execute(pipeline, dispatch=inline)
    Choose.asked.clear()
    make_spec(pipeline.store, "choose", None, (), ("documents=two/short:documents",), Profile())
    (short,) = Choose.asked[-1][1]["documents"]
    assert short.config.least.characters == 1
    assert short.sources == {"notes"}
    assert short.inputs["documents"][0].manifest.stage == "lines"
