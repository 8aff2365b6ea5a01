import hashlib
import json
import math
import os

import pytest

from artifacts_schema.errors import LeaseLost
from artifacts_schema.kinds import KINDS, Column
from stages.training import monitor
from stages.training.monitor import (
    HeldOut,
    RunLog,
    held_out_table,
    log_held_out,
    metrics_table,
)


def row(step, loss):
    return {
        "training_step": step,
        "tokens": step * 10,
        "phase": 0,
        "loss": loss,
        "grad_norm": 1.0,
        "learning_rate": 0.1,
        "skipped": False,
        "loss/web": None,
    }


def test_a_restored_log_forgets_what_came_after_and_goes_on(tmp_path):
    log = RunLog(tmp_path / "log")
    log.append("metrics", row(1, 0.1))
    position = log.position()
    log.append("metrics", row(2, 0.2))
    log.close()

    again = RunLog(tmp_path / "log")
    assert again.holds(position)
    again.restore(position)
    again.append("metrics", row(2, 0.25))
    assert [r["loss"] for r in again.rows("metrics")] == [0.1, 0.25]

    straight = RunLog(tmp_path / "straight")
    straight.append("metrics", row(1, 0.1))
    straight.append("metrics", row(2, 0.25))
    assert straight.position() == again.position()


def test_a_log_that_lost_lines_does_not_hold_the_position(tmp_path):
    log = RunLog(tmp_path / "log")
    log.append("metrics", row(1, 0.1))
    position = log.position()
    log.restore(None)
    assert not log.holds(position)
    log.append("metrics", row(1, 0.3))
    log.position()
    assert not log.holds(position)


def test_tables_have_the_columns_of_their_kind_and_keep_every_bit(tmp_path):
    log = RunLog(tmp_path / "log")
    log.append("metrics", row(1, 1 / 3))
    log.append("metrics", row(2, math.nan))
    log_held_out(log, 0, 0, [HeldOut("all", 2.5, None), HeldOut("web", 2.5, 1.1)])
    metrics = metrics_table(log, [Column("loss/web", "float64?", "Loss on web.")])
    KINDS["training_run"].tables["metrics.parquet"].check(metrics.schema, where="here")
    assert metrics["loss"][0].as_py() == 1 / 3
    assert math.isnan(metrics["loss"][1].as_py())
    assert metrics["loss/web"].null_count == 2
    held_out = held_out_table(log, ())
    KINDS["training_run"].tables["held_out.parquet"].check(held_out.schema, where="here")
    assert held_out["source"].to_pylist() == ["all", "web"]


# Parts --------------------------------------------------------------------------------------------


@pytest.fixture
def small_parts(monkeypatch):
    """Parts end after 300 bytes: a row has some 150."""
    monkeypatch.setattr(monitor, "PART_BYTES", 300)


def filled(folder, rows, values=float):
    log = RunLog(folder)
    positions = []
    for step in range(rows):
        log.append("metrics", row(step, values(step)))
        positions.append(log.position())
    return log, positions


def test_parts_end_after_so_many_bytes_and_are_not_written_again(tmp_path, small_parts):
    log, positions = filled(tmp_path / "log", 10)
    *closed, last = log.parts()
    assert len(closed) >= 2
    assert all(path.stat().st_size >= 300 > last.stat().st_size for path in closed)
    assert {oct(path.stat().st_mode & 0o222) for path in closed} == {"0o0"}
    content = b"".join(path.read_bytes() for path in (*closed, last))
    assert [json.loads(line)[1]["training_step"] for line in content.splitlines()] == list(
        range(10)
    )
    assert positions[-1].sha256 == hashlib.sha256(content).hexdigest()
    assert positions[-1].bytes == len(content)


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to give a file away")
def test_a_part_that_another_user_began_is_closed(tmp_path, small_parts):
    """Only its owner may make a file read-only: the run goes on in a copy of its own."""
    log, _ = filled(tmp_path / "log", 10)
    filled(tmp_path / "other", 1)[0].close()
    begun = tmp_path / "other" / "000000.jsonl"
    os.chown(begun, 12345, -1)
    begun.chmod(0o666)
    again = RunLog(tmp_path / "other")
    for step in range(1, 10):
        again.append("metrics", row(step, float(step)))
    again.position()
    parts = [[path.read_bytes() for path in one.parts()] for one in (log, again)]
    assert parts[0] == parts[1]
    assert (begun.stat().st_uid, begun.stat().st_mode & 0o222) == (os.geteuid(), 0)


