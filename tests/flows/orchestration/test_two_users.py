"""Two users of one group at once on one Prefect server and one store, their umasks 022 and 077.

Alice has started the server (`ingot up`); bob knows its address and password, carol neither. The
store is made by `ingot store init --group`.
"""

from __future__ import annotations

import json
import os
import signal
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import httpx
import psutil
import pytest
from ports import any_port
from users import Team, User, make_team

from artifacts_schema.store import Store
from artifacts_schema.store.sharing import check_modes
from tests.flows.orchestration.conftest import RECIPE, Standing, install
from tests.flows.orchestration.test_team import check_terminal
from tests.flows.orchestration.test_ui_runs import stage_children

pytestmark = [pytest.mark.server, pytest.mark.full]

OUTSIDER = """
import json, os, sys, urllib.error, urllib.request
folder, api, processes, *names = sys.argv[1:]
readable, statuses = [], []
for top, _, files in os.walk(folder):
    readable += [os.path.join(top, name) for name in files]
for name in [folder, *names, *(f"/proc/{one}/environ" for one in processes.split(","))]:
    try:
        os.listdir(name) if os.path.isdir(name) else open(name).close()
        readable.append(name)
    except PermissionError:
        pass
for path in ("flow_runs/filter", "logs/filter", "artifacts/filter", "flows/filter"):
    request = urllib.request.Request(f"{api}/{path}", b"{}", {"content-type": "application/json"})
    try:
        statuses.append(urllib.request.urlopen(request).status)
    except urllib.error.HTTPError as error:
        statuses.append(error.code)
print(json.dumps([readable, statuses]))
"""


@dataclass
class Crew:
    """The users, the server that alice started, and the store of their group."""

    team: Team
    alice: User
    bob: User
    ui: Standing
    store: str
    up: tuple[str, ...]
    """The words by which the server is started."""

    @property
    def recipe(self) -> str:
        return str(self.ui.folder / "toys.yaml")

    def is_shared(self) -> bool:
        """Whether every folder and file of the store is the group's."""
        return check_modes(Store.open(self.store)) == []


@pytest.fixture(scope="module")
def crew() -> Iterator[Crew]:
    with make_team() as team:
        folder = Path(tempfile.mkdtemp(dir=team.folder))
        folder.chmod(0o755)
        paths = [install(folder)["PYTHONPATH"], team.alice.environment["PYTHONPATH"]]
        temporary = folder / "tmp"
        (temporary / "runner_storage").mkdir(parents=True)  # As after another user's worker.
        temporary.chmod(0o1777)
        variables = {"PYTHONPATH": os.pathsep.join(paths), "TMPDIR": str(temporary)}
        alice = replace(team.alice, variables=variables)
        recipe = folder / "toys.yaml"
        recipe.write_text(RECIPE)
        shared = folder / "shared"
        shared.mkdir()
        shared.chmod(0o777)
        store = str(shared / "store")
        alice.run("store", "init", store, "--group", team.name)
        up = ("up", "--port", str(any_port()), "--store", store, "--recipe", str(recipe))
        try:
            printed = alice.run(*up)
            pairs = [line.split("  ", 1) for line in printed.splitlines() if "  " in line.strip()]
            lines = {name: value.strip() for name, value in pairs}
            address = lines["Prefect UI"]
            line = (alice.home / ".ingot" / "password").read_text().strip()
            access = {"PREFECT_API_URL": f"{address}/api", "PREFECT_API_AUTH_STRING": line}
            bob = replace(team.bob, variables={**variables, **access})
            name, _, password = line.partition(":")
            with httpx.Client(base_url=f"{address}/api", auth=(name, password), timeout=60) as api:
                ui = Standing(folder, {}, api, address, lines["reports"], printed)
                yield Crew(team, alice, bob, ui, store, up)
        finally:
            alice.run("down")


class Gate:
    """A file without which `learn` does not end, and the list of its starts."""

    def __init__(self, crew: Crew, name: str) -> None:
        self.path = Path(crew.store).parent / name
        self._starts = Path(f"{self.path}.starts")
        self._starts.touch()
        self._starts.chmod(0o666)

    @property
    def starts(self) -> int:
        """How often the step has begun to learn."""
        return self._starts.read_text().count("started")

    def open(self) -> None:
        self.path.touch()


