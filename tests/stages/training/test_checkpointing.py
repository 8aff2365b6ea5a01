"""Rolling checkpoints: written by a thread, as they were when taken; and which of them stay."""

import logging
import threading
from concurrent import futures

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from artifacts_schema.errors import StoreError
from artifacts_schema.store import failpoints
from stages.training.checkpointing import (
    MOST_KEPT,
    OPTIMIZER,
    WEIGHTS,
    HostMemory,
    RollingCheckpoints,
)
from stages.training.monitor import RunLog

LOG = logging.getLogger("test")


@pytest.fixture
def checkpoints(tmp_path):
    log = RunLog(tmp_path / "log")
    yield RollingCheckpoints(tmp_path / "checkpoints", log, LOG)
    log.close()


def save(checkpoints, step, value=0.0, horizon=None):
    weights = {"w": torch.full((3,), value)}
    tensors = {WEIGHTS: weights, OPTIMIZER: {}}
    checkpoints.save(step, tensors, {"rollbacks": 0}, horizon=horizon)
    return weights


def kept(checkpoints):
    checkpoints.settle()
    return sorted(int(one.name[-12:]) for one in checkpoints.folder.iterdir())


def test_what_is_written_is_what_was_there_when_it_was_taken(checkpoints, monkeypatch):
    """The writer waits until the weights have changed and the log has gone on."""
    go_on = threading.Event()
    real = checkpoints._write

    def waits(*given, **named):
        go_on.wait(20)
        real(*given, **named)

    monkeypatch.setattr(checkpoints, "_write", waits)
    weights = save(checkpoints, 1, 1.0)
    weights["w"].fill_(2.0)
    checkpoints.run_log.append("metrics", {"training_step": 2})
    go_on.set()
    checkpoints.settle()
    saved = checkpoints.newest()
    assert saved.weights["w"].tolist() == [1.0] * 3
    assert saved.position.bytes == 0


def test_a_save_waits_for_the_one_before_it(checkpoints):
    for step in range(1, 30):
        save(checkpoints, step, float(step))
    assert kept(checkpoints) == [28, 29]
    assert checkpoints.newest().weights["w"].tolist() == [29.0] * 3


def test_a_disk_that_is_full_is_told_with_the_next_call_and_earlier_ones_stay(
    checkpoints, monkeypatch
):
    save(checkpoints, 1, 1.0)
    checkpoints.settle()

    def full(point):
        if point == "checkpoint files written":
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(failpoints, "on_failpoint", full)
    save(checkpoints, 2)
    futures.wait([checkpoints._last])
    with pytest.raises(StoreError, match="No space left") as raised:
        checkpoints.check()
    assert "000000000002" in raised.value.where
    assert "the same command goes on" in raised.value.hint
    checkpoints.check()  # It is told once.
    assert kept(checkpoints) == [1]
    assert checkpoints.newest().weights["w"].tolist() == [1.0] * 3


@settings(max_examples=60, deadline=None)
@given(
    steps=st.lists(st.integers(1, 9), min_size=1, max_size=25),
    depths=st.lists(st.integers(0, 40), min_size=25, max_size=25),
)
def test_there_is_always_one_before_the_horizon_and_never_more_than_four(
    steps, depths, tmp_path_factory
):
    """The horizon only ever moves on; the first checkpoint lies before it."""
    folder = tmp_path_factory.mktemp("kept")
    log = RunLog(folder / "log")
    checkpoints = RollingCheckpoints(folder / "checkpoints", log, LOG)
    step, horizon = 0, 1
    save(checkpoints, 0, horizon=horizon)
    for more, depth in zip(steps, depths, strict=False):
        step += more
        horizon = max(horizon, step + 1 - depth)
        save(checkpoints, step, horizon=horizon)
        left = kept(checkpoints)
        assert min(left) < horizon
        assert left[-1] == step
        assert len(left) <= MOST_KEPT
    log.close()


def test_one_that_is_not_usable_is_named_removed_and_told(checkpoints, caplog):
    save(checkpoints, 4, horizon=1)
    save(checkpoints, 8, horizon=1)
    checkpoints.settle()
    saved = checkpoints.newest(lambda step, state: step < 5 and state["rollbacks"] == 0)
    assert saved.state["rollbacks"] == 0
    assert (
        "training-step-000000000008 is not used: it has seen data that is left out" in caplog.text
    )
    assert checkpoints.refused == [
        ("training-step-000000000008", "has seen data that is left out since")
    ]
    assert kept(checkpoints) == [4]


class Published:
    """What `stages.engine.state.State` does for a remote store, in memory."""

    def __init__(self, root):
        self.sets = {}
        self.folder = root / "work" / "state" / "code" / "1-holder"
        self.folder.mkdir(parents=True)

    def check(self):
        pass

    def publish(self, name, *paths):
        self.sets[name] = sorted(path.name for path in paths)
        return True

    def published(self):
        return sorted(self.sets)

    def withdraw(self, name):
        del self.sets[name]


def test_decisions_are_published_with_each_checkpoint_and_what_is_refused_is_withdrawn(tmp_path):
    """So that another machine goes on from the same decisions, and from no later checkpoint."""
    log, decisions, state = (
        RunLog(tmp_path / "log"),
        tmp_path / "rollbacks.json",
        Published(tmp_path),
    )
    checkpoints = RollingCheckpoints(
        tmp_path / "checkpoints", log, LOG, state=state, sidecars=[decisions]
    )
    log.append("metrics", {"training_step": 3})
    save(checkpoints, 3, horizon=1)
    checkpoints.settle()
    decisions.write_text("[]")
    save(checkpoints, 6, horizon=1)
    checkpoints.settle()
    three, six = (f"training-step-{step:012d}" for step in (3, 6))
    assert state.sets == {
        three: sorted([three, "000000.jsonl"]),
        six: sorted([six, "000000.jsonl", "rollbacks.json"]),
    }
    checkpoints.newest(lambda step, content: step < 6)
    assert state.published() == [three]
    for step in (7, 8, 9):
        save(checkpoints, step)
    checkpoints.settle()
    assert [int(name[-12:]) for name in state.published()] == kept(checkpoints) == [8, 9]
    log.close()


def test_memory_of_the_host_is_used_again():
    memory = HostMemory()
    first = memory.copies({"a": {"x": torch.ones(4)}})["a"]["x"]
    second = memory.copies({"a": {"x": torch.zeros(4)}})["a"]["x"]
    assert first.data_ptr() == second.data_ptr()
    assert second.tolist() == [0.0] * 4
    other = memory.copies({"a": {"x": torch.zeros(5)}})["a"]["x"]
    assert other.shape == (5,)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_copies_from_a_gpu_are_page_locked_and_whole_when_it_returns():
    memory, source = HostMemory(), torch.arange(1 << 22, device="cuda", dtype=torch.float32)
    copied = memory.copies({"a": {"x": source}})["a"]["x"]
    source.zero_()
    assert copied.is_pinned()
    assert copied[-1].item() == (1 << 22) - 1
