"""The loop on a toy task: a tiny decoder learns rows that are a function of the step number."""

import logging
import math
import os
from dataclasses import dataclass, field

import numpy as np
import pytest
import torch

from artifacts_schema.errors import IngotError, Stopped, StoreError
from artifacts_schema.kinds import Column
from artifacts_schema.store import failpoints
from stages.model.config import Experts, ModelShape
from stages.model.decoder import Decoder
from stages.training.averages import Averages
from stages.training.checkpointing import RollingCheckpoints
from stages.training.config import AveragesConfig, LearningRate, OptimizerConfig, TrainingExecution
from stages.training.examples import Example, pack_rows
from stages.training.fit import UNGUARDED
from stages.training.guard import Guard, Rollbacks
from stages.training.loop import Trainer
from stages.training.monitor import HeldOut, RunLog, held_out_table, metrics_table
from stages.training.optimizer import Optimizer
from stages.training.runtime import Runtime, runtime
from stages.training.schedule import schedule
from stages.training.task import MicroBatch, Task

CONTEXT = 16
STEPS = 9


class Killed(BaseException):
    """Stands for SIGKILL: nothing of the loop catches it."""


@dataclass
class ToyTask(Task):
    """Eight random examples a step; `dies` raises in the middle of that step."""

    how: Runtime
    dies: int | None = None
    broken: tuple[int, ...] = ()
    columns = (Column("targets", "int64", "Targets of the step."),)

    def examples(self, step):
        random = np.random.default_rng(step)
        for length in random.integers(3, CONTEXT, size=8):
            ids = np.cumsum(np.append(random.integers(1, 20), np.ones(length, dtype=int))) % 29
            yield Example(ids, np.ones(length + 1, dtype=bool))

    def micro_batches(self, model, training_step):
        rows = pack_rows(list(self.examples(training_step)), CONTEXT)
        for number, part in enumerate(rows.split(self.how.micro_batch)):
            loss = self.how.losses(model, part).sum() / rows.targets
            if training_step in self.broken:
                loss = loss * math.nan
            yield MicroBatch(loss, part.tokens, {"targets": torch.tensor(part.targets)})
            if training_step == self.dies and number == 0:
                raise Killed

    def measures(self, sums):
        return {"targets": round(sums["targets"][0])}

    def held_out(self, model):
        rows = pack_rows(list(self.examples(10**6)), CONTEXT)
        return [HeldOut("all", self.how.losses(model, rows).sum().item() / rows.targets, None)]


@dataclass
class FakeContext:
    """The part of `stages.engine.Context` that the loop uses; asks to stop at a given step."""

    accepted_code = ()

    stop_at: int | None = None
    done: int = 0
    log: logging.Logger = field(default_factory=lambda: logging.getLogger("test"))

    def progress(self, done, total, unit=""):
        self.done = done

    def metric(self, **numbers):
        pass

    def telemetry(self, **values):
        pass

    def alert(self, kind, text, **values):
        self.log.warning("%s", text)

    @property
    def stopping(self):
        return self.stop_at is not None and self.done >= self.stop_at

    def check_stop(self):
        if self.stopping:
            raise Stopped("stopped on request")


def train(
    work, *, every=2, context=None, precision="fp32", micro_batch=2, limit=0, experts=None, **task
):
    """Train to the end (or to what stops it) and give everything that must be bit-equal."""
    execution = TrainingExecution(
        device="cpu", threads=1, micro_batch=micro_batch, checkpoint_every=every
    )
    with runtime(execution, precision, seed=1) as how:
        shape = ModelShape(
            width=16, layers=2, heads=2, kv_heads=1, context=CONTEXT, experts=experts
        )
        model = Decoder(shape.with_vocabulary(29), seed=3)
        optimizer = Optimizer(model, OptimizerConfig(), precision)
        context = context or FakeContext()
        log = RunLog(work / "log")
        trainer = Trainer(
            model=model,
            optimizer=optimizer,
            averages=Averages(AveragesConfig(), STEPS),
            task=ToyTask(how, **task),
            schedule=schedule(
                [
                    (6, LearningRate(peak=1e-2, warmup_share=0.4)),
                    (STEPS - 6, LearningRate(decay="linear")),
                ],
                where="phases",
            ),
            layout=how.layout(),
            checkpoints=RollingCheckpoints(work / "checkpoints", log, context.log),
            rollbacks=Rollbacks(work / "rollbacks.json"),
            guard=Guard(UNGUARDED),
            context=context,
            checkpoint_every=every,
            held_out_every=4,
            skip_limit=limit,
        )
        try:
            progress = trainer.run()
        finally:
            log.close()
        tensors = {**model.state_dict(), **optimizer.tensors()}
        tables = metrics_table(log, ToyTask.columns), held_out_table(log, ())
        return progress, {name: t.clone() for name, t in tensors.items()}, tables


