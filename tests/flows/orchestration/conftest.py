"""One `ingot up` for all tests that need a server: it takes ten seconds, so they share it."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
from ports import any_port
from postgres_server import PostgresServer, postgres_server

from artifacts_schema.store import Store

PLUGIN = Path(__file__).parent / "plugin"
STAGES = {
    "ui_numbers": "ingot_ui_stages:Numbers",
    "ui_learn": "ingot_ui_stages:Learn",
    "ui_quiz": "ingot_ui_scores.stage:Quiz",
}
ENDED = ("COMPLETED", "FAILED", "CANCELLED", "CRASHED")
RECIPE = """\
name: toys
description: Numbers, and what is learned of them.
steps:
  numbers: {stage: ui_numbers, config: {rows: 8}}
  learn: {stage: ui_learn, inputs: {exclusions: numbers}}
"""


@dataclass
class Standing:
    """What `ingot up` has started for the tests, and how they talk to it."""

    folder: Path
    environment: dict[str, str]
    api: httpx.Client
    ui: str
    reports: str
    said: str

    @property
    def store(self) -> Store:
        return Store.open(str(self.folder / "store"))

    def ingot(self, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
        """Run the command line."""
        return run_ingot(*words, environment={**self.environment, **environment})

    def state_file(self, name: str) -> str:
        """What is remembered of a background process."""
        return (self.folder / "home" / f"{name}.json").read_text()

    @property
    def password(self) -> str:
        """The line that one signs in with."""
        return self.password_file.read_text().strip()

    @property
    def password_file(self) -> Path:
        """Where it lies."""
        return self.folder / "home" / "password"

    def get(self, path: str) -> Any:
        return self.api.get(path).raise_for_status().json()

    def post(self, path: str, body: Any) -> Any:
        return self.api.post(path, json=body).raise_for_status().json()

    def ask(self, form: str, **parameters: Any) -> httpx.Response:
        """Ask for a run, as the UI does; again where the server is busy, as Prefect's clients do.

        Prefect answers 503 where its SQLite file is locked at that moment, which a worker that
        reports for the first time brings about.
        """
        deployment = self.get(f"/deployments/name/{form}")
        body = {"parameters": parameters, "state": {"type": "SCHEDULED"}}
        path = f"/deployments/{deployment['id']}/create_flow_run"

        def answer() -> httpx.Response | None:
            reply = self.api.post(path, json=body)
            return reply if reply.status_code != httpx.codes.SERVICE_UNAVAILABLE else None

        return self.until(answer)

    def started(self, form: str, **parameters: Any) -> str:
        """Id of a run that is asked for and that the server takes."""
        reply = self.ask(form, **parameters)
        assert reply.is_success, f"{reply.status_code}: {reply.text}"
        return reply.json()["id"]

    def state(self, run: str) -> str:
        return self.get(f"/flow_runs/{run}")["state"]["type"]

    def end_of(self, run: str) -> dict[str, Any]:
        """The run, once it has ended."""
        self.until(lambda: self.state(run) in ENDED)
        return self.get(f"/flow_runs/{run}")

    def artifacts(self, run: str) -> dict[str, Any]:
        """Data of a run's artifacts by key."""
        found = self.post("/artifacts/filter", {"flow_runs": {"id": {"any_": [run]}}})
        return {artifact["key"]: artifact["data"] for artifact in found}

    def tasks(self, run: str) -> dict[str, str]:
        """States of a run's tasks by name, once the server has taken them in."""
        found = self.post("/task_runs/filter", {"flow_runs": {"id": {"any_": [run]}}})
        return {task["name"]: task["state"]["type"] for task in found if task["state"]}

    def until(self, condition: Callable[[], Any], seconds: float = 120.0) -> Any:
        """The first true value of `condition`."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if found := condition():
                return found
            time.sleep(0.1)
        raise AssertionError("it did not come about")


def run_ingot(*words: str, environment: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    """Run the command line in a process of its own."""
    return subprocess.run(
        [sys.executable, "-c", "from flows.cli.main import main; main()", *words],
        env=dict(environment), capture_output=True, text=True, timeout=200,
    )  # fmt: skip


def install(folder: Path) -> dict[str, str]:
    """The stages of `plugin/` as an installed package; the environment in which it is found."""
    info = folder / "site" / "ingot_ui_stages-0.1.dist-info"
    info.mkdir(parents=True)
    info.joinpath("METADATA").write_text(
        "Metadata-Version: 2.1\nName: ingot-ui-stages\nVersion: 0.1\n"
    )
    points = "".join(f"{name} = {place}\n" for name, place in STAGES.items())
    info.joinpath("entry_points.txt").write_text(f"[ingot.stages]\n{points}")
    path = os.pathsep.join(
        [str(info.parent), str(PLUGIN), *filter(None, [os.environ.get("PYTHONPATH")])]
    )
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("PREFECT", "INGOT"))}
    return {**kept, "PYTHONPATH": path, "INGOT_HOME": str(folder / "home")}


@contextmanager
def brought_up(folder: Path, *words: str, **variables: str) -> Iterator[Standing]:
    """`ingot up` with the recipe `toys` and further options, in a folder of its own."""
    recipe = folder / "toys.yaml"
    recipe.write_text(RECIPE)
    environment = {**install(folder), **variables}
    port = any_port()
    up = ("up", "--port", str(port), "--store", str(folder / "store"), "--recipe", str(recipe))
    try:
        done = run_ingot(*up, *words, environment=environment)
        assert done.returncode == 0, done.stderr
        said = dict(line.split("  ", 1) for line in done.stdout.splitlines() if line[0] != " ")
        address = said["Prefect UI"].strip()
        credentials = tuple((folder / "home" / "password").read_text().strip().split(":"))
        with httpx.Client(base_url=f"{address}/api", auth=credentials, timeout=60) as api:
            reports = said["reports"].strip()
            yield Standing(folder, environment, api, address, reports, done.stdout)
    finally:
        run_ingot("down", environment=environment)


@pytest.fixture(scope="session")
def ui(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Standing]:
    """`ingot up` with the recipe `toys`, in a folder of its own."""
    with brought_up(tmp_path_factory.mktemp("ui")) as standing:
        yield standing


@dataclass
class Team:
    """`ingot up` on a PostgreSQL of its own."""

    ui: Standing
    postgres: PostgresServer
    url: str
    password_file: Path


@pytest.fixture(scope="session")
def team(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Team]:
    """`ingot up --database` with a password in a file, two runs at a time."""
    folder = tmp_path_factory.mktemp("team")
    with postgres_server() as postgres:
        url = postgres.make_database("prefect")
        file = postgres.password_file(folder / "database-password")
        words = ("--database", url, "--password-file", str(file), "--limit", "2")
        seconds = {"PREFECT_SERVER_SERVICES_DB_VACUUM_LOOP_SECONDS": "5"}
        with brought_up(folder, *words, **seconds) as standing:
            yield Team(standing, postgres, url, file)


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """A PostgreSQL without databases of ours."""
    with postgres_server() as server:
        yield server


@pytest.fixture
def here(ui: Standing, monkeypatch: pytest.MonkeyPatch) -> Standing:
    """The same, for tests that call Python: this process sees it too."""
    from importlib import import_module

    from stages.engine import protocol

    monkeypatch.syspath_prepend(str(PLUGIN))
    for name, place in STAGES.items():
        module, _, cls = place.partition(":")
        monkeypatch.setitem(protocol._registered, name, getattr(import_module(module), cls))
    for name in ("PREFECT_API_URL", "PREFECT_API_AUTH_STRING", "PREFECT_HOME", "DO_NOT_TRACK"):
        monkeypatch.setenv(name, "")  # So that what the code sets is taken back.
        monkeypatch.delenv(name)
    monkeypatch.setenv("INGOT_HOME", ui.environment["INGOT_HOME"])
    monkeypatch.setenv("PYTHONPATH", ui.environment["PYTHONPATH"])
    return ui