class UserRun:
    """`ingot run` of the toys by one of the users, held by a gate."""

    def __init__(self, crew: Crew, user: User, gate: Gate) -> None:
        self.crew, self.user = crew, user
        self.output = crew.ui.folder / f"{user.name}-{gate.path.name}"
        words = ("run", crew.recipe, "--store", crew.store, "--set", f"learn.gate={gate.path}")
        known = self._flow_runs(gate)
        with open(self.output, "w") as sink:
            self.process = user.start([user.python, "-P", "-m", "ingot_entry", *words], sink=sink)
        (self.id,) = crew.ui.until(lambda: self._flow_runs(gate) - known)

    def _flow_runs(self, gate: Gate) -> set[str]:
        return {
            run["id"]
            for run in self.crew.ui.post("/flow_runs/filter", {"flow_runs": {}})
            if str(gate.path) in json.dumps(run["parameters"])
        }

    @property
    def printed(self) -> str:
        return self.output.read_text()

    def end(self, seconds: float = 200) -> int:
        """The exit code, after its terminal was looked at."""
        code = self.process.wait(seconds)
        check_terminal(self.printed.splitlines())
        return code

    def kill(self) -> None:
        """Kill it and all that it started, as a machine does that is switched off."""
        process = psutil.Process(self.process.pid)
        for one in [process, *process.children(recursive=True)]:
            one.kill()
        self.process.wait(60)


@contextmanager
def opened_at_the_end(crew: Crew, name: str) -> Iterator[Gate]:
    """A gate, which a test that fails leaves open, so that nothing waits for it."""
    gate = Gate(crew, name)
    try:
        yield gate
    finally:
        gate.open()


def owners(processes: list[int]) -> set[int]:
    return {psutil.Process(process).uids().real for process in processes}


def test_both_run_one_key_and_the_step_is_made_once(crew):
    with opened_at_the_end(crew, "both") as gate:
        runs = [UserRun(crew, user, gate) for user in (crew.alice, crew.bob)]
        crew.ui.until(lambda: gate.starts == 1)
        crew.ui.until(lambda: len(stage_children(crew.store)) == 2)  # One waits for the lease.
        assert owners(stage_children(crew.store)) == {crew.alice.id, crew.bob.id}
        gate.open()
        assert [run.end() for run in runs] == [0, 0], [run.printed for run in runs]
    assert gate.starts == 1
    for run in runs:
        assert crew.ui.end_of(run.id)["state"]["type"] == "COMPLETED"
        crew.ui.until(lambda id=run.id: crew.ui.tasks(id).get("learn") == "COMPLETED")
    assert crew.is_shared()


@pytest.mark.parametrize("first", ["alice", "bob"])
def test_after_a_kill_the_other_takes_the_lease_over(crew, first):
    """The killed run is shown as crashed once its heartbeats are missed (90 seconds)."""
    one, other = (crew.alice, crew.bob) if first == "alice" else (crew.bob, crew.alice)
    with opened_at_the_end(crew, f"kill-{first}") as gate:
        killed = UserRun(crew, one, gate)
        crew.ui.until(lambda: gate.starts == 1)
        waiting = UserRun(crew, other, gate)
        crew.ui.until(lambda: len(stage_children(crew.store)) == 2)
        killed.kill()
        crew.ui.until(lambda: gate.starts == 2)
        assert owners(stage_children(crew.store)) == {other.id}
        assert crew.is_shared()
        gate.open()
        assert waiting.end() == 0, waiting.printed
    assert crew.ui.end_of(waiting.id)["state"]["type"] == "COMPLETED"
    crew.ui.until(lambda: crew.ui.state(killed.id) == "CRASHED", 200)
    assert crew.is_shared()


