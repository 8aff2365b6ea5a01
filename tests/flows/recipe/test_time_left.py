"""The time left of a run: by what its steps took before, by its tokens, and on its workers."""

from __future__ import annotations

import itertools
import random
from dataclasses import replace

import pytest

from artifacts_schema.store import layout
from artifacts_schema.store.runs import RunStep
from flows.recipe.execute import execute
from flows.recipe.observers import LiveProgress, StepView
from flows.recipe.plan import PlannedStep
from flows.recipe.time_left import (
    StepTimes,
    TimeLeft,
    estimate_left,
    planned_tokens,
    schedule_end,
)


def step(name, state="waiting", reads=(), **fields):
    return StepView(
        RunStep(instance=name, stage=name, key=None, state=state, waits_for=reads, **fields),
        None,
        None,
    )


def test_steps_beside_each_other_count_by_the_longest_way_through_them():
    """a 10 s → b 20 s → d 5 s; a → c 30 s → d."""
    seconds = {"a": 10.0, "b": 20.0, "c": 30.0, "d": 5.0}
    reads = {"a": ("crawl",), "b": ("a",), "c": ("a",), "d": ("b", "c")}
    assert schedule_end(seconds, reads, (), jobs=1) == 65.0
    assert schedule_end(seconds, reads, (), jobs=2) == 45.0
    assert schedule_end(seconds, reads, ("a",), jobs=8) == 45.0


def test_independent_steps_share_the_workers_in_the_order_of_the_plan():
    """On two workers: 40 and 10, 10, 10; the last starts at 30 and ends at 70."""
    seconds = {"a": 40.0, "b": 10.0, "c": 10.0, "d": 10.0, "e": 40.0}
    reads = dict.fromkeys(seconds, ())
    assert schedule_end(seconds, reads, (), jobs=2) == 70.0


def test_no_schedule_is_shorter_than_its_longest_way_or_its_work_or_longer_than_twice_that():
    """Graham 1966: list scheduling needs less than twice the larger of both lower limits."""
    seed = random.randrange(10**6)
    draw = random.Random(seed)
    for jobs, count in itertools.product((1, 2, 5), (1, 7, 40)):
        names = [f"s{i}" for i in range(count)]
        seconds = {name: draw.uniform(0.0, 10.0) for name in names}
        reads = {
            name: tuple(draw.sample(names[:i], min(i, draw.randrange(3))))
            for i, name in enumerate(names)
        }
        ways: dict[str, float] = {}
        for name in names:
            ways[name] = seconds[name] + max((ways[read] for read in reads[name]), default=0.0)
        least = max(max(ways.values()), sum(seconds.values()) / jobs)
        end = schedule_end(seconds, reads, (), jobs)
        assert least - 1e-9 <= end < 2 * least + 1e-9, f"seed {seed}"


def test_what_was_never_made_is_left_out_and_said_to_be():
    known = step("pack", reads=("filter",), expected_seconds=60.0)
    unknown = step("train", reads=("pack",))
    running = step("filter", "running", began=100.0, expected_seconds=50.0)
    assert estimate_left([running, known], 1, now=120.0) == TimeLeft(90.0, True)
    assert estimate_left([running, known, unknown], 1, now=120.0) == TimeLeft(90.0, False)
    assert estimate_left([unknown, step("filter", "running", began=100.0)], 1, now=120.0) is None
    assert estimate_left([step("filter", "made")], 1, now=120.0) is None


def test_of_an_incomplete_estimate_steps_are_left_out_that_are_perhaps_reused():
    perhaps = step("pack", reads=("filter",), expected_seconds=60.0, action="depends")
    running = step("filter", "running", began=100.0, expected_seconds=50.0)
    assert estimate_left([running, perhaps], 1, now=120.0) == TimeLeft(90.0, True)
    assert estimate_left([running, perhaps, step("x")], 1, now=120.0) == TimeLeft(30.0, False)


def test_after_a_failure_only_what_runs_counts():
    steps = [
        step("read", "failed"),
        step("code", "running", began=0.0, expected_seconds=50.0),
        step("pack", reads=("read",), expected_seconds=60.0),
    ]
    assert estimate_left(steps, 2, now=20.0) == TimeLeft(30.0, True)


def test_a_step_that_takes_longer_than_before_counts_by_its_progress_alone():
    late = step("read", "running", began=0.0, expected_seconds=50.0)
    assert estimate_left([late], 1, now=60.0) is None
    after = step("pack", reads=("read",), expected_seconds=60.0)
    assert estimate_left([late, after], 1, now=60.0) == TimeLeft(60.0, True)
    assert estimate_left([late, after], 1, now=101.0) == TimeLeft(60.0, False)
    live = LiveProgress()
    for time, done in ((0.0, 0), (60.0, 6)):
        live.add({"type": "progress", "time": time, "done": done, "total": 10, "unit": "shards"})
    assert estimate_left([replace(late, live=live)], 1, now=60.0) == TimeLeft(40.0, True)
    # Never made before: there may be more work after these shards. A training run has no more.
    new = replace(late, step=late.step.model_copy(update={"expected_seconds": None}), live=live)
    assert estimate_left([new], 1, now=60.0) == TimeLeft(40.0, False)
    live.progress["unit"] = "training steps"
    live.add({"type": "started", "time": 60.0})
    for time, done in ((60.0, 6), (70.0, 7)):
        event = {"type": "progress", "time": time, "done": done, "total": 10}
        live.add({**event, "unit": "training steps"})
    assert estimate_left([new], 1, now=70.0) == TimeLeft(30.0, True)


