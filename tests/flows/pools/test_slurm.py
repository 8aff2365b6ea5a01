"""Steps as jobs of a real Slurm: done, followed, continued, named where they cannot run."""

from __future__ import annotations

import os
import re
import signal
import time
from functools import partial

import pytest
from click.testing import CliRunner
from slurm_steps import (
    LIVE,
    OVER,
    digests,
    done_shards,
    jobs,
    naps,
    profile,
    start,
    wait_for,
)

from artifacts_schema.errors import IngotError, Stopped, UsageError
from flows.cli.main import main
from flows.recipe.dispatch import Dispatcher
from flows.recipe.execute import execute
from pools.cluster_job import job_tag
from pools.slurm import client

__all__ = ["naps", "profile"]
pytestmark = [pytest.mark.faults, pytest.mark.usefixtures("installed_stages", "slurm")]


def test_a_recipe_makes_on_slurm_what_it_makes_here(open_pipeline, profile, inline, store, slurm):
    plan = execute(open_pipeline(profile=profile()))
    assert plan.is_done
    made = digests(plan)
    assert len(jobs(slurm, ("COMPLETED", "COMPLETING", "RUNNING"))) == 6
    for step in plan.steps:
        from artifacts_schema.store.gc import remove_artifact

        remove_artifact(store, step.manifest)
    assert digests(execute(open_pipeline(), dispatch=inline)) == made
    assert not store.backend.files("work")


def test_a_stage_alone_is_a_job_with_the_key_of_a_recipes_step(naps, profile, store, slurm):
    (step,) = naps(0.01).plan().steps
    (snapshot,) = step.spec.inputs["snapshot"]
    arguments = [
        "stage", "naps", "--input", f"snapshot={snapshot.key}", "--set", "shards=20",
        "--set", "seconds=0.01", "--profile", profile(), "--store", store.url,
    ]  # fmt: skip
    made = CliRunner().invoke(main, arguments)
    assert made.exit_code == 0, made.output
    assert made.stdout.startswith(f"made naps {step.key}\n")
    assert re.search(r"^naps: job \d+ submitted to cpu: 1 CPU, 500.0 MB$", made.stderr, re.M)
    known = jobs(slurm, (*LIVE, *OVER)).keys()
    again = CliRunner().invoke(main, arguments)
    assert again.stdout.startswith(f"reused naps {step.key}\n")
    assert jobs(slurm, (*LIVE, *OVER)).keys() == known


def test_a_python_that_the_node_lacks_is_named(naps, slurm):
    with pytest.raises(IngotError, match=r"/nowhere/python: No such file or directory \(job \d"):
        execute(naps(0.1, "naps: {pool: snake, cpus: 1}"))


@pytest.mark.full
def test_a_run_that_was_killed_finds_its_job_again(naps, store, slurm, tmp_path):
    pipeline = naps(0.4)
    process = start(pipeline.selection)
    wait_for(lambda: done_shards(store, pipeline) >= 2)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    (number,) = jobs(slurm)
    assert execute(pipeline).is_done
    assert jobs(slurm, ("COMPLETED", "RUNNING", "COMPLETING", "FAILED")).keys() >= {number}
    assert not [one for one in jobs(slurm, ("COMPLETED", "FAILED")) if int(one) > int(number)]


@pytest.mark.full
@pytest.mark.parametrize("what", ["requeue", "hold", "warning"])
def test_what_slurm_does_to_a_job_ends_well(naps, store, slurm, what):
    pipeline = naps(0.3)
    step = pipeline.plan().steps[0]
    job = Dispatcher(pipeline.profile)(store, step)
    job.poll()
    if what != "hold":
        wait_for(lambda: job.poll() is None and done_shards(store, pipeline) >= 3)
    if what == "requeue":
        slurm.run("scontrol", "requeue", job.job)
    elif what == "hold":
        slurm.run("scontrol", "hold", job.job)
        waits = wait_for(lambda: job.poll() is None and "JobHeld" in str(job.events()))
        assert waits
        slurm.run("scontrol", "release", job.job)
    else:  # What Slurm sends before the limit; the job queues again by itself.
        slurm.run("scancel", "--batch", "--signal=USR2", job.job)
    assert wait_for(lambda: job.poll() is not None, 120)
    assert store.manifest(step.stage, step.key) is not None


@pytest.mark.full
@pytest.mark.parametrize(
    ("when", "how"),
    [("waiting", ()), ("running", ()), ("running", ("--signal=KILL", "--full"))],
)
def test_a_job_that_a_person_cancelled_stays_cancelled(naps, store, slurm, when, how):
    """KILL to a whole job counts as that as well: Slurm's state is CANCELLED."""
    pipeline = naps(0.3)
    step = pipeline.plan().steps[0]
    job = Dispatcher(pipeline.profile)(store, step)
    job.poll()
    if when == "waiting":
        slurm.run("scontrol", "hold", job.job)
    else:
        wait_for(lambda: done_shards(store, pipeline) >= 2)
    slurm.run("scancel", *how, job.job)
    assert wait_for(job.poll, 60) == 75
    assert "cancelled" in job.last_words()
    assert not jobs(slurm)


