"""Runs from forms, over the API that the UI uses: shown, cancelled, continued, refused."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import httpx
import psutil
import pytest
from ports import any_port

from artifacts_schema.errors import UsageError
from artifacts_schema.store import Store

pytestmark = pytest.mark.server


def stage_children(store):
    """Ids of the stage processes that work in this store."""
    found = []
    for process in psutil.process_iter(["cmdline"]):
        words = process.info["cmdline"] or []
        if "stages" in words and store in words:
            found.append(process.pid)
    return found


def test_a_run_from_a_form_says_recipe_and_step_and_shows_what_came_of_it(ui, tmp_path):
    store = str(tmp_path / "store")
    run = ui.end_of(ui.started("pipeline/toys", store=store, through="learn"))
    assert (run["state"]["type"], run["name"]) == (
        "COMPLETED",
        f"toys through learn #{run['id'][-4:]}",
    )
    expected = {"numbers": "COMPLETED", "learn": "COMPLETED"}
    ui.until(lambda: ui.tasks(run["id"]) == expected)
    shown = ui.artifacts(run["id"])
    plan = {row["step"]: row for row in json.loads(shown["plan-toys"])}
    assert plan["numbers"]["action"] == "run"
    assert plan["learn"]["cause"].endswith("after numbers")
    # 8 records, 6 of them kept: three quarters.
    assert "| numbers | 8 | 6 | 75.0% |" in shown["funnel-toys"]
    assert "n0 --> n1" in shown["lineage-toys"]
    assert "<script>" not in shown["funnel-toys"].replace(r"\<", "")
    assert shown["progress-toys-learn"] == 100.0
    assert shown["loss-toys-learn"].startswith("![loss](data:image/svg+xml;base64,")


@pytest.mark.full
def test_cancelling_ends_the_stage_within_seconds_and_its_work_is_continued(ui, tmp_path):
    store, gate = str(tmp_path / "store"), tmp_path / "gate"
    asked = {"store": store, "overrides": [f"learn.gate={gate}"]}
    run = ui.started("pipeline/toys", **asked)
    ui.until(lambda: len(list(Path(store).glob("work/*/done/*/*.json"))) == 2)
    (child,) = stage_children(store)
    ui.post(f"/flow_runs/{run}/set_state", {"state": {"type": "CANCELLING", "name": "Cancelling"}})
    ui.until(lambda: child not in psutil.pids(), seconds=30)
    assert ui.end_of(run)["state"]["type"] == "CANCELLED"
    gate.touch()
    again = ui.end_of(ui.started("pipeline/toys", **asked))
    assert again["state"]["type"] == "COMPLETED"
    plan = {row["step"]: row for row in json.loads(ui.artifacts(again["id"])["plan-toys"])}
    assert plan["numbers"]["action"] == "reuse"
    assert plan["learn"]["action"] == "resume"
    assert "2 shards done" in plan["learn"]["cause"]


@pytest.mark.parametrize(
    ("form", "parameters", "status", "message"),
    [
        ("pipeline/toys", {"strict_code": "perhaps"}, 409, "strict_code"),
        ("pipeline/toys", {"store": "relative"}, 409, "'store'"),
        ("pipeline/toys", {"overrides": ["learn.phase.stpes=1"]}, 422, "did you mean 'steps'?"),
        ("stage/ui_learn", {"config__phase__steps": 101}, 422, "steps"),
        ("stage/ui_learn", {"input__exclusions": ["toys/nothing"]}, 422, "no ref 'toys/nothing'"),
        ("stage/ui_numbers", {"config__rows": "many"}, 422, "rows"),
    ],
)
def test_a_form_that_cannot_run_is_refused_before_it_is_queued(
    ui, form, parameters, status, message
):
    before = ui.post("/flow_runs/count", {})
    reply = ui.ask(form, **parameters)
    assert reply.status_code == status, reply.text
    assert message in reply.json()["detail"]
    assert ui.post("/flow_runs/count", {}) == before


def test_a_field_is_judged_where_it_stands(ui):
    """The UI asks this before it submits, and shows each message below its field."""
    deployment = ui.get("/deployments/name/stage/ui_learn")
    schema = deployment["parameter_openapi_schema"]
    values = {"config__phase__steps": 0, "input__exclusions": ["a b"], "store": "x"}
    said = ui.post("/ui/schemas/validate", {"schema": schema, "values": values})
    assert not said["valid"]
    wrong = {error["property"] for error in said["errors"]}
    assert wrong == {"config__phase__steps", "input__exclusions", "store"}
    assert deployment["enforce_parameter_schema"]


@pytest.mark.full
def test_a_single_stage_runs_from_its_form_with_the_key_of_the_command_line(ui, tmp_path):
    store = str(tmp_path / "store")
    assert ui.ingot("stage", "ui_numbers", "--store", store, "--as", "mine/numbers").returncode == 0
    asked = {"store": store, "input__exclusions": ["mine/numbers"], "config__phase__steps": 2}
    run = ui.end_of(ui.started("stage/ui_learn", **asked, name="mine/learned"))
    expected = ("COMPLETED", f"ui_learn mine/numbers #{run['id'][-4:]}")
    assert (run["state"]["type"], run["name"]) == expected
    words = ("stage", "ui_learn", "--store", store, "--json", "--set", "phase.steps=2")
    same = json.loads(ui.ingot(*words, "--input", "exclusions=mine/numbers").stdout)
    assert same["reused"]
    assert Store.open(store).ref("mine/learned").key == same["manifest"]["key"]


@pytest.mark.full
def test_a_second_ingot_up_brings_forms_up_to_date_and_restarts_nothing(ui):
    recipe = ui.folder / "toys.yaml"
    before = {name: ui.state_file(name) for name in ("prefect", "worker", "reports")}
    elsewhere = ui.folder / "second.yaml"
    elsewhere.write_text(recipe.read_text().replace("name: toys", "name: second"))
    done = ui.ingot("up", "--store", str(ui.folder / "store"), "--recipe", str(elsewhere))
    assert done.returncode == 0, done.stderr
    assert "pipeline/second" in done.stdout
    assert {name: ui.state_file(name) for name in before} == before
    assert ui.get("/deployments/name/pipeline/toys")["parameters"]["recipe"] == str(recipe)


def test_another_port_or_pool_than_the_standing_ones_is_refused(ui):
    port = ui.ingot("up", "--port", "4299")
    assert (port.returncode, "already runs at" in port.stderr) == (2, True)
    pool = ui.ingot("up", "--pool", "other")
    assert (pool.returncode, "a worker for pool 'ingot'" in pool.stderr) == (2, True)


@pytest.mark.parametrize(
    ("cron", "timezone", "message"),
    [
        ("61 3 * * *", "UTC", "'61 3 .* is not a cron schedule"),
        ("daily", "UTC", "is not a cron schedule"),
        ("0 3 * * *", "Mars", "no timezone 'Mars'"),
    ],
)
def test_a_clock_that_is_none_is_said(cron, timezone, message):
    from flows.orchestration.deployments import check_cron

    with pytest.raises(UsageError, match=message):
        check_cron(cron, timezone)


@pytest.mark.full
def test_a_schedule_is_checked_kept_listed_and_removed(ui):
    recipe, clock = str(ui.folder / "toys.yaml"), ("--cron", "0 3 * * *")
    wrong = ui.ingot("schedule", recipe, *clock, "--through", "lern")
    assert (wrong.returncode, "did you mean 'learn'?" in wrong.stderr) == (2, True)
    words = (*clock, "--through", "learn", "--store", str(ui.folder / "store"))
    for _ in range(2):  # The same schedule twice is one.
        done = ui.ingot("schedule", recipe, *words)
        assert done.returncode == 0, done.stderr
    up = ui.ingot("up", "--store", str(ui.folder / "store"), "--recipe", recipe)
    assert up.returncode == 0  # The schedule survives it.
    (listed,) = json.loads(ui.ingot("schedule", "--list", "--json").stdout)
    assert (listed["recipe"], listed["cron"], listed["timezone"]) == ("toys", "0 3 * * *", "UTC")
    assert listed["parameters"] == {"through": "learn", "store": str(ui.folder / "store")}
    removed = ui.ingot("schedule", recipe, "--remove")
    assert "removed toys at '0 3 * * *'" in removed.stdout
    assert ui.get("/deployments/name/pipeline/toys")["schedules"] == []


@pytest.mark.full
def test_a_run_whose_processes_are_gone_is_marked_as_crashed_and_its_work_is_found(ui, tmp_path):
    """Worker and flow are killed: no heartbeat for 90 s, and the automation says so."""
    store, gate = str(tmp_path / "store"), tmp_path / "gate"
    asked = {"store": store, "overrides": [f"learn.gate={gate}"]}
    run = ui.started("pipeline/toys", **asked)
    ui.until(lambda: len(list(Path(store).glob("work/*/done/*/*.json"))) == 2)
    heard = {"filter": {"event": {"name": ["prefect.flow-run.heartbeat"]}}}
    ui.until(lambda: any(run in str(event) for event in ui.post("/events/filter", heard)["events"]))
    (child,) = stage_children(store)
    flow = psutil.Process(child).parent()
    worker = psutil.Process(json.loads(ui.state_file("worker"))["process"])
    for process in (worker, flow):
        process.kill()
    try:
        ended = ui.end_of(run)
        assert ended["state"]["type"] == "CRASHED"
        assert "no heartbeat" in ended["state"]["message"]
        assert psutil.pid_exists(child)  # The stage goes on; the next run joins it.
    finally:
        gate.touch()
        assert ui.ingot("up", "--recipe", str(ui.folder / "toys.yaml")).returncode == 0
    again = ui.end_of(ui.started("pipeline/toys", **asked))
    assert again["state"]["type"] == "COMPLETED"


@pytest.mark.full
def test_ingot_down_lets_running_steps_save_and_leaves_nothing_behind(ui, tmp_path):
    store, gate, home = str(tmp_path / "store"), tmp_path / "gate", str(tmp_path / "home")
    recipe = tmp_path / "toys.yaml"
    recipe.write_text((ui.folder / "toys.yaml").read_text())
    up = ("up", "--port", str(any_port()), "--store", store, "--recipe", str(recipe))
    said = ui.ingot(*up, INGOT_HOME=home)
    assert said.returncode == 0, said.stderr
    api = re.search(r"http://\S+", said.stdout)[0] + "/api"
    credentials = tuple(Path(home, "password").read_text().strip().split(":"))
    other = replace(ui, api=httpx.Client(base_url=api, auth=credentials, timeout=60))
    overrides = [f"learn.gate={gate}"]
    other.ask("pipeline/toys", overrides=overrides)
    other.until(lambda: len(list(Path(store).glob("work/*/done/*/*.json"))) == 2)
    (child,) = stage_children(store)
    down = ui.ingot("down", INGOT_HOME=home)
    assert down.stdout.startswith("stopped worker, reports, server"), down.stderr
    assert not psutil.pid_exists(child)
    assert not [p for p in psutil.process_iter(["environ"]) if home in str(p.info["environ"])]
    plan = ui.ingot("plan", str(recipe), "--store", store, "--set", overrides[0], "--json")
    learn = json.loads(plan.stdout)["steps"][1]
    assert (learn["action"], "2 shards done" in learn["cause"]) == ("resume", True)
    assert ui.ingot("down", INGOT_HOME=home).stdout == "nothing was running\n"
    assert tuple(Path(home, "password").read_text().strip().split(":")) == credentials