def test_a_second_series_of_a_step_has_a_rate_of_its_own():
    live = LiveProgress()
    for time, done, label in ((0.0, 0, "signing"), (100.0, 50, "signing"), (110.0, 0, "verifying"),
                              (120.0, 10, "verifying")):  # fmt: skip
        event = {"type": "progress", "time": time, "done": done, "total": 50, "unit": "shards"}
        live.add({**event, "label": label})
    assert live.seconds_left == pytest.approx(40.0)  # 40 shards at one a second.


@pytest.fixture
def record_seconds(store):
    """A function that sets the seconds that an artifact took; no checksum covers them."""

    def write(manifest, seconds):
        changed = manifest.model_copy(update={"telemetry": {"seconds": seconds}})
        store.backend.replace(layout.manifest(*manifest.name), changed.to_json())

    return write


def expected(pipeline):
    plan = StepTimes(pipeline.graph, pipeline.store).add_to(pipeline.plan(), jobs=2)
    assert plan.jobs == 2
    return {one.instance: one.expected_seconds for one in plan.steps}


def test_a_step_takes_what_it_took_in_proportion_to_the_bytes_that_it_reads(
    open_pipeline, inline, project, record_seconds
):
    assert set(expected(open_pipeline()).values()) == {None}
    plan = execute(open_pipeline(), dispatch=inline)
    for one in plan.steps:
        record_seconds(one.manifest, 60.0)
    assert set(expected(open_pipeline()).values()) == {None}  # All is reused.
    path = project / "data/b/three.txt"
    path.write_bytes(path.read_bytes() * 3)
    times = expected(open_pipeline())
    assert times["read[crawl-A]"] is None
    assert times["read[crawl-B]"] == pytest.approx(180.0)
    assert times["measure[crawl-B]"] == 60.0  # It waits: its input is not known.
    assert times["choose"] == times["pack"] == 60.0


def test_a_new_repetition_takes_what_another_one_took(
    open_pipeline, inline, project, record_seconds
):
    plan = execute(open_pipeline(), dispatch=inline)
    for one in plan.steps:
        record_seconds(one.manifest, 60.0)
    recipe = project / "demo.yaml"
    recipe.write_text(
        recipe.read_text().replace("steps:", "  crawl-C: {files: ['data/c/*.txt']}\nsteps:")
    )
    (project / "data/c").mkdir()
    (project / "data/c/four.txt").write_bytes((project / "data/b/three.txt").read_bytes() * 2)
    times = expected(open_pipeline())
    assert times["read[crawl-C]"] == pytest.approx(120.0)
    assert times["measure[crawl-C]"] == 60.0


def test_another_recipe_takes_what_an_equal_step_of_this_one_took(
    open_pipeline, inline, project, record_seconds
):
    for one in execute(open_pipeline(), dispatch=inline).steps:
        record_seconds(one.manifest, 60.0)
    recipe = project / "demo.yaml"
    recipe.write_text(recipe.read_text().replace("name: demo", "name: other"))
    times = expected(open_pipeline("choose.least.characters=5"))
    assert times["choose"] is None  # Another config, under another name.
    assert times["pack"] == 60.0


def test_training_takes_its_tokens_at_the_speed_of_an_equal_model(open_pipeline, inline):
    (*_, made) = execute(open_pipeline(), dispatch=inline).steps
    times = StepTimes(open_pipeline().graph, open_pipeline().store)

    def seconds(before, now):
        telemetry = {"seconds": 7.0, "tokens_per_second": 500.0}
        sibling = made.manifest.model_copy(update={"config": before, "telemetry": telemetry})
        spec = replace(made.spec, config=now, inputs=made.manifest.inputs)
        train = PlannedStep("train", "train", "pretrain", "run", "missing", "ab" * 32, spec)
        return times.expect(train, sibling)

    small = {"model": {"width": 64}, "phases": [{"tokens": 1_000}], "clock": "restart"}
    longer = {**small, "phases": [{"tokens": 4_000}, {"tokens": 1_000}]}
    assert planned_tokens(longer) == 5_000
    assert seconds(small, longer) == 10.0
    assert seconds(small, {**longer, "model": {"width": 128}}) is None
    assert seconds(small, {**longer, "clock": "continue"}) is None
    tuned = {"epochs": 2}
    assert seconds(tuned, tuned) == 7.0
    assert seconds(tuned, {"epochs": 4}) is None
