"""Merging: by arithmetic and the papers' definitions, then the stage on real checkpoints."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given as drawn
from hypothesis import strategies as st
from safetensors.torch import load, save

from artifacts_schema.errors import InputError, UsageError
from stages.engine.page import Artifact
from stages.merge_checkpoints.config import MergeConfig
from stages.merge_checkpoints.merging import merge_linear, merge_slerp, merge_ties, trim
from stages.merge_checkpoints.page import page
from stages.merge_checkpoints.stage import MergeCheckpoints


def array(*values):
    return np.array(values, dtype=np.float32)


def test_linear_is_the_weighted_mean():
    merged = merge_linear([array(1, 2), array(3, 6), array(5, 4)], [0.5, 0.25, 0.25])
    assert merged.tolist() == [2.5, 3.5]


def test_weights_by_decay_double_towards_the_last():
    assert MergeConfig(decay=0.5).shares(3) == pytest.approx([1 / 7, 2 / 7, 4 / 7])
    assert MergeConfig().shares(4) == [0.25] * 4
    assert MergeConfig(weights=(1, 3)).shares(2) == [0.25, 0.75]


def test_slerp_halfway_between_right_angles_lies_on_the_circle():
    merged = merge_slerp(array(2, 0), array(0, 2), 0.5)
    assert merged.tolist() == pytest.approx([math.sqrt(2), math.sqrt(2)])
    third = merge_slerp(array(1, 0), array(0, 1), 1 / 3)
    assert third.tolist() == pytest.approx([math.cos(math.pi / 6), math.sin(math.pi / 6)])


@drawn(st.floats(0, 1), st.integers(0, 1000))
def test_slerp_keeps_the_length_of_vectors_of_one_length(share, seed):
    draw = np.random.default_rng(seed)
    one, two = (draw.standard_normal(8).astype(np.float32) for _ in range(2))
    one, two = one / np.linalg.norm(one), two / np.linalg.norm(two)
    assert np.linalg.norm(merge_slerp(one, two, share)) == pytest.approx(1, abs=1e-5)


def test_slerp_of_parallel_tensors_is_the_straight_line():
    assert merge_slerp(array(1, 1), array(3, 3), 0.25).tolist() == pytest.approx([1.5, 1.5])
    assert merge_slerp(array(0, 0), array(2, 4), 0.5).tolist() == [1, 2]


def test_ties_trims_elects_and_averages_what_agrees():
    """By hand, density 1/2: of (4, 1, -3, .5) stay 4 and -3; of (-1, 2, -5, .1) stay 2 and -5.

    Sums are 4, 2, -8, 0; the first two have one change each, the third the mean of -3 and -5.
    """
    base = array(10, 10, 10, 10)
    first, second = base + array(4, 1, -3, 0.5), base + array(-1, 2, -5, 0.1)
    assert trim(first - base, 0.5).tolist() == [4, 0, -3, 0]
    merged = merge_ties(base, [first, second], [0.5, 0.5], 0.5, 1.0)
    assert merged.tolist() == [14, 12, 6, 10]
    halved = merge_ties(base, [first, second], [0.5, 0.5], 0.5, 0.5)
    assert halved.tolist() == [12, 11, 8, 10]
    # A contrary change of less weight is left out: 4 against -1 gives 4.
    whole = merge_ties(base, [first, second], [0.5, 0.5], 1.0, 1.0)
    assert whole[0] == 14


@drawn(st.integers(0, 1000), st.floats(0.05, 1))
def test_ties_of_one_change_alone_is_that_change_trimmed(seed, density):
    draw = np.random.default_rng(seed)
    base, tensor = (draw.standard_normal(20).astype(np.float32) for _ in range(2))
    merged = merge_ties(base, [tensor, tensor], [0.5, 0.5], density, 1.0)
    np.testing.assert_allclose(merged, base + trim(tensor - base, density), rtol=1e-5, atol=1e-6)


@pytest.fixture
def checkpoints(checkpoint, read_input, given):
    """Three checkpoints of one architecture: the weights plus 0, plus noise, plus other noise."""
    start = read_input(*checkpoint)
    files = {path: start.read_bytes(path) for path in start.paths() if path.endswith("json")}
    weights = load(start.read_bytes("model.safetensors"))

    def noisy(seed):
        if seed == 0:
            return checkpoint
        torch.manual_seed(seed)
        moved = {name: one + 0.01 * torch.randn_like(one) for name, one in weights.items()}
        return given("checkpoint", {**files, "model.safetensors": save(moved)})

    return [noisy(seed) for seed in (0, 1, 2)]


def weights_of(read_input, artifact):
    return load(read_input(*artifact).read_bytes("model.safetensors"))


def test_the_stage_merges_every_tensor_and_says_of_what(
    checkpoints, run_stage, read_input, store, given
):
    made = run_stage(MergeCheckpoints, {"decay": 0.5}, {"checkpoints": checkpoints})
    merged = weights_of(read_input, (made, "checkpoint"))
    all_weights = [weights_of(read_input, one) for one in checkpoints]
    for name, tensor in merged.items():
        wanted = sum(w[name] * s for w, s in zip(all_weights, (1 / 7, 2 / 7, 4 / 7), strict=True))
        torch.testing.assert_close(tensor, wanted, rtol=1e-5, atol=1e-6)
    state = read_input(made, "checkpoint").read_json("state.json")
    assert [one["share"] for one in state["merged"]["checkpoints"]] == pytest.approx(
        [1 / 7, 2 / 7, 4 / 7]
    )
    facts, shares = page(Artifact(store, made))
    assert dict(facts.rows)["method"] == "linear"
    assert [row[2] for row in shares.rows] == pytest.approx([1 / 7, 2 / 7, 4 / 7])


def test_ties_and_slerp_run_and_a_merge_is_released(checkpoints, run_stage, read_input):
    from stages.export.stage import Export

    base, *others = checkpoints
    inputs = {"checkpoints": others, "base": [base]}
    ties = run_stage(MergeCheckpoints, {"method": "ties"}, inputs)
    arc = run_stage(MergeCheckpoints, {"method": "slerp", "share": 0.3}, {"checkpoints": others})
    assert ties.outputs["checkpoint"].digest != arc.outputs["checkpoint"].digest
    released = run_stage(Export, {}, {"checkpoint": [(ties, "checkpoint")]})
    lineage = read_input(released, "release").read_json("ingot.json")
    assert lineage["state"]["merged"]["method"] == "ties"


def test_a_kill_leaves_no_half_and_a_second_run_has_the_same_bytes(
    checkpoints, run_stage, store, killed_at
):
    inputs = {"checkpoints": checkpoints}
    whole = run_stage(MergeCheckpoints, {}, inputs)
    store.backend.remove(f"artifacts/merge_checkpoints/{whole.key}.json")
    with killed_at("payload written"):
        run_stage(MergeCheckpoints, {}, inputs)
    again = run_stage(MergeCheckpoints, {}, inputs)
    assert again.outputs["checkpoint"].digest == whole.outputs["checkpoint"].digest


def test_another_architecture_or_tokenizer_is_refused_by_field(
    checkpoints, run_stage, read_input, given, make_model
):
    start = read_input(*checkpoints[0])
    files = {path: start.read_bytes(path) for path in start.paths()}
    shape = start.read_json("model.json")
    other = given("checkpoint", {**files, "model.json": {**shape, "context": 128}})
    with pytest.raises(InputError, match="context 64 and 128"):
        run_stage(MergeCheckpoints, {}, {"checkpoints": [checkpoints[0], other]})
    changed = files["tokenizer.json"].replace(b'"single_word"', b'"single_word" ', 1)
    other = given("checkpoint", {**files, "tokenizer.json": changed})
    with pytest.raises(InputError, match="other tokenizers"):
        run_stage(MergeCheckpoints, {}, {"checkpoints": [checkpoints[0], other]})


@pytest.mark.parametrize(
    ("config", "count", "base", "where"),
    [
        ({"method": "slerp"}, 3, False, "method"),
        ({"method": "ties"}, 2, False, "method"),
        ({"method": "linear"}, 2, True, "method"),
        ({"weights": [1, 2, 3]}, 2, False, "weights"),
    ],
)
def test_inputs_that_do_not_fit_the_method_are_refused_in_the_plan(config, count, base, where):
    inputs = {"checkpoints": [None] * count, "base": [None] if base else []}
    with pytest.raises(UsageError) as caught:
        MergeCheckpoints.check_plan(MergeConfig.parse(config, where="config"), inputs)
    assert caught.value.where == where


@pytest.mark.parametrize(
    "fields",
    [
        {"method": "slerp", "density": 0.5},
        {"share": 0.2},
        {"weights": [1.0], "decay": 0.5},
        {"weights": [0.0, 0.0]},
        {"weights": [-1.0, 2.0]},
    ],
)
def test_fields_that_contradict_are_refused(fields):
    with pytest.raises(UsageError):
        MergeConfig.parse(fields, where="config")
