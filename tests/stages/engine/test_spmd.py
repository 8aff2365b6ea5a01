"""Which error a run of several ranks ends with, from what ranks wrote and torchrun printed."""

import json
import time

import pytest

from artifacts_schema.errors import EXIT_RESUME, InputError, Stopped, UsageError
from stages.engine.protocol import Stage
from stages.engine.spmd import RankFolder, _failure, write_ends, write_error
from stages.parallel.layout import Layout

KEY = "ab" * 32


@pytest.fixture
def files(tmp_path):
    folder = tmp_path / KEY / "ranks"
    folder.mkdir(parents=True)
    return RankFolder(folder)


def failure(files, world, codes):
    """The error where ranks ended with these exit codes."""
    write_ends(files, codes)
    return _failure(files, world, "")


def test_the_error_of_the_rank_that_failed_first_is_told_with_its_class_and_place(files):
    write_error(files, 2, InputError("has no tokens", where="train", hint="pack again"))
    time.sleep(0.01)
    write_error(files, 0, RuntimeError("connection reset by peer"))
    error = failure(files, 4, {0: 1, 2: 2})
    assert type(error) is InputError
    assert (error.what, error.where, error.hint) == ("rank 2: has no tokens", "train", "pack again")


def test_a_rank_that_died_comes_before_those_that_lost_it(files):
    write_error(files, 0, RuntimeError("connection reset by peer"))
    error = failure(files, 2, {0: 1, 1: -9})
    assert error.what == "rank 1 died (SIGKILL)"
    assert error.where == KEY[:12]


def test_ranks_that_torchrun_ended_are_not_the_cause(files):
    write_error(files, 1, ValueError("odd"))
    error = failure(files, 2, {0: -15, 1: 1})
    assert "rank 1 failed: ValueError: odd" in error.what


def test_a_stop_and_a_hang_end_with_the_code_to_go_on(files):
    error = failure(files, 2, {1: EXIT_RESUME})
    assert (type(error), error.exit_code) == (Stopped, EXIT_RESUME)
    assert "1" in error.what
    write_error(files, 0, Stopped("stopped on request", hint="again"))
    error = failure(files, 2, {0: EXIT_RESUME})
    assert (type(error), error.what) == (Stopped, "stopped on request")


def test_what_torchrun_says_itself_is_told_where_no_rank_says_anything(files):
    error = _failure(files, 2, "Traceback\nRendezvousConnectionError: no address\n")
    assert "RendezvousConnectionError: no address" in error.what
    assert error.where == str(files.path / "torchrun.txt")
    files.error(1).write_text(json.dumps({"time": 1})[:-3])  # Cut short: as if there were none.
    assert "torchrun" in _failure(files, 2, "").what


def test_a_stage_of_one_process_refuses_several():
    class Single(Stage):
        name, version, reproducible = "single", 1, "bytes"
        outputs = {}

        def run(self, context):
            """Nothing."""

    class Many(Single):
        name, launch = "many", "spmd"

    class Execution:
        layout = Layout(data=2, shard=2)

    assert Many.ranks(Execution()) == 4
    assert Single.ranks(object()) == 1
    with pytest.raises(UsageError, match="4") as caught:
        Single.ranks(Execution())
    assert caught.value.where == "execution.layout"
