"""`ingot up --database` on a real PostgreSQL: runs, kills, outages, retention, limits, secrets."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import httpx
import psutil
import pytest
from certificates import certificate_for
from postgres_server import HOST, postgres_server

from artifacts_schema.errors import UsageError
from artifacts_schema.store import Store
from flows.orchestration.database import Database
from tests.flows.orchestration.conftest import brought_up
from tests.flows.orchestration.test_access import processes_of
from tests.flows.orchestration.test_ui_runs import stage_children

pytestmark = [pytest.mark.server, pytest.mark.full]
BOTH = {"numbers": "COMPLETED", "learn": "COMPLETED"}
OUTAGE_SECONDS = float(os.environ.get("INGOT_TEST_OUTAGE_SECONDS", "10"))
"""How long PostgreSQL is away in the test of a long outage."""


class TerminalRun:
    """`ingot run` of the toys, held by a gate, in a process of its own."""

    def __init__(self, ui, folder, *words):
        self.ui, self.gate, self.store = ui, folder / "gate", str(folder / "store")
        self.output = folder / "output"
        command = [
            sys.executable, "-c", "from flows.cli.main import main; main()",
            "run", str(ui.folder / "toys.yaml"), "--store", self.store,
            "--set", f"learn.gate={self.gate}", *words,
        ]  # fmt: skip
        with open(self.output, "w") as sink:
            self.process = subprocess.Popen(
                command, env=ui.environment, stdin=subprocess.DEVNULL, stdout=sink, stderr=sink
            )
        self.wait_for_gate()
        self.id = ui.until(self._flow_run)

    def wait_for_gate(self):
        done = Path(self.store)
        self.ui.until(lambda: len(list(done.glob("work/*/done/*/*.json"))) == 2)

    def _flow_run(self):
        for run in self.ui.post("/flow_runs/filter", {"flow_runs": {}}):
            if run["parameters"].get("store") == self.store:
                return run["id"]
        return None

    def end(self, seconds=200):
        """The exit code and all lines of the terminal."""
        self.gate.touch()
        code = self.process.wait(seconds)
        return code, self.output.read_text().splitlines()


def check_terminal(lines):
    """Nothing of Prefect's own is on the terminal of a run."""
    text = "\n".join(lines)
    for word in ("Traceback", "httpx", "websocket", "prefect.", "asyncpg", "Error"):
        assert word not in text, text


def check_processes(ui, secret):
    """No command line holds the secret, and no environment of what `ingot up` started."""
    for process in psutil.process_iter(["cmdline"]):
        assert secret not in " ".join(process.info["cmdline"] or [])
    for process in processes_of(ui):
        assert secret.encode() not in Path(f"/proc/{process.pid}/environ").read_bytes()


def test_a_recipe_runs_from_its_deployment(team, tmp_path):
    ui = team.ui
    run = ui.end_of(ui.started("pipeline/toys", store=str(tmp_path / "store")))
    assert run["state"]["type"] == "COMPLETED"
    ui.until(lambda: ui.tasks(run["id"]) == BOTH)
    assert team.postgres.sql(
        f"select state_type from flow_run where id = '{run['id']}'", "prefect"
    ) == ("COMPLETED")
    assert "database" in ui.said
    assert team.url in ui.said


def test_the_password_of_the_database_stands_in_its_file_alone(team, tmp_path):
    ui, store = team.ui, tmp_path / "store"
    run = ui.end_of(ui.started("pipeline/toys", store=str(store), through="numbers"))
    assert run["state"]["type"] == "COMPLETED"
    words = ("run", str(ui.folder / "toys.yaml"), "--store", str(store))
    done = ui.ingot(*words, PREFECT_LOGGING_LEVEL="DEBUG")
    assert done.returncode == 0, done.stderr
    secret = team.postgres.password
    settings = ui.api.get("/admin/settings").text
    assert secret not in done.stdout + done.stderr + ui.said + settings
    check_processes(ui, secret)
    files = [path for top in (ui.folder, store) for path in top.rglob("*") if path.is_file()]
    assert len(files) > 20
    holding = [path for path in files if secret.encode() in path.read_bytes()]
    assert holding == [team.password_file]


