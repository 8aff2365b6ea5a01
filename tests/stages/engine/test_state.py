"""State that another machine can go on from: whole or not taken."""

from __future__ import annotations

import logging

import pytest

from artifacts_schema.errors import StoreError
from artifacts_schema.store import Store, points
from artifacts_schema.store.backend import backend_at
from stages.engine.state import State

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