def test_gc_of_one_removes_the_garbage_of_the_other_and_nothing_that_runs(crew):
    with (
        opened_at_the_end(crew, "garbage") as gate,
        opened_at_the_end(crew, "runs") as running_gate,
    ):
        killed = UserRun(crew, crew.bob, gate)
        crew.ui.until(lambda: gate.starts == 1)
        running = UserRun(crew, crew.bob, running_gate)
        crew.ui.until(lambda: running_gate.starts == 1)
        killed.kill()
        left, kept = (Path(crew.store, "work", key_of(crew, one)) for one in (gate, running_gate))
        assert left.exists()
        assert kept.exists()
        crew.alice.run("gc", "--delete", "--work", "--min-age", "0", "--store", crew.store)
        assert not left.exists()
        assert kept.exists()
        running_gate.open()
        assert running.end() == 0, running.printed
    assert running_gate.starts == 1
    assert crew.is_shared()


def key_of(crew: Crew, gate: Gate) -> str:
    """The key of `learn` behind this gate, as its plan says."""
    words = ("plan", crew.recipe, "--store", crew.store, "--set", f"learn.gate={gate.path}")
    rows = json.loads(crew.alice.run(*words, "--json"))["steps"]
    (key,) = [row["key"] for row in rows if row["step"] == "learn"]
    return str(key)


def test_a_run_of_one_is_cancelled_and_the_other_goes_on(crew):
    """The cancelled one was started from a form, so that alice's worker has it."""
    with opened_at_the_end(crew, "cancel") as gate:
        cancelled = crew.ui.started(
            "pipeline/toys", store=crew.store, overrides=[f"learn.gate={gate.path}"]
        )
        crew.ui.until(lambda: gate.starts == 1)
        waiting = UserRun(crew, crew.bob, gate)
        crew.ui.until(lambda: len(stage_children(crew.store)) == 2)
        state = {"state": {"type": "CANCELLING", "name": "Cancelling"}}
        crew.ui.post(f"/flow_runs/{cancelled}/set_state", state)
        assert crew.ui.end_of(cancelled)["state"]["type"] == "CANCELLED"
        crew.ui.until(lambda: gate.starts == 2)
        assert owners(stage_children(crew.store)) == {crew.bob.id}
        gate.open()
        assert waiting.end() == 0, waiting.printed
    assert crew.ui.end_of(waiting.id)["state"]["type"] == "COMPLETED"
    assert crew.is_shared()


def test_the_server_is_killed_and_started_again_while_both_run(crew):
    with (
        opened_at_the_end(crew, "server-a") as gate_a,
        opened_at_the_end(crew, "server-b") as gate_b,
    ):
        runs = [UserRun(crew, crew.alice, gate_a), UserRun(crew, crew.bob, gate_b)]
        crew.ui.until(lambda: (gate_a.starts, gate_b.starts) == (1, 1))
        state = json.loads((crew.alice.home / ".ingot" / "prefect.json").read_text())
        os.killpg(state["process"], signal.SIGKILL)
        for run in runs:
            crew.ui.until(lambda run=run: "does not answer" in run.printed)
        crew.alice.run(*crew.up)
        for run in runs:
            crew.ui.until(lambda run=run: "answers again" in run.printed)
        gate_a.open()
        gate_b.open()
        assert [run.end() for run in runs] == [0, 0], [run.printed for run in runs]
    assert (gate_a.starts, gate_b.starts) == (1, 1)
    for run in runs:
        assert crew.ui.end_of(run.id)["state"]["type"] == "COMPLETED"
        crew.ui.until(lambda id=run.id: crew.ui.tasks(id).get("learn") == "COMPLETED")
    assert crew.is_shared()


def test_an_outsider_reads_nothing_of_store_server_and_processes(crew):
    with opened_at_the_end(crew, "outside") as gate:
        run = UserRun(crew, crew.bob, gate)
        crew.ui.until(lambda: gate.starts == 1)
        processes = [run.process.pid, *stage_children(crew.store)]
        home = crew.alice.home / ".ingot"
        carol = crew.team.carol
        words = (crew.store, f"{crew.ui.ui}/api", ",".join(map(str, processes)))
        names = (str(home / "password"), str(home / "prefect.log"), str(crew.bob.home))
        printed = carol.python_run("-c", OUTSIDER, *words, *names)
        assert json.loads(printed) == [[], [401] * 4]
        refused = carol.run("ls", "--store", crew.store, ok=False)
        assert "Traceback" not in refused
        gate.open()
        assert run.end() == 0, run.printed
