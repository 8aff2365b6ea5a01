"""Permanent checkpoints as the loop meets them: due steps, forms, rollbacks."""

from __future__ import annotations

import io
import json
from contextlib import contextmanager
from dataclasses import dataclass, field

import pytest
import torch
from safetensors.torch import load

from stages.engine import Milestone
from stages.model.config import ModelShape
from stages.model.decoder import Decoder
from stages.training.checkpointing import Saved
from stages.training.permanent import PermanentCheckpoints, write_checkpoint_files

MILESTONES = [Milestone(3, "3K"), Milestone(5, "5K"), Milestone(9, "9K")]


def in_memory(files):
    """Opens files whose content is put in `files`."""

    @contextmanager
    def open_file(name):
        file = io.BytesIO()
        yield file
        files[name] = file.getvalue()

    return open_file


@dataclass
class Context:
    """The part of a stage's context that is used: notes what would be committed."""

    made: list = field(default_factory=list)
    back: list = field(default_factory=list)

    class attempt:
        stage = "pretrain"

    def interim(self, at, outputs, *, history, **counts):
        self.made.append({"at": at.at, "history": history, "counts": counts, "files": {}})
        return self

    def __enter__(self):
        return self

    def __exit__(self, *_):
        return None

    @contextmanager
    def open(self, output, name):
        assert output == "checkpoint"
        with in_memory(self.made[-1]["files"])(name) as file:
            yield file

    def withdraw_interims(self, after):
        self.back.append(after)


class Tokenizer:
    """Gives its files."""

    def read_bytes(self, name):
        return name.encode()


@pytest.fixture
def model():
    shape = ModelShape(width=16, layers=1, heads=2, kv_heads=1, context=8)
    return Decoder(shape.with_vocabulary(11), seed=0)


@pytest.fixture
def keep(model):
    """`keep(**more)` → the context, and the checkpoints of three milestones in it."""

    def make(**more):
        context = Context()
        state_at = {"phase": 1}.copy
        kept = PermanentCheckpoints(
            context, MILESTONES, model=model, tokenizer=Tokenizer(),
            state_at=lambda step: {**state_at(), "clock": {"at": step}}, **more,
        )  # fmt: skip
        return context, kept

    return make


def made(model, weights, state=(), **more):
    files = {}
    write_checkpoint_files(
        in_memory(files), model.config, weights, dict(state), Tokenizer(), **more
    )
    return files


def saved(model, **state):
    moments = {"embedding.weight.step": torch.tensor(3.0)}
    return Saved(dict(model.state_dict()), moments, {"skipped": 2, "left_out": [], **state})


def test_only_what_is_due_is_committed_and_the_last_is_the_runs_own(keep, model):
    context, kept = keep()
    due = [step for step in range(1, 10) if kept.is_due(step)]
    assert due == [3, 5]
    for step in due:
        kept.commit(step, step * 100, saved(model))
    assert [one["at"] for one in context.made] == [3, 5]
    first = context.made[0]
    assert first["counts"] == {"training_steps": 3, "tokens": 300}
    state = json.loads(first["files"]["state.json"])
    assert state == {
        "stage": "pretrain", "training_step": 3, "tokens": 300, "skipped_updates": 2,
        "phase": 1, "clock": {"at": 3},
    }  # fmt: skip
    assert sorted(first["files"]) == [
        "model.json", "model.safetensors", "optimizer.safetensors", "state.json",
        "tokenizer.json", "tokenizer_config.json",
    ]  # fmt: skip


def test_without_the_optimizer_it_is_left_out(keep, model):
    context, kept = keep(optimizer=False)
    kept.commit(3, 1, saved(model))
    assert "optimizer.safetensors" not in context.made[0]["files"]


def test_what_a_rollback_left_out_enters_the_key_from_there_on(keep, model):
    """Left out: steps 4 to 6. Of what lies before, nothing was decided."""
    context, kept = keep()
    kept.rolled_back(4)
    assert context.back == [3]
    left_out = [[4, 6]]
    kept.commit(3, 1, saved(model, left_out=left_out))
    kept.commit(5, 1, saved(model, left_out=left_out))
    assert [one["history"] for one in context.made] == [[], [[4, 6]]]
    assert json.loads(context.made[1]["files"]["state.json"])["left_out"] == [[4, 6]]


def test_readers_get_the_average_that_is_asked_for_and_training_its_weights(model):
    weights = dict(model.state_dict())
    ema = {f"ema.{name}": one + 1 for name, one in model.named_parameters()}
    averages = {**ema, "updates.ema": torch.tensor(3)}
    files = made(model, weights, optimizer={}, averages=averages, output="ema")
    read, trained = load(files["model.safetensors"]), load(files["trained.safetensors"])
    name = next(iter(ema)).removeprefix("ema.")
    assert torch.equal(read[name], weights[name] + 1)
    assert torch.equal(trained[name], weights[name])
    assert read.keys() == trained.keys() == weights.keys()
    assert load(files["averages.safetensors"]).keys() == averages.keys()


def test_before_there_is_an_average_readers_get_the_weights(model):
    files = made(model, dict(model.state_dict()), optimizer={}, averages={}, output="mean")
    assert "trained.safetensors" not in files
    assert load(files["model.safetensors"]).keys() == model.state_dict().keys()


def test_equal_parts_give_equal_bytes(model):
    def files():
        weights = {name: one.clone() for name, one in model.state_dict().items()}
        return made(model, weights, {"b": 1, "a": 2}, optimizer={})

    assert files() == files()
