"""Steps over what another step commits on its way: planned before, run meanwhile, named."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import Any

import pytest
from pydantic import Field

from artifacts_schema.config import Config
from artifacts_schema.errors import CorruptArtifact, UsageError
from artifacts_schema.identity import interim_key
from artifacts_schema.kinds import KINDS
from artifacts_schema.store import layout
from artifacts_schema.store.gc import remove_artifact
from artifacts_schema.store.verify import verify
from flows.recipe.execute import execute
from flows.recipe.observers import Observer
from stages.engine import Many, Milestone, One, Stage, protocol
from stages.engine.runner import run_stage

RECIPE = """\
name: demo
snapshots:
  crawl: {files: ["data/a/*.txt"]}
steps:
  read: {stage: lines, inputs: {snapshot: crawl}}
  train: {stage: toy_train, inputs: {documents: read}}
  score: {stage: toy_score, for_each: {checkpoints: train}, inputs: {checkpoint: each}}
"""
STEPS = ["score[2K]", "score[4K]", "score[5K]"]
BRANCH = "  branch: {stage: toy_score, inputs: {checkpoint: train@4K}}\n"
SUMS = """\
  twice: {stage: toy_sum, for_each: {checkpoints: train}, inputs: {exclusions: score}}
  all: {stage: toy_sum, inputs: {exclusions: score}}
"""


class TrainConfig(Config):
    """How long `Train` trains."""

    steps: int = Field(default=5, ge=1, description="Steps.")


class Train(Stage):
    """Commits a checkpoint every second step."""

    name, version, reproducible = "toy_train", 1, "bytes"
    inputs = {"documents": One("documents")}
    outputs = {"checkpoint": "checkpoint"}
    Config = TrainConfig
    passed = staticmethod(lambda step: None)

    @classmethod
    def milestones(cls, config, inputs):
        """Every second step, and the last; an input is there to be looked at."""
        assert inputs["documents"][0].rows
        steps = [*range(2, config.steps, 2), config.steps]
        return [Milestone(step, f"{step}K") for step in steps]

    def run(self, context):
        """Commit, and let the test look."""
        for milestone in self.milestones(context.config, {"documents": context.many("documents")}):
            if milestone.at == context.config.steps:
                break
            with context.interim(milestone, ["checkpoint"]) as writers:
                writers.write_json("checkpoint", "state.json", {"training_step": milestone.at})
            type(self).passed(milestone.at)
        context.write_json("checkpoint", "state.json", {"training_step": context.config.steps})


def table(values):
    """A small table of a kind with two columns of text."""
    import pyarrow as pa

    schema = KINDS["exclusions"].tables["*.parquet"].arrow()
    rows = [{"doc_id": f"{value:032x}", "reason": str(value)} for value in values]
    return pa.Table.from_pylist(rows, schema)


class Score(Stage):
    """The training step of a checkpoint."""

    name, version, reproducible = "toy_score", 1, "bytes"
    inputs = {"checkpoint": One("checkpoint")}
    outputs = {"exclusions": "exclusions"}

    def run(self, context):
        """Write it."""
        step = context.one("checkpoint").read_json("state.json")["training_step"]
        context.write_table("exclusions", "0.parquet", table([step]))


class Sum(Stage):
    """The sum of all."""

    name, version, reproducible = "toy_sum", 1, "bytes"
    inputs = {"exclusions": Many("exclusions", at_least=1)}
    outputs = {"exclusions": "exclusions"}

    def run(self, context):
        """Write it."""
        given = context.many("exclusions")
        values = [
            int(v) for one in given for v in one.read_table("0.parquet")["reason"].to_pylist()
        ]
        context.write_table("exclusions", "0.parquet", table([sum(values)]))


@dataclass
class ThreadJob:
    """A step that runs in a thread, and tells what its events file says."""

    store: Any
    step: Any
    code: int | None = None
    told: list[dict[str, Any]] = field(default_factory=list)

    def __post_init__(self):
        self.thread = threading.Thread(target=self._run)
        self.thread.start()

    def _run(self):
        run_stage(self.store, self.step.spec, expected_key=self.step.key, force=self.step.force)
        self.code = 0

    def events(self):
        told, self.told = self.told, []
        return told

    def poll(self):
        return self.code

    def stop(self):
        self.thread.join()

    def last_words(self):
        return ""


@pytest.fixture(autouse=True)
def toys(monkeypatch):
    """The stages above, known to this process for one test."""
    monkeypatch.setattr(Train, "passed", staticmethod(lambda step: None))
    for stage in (Train, Score, Sum):
        monkeypatch.setitem(protocol._registered, stage.name, stage)


@pytest.fixture
def bind(project, open_pipeline):
    """`bind(text, *overrides)`: a recipe of these steps in the test's store."""

    def make(*overrides, more="", recipe=RECIPE, **request):
        (project / "demo.yaml").write_text(recipe + more)
        return open_pipeline(*overrides, **request)

    return make


