"""What a flow run is told of its job, and the jobs of one run that Slurm may hold."""

from __future__ import annotations

import pytest

from artifacts_schema.errors import UsageError
from flows.orchestration.node import FlowJobFolder, NodeReport
from pools.decide import UNKNOWN, JobState
from pools.slurm import client
from pools.slurm.flow_job import (
    FlowJobWatch,
    check_environment,
    flow_run_tag,
    keep_first,
    report,
    tagged_runs,
)

POOL, RUN = "5d7d9a1e-0000-4000-8000-000000000001", "5d7d9a1e-0000-4000-8000-0000000000ff"
WAITS = JobState("waiting", reason="Resources, starts about 2026-11-24 10:00")
NEVER = JobState("waiting", "never", "PartitionTimeLimit")
RUNS = JobState("running")
DONE = JobState("ended", "done", "COMPLETED", 0)
FAILED = JobState("ended", "failed", "FAILED", 1)
SAVED = JobState("ended", "failed", "FAILED", 75)
KILLED = JobState("ended", "failed", "FAILED, JobLaunchFailure", 137)
LIMIT = JobState("ended", "again", "TIMEOUT")
SCANCEL = JobState("ended", "cancelled", "CANCELLED")
MEMORY = JobState("ended", "memory", "OUT_OF_MEMORY")
SILENT = NodeReport()
AWAY = NodeReport("HTTP 401")
AWAY_DONE, AWAY_FAILED = NodeReport("HTTP 401", 0), NodeReport("HTTP 401", 2, "no step 'x'")


@pytest.mark.parametrize(
    ("state", "job", "node", "seconds", "stalls", "state_then", "words"),
    [
        ("PENDING", WAITS, SILENT, 0, 0, "PENDING", "waits: Resources, starts about 2026"),
        ("RUNNING", WAITS, SILENT, 0, 1, "PENDING", "waits: Resources"),  # It queues again.
        ("PENDING", NEVER, SILENT, 0, 0, "CRASHED", "can never start: PartitionTimeLimit"),
        ("PENDING", RUNS, SILENT, 5, 0, None, ""),  # The node reports that itself.
        ("PENDING", RUNS, AWAY, 61, 0, "RUNNING", "HTTP 401"),
        ("RUNNING", RUNS, AWAY, 61, 0, None, ""),
        ("RUNNING", DONE, SILENT, 0, 0, "COMPLETED", "ended well"),
        ("RUNNING", DONE, AWAY_DONE, 0, 0, "COMPLETED", "HTTP 401"),
        ("RUNNING", UNKNOWN, AWAY_DONE, 0, 0, "COMPLETED", "ended well"),  # Slurm forgot it.
        ("RUNNING", UNKNOWN, AWAY_FAILED, 0, 0, "FAILED", "no step 'x'"),
        ("RUNNING", FAILED, AWAY_FAILED, 0, 0, "FAILED", "no step 'x' (job 7)"),
        ("RUNNING", FAILED, SILENT, 0, 0, "CRASHED", "FAILED"),
        ("RUNNING", MEMORY, SILENT, 0, 0, "CRASHED", "out of memory"),
        ("RUNNING", SAVED, SILENT, 0, 0, "SCHEDULED", "submitted again"),
        ("RUNNING", KILLED, SILENT, 0, 0, "SCHEDULED", "submitted again"),
        ("RUNNING", LIMIT, SILENT, 0, 2, "SCHEDULED", "TIMEOUT"),
        ("RUNNING", LIMIT, SILENT, 0, 3, "CRASHED", "without progress"),
        ("RUNNING", SCANCEL, SILENT, 0, 0, "CANCELLED", "cancelled in Slurm"),
        ("PENDING", UNKNOWN, SILENT, 10, 0, None, ""),  # It may be on its way.
        ("PENDING", UNKNOWN, SILENT, 91, 0, "SCHEDULED", "does not know"),
        ("CANCELLING", WAITS, SILENT, 0, 0, None, ""),
        ("CANCELLING", RUNS, SILENT, 99, 0, None, ""),
        ("CANCELLING", SAVED, SILENT, 0, 0, "CANCELLED", "another run continues"),
        ("CANCELLING", SCANCEL, SILENT, 0, 0, "CANCELLED", "another run continues"),
        ("CANCELLING", UNKNOWN, SILENT, 0, 0, "CANCELLED", "another run continues"),
        ("CANCELLING", FAILED, SILENT, 0, 0, "CANCELLED", "another run continues"),
        ("CANCELLED", RUNS, SILENT, 0, 0, None, ""),
    ],
)
def test_what_a_flow_run_is_told(state, job, node, seconds, stalls, state_then, words):
    told = report(state, job, node, seconds, stalls, "7")
    assert (told.state if told else None) == state_then
    assert told is None or words in told.message