@pytest.mark.full
def test_a_stop_saves_and_another_run_continues(naps, store, slurm):
    pipeline = naps(0.3)
    stopping = False

    def wait(seconds):
        nonlocal stopping
        time.sleep(seconds)
        stopping = stopping or done_shards(store, pipeline) >= 3

    with pytest.raises(Stopped):
        execute(pipeline, stopping=lambda: stopping, wait=wait)
    assert not jobs(slurm)
    assert 3 <= done_shards(store, pipeline) < 20
    assert execute(pipeline).is_done


@pytest.mark.full
def test_a_controller_that_is_away_for_a_while_loses_nothing(naps, store, slurm, monkeypatch):
    monkeypatch.setattr(client, "SECONDS", 5.0)
    pipeline = naps(0.3)
    step = pipeline.plan().steps[0]
    job = Dispatcher(pipeline.profile)(store, step)
    wait_for(lambda: job.poll() is None and done_shards(store, pipeline) >= 2)
    slurm.kill("slurmctld")
    for _ in range(10):
        assert job.poll() is None
        time.sleep(0.5)
    slurm.start_controller()
    assert wait_for(lambda: job.poll() is not None, 120)
    assert store.manifest(step.stage, step.key) is not None


@pytest.mark.full
def test_an_answer_of_sbatch_that_is_lost_makes_no_second_job(naps, store, slurm, monkeypatch):
    run = client.run_command
    lost = []

    def lose(*command, **more):
        printed = run(*command, **more)
        if command[0] == "sbatch" and not lost:
            lost.append(printed)
            raise client.SlurmAway("Socket timed out on send/recv operation", where="sbatch")
        return printed

    monkeypatch.setattr(client, "run_command", lose)
    plan = execute(naps(0.01))
    assert plan.is_done
    assert len(lost) == 1
    tags = [job["comment"] for job in client.read_queue()]
    assert tags.count(job_tag(store, plan.steps[0].key)) == 1


@pytest.mark.full
def test_two_runs_that_need_one_key_make_it_once(naps, store, slurm):
    pipeline = naps(0.3)
    step = pipeline.plan().steps[0]
    one, other = (Dispatcher(pipeline.profile)(store, step) for _ in range(2))
    one.poll()
    wait_for(lambda: other.poll() is None and other.job is not None)
    assert one.job == other.job
    assert wait_for(lambda: (one.poll() is not None) & (other.poll() is not None), 90)


def test_what_slurm_refuses_is_an_error_in_its_own_words(naps, slurm):
    with pytest.raises(UsageError, match="invalid partition specified: nowhere") as caught:
        execute(naps(0.1, "naps: {pool: typo}"))
    assert caught.value.exit_code == 2
    assert not jobs(slurm)


def test_a_job_that_can_never_start_is_named(naps, slurm):
    began = time.monotonic()
    with pytest.raises(IngotError, match=r"PartitionTimeLimit|PartitionConfig"):
        execute(naps(0.1, "naps: {pool: small, time: 2 h}"))
    assert time.monotonic() - began < 30
    assert not jobs(slurm)


@pytest.mark.full
def test_no_credential_is_in_the_job(naps, store, slurm, monkeypatch):
    secret = "a-secret-of-the-api"
    for name in ("PREFECT_API_KEY", "PREFECT_API_AUTH_STRING", "PREFECT_SERVER_API_AUTH_STRING"):
        monkeypatch.setenv(name, secret)
    pipeline = naps(0.5)
    job = Dispatcher(pipeline.profile)(store, pipeline.plan().steps[0])
    job.poll()
    wait_for(lambda: done_shards(store, pipeline) >= 1)
    assert secret not in slurm.output("scontrol", "show", "job", "-dd", job.job)
    script = slurm.output("scontrol", "write", "batch_script", job.job, "-")
    assert "python" in script
    assert secret not in script
    seen = 0
    for folder in os.listdir("/proc"):
        if folder.isdigit():
            try:
                with open(f"/proc/{folder}/cmdline", "rb") as file:
                    command = file.read()
                with open(f"/proc/{folder}/environ", "rb") as file:
                    environment = file.read()
            except OSError:
                continue
            assert secret.encode() not in command
            if b"-m\0stages\0naps" in command:
                seen += 1
                assert secret.encode() not in environment
    assert seen
    job.stop(wait=partial(time.sleep))
