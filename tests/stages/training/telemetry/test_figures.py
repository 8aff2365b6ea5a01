"""What a report shows of telemetry: rows, alerts and findings that the test wrote."""

from __future__ import annotations

import json

import pytest

from artifacts_schema.store import layout
from stages.engine.page import Artifact
from stages.training.figures import TrainingRun
from stages.training.telemetry import TABLE, TELEMETRY, TelemetryFile
from stages.training.telemetry_figures import telemetry_figures


def row(step, **changed):
    facts = {column.name: None for column in TELEMETRY.columns if column.type.endswith("?")}
    return {
        **facts,
        "time": 1.7e9 + step,
        "training_step": step,
        "tokens": 100 * step,
        "seconds": 4.0,
        "step_seconds": 2.0,
        "data_seconds": 1.0,
        "held_out_seconds": 0.75,
        "checkpoint_seconds": 0.25,
        "process_bytes": 2 * 10**9,
        **changed,
    }


@pytest.fixture
def run(given, store):
    """`run(rows, {name: bytes}, [event, …])` → a run of three steps that left these."""

    def make(rows=(), files=None, events=()):
        step = {"tokens": 100, "phase": 0, "loss": 1.0, "grad_norm": 1.0, "learning_rate": 0.1}
        metrics = [{"training_step": n, **step, "skipped": 0.0} for n in (1, 2, 3)]
        tables = {"metrics.parquet": metrics, "held_out.parquet": [], "run.json": {}}
        tables |= {"events.parquet": list(events)} if events else {}
        made, _ = given("training_run", tables)
        folder = store.backend.local_path(
            layout.payload(made.stage, made.key, made.attempt, "telemetry")
        )
        if rows:
            file = TelemetryFile(folder)
            for one in rows:
                file.append(one)
            file.finish()
            assert (folder / TABLE).exists()
        for name, content in (files or {}).items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(content)
        return TrainingRun(Artifact(store, made), "training_step")

    return make


def test_a_run_without_telemetry_shows_none(run):
    assert telemetry_figures(run()) == []


def test_time_and_memory_are_shown_and_what_was_not_measured_is_not(run):
    spent, memory = telemetry_figures(run([row(1), row(2)]))
    assert spent.title == "Where the time went"
    assert spent.rows == (
        ("training steps", 4.0, 0.5),
        ("waiting for data, and the rest", 2.0, 0.25),
        ("held-out losses", 1.5, 0.1875),
        ("standing still for checkpoints", 0.5, 0.0625),
    )
    assert spent.note == "8.0 seconds."
    assert memory.title == "Memory, GB"
    (series,) = memory.series
    assert (series.name, series.x, series.y) == ("process", (1.0, 2.0), (2.0, 2.0))


def test_a_gpu_is_shown_with_all_that_it_said(run):
    told = {"mfu": 0.5, "device_bytes": 10**9, "temperature": 61.0, "clock_mhz": 1980.0}
    found = telemetry_figures(run([row(1), row(2, **told)]))
    shown = {figure.title: figure for figure in found[1:]}
    assert list(shown) == [
        "Model FLOPs utilisation", "Memory, GB", "GPU temperature", "GPU clock",
    ]  # fmt: skip
    assert shown["Model FLOPs utilisation"].series[0].y == (None, 0.5)
    assert [one.name for one in shown["Memory, GB"].series] == ["process", "GPU"]


def test_a_long_run_is_thinned_and_its_restarts_are_told(run):
    rows = [row(n) for n in range(1, 4002)]
    artifact = run(rows)
    spent, memory = telemetry_figures(artifact)
    assert len(memory.series[0].x) == 1334
    assert spent.rows[0][1] == 2.0 * 4001


def test_alerts_and_findings_and_events_are_tables(run):
    lines = [
        {"type": "metric", "training_step": 2, "said": "alert"},
        {"type": "alert", "training_step": 2, "kind": "plateau", "text": "it stays"},
    ]
    content = "\n".join([*map(json.dumps, lines), '{"type": "alert", "tr']).encode()
    report = {
        "findings": [
            {"check": "disk", "level": "warning", "said": "tight", "hint": "free some"},
            {"check": "device", "level": "ok", "said": "new", "hint": "peak_tflops gives one"},
        ],
        "seconds": 0.25,
    }
    event = {"training_step": 2, "tokens": 200, "kind": "not_finite"}
    found = telemetry_figures(
        run(
            files={"events.jsonl": content, "preflight.json": json.dumps(report).encode()},
            events=[{**event, "details": '{"grad_norm": 12.34567, "first": 2}'}],
        )
    )
    events, alerts, preflight = found
    assert events.rows == ((2, 200, "not finite", "grad norm 12.35, first 2"),)
    assert alerts.rows == ((2, "plateau", "it stays"),)
    assert preflight.rows == (("disk", "warning", "tight (free some)"), ("device", "ok", "new"))
    assert "0.2 s" in preflight.note
