"""What is done next about a job: the table of all cases."""

import pytest

from artifacts_schema.errors import EXIT_FAILED, EXIT_RESUME, EXIT_USAGE
from pools.decide import (
    COMMIT_SECONDS,
    MOST_STALLS,
    UNKNOWN,
    UNKNOWN_SECONDS,
    Done,
    Facts,
    Fail,
    JobState,
    Submit,
    Wait,
    decide,
)

WAITING, RUNNING = JobState("waiting", reason="Priority"), JobState("running")
NEVER = JobState("waiting", "never", "PartitionTimeLimit")


def ended(cause, exit_code=None, reason="its reason"):
    return JobState("ended", cause, reason, exit_code)


STOPPED = ended("failed", EXIT_RESUME)
LONG = 10 * UNKNOWN_SECONDS

CASES = [
    # What lives is waited for.
    (Facts(WAITING), Wait()),
    (Facts(RUNNING), Wait()),
    (Facts(RUNNING, stalls=MOST_STALLS), Wait()),
    # It was started again between two looks, and nobody saw it wait.
    (Facts(RUNNING, stalls=MOST_STALLS + 1), Fail(EXIT_FAILED, "without progress")),
    # The manifest wins over whatever the scheduler says.
    *(
        (Facts(job, committed=True, stalls=9, seconds=LONG), Done())
        for job in (WAITING, RUNNING, NEVER, UNKNOWN, ended("failed", 1), ended("cancelled"))
    ),
    # A job that can never start.
    (Facts(NEVER), Fail(EXIT_USAGE, "PartitionTimeLimit")),
    # The scheduler's own doing: again, until nothing moves any more.
    (Facts(ended("again")), Submit("its reason")),
    (Facts(STOPPED), Submit("its reason")),
    (Facts(ended("again"), stalls=MOST_STALLS - 1), Submit("its reason")),
    (Facts(ended("again"), stalls=MOST_STALLS), Fail(EXIT_FAILED, "its reason")),
    (Facts(WAITING, stalls=MOST_STALLS), Fail(EXIT_FAILED, "Priority")),
    # Another run works on the key: its end decides.
    (Facts(STOPPED, lease_beats=True), Wait()),
    (Facts(STOPPED, lease_beats=True, seconds=LONG), Wait()),
    # On request.
    (Facts(STOPPED, stopping=True), Fail(EXIT_RESUME, "its reason")),
    (Facts(ended("again"), stopping=True, lease_beats=True), Fail(EXIT_RESUME, "its reason")),
    (Facts(ended("cancelled")), Fail(EXIT_RESUME, "its reason")),
    # Memory: the next class once there is one.
    (Facts(ended("memory"), larger=True), Submit("its reason", larger=True)),
    (Facts(ended("memory")), Fail(EXIT_FAILED, "its reason")),
    # An end without a manifest may be a file system that caches.
    (Facts(ended("done", 0), seconds=COMMIT_SECONDS / 2), Wait()),
    (Facts(ended("done", 0), seconds=COMMIT_SECONDS), Fail(EXIT_FAILED, "committed nothing")),
    # A scheduler that was restarted, or purged the job.
    (Facts(UNKNOWN), Wait()),
    (Facts(UNKNOWN, seconds=LONG, lease_beats=True), Wait()),
    (Facts(UNKNOWN, seconds=LONG, lease_beats=True, stalls=MOST_STALLS), Wait()),
    (Facts(UNKNOWN, seconds=LONG), Submit("does not know")),
    (Facts(UNKNOWN, seconds=LONG, stopping=True), Fail(EXIT_RESUME, "does not know")),
    # Something killed its process: again, until nothing moves any more.
    *((Facts(ended("failed", 128 + number)), Submit("its reason")) for number in (9, 15)),
    (Facts(ended("failed", 137), stalls=MOST_STALLS), Fail(EXIT_FAILED, "its reason")),
    # The step's own failure; a crash (SIGSEGV) is one.
    (Facts(ended("failed", 128 + 11)), Fail(139, "its reason")),
    (Facts(ended("failed", 1)), Fail(1, "its reason")),
    (Facts(ended("failed", EXIT_USAGE)), Fail(EXIT_USAGE, "its reason")),
    (Facts(ended("failed", 0)), Fail(EXIT_FAILED, "its reason")),
]


@pytest.mark.parametrize(("facts", "expected"), CASES)
def test_table(facts, expected):
    action = decide(facts)
    assert type(action) is type(expected)
    if isinstance(expected, Fail):
        assert action.exit_code == expected.exit_code
        assert expected.reason in action.reason
    elif isinstance(expected, Submit):
        assert expected.reason in action.reason
        assert action.larger == expected.larger


def test_every_phase_and_cause_has_an_action():
    for phase in ("waiting", "running", "ended", "unknown"):
        for cause in ("", "done", "failed", "again", "memory", "cancelled", "never"):
            for flags in range(16):
                committed, beats, stopping, larger = (bool(flags >> bit & 1) for bit in range(4))
                job = JobState(phase, cause, exit_code=1)
                facts = Facts(job, committed, beats, 1e9, 0, larger, stopping)
                assert decide(facts) is not None
                if committed:
                    assert decide(facts) == Done()
