"""A recipe as a Prefect flow run: shown step by step, same artifacts, same errors, nothing lost."""

from __future__ import annotations

import importlib.util
import os
import signal
from contextlib import suppress
from pathlib import Path

import pytest

from artifacts_schema.errors import IngotError
from flows.orchestration import server as servers
from flows.recipe.execute import Observer, execute
from flows.recipe.pipeline import Pipeline, Request

pytestmark = pytest.mark.server

RECIPE = """
name: toys
steps:
  make: {stage: toy_make, config: {shards: 2}}
  double: {stage: toy_double, inputs: {exclusions: make}}
  join: {stage: toy_join, inputs: {exclusions: [make, double]}}
"""


def load_toys():
    path = Path(__file__).parents[2] / "stages" / "engine" / "toys.py"
    spec = importlib.util.spec_from_file_location("toys", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def prefect(tmp_path_factory):
    """A Prefect server of our own, with its home in a temporary folder."""
    before = dict(os.environ)
    os.environ["INGOT_HOME"] = str(tmp_path_factory.mktemp("home"))
    os.environ.pop("PREFECT_API_URL", None)
    load_toys().install(tmp_path_factory.mktemp("site"), os.environ)
    told = []
    server = servers.ensure_server(told.append)
    assert told[-1] == f"Prefect UI: {server.ui}"
    yield server
    servers.stop_server()
    assert not servers.answers(server)
    os.environ.clear()
    os.environ.update(before)


@pytest.fixture
def request_(tmp_path):
    recipe = tmp_path / "toys.yaml"
    recipe.write_text(RECIPE)
    return Request(str(recipe), str(tmp_path / "store"))


class Told(Observer):
    def __init__(self):
        self.ended = []

    def finished(self, step, manifest, seconds):
        self.ended.append(step.instance)


def read(client, path, body):
    import httpx

    reply = httpx.post(f"{client.api}/{path}", json=body, timeout=10)
    reply.raise_for_status()
    return reply.json()


def test_a_run_is_shown_with_its_steps_plan_and_funnel(prefect, request_):
    from flows.orchestration.run import run_pipeline

    told = Told()
    plan = run_pipeline(Pipeline.open(request_), request_, observer=told)
    assert plan.is_done
    assert told.ended == ["make", "double", "join"]
    (run,) = read(prefect, "flow_runs/filter", {"sort": "START_TIME_DESC", "limit": 1})
    assert (run["state"]["type"], run["name"][:4]) == ("COMPLETED", "toys")
    tasks = read(prefect, "task_runs/filter", {"flow_runs": {"id": {"any_": [run["id"]]}}})
    assert {t["name"]: t["state"]["type"] for t in tasks} == dict.fromkeys(
        ["make", "double", "join"], "COMPLETED"
    )
    artifacts = read(prefect, "artifacts/filter", {"flow_runs": {"id": {"any_": [run["id"]]}}})
    data = {a["key"]: a["data"] for a in artifacts}
    assert "toy_make" not in str(data["plan"])
    assert '"double"' in str(data["plan"])
    assert "| make | 8 | 8 |" in data["funnel-toys"]


def test_a_failing_step_fails_the_run_with_its_own_line(prefect, request_, tmp_path):
    from flows.orchestration.run import run_pipeline

    run_pipeline(Pipeline.open(request_), request_)
    bound = Pipeline.open(request_)
    made = bound.plan().step("make").manifest
    path = bound.store.backend.local_path(bound.store.payload(made, "exclusions", "00000.parquet"))
    data = bytearray(path.read_bytes())
    data[40] ^= 1
    path.write_bytes(data)
    changed = Request(request_.recipe, request_.store, overrides=("double.factor=3",))
    with pytest.raises(IngotError, match=r"double: .*the file's bytes changed") as caught:
        run_pipeline(Pipeline.open(changed), changed)
    assert caught.value.exit_code == 2
    runs = read(prefect, "flow_runs/filter", {"sort": "START_TIME_DESC", "limit": 1})
    assert runs[0]["state"]["type"] == "FAILED"


def test_a_single_stage_runs_from_a_spec_and_checks_the_key(prefect, request_, tmp_path):
    from flows.orchestration import run as orchestration

    orchestration._configure(prefect)
    from flows.orchestration.flow import single_stage

    bound = Pipeline.open(request_)
    spec = bound.plan().step("make").spec
    path = tmp_path / "spec.json"
    path.write_bytes(spec.to_json())
    with pytest.raises(IngotError, match="the key here is"):
        single_stage("toy_make", bound.store.url, str(path), "0" * 64)
    made = single_stage("toy_make", bound.store.url, str(path), spec.key)
    manifest = bound.store.manifest("toy_make", spec.key)
    assert made == {"exclusions": manifest.outputs["exclusions"].digest[:12]}


def test_a_second_server_is_not_started_and_ours_can_be_stopped(prefect, tmp_path, monkeypatch):
    assert servers.ensure_server() == prefect
    monkeypatch.setenv("INGOT_HOME", str(tmp_path))
    assert servers.find_server() is None
    assert servers.stop_server() is None
    assert servers.answers(prefect)


def test_an_api_that_does_not_answer_is_said_before_anything_runs(monkeypatch, request_):
    from flows.orchestration.run import run_pipeline

    monkeypatch.setenv("PREFECT_API_URL", "http://127.0.0.1:9/api")
    with pytest.raises(IngotError, match="the Prefect API does not answer"):
        run_pipeline(Pipeline.open(request_), request_)


def test_a_server_that_dies_in_mid_run_costs_the_picture_and_nothing_else(prefect, request_):
    """The API vanishes after the first step: children go on and commit, a new run reuses."""
    from flows.orchestration.run import run_pipeline

    class Killer(Observer):
        def finished(self, step, manifest, seconds):
            if step.instance == "make":
                os.killpg(prefect.process, signal.SIGKILL)

    with suppress(IngotError):
        run_pipeline(Pipeline.open(request_), request_, observer=Killer())
    assert Pipeline.open(request_).plan().step("make").action == "reuse"
    assert execute(Pipeline.open(request_)).is_done
