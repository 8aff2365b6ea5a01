"""Running a recipe: order, names, failures, stops."""

from __future__ import annotations

import signal
from functools import partial

import pytest

from artifacts_schema.errors import IngotError, Stopped, UsageError
from artifacts_schema.store.runs import load_runs
from flows.recipe.execute import Handover, execute, run_step
from flows.recipe.observers import Observer


class Recorder(Observer):
    """Writes down what it is told."""

    def __init__(self):
        self.told = []

    def planned(self, plan):
        self.told.append(("planned", plan.summary()))

    def started(self, step):
        self.told.append(("started", step.instance))

    def event(self, step, event):
        self.told.append((event["type"], step.instance))

    def finished(self, step, manifest, seconds):
        self.told.append(("finished", step.instance))

    def failed(self, step, error):
        self.told.append(("failed", step.instance))

    def of(self, what):
        return [name for told, name in self.told if told == what]


def test_each_step_runs_after_what_it_reads_and_gets_its_name(open_pipeline, inline, store):
    recorder = Recorder()
    plan = execute(open_pipeline(), dispatch=inline, observers=[recorder])
    order = recorder.of("finished")
    assert sorted(order) == sorted(step.instance for step in plan.steps)
    assert order.index("read[crawl-A]") < order.index("measure[crawl-A]") < order.index("choose")
    assert store.ref("demo/measure[crawl-B]").key == plan.step("measure[crawl-B]").key
    assert store.ref("demo/crawl-A").stage == "snapshot"
    assert recorder.told[0] == ("planned", "6 to run, 0 reused")
    assert recorder.told[-1] == ("planned", "nothing to do: all 6 steps are made")


def test_a_second_run_starts_nothing_and_moves_names_back(open_pipeline, inline, store):
    execute(open_pipeline(), dispatch=inline)
    first = store.ref("demo/choose").key
    execute(open_pipeline("choose.least.characters=9"), dispatch=inline)
    assert store.ref("demo/choose").key != first
    recorder = Recorder()
    execute(open_pipeline(), dispatch=inline, observers=[recorder])
    assert recorder.of("started") == []
    assert store.ref("demo/choose").key == first


def test_a_failure_keeps_what_is_finished_and_tells_where_the_log_lies(
    open_pipeline, inline, store, project
):
    (project / "data/b/three.txt").write_text("good\nFAIL\n")
    recorder = Recorder()
    with pytest.raises(IngotError, match=r"read\[crawl-B\]: .*ValueError.*log\.txt"):
        execute(open_pipeline(), dispatch=inline, observers=[recorder])
    assert recorder.of("failed") == ["read[crawl-B]"]
    assert recorder.of("finished") == ["read[crawl-A]"]
    (project / "data/b/three.txt").write_text("good\n")
    assert execute(open_pipeline(), dispatch=inline).is_done


class Busy:
    """A job that never ends by itself."""

    def __init__(self, code=75):
        self.code, self.stopped, self.asked = code, False, 0

    def events(self):
        return []

    def poll(self):
        return self.code if self.stopped else None

    def stop(self):
        self.stopped = True

    def last_words(self):
        return "error: lines: stopped on request"


def test_a_stop_ends_every_running_step_kindly(open_pipeline):
    jobs = []

    def dispatch(store, step):
        jobs.append(Busy())
        return jobs[-1]

    recorder = Recorder()
    with pytest.raises(Stopped) as error:
        execute(
            open_pipeline(), dispatch=dispatch, observers=[recorder], jobs=2, stopping=lambda: True
        )
    assert error.value.exit_code == 75
    assert [job.stopped for job in jobs] == [True, True]
    assert recorder.of("failed") == ["read[crawl-A]", "read[crawl-B]"]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_child_that_a_stop_ends_before_it_listens_is_stopped_and_not_failed(
    open_pipeline, store, number
):
    """A child takes its handlers up after its first imports, and a signal before that ends it."""
    with pytest.raises(Stopped):
        execute(open_pipeline(), dispatch=lambda *_: Busy(-number), jobs=2, stopping=lambda: True)
    (record,) = list(load_runs(store, "demo"))
    states = {step.instance: step.state for step in record.steps}
    assert states["read[crawl-A]"] == states["read[crawl-B]"] == "stopped"
    assert record.state == "stopped"


def test_a_child_that_somebody_else_kills_has_failed(open_pipeline, store):
    def dispatch(_store, _step):
        job = Busy(-signal.SIGTERM)
        job.stop()
        return job

    with pytest.raises(IngotError, match="signal 15") as caught:
        execute(open_pipeline(), dispatch=dispatch, jobs=1)
    assert not isinstance(caught.value, Stopped)
    (record,) = list(load_runs(store, "demo"))
    assert record.state == "failed"


class Hung(Busy):
    """A job whose watchdog ends it."""

    def events(self):
        return [{"type": "alert", "kind": "hang", "text": "ended after 1800 s"}]

    def poll(self):
        return 75


def test_a_step_that_hung_is_started_again_but_not_for_ever(open_pipeline, inline):
    started = []

    def dispatch(store, step, hangs):
        started.append(step.instance)
        return Hung() if started.count("read[crawl-A]") <= hangs else inline(store, step)

    recorder = Recorder()
    plan = execute(open_pipeline(), dispatch=partial(dispatch, hangs=2), observers=[recorder])
    assert plan.is_done
    assert started[:3] == ["read[crawl-A]"] * 3
    assert recorder.of("failed") == ["read[crawl-A]"] * 2

    started.clear()
    change = "read.upper=true"
    with pytest.raises(Stopped, match=r"read\[crawl-A\]"):
        execute(open_pipeline(change), dispatch=partial(dispatch, hangs=99), jobs=1)
    assert started == ["read[crawl-A]"] * 4


