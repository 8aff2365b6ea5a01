"""Clusters that Ingot starts: who reaches them, what their files say, what stages make there."""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import pytest

pytest.importorskip("distributed", reason="needs pip install 'ingot[dask]'")

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))
from dask_server import machines_may_be_slow  # noqa: E402, F401
from dask_toy import Squares  # noqa: E402

from artifacts_schema.config import MapExecution  # noqa: E402
from artifacts_schema.errors import UsageError  # noqa: E402
from artifacts_schema.store import Store  # noqa: E402
from stages.engine.dask_cluster import Scheduler  # noqa: E402

SECONDS = 90.0
ENTER = """
import os, sys
from distributed import Client
from distributed.security import Security
user, address, *own = sys.argv[1:]
if int(user):
    os.setgid(int(user)), os.setuid(int(user))
try:
    Client(address, timeout=3, security=Security(
        tls_ca_file=own[0], tls_client_cert=own[0], tls_client_key=own[1]) if own else None)
except BaseException as error:
    sys.exit(f"refused: {type(error).__name__}: {error}")
print("inside")
"""


@pytest.fixture
def store(tmp_path):
    return Store.open(str(tmp_path / "store"))


@contextmanager
def started(folder: Path, *options: str, environment=None):
    """`ingot dask` in a process of its own, once its scheduler file is there."""
    path = folder / "scheduler.json"
    process = subprocess.Popen(
        [sys.executable, "-m", "ingot_entry", "dask", str(folder), *options],
        env={**os.environ, "PYTHONPATH": str(HERE), "OMP_NUM_THREADS": "1", **(environment or {})},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        end = time.monotonic() + SECONDS
        while not path.exists():
            assert process.poll() is None, process.stdout.read()
            assert time.monotonic() < end, "it does not start"
            time.sleep(0.05)
        yield str(path)
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(SECONDS)
        finally:
            process.kill()


@pytest.fixture(scope="module")
def local(tmp_path_factory):
    with started(tmp_path_factory.mktemp("cluster") / "own", "--workers", "1:2") as path:
        yield path


def test_a_stage_runs_on_a_cluster_that_ingot_started(local, run_stage, tmp_path):
    execution = {"engine": "dask", "scheduler_file": local, "workers": None}
    config = {"happens": [""] * 5, "folder": str(tmp_path)}
    there = run_stage(Squares, config, execution=execution)
    here = run_stage(Squares, config, execution={"workers": 1}, force=True)
    assert here.outputs == there.outputs
    assert there.telemetry["dask_workers"] >= 1


def test_its_files_are_of_their_owner_alone(local):
    folder = Path(local).parent
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    modes = {
        path.name: stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir() if path.is_file()
    }
    assert modes == dict.fromkeys(("ca.pem", "certificate.pem", "key.pem", "scheduler.json"), 0o600)
    assert json.loads(Path(local).read_text())["address"].startswith("tls://127.0.0.1:")


def test_another_user_of_the_machine_cannot_submit_to_it(local, tmp_path):
    """Without the certificate, with one of their own making, and with the owner's files."""
    from distributed.security import Security

    theirs = Security.temporary()
    tmp_path.chmod(0o755)
    for name in ("tls_client_cert", "tls_client_key"):
        (tmp_path / name).write_text(getattr(theirs, name))
    address = json.loads(Path(local).read_text())["address"]
    forged = [str(tmp_path / "tls_client_cert"), str(tmp_path / "tls_client_key")]
    owned = [str(Path(local).parent / name) for name in ("certificate.pem", "key.pem")]
    for attempt in ([address], [address.replace("tls", "tcp")], [address, *forged]):
        ran = enter(attempt)
        assert ran.returncode != 0
        assert "inside" not in ran.stdout
    assert enter([address, *owned]).stdout == "inside\n"
    if os.geteuid() == 0:
        ran = enter([address, *owned], user=65534)
        assert "PermissionError" in ran.stderr
        assert "inside" not in ran.stdout


def enter(arguments, user=0):
    """Try to become a client of a cluster, as another user where one is named."""
    return subprocess.run(
        [sys.executable, "-c", ENTER, str(user), *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        cwd="/",
        env={"PATH": os.environ["PATH"], "HOME": "/"},
    )


def test_a_second_cluster_does_not_take_the_folder_of_one_that_runs(local):
    ran = subprocess.run(
        [sys.executable, "-m", "ingot_entry", "dask", str(Path(local).parent)],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert ran.returncode == 2
    assert "may still run" in ran.stderr
    assert Path(local).exists()


def test_a_folder_that_others_can_enter_is_left_as_it_is(tmp_path):
    from stages.engine.dask_cluster import ClusterPlan, start_cluster

    tmp_path.chmod(0o755)
    with pytest.raises(UsageError, match="others can enter"):
        start_cluster(ClusterPlan("local", 1, 1), tmp_path)
    assert stat.S_IMODE(tmp_path.stat().st_mode) == 0o755
    assert list(tmp_path.iterdir()) == []


def test_a_cluster_that_does_not_start_leaves_no_key(tmp_path):
    from stages.engine.dask_cluster import ClusterPlan, start_cluster

    pytest.importorskip("dask_jobqueue")
    with pytest.raises(UsageError, match="how much memory"):
        start_cluster(ClusterPlan("slurm", 1, 1), tmp_path / "own")
    assert list((tmp_path / "own").iterdir()) == []


def test_its_files_go_with_it(tmp_path):
    with started(tmp_path / "own", "--workers", "1") as path:
        assert Path(path).exists()
    assert [one.name for one in (tmp_path / "own").iterdir() if one.is_file()] == []


@pytest.mark.parametrize(
    ("text", "named"),
    [
        (None, "there is no scheduler file"),
        ("{", "no scheduler is named"),
        ("[]", "no scheduler is named"),
        ('{"address": "tcp://10.0.0.1:8786"}', "allow_plain_tcp"),
        ('{"address": "tls://head:8786", "tls": {"ca": "a"}}', "no scheduler is named"),
        (
            '{"address": "tls://h:1", "tls": {"ca": "../a", "certificate": "b", "key": "c"}}',
            "beside the scheduler file",
        ),
    ],
)
def test_a_file_that_names_no_protected_scheduler_is_refused(tmp_path, text, named):
    path = tmp_path / "scheduler.json"
    if text is not None:
        path.write_text(text)
    with pytest.raises(UsageError, match=named) as caught:
        Scheduler.load(str(path), allow_plain_tcp=False)
    assert caught.value.where == str(path)


def test_the_file_of_dask_itself_is_read(tmp_path):
    path = tmp_path / "scheduler.json"
    path.write_text('{"type": "Scheduler", "address": "tcp://127.0.0.1:8786", "workers": {}}')
    assert Scheduler.load(str(path), allow_plain_tcp=False).address == "tcp://127.0.0.1:8786"


@pytest.mark.parametrize("address", ["tcp://head:8786", "tcp://10.0.0.1:8786"])
def test_a_scheduler_beyond_loopback_without_tls_is_refused_unless_it_is_allowed(address):
    execution = {"engine": "dask", "scheduler": address}
    with pytest.raises(UsageError, match="run programs on its workers"):
        MapExecution.parse(execution, where="x")
    allowed = MapExecution.parse({**execution, "allow_plain_tcp": True}, where="x")
    assert allowed.scheduler == address


def test_two_names_of_a_scheduler_are_refused():
    with pytest.raises(UsageError, match="exclude each other"):
        MapExecution.parse({"scheduler": "tls://a:1", "scheduler_file": "b"}, where="x")


def test_workers_are_started_without_dasks_profiler(tmp_path):
    import dask
    from distributed import Client

    with started(tmp_path / "cluster", "--workers", "1") as path:
        scheduler = Scheduler.load(path, allow_plain_tcp=False)
        with Client(scheduler.address, security=scheduler.security(), set_as_default=False) as one:
            one.wait_for_workers(1, timeout=SECONDS)
            answers = one.run(dask.config.get, "distributed.worker.profile.enabled")
    assert list(answers.values()) == [False]
