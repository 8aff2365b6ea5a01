"""State that another machine can go on from: whole or not taken."""

from __future__ import annotations

import dataclasses
import logging
import os

import pytest

from artifacts_schema.errors import LeaseLost, StoreError
from artifacts_schema.store import Store, failpoints
from artifacts_schema.store.lease import Lease
from artifacts_schema.store.remote import backend_at
from stages.engine.state import State, accepted_changes, open_state

KEY = "a" * 64


class Killed(BaseException):
    """Stands for SIGKILL."""


@pytest.fixture
def node(s3_url, tmp_path):
    """`node(name)`: the state as another machine sees it."""
    backend = Store.open(s3_url).backend
    return lambda name: State(backend, KEY, "code", tmp_path / name, logging.getLogger("test"))


def write(state, text):
    folder = state.folder / "checkpoints" / "step-1"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "weights").write_text(text)
    (state.folder / "log.jsonl").write_text("1\n")
    return folder, state.folder / "log.jsonl"


def test_a_published_set_is_laid_where_it_was_on_another_machine(node):
    one, other = node("one"), node("other")
    one.publish("step-1", *write(one, "w" * 100))
    assert other.published() == ["step-1"]
    assert other.fetch("step-1")
    assert (other.folder / "checkpoints/step-1/weights").read_text() == "w" * 100
    assert (other.folder / "log.jsonl").read_text() == "1\n"
    one.withdraw("step-1")
    assert other.published() == []
    assert not node("third").fetch("step-1")


@pytest.mark.parametrize("point", ["state files published", "payload"])
def test_a_set_that_was_half_published_is_not_taken(node, monkeypatch, point):
    """Nor is what stood under its name before: its list goes first."""
    one, other = node("one"), node("other")
    one.publish("step-1", *write(one, "old"))
    if point == "payload":
        monkeypatch.setattr(one.backend, "create", lambda path: (_ for _ in ()).throw(Killed))

    def die(passed):
        if passed == point:
            raise Killed

    monkeypatch.setattr(failpoints, "on_failpoint", die)
    with pytest.raises(Killed):
        one.publish("step-1", *write(one, "new"))
    assert other.published() == []
    assert not other.fetch("step-1")


def test_a_damaged_set_is_not_taken(node, caplog):
    one, other = node("one"), node("other")
    one.publish("step-1", *write(one, "abc"))
    place = f"work/{KEY}/state/code/step-1/checkpoints/step-1/weights"
    one.backend.replace(place, b"abd")
    assert not other.fetch("step-1")
    assert "step-1 in the store is not used" in caplog.text
    one.backend.remove(place)
    assert not other.fetch("step-1")


def test_a_store_that_is_away_costs_the_copy_not_the_run(node, monkeypatch, caplog):
    one = node("one")

    def away(path, data):
        raise StoreError("the store cannot be reached", where=path)

    monkeypatch.setattr(one.backend, "replace", away)
    one.publish("step-1", *write(one, "abc"))
    assert "kept on this machine only" in caplog.text


def test_on_a_local_store_there_is_nothing_to_publish(tmp_path):
    state = State(backend_at(str(tmp_path / "s")), KEY, "code", tmp_path / "s", logging.getLogger())
    state.publish("step-1", *write(state, "abc"))
    assert state.published() == []
    assert not state.fetch("step-1")


# The next holder of the lease ---------------------------------------------------------------------

LOG = logging.getLogger("test")


class Stopped(BaseException):
    """Stands for SIGKILL in the middle of taking over."""


@pytest.fixture(params=["local", "s3"])
def backend(request, tmp_path):
    """The place of a store's files."""
    if request.param == "local":
        return Store.open(str(tmp_path / "local-store")).backend
    return Store.open(request.getfixturevalue("s3_url")).backend


@pytest.fixture
def taken(monkeypatch):
    """`taken(backend, code)`: the key is taken over from whoever held it; the new holder's state.

    With `awake`, the one before is on another machine, was silent, and may still write.
    """
    held: list[Lease] = []

    def take(backend, code="code", *, awake=False, accept=False):
        if held and awake:
            held[-1].record = dataclasses.replace(held[-1].record, machine="elsewhere")
            held[-1].beat()
        elif held:
            held[-1].release()
        clock = iter(range(0, 10_000, 10))
        held.append(Lease.take(backend, KEY, clock=lambda: next(clock), wait=lambda seconds: None))
        return open_state(backend, held[-1], code, LOG, accept=accept)

    return take


def text_of(state):
    """What the newest set says, from this machine's folder, or else fetched."""
    path = state.folder / "checkpoints" / "step-1" / "weights"
    if not path.exists():
        state.fetch("step-1")
    return path.read_text() if path.exists() else None


def leave(state, text):
    """Work as a stage does: write, and publish."""
    state.publish("step-1", *write(state, text))


@pytest.mark.parametrize("awake", [True, False])
def test_the_next_holder_goes_on_in_a_folder_of_its_own(backend, taken, awake):
    one = taken(backend)
    leave(one, "1")
    two = taken(backend, awake=awake)
    assert two.folder != one.folder
    assert text_of(two) == "1"
    assert not one.folder.exists()