def lines(plan):
    return {step.instance: (step.action, step.cause) for step in plan.steps}


def reasons(store, manifest):
    from stages.engine import Input

    return (
        Input.from_manifest(store, manifest, "exclusions")
        .read_table("0.parquet")["reason"]
        .to_pylist()
    )


def test_before_its_inputs_stand_one_line_stands_for_all(bind):
    plan = bind().plan()
    assert lines(plan) == {
        "read": ("run", "missing"),
        "train": ("run", "missing, after read"),
        "score[checkpoints of train]": ("run", "missing, after train"),
    }


def test_once_they_stand_the_plan_names_each_that_will_be(bind, inline):
    pipeline = bind(through="read")
    execute(pipeline, dispatch=inline)
    plan = bind().plan()
    assert [step.instance for step in plan.steps] == ["read", "train", *STEPS]
    assert lines(plan)["score[2K]"] == ("run", "missing, after train@2K")
    assert lines(plan)["score[5K]"] == ("run", "missing, after train@5K")
    assert plan.step("score[2K]").reads == ("train",)


def test_a_run_brings_all_of_them_up_to_date(bind, inline, store):
    pipeline = bind(more=SUMS)
    plan = execute(pipeline, dispatch=inline)
    made = {step.instance: step.manifest for step in plan.steps}
    assert [reasons(store, made[name]) for name in STEPS] == [["2"], ["4"], ["5"]]
    assert reasons(store, made["all"]) == ["11"]
    assert [reasons(store, made[f"twice[{n}K]"]) for n in (2, 4, 5)] == [["2"], ["4"], ["5"]]
    assert bind(more=SUMS).plan().is_done
    train = made["train"]
    refs = store.refs("demo/train")
    assert {name: ref.key for name, ref in refs.items()} == {
        "demo/train": train.key,
        "demo/train@2K": interim_key(train.key, 2),
        "demo/train@4K": interim_key(train.key, 4),
    }
    assert store.ref("demo/score[4K]").key == made["score[4K]"].key


def test_a_step_starts_on_a_checkpoint_while_the_run_goes_on(bind, store, monkeypatch):
    """The run waits at 2K until the score of 2K stands; at 4K likewise."""
    scored = {2: threading.Event(), 4: threading.Event()}
    waited = {}

    def passed(step):
        jobs["train"].told.append({"type": "interim", "at": step})
        waited[step] = scored[step].wait(30)

    monkeypatch.setattr(Train, "passed", staticmethod(passed))
    jobs = {}

    def dispatch(store, step):
        jobs[step.instance] = ThreadJob(store, step)
        return jobs[step.instance]

    class Told(Observer):
        def finished(self, step, manifest, seconds):
            if step.instance in ("score[2K]", "score[4K]"):
                scored[int(step.instance[6])].set()

    plan = execute(bind(), dispatch=dispatch, observers=[Told()], jobs=2, wait=lambda _: None)
    assert plan.is_done
    assert waited == {2: True, 4: True}


