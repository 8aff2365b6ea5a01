"""Which worker of a cluster is asked, given work, taken for lost: with a cluster of pretence."""

from __future__ import annotations

import logging
import os
import pickle
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from artifacts_schema.errors import IngotError
from artifacts_schema.store.backend import backend_at
from stages.engine import dask_workers
from stages.engine.code import code_digest
from stages.engine.dask_cluster import Outcome, Seen
from stages.engine.dask_terms import Answer, Terms, introduced, served
from stages.engine.dask_workers import STUCK_LOOKS, DaskEngine
from stages.engine.shards import ShardMap
from stages.engine.workers import answer, answered

sys.path.insert(0, str(Path(__file__).parent))
from dask_toy import Square, Squares, make_square

KEY = "c" * 64


class PretendedCluster:
    """Lists `seen`, makes calls in this process when told to, loses what it is told to lose."""

    def __init__(self, address):
        self.address, self.number = address, 0
        self.seen: dict[str, Seen] = {}
        self.waiting: dict[int, tuple[str, object, tuple]] = {}
        self.asked: list[str] = []
        self.ended: list[Outcome] = []

    def join(self, *names, **more):
        for name in names:
            self.seen[name] = Seen(name, name, **{**ALIVE, **more})

    def change(self, name, **more):
        self.seen[name] = replace(self.seen[name], **more)

    def call(self, worker, function, *arguments):
        self.number += 1
        self.waiting[self.number] = worker, function, arguments
        if function is introduced:
            self.asked.append(worker)
        return self.number

    def drop(self, number):
        self.waiting.pop(number, None)

    def do(self, *names, value=None):
        """Let these workers end what they are at, with this value instead of the real one."""
        for number, (worker, function, arguments) in list(self.waiting.items()):
            if worker in names:
                del self.waiting[number]
                made = function(*arguments) if value is None else value
                self.ended.append(made if isinstance(made, Outcome) else Outcome(number, made))

    def outcomes(self, seconds):
        ended, self.ended = self.ended, []
        return ended

    def workers(self, every):
        return dict(self.seen)

    def close(self):
        pass


ALIVE = {"threads": 1, "running": True, "executing": False}


@pytest.fixture
def engine(tmp_path, monkeypatch):
    monkeypatch.setattr(dask_workers, "Cluster", PretendedCluster)
    backend = backend_at(str(tmp_path / "store"))
    terms = Terms(Squares, code_digest(Squares), backend, KEY, tmp_path, 1)
    return DaskEngine("tcp://head:1", terms, logging.getLogger("test"))


@pytest.fixture
def opened(engine):
    """`opened("a", "b")` → (workers, their cluster), asked and ready."""

    def make(*names, most=9):
        pool = engine.pool(most)
        pool._cluster.join(*names)
        pool.wait(0)
        pool._cluster.do(*names)
        assert pool.wait(0) == ([], [])
        return pool, pool._cluster

    return make


def double(number):
    return 2 * number


def test_all_that_are_there_answer_before_the_first_call(engine):
    pool = engine.pool(9)
    cluster = pool._cluster
    cluster.join("a", "b")
    pool.wait(0)
    cluster.do("a")
    pool.wait(0)
    assert not pool.idle
    cluster.do("b")
    pool.wait(0)
    assert pool.idle


def test_one_that_is_at_other_work_is_not_waited_for(engine):
    pool = engine.pool(9)
    cluster = pool._cluster
    cluster.join("a")
    cluster.join("b", executing=True)
    pool.wait(0)
    cluster.do("a")
    pool.wait(0)
    assert pool.idle


def test_values_come_by_item_and_no_more_work_than_may(opened):
    pool, cluster = opened("a", "b", "c", most=2)
    pool.start("one", double, 1)
    pool.start("two", double, 2)
    assert pool.busy
    assert not pool.idle
    cluster.do("a", "b", "c")
    values, deaths = pool.wait(0)
    assert (sorted(values), deaths) == ([("one", 2), ("two", 4)], [])
    assert not pool.busy
    assert len(pool.used) == 2


def test_a_worker_that_is_gone_is_named_with_its_item(opened):
    pool, cluster = opened("a", "b")
    pool.start("one", double, 1)
    del cluster.seen["a"]
    (values, (death,)) = pool.wait(0)
    assert (values, death.item) == ([], "one")
    assert death.worker == f"a ({os.uname().nodename})"
    assert not cluster.waiting  # What it was given is taken back.
    pool.start("one", double, 1)
    cluster.do("b")
    assert pool.wait(0)[0] == [("one", 2)]


