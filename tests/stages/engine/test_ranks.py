"""Runs of a small stage on ranks: stops, hangs, faults of one rank, and several machines."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from artifacts_schema.errors import EXIT_RESUME, IngotError, Stopped, StoreError
from artifacts_schema.store import Store
from artifacts_schema.store.lease import local_work
from stages.engine.protocol import register
from stages.engine.runner import run_stage
from stages.engine.spec import StageSpec

sys.path.insert(0, str(Path(__file__).parent))
from toy_ranks import Sum

pytestmark = pytest.mark.faults


@pytest.fixture
def store(tmp_path):
    """A store in a folder: ranks share it."""
    return Store.open(str(tmp_path / "store"))


@pytest.fixture
def make(tmp_path, monkeypatch):
    """`make(steps, **execution)` → a spec of the stage that sums, known to child processes."""
    register(Sum)
    info = tmp_path / "site" / "toys-1.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: toys\nVersion: 1\n")
    (info / "entry_points.txt").write_text("[ingot.stages]\ntoy_sum = toy_ranks:Sum\n")
    monkeypatch.setenv(
        "PYTHONPATH", os.pathsep.join([str(info.parent), str(Path(__file__).parent)])
    )
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    return lambda steps=4, **execution: StageSpec.make(Sum, {"steps": steps}, {}, execution)


def total(steps, ranks):
    """What the stage sums: each step times the ranks' numbers from 1."""
    return sum(range(steps)) * sum(range(1, ranks + 1))