def assert_bit_equal(one, two):
    assert one[0] == two[0]
    assert one[1].keys() == two[1].keys()
    for name, tensor in one[1].items():
        assert torch.equal(tensor, two[1][name]), name
    for left, right in zip(one[2], two[2], strict=True):
        assert repr(left.to_pylist()) == repr(right.to_pylist())  # NaN is equal to itself here.


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    return train(tmp_path_factory.mktemp("undisturbed"))


def test_it_learns_and_measures(undisturbed):
    progress, _, (metrics, held_out) = undisturbed
    assert (progress.training_step, progress.skipped) == (STEPS, 0)
    assert metrics["training_step"].to_pylist() == list(range(1, STEPS + 1))
    assert metrics["tokens"].to_pylist()[-1] == progress.tokens
    assert metrics["phase"].to_pylist() == [0] * 6 + [1] * 3
    assert metrics["learning_rate"].to_pylist()[:3] == [0.005, 0.01, 0.01]
    assert held_out["training_step"].to_pylist() == [0, 4, 8, 9]
    first, *_, last = held_out["loss"].to_pylist()
    assert first == pytest.approx(math.log(29), rel=0.02)
    assert last < first - 0.3


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
@pytest.mark.parametrize("dies", [1, 2, 5, 6, STEPS])
def test_killed_inside_a_step_and_started_again_is_bit_equal(tmp_path, dies, precision):
    whole = train(tmp_path / "whole", precision=precision)
    with pytest.raises(Killed):
        train(tmp_path / "killed", dies=dies, precision=precision)
    assert_bit_equal(train(tmp_path / "killed", precision=precision), whole)


def test_killed_again_and_again_is_bit_equal(tmp_path, undisturbed):
    for dies in (3, 3, 7, 8):
        with pytest.raises(Killed):
            train(tmp_path, dies=dies)
    assert_bit_equal(train(tmp_path), undisturbed)


@pytest.mark.parametrize("every", [1, 3, 100])
def test_how_often_checkpoints_are_saved_changes_nothing(tmp_path, every, undisturbed):
    with pytest.raises(Killed):
        train(tmp_path, dies=8, every=every)
    assert_bit_equal(train(tmp_path, every=every), undisturbed)


@pytest.mark.parametrize("point", ["checkpoint files written", "checkpoint written"])
def test_killed_inside_a_save_is_bit_equal(tmp_path, killed_at, undisturbed, point):
    with killed_at(point, visit=2):
        train(tmp_path)
    assert_bit_equal(train(tmp_path), undisturbed)


@pytest.mark.parametrize("name", ["model.safetensors", "optimizer.safetensors", "state.json"])
def test_a_damaged_checkpoint_is_said_aloud_and_the_one_before_is_taken(
    tmp_path, undisturbed, caplog, name
):
    with pytest.raises(Killed):
        train(tmp_path, dies=7)
    newest = sorted((tmp_path / "checkpoints").iterdir())[-1]
    assert newest.name.endswith("06")
    with open(newest / name, "r+b") as file:
        file.seek(-3, os.SEEK_END)
        file.write(b"?")
    with caplog.at_level(logging.INFO):
        assert_bit_equal(train(tmp_path), undisturbed)
    assert f"it {name} is damaged" in caplog.text or f"{name} is damaged" in caplog.text
    assert "resumed at training step 4" in caplog.text


def test_without_any_whole_checkpoint_it_starts_over(tmp_path, undisturbed):
    with pytest.raises(Killed):
        train(tmp_path, dies=5)
    for folder in (tmp_path / "checkpoints").iterdir():
        os.truncate(folder / "model.safetensors", 10)
    assert_bit_equal(train(tmp_path), undisturbed)


def test_a_log_cut_short_makes_its_checkpoints_unusable(tmp_path, undisturbed):
    with pytest.raises(Killed):
        train(tmp_path, dies=5)
    os.truncate(tmp_path / "log" / "000000.jsonl", 100)
    assert_bit_equal(train(tmp_path), undisturbed)


def test_a_request_to_stop_saves_a_checkpoint_and_the_next_run_goes_on(tmp_path, undisturbed):
    with pytest.raises(Stopped) as stopped:
        train(tmp_path, every=100, context=FakeContext(stop_at=5))
    assert stopped.value.exit_code == 75
    context = FakeContext()
    assert_bit_equal(train(tmp_path, every=100, context=context), undisturbed)


def test_killed_after_the_last_step_it_does_not_train_again(tmp_path, undisturbed):
    train(tmp_path)
    assert_bit_equal(train(tmp_path, dies=1), undisturbed)