def test_a_passfile_of_libpq_serves_too_and_later_commands_remember_it(team, tmp_path):
    url = team.postgres.make_database("second")
    passfile = team.postgres.passfile(tmp_path / "passes")
    with brought_up(tmp_path, "--database", url, PGPASSFILE=str(passfile)) as ui:
        run = ui.end_of(ui.started("pipeline/toys", store=str(tmp_path / "s"), through="numbers"))
        assert run["state"]["type"] == "COMPLETED"
        check_processes(ui, team.postgres.password)
        assert ui.ingot("down").returncode == 0
        del ui.environment["PGPASSFILE"]
        words = ("run", str(ui.folder / "toys.yaml"), "--store", str(tmp_path / "s"))
        done = ui.ingot(*words)
        assert done.returncode == 0, done.stderr
    assert team.postgres.sql("select count(*) from flow_run", "second") == "2"


def test_the_password_goes_over_tls_to_a_server_whose_name_is_proved(tmp_path, monkeypatch):
    """PostgreSQL lets nobody in without TLS; its certificate is signed by an authority of ours."""
    for name in ("PGPASSFILE", "PGPASSWORD", "PGSSLROOTCERT"):
        monkeypatch.delenv(name, raising=False)
    folder, store = tmp_path / "ui", tmp_path / "store"
    folder.mkdir()
    with postgres_server() as postgres:
        url = postgres.make_database("private")
        signed, other = (certificate_for(HOST, tmp_path / name) for name in ("ours", "theirs"))
        postgres.use_tls(signed.certificate, signed.key)
        file = postgres.password_file(tmp_path / "password")
        words = ("--database", f"{url}?sslmode=verify-full", "--password-file", str(file))
        with brought_up(folder, *words, PGSSLROOTCERT=str(signed.authority)) as ui:
            run = ui.end_of(ui.started("pipeline/toys", store=str(store)))
            assert run["state"]["type"] == "COMPLETED"
            count = "select count(*) from pg_stat_ssl join pg_stat_activity using (pid) "
            assert int(postgres.sql(f"{count} where datname = 'private' and ssl")) > 0
            assert postgres.sql(f"{count} where datname = 'private' and not ssl") == "0"
            check_processes(ui, postgres.password)
            written = [path for top in (folder, store) for path in top.rglob("*") if path.is_file()]
            assert len(written) > 20
            secret = postgres.password.encode()
            assert not [path for path in [*written, postgres.folder / "log"]
                        if secret in path.read_bytes()]  # fmt: skip
        named_otherwise = url.replace(HOST, "localhost")
        for place, trusted, why in (
            (f"{url}?sslmode=verify-full", other, "unable to get local issuer"),
            (f"{named_otherwise}?sslmode=verify-full", signed, "not valid for 'localhost'"),
            (f"{url}?sslmode=disable", signed, "by none of its rules.*hostssl"),
        ):
            monkeypatch.setenv("PGSSLROOTCERT", str(trusted.authority))
            with pytest.raises(UsageError, match=why) as caught:
                Database.parse(place, file).check()
            assert postgres.password not in str(caught.value)


def test_a_request_without_the_password_and_a_run_with_an_old_one_are_refused(team, tmp_path):
    ui = team.ui
    assert httpx.post(f"{ui.ui}/api/flows/filter", json={}).status_code == 401
    elsewhere = {"PREFECT_API_URL": f"{ui.ui}/api", "INGOT_HOME": str(tmp_path / "home")}
    words = ("run", str(ui.folder / "toys.yaml"), "--store", str(tmp_path / "store"))
    old = ui.ingot(*words, **elsewhere, PREFECT_API_AUTH_STRING="ingot:old")
    none = ui.ingot(*words, **elsewhere, PREFECT_API_AUTH_STRING="")
    assert (old.returncode, none.returncode) == (2, 2)
    assert "rejects this password" in old.stderr.splitlines()[-1]
    assert "asks for a password" in none.stderr.splitlines()[-1]
    new = ui.ingot(*words, **elsewhere, PREFECT_API_AUTH_STRING=ui.password)
    assert new.returncode == 0, new.stderr