def test_one_checkpoint_may_be_named_as_an_input(bind, inline, store):
    pipeline = bind(more=BRANCH)
    plan = execute(pipeline, dispatch=inline)
    branch = plan.step("branch").manifest
    assert branch.inputs["checkpoint"][0].key == interim_key(plan.step("train").key, 4)
    # Equal inputs, equal key: the turn over the same checkpoint is the same artifact.
    assert branch.key == plan.step("score[4K]").manifest.key


def test_a_label_that_there_is_not_is_refused_as_soon_as_it_is_known(bind, inline):
    more = BRANCH.replace("4K", "40K")
    execute(bind(more=more, through="read"), dispatch=inline)
    with pytest.raises(UsageError, match=r"train.*'40K'.*'4K'"):
        bind(more=more).plan()


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("{checkpoints: trian}", "no step 'trian', did you mean 'train'"),
        ("{checkpoints: read}", "'read' commits no checkpoints: lines has no permanent"),
        ("{checkpoint: train}", "unknown key 'checkpoint', did you mean 'checkpoints'"),
        ("{checkpoints: [train]}", "expected text"),
    ],
)
def test_what_cannot_be_repeated_over_is_refused(bind, text, told):
    with pytest.raises(UsageError) as error:
        bind(recipe=RECIPE.replace("{checkpoints: train}", text))
    assert told in str(error.value)


def test_a_step_that_commits_nothing_on_its_way_has_no_such_name(bind):
    with pytest.raises(UsageError, match="read commits no checkpoints"):
        bind(more="  odd: {stage: toy_score, inputs: {checkpoint: read@4K}}\n")


def test_of_a_run_that_is_over_those_count_that_stand(bind, inline, store):
    plan = execute(bind(), dispatch=inline)
    key = interim_key(plan.step("train").key, 2)
    remove_artifact(store, store.manifest("toy_train", key))
    later = bind(more=BRANCH.replace("4K", "2K"))
    with pytest.raises(UsageError, match=r"train.*2K.*--force train"):
        later.plan()
    assert [s.instance for s in bind().plan().steps] == ["read", "train", "score[4K]", "score[5K]"]


@pytest.mark.parametrize("how", ["manifest", "payload"])
def test_a_damaged_checkpoint_of_a_run_that_is_over_is_made_again_by_force(
    bind, inline, store, how
):
    plan = execute(bind(), dispatch=inline)
    made = store.manifest("toy_train", interim_key(plan.step("train").key, 2))
    if how == "manifest":
        store.backend.replace(layout.manifest(made.stage, made.key), b"")
    else:
        name = made.outputs["checkpoint"].files[0].path
        store.backend.remove(store.payload(made, "checkpoint", name))
    with pytest.raises(CorruptArtifact, match=r"train: .*2K.*--force train"):
        bind().plan()
    assert execute(bind(force=("train",)), dispatch=inline).is_done
    assert store.manifest("toy_train", made.key).outputs == made.outputs
    assert verify(store, store.manifest("toy_train", made.key)) == []


def test_a_run_whose_manifest_cannot_be_read_is_made_again(bind, inline, store):
    made = execute(bind(more=BRANCH), dispatch=inline).step("train").manifest
    store.backend.replace(layout.manifest(made.stage, made.key), b"")
    step = bind(more=BRANCH).plan().step("train")
    assert (step.action, step.cause[:8]) == ("run", "corrupt:")
    assert execute(bind(more=BRANCH), dispatch=inline).is_done
    assert store.manifest(made.stage, made.key).outputs == made.outputs


def test_a_changed_run_takes_the_names_of_the_one_before(bind, inline, store):
    execute(bind(), dispatch=inline)
    plan = execute(bind("train.steps=4"), dispatch=inline)
    keys = {name: ref.key for name, ref in store.refs("demo/train").items()}
    run = plan.step("train").key
    assert keys == {"demo/train": run, "demo/train@2K": interim_key(run, 2)}
