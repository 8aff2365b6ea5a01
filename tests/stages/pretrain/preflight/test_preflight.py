"""The pre-flight of a whole run: what is kept of it, and that it changes no bit."""

from __future__ import annotations

import json

import pytest

from artifacts_schema.errors import IngotError
from artifacts_schema.store import layout
from stages.pretrain import preflight as flight
from stages.pretrain.preflight_checks import Finding
from stages.pretrain.stage import Pretrain
from stages.pretrain.task import PretrainTask
from stages.training.telemetry import TABLE, read_table

CHECKS = [
    "device", "memory", "disk", "store", "data", "token ids", "held-out", "contamination",
    "resume", "dry batch", "isolation", "time",
]  # fmt: skip


def kept(store, manifest, name):
    folder = layout.payload(manifest.stage, manifest.key, manifest.attempt, "telemetry")
    return store.backend.read(f"{folder}/{name}")


def test_a_run_is_looked_at_and_has_the_same_bits_as_one_that_is_not(
    store, packed, pretrain, run_stage, tiny, caplog
):
    inputs = packed()
    looked_at = pretrain(inputs)
    report = json.loads(kept(store, looked_at, "preflight.json"))
    assert [one["check"] for one in report["findings"]] == CHECKS
    levels = {one["check"]: one["level"] for one in report["findings"]}
    assert {check for check, level in levels.items() if level != "ok"} == {"contamination"}
    time = report["findings"][-1]
    assert time["tokens_per_second"] > 0
    assert time["mfu"] is None
    log = kept(store, looked_at, "log.txt").decode()
    assert "WARNING contamination: no document was compared with benchmarks" in log
    # The same key, made again without a look: a difference would be a warning.
    how = {"device": "cpu", "threads": 1, "micro_batch": 3, "checkpoint_every": 2}
    caplog.clear()
    run_stage(Pretrain, tiny, inputs, {**how, "preflight": "off"}, force=True)
    assert "differs from the committed artifact" not in caplog.text
    run_stage(Pretrain, tiny, inputs, {**how, "preflight": "off", "micro_batch": 1}, force=True)
    assert "differs from the committed artifact" in caplog.text


def test_a_refusal_ends_the_run_before_its_first_step(packed, pretrain, monkeypatch):
    broken = Finding("disk", "refusal", "no room", "free space")
    monkeypatch.setattr(flight, "check_writable", lambda backend: broken)
    inputs = packed()
    with pytest.raises(IngotError, match=r"^pre-flight: disk: no room \(free space\)$"):
        pretrain(inputs)
    manifest = pretrain(inputs, {"preflight": "warn"})
    assert manifest.counts["training_steps"] == 9


def test_telemetry_lies_beside_the_payload_and_is_no_part_of_it(store, packed, pretrain):
    manifest = pretrain(packed(), {"telemetry_every": 3, "peak_tflops": 1e-3})
    rows = read_table(kept(store, manifest, TABLE)).to_pylist()
    assert [row["training_step"] for row in rows] == [1, 3, 6, 9]
    assert rows[-1]["tokens"] == manifest.counts["tokens"]
    assert all(row["mfu"] > 0 for row in rows)
    folder = layout.payload(manifest.stage, manifest.key, manifest.attempt, "telemetry")
    names = store.backend.files(folder)
    assert [name for name in names if name.startswith("tensorboard/")]
    assert not any("telemetry" in f.path for o in manifest.outputs.values() for f in o.files)


@pytest.mark.parametrize("preflight", ["refuse", "off"])
def test_out_of_memory_names_three_settings_before_and_in_the_first_step(
    packed, pretrain, monkeypatch, preflight
):
    def micro_batches(self, model, batch):
        raise RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 9 B")
        yield

    monkeypatch.setattr(PretrainTask, "micro_batches", micro_batches)
    with pytest.raises(IngotError, match=r"out of memory: 3 .*32") as caught:
        pretrain(packed(), {"preflight": preflight})
    assert caught.value.hint.count("saves about") == 3
    assert "execution.micro_batch: 1 saves about" in caught.value.hint
