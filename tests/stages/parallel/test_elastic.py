"""Checkpoints of one layout, read by another: training goes on as if nothing had happened."""

import logging
from pathlib import Path

import numpy as np
import pytest
import torch
from parallel_training import CASES, EXPERTS, Training, whole_weights
from ranks import run_ranks

from stages.parallel.layout import Layout
from stages.training.checkpointing import (
    AVERAGES,
    OPTIMIZER,
    WEIGHTS,
    RollingCheckpoints,
    load_weights,
)
from stages.training.monitor import NoLog, RunLog

LOG = logging.getLogger("tests")
DENSE = [
    Layout(),
    Layout(shard=2),
    Layout(shard=4),
    Layout(tensor=2, data=2),
    Layout(pipeline=2, tensor=2),
    Layout(context=2),
    Layout(pipeline=2, interleave=2),
    Layout(),
]
"""Each reads what the one before it wrote."""
QUICK = [Layout(), Layout(tensor=2), Layout(pipeline=2), Layout(shard=2), Layout()]
OF_EXPERTS = [
    Layout(),
    Layout(data=2, expert=2),
    Layout(shard=2, expert=2, tensor=2),
    Layout(pipeline=2),
    Layout(),
]


def two_steps(layout: Layout, case: dict, folder: Path, first: int) -> dict:
    """Restore what is in `folder`, take two training steps, save; all of it, and the losses."""
    training = Training(layout, case)
    ranks, model = training.ranks, training.model
    log = RunLog(folder / "log") if ranks.first else NoLog()
    checkpoints = RollingCheckpoints(folder / "checkpoints", log, LOG, ranks=ranks)
    if first:
        newest = checkpoints.newest() if ranks.first else None
        name, state = ranks.share((newest.name, newest.state) if newest else ("", {}))
        saved = newest or checkpoints.read(name, state, None)
        assert state["step"] == first
        load_weights(model, saved.weights, where="weights")
        training.optimizer.load(saved.optimizer, where="optimizer")
        training.averages.load(saved.averages, model, where="averages")
    restored = whole_weights(model, ranks)
    losses = [training.step(step)["loss"] for step in (first, first + 1)]
    tensors = {
        WEIGHTS: model.state_dict(),
        OPTIMIZER: training.optimizer.tensors(),
        AVERAGES: training.averages.tensors(),
    }
    checkpoints.save(first + 2, tensors, {"step": first + 2})
    checkpoints.settle()
    checkpoints.close()
    return {
        "losses": losses,
        "restored": restored,
        "weights": whole_weights(model, ranks),
        "measured": training.measured(0),
    }


@pytest.mark.parametrize(
    ("layouts", "case"),
    [
        pytest.param(QUICK, "adamw", id="quick"),
        pytest.param(DENSE, "heads", marks=pytest.mark.full, id="dense"),
        pytest.param(DENSE, "variants", marks=pytest.mark.full, id="tied"),
        pytest.param(OF_EXPERTS, "experts", marks=pytest.mark.full, id="experts"),
    ],
)
def test_any_layout_goes_on_from_any_other(layouts, case, tmp_path):
    torch.set_num_threads(1)
    alone = Training(Layout(), CASES[case])
    expected = [alone.step(step)["loss"] for step in range(2 * len(layouts))]
    losses, before = [], None
    for number, layout in enumerate(layouts):
        arguments = (layout, CASES[case], tmp_path, 2 * number)
        if layout.world == 1:
            (result,) = [two_steps(*arguments)]
        else:
            result = run_ranks(layout.world, two_steps, *arguments)[0]
        if before is not None:  # What is read is what was written, to the bit.
            for name, weights in before["weights"].items():
                assert np.array_equal(result["restored"][name], weights), (layout, name)
        losses += result["losses"]
        before = result
    # Differences of 1e-7 grow over 16 training steps with seven changes of layout.
    tolerance = 1e-5 if case == "adamw" else 1e-4
    assert np.abs(np.subtract(losses, expected)).max() <= tolerance
    assert EXPERTS.chosen < EXPERTS.experts
    assert abs(before["measured"] - alone.measured(0)) <= tolerance * 160


def test_a_checkpoint_without_one_ranks_part_is_not_read(tmp_path):
    run_ranks(2, two_steps, Layout(tensor=2), CASES["adamw"], tmp_path, 0)
    (folder,) = (tmp_path / "checkpoints").glob("training-step-*")
    parts = sorted(folder.glob("model-*.safetensors"))
    assert len(parts) == 2
    parts[1].unlink()
    checkpoints = RollingCheckpoints(tmp_path / "checkpoints", RunLog(tmp_path / "log"), LOG)
    assert checkpoints.newest() is None
    assert [name for name, _ in checkpoints.refused] == [folder.name]
