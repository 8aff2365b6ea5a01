"""A step as a job of a scheduler that plays its part: late, silent, forgetful, purged."""

import dataclasses
import json

import pytest

from artifacts_schema.errors import EXIT_FAILED, EXIT_OK, EXIT_USAGE, IngotError, UsageError
from artifacts_schema.store import layout
from artifacts_schema.store.lease import Lease
from flows.recipe.profile import Resources
from pools.cluster_job import (
    CANCEL_SECONDS,
    LOST_SECONDS,
    ClusterJob,
    Scheduler,
    SubmissionLost,
    Watch,
    job_tag,
)
from pools.decide import MOST_STALLS, UNKNOWN_SECONDS, JobState
from stages.engine.runner import run_stage

WAITING, RUNNING = JobState("waiting", reason="Priority"), JobState("running")
PREEMPTED = JobState("ended", "again", "PREEMPTED")
LIVE = ("waiting", "running")


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


class FakeScheduler(Scheduler):
    """Jobs as the test sets them; `refuse`, `lose` and `away` are what goes wrong."""

    poll_seconds = 1.0

    def __init__(self):
        self.jobs: dict[str, JobState] = {}
        self.requests = []
        self.asked: list[str] = []
        self.refuse = self.lose = self.away = None

    def find(self, tag):
        self._check()
        live = (name for name, state in self.jobs.items() if state.phase in LIVE)
        return next((name for name in live if self.requests[int(name) - 1].tag == tag), None)

    def submit(self, request):
        self._check()
        if self.refuse:
            raise UsageError(self.refuse, where="sbatch")
        self.requests.append(request)
        name = str(len(self.requests))
        self.jobs[name] = WAITING
        if self.lose:
            self.lose = None
            raise SubmissionLost("timed out")
        return name

    def look(self, jobs):
        self._check()
        return {name: self.jobs[name] for name in jobs if name in self.jobs}

    def save_and_end(self, job):
        self.asked.append(f"save {job}")
        self.jobs[job] = JobState("ended", "failed", "NonZeroExitCode", 75)

    def cancel(self, job):
        self.asked.append(f"cancel {job}")
        self.jobs[job] = JobState("ended", "cancelled", "CANCELLED")

    def output(self, job, folder):
        return "much\nerror: naps: its own error\n  and its second line\n"

    def _check(self):
        if self.away:
            raise IngotError(self.away, where="squeue")


@pytest.fixture
def scheduler():
    return FakeScheduler()


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def step(open_pipeline):
    return next(one for one in open_pipeline().plan().steps if one.is_ready)


@pytest.fixture
def start(scheduler, clock, store, step, tmp_path):
    """`start(**resources)`: a job as a new process of `ingot run` has it."""

    def make(force=False, **resources):
        watch = Watch(scheduler, clock)
        own = dataclasses.replace(step, force=force)
        return ClusterJob(watch, store, own, Resources(**resources), tmp_path / "jobs")

    return make


def poll(job, clock, times=1, seconds=2.0):
    code = None
    for _ in range(times):
        code = job.poll()
        clock.now += seconds
    return code


def commit(store, step):
    run_stage(store, step.spec)


def test_a_step_is_submitted_once_and_done_once_it_is_committed(
    start, scheduler, clock, store, step
):
    job = start(cpus=2, memory="1 GB")
    assert poll(job, clock, 3) is None
    scheduler.jobs["1"] = RUNNING
    assert poll(job, clock) is None
    commit(store, step)
    assert poll(job, clock) == EXIT_OK
    (request,) = scheduler.requests
    assert request.tag == job_tag(store, step.key)
    assert request.memory == 10**9
    texts = [event["text"] for event in job.events() if event["type"] == "job"]
    assert texts == ["job 1 submitted to local: 2 CPUs, 1.0 GB", "job 1 waits: Priority"]


def test_an_estimated_start_that_moves_is_told_every_few_minutes(start, scheduler, clock):
    job = start()
    poll(job, clock)
    for minute in range(20):
        reason = f"Priority, starts about 2026-11-24 10:{minute:02d}"
        scheduler.jobs["1"] = JobState("waiting", reason=reason)
        poll(job, clock, seconds=60.0)
    scheduler.jobs["1"] = JobState("waiting", reason="Resources")
    poll(job, clock)
    texts = [event["text"][-5:] for event in job.events() if "waits" in event["text"]]
    assert texts == ["10:00", "10:06", "10:12", "10:18", "urces"]