@pytest.mark.parametrize("lost", [None, "fetch"])
def test_another_process_behind_an_address_is_asked_anew(opened, lost, monkeypatch):
    """As a nanny starts one on the old port; so is one whose answer cannot be fetched."""
    pool, cluster = opened("a")
    pool.start("one", double, 1)
    if lost is None:
        monkeypatch.setattr("stages.engine.dask_terms._asked_by", set())
        cluster.do("a")
    else:
        cluster.ended.append(Outcome(cluster.number, lost=True))
    _, (death,) = pool.wait(0)
    assert death.item == "one"
    assert not pool.idle
    assert cluster.asked == ["a", "a"]
    cluster.do("a")
    pool.wait(0)
    assert pool.idle


def test_a_worker_that_is_paused_before_it_begins_is_not_waited_for(opened):
    pool, cluster = opened("a", "b")
    pool.start("one", double, 1)
    pool.start("two", double, 2)
    cluster.change("a", running=False)
    cluster.change("b", running=False, executing=True)  # It has begun, and goes on.
    looks = [pool.wait(0)[1] for _ in range(STUCK_LOOKS)]
    assert [[death.item for death in deaths] for deaths in looks] == [[]] * 4 + [["one"]]
    assert not pool.idle
    cluster.change("a", running=True)
    pool.wait(0)
    assert pool.idle


def test_a_map_without_workers_ends_after_a_while_and_says_why(opened, monkeypatch):
    pool, cluster = opened("a")
    cluster.change("a", running=False)
    pool.wait(0)
    monkeypatch.setattr(dask_workers, "ABSENT_SECONDS", 0.0)
    with pytest.raises(IngotError, match=r"for 0 s \(a \(.*\): paused, short of memory\)"):
        pool.wait(0)


def test_the_next_map_knows_who_was_right_and_asks_who_is_new(engine, opened):
    opened("a", "b")
    pool = engine.pool(9)
    cluster = pool._cluster
    cluster.join("a", "c")
    cluster.join("b", executing=True)  # What it is at may take long: its answer tells.
    pool.wait(0)
    assert sorted(cluster.asked) == ["b", "c"]
    assert not pool.idle
    cluster.do("c")
    pool.wait(0)
    assert pool.idle


def test_one_that_cannot_be_reached_when_it_answers_is_asked_again(engine):
    pool = engine.pool(9)
    cluster = pool._cluster
    cluster.join("a")
    pool.wait(0)
    cluster.do("a", value=Outcome(1, lost=True))
    pool.wait(0)
    assert cluster.asked == ["a", "a"]


def test_one_that_comes_later_and_is_wrong_is_left_alone(opened, caplog):
    pool, cluster = opened("a")
    cluster.join("b")
    pool.wait(0)
    cluster.do("b", value=Answer(1, "host", problem="it is wrong"))
    pool.wait(0)
    assert "Dask worker b (host) is given nothing: it is wrong" in caplog.text
    pool.start("one", double, 1)
    assert not pool.idle


def test_every_difference_is_told(engine, monkeypatch):
    terms = engine.terms
    monkeypatch.setattr("stages.engine.dask_terms.library_versions", lambda stage: {"python": "3"})
    given = Answer(1, "host", engine="0" * 64, code="1" * 64, libraries={})
    told = terms.differences(given, ())
    assert [text.split(" (")[0] for text in told] == [
        "other code of toy_squares", "other code of Ingot's engine", "python absent, here 3",
    ]  # fmt: skip


def test_a_call_is_served_only_to_who_asked():
    assert served("a token that nobody has", pickle.dumps((double, (4,)))) is None


def test_attempts_at_a_shard_write_into_folders_of_their_own(tmp_path):
    """Also two of the same call: Dask may repeat one by itself."""
    backend = backend_at(str(tmp_path / "store"))
    kinds = {"exclusions": "exclusions"}
    shards = ShardMap(
        backend, KEY, "m", kinds, "c", 1, lambda: False, lambda *_: None, lambda: None
    )
    (tmp_path / "laid").write_text("for the shards")
    shared = {"folder": str(tmp_path), "laid": tmp_path / "laid"}
    from stages.engine.shards import _call

    call = pickle.dumps((_call, (make_square, Square("a", 1), shards._output("a"), shared)))
    places = [{Path(item.place).parts[-3] for item in answer(answered(call))[1]} for _ in range(2)]
    assert [len(place) for place in places] == [1, 1]
    assert places[0] != places[1]
