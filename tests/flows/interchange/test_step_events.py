"""Events of a step, counted once each: over kills, new nodes, removed and copied files."""

from __future__ import annotations

import json

import pytest

from flows.interchange.step_events import MOST_NAMES, OTHER, StepActivity
from stages.engine.events import EventTail, HeldFile

STEP_TOKENS = 512
WORK, COPY = "work/k/events.jsonl", "data/s/k/a/telemetry/events.jsonl"


def lines(*events: dict) -> bytes:
    return b"".join(json.dumps(event).encode() + b"\n" for event in events)


def started(time: float = 0.0) -> dict:
    return {"type": "started", "time": time, "stage": "pretrain", "key": "ab" * 32}


def trained(step: int, time: float = 0.0, tokens: int | None = None) -> dict:
    position = STEP_TOKENS * step if tokens is None else tokens
    return {"type": "metric", "time": time, "training_step": step, "tokens": position, "loss": 2.5}


def activity(*events: dict) -> StepActivity:
    sums = StepActivity()
    for event in events:
        sums.add(event)
    return sums


@pytest.fixture
def file(store):
    """`file(content, path)`: write a file of the store; a tail of its events."""
    store.backend.replace(WORK, b"")
    return lambda content, path=WORK: store.backend.replace(path, content)


def test_a_growing_file_is_read_a_piece_at_a_time_and_a_cut_line_waits(store, file):
    tail, whole = EventTail(store.backend.read), lines(started(), trained(1), trained(2))
    cut = len(whole) - 10
    file(whole[:cut])
    assert [event["type"] for event in tail.read(WORK)] == ["started", "metric"]
    assert tail.read(WORK) == []
    file(whole)
    assert [event["training_step"] for event in tail.read(WORK)] == [2]
    assert tail.broken_lines == 0


def test_only_what_is_new_is_asked_of_the_store(store, file, monkeypatch):
    tail, content = EventTail(store.backend.read), lines(started(), *map(trained, range(1, 1_000)))
    file(content)
    tail.read(WORK)
    read: list[int] = []
    whole = type(store.backend).read

    def count(backend, path, start=0):
        data = whole(backend, path, start)
        read.append(len(data))
        return data

    monkeypatch.setattr(type(store.backend), "read", count)
    file(content + lines(trained(1_000)))
    assert len(tail.read(WORK)) == 1
    assert sum(read) < 200 < len(content)


def test_the_start_after_a_kill_in_the_middle_of_a_line_is_not_lost(store, file):
    tail = EventTail(store.backend.read)
    file(lines(started(), trained(1)) + b'{"type": "metric", "ti' + lines(started(9.0), trained(1)))
    assert [event["type"] for event in tail.read(WORK)] == [
        "started",
        "metric",
        "started",
        "metric",
    ]
    assert tail.broken_lines == 1


def test_what_is_no_event_is_left_out(store, file):
    tail = EventTail(store.backend.read)
    file(b"\n[1]\n\xff\xfe\n" + lines(started()))
    assert [event["type"] for event in tail.read(WORK)] == ["started"]
    sums = activity(
        {"time": "late"},
        {"type": "metric", "training_step": "x", "tokens": None},
        {"type": "progress", "done": True, "total": 3},
        {"type": "metric", "training_step": 1, "tokens": 5, "loss": "high"},
        {"type": "alert"},
    )
    assert (sums.training.steps, sums.training.values, sums.progress) == (1, {}, None)


def test_the_copy_beside_the_payload_goes_on_where_the_work_folder_ended(store, file):
    tail = EventTail(store.backend.read)
    file(lines(started(), trained(1)))
    assert len(tail.read(WORK)) == 2
    store.backend.remove("work/k")
    assert tail.read(WORK) == []
    file(lines(started(), trained(1), trained(2)), COPY)
    assert [event["training_step"] for event in tail.read(COPY)] == [2]


@pytest.mark.parametrize("steps", [1, 40])
def test_the_file_of_another_node_is_new_from_its_beginning(store, file, steps):
    """Shorter than what was read, or longer."""
    tail = EventTail(store.backend.read)
    file(lines(started(1.0), *map(trained, range(1, 20))))
    tail.read(WORK)
    file(lines(started(2.0), *(trained(step) for step in range(10, 10 + steps))))
    events = tail.read(WORK)
    assert len(events) == 1 + steps
    assert events[0]["time"] == 2.0


def test_a_bucket_is_read_by_ranges_too(s3_url):
    from artifacts_schema.store import Store

    store = Store.open(s3_url)
    tail, first = EventTail(store.backend.read), lines(started(), trained(1))
    assert tail.read(WORK) == []
    store.backend.replace(WORK, first)
    assert len(tail.read(WORK)) == 2
    assert tail.read(WORK) == []
    store.backend.replace(WORK, first + lines(trained(2)))
    assert len(tail.read(WORK)) == 1
    store.backend.replace(WORK, lines(started(5.0)))
    assert [event["time"] for event in tail.read(WORK)] == [5.0]