def entry(number, tag, state="RUNNING"):
    return {"job_id": number, "comment": tag, "job_state": state}


def test_only_jobs_of_the_pool_are_its_runs():
    other = flow_run_tag(RUN, RUN)
    tag = flow_run_tag(POOL, RUN)
    queue = [entry(12, tag), entry(9, tag, "PENDING"), entry(3, tag, "COMPLETED"), entry(4, other),
             entry(5, None), entry(6, "ingot store=ab key=cd")]  # fmt: skip
    assert tagged_runs(queue, POOL) == {RUN: ["9", "12"]}


def test_of_two_jobs_of_a_run_the_first_stays():
    class Scheduler:
        removed = []

        def cancel(self, job):
            self.removed.append(job)

    one = Scheduler()
    assert keep_first(one, ["9", "12", "30"]) == "9"
    assert one.removed == ["12", "30"]


def test_starts_count_as_stalls_unless_the_one_before_lasted():
    now = 0.0
    watch = FlowJobWatch(clock=lambda: now)
    assert watch.stalls(RUN, None, 0) == 0
    assert watch.stalls(RUN, "7", 0) == watch.stalls(RUN, "7", 0) == 0
    watch.seconds(RUN, "running")
    assert watch.stalls(RUN, "7", 1) == 1
    assert watch.stalls(RUN, "8", 0) == 2
    now = 601.0
    assert watch.seconds(RUN, "running") == 601.0
    assert watch.seconds(RUN, "waiting") == 0.0
    assert watch.stalls(RUN, "8", 1) == 0


def test_a_credential_in_the_script_is_refused():
    check_environment({"A": "b"}, "https://prefect.example.org/api")
    with pytest.raises(UsageError, match="PREFECT_API_KEY"):
        check_environment({"PREFECT_API_KEY": "x"}, "")
    for environment, api in (
        ({}, "https://me:pw@host/api"),
        ({"PREFECT_API_URL": "http://a:b@h"}, ""),
    ):
        with pytest.raises(UsageError) as caught:
            check_environment(environment, api)
        assert "pw" not in str(caught.value)


def test_files_of_a_run_are_private_and_those_of_an_earlier_start_are_gone(tmp_path):
    folder = FlowJobFolder(tmp_path / "jobs" / RUN)
    assert folder.read_report() == NodeReport()
    folder.prepare(RUN, "flows.orchestration.flow.pipeline", {"recipe": "toys"})
    folder.write_report(AWAY_FAILED)
    folder.cancel()
    assert folder.read_report() == AWAY_FAILED
    assert folder.is_cancelled
    assert folder.read_run()["parameters"] == {"recipe": "toys"}
    files = [folder.path / "run.json", folder.path / "node.json"]
    assert {file.stat().st_mode & 0o777 for file in files} == {0o600}
    assert folder.path.stat().st_mode & 0o777 == 0o700
    folder.prepare(RUN, "flows.orchestration.flow.pipeline", {})
    assert folder.read_report() == NodeReport()
    assert not folder.is_cancelled


def test_a_folder_that_the_node_does_not_see_is_named(tmp_path):
    with pytest.raises(UsageError) as caught:
        FlowJobFolder(tmp_path / "nowhere").read_run()
    assert caught.value.where == str(tmp_path / "nowhere")


def test_jobs_are_asked_for_by_one_query_and_the_unknown_stay_so(monkeypatch):
    monkeypatch.setattr(client, "ended_jobs", lambda names: {"8": DONE} if "8" in names else {})
    states = FlowJobWatch().look(["7", "8", "9"], [entry(7, "x")])
    assert {name: state.phase for name, state in states.items()} == {
        "7": "running",
        "8": "ended",
        "9": "unknown",
    }
