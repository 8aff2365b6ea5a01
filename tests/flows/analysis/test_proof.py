"""`ingot prove-resume`: it says bit-exact of what is, and names what is not."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import pytest
import torch
from click.testing import CliRunner

from flows.analysis import resume_proof
from flows.cli.main import main
from stages.training.checkpointing import RollingCheckpoints

pytestmark = pytest.mark.faults


@pytest.fixture
def prove(recipe, store, in_forks, tmp_path):
    """`prove(*flags)`: the command on the tiny recipe; the click result."""

    def run(*flags):
        given = ["prove-resume", str(recipe), "--store", store.url, "--training-steps", "9"]
        return CliRunner().invoke(main, [*given, *map(str, flags)])

    return run


def test_a_run_that_is_killed_and_resumed_is_bit_exact(prove, store):
    before = set(store.keys())
    result = prove("--kills", 3, "--json")
    assert result.exit_code == 0, result.output
    told = json.loads(result.stdout)
    assert (told["step"], told["training_steps"]) == ("tiny/base", 9)
    assert told["bit_exact"]
    assert told["differences"] == []
    killed = [life["killed"] for life in told["lives"]]
    assert killed[-1] is None
    assert len(killed) == 4
    assert sum("in a save" in one for one in killed[:-1]) == 1
    assert (told["lives"][0]["first"], told["lives"][-1]["last"]) == (1, 9)
    compared = told["compared"]
    assert (compared["batches"], compared["losses and gradient norms"]) == (9, 9)
    assert compared["permanent checkpoints"] == 1
    assert set(store.keys()) == before, "the proof leaves nothing in the store"


def forgetful(monkeypatch, forget):
    """Resuming reads back something else than was saved."""
    newest = RollingCheckpoints.newest

    def changed(self, *given):
        saved = newest(self, *given)
        return saved if saved is None else forget(saved)

    monkeypatch.setattr(RollingCheckpoints, "newest", changed)


@pytest.mark.full
def test_lost_moments_are_found_at_the_first_step_that_they_change(prove, monkeypatch):
    """The update after the resume is another; so the loss of the training step behind it."""
    forgetful(monkeypatch, lambda saved: replace(saved, optimizer={}))
    monkeypatch.setattr(resume_proof, "draw_kills", lambda *_: [resume_proof.Kill(step=5)])
    result = prove("--kills", 1, "--json")
    assert result.exit_code == 1
    told = json.loads(result.stdout)
    assert not told["bit_exact"]
    # The first step behind the resume has the loss of the weights that were saved.
    resumed, first = told["lives"][1]["first"], told["differences"][0]
    assert 1 < resumed <= 5
    assert first["training_step"] == resumed + 1
    assert first["what"].startswith("metrics: loss ")
    files = [one["what"] for one in told["differences"] if one["training_step"] is None]
    assert any(one.startswith("checkpoint/model.safetensors: ") for one in files)


def test_one_changed_weight_is_found_at_the_very_step(prove, monkeypatch):
    def nudge(saved):
        weights = dict(saved.weights)
        name = next(iter(weights))
        weights[name] = weights[name] + torch.tensor(1e-3)
        return replace(saved, weights=weights)

    forgetful(monkeypatch, nudge)
    monkeypatch.setattr(resume_proof, "draw_kills", lambda *_: [resume_proof.Kill(step=5)])
    told = json.loads(prove("--kills", 1, "--json").stdout)
    first = told["differences"][0]
    assert first["training_step"] == told["lives"][1]["first"]
    assert first["what"].startswith("metrics: loss ")


def test_data_that_differs_is_named_as_the_batch(prove, monkeypatch):
    from stages.training.token_shards import TokenShards

    batch, lives = TokenShards.batch, []
    monkeypatch.setattr(resume_proof, "draw_kills", lambda *_: [resume_proof.Kill(step=5)])
    live = resume_proof.run_life

    def once(store, spec, record, strike):
        lives.append(strike)
        if len(lives) == 3:  # The life behind the kill.
            monkeypatch.setattr(
                TokenShards, "batch", lambda self, a, b: batch(self, a, (b + 1) % 20)
            )
        return live(store, spec, record, strike)

    monkeypatch.setattr(resume_proof, "run_life", once)
    result = prove("--kills", 1)
    assert result.exit_code == 1
    assert re.search(r"not bit-exact, first in training step [45]: its batch", result.stdout)


def test_a_run_that_fails_says_why(prove, monkeypatch):
    result = prove("--set", "base.max_epochs=0.001")
    assert result.exit_code == 1
    assert "max_epochs is 0.001" in result.output


def test_a_recipe_without_such_a_step_is_refused(project, store):
    result = CliRunner().invoke(
        main, ["prove-resume", str(project / "demo.yaml"), "--store", store.url]
    )
    assert result.exit_code == 2
    assert "--step" in result.output