def start(store, spec, folder, *flags, within=()):
    """The stage as a launcher starts it on a machine; `within` is a command that runs it."""
    path = folder / f"spec{''.join(flags)}.json"
    path.write_bytes(spec.to_json())
    return subprocess.Popen(
        [*within, sys.executable, "-P", "-m", "stages", spec.stage, "--store", store.url,
         "--spec", str(path), "--key", spec.key, *flags],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip


def wait_for(condition, process, seconds=60):
    """Until `condition()` is true, while the process runs."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert process.poll() is None, process.communicate()[0]
        assert time.monotonic() < deadline, "it took too long"
        time.sleep(0.05)


def checkpoints(store, spec):
    """Steps of the newest checkpoint; 0 without one."""
    paths = list(local_work(store.backend, spec.key).rglob("checkpoint.json"))
    return max((json.loads(path.read_text())[0] for path in paths), default=0)


def test_ranks_sum_what_each_of_them_has(store, make):
    manifest = run_stage(store, make()).manifest
    assert manifest.counts["sum"] == total(4, 2)


@pytest.mark.full
@pytest.mark.parametrize("fault", [pytest.param("suspended", marks=pytest.mark.full), "stuck"])
def test_a_run_that_hangs_names_the_rank_that_is_behind(store, make, fault):
    spec = make(watchdog=8.0, fault=fault)
    with pytest.raises(Stopped) as caught:
        run_stage(store, spec)
    assert "rank 1 " in caught.value.what
    assert "rank 0" not in caught.value.what
    assert ("does not respond" in caught.value.what) == (fault == "suspended")
    assert "2 of 4 steps" in caught.value.what
    folder = local_work(store.backend, spec.key, "ranks")
    assert str(folder) == caught.value.where
    waiting = (folder / "stacks-0.txt").read_text()
    assert "all_reduce" in waiting
    assert (folder / "flight-0").stat().st_size > 0
    assert (folder / "stacks-1.txt").exists() == (fault == "stuck")
    if fault == "stuck":
        assert "in fail" in (folder / "stacks-1.txt").read_text()
    events = local_work(store.backend, spec.key, "events.jsonl").read_text().splitlines()
    assert "hang" in [json.loads(line).get("kind") for line in events]
    assert run_stage(store, replace(spec, execution={})).manifest.counts["sum"] == total(4, 2)


@pytest.mark.parametrize(
    ("fault", "kind", "what"),
    [
        pytest.param("memory", IngotError, "rank 1 failed: MemoryError", marks=pytest.mark.full),
        pytest.param(
            "device memory",
            IngotError,
            "rank 1 failed: OutOfMemoryError: CUDA out of memory",
            marks=pytest.mark.full,
        ),
        ("disk", StoreError, "rank 1: cannot write a checkpoint: No space left"),
        pytest.param("system", StoreError, "rank 1: ", marks=pytest.mark.full),
        pytest.param("killed", IngotError, "rank 1 died (SIGKILL)", marks=pytest.mark.full),
    ],
)
def test_the_rank_that_fails_is_named(store, make, fault, kind, what):
    since = time.monotonic()
    with pytest.raises(kind) as caught:
        run_stage(store, make(fault=fault))
    assert caught.value.what.startswith(what)
    assert type(caught.value) is kind
    assert time.monotonic() - since < 45


@pytest.mark.full
def test_sigterm_to_every_process_saves_and_ends_with_the_code_to_go_on(store, make, tmp_path):
    """As Slurm ends a job: the parent, torchrun and the ranks get the signal together."""
    spec = make(steps=400, step_seconds=0.1)
    process = start(store, spec, tmp_path)
    wait_for(lambda: checkpoints(store, spec) >= 3, process)
    parent = psutil.Process(process.pid)
    for one in [*parent.children(recursive=True), parent]:
        one.send_signal(signal.SIGTERM)
    output, _ = process.communicate(timeout=60)
    assert process.returncode == EXIT_RESUME, output
    stopped = list(local_work(store.backend, spec.key).rglob("stopped-*"))
    assert sorted(path.name for path in stopped) == ["stopped-0", "stopped-1"]
    done = checkpoints(store, spec)
    again = run_stage(store, replace(spec, execution={"step_seconds": 0.0})).manifest
    assert again.counts["resumed"] == done >= 3
    assert again.counts["sum"] == total(400, 2)


# Several machines ---------------------------------------------------------------------------------


def on_machines(count, address="127.0.0.1", **more):
    return {"count": count, "address": address, "wait_seconds": 60.0, **more}


@pytest.mark.full
def test_two_machines_sum_what_one_does(store, make, tmp_path):
    spec = make(machines=on_machines(2), layout={"shard": 4})
    second = start(store, spec, tmp_path, "--machine=1")
    made = run_stage(store, spec).manifest
    output, _ = second.communicate(timeout=60)
    assert second.returncode == 0, output
    assert made.counts["sum"] == total(4, 4)


@pytest.mark.full
def test_a_machine_that_does_not_come_is_named(store, make):
    spec = make(machines=on_machines(3, wait_seconds=2.0), layout={"shard": 3})
    with pytest.raises(IngotError) as caught:
        run_stage(store, spec)
    assert "1 of 3 machines joined" in caught.value.what
    assert "machine 1, 2" in caught.value.what
    alone = replace(spec, execution={"layout": {"shard": 3}})
    assert run_stage(store, alone).manifest.counts["sum"] == total(4, 3)


def test_a_machine_that_finds_no_run_says_where_it_looked(store, make, tmp_path):
    """Also where files of a dead launch are there: nobody writes beats."""
    spec = make(machines=on_machines(2, wait_seconds=3.0))
    folder = local_work(store.backend, spec.key, "ranks")
    folder.mkdir(parents=True)
    (folder / "job.json").write_text("{}")
    (folder / "alive.json").write_text("7")
    process = start(store, spec, tmp_path, "--machine=1")
    output, _ = process.communicate(timeout=60)
    assert process.returncode == 1
    assert str(folder) in output


@pytest.mark.full
def test_a_machine_that_dies_ends_the_run_which_goes_on(store, make, tmp_path):
    spec = make(steps=300, step_seconds=0.1, machines=on_machines(2))
    second = start(store, spec, tmp_path, "--machine=1")
    first = start(store, spec, tmp_path)
    wait_for(lambda: checkpoints(store, spec) >= 3, first)
    for one in [psutil.Process(second.pid), *psutil.Process(second.pid).children(recursive=True)]:
        one.kill()
    output, _ = first.communicate(timeout=60)
    assert first.returncode == 1
    assert "machine 1 (" in output
    second.communicate()
    again = run_stage(store, replace(spec, execution={})).manifest
    assert again.counts["resumed"] >= 3
    assert again.counts["sum"] == total(300, 2)


@pytest.mark.full
def test_sigterm_to_the_second_machine_stops_all_of_them(store, make, tmp_path):
    spec = make(steps=300, step_seconds=0.1, machines=on_machines(2))
    second = start(store, spec, tmp_path, "--machine=1")
    first = start(store, spec, tmp_path)
    wait_for(lambda: checkpoints(store, spec) >= 3, first)
    second.send_signal(signal.SIGTERM)
    outputs = [one.communicate(timeout=60)[0] for one in (first, second)]
    assert [first.returncode, second.returncode] == [EXIT_RESUME, EXIT_RESUME], outputs


@pytest.fixture
def two_nodes():
    """Commands that run another one in a network of its own: 10.77.0.1 and 10.77.0.2, by a cable.

    Skips where network namespaces are not permitted.
    """
    names = [f"ingot-{os.getpid()}-{number}" for number in (1, 2)]

    def ip(*arguments):
        return subprocess.run(["ip", *arguments], capture_output=True, text=True, check=True)

    try:
        try:
            for name in names:
                ip("netns", "add", name)
            ip("link", "add", "eth0", "netns", names[0], "type", "veth",
               "peer", "name", "eth0", "netns", names[1])  # fmt: skip
        except (OSError, subprocess.CalledProcessError) as error:
            pytest.skip(f"no network namespaces: {getattr(error, 'stderr', None) or error}")
        for number, name in enumerate(names, start=1):
            ip("-n", name, "link", "set", "lo", "up")
            ip("-n", name, "link", "set", "eth0", "up")
            ip("-n", name, "address", "add", f"10.77.0.{number}/24", "dev", "eth0")
        yield [("ip", "netns", "exec", name) for name in names]
    finally:
        for name in names:
            with suppress(OSError):
                subprocess.run(["ip", "netns", "delete", name], capture_output=True, check=False)


@pytest.mark.full
def test_two_nodes_of_a_network_sum_what_one_does(store, make, tmp_path, two_nodes):
    """They have no loopback in common; so what is bound to it would not be reached."""
    spec = make(machines=on_machines(2, address="10.77.0.1"), layout={"shard": 4})
    second = start(store, spec, tmp_path, "--machine=1", within=two_nodes[1])
    first = start(store, spec, tmp_path, within=two_nodes[0])
    outputs = [one.communicate(timeout=120)[0] for one in (first, second)]
    assert [first.returncode, second.returncode] == [0, 0], outputs
    assert store.manifest(spec.stage, spec.key).counts["sum"] == total(4, 4)


@pytest.mark.full
def test_a_cable_that_is_pulled_is_a_hang_that_ends(store, make, tmp_path, two_nodes):
    spec = make(
        steps=400, step_seconds=0.1, watchdog=10.0,
        machines=on_machines(2, address="10.77.0.1"),
    )  # fmt: skip
    second = start(store, spec, tmp_path, "--machine=1", within=two_nodes[1])
    first = start(store, spec, tmp_path, within=two_nodes[0])
    wait_for(lambda: checkpoints(store, spec) >= 3, first)
    subprocess.run([*two_nodes[0], "ip", "link", "set", "eth0", "down"], check=True)
    outputs = [one.communicate(timeout=120)[0] for one in (first, second)]
    assert [first.returncode, second.returncode] == [EXIT_RESUME, EXIT_RESUME], outputs
    assert "no progress for" in outputs[0]
    again = run_stage(store, replace(spec, execution={})).manifest
    assert again.counts["resumed"] >= 3
    assert again.counts["sum"] == total(400, 2)
