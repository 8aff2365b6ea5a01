"""Who gets into what `ingot up` starts: its owner by the password, and nobody else."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import httpx
import psutil
import pytest

pytestmark = pytest.mark.server

NOBODY = 65534
NEEDS_ROOT = pytest.mark.skipif(
    os.geteuid() != 0, reason="needs root, to act as a second user of the machine"
)
STRANGER = """
import base64, json, os, sys, urllib.error, urllib.request

api, reports, home, marker, processes = sys.argv[1:5] + [sys.argv[5].split(",")]
def call(url, body=None, credentials=None):
    headers = {"content-type": "application/json"}
    if credentials is not None:
        headers["authorization"] = "Basic " + base64.b64encode(credentials.encode()).decode()
    data = None if body is None else json.dumps(body).encode()
    try:
        urllib.request.urlopen(urllib.request.Request(url, data, headers), timeout=30)
        return 200
    except urllib.error.HTTPError as error:
        return error.code

call(api + "/health")  # Python may lie where only root reads, so all modules are loaded first.
os.setgroups([])
os.setgid(65534)
os.setuid(65534)
seen = {"user": os.geteuid(), "statuses": [], "read": []}
command = {"command": f"touch {marker}", "env": {}}
id = "00000000-0000-0000-0000-000000000000"
for credentials in (None, "", "ingot:", "ingot:wrong", ":", "admin:pass", "x" * 20_000):
    for path, body in [
        ("/flows/", {"name": "theirs"}),
        ("/deployments/", {"name": "d", "flow_id": id, "work_pool_name": "ingot",
                           "entrypoint": "os.system", "job_variables": command}),
        (f"/deployments/{id}/create_flow_run", {"job_variables": command}),
        ("/deployments/name/pipeline/toys", None),
        ("/work_pools/ingot", None), ("/admin/settings", None), ("/admin/version", None),
        ("//flows/filter", {}), ("/../api/flows/filter", {}), ("/docs", None),
    ]:
        seen["statuses"].append(call(api + path, body, credentials))
    seen["statuses"].append(call(reports + "/toys.html", None, credentials))
places = [f"{home}/password", f"{home}/prefect/prefect.db", f"{home}/prefect.log"]
places += [f"/proc/{process}/environ" for process in processes]
for place in places:
    try:
        open(place, "rb").read()
        seen["read"].append(place)
    except OSError:
        pass