def test_a_step_that_was_asked_to_stop_from_outside_is_not(open_pipeline):
    started = []

    def dispatch(store, step):
        started.append(step.instance)
        job = Busy()
        job.stop()
        return job

    with pytest.raises(Stopped):
        execute(open_pipeline(), dispatch=dispatch, jobs=1)
    assert started == ["read[crawl-A]"]


def test_a_keyboard_interrupt_ends_every_running_step_kindly(open_pipeline):
    jobs = []

    def dispatch(store, step):
        jobs.append(Busy())
        return jobs[-1]

    def wait(seconds):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        execute(open_pipeline(), dispatch=dispatch, wait=wait)
    assert jobs[0].stopped


def test_a_handover_ends_the_steps_here_and_leaves_the_jobs_of_pools(open_pipeline):
    jobs = {}

    def dispatch(store, step):
        jobs[step.instance] = Busy()
        jobs[step.instance].in_pool = step.instance == "read[crawl-A]"
        return jobs[step.instance]

    def wait(seconds):
        raise Handover

    recorder = Recorder()
    with pytest.raises(Handover):
        execute(open_pipeline(), dispatch=dispatch, observers=[recorder], jobs=2, wait=wait)
    assert {name: job.stopped for name, job in jobs.items()} == {
        "read[crawl-A]": False,
        "read[crawl-B]": True,
    }
    assert recorder.of("failed") == ["read[crawl-A]", "read[crawl-B]"]


@pytest.mark.parametrize(("in_pool", "stopped"), [(True, False), (False, True)])
def test_a_handover_of_a_single_step_leaves_the_job_of_a_pool(
    open_pipeline, store, in_pool, stopped
):
    job = Busy()
    job.in_pool = in_pool

    def wait(seconds):
        raise Handover

    step = next(one for one in open_pipeline().plan().steps if one.is_ready)
    with pytest.raises(Handover):
        run_step(store, step, dispatch=lambda store, step: job, wait=wait)
    assert job.stopped is stopped


def test_a_single_step_that_is_stopped_is_shown_as_one_of_a_recipe(open_pipeline, store):
    recorder, job = Recorder(), Busy()
    step = next(one for one in open_pipeline().plan().steps if one.is_ready)
    with pytest.raises(Stopped):
        run_step(store, step, dispatch=lambda *_: job, observer=recorder, stopping=lambda: True)
    assert job.stopped
    assert recorder.of("failed") == [step.instance]


def test_no_more_steps_run_at_once_than_the_profile_says(open_pipeline, inline, project):
    (project / "two.yaml").write_text("jobs: 2\n")
    for profile, expected in ((None, 1), (str(project / "two.yaml"), 2)):
        started = []

        def dispatch(store, step, started=started):
            started.append(step.instance)
            return Busy()

        with pytest.raises(Stopped):
            execute(open_pipeline(profile=profile), dispatch=dispatch, stopping=lambda: True)
        assert len(started) == expected


@pytest.mark.parametrize(
    ("code", "kind", "told"),
    [
        (1, IngotError, "stopped on request"),
        (2, UsageError, "stopped on request"),
        (75, Stopped, "stopped on request (the same command continues)"),
        (-9, IngotError, "killed by signal 9"),
        (0, IngotError, "it ended without an error but committed nothing"),
    ],
)
def test_an_exit_code_becomes_the_error_that_it_means(open_pipeline, code, kind, told):
    job = Busy(code)
    job.stopped = True
    with pytest.raises(IngotError) as error:
        execute(open_pipeline(), dispatch=lambda store, step: job)
    assert type(error.value) is kind
    assert told in str(error.value)
    assert str(error.value).startswith("read[crawl-A]: ")


def test_equal_inputs_of_two_instances_run_once(project, open_pipeline, inline, store):
    # Two steps with one key: the second finds what the first made, also when both could start.
    (project / "twice.yaml").write_text(
        "snapshots: {crawl: {files: ['data/a']}}\n"
        "steps:\n"
        "  one: {stage: lines, inputs: {snapshot: crawl}}\n"
        "  two: {stage: lines, inputs: {snapshot: crawl}}\n"
    )
    recorder = Recorder()
    execute(
        open_pipeline(recipe=project / "twice.yaml"), dispatch=inline, observers=[recorder], jobs=2
    )
    assert recorder.of("started") == ["one"]
    assert store.ref("twice/two") == store.ref("twice/one")


def test_steps_run_as_child_processes(open_pipeline, installed_stages, store):
    recorder = Recorder()
    plan = execute(open_pipeline(through="measure"), observers=[recorder], jobs=2)
    assert plan.is_done
    assert set(recorder.of("started")) == {s.instance for s in plan.steps}


def test_the_line_of_a_failed_child_is_told(open_pipeline, installed_stages, project):
    (project / "data/a/one.txt").write_text("FAIL\n")
    with pytest.raises(IngotError, match=r"lines.*ValueError"):
        execute(open_pipeline(through="read"))