def test_the_spec_is_in_the_store_before_the_job(start, clock, store, step):
    poll(start(), clock)
    value = json.loads(store.backend.read(layout.work(step.key, "spec.json")))
    assert value["stage"] == step.stage


def test_another_process_follows_the_job_that_is_there(start, scheduler, clock):
    poll(start(), clock, 2)
    second = start()
    assert poll(second, clock, 2) is None
    assert len(scheduler.requests) == 1


def test_a_lost_reply_submits_nothing_twice(start, scheduler, clock):
    scheduler.lose = True
    job = start()
    assert poll(job, clock, 5, seconds=5.0) is None
    assert len(scheduler.requests) == 1
    assert job.job == "1"


def test_a_lost_reply_of_a_job_that_is_done_by_now(start, scheduler, clock, store, step):
    scheduler.lose = True
    job = start()
    poll(job, clock)
    commit(store, step)
    scheduler.jobs["1"] = JobState("ended", "done", "COMPLETED", 0)
    assert poll(job, clock, 2, seconds=5.0) == EXIT_OK
    assert len(scheduler.requests) == 1


def test_a_refusal_is_the_error_in_the_schedulers_own_words(start, scheduler, clock):
    scheduler.refuse = "Invalid account or account/partition combination specified"
    job = start()
    assert poll(job, clock) == EXIT_USAGE
    assert scheduler.refuse in job.last_words()
    assert not scheduler.requests


def test_a_scheduler_that_is_away_is_waited_for_and_then_given_up(start, scheduler, clock):
    scheduler.away = "Unable to contact slurm controller"
    job = start()
    assert poll(job, clock, 10, seconds=LOST_SECONDS / 20) is None
    scheduler.away = None
    assert poll(job, clock, 2, seconds=LOST_SECONDS) is None
    assert scheduler.requests
    scheduler.away = "again"
    assert poll(job, clock, 30, seconds=LOST_SECONDS) is None  # The job may well run meanwhile.
    other = start()
    assert poll(other, clock, 2, seconds=LOST_SECONDS + 1) == EXIT_FAILED
    assert "again" in other.last_words()


def test_a_question_that_is_refused_is_an_error_and_the_job_goes_on(start, scheduler, clock):
    job = start()
    poll(job, clock, 2)

    def refuse(jobs):
        raise UsageError("pods is forbidden: cannot list", where="kubernetes")

    scheduler.look = refuse
    assert poll(job, clock) == EXIT_USAGE
    assert "cannot list" in job.last_words()
    assert not scheduler.asked


def test_a_preempted_job_is_sent_again_and_one_without_progress_is_not(start, scheduler, clock):
    job = start()
    for number in range(1, MOST_STALLS + 2):
        poll(job, clock, 2)
        scheduler.jobs[str(number)] = PREEMPTED
        code = poll(job, clock, 1)
    assert len(scheduler.requests) == MOST_STALLS + 1
    assert code == EXIT_FAILED
    assert "PREEMPTED" in job.last_words()


def test_progress_between_starts_lets_it_go_on(start, scheduler, clock, store, step):
    job = start()
    for number in range(1, 3 * MOST_STALLS):
        poll(job, clock, 2)
        done = layout.work(step.key, "done", "nap", f"nap-{number}.json")
        store.backend.replace(done, b"{}")
        scheduler.jobs[str(number)] = PREEMPTED
        assert poll(job, clock, 1) is None
    assert len(scheduler.requests) == 3 * MOST_STALLS - 1


def test_requeues_of_the_scheduler_itself_count_as_starts(start, scheduler, clock):
    job = start()
    poll(job, clock, 2)
    for restarts in range(1, MOST_STALLS + 1):
        scheduler.jobs["1"] = JobState("waiting", reason="BeginTime", restarts=restarts)
        code = poll(job, clock)
    assert code == EXIT_FAILED
    assert scheduler.asked == ["cancel 1"]


