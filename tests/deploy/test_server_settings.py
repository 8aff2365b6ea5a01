"""The server of the containers has the settings of `ingot up`."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from flows.orchestration.service_settings import HEARTBEAT_SECONDS, ServiceSettings

DEPLOY = Path(__file__).resolve().parents[2] / "deploy"
OF_ONE_MACHINE = (
    *("PREFECT_HOME", "PREFECT_LOGGING_TO_API_ENABLED", "PREFECT_UI_API_URL"),
    "PREFECT_SERVER_UI_STATIC_DIRECTORY",
)


def of_compose(service):
    compose = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
    return dict(compose["services"][service]["environment"])


def of_manifest(file):
    for one in yaml.safe_load_all((DEPLOY / "kubernetes" / file).read_text()):
        if one["kind"] == "Deployment":
            variables = one["spec"]["template"]["spec"]["containers"][0]["env"]
            return {each["name"]: each.get("value") for each in variables}
    raise AssertionError("no Deployment")


@pytest.mark.parametrize(
    "values", [of_compose("server"), of_manifest("prefect.yaml")], ids=["compose", "kubernetes"]
)
def test_the_server_has_the_settings_of_ingot_up(values, monkeypatch, tmp_path):
    monkeypatch.setenv("INGOT_HOME", str(tmp_path))
    wanted = ServiceSettings().environment()
    for name in OF_ONE_MACHINE:
        del wanted[name]
    assert len(wanted) > 8
    assert {name: values.get(name) for name in wanted} == wanted


@pytest.mark.parametrize(
    "values", [of_compose("worker"), of_manifest("worker.yaml")], ids=["compose", "kubernetes"]
)
def test_runs_of_the_worker_send_heartbeats_as_often_as_the_automation_needs(values):
    assert values["PREFECT_FLOWS_HEARTBEAT_FREQUENCY"] == HEARTBEAT_SECONDS
    assert values["DO_NOT_TRACK"] == "1"
