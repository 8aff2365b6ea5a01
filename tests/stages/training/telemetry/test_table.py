"""Rows of telemetry: what stands in them, and that kills lose none."""

from __future__ import annotations

import pytest

from artifacts_schema.errors import CorruptArtifact
from stages.training.hardware import Reading
from stages.training.telemetry import LINES, TABLE, TELEMETRY, Telemetry, TelemetryFile, read_table


def telemetry(folder, clock, **changed):
    facts = {
        "every": 2,
        "sensors": lambda: Reading(123, temperature=61.0),
        "flops_per_token": [1e6, 3e6],
        "peak": 1e9,
        "clock": clock,
        "wall_clock": lambda: 1.7e9,
        **changed,
    }
    return Telemetry(TelemetryFile(folder), **facts)


def train(listener, clock, step_done, steps, phase=0):
    listener.started(min(steps) - 1, 9)
    for step in steps:
        clock.after(1.0)
        listener.step_done(step_done(step, tokens=100, phase=phase, seconds=1.0))


def rows_of(folder):
    return read_table((folder / TABLE).read_bytes()).to_pylist()


def test_a_row_every_so_many_steps_with_speed_and_utilisation(tmp_path, clock, step_done):
    listener = telemetry(tmp_path, clock)
    train(listener, clock, step_done, [1, 2, 3, 4, 5])
    listener.ended(None)
    rows = rows_of(tmp_path)
    assert [row["training_step"] for row in rows] == [1, 2, 4, 5]
    assert [row["tokens"] for row in rows] == [100, 200, 400, 500]
    assert [row["seconds"] for row in rows] == [1.0, 1.0, 2.0, 1.0]
    # 100 tokens a second of 10^6 operations each, of 10^9 a second: a tenth.
    assert {row["mfu"] for row in rows} == {0.1}
    assert {(row["session"], row["process_bytes"], row["temperature"]) for row in rows} == {
        (0, 123, 61.0)
    }
    assert not (tmp_path / LINES).exists()


def test_utilisation_goes_by_the_sequences_of_the_phase(tmp_path, clock, step_done):
    seen = []
    listener = telemetry(tmp_path, clock, every=1, readers=[seen.append])
    train(listener, clock, step_done, [1], phase=1)
    train(listener, clock, step_done, [2], phase=7)  # the last stands for all behind it
    assert [row["mfu"] for row in seen] == pytest.approx([0.3, 0.3])
    listener = telemetry(tmp_path / "none", clock, every=1, peak=None, readers=[seen.append])
    train(listener, clock, step_done, [1])
    assert seen[-1]["mfu"] is None
    assert seen[-1]["tokens_per_second"] == pytest.approx(100.0)


def test_a_killed_run_keeps_its_rows_and_the_next_session_says_so(tmp_path, clock, step_done):
    train(telemetry(tmp_path, clock), clock, step_done, [1, 2, 3])
    with (tmp_path / LINES).open("a") as file:
        file.write('{"session": 0, "training_st')
    listener = telemetry(tmp_path, clock)
    train(listener, clock, step_done, [3, 4])
    listener.ended(None)
    rows = rows_of(tmp_path)
    assert [(row["session"], row["training_step"]) for row in rows] == [(0, 1), (0, 2), (1, 4)]


def test_killed_between_its_end_and_the_commit_it_goes_on_with_all_rows(tmp_path, clock, step_done):
    listener = telemetry(tmp_path, clock)
    train(listener, clock, step_done, [1, 2])
    listener.ended(None)
    again = telemetry(tmp_path, clock)
    again.started(2, 2)
    again.ended(None)
    assert [row["training_step"] for row in rows_of(tmp_path)] == [1, 2]
    assert TelemetryFile(tmp_path).session == 1


def test_an_error_leaves_lines_for_the_next_session(tmp_path, clock, step_done):
    listener = telemetry(tmp_path, clock, every=100)
    train(listener, clock, step_done, [1, 2, 3])
    listener.ended(RuntimeError("gone"))
    assert not (tmp_path / TABLE).exists()
    assert TelemetryFile(tmp_path).session == 1
    assert (tmp_path / LINES).read_text().count("\n") == 2


def test_another_table_is_refused(tmp_path):
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(pa.table({"training_step": [1]}), tmp_path / TABLE)
    with pytest.raises(CorruptArtifact, match="column 'session' is missing"):
        read_table((tmp_path / TABLE).read_bytes())


def test_every_column_has_a_sentence():
    assert all(column.description.endswith(".") for column in TELEMETRY.columns)