def test_only_the_last_two_checkpoints_are_kept(tmp_path):
    train(tmp_path, every=1)
    kept = sorted(path.name[-2:] for path in (tmp_path / "checkpoints").iterdir())
    assert kept == ["08", "09"]


def test_micro_batches_change_only_the_order_of_sums(tmp_path, undisturbed):
    other = train(tmp_path, micro_batch=100)
    assert other[2][0]["targets"] == undisturbed[2][0]["targets"]
    assert other[2][0]["tokens"] == undisturbed[2][0]["tokens"]
    losses = [run[2][0]["loss"].to_pylist() for run in (other, undisturbed)]
    assert losses[0] == pytest.approx(losses[1], abs=1e-5)


def test_a_step_that_is_not_finite_is_skipped_and_counted(tmp_path, caplog):
    progress, tensors, (metrics, _) = train(tmp_path, broken=(2,), limit=1)
    assert progress.skipped == 1
    assert metrics["skipped"].to_pylist() == [False, True] + [False] * (STEPS - 2)
    assert tensors["norm.weight.step"].item() == STEPS - 1
    assert all(torch.isfinite(tensor).all() for tensor in tensors.values())
    assert "training step 2 skipped" in caplog.text


EXPERTS = Experts(experts=4, chosen=1, width=8, bias_rate=0.01)


def bias(run):
    return next(one for name, one in run[1].items() if name.endswith("router.bias"))


def test_the_balance_of_experts_moves_with_each_update_and_with_no_other_step(tmp_path):
    """By 0.01 up or down (or not at all, at the mean) after each of eight updates of nine steps."""
    run = train(tmp_path / "a", experts=EXPERTS, broken=(5,), limit=1)
    moves = bias(run) / 0.01
    assert torch.allclose(moves, moves.round(), atol=1e-4)
    assert 0 < moves.abs().max() <= STEPS - 1
    with pytest.raises(Stopped):
        train(tmp_path / "b", experts=EXPERTS, context=FakeContext(stop_at=4))
    with pytest.raises(Stopped):
        train(tmp_path / "c", experts=EXPERTS, context=FakeContext(stop_at=5), broken=(5,), limit=1)
    saved = [
        next((tmp_path / run / "checkpoints").glob(f"*{step}")) / "model.safetensors"
        for run, step in (("b", "04"), ("c", "05"))
    ]
    assert saved[0].read_bytes() == saved[1].read_bytes()


@pytest.mark.parametrize("dies", [3, 6])
def test_killed_with_experts_is_bit_equal_though_a_step_was_skipped(tmp_path, dies):
    """Tokens that a skipped step counted must not be there for the next update's balance."""
    kind = {"experts": EXPERTS, "broken": (5,), "limit": 1, "every": 5}
    whole = train(tmp_path / "whole", **kind)
    with pytest.raises(Killed):
        train(tmp_path / "killed", dies=dies, **kind)
    assert_bit_equal(train(tmp_path / "killed", **kind), whole)


def test_a_skipped_step_leaves_weights_and_moments_as_they_were(tmp_path):
    """What the run knows after step 1 is what it knows after a skipped step 2."""
    with pytest.raises(Stopped):
        train(tmp_path / "a", context=FakeContext(stop_at=1))
    with pytest.raises(Stopped):
        train(tmp_path / "b", context=FakeContext(stop_at=2), broken=(2,), limit=1)
    saved = [
        next((tmp_path / run / "checkpoints").glob(f"*{step}"))
        for run, step in (("a", "01"), ("b", "02"))
    ]
    for name in ("model.safetensors", "optimizer.safetensors"):
        assert (saved[0] / name).read_bytes() == (saved[1] / name).read_bytes()


def test_too_many_skipped_steps_stop_the_run_with_a_verdict(tmp_path):
    with pytest.raises(IngotError, match=r"training step 4: 3\b"):
        train(tmp_path, broken=(2, 3, 4, 5), limit=2)


def test_a_full_disk_is_one_line_and_the_run_goes_on_later(tmp_path, undisturbed, monkeypatch):
    saves = []

    def full(point):
        saves.append(point)
        if saves.count("checkpoint files written") == 2:
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(failpoints, "on_failpoint", full)
    with pytest.raises(StoreError, match="No space left"):
        train(tmp_path)
    monkeypatch.setattr(failpoints, "on_failpoint", None)
    assert_bit_equal(train(tmp_path), undisturbed)


def test_torch_is_left_as_it_was_found():
    threads = torch.get_num_threads()
    with runtime(TrainingExecution(device="cpu", threads=threads + 1), "fp32", seed=0):
        assert torch.get_num_threads() == threads + 1
        assert torch.are_deterministic_algorithms_enabled()
    assert torch.get_num_threads() == threads
    assert not torch.are_deterministic_algorithms_enabled()
