"""State that another machine can go on from: whole or not taken."""

from __future__ import annotations

import logging
import os

import pytest

from artifacts_schema.errors import StoreError
from artifacts_schema.store import Store, points
from artifacts_schema.store.backend import backend_at
from stages.engine.state import State, accept_state, accepted

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

    monkeypatch.setattr(points, "on_reach", die)
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


# Another program --------------------------------------------------------------------------------

LOG = logging.getLogger("test")


@pytest.fixture
def left(store, tmp_path):
    """`left(code, text)`: what a program left of a run, on this machine."""

    def leave(code, text):
        folder = store.backend.local_path(f"work/{KEY}/state/{code}")
        (folder / "checkpoints").mkdir(parents=True)
        (folder / "checkpoints" / "newest").write_text(text)
        return folder

    return leave


@pytest.fixture
def store(tmp_path):
    """On this machine: the rest of this file is about buckets."""
    return Store.open(str(tmp_path / "local-store"))


def test_the_newest_work_of_another_program_is_taken_over_once(store, left):
    old, new = left("one", "1"), left("two", "2")
    os.utime(old / "checkpoints" / "newest", (1, 1))
    os.utime(old / "checkpoints", (1, 1))
    os.utime(old, (1, 1))
    own = accept_state(store.backend, KEY, "three", LOG)
    assert (own / "checkpoints" / "newest").read_text() == "2"
    assert accepted(own) == [{"from": "two", "to": "three"}]
    assert not new.exists()
    (own / "checkpoints" / "newest").write_text("3")
    assert accept_state(store.backend, KEY, "three", LOG) == own
    assert (own / "checkpoints" / "newest").read_text() == "3"
    again = accept_state(store.backend, KEY, "four", LOG)
    changes = [{"from": "two", "to": "three"}, {"from": "three", "to": "four"}]
    assert accepted(again) == changes


def test_own_work_comes_before_that_of_another_program(store, left):
    left("one", "1")
    own = left("two", "2")
    assert accept_state(store.backend, KEY, "two", LOG) == own
    assert (own / "checkpoints" / "newest").read_text() == "2"
    assert accepted(own) == []


def test_where_nobody_left_anything_nothing_is_taken(store):
    assert accepted(accept_state(store.backend, KEY, "one", LOG)) == []


def test_what_another_program_published_is_taken_over_on_another_machine(
    node, tmp_path, monkeypatch
):
    one = node("one")
    one.publish("step-1", *write(one, "w" * 10))
    monkeypatch.setenv("INGOT_CACHE", str(tmp_path / "another-machine"))
    own = accept_state(one.backend, KEY, "other", LOG)
    assert (own / "checkpoints/step-1/weights").read_text() == "w" * 10
    assert accepted(own) == [{"from": "code", "to": "other"}]
