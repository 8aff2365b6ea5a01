"""Which error a run of several ranks ends with, from what ranks wrote and torchrun printed."""

import json
import os
import time
from dataclasses import asdict
from types import SimpleNamespace

import pytest

from artifacts_schema.errors import EXIT_RESUME, InputError, Stopped, StoreError, UsageError
from artifacts_schema.store.backend import LocalBackend
from stages.engine.hangs import Beat, HangMonitor, ranks_behind
from stages.engine.protocol import Stage
from stages.engine.rank import load_inputs
from stages.engine.rank_files import SLOT_BYTES, RankFolder, RankJob, Slot, write_ends, write_error
from stages.engine.spmd import failure as launch_failure
from stages.parallel.layout import Layout

KEY = "ab" * 32


@pytest.fixture
def files(tmp_path):
    folder = tmp_path / KEY / "ranks"
    folder.mkdir(parents=True)
    return RankFolder(folder)


def job(world, machines=1):
    """A job of so many ranks."""
    return RankJob("", {}, "", 1, {}, "", {}, "", True, world, machines=machines)


def failure(files, world, codes):
    """The error where ranks ended with these exit codes."""
    write_ends(files, 0, codes)
    return launch_failure(files, job(world), "")


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


def test_a_stop_ends_with_the_code_to_go_on(files):
    write_error(files, 0, Stopped("stopped on request", hint="again"))
    error = failure(files, 2, {0: EXIT_RESUME})
    assert (type(error), error.what) == (Stopped, "stopped on request")
    assert error.exit_code == EXIT_RESUME


def test_an_error_comes_before_ranks_that_torchrun_had_to_kill(files):
    write_error(files, 1, StoreError("no space left"))
    write_error(files, 2, Stopped("stopped on request"))
    error = failure(files, 3, {0: -9, 1: 1, 2: EXIT_RESUME})
    assert (type(error), error.what) == (StoreError, "rank 1: no space left")


def test_a_machine_without_a_word_is_gone(files):
    write_error(files, 0, RuntimeError("connection closed by peer"))
    write_error(files, 1, RuntimeError("connection closed by peer"))
    write_ends(files, 0, {0: 1, 1: 1})
    files.write_json(files.machine(1), {"host": "node-b", "process": 1})
    error = launch_failure(files, job(4, machines=2), "")
    assert error.what == "machine 1 (node-b) is gone, with ranks 2 to 3"


def no_space(*_):
    raise StoreError("no space left on device")


def test_an_error_is_written_where_no_block_is_free(files, monkeypatch):
    """Into a file that was made before, without making it longer."""
    files.error(1).reserve()
    assert files.error(1).read() is None
    assert files.error(1).path.stat().st_size == SLOT_BYTES
    monkeypatch.setattr("stages.engine.rank_files.write_whole", no_space)
    write_error(files, 1, StoreError("no space left"))
    assert files.error(1).path.stat().st_size == SLOT_BYTES
    assert failure(files, 2, {}).what == "rank 1: no space left"


def test_a_slot_holds_the_last_value_also_if_it_is_shorter(tmp_path):
    slot = Slot(tmp_path / "slot")
    slot.write("x" * 3 * SLOT_BYTES)
    slot.write([1])
    assert slot.read() == [1]


def test_what_torchrun_says_itself_is_told_where_no_rank_says_anything(files):
    error = launch_failure(files, job(2), "Traceback\nRendezvousConnectionError: no address\n")
    assert "RendezvousConnectionError: no address" in error.what
    assert error.where == str(files.printed(0))
    files.error(1).path.write_text(json.dumps({"time": 1})[:-3])  # Cut short.
    assert "torchrun" in launch_failure(files, job(2), "").what


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


# Hangs --------------------------------------------------------------------------------------------


def test_the_rank_that_started_fewer_operations_is_behind():
    assert ranks_behind({0: {"world": 7}, 1: {"world": 6}, 2: {"world": 7}}).keys() == {1}
    assert ranks_behind({0: {"world": 7}, 1: {"world": 7}}) == {}
    assert ranks_behind({0: {"world": 1}, 1: {}}).keys() == {1}


def test_a_rank_that_waits_itself_is_not_to_blame():
    """Ranks 0 1 / 2 3: rows share `shard`, columns `copies`. Rank 3 is stuck; 2 waits for it in its
    row, 1 in its column, and 0 for 2 in theirs."""
    operations = {
        0: {"row 0": 5, "column 0": 9},
        1: {"row 0": 5, "column 1": 9},
        2: {"row 1": 5, "column 0": 8},
        3: {"row 1": 4, "column 1": 8},
    }
    assert ranks_behind(operations).keys() == {3}


def test_ranks_that_wait_for_each_other_are_not_named():
    assert ranks_behind({0: {"a": 2, "b": 1}, 1: {"a": 1, "b": 2}}) == {}


class Clock:
    """A clock that a test moves."""

    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


def monitored(files, limit, seconds, beat):
    """The second in which ranks with the beats `beat(rank, second)` hang, or None; the monitor."""
    clock = Clock()
    monitor = HangMonitor(files, 2, limit, clock=clock)
    for second in range(seconds):
        clock.now = float(second)
        for rank in range(2):
            value = beat(rank, second)
            if value is not None:
                files.beat(rank).write(asdict(value))
        if monitor.hangs():
            return second, monitor
    return None, monitor


def test_ranks_that_read_and_write_do_not_hang(files):
    """Rank 0 writes a large checkpoint, and no rank starts an operation."""
    assert (
        monitored(files, 10, 60, lambda r, s: Beat(s, "h", 1, {"w": 1}, bytes=s * (r == 0)))[0]
        is None
    )
    since, monitor = monitored(files, 10, 60, lambda r, s: Beat(s, "h", 1, {"w": 1}))
    assert 10 <= since <= 13
    assert monitor.silent() == []


def test_a_rank_without_beats_is_silent(files):
    since, monitor = monitored(
        files, 10, 60, lambda r, s: Beat(s if r == 0 else min(s, 20), "h", 1, {"w": min(s, 20)})
    )
    assert 30 <= since <= 33
    assert monitor.silent() == [1]


def test_a_start_may_take_longer_than_the_limit(files):
    since, monitor = monitored(files, 10, 400, lambda r, s: Beat(s, "h", 1) if r == 0 else None)
    assert since == 301
    assert monitor.silent() == [1]


@pytest.mark.parametrize(("world", "machines", "times"), [(4, 1, 1), (4, 2, 1), (2, 2, 4)])
def test_ranks_of_a_machine_hash_a_file_once(
    given, store, monkeypatch, tmp_path, world, machines, times
):
    """A machine with one rank hashes for itself, as a run of one process does."""
    if not store.backend.local:
        pytest.skip("files of a bucket are hashed when they are copied")
    monkeypatch.setenv("INGOT_CACHE", str(tmp_path / "cache"))
    manifest, output = given("token_shards", {"web/00000.tokens": b"tokens", "shards.json": {}})
    path = store.backend.local_path(store.payload(manifest, output, "web/00000.tokens"))
    os.utime(path, (1000, 1000))
    spec = SimpleNamespace(inputs={"train": [store.reference(manifest, output)]})
    hashed, blocks = [], LocalBackend.blocks
    monkeypatch.setattr(
        LocalBackend,
        "blocks",
        lambda self, place, n: hashed.append(place) or blocks(self, place, n),
    )
    for _ in range(4):
        (source,) = load_inputs(job(world, machines), store, spec, copied=False)["train"]
        assert source.read_bytes("web/00000.tokens") == b"tokens"
    assert len(hashed) == times