def test_settings_are_not_changed_under_a_running_server(team):
    done = team.ui.ingot("up", "--keep-days", "3")
    assert done.returncode == 2
    assert f"runs with other settings, in {team.url}" in done.stderr
    again = team.ui.ingot("up", "--recipe", str(team.ui.folder / "toys.yaml"))
    assert again.returncode == 0, again.stderr
    assert team.url in again.stdout


def test_a_server_that_is_killed_and_started_again_shows_the_end_of_the_run(team, tmp_path):
    ui = team.ui
    run = TerminalRun(ui, tmp_path)
    server = json.loads(ui.state_file("prefect"))["process"]
    os.killpg(server, signal.SIGKILL)
    ui.until(lambda: "does not answer" in run.output.read_text())
    port = ui.ui.rsplit(":", 1)[1]
    up = ui.ingot("up", "--port", port, "--recipe", str(ui.folder / "toys.yaml"))
    assert up.returncode == 0, up.stderr
    assert team.url in up.stdout, "the same database as before"
    ui.until(lambda: "answers again" in run.output.read_text())
    code, lines = run.end()
    assert code == 0, lines
    check_terminal(lines)
    assert ui.end_of(run.id)["state"]["type"] == "COMPLETED"
    ui.until(lambda: ui.tasks(run.id) == BOTH)


@pytest.mark.parametrize("step_ends", ["while it is away", "when it is back"])
def test_a_run_outlives_an_outage_of_the_database_and_the_ui_catches_up(team, tmp_path, step_ends):
    ui = team.ui
    run = TerminalRun(ui, tmp_path)
    log = ui.folder / "home" / "prefect.log"
    before = log.stat().st_size
    team.postgres.stop()
    try:
        ui.until(lambda: "does not answer" in run.output.read_text())
        assert ui.api.get("/ready").status_code == 503
        assert ui.api.get("/health").status_code == 200
        if step_ends == "while it is away":
            run.gate.touch()
            ui.until(lambda: "learn: made" in run.output.read_text())
    finally:
        team.postgres.start()
    code, lines = run.end()
    assert code == 0, lines
    check_terminal(lines)
    assert ui.end_of(run.id)["state"]["type"] == "COMPLETED"
    ui.until(lambda: ui.tasks(run.id) == BOTH)
    assert log.stat().st_size - before < 100_000, "a line a minute, not a traceback an attempt"


@pytest.mark.timeout(900 + 3 * OUTAGE_SECONDS)
def test_no_run_and_no_state_is_lost_while_the_database_is_away_for_long(team, tmp_path):
    """Of a form and of two terminals, one of which has its last step end while it is away; a run
    that begins then says in one line why it cannot, and starts nothing."""
    ui, form_gate, form_store = team.ui, tmp_path / "gate", str(tmp_path / "form")
    (tmp_path / "during").mkdir()
    (tmp_path / "after").mkdir()
    overrides = [f"learn.gate={form_gate}"]
    by_form = ui.started("pipeline/toys", store=form_store, overrides=overrides)
    ui.until(lambda: len(list(Path(form_store).glob("work/*/done/*/*.json"))) == 2)
    during, after = (TerminalRun(ui, tmp_path / name) for name in ("during", "after"))
    team.postgres.stop()
    until = time.monotonic() + OUTAGE_SECONDS
    try:
        for run in (during, after):
            ui.until(lambda run=run: "does not answer" in run.output.read_text())
        during.gate.touch()
        form_gate.touch()
        new = str(tmp_path / "new")
        refused = ui.ingot("run", str(ui.folder / "toys.yaml"), "--store", new)
        assert refused.returncode != 0
        assert sum(line.startswith("error:") for line in refused.stderr.splitlines()) == 1
        check_terminal(refused.stderr.replace("error:", "").splitlines())
        assert stage_children(new) == []
        time.sleep(max(0.0, until - time.monotonic()))
    finally:
        team.postgres.start()
    ends = [run.end(400) for run in (during, after)]
    assert [code for code, _ in ends] == [0, 0], ends
    for _, lines in ends:
        check_terminal(lines)
        assert sum("does not answer" in line for line in lines) == 1
    for gate in (form_gate, during.gate, after.gate):
        assert Path(f"{gate}.starts").read_text().count("started") == 1
    for run in (by_form, during.id, after.id):
        assert ui.end_of(run)["state"]["type"] == "COMPLETED"
        ui.until(lambda run=run: ui.tasks(run) == BOTH)
    for store in (form_store, during.store, after.store):
        assert {one.stage for one in Store.open(store).manifests()} == {"ui_numbers", "ui_learn"}