def test_from_any_position_the_log_goes_on_to_the_same_parts(tmp_path, small_parts):
    whole, positions = filled(tmp_path / "whole", 9)
    expected = [path.read_bytes() for path in whole.parts()]
    for at, position in enumerate([None, *positions]):
        log = filled(tmp_path / f"log-{at}", 9)[0]
        log.close()
        log = RunLog(log.folder)
        log.restore(position)
        for step in range(at, 9):
            log.append("metrics", row(step, float(step)))
        assert log.position() == positions[-1]
        assert [path.read_bytes() for path in log.parts()] == expected


def test_a_cut_leaves_a_linked_part_as_it_was(tmp_path, small_parts):
    """The links of one that takes over: its cut must not reach the other's file."""
    log, positions = filled(tmp_path / "log", 9)
    linked = tmp_path / "linked"
    os.link(log.parts()[0], linked)
    before = linked.read_bytes()
    log.restore(positions[0])
    log.append("metrics", row(1, 0.5))
    log.position()
    assert linked.read_bytes() == before
    assert [one["loss"] for one in log.rows("metrics")] == [0.0, 0.5]


def test_a_cut_part_is_on_the_disk_before_it_takes_the_place_of_the_whole_one(
    tmp_path, monkeypatch
):
    log, positions = filled(tmp_path / "log", 3)
    done, fsync, replace = [], os.fsync, os.replace

    def synced(descriptor):
        fsync(descriptor)
        status = os.fstat(descriptor)
        done.append(("sync", status.st_ino, status.st_size))

    def replaced(source, target):
        done.append(("replace", os.stat(source).st_ino, os.stat(source).st_size))
        replace(source, target)

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(os, "replace", replaced)
    log.restore(positions[0])
    (part,) = log.parts()
    shorter = part.stat().st_ino, positions[0].bytes
    assert done[:2] == [("sync", *shorter), ("replace", *shorter)]
    assert done[2][:2] == ("sync", log.folder.stat().st_ino)


@pytest.mark.parametrize("part", [0, 1, -1])
@pytest.mark.parametrize("damage", ["cut", "changed", "gone"])
def test_a_damaged_part_is_noticed(tmp_path, small_parts, part, damage):
    log, positions = filled(tmp_path / "log", 8)
    log.close()
    path = log.parts()[part]
    content = path.read_bytes()
    path.unlink()
    if damage != "gone":
        path.write_bytes(content[:-5] if damage == "cut" else content[:-5] + b"x" + content[-4:])
    again = RunLog(log.folder)
    assert not again.holds(positions[-1])


def test_a_torn_last_line_is_cut_off(tmp_path, small_parts):
    positions = filled(tmp_path / "log", 8)[1]
    torn = filled(tmp_path / "torn", 8)[0]
    with torn.parts()[-1].open("ab") as file:
        file.write(b'["metrics", {"torn')
    assert torn.holds(positions[-1])
    torn.restore(positions[-1])
    assert len(torn.rows("metrics")) == 8


def test_only_the_rows_that_are_asked_for_are_parsed(tmp_path, small_parts, monkeypatch):
    log, _ = filled(tmp_path / "log", 9)
    log.append("events", {"training_step": 9})
    parsed = []
    loads = json.loads
    monkeypatch.setattr(monitor.json, "loads", lambda line: parsed.append(line) or loads(line))
    assert log.rows("events") == [{"training_step": 9}]
    assert len(parsed) == 1


def test_a_table_is_the_same_however_many_rows_are_held_at_a_time(tmp_path, monkeypatch):
    log, _ = filled(tmp_path / "log", 9)
    whole = metrics_table(log, [Column("loss/web", "float64?", "Loss on web.")])
    monkeypatch.setattr(monitor, "ROWS_AT_ONCE", 2)
    parts = metrics_table(log, [Column("loss/web", "float64?", "Loss on web.")])
    assert parts.equals(whole)
    assert parts["loss"].num_chunks == whole["loss"].num_chunks == 1


def test_a_run_that_lost_its_key_measures_nothing(tmp_path):
    def lost():
        raise LeaseLost("another run took this key over")

    log = RunLog(tmp_path / "log", lost)
    with pytest.raises(LeaseLost):
        log.append("metrics", row(1, 0.1))
    assert log.parts() == []
