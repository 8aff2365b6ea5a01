"""What Slurm's commands answer, by version. Each fixture says where it is from."""

import json
import os

import pytest

from pools.cluster_job import SubmissionLost
from pools.decide import JobState
from pools.slurm import client
from pools.slurm.client import ended_jobs, parse_json, parse_text, read_job


def read(**job):
    return read_job({"job_id": 7, **job})


# Recorded from Slurm 22.05.8 (openapi v0.0.38): state a string, numbers plain, exit code a status.
FAILED_22_05 = {
    "job_state": "FAILED", "state_reason": "NonZeroExitCode", "exit_code": 19200,
    "restart_cnt": 0, "start_time": 1795477681, "comment": "ingot store=abc key=def",
}  # fmt: skip
# Not recorded here: the schema of Slurm's REST documentation, v0.0.40 (23.11) and later: state a
# list of flags, numbers {set, infinite, number}, exit code {status, return_code, signal}.
FAILED_23_11 = {
    "job_id": {"set": True, "infinite": False, "number": 7},
    "job_state": ["FAILED"], "state_reason": "NonZeroExitCode",
    "exit_code": {
        "status": ["ERROR"],
        "return_code": {"set": True, "infinite": False, "number": 75},
        "signal": {"id": {"set": False, "infinite": False, "number": 0}, "name": ""},
    },
    "restart_cnt": 2, "start_time": {"set": True, "infinite": False, "number": 1795477681},
}  # fmt: skip


# Recorded from 22.05.8: its batch script was killed by signal 9 (scancel --batch --signal=KILL).
KILLED_22_05 = {"job_state": "FAILED", "state_reason": "JobLaunchFailure", "exit_code": 9}
# Not recorded here: v0.0.40 as above, and v0.0.39 (23.02), where the signal was `signal_id`.
KILLED_23_11 = {
    "job_state": ["FAILED"], "state_reason": "JobLaunchFailure",
    "exit_code": {
        "status": ["SIGNALED"],
        "return_code": {"set": False, "infinite": False, "number": 0},
        "signal": {"id": {"set": True, "infinite": False, "number": 9}, "name": "KILL"},
    },
}  # fmt: skip
KILLED_23_02 = {
    "job_state": "FAILED", "state_reason": "JobLaunchFailure",
    "exit_code": {"status": "SIGNALED", "return_code": 0, "signal": {"signal_id": 9, "name": ""}},
}  # fmt: skip


@pytest.mark.parametrize("job", [KILLED_22_05, KILLED_23_11, KILLED_23_02])
def test_a_job_whose_process_was_killed_has_the_code_of_a_shell(job):
    state = read(**job)
    assert (state.phase, state.cause, state.exit_code) == ("ended", "failed", 137)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        # Recorded from 22.05.8 with JobAcctGatherParams=OverMemoryKill.
        (
            "slurmstepd-n1: error: StepId=1.batch exceeded memory limit (396 > 314), being killed",
            "StepId=1.batch exceeded memory limit (396 > 314), being killed",
        ),
        # Not recorded here: task/cgroup, as its source and users' reports have it.
        (
            "slurmstepd: error: Detected 1 oom-kill event(s) in StepId=7.0. Some of your processes",
            "Detected 1 oom-kill event(s) in StepId=7.0. Some of your processes",
        ),
        ("slurmstepd: error: *** JOB 7 ON n1 CANCELLED AT 2026-11-24T10:39:33 ***", None),
        ("error: naps: a text about an oom-kill event", None),
    ],
)
def test_slurm_says_in_the_output_that_memory_ran_out(line, expected):
    assert client.find_memory_kill(f"much\n{line}\nmore") == expected


@pytest.mark.parametrize("job", [FAILED_22_05, FAILED_23_11])
def test_a_failed_job_in_both_forms(job):
    state = read_job(job)
    assert (state.phase, state.cause, state.exit_code) == ("ended", "failed", 75)
    assert state.reason == "FAILED, NonZeroExitCode"


