"""W&B: what a stand-in is told, what its trouble costs, and (where it is installed) offline."""

from __future__ import annotations

import logging
import sys
import types

import pytest

from artifacts_schema.errors import IngotError, UsageError
from stages.training.config import TrainingExecution
from stages.training.monitor import HeldOut
from stages.training.remote_dashboards import WandbRun


class FakeRun:
    def __init__(self):
        self.logged, self.metrics, self.alerts, self.exit_code = [], [], [], None
        self.broken = False

    def define_metric(self, name, step_metric):
        self.metrics.append((name, step_metric))

    def log(self, values):
        if self.broken:
            raise ConnectionError("away")
        self.logged.append(values)

    def alert(self, title, text):
        self.alerts.append((title, text))

    def finish(self, exit_code):
        self.exit_code = exit_code


@pytest.fixture
def fake(monkeypatch):
    """A module `wandb` whose `init` keeps what it was called with."""
    module = types.ModuleType("wandb")
    module.run, module.given = FakeRun(), {}
    module.Settings = dict

    def init(**given):
        module.given = given
        return module.run

    module.init = init
    monkeypatch.setitem(sys.modules, "wandb", module)
    return module


def wandb_run(folder, **changed):
    settings = {"wandb": "offline", "wandb_project": "trial", "telemetry_every": 2, **changed}
    return WandbRun(
        TrainingExecution(**settings),
        "pretrain-abc",
        folder,
        config={"seed": 3},
        log=logging.getLogger("test"),
    )


def test_a_resumed_run_goes_on_in_the_same_one_and_counts_by_training_step(fake, tmp_path):
    wandb_run(tmp_path)
    assert {k: fake.given[k] for k in ("id", "resume", "mode", "project", "config", "dir")} == {
        "id": "pretrain-abc",
        "resume": "allow",
        "mode": "offline",
        "project": "trial",
        "config": {"seed": 3},
        "dir": str(tmp_path),
    }
    assert fake.run.metrics == [("*", "training_step")]


def test_it_is_told_steps_losses_telemetry_and_alerts(fake, tmp_path, step_done):
    run = wandb_run(tmp_path)
    for step in (1, 2, 3):
        run.step_done(step_done(step, values={"loss/web": 2.5, "loss/code": None}))
    run.measured(3, 9, [HeldOut("all", 4.0, None)])
    run.telemetry({"training_step": 3, "time": 1.0, "mfu": None, "power_watts": 9.0})
    run.alert("plateau", "it stays")
    run.ended(None)
    first, second, held_out, telemetry = fake.run.logged
    assert first["training_step"] == 1
    assert first["loss/web"] == 2.5
    assert "loss/code" not in first
    assert second["training_step"] == 2
    assert held_out == {"training_step": 3, "held_out/loss/all": 4.0}
    assert telemetry == {"training_step": 3, "telemetry/power_watts": 9.0}
    assert fake.run.alerts == [("plateau", "it stays")]
    assert fake.run.exit_code == 0


def test_a_dashboard_that_is_away_costs_a_warning_and_no_more(fake, tmp_path, step_done, caplog):
    run = wandb_run(tmp_path)
    fake.run.broken = True
    for step in (1, 2, 4):
        run.step_done(step_done(step))
    run.ended(RuntimeError("x"))
    assert [record.message for record in caplog.records] == [
        "Weights & Biases gets nothing more: away"
    ]
    assert fake.run.exit_code is None


def test_a_package_that_is_missing_or_does_not_start_is_an_error_before_the_first_step(
    fake, tmp_path, monkeypatch
):
    def refuse(**given):
        raise RuntimeError("no api key")

    fake.init = refuse
    with pytest.raises(IngotError, match="no api key"):
        wandb_run(tmp_path, wandb="online")
    monkeypatch.setitem(sys.modules, "wandb", None)
    with pytest.raises(UsageError, match=r"ingot\[wandb\]"):
        wandb_run(tmp_path)


def test_no_setting_holds_a_key():
    names = TrainingExecution.model_fields
    assert [name for name in names if "wandb" in name] == ["wandb", "wandb_project"]
    with pytest.raises(UsageError, match="unknown key 'wandb_api_key'"):
        TrainingExecution.parse({"wandb_api_key": "secret"}, where="execution")


def test_the_package_itself_writes_an_offline_run(tmp_path, step_done, monkeypatch):
    pytest.importorskip("wandb", reason="needs the extra wandb")
    monkeypatch.setenv("WANDB_SILENT", "true")
    run = wandb_run(tmp_path)
    for step in (1, 2, 1, 2):  # a rollback goes back
        run.step_done(step_done(step))
    run.ended(None)
    (written,) = tmp_path.rglob("*.wandb")
    assert written.stat().st_size > 0
