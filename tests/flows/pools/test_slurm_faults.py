"""What breaks under a step on a real Slurm, and that it is made all the same, once."""

from __future__ import annotations

import os
import re
import signal
from contextlib import suppress
from pathlib import Path

import pytest
from slurm_cluster import NODES, SlurmCluster, running
from slurm_steps import OVER, done_shards, follow, jobs, naps, profile, start, wait_for

import pools.cluster_job
import pools.decide
from artifacts_schema.errors import IngotError
from artifacts_schema.store.lease import latest_record
from flows.recipe.dispatch import Dispatcher
from flows.recipe.execute import execute
from pools.slurm import client

__all__ = ["naps", "profile"]
pytestmark = [pytest.mark.faults, pytest.mark.full, pytest.mark.usefixtures("installed_stages")]


def stage_processes(store) -> list[int]:
    """Processes of this machine that run a stage in the store."""
    numbers = []
    for folder in os.listdir("/proc"):
        with suppress(OSError, ValueError):
            command = Path(f"/proc/{int(folder)}/cmdline").read_bytes().split(b"\0")
            if b"stages" in command and store.url.encode() in command:
                numbers.append(int(folder))
    return numbers


def kill_stage(store) -> None:
    for number in wait_for(lambda: stage_processes(store)):
        with suppress(ProcessLookupError):
            os.kill(number, signal.SIGKILL)


@pytest.fixture
def running_job(naps, store, slurm):
    """`running_job(seconds)`: pipeline and job of a step that has finished some shards."""

    def begin(seconds=0.4, *resources):
        pipeline = naps(seconds, *resources)
        job = Dispatcher(pipeline.profile)(store, pipeline.plan().steps[0])
        wait_for(lambda: job.poll() is None and done_shards(store, pipeline) >= 3, 90)
        return pipeline, job

    return begin


def states_since(slurm: SlurmCluster, first: str) -> dict[str, str]:
    """Number → state of that job and later ones, once none is left in the queue."""
    ended = wait_for(lambda: not jobs(slurm) and jobs(slurm, OVER))
    return {number: state for number, state in ended.items() if int(number) >= int(first)}


# A node ------------------------------------------------------------------------------------------


def test_a_slurmd_that_dies_and_starts_again_does_not_disturb_its_job(running_job, store, slurm):
    _, job = running_job()
    node = slurm.output("squeue", "-h", "-j", job.job, "-o", "%N").strip()
    slurm.kill(node)
    slurm.start_node(node)
    code, _ = follow(job)
    assert code == 0
    assert re.search(r"Restarts=0\b", slurm.output("scontrol", "show", "job", job.job))


def test_a_node_that_is_lost_loses_no_shard_that_was_finished(running_job, store, slurm):
    pipeline, job = running_job()
    node = slurm.output("squeue", "-h", "-j", job.job, "-o", "%N").strip()
    slurm.kill(node)
    kill_stage(store)
    kept = done_shards(store, pipeline)
    try:
        # As slurmctld itself does after SlurmdTimeout (300 s).
        slurm.run("scontrol", "update", f"NodeName={node}", "State=DOWN", "Reason=test")
        code, _ = follow(job)
    finally:
        slurm.start_node(node)  # It comes back by itself (ReturnToService).
    assert code == 0
    shown = slurm.output("scontrol", "show", "job", job.job)
    assert re.search(r"Restarts=1\b", shown)
    assert f"NodeList={next(one for one in NODES if one != node)}\n" in shown
    assert kept >= 3
    assert states_since(slurm, job.job) == {job.job: "COMPLETED"}


# A process ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("what", ["stage", "shell"])
def test_a_killed_process_is_continued_by_another_job(running_job, store, slurm, monkeypatch, what):
    monkeypatch.setattr(pools.cluster_job, "DEAD_SECONDS", 5.0)
    pipeline, job = running_job()
    first = job.job
    if what == "shell":  # On a node with cgroups, all of the job's processes end with it.
        slurm.run("scancel", "--batch", "--signal=KILL", first)
        wait_for(lambda: jobs(slurm, OVER).get(first) == "FAILED")
    kill_stage(store)
    kept = done_shards(store, pipeline)
    code, texts = follow(job)
    assert code == 0, job.last_words()
    assert kept >= 3
    (ended,) = [text for text in texts if "is submitted again" in text]
    assert ended.startswith(f"job {first} ended (FAILED")
    assert jobs(slurm, OVER)[first] == "FAILED"


# Slurm that answers wrongly or not ---------------------------------------------------------------