def test_training_steps_since_the_last_checkpoint_are_lost_by_a_kill():
    """Killed after 17 steps with a checkpoint at 15: two are done again."""
    first, again = range(1, 18), range(16, 21)
    sums = activity(started(), *map(trained, first), started(), *map(trained, again)).training
    assert dict(sums.lost) == {"restart": 17 - 15}
    assert (sums.training_step, sums.steps) == (20, 17 + 5)
    assert sums.tokens == STEP_TOKENS * (17 + 5)


def test_a_stop_with_a_checkpoint_loses_nothing():
    events = [started(), *map(trained, range(1, 11)), started(), *map(trained, range(11, 21))]
    sums = activity(*events).training
    assert (sum(sums.lost.values()), sums.steps, sums.tokens) == (0, 20, 20 * STEP_TOKENS)


def test_a_kill_before_the_first_checkpoint_loses_all():
    events = [started(), *map(trained, range(1, 8)), started(), *map(trained, range(1, 11))]
    sums = activity(*events).training
    assert dict(sums.lost) == {"restart": 7}
    assert sums.tokens == (7 + 10) * STEP_TOKENS


def test_a_rollback_is_told_from_a_restart():
    """At step 30 the guard goes back to a checkpoint at 20, and leaves out 25 to 30."""
    resumed = [trained(step) for step in range(21, 25)]
    after = [trained(step, tokens=STEP_TOKENS * (step - 6)) for step in range(31, 36)]
    sums = activity(started(), *map(trained, range(1, 31)), *resumed, *after).training
    assert dict(sums.lost) == {"rollback": 10}
    assert sums.steps == 30 + 4 + 5
    assert sums.tokens == STEP_TOKENS * (30 + 4 + 5)


def test_a_run_seen_from_its_middle_counts_from_there():
    sums = activity(*(trained(step) for step in range(101, 111))).training
    assert (sums.steps, sums.tokens) == (10, 9 * STEP_TOKENS)  # The first one's are not known.


def test_a_clock_that_jumps_back_changes_no_count():
    events = [started(1e9), trained(1, 1e9), trained(2, 5.0), started(3.0), trained(3, 4.0)]
    sums = activity(*events)
    assert (sums.training.steps, sums.training.tokens, sums.starts) == (3, 3 * STEP_TOKENS, 2)
    assert sums.last_time == 4.0


def test_names_from_outside_are_bounded():
    alerts = [{"type": "alert", "kind": f"kind {n}"} for n in range(MOST_NAMES + 20)]
    losses = [{"type": "metric", "training_step": 1, f"held_out/s{n}": 1.0} for n in range(99)]
    sums = activity(*alerts, *losses)
    assert len(sums.alerts) == MOST_NAMES + 1
    assert sums.alerts[OTHER] == 20
    assert len(sums.training.held_out) == MOST_NAMES


def test_a_held_file_is_read_to_its_end_after_its_removal_and_a_new_one_is_taken(tmp_path):
    path = tmp_path / "events.jsonl"
    tail = EventTail(HeldFile().read)
    tail.skip(str(path))
    path.write_bytes(lines(started(1.0)))
    tail.skip(str(path))
    with path.open("ab") as more:
        more.write(lines(trained(1)) + b'{"type": "cu')
    assert [event["training_step"] for event in tail.read(str(path))] == [1]
    with path.open("ab") as more:
        more.write(b't"}\n')
    path.unlink()
    assert [event["type"] for event in tail.read(str(path))] == ["cut"]
    path.write_bytes(lines(started(2.0)))
    assert [event["time"] for event in tail.read(str(path))] == [2.0]


def shards(done: int, label: str = "read", **rows: int) -> dict:
    return {"type": "progress", "done": done, "total": 9, "label": label, "rows": rows}


def test_rows_are_counted_once_each_over_parts_kills_and_repeated_events():
    """Parts of 6 and 5 documents, then a start that does 4 of them again: 15 in all."""
    sums = activity(
        started(), shards(1, documents=2), shards(2, documents=6), shards(2, documents=6),
        shards(1, "join", documents=5), shards(2, documents=6, rejected=1),
        started(), shards(2), shards(3, documents=4),
    )  # fmt: skip
    assert sums.rows == {"documents": 15, "rejected": 1}


@pytest.mark.parametrize("rows", [None, 3, [1], {"documents": "x"}, {"documents": True}])
def test_rows_that_are_no_numbers_are_left_out(rows):
    sums = activity(started(), {**shards(1), "rows": rows})
    assert sums.progress["done"] == 1
    assert not sums.rows
