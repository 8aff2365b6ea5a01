"""A stage as a child process: exit codes, attach, stop, and what is left after a kill."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from artifacts_schema.errors import EXIT_OK, EXIT_RESUME, EXIT_USAGE, StoreError, UsageError
from artifacts_schema.store import Store
from artifacts_schema.store.lease import Lease, local_work
from stages.engine.protocol import register
from stages.engine.runner import run_stage as run_spec
from stages.engine.spec import StageSpec, last_error, start_child

sys.path.insert(0, str(Path(__file__).parent))
from toy import Make


@pytest.fixture
def toys(monkeypatch, tmp_path):
    """Make the toy stages known to child processes by an entry point of their own."""
    register(Make)
    info = tmp_path / "site" / "toys-1.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: toys\nVersion: 1\n")
    (info / "entry_points.txt").write_text("[ingot.stages]\ntoy_make = toy:Make\n")
    path = os.pathsep.join([str(info.parent), str(Path(__file__).parent)])
    monkeypatch.setenv("PYTHONPATH", path)


def run_toy(store, spec, *options):
    """`python -m stages toy_make` on a spec file, to its end."""
    command = [sys.executable, "-P", "-m", "stages", "toy_make"]
    return subprocess.run(
        [*command, "--store", store.url, "--spec", str(spec), *options],
        capture_output=True,
        text=True,
        timeout=60,
    )


def test_a_child_commits_and_its_events_reach_the_parent(store, toys):
    spec = StageSpec.make(Make, {"shards": 2}, {}, {"workers": 1})
    child = start_child(store, spec)
    assert child.wait(60) == EXIT_OK, child.output.read_text()
    assert child.last_words() == f"made toy_make {spec.key[:12]}"
    assert store.manifest("toy_make", spec.key) is not None


def test_another_key_on_the_node_is_refused(store, toys, tmp_path):
    spec = tmp_path / "spec.json"
    spec.write_bytes(StageSpec.make(Make, {}, {}).to_json())
    ran = run_toy(store, spec, "--key", "0" * 64)
    assert ran.returncode == EXIT_USAGE
    assert ran.stderr.startswith("error: toy_make: the key here is")


def test_a_key_may_be_given_by_its_first_digits(store, toys, tmp_path):
    spec, path = StageSpec.make(Make, {}, {}), tmp_path / "spec.json"
    path.write_bytes(spec.to_json())
    assert run_toy(store, path, "--key", spec.key[:12].upper()).returncode == EXIT_OK
    for given in (spec.key, spec.key[:8]):
        spec.check_key(given)
    for wrong in (spec.key[:7], "", "g" * 12, spec.key + "0"):
        with pytest.raises(UsageError, match=f"'{wrong}'.*8.*64"):
            spec.check_key(wrong)
    other = spec.key[:20] + ("0" if spec.key[20] != "0" else "1") + spec.key[21:]
    with pytest.raises(UsageError) as caught:
        spec.check_key(other)
    here, expected = re.findall("[0-9a-f]{8,64}", caught.value.what)
    assert here != expected
    assert (spec.key.startswith(here), other.startswith(expected)) == (True, True)


def test_a_place_without_a_store_gets_none(toys, tmp_path):
    """A volume that is not mounted on the node looks like an empty folder, or like none."""
    spec = tmp_path / "spec.json"
    spec.write_bytes(StageSpec.make(Make, {}, {}).to_json())
    (tmp_path / "empty").mkdir()
    for place in (tmp_path / "empty", tmp_path / "none" / "store"):
        ran = run_toy(Store(str(place)), spec)
        assert ran.returncode == StoreError.exit_code
        assert ran.stderr.splitlines()[-1].startswith(f"error: {place}: no store here")
        assert "mounted" in ran.stderr
    assert not (tmp_path / "none").exists()
    assert list((tmp_path / "empty").iterdir()) == []


def test_a_spec_that_is_not_one_is_a_usage_error(store, toys, tmp_path):
    spec = tmp_path / "spec.json"
    spec.write_text('{"stage": "toy_make", "config": {"shard": 2}}')
    ran = run_toy(store, spec)
    assert ran.returncode == EXIT_USAGE
    assert "unknown key 'shard', did you mean 'shards'?" in ran.stderr


@pytest.mark.parametrize(
    "raw",
    [
        b"[" * 100_000,
        b'{"stage": ["x"], "config": {}}',
        b'{"stage": "toy_make", "config": [1]}',
        b'{"stage": "toy_make", "config": {}, "execution": [1]}',
        b"[]",
    ],
    ids=["deep", "stage", "config", "execution", "list"],
)
def test_json_that_is_no_spec_is_a_usage_error(raw):
    with pytest.raises(UsageError) as caught:
        StageSpec.from_json(raw, where="spec.json")
    assert caught.value.where == "spec.json"


def test_a_child_waits_for_a_living_run_and_ends_kindly_when_told(store, toys):
    spec = StageSpec.make(Make, {}, {}, {"workers": 1})
    held = Lease.take(store.backend, spec.key)
    child = start_child(store, spec)
    log = local_work(store.backend, spec.key, "log.txt")
    waited = threading.Event()
    for _ in range(600):
        if log.exists() and "waiting for it" in log.read_text():
            waited.set()
            break
        waited.wait(0.1)
    assert waited.is_set(), child.output.read_text()
    assert child.stop() == EXIT_RESUME
    held.release()
    assert run_spec(store, spec).manifest.key == spec.key


def test_a_killed_run_is_taken_over_at_once(store, toys):
    """The dead process is on this machine, so nobody waits for a heartbeat to go stale."""
    spec = StageSpec.make(Make, {}, {}, {"workers": 1})
    program = (
        "import os, sys, signal; from artifacts_schema.store import Store;"
        "from artifacts_schema.store.lease import Lease;"
        "Lease.take(Store.open(sys.argv[1]).backend, sys.argv[2]);"
        "os.kill(os.getpid(), signal.SIGKILL)"
    )
    killed = subprocess.run([sys.executable, "-c", program, store.url, spec.key], timeout=60)
    assert killed.returncode == -signal.SIGKILL
    assert not store.work_state(spec.key).running
    assert not run_spec(Store.open(store.url), spec).reused


@pytest.mark.parametrize(
    ("printed", "error"),
    [
        ("made x\n", "made x"),
        ("W1124 17:03:10.514000 18644 torch/utils.py:630] soon deprecated\n", ""),
        ("made x\nW1124 17:03:10.514000 18644 torch/utils.py:630] soon\n", "made x"),
        ("", ""),
        ("Traceback\n  File\nerror: a: b\n", "error: a: b"),
        ("error: a\n  second\n  third\n", "error: a\n  second\n  third"),
        ("error: first\nerror: last\n  more\nresource_tracker: leaked", "error: last\n  more"),
    ],
)
def test_the_last_error_is_whole_and_nothing_else(printed, error):
    assert last_error(printed) == error
