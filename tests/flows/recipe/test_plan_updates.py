"""While a run goes on, what changed is planned again alone: the lines of a plan of everything."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from test_checkpoints import BRANCH, RECIPE, SUMS, Score, Sum, Train

from artifacts_schema.store.gc import remove_artifact
from flows.recipe import plan as plan_module
from flows.recipe.execute import execute
from flows.recipe.observers import Observer
from flows.recipe.pipeline import Pipeline
from stages.engine import protocol

WIDE = """\
name: demo
snapshots:
  crawl: {files: ["data/a/*.txt"]}
steps:
  read: {stage: lines, inputs: {snapshot: crawl}}
  measure: {stage: measure, inputs: {documents: read}}
"""
CHOOSE = """\
  choose-%d:
    stage: choose
    config: {least: {characters: %d}}
    inputs: {documents: read, signals: measure}
"""


def lines(plan):
    """What a plan says of each step."""
    return [
        (line.instance, line.action, line.key, line.waits_for, line.reads, line.is_ready)
        for line in plan.steps
    ]


@pytest.fixture
def compared(monkeypatch):
    """Every plan that a run makes in part is made whole as well; returns how many were."""
    make, partly = Pipeline.plan, []

    def plan(self, settled=frozenset(), before=None, changed=()):
        made = make(self, settled, before, changed)
        if before is not None:
            assert lines(made) == lines(make(self, settled))
            partly.append(len(changed))
        return made

    monkeypatch.setattr(Pipeline, "plan", plan)
    return partly


@pytest.mark.parametrize("jobs", [1, 3])
def test_a_plan_in_part_is_the_whole_plan(open_pipeline, inline, compared, jobs):
    plan = execute(open_pipeline(), dispatch=inline, jobs=jobs)
    assert plan.is_done
    assert len(compared) >= 4
    assert all(compared)


@pytest.mark.parametrize("jobs", [1, 4])
def test_also_where_steps_repeat_over_checkpoints(
    project, open_pipeline, inline, compared, monkeypatch, jobs
):
    for stage in (Train, Score, Sum):
        monkeypatch.setitem(protocol._registered, stage.name, stage)
    path = project / "checkpoints.yaml"
    path.write_text(RECIPE + BRANCH + SUMS)
    plan = execute(open_pipeline(recipe=path), dispatch=inline, jobs=jobs)
    assert plan.is_done
    assert {"score[2K]", "branch", "twice[5K]", "all"} <= {line.instance for line in plan.steps}
    assert all(compared)


def test_two_steps_of_one_key_are_made_once(project, open_pipeline, inline, compared):
    path = project / "twins.yaml"
    path.write_text(WIDE + CHOOSE % (1, 7) + CHOOSE % (2, 7))
    started = []

    class Sees(Observer):
        def started(self, step):
            started.append(step.instance)

    plan = execute(open_pipeline(recipe=path), dispatch=inline, observers=[Sees()])
    assert plan.is_done
    assert len(started) == 3


def test_the_work_of_planning_grows_with_the_steps_and_not_with_their_square(
    project, open_pipeline, inline, monkeypatch
):
    planned = []
    make = plan_module._Planner.plan
    monkeypatch.setattr(
        plan_module._Planner, "plan", lambda self, one: (planned.append(1), make(self, one))[1]
    )
    counts = {}
    for steps in (10, 40):
        path = project / f"wide-{steps}.yaml"
        path.write_text(WIDE + "".join(CHOOSE % (n, 100 * steps + n) for n in range(steps)))
        planned.clear()
        assert execute(open_pipeline(recipe=path), dispatch=inline).is_done
        counts[steps] = len(planned)
    assert counts[40] <= 4 * counts[10]  # Some 16 times as many, if each commit planned them all.


def test_what_is_removed_behind_a_run_is_missed_at_its_end(project, open_pipeline, inline, store):
    """The last plan looks at everything: nothing is called done that is not there."""
    path = project / "wide.yaml"
    path.write_text(WIDE + CHOOSE % (1, 1) + CHOOSE % (2, 2))
    removed = []

    class Removes(Observer):
        def finished(self, step, manifest, seconds):
            if step.instance == "choose-1":
                removed.append(manifest)
            elif step.instance == "choose-2":
                for one in removed:
                    remove_artifact(store, one)

    with pytest.raises(Exception, match="missing from the store"):
        execute(open_pipeline(recipe=path), dispatch=inline, observers=[Removes()], jobs=1)