def test_what_a_succeeded_holder_writes_reaches_nobody(backend, taken):
    """It is not the next holder's, nor that of whoever comes after."""
    one = taken(backend)
    leave(one, "1")
    log = (one.folder / "log.jsonl").open("a")
    two = taken(backend, awake=True)
    log.write("of one that woke up\n")
    log.flush()
    with pytest.raises(LeaseLost):
        one.publish("step-2", one.folder / "log.jsonl")
    with pytest.raises(LeaseLost):
        one.withdraw("step-1")
    unchecked = dataclasses.replace(one, check=lambda: None)  # It passed the check, then stopped.
    unchecked.publish("step-1", *write(one, "zombie"))
    assert (two.folder / "log.jsonl").read_text() == "1\n"
    assert text_of(two) == "1"
    three = taken(backend)
    assert text_of(three) == "1"
    assert (three.folder / "log.jsonl").read_text() == "1\n"


def test_read_only_files_of_a_silent_holder_are_linked_and_others_copied(tmp_path, taken):
    backend = Store.open(str(tmp_path / "local-store")).backend
    one = taken(backend)
    weights, log = write(one, "1")[0] / "weights", one.folder / "log.jsonl"
    weights.chmod(0o444)
    before = weights.stat().st_ino, log.stat().st_ino
    two = taken(backend, awake=True)
    after = [(two.folder / path.relative_to(one.folder)).stat().st_ino for path in (weights, log)]
    assert after[0] == before[0]
    assert after[1] != before[1]


@pytest.mark.parametrize("awake", [True, False])
@pytest.mark.parametrize("kills", [1, 2])
def test_killed_while_it_takes_over_the_next_holder_finds_all(
    backend, taken, monkeypatch, awake, kills
):
    one = taken(backend)
    leave(one, "1")

    def die(point):
        if point == "state taken over":
            raise Stopped

    for _ in range(kills):
        with monkeypatch.context() as patch:
            patch.setattr(failpoints, "on_failpoint", die)
            with pytest.raises(Stopped):
                taken(backend, awake=awake)
        awake = False
    last = taken(backend)
    assert text_of(last) == "1"
    assert [path.name for path in last.folder.parent.iterdir()] == [last.folder.name]


def test_an_unreadable_predecessor_is_an_error_and_nothing_is_removed(tmp_path, taken, monkeypatch):
    backend = Store.open(str(tmp_path / "local-store")).backend
    one = taken(backend)
    leave(one, "1")
    listdir = os.listdir

    def refuse(path):
        if str(path).endswith("checkpoints"):
            raise PermissionError(13, "Permission denied", str(path))
        return listdir(path)

    with monkeypatch.context() as patch:
        patch.setattr(os, "listdir", refuse)
        with pytest.raises(StoreError):
            taken(backend, awake=True)
    assert text_of(taken(backend)) == "1"


def test_the_store_on_another_machine_takes_over_what_was_published(
    s3_url, tmp_path, taken, monkeypatch
):
    """From the sets of two holders; what a third left half done is removed."""
    backend = Store.open(s3_url).backend
    one = taken(backend)
    one.publish("step-1", *write(one, "1"))
    two = taken(backend)
    two.publish("step-2", two.folder / "log.jsonl")
    monkeypatch.setattr(two.backend, "replace", None)
    with pytest.raises(TypeError):
        two.publish("step-3", two.folder / "log.jsonl")
    monkeypatch.undo()
    monkeypatch.setenv("INGOT_CACHE", str(tmp_path / "another-machine"))
    three = taken(Store.open(s3_url).backend)
    assert three.published() == ["step-1", "step-2"]
    assert text_of(three) == "1"
    assert not [name for name in backend.files(f"work/{KEY}/state") if "step-3" in name]
    three.withdraw("step-1")
    assert three.published() == ["step-2"]
    assert not [name for name in backend.files(f"work/{KEY}/state") if "step-1" in name]


# Another program ----------------------------------------------------------------------------------


def test_the_newest_work_of_another_program_is_taken_over_once(backend, taken):
    leave(taken(backend, "one"), "1")
    old = taken(backend, "two")
    leave(old, "2")
    own = taken(backend, "three", accept=True)
    assert text_of(own) == "2"
    assert accepted_changes(own.folder) == [{"from": "two", "to": "three"}]
    assert not old.folder.exists()
    leave(own, "3")
    again = taken(backend, "three", accept=True)
    assert text_of(again) == "3"
    last = taken(backend, "four", accept=True)
    changes = [{"from": "two", "to": "three"}, {"from": "three", "to": "four"}]
    assert accepted_changes(last.folder) == changes
    assert text_of(last) == "3"


def test_without_being_asked_another_programs_work_is_left_alone(backend, taken):
    leave(taken(backend, "one"), "1")
    assert text_of(taken(backend, "two")) is None


def test_own_work_comes_before_that_of_another_program(backend, taken):
    leave(taken(backend, "two"), "2")
    leave(taken(backend, "one"), "1")
    own = taken(backend, "two", accept=True)
    assert text_of(own) == "2"
    assert accepted_changes(own.folder) == []


def test_where_nobody_left_anything_nothing_is_taken(backend, taken):
    assert accepted_changes(taken(backend, accept=True).folder) == []


def test_what_another_program_published_is_taken_over_on_another_machine(
    s3_url, tmp_path, taken, monkeypatch
):
    backend = Store.open(s3_url).backend
    leave(taken(backend, "code"), "w" * 10)
    monkeypatch.setenv("INGOT_CACHE", str(tmp_path / "another-machine"))
    own = taken(backend, "other", accept=True)
    assert text_of(own) == "w" * 10
    assert accepted_changes(own.folder) == [{"from": "code", "to": "other"}]