@pytest.mark.parametrize(
    ("states", "reason", "expected"),
    [
        ("PENDING", "Priority", ("waiting", "")),
        ("PENDING", "Resources", ("waiting", "")),
        ("PENDING", "None", ("waiting", "")),
        ("PENDING", "JobHeldUser", ("waiting", "")),
        ("PENDING", "PartitionTimeLimit", ("waiting", "never")),
        ("PENDING", "QOSMaxWallDurationPerJobLimit", ("waiting", "never")),
        (["PENDING", "REQUEUED"], "BeginTime", ("waiting", "")),
        (["CANCELLED", "COMPLETING"], "", ("running", "")),
        (["RUNNING"], "None", ("running", "")),
        ("CONFIGURING", "None", ("waiting", "")),
        ("SUSPENDED", "None", ("running", "")),
        ("PREEMPTED", "None", ("ended", "again")),
        ("NODE_FAIL", "NodeDown", ("ended", "again")),
        ("TIMEOUT", "TimeLimit", ("ended", "again")),
        ("OUT_OF_MEMORY", "OutOfMemory", ("ended", "memory")),
        ("CANCELLED", "None", ("ended", "cancelled")),
        ("DEADLINE", "DeadLine", ("ended", "failed")),
        ("COMPLETED", "None", ("ended", "done")),
        ("SOMETHING_NEW", "", ("unknown", "")),
        ([], "", ("unknown", "")),
    ],
)
def test_states(states, reason, expected):
    state = read(job_state=states, state_reason=reason)
    assert (state.phase, state.cause) == expected


def test_the_estimated_start_of_a_waiting_job_is_told():
    state = read(job_state="PENDING", state_reason="Resources", start_time=32503680000)
    assert state.reason.startswith("Resources, starts about 3")


def test_a_job_that_slurm_has_not_looked_at_yet_has_no_reason():
    assert read(job_state="PENDING", state_reason="None").reason == ""
    assert read(job_state="CONFIGURING", state_reason="").reason == "CONFIGURING"


def test_warnings_before_json_are_skipped():
    printed = 'squeue: warning: something\n{"jobs": [{"job_id": 1}], "errors": []}'
    assert list(parse_json(printed)) == [{"job_id": 1}]


def test_text_where_a_version_has_no_json():
    rows = parse_text("12|PENDING|Priority|N/A|ingot store=a key=b|c\n13|RUNNING|None|x|(null)\n")
    assert [row["job_id"] for row in rows] == ["12", "13"]
    assert rows[0]["comment"] == "ingot store=a key=b|c"
    assert read_job(rows[0]) == JobState("waiting", reason="Priority")


def test_jobs_of_other_users_are_left_out(monkeypatch):
    """Seen on 22.05.8: `squeue --me --json` prints those of all users."""
    mine, other = {"job_id": 1, "user_id": os.getuid()}, {"job_id": 2, "user_id": os.getuid() + 1}
    later = {"job_id": 3, "user_id": {"set": True, "infinite": False, "number": os.getuid()}}
    printed = json.dumps({"jobs": [mine, other, later, {"job_id": 4}]})
    monkeypatch.setattr(client, "run_command", lambda *command: printed)
    assert [job["job_id"] for job in client.read_queue()] == [1, 3, 4]


def test_a_silent_sbatch_is_a_lost_answer(monkeypatch, tmp_path):
    program = tmp_path / "sbatch"
    program.write_text("#!/bin/sh\nexec sleep 60\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setattr(client, "SECONDS", 0.2)
    with pytest.raises(SubmissionLost, match="sbatch: no answer within 0 s"):
        client.submit("#!/bin/sh\n")


def test_sacct_knows_who_cancelled(monkeypatch):
    # The form of `sacct -P` in Slurm's manual; not recorded here.
    printed = "12|CANCELLED by 1000|0:0|None\n13|OUT_OF_MEMORY|0:125|OutOfMemory\n14|FAILED|75:0|\n"
    printed += "15|FAILED|0:9|\n"
    monkeypatch.setattr(client, "run_command", lambda *command: printed)
    states = ended_jobs(["12", "13", "14"])
    assert {name: state.cause for name, state in states.items()} == {
        "12": "cancelled", "13": "memory", "14": "failed", "15": "failed",
    }  # fmt: skip
    assert (states["14"].exit_code, states["15"].exit_code) == (75, 137)
