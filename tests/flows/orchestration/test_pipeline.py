"""A recipe as a Prefect flow run of `ingot run`: same artifacts, same errors, nothing lost."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from artifacts_schema.errors import IngotError, StoreError
from artifacts_schema.store import Store
from flows.orchestration import server as servers
from flows.recipe.observers import Observer
from flows.recipe.pipeline import Pipeline, Request

pytestmark = pytest.mark.server


@pytest.fixture
def request_(here, tmp_path):
    return Request(str(here.folder / "toys.yaml"), str(tmp_path / "store"))


class Told(Observer):
    def __init__(self):
        self.ended = []

    def finished(self, step, manifest, seconds):
        self.ended.append(step.instance)


def newest_run(here):
    tagged = {"flow_runs": {"tags": {"all_": ["ingot"]}}, "sort": "START_TIME_DESC", "limit": 1}
    return here.post("/flow_runs/filter", tagged)[0]


@pytest.mark.full
def test_a_run_from_the_terminal_is_shown_too(here, request_):
    from flows.orchestration.control import run_pipeline

    told = Told()
    plan = run_pipeline(Pipeline.open(request_), request_, observer=told)
    assert plan.is_done
    assert told.ended == ["numbers", "learn"]
    run = newest_run(here)
    assert (run["state"]["type"], run["name"]) == ("COMPLETED", f"toys #{run['id'][-4:]}")
    here.until(lambda: len(here.tasks(run["id"])) == 2)
    assert {"plan-toys", "funnel-toys", "lineage-toys"} <= set(here.artifacts(run["id"]))


@pytest.mark.full
def test_a_failing_step_fails_the_run_with_its_own_line_and_shows_what_stands(here, request_):
    from flows.orchestration.control import run_pipeline

    run_pipeline(Pipeline.open(request_), request_)
    bound = Pipeline.open(request_)
    made = bound.plan().step("numbers").manifest
    path = Path(bound.store.backend.full(bound.store.payload(made, "exclusions", "00000.parquet")))
    data = bytearray(path.read_bytes())
    data[40] ^= 1
    path.write_bytes(data)
    changed = Request(request_.recipe, request_.store, overrides=("learn.phase.steps=5",))
    with pytest.raises(IngotError, match=r"learn: .*verify --repair") as caught:
        run_pipeline(Pipeline.open(changed), changed)
    assert caught.value.exit_code == 2
    run = newest_run(here)
    assert run["state"]["type"] == "FAILED"
    assert "| numbers | 8 | 6 |" in here.artifacts(run["id"])["funnel-toys"]


def test_a_spec_runs_as_a_flow_and_its_key_is_computed_again(here, request_, tmp_path):
    servers.use_server(servers.find_server())
    from prefect.context import refresh_global_settings_context

    from flows.orchestration.flow import spec as spec_flow

    refresh_global_settings_context()  # Another test may have imported Prefect before.

    bound = Pipeline.open(request_)
    spec = bound.plan().step("numbers").spec
    path = tmp_path / "spec.json"
    path.write_bytes(spec.to_json())
    with pytest.raises(IngotError, match=spec.key[:8]):
        spec_flow("ui_numbers", bound.store.url, str(path), "0" * 64)
    with pytest.raises(StoreError, match="no store here"):
        spec_flow("ui_numbers", str(tmp_path / "unmounted"), str(path), spec.key)
    assert not (tmp_path / "unmounted").exists()
    made = spec_flow("ui_numbers", bound.store.url, str(path), spec.key[:12])
    manifest = bound.store.manifest("ui_numbers", spec.key)
    assert made == {"exclusions": manifest.outputs["exclusions"].digest[:12]}


@pytest.mark.full
def test_a_server_that_dies_in_mid_run_costs_the_picture_and_nothing_else(ui, tmp_path):
    """The API vanishes while a step runs: its child goes on and commits, a new run reuses it."""
    gate, store = tmp_path / "gate", Store.open(str(tmp_path / "store"))
    environment = {
        **ui.environment,
        "INGOT_HOME": str(tmp_path / "home"),
        "PREFECT_CLIENT_MAX_RETRIES": "0",  # By default a minute passes in tries.
    }
    recipe = str(ui.folder / "toys.yaml")
    words = ("run", recipe, "--store", store.url, "--set", f"learn.gate={gate}")
    run = subprocess.Popen(
        [sys.executable, "-c", "from flows.cli.main import main; main()", *words],
        env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip
    try:
        ui.until(lambda: len(list((tmp_path / "store").glob("work/*/done/*/*.json"))) == 2)
        server = json.loads((tmp_path / "home" / "prefect.json").read_text())
        os.killpg(server["process"], signal.SIGKILL)
        gate.touch()
        said, _ = run.communicate(timeout=120)
    finally:
        run.kill()
    assert run.returncode == 0 or "the same command continues" in said, said
    for noise in ("EventsWorker", "Error logging to API", "Traceback", "bug in Ingot"):
        assert noise not in said
    log = (tmp_path / "home" / "client.log").read_text()  # Prefect's own words are kept.
    assert "prefect" in log
    done = ui.ingot(*words, "--no-prefect", INGOT_HOME=str(tmp_path / "home"))
    assert done.returncode == 0, done.stderr
    assert "learn: made" not in done.stderr
    assert store.ref("toys/learn") is not None
