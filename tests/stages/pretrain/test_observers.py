"""Who looks on at a real run: across a stop, with W&B and a run to compare with."""

from __future__ import annotations

import sys
import types

import pytest

from artifacts_schema.errors import Stopped, UsageError
from artifacts_schema.store import layout
from stages.training.telemetry import TABLE, read_table


def beside(store, manifest):
    return layout.payload(manifest.stage, manifest.key, manifest.attempt, "telemetry")


def test_a_stopped_run_goes_on_in_a_second_session(store, packed, pretrain):
    inputs, how = packed(), {"telemetry_every": 1, "preflight": "off"}
    asked = iter([False] * 4)
    with pytest.raises(Stopped):
        pretrain(inputs, how, stop=lambda: next(asked, True))
    manifest = pretrain(inputs, how)
    rows = read_table(store.backend.read(f"{beside(store, manifest)}/{TABLE}")).to_pylist()
    sessions = {row["session"] for row in rows}
    assert sessions == {0, 1}
    steps = [row["training_step"] for row in rows]
    assert steps == list(range(1, 10))  # A checkpoint was saved when it stopped.
    assert rows[-1]["tokens"] == manifest.counts["tokens"]
    events = [name for name in store.backend.files(beside(store, manifest)) if "tfevents" in name]
    assert len(events) == 2


@pytest.fixture
def wandb(monkeypatch):
    """A stand-in for the package; `logged` is what it was told."""
    module = types.ModuleType("wandb")
    module.logged = []
    run = types.SimpleNamespace(
        log=module.logged.append,
        define_metric=lambda *_, **__: None,
        alert=lambda **_: None,
        finish=lambda **_: None,
    )
    module.init = lambda **given: vars(module).update(given=given) or run
    module.Settings = dict
    monkeypatch.setitem(sys.modules, "wandb", module)
    return module


def test_wandb_is_told_and_an_earlier_run_is_compared_with(store, packed, pretrain, wandb):
    inputs = packed()
    earlier = pretrain(inputs, {"preflight": "off"}, seed=3)
    store.set_ref("trial/base", earlier.stage, earlier.key)
    execution = {"wandb": "offline", "compare_with": "trial/base", "peak_tflops": 1e-3}
    manifest = pretrain(inputs, {**execution, "telemetry_every": 3, "preflight": "off"})
    assert wandb.given["id"] == f"pretrain-{manifest.key[:12]}"
    assert wandb.given["config"]["precision"] == "fp32"
    losses = {
        one["training_step"]: one["train/loss"] for one in wandb.logged if "train/loss" in one
    }
    assert list(losses) == [1, 3, 6, 9]
    assert [one["training_step"] for one in wandb.logged if "telemetry/mfu" in one] == [1, 3, 6, 9]
    assert [one for one in wandb.logged if "held_out/bits_per_byte/web" in one]


def test_a_run_to_compare_with_that_is_not_there_is_an_error_before_the_first_step(
    packed, pretrain
):
    with pytest.raises(UsageError, match="no ref 'gone'"):
        pretrain(packed(), {"compare_with": "gone"})
