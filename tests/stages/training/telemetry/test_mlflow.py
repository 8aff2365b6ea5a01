"""MLflow: what the real package keeps in a database file, and what trouble of the server costs."""

from __future__ import annotations

import logging
import sys
import threading
import types

import pytest

from artifacts_schema.errors import IngotError, UsageError
from stages.training.config import TrainingExecution
from stages.training.monitor import HeldOut
from stages.training.remote_dashboards import MlflowRun


class FakeClient:
    """Keeps what is sent; `stopped` blocks every call, `broken` refuses it."""

    def __init__(self, tracking_uri):
        self.tracking_uri, self.batches, self.params, self.tags = tracking_uri, [], {}, {}
        self.runs, self.status = [], []
        self.free, self.broken = threading.Event(), False
        self.free.set()

    def get_experiment_by_name(self, name):
        return None

    def create_experiment(self, name):
        return f"experiment {name}"

    def search_runs(self, experiments, text, max_results):
        return self.runs

    def create_run(self, experiment, tags, run_name):
        self.tags.update(tags)
        return types.SimpleNamespace(info=types.SimpleNamespace(run_id="r1"))

    def log_batch(self, run_id, metrics=(), params=()):
        self.free.wait(10)
        if self.broken:
            raise ConnectionError("away")
        self.params.update({one.key: one.value for one in params})
        if metrics:
            self.batches.append({one.key: (one.step, one.value) for one in metrics})

    def set_tag(self, run_id, name, value):
        self.tags[name] = value

    def update_run(self, run_id, status):
        self.status.append((run_id, status))

    def set_terminated(self, run_id, status):
        self.status.append((run_id, status))


class Entity:
    def __init__(self, key, value, timestamp=0, step=0):
        self.key, self.value, self.step = key, value, step


@pytest.fixture
def fake(monkeypatch):
    """A module `mlflow`; `client` is the last one made."""
    module, entities = types.ModuleType("mlflow"), types.ModuleType("mlflow.entities")
    entities.Metric = entities.Param = Entity
    module.runs = []

    def client(tracking_uri):
        module.client = FakeClient(tracking_uri)
        module.client.runs = module.runs
        return module.client

    module.MlflowClient, module.entities = client, entities
    monkeypatch.setitem(sys.modules, "mlflow", module)
    monkeypatch.setitem(sys.modules, "mlflow.entities", entities)
    return module


def mlflow_run(address="http://127.0.0.1:5000", **changed):
    settings = {"mlflow": address, "telemetry_every": 2, **changed}
    return MlflowRun(
        TrainingExecution(**settings),
        "pretrain-abc",
        config={"seed": 3, "mixture": {"web": 1.0}},
        log=logging.getLogger("test"),
    )


def test_a_new_run_has_the_config_and_a_name_and_gets_what_happens(fake, step_done):
    run = mlflow_run()
    for step in (1, 2, 3):
        run.step_done(step_done(step, values={"loss/web@4096": 2.5, "loss/code": None}))
    run.measured(3, 9, [HeldOut("all", 4.0, None)])
    run.telemetry({"training_step": 3, "time": 1.0, "mfu": None, "power_watts": 9.0})
    run.alert("plateau", "it stays")
    run.ended(None)
    client = fake.client
    assert client.params == {"seed": "3", "mixture": '{"web": 1.0}'}
    assert client.tags == {"ingot.run": "pretrain-abc", "alert.plateau": "it stays"}
    first, second, held_out, telemetry = client.batches
    assert first["loss/web_4096"] == (1, 2.5)
    assert second["loss/web_4096"] == (2, 2.5)
    assert "loss/code" not in first
    assert held_out == {"held_out/loss/all": (3, 4.0)}
    assert telemetry == {"telemetry/power_watts": (3, 9.0)}
    assert client.status == [("r1", "FINISHED")]


def test_a_resumed_run_goes_on_in_the_same_one(fake):
    fake.runs.append(types.SimpleNamespace(info=types.SimpleNamespace(run_id="r0")))
    run = mlflow_run()
    run.ended(RuntimeError("x"))
    assert fake.client.params == {}, "parameters cannot be changed, and are there"
    assert fake.client.status == [("r0", "RUNNING"), ("r0", "FAILED")]


def test_a_server_that_goes_away_costs_a_warning_and_no_more(fake, step_done, caplog):
    run = mlflow_run()
    fake.client.broken = True
    run.step_done(step_done(1))
    run._sender.join(10)
    for step in (2, 4, 6):
        run.step_done(step_done(step))
    run.ended(None)
    assert [record.message for record in caplog.records] == ["MLflow gets nothing more: away"]


def test_a_slow_server_never_holds_up_the_training(fake, step_done, caplog, monkeypatch):
    monkeypatch.setattr("stages.training.remote_dashboards.WAITING_CALLS", 3)
    monkeypatch.setattr("stages.training.remote_dashboards.FINISH_SECONDS", 0.01)
    run = mlflow_run()
    fake.client.free.clear()
    for step in range(2, 40, 2):
        run.step_done(step_done(step))
    run.ended(None)
    fake.client.free.set()
    assert [record.message for record in caplog.records] == [
        "MLflow gets nothing more: 3 rows wait for a slow server"
    ]


def test_a_package_that_is_missing_or_does_not_start_is_an_error_before_the_first_step(
    fake, monkeypatch
):
    def refuse(tracking_uri):
        raise RuntimeError("no route")

    fake.MlflowClient = refuse
    with pytest.raises(IngotError, match="MLflow does not start: no route"):
        mlflow_run()
    monkeypatch.setitem(sys.modules, "mlflow", None)
    with pytest.raises(UsageError, match=r"ingot\[mlflow\]"):
        mlflow_run()


def test_an_address_with_a_password_is_refused():
    with pytest.raises(UsageError, match="holds credentials"):
        TrainingExecution.parse({"mlflow": "https://me:secret@host/x"}, where="execution")


def test_the_package_itself_keeps_a_run_that_was_rolled_back(tmp_path, step_done):
    """A step that was trained twice has two values, as MLflow keeps all."""
    mlflow = pytest.importorskip("mlflow", reason="needs the extra mlflow")
    address = f"sqlite:///{tmp_path / 'mlflow.db'}"
    for steps in ((1, 2), (1, 2, 4)):
        run = mlflow_run(address)
        for step in steps:
            run.step_done(step_done(step))
        run.ended(None)
    client = mlflow.MlflowClient(tracking_uri=address)
    experiment = client.get_experiment_by_name("ingot").experiment_id
    (kept,) = client.search_runs([experiment])
    assert kept.data.tags["ingot.run"] == "pretrain-abc"
    assert kept.data.params["seed"] == "3"
    assert kept.info.status == "FINISHED"
    history = client.get_metric_history(kept.info.run_id, "train/loss")
    assert sorted(one.step for one in history) == [1, 1, 2, 2, 4]