def test_a_request_waits_for_the_database_and_is_answered(team):
    team.postgres.stop()
    try:
        with httpx.Client(base_url=f"{team.ui.ui}/api", auth=team.ui.api.auth) as client:
            request = client.build_request("POST", "/flow_runs/filter", json={"limit": 1})
            from concurrent.futures import ThreadPoolExecutor

            with ThreadPoolExecutor(1) as pool:
                waiting = pool.submit(client.send, request)
                team.postgres.start()
                assert waiting.result(60).status_code == 200
    finally:
        if not team.postgres.is_running():
            team.postgres.start()


def test_event_and_clock_at_the_same_time_run_the_recipe_once(team, tmp_path):
    ui, store, gate = team.ui, str(tmp_path / "store"), tmp_path / "gate"
    recipe = str(ui.folder / "toys.yaml")
    done = ui.ingot(
        "schedule", recipe, "--on-snapshot", "crawl-*", "--cron", "* * * * *",
        "--set", f"learn.gate={gate}", "--store", store,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr

    def runs():
        body = {"deployments": {"name": {"any_": ["toys"]}}}
        found = ui.post("/flow_runs/filter", body)
        return [run for run in found if run["parameters"].get("store") == store]

    try:
        folder = tmp_path / "crawls" / "2024-30"
        folder.mkdir(parents=True)
        (folder / "a.txt").write_text("text\n")
        taken = ui.ingot(
            "snapshot", "watch", str(folder.parent), "--series", "crawl", "--once",
            "--settle", "0.01", "--store", store,
        )  # fmt: skip
        assert taken.returncode == 0, taken.stderr
        assert "no event" not in taken.stderr
        ui.until(lambda: sum(run["state"]["type"] == "RUNNING" for run in runs()) == 2, 150)
        ui.until(lambda: len(stage_children(store)) == 2)  # One of them waits for the lease.
        running = {run["id"] for run in runs() if run["state"]["type"] == "RUNNING"}
    finally:
        gate.touch()
        assert ui.ingot("schedule", recipe, "--remove").returncode == 0
    assert {ui.end_of(run)["state"]["type"] for run in running} == {"COMPLETED"}
    assert Path(f"{gate}.starts").read_text().count("started") == 1
    started_by = {bool(run["auto_scheduled"]) for run in runs() if run["id"] in running}
    assert started_by == {True, False}, "one by the clock, one by the event"


def test_runs_that_ended_long_ago_go_and_others_stay(team, tmp_path):
    ui = team.ui
    old, new = (
        ui.end_of(ui.started("pipeline/toys", store=str(tmp_path / "s"), through="numbers"))["id"]
        for _ in range(2)
    )
    running = TerminalRun(ui, tmp_path)
    age = "interval '91 days'"
    for run in (old, running.id):
        team.postgres.sql(
            f"update flow_run set start_time = now() - {age}, "
            f"end_time = case when end_time is null then null else now() - {age} end "
            f"where id = '{run}'",
            "prefect",
        )
    ui.until(lambda: ui.api.get(f"/flow_runs/{old}").status_code == 404)
    assert ui.state(new) == "COMPLETED"
    assert ui.state(running.id) == "RUNNING"
    assert running.end()[0] == 0


def test_a_pool_runs_as_many_at_a_time_as_its_limit_says(team, tmp_path):
    ui = team.ui
    gates = [tmp_path / f"gate{n}" for n in range(3)]
    asked = [
        ui.started("pipeline/toys", store=str(tmp_path / f"s{n}"), overrides=[f"learn.gate={gate}"])
        for n, gate in enumerate(gates)
    ]

    def running():
        return [run for run in asked if ui.state(run) == "RUNNING"]

    ui.until(lambda: len(running()) == 2)
    time.sleep(8)  # The worker asks for runs every two seconds.
    first = running()
    assert len(first) == 2
    for gate in gates:
        gate.touch()
    assert {ui.end_of(run)["state"]["type"] for run in asked} == {"COMPLETED"}