print(json.dumps(seen))
"""


def processes_of(ui):
    """Server, reports, worker, and what they have started."""
    own = [
        psutil.Process(json.loads(ui.state_file(name))["process"])
        for name in ("prefect", "reports", "worker")
    ]
    return [*own, *(child for process in own for child in process.children(recursive=True))]


@pytest.mark.full
@NEEDS_ROOT
def test_another_user_of_the_machine_reads_nothing_and_starts_nothing(ui):
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o777)
        marker = Path(folder, "pwned")
        processes = ",".join(str(process.pid) for process in processes_of(ui))
        done = subprocess.run(
            [sys.executable, "-I", "-c", STRANGER,
             f"{ui.ui}/api", ui.reports, str(ui.folder / "home"), str(marker), processes],
            cwd="/", capture_output=True, text=True, timeout=120,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        seen = json.loads(done.stdout)
        assert (seen["user"], seen["read"]) == (NOBODY, [])
        assert len(seen["statuses"]) == 77
        assert set(seen["statuses"]) == {401}
        assert not marker.exists()
    assert ui.post("/flows/filter", {"flows": {"name": {"any_": ["theirs"]}}}) == []


@NEEDS_ROOT
def test_the_file_alone_keeps_another_user_out_where_its_folder_does_not():
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder, "home")
        make = "from flows.orchestration.local_state import make_password; make_password()"
        environment = {**os.environ, "INGOT_HOME": str(home)}
        subprocess.run([sys.executable, "-c", make], env=environment, check=True)
        os.chmod(folder, 0o755)
        home.chmod(0o755)
        read = subprocess.run(
            ["cat", home / "password"], user=NOBODY, group=NOBODY, extra_groups=[],
            capture_output=True, text=True,
        )  # fmt: skip
        assert "Permission denied" in read.stderr
        assert read.stdout == ""


def test_what_the_server_writes_is_its_owners_alone(ui):
    folder = ui.folder / "home" / "prefect"
    database = folder / "prefect.db"
    assert [path.stat().st_mode & 0o077 for path in (folder, database)] == [0, 0]


def test_the_owner_gets_in_and_probes_need_no_password(ui):
    assert ui.get("/admin/version")
    for path in ("health", "ready"):
        assert httpx.get(f"{ui.ui}/api/{path}").status_code == 200
        assert httpx.post(f"{ui.ui}/api/{path}").status_code == 401
    assert httpx.get(f"{ui.ui}/ui-settings").json()["auth"] == "BASIC"


@pytest.mark.parametrize("path", ["events/in", "events/out", "logs/out"])
@pytest.mark.parametrize("token", [None, "", "ingot:wrong"])
def test_a_websocket_needs_the_password_in_its_first_message(ui, path, token):
    opened = asyncio.run(first_answer(ui, path, token))
    assert opened != {"type": "auth_success"}
    if token is None:
        assert asyncio.run(first_answer(ui, path, ui.password)) == {"type": "auth_success"}


async def first_answer(ui, path, token):
    """What a websocket answers to its first message; None if it closes instead."""
    import websockets

    address = f"{ui.ui.replace('http', 'ws')}/api/{path}"
    try:
        async with websockets.connect(address, subprotocols=["prefect"]) as socket:
            await socket.send(json.dumps({"type": "auth", "token": token}))
            return json.loads(await asyncio.wait_for(socket.recv(), 30))
    except websockets.WebSocketException:
        return None


@pytest.mark.full
def test_the_password_stands_in_its_file_and_nowhere_else(ui, tmp_path):
    """After a run from a form and one from the terminal: no store, log, database or command."""
    store = tmp_path / "store"
    run = ui.end_of(ui.started("pipeline/toys", store=str(store), through="numbers"))
    assert run["state"]["type"] == "COMPLETED"
    words = ("run", str(ui.folder / "toys.yaml"), "--store", str(store))
    done = ui.ingot(*words, PREFECT_LOGGING_LEVEL="DEBUG")
    assert done.returncode == 0, done.stderr
    _, _, secret = ui.password.partition(":")
    basic = httpx.BasicAuth("ingot", secret)._auth_header.split()[1]
    said = done.stdout + done.stderr + ui.said
    for process in psutil.process_iter(["cmdline"]):
        said += " ".join(process.info["cmdline"] or [])
    files = [path for top in (ui.folder, store) for path in top.rglob("*") if path.is_file()]
    assert len(files) > 20
    for wanted in (secret, basic[8:-4]):
        assert wanted not in said
        holding = [path for path in files if wanted.encode() in path.read_bytes()]
        assert holding == ([ui.password_file] if wanted == secret else [])


def test_a_stage_is_not_given_the_password(ui, monkeypatch):
    from stages.engine.spec import StageSpec, child_environment

    monkeypatch.setenv("PREFECT_API_AUTH_STRING", ui.password)
    spec = StageSpec.__new__(StageSpec)
    object.__setattr__(spec, "execution", {})
    assert ui.password not in child_environment(spec).values()


@pytest.mark.full
def test_a_changed_or_deleted_file_is_one_line_and_the_server_goes_on(ui):
    file, kept = ui.password_file, ui.password_file.read_text()
    aside = file.with_name("aside")
    up = ("up", "--store", str(ui.folder / "store"))
    try:
        file.rename(aside)
        gone = ui.ingot(*up)
        file.write_text("ingot:" + "x" * 43 + "\n")
        file.chmod(0o600)
        changed = ui.ingot("schedule", "--list")
        also = ui.ingot(*up)
    finally:
        aside.replace(file)
    for said, problem in ((gone, "is gone"), (changed, "another password"), (also, "another pass")):
        assert said.returncode == 1
        assert len(said.stderr.splitlines()) == 1
        assert problem in said.stderr
        assert str(file) in said.stderr
        assert "ingot down" in said.stderr
        assert "Traceback" not in said.stderr
    assert file.read_text() == kept
    assert ui.ingot("schedule", "--list").returncode == 0