def test_memory_that_ran_out_takes_the_next_class_once(start, scheduler, clock):
    job = start(memory=["1 GB", "4 GB"])
    poll(job, clock, 2)
    scheduler.jobs["1"] = JobState("ended", "memory", "OUT_OF_MEMORY")
    poll(job, clock, 2)
    assert [request.memory for request in scheduler.requests] == [10**9, 4 * 10**9]
    scheduler.jobs["2"] = JobState("ended", "memory", "OUT_OF_MEMORY")
    assert poll(job, clock) == EXIT_FAILED


def test_a_job_that_can_never_start_is_named_and_removed(start, scheduler, clock):
    job = start()
    poll(job, clock, 2)
    scheduler.jobs["1"] = JobState("waiting", "never", "PartitionTimeLimit")
    assert poll(job, clock) == EXIT_USAGE
    assert "PartitionTimeLimit" in job.last_words()
    assert scheduler.asked == ["cancel 1"]


def test_a_failure_is_told_in_the_steps_own_words(start, scheduler, clock):
    job = start()
    poll(job, clock, 2)
    scheduler.jobs["1"] = JobState("ended", "failed", "FAILED, NonZeroExitCode", 1)
    assert poll(job, clock) == 1
    assert job.last_words() == "error: naps: its own error\n  and its second line (job 1)"


def test_a_purged_job_is_sent_again_unless_its_run_lives(start, scheduler, clock, store, step):
    job = start()
    poll(job, clock, 2)
    lease = Lease.take(store.backend, step.key)
    del scheduler.jobs["1"]
    for _ in range(20):
        lease.beat()
        assert poll(job, clock, 1, seconds=UNKNOWN_SECONDS / 5) is None
    assert len(scheduler.requests) == 1
    poll(job, clock, 20, seconds=10.0)  # It beats no more.
    assert len(scheduler.requests) == 2


def test_a_stop_removes_what_waits_and_lets_save_what_runs(start, scheduler, clock):
    job = start()
    poll(job, clock, 2)
    job.stop(wait=lambda seconds: None)
    assert scheduler.asked == ["cancel 1"]
    job = start()
    poll(job, clock, 2)
    scheduler.jobs["2"] = RUNNING
    assert job.stop(wait=lambda seconds: None) == 75
    assert scheduler.asked == ["cancel 1", "save 2"]


def test_what_cannot_be_ended_is_left_alone_after_a_while(start, scheduler, clock):
    """Another user's job, which the scheduler does not let us remove; then it is away."""

    def wait(seconds):
        clock.now += seconds

    job = start()
    poll(job, clock, 2)
    scheduler.jobs["1"] = RUNNING
    scheduler.save_and_end = scheduler.cancel = lambda job: scheduler.asked.append(job)
    assert job.stop(wait) == EXIT_FAILED
    assert len(scheduler.asked) <= 2 + CANCEL_SECONDS
    scheduler.away = "Unable to contact slurm controller"
    began = clock.now
    assert job.stop(wait) == EXIT_FAILED
    assert clock.now - began >= scheduler.stop_seconds + CANCEL_SECONDS


def test_what_a_failed_job_printed_may_explain_its_end(start, scheduler, clock):
    scheduler.explain = lambda state, output: dataclasses.replace(
        state, cause="memory" if "second line" in output else "failed"
    )
    job = start(memory=["1 GB", "4 GB"])
    poll(job, clock, 2)
    scheduler.jobs["1"] = JobState("ended", "failed", "FAILED", 137)
    poll(job, clock, 2)
    assert [request.memory for request in scheduler.requests] == [10**9, 4 * 10**9]


def test_a_forced_step_is_done_when_its_job_is(start, scheduler, clock, store, step):
    commit(store, step)
    job = start(force=True)
    assert poll(job, clock, 2) is None
    assert scheduler.requests[0].flags == ("--force",)
    scheduler.jobs["1"] = RUNNING
    assert poll(job, clock) is None
    scheduler.jobs["1"] = JobState("ended", "done", "COMPLETED", 0)
    assert poll(job, clock) == EXIT_OK


def test_all_jobs_are_asked_for_together(scheduler, clock):
    asked = []
    scheduler.look = lambda jobs: asked.append(set(jobs)) or {}
    watch = Watch(scheduler, clock)
    for name in ("1", "2", "3"):
        watch.state(name)
    clock.now += 2
    for name in ("1", "2", "3"):
        watch.state(name)
    assert asked[-1] == {"1", "2", "3"}
    assert len(asked) == 4
