"""`--set STEP.execution.field=value` says how a step runs, in every command, and changes no key."""

from __future__ import annotations

import pytest

from artifacts_schema.errors import UsageError
from flows.cli.stage import make_spec
from flows.recipe.execute import execute
from flows.recipe.profile import Profile


def keys(plan):
    return {step.instance: step.key for step in plan.steps}


def test_it_reaches_the_spec_and_no_key(open_pipeline, inline):
    execute(open_pipeline(), dispatch=inline)
    plan = open_pipeline("choose.execution.threads=3", "measure.execution.workers=2").plan()
    assert plan.is_done
    assert keys(plan) == keys(open_pipeline().plan())
    assert plan.step("choose").spec.execution["threads"] == 3
    assert plan.step("measure[crawl-A]").spec.execution["workers"] == 2
    assert open_pipeline().plan().step("choose").spec.execution["threads"] == 1


def test_what_is_typed_wins_over_recipe_and_profile(open_pipeline, project):
    text = (project / "demo.yaml").read_text()
    new = text.replace(
        "stage: choose\n", "stage: choose\n    execution: {threads: 4, workers: 5}\n"
    )
    assert new != text
    (project / "demo.yaml").write_text(new)
    profile = project / "fast.yaml"
    profile.write_text("default: {verify_inputs: false}\nstages: {choose: {threads: 2}}\n")
    pipeline = open_pipeline("choose.execution.threads=6", profile=str(profile))
    (choose,) = (one for one in pipeline.graph.instances.values() if one.name == "choose")
    assert choose.execution == {"threads": 6, "workers": 5, "verify_inputs": False}


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ("choose.execution.threds=3", "'threds'"),
        ("choose.execution.threads=0", "greater than or equal to 1"),
        ("choose.execution=3", "execution.field"),
    ],
)
def test_what_it_cannot_be_is_refused_with_what_was_typed(open_pipeline, setting, said):
    with pytest.raises(UsageError) as error:
        open_pipeline(setting)
    assert said in str(error.value)
    assert f"--set {setting}" in str(error.value)


def test_a_stage_alone_takes_it_too(open_pipeline, inline):
    pipeline = open_pipeline()
    execute(pipeline, dispatch=inline)
    given = ("documents=demo/choose:documents",)
    plain, typed = (
        make_spec(pipeline.store, "characters", None, settings, given, Profile())
        for settings in ((), ("execution.threads=2",))
    )
    assert (plain.key, plain.execution["threads"]) == (typed.key, 1)
    assert typed.execution["threads"] == 2
