"""Where machines meet; and a machine that joins a run: whom it follows, when it ends its ranks."""

from __future__ import annotations

import json
import socket
import sys
import threading
from dataclasses import asdict

import pytest

from artifacts_schema.errors import EXIT_OK, IngotError, Stopped, UsageError
from stages.engine import join
from stages.engine.machines import ONE_MACHINE, Machines, socket_interfaces
from stages.engine.rank_files import RankFolder, RankJob
from stages.training.config import TrainingExecution


def test_one_machine_keeps_to_its_loopback():
    assert ONE_MACHINE.meeting_point() == ("127.0.0.1", 0)
    interfaces = socket_interfaces("127.0.0.1", 0)
    assert interfaces["GLOO_SOCKET_IFNAME"] == ("lo" if sys.platform == "linux" else "lo0")
    assert interfaces["NCCL_SOCKET_IFNAME"] == interfaces["GLOO_SOCKET_IFNAME"]


def test_an_address_may_have_a_port():
    assert Machines(count=2, address="127.0.0.1:29500").meeting_point() == ("127.0.0.1", 29500)
    address, port = Machines(count=2, address="localhost").meeting_point()
    assert address in ("127.0.0.1", "::1")
    assert port > 0


def test_an_address_that_is_not_of_this_machine_is_refused():
    with pytest.raises(UsageError) as caught:
        Machines(count=2, address="192.0.2.7").meeting_point()  # RFC 5737: of nobody.
    assert caught.value.where == "execution.machines.address"


def test_the_interface_is_the_one_that_leads_to_machine_0():
    assert socket_interfaces("127.0.0.2", 80)["GLOO_SOCKET_IFNAME"] in socket_names()


def socket_names():
    return {name for _, name in socket.if_nameindex()}


def test_ranks_that_do_not_divide_by_the_machines_are_refused():
    settings = {"layout": {"shard": 4}, "machines": {"count": 2}}
    assert TrainingExecution.parse(settings, where="x").machines.count == 2
    with pytest.raises(UsageError, match=r"machines\.count"):
        TrainingExecution.parse({**settings, "machines": {"count": 3}}, where="x")


# Joining ------------------------------------------------------------------------------------------


class Agent:
    """Stands in for torchrun: runs until it is ended, or ends with a code."""

    code: int | None = None
    ended = 0

    def __init__(self, files, job, key, machine):
        pass

    def poll(self):
        return Agent.code

    def end(self):
        Agent.ended += 1


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.setattr(join, "Agent", Agent)
    monkeypatch.setattr(Agent, "code", None)
    monkeypatch.setattr(Agent, "ended", 0)
    monkeypatch.setattr(join, "POLL_SECONDS", 0.01)
    files = RankFolder.fresh(tmp_path / "key" / "ranks")
    job = RankJob("", {}, "", 1, {}, "", {}, "", True, 4, machines=2)
    files.write_json(files.job, asdict(job))
    files.alive.write(0)
    return files


@pytest.fixture
def parent(files):
    """Beats as a parent does, until `parent.set()`."""
    over = threading.Event()

    def beat():
        number = 0
        while not over.wait(0.02):
            number += 1
            files.alive.write(number)

    thread = threading.Thread(target=beat)
    thread.start()
    yield over
    over.set()
    thread.join()


def joined(files, machine=1, stop=lambda: False, committed=lambda: False, wait=5.0):
    join.join_run(files, "key", machine, wait_seconds=wait, stop=stop, committed=committed)


def test_a_machine_works_until_its_ranks_are_done(files, parent, monkeypatch):
    monkeypatch.setattr(Agent, "code", EXIT_OK)
    joined(files)
    assert json.loads(files.machine(1).read_text())["host"]


def test_a_parent_that_is_gone_ends_the_ranks(files, parent, monkeypatch):
    monkeypatch.setattr(join, "DEAD_SECONDS", 0.3)
    threading.Timer(0.5, parent.set).start()
    with pytest.raises(IngotError, match="machine 0 gave no sign of life"):
        joined(files)
    assert Agent.ended == 1


def test_the_end_of_the_launch_is_that_of_the_machine(files, parent):
    over = {"what": "no progress for 9 s: rank 1", "exit_code": 75}
    threading.Timer(0.3, lambda: files.write_json(files.over, over)).start()
    with pytest.raises(Stopped, match="rank 1"):
        joined(files)
    assert Agent.ended == 1


def test_a_launch_that_another_one_replaced_is_over(files, parent, monkeypatch):
    monkeypatch.setattr(join, "GRACE_SECONDS", 0.1)

    def replace():
        fresh = RankFolder.fresh(files.path)
        fresh.write_json(fresh.job, {})
        fresh.printed(1).write_text("")

    threading.Timer(0.3, replace).start()
    with pytest.raises(IngotError):
        joined(files)
    assert Agent.ended == 1


def test_a_number_is_for_one_machine(files, parent):
    files.write_json(files.machine(1), {"host": "node-b"})
    with pytest.raises(UsageError, match="node-b"):
        joined(files)
    with pytest.raises(UsageError, match="machine 2 of a run on 2"):
        joined(files, machine=2)


def test_files_without_a_living_parent_are_no_run(files):
    with pytest.raises(IngotError, match="no run to join") as caught:
        joined(files, wait=0.2)
    assert caught.value.where == str(files.path)


def test_nothing_is_joined_where_the_artifact_exists_or_a_stop_was_asked_for(files):
    joined(files, committed=lambda: True)
    with pytest.raises(Stopped):
        joined(files, stop=lambda: True)