def test_a_queue_that_is_shown_empty_for_a_while_makes_no_second_job(
    running_job, store, slurm, monkeypatch
):
    _, job = running_job(0.6)
    monkeypatch.setattr(pools.decide, "UNKNOWN_SECONDS", 1.0)  # A minute and a half.
    run, empty = client.run_command, []

    def answer(*command, **more):
        if command[0] == "squeue" and len(empty) < 8:
            empty.append(command)
            return '{"jobs": []}'
        return run(*command, **more)

    monkeypatch.setattr(client, "run_command", answer)
    code, texts = follow(job)
    assert code == 0
    assert len(empty) == 8
    assert f"the scheduler does not know job {job.job}" in texts
    assert states_since(slurm, job.job) == {job.job: "COMPLETED"}


def test_two_users_whose_recipes_need_one_key_make_it_once(naps, store, slurm, monkeypatch):
    """Nobody sees the other's jobs, as `squeue --me` has it: the lease alone decides."""
    other = naps(0.8, "naps: {pool: other}", name="other")
    first = naps(0.8, "naps: {pool: cpu}")
    assert first.plan().steps[0].key == other.plan().steps[0].key
    process = start(first.selection)
    wait_for(lambda: done_shards(store, first) >= 1, 90)
    (number,) = jobs(slurm)
    owner = latest_record(store.backend, other.plan().steps[0].key).owner
    read = client.read_queue
    own = lambda: [job for job in read() if job["partition"] == "train"]  # noqa: E731
    monkeypatch.setattr(client, "read_queue", own)
    monkeypatch.setattr(pools.cluster_job, "LEASE_WAIT_SECONDS", 2)
    job = Dispatcher(other.profile)(store, other.plan().steps[0])
    seen = []

    def look():
        record = latest_record(store.backend, job.key)
        seen.append(record.owner if record is not None else owner)
        return job.poll()

    assert wait_for(lambda: look() is not None, 120)
    assert process.wait(60) == 0
    assert set(seen) == {owner}
    ended = states_since(slurm, number)
    assert ended.pop(number) == "COMPLETED"
    assert list(ended.values()) == ["FAILED"]  # It waited two seconds, and ended with 75.


# Memory ------------------------------------------------------------------------------------------

HUNGRY = """\
name: hungry
snapshots:
  crawl: {files: ["data/a/*.txt"]}
steps:
  naps:
    stage: naps
    config: {shards: 5, seconds: 3, megabytes: 700}
    inputs: {snapshot: crawl}
"""


class TestMemory:
    """Slurm enforces `--mem` here by JobAcctGather's OverMemoryKill, which asks each second what a
    job uses. There is no right to make cgroups; of those, only the message is read (by its form).
    """

    @pytest.fixture(scope="class")
    def cluster(self):
        enforced = {"JobAcctGatherFrequency": "1", "JobAcctGatherParams": "OverMemoryKill"}
        with running(settings=enforced) as cluster:
            yield cluster

    @pytest.fixture
    def hungry(self, project, open_pipeline, profile):
        def make(memory):
            recipe = project / "hungry.yaml"
            recipe.write_text(HUNGRY)
            resources = f"naps: {{pool: cpu, cpus: 1, memory: {memory}}}"
            return open_pipeline(recipe=recipe, profile=profile(resources))

        return make

    def test_a_step_that_exceeds_its_limit_continues_in_the_next_class(
        self, hungry, store, slurm, monkeypatch
    ):
        monkeypatch.setattr(pools.cluster_job, "DEAD_SECONDS", 5.0)
        pipeline = hungry("[500 MB, 2 GB]")
        job = Dispatcher(pipeline.profile)(store, pipeline.plan().steps[0])
        job.poll()
        first = job.job
        wait_for(lambda: job.poll() is None and job.job not in (first, None), 120)
        assert done_shards(store, pipeline) >= 3
        assert "MinMemoryNode=500M" in slurm.output("scontrol", "show", "job", first)
        assert "MinMemoryNode=2000M" in slurm.output("scontrol", "show", "job", job.job)
        code, texts = follow(job)
        assert code == 0, job.last_words()
        (again,) = [text for text in texts if "is submitted again" in text]
        assert "out of memory: StepId=" in again
        assert states_since(slurm, first) == {first: "FAILED", job.job: "COMPLETED"}

    def test_without_a_larger_class_the_error_says_what_ran_out(self, hungry, store, slurm):
        with pytest.raises(IngotError, match="out of memory, and there is no larger class"):
            execute(hungry("500 MB"))
        assert not jobs(slurm)
