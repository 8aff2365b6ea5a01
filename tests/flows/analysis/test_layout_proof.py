"""`ingot prove-resume --layouts`: names of layouts, and a run with another one after each kill."""

from __future__ import annotations

import json

import numpy as np
import pytest
from click.testing import CliRunner

from artifacts_schema.errors import UsageError
from flows.analysis.layout_proof import (
    LayoutLife,
    LayoutProof,
    compare_losses,
    compare_rows,
    loss_tolerance,
    parse_layout,
    parse_layouts,
)
from flows.analysis.watched_child import row_hashes
from flows.cli.main import main
from stages.pretrain.task import Sequences
from stages.training.rows import Rows


def test_a_number_is_shards_and_parts_are_keys():
    assert parse_layout("4").plain() == {**parse_layout("1").plain(), "shard": 4}
    both = parse_layout("dp2fsdp3")
    assert (both.data, both.shard, both.world) == (2, 3, 6)
    assert parse_layout("cp2").context == 2
    assert list(parse_layouts("1, 2,dp2")) == ["1", "2", "dp2"]


@pytest.mark.parametrize("text", ["", "x2", "dp", "dp2-fsdp2", "dp2dp2", "0", "dp0", "2dp"])
def test_what_is_no_layout_is_refused(text):
    with pytest.raises(UsageError):
        parse_layout(text)


def test_one_layout_is_too_few():
    with pytest.raises(UsageError):
        parse_layouts("2")


def test_the_tolerance_is_that_of_the_precision_and_the_optimizer():
    assert loss_tolerance({"precision": "fp32", "optimizer": {"name": "adamw"}}) == 1e-5
    assert loss_tolerance({"precision": "fp32", "optimizer": {"name": "muon"}}) == 1e-4
    group = {"match": "*", "optimizer": "muon"}
    settings = {"precision": "fp32", "optimizer": {"name": "adamw", "groups": [group]}}
    assert loss_tolerance(settings) == 1e-4
    assert loss_tolerance({"precision": "bf16", "optimizer": {"name": "muon"}}) == 5e-3


def sequences(tokens, filled=0):
    """A batch of these rows, of which the last ones fill it up."""
    array = np.array(tokens)
    rows = Rows(array, array.astype(np.int64), np.zeros_like(array))
    return Sequences(1, rows, np.zeros((len(array), 1), dtype=np.int64), filled)


def test_rows_have_the_same_checksums_whoever_reads_them():
    whole = row_hashes(sequences([[1, 2], [3, 4], [5, 6]]))
    parts = row_hashes(sequences([[1, 2], [3, 4]])) + row_hashes(sequences([[5, 6], [0, 0]], 1))
    assert whole == parts
    assert len(set(whole)) == 3
    assert row_hashes(sequences([[1, 2], [3, 5]]))[1] != whole[1]


def life(layout, first, last, rows, killed=None):
    return LayoutLife(layout, 2, first, last, killed, rows=rows)


def test_a_process_that_is_killed_may_lack_rows_of_its_last_step_only():
    whole = {1: {"a", "b"}, 2: {"c", "d"}, 3: {"e", "f"}}
    proof = LayoutProof("x", 3, 1e-5)
    proof.lives = [
        life("1", 1, 2, {1: {"a", "b"}, 2: {"c"}}, killed="in training step 2"),
        life("2", 2, 3, {2: {"c", "d"}, 3: {"e", "f"}}),
    ]
    compare_rows(proof, whole)
    assert proof.holds
    assert [one.batches for one in proof.lives] == [1, 2]
    proof.lives[1].rows[3] = {"e"}
    compare_rows(proof, whole)
    assert [problem.partition(":")[0] for problem in proof.problems] == [
        "training step 3, layout 2", "training step 3",
    ]  # fmt: skip


def test_a_loss_out_of_tolerance_is_named_with_its_step():
    proof = LayoutProof("x", 2, 1e-3, [life("1", 1, 1, {}, "x"), life("2", 2, 2, {})])
    compare_losses(proof, ({1: 5.0, 2: 4.0}, {}), ({1: 5.0005, 2: 4.1}, {}))
    assert [one.loss_difference for one in proof.lives] == pytest.approx([5e-4, 0.1])
    assert len(proof.problems) == 1
    assert proof.problems[0].startswith("training step 2: loss 4.0 ")
    compare_losses(proof, ({1: float("nan")}, {}), ({1: 5.0}, {}))
    assert len(proof.problems) == 2


@pytest.mark.full
@pytest.mark.faults
def test_a_run_that_changes_its_layout_at_each_kill_is_the_same_run(recipe, store):
    result = CliRunner().invoke(
        main,
        [
            "prove-resume", str(recipe), "--store", store.url, "--training-steps", "9",
            "--kills", "1", "--layouts", "1,2,cp2", "--json",
        ],
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    proof = json.loads(result.stdout)
    assert proof["holds"]
    assert [one["layout"] for one in proof["lives"]] == ["1", "2", "cp2"]
    assert [one["ranks"] for one in proof["lives"]] == [1, 2, 2]
    assert [one["killed"] is None for one in proof["lives"]] == [False, False, True]
    assert (proof["lives"][0]["first"], proof["lives"][-1]["last"]) == (1, 9)
    assert proof["lives"][-1]["loss_difference"] <= proof["tolerance"] == 1e-5


@pytest.mark.faults
def test_a_layout_that_does_not_exist_is_refused(recipe, store):
    result = CliRunner().invoke(
        main, ["prove-resume", str(recipe), "--store", store.url, "--layouts", "1,xy2"]
    )
    assert result.exit_code == 2
    assert "xy2" in result.output
