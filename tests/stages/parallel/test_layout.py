"""Where ranks are in a layout, and what a layout refuses to divide."""

import itertools

import numpy as np
import pytest
import torch
from click.testing import CliRunner
from pydantic import ValidationError

from artifacts_schema.errors import UsageError
from flows.cli.main import main
from stages.model.config import Experts, ModelConfig
from stages.parallel.context_parallel import own_tokens
from stages.parallel.layout import Layout
from stages.parallel.ranks import CPU, Ranks

MODEL = ModelConfig(
    vocabulary_size=96, width=32, layers=6, heads=8, kv_heads=4, mlp_width=48, context=64
)


def test_every_rank_has_a_place_of_its_own():
    layout = Layout(pipeline=2, data=2, shard=3, context=2, tensor=2)
    assert layout.world == 48
    ranks = [Ranks(rank, 48, CPU, layout) for rank in range(48)]
    places = [(one.stage, one.row, one.context, one.tensor) for one in ranks]
    assert places == list(itertools.product(range(2), range(6), range(2), range(2)))
    counting = [one for one in ranks if one.counts]
    assert [(one.row, one.context) for one in counting] == list(
        itertools.product(range(6), range(2))
    )
    assert [one.rank for one in ranks if one.first_of_stage] == [0, 24]


def test_each_part_of_the_model_has_one_writer():
    assert Layout(data=3, shard=2).writers() == [0, 1]
    assert Layout(pipeline=2, data=2, shard=2, tensor=2).writers() == [0, 1, 2, 3, 8, 9, 10, 11]
    assert Layout(data=2, shard=2, expert=4).writers() == [0, 1, 2, 3]


@pytest.mark.parametrize(
    ("layout", "key", "number"),
    [
        (Layout(tensor=8), "tensor", "4 key and value heads"),
        (Layout(tensor=3), "tensor", "8 attention heads"),
        (Layout(pipeline=4), "pipeline", "6 layers"),
        (Layout(pipeline=2, interleave=2), "pipeline", "6 layers"),
        (Layout(expert=2), "expert", "1 ranks of different tokens"),
        (Layout(data=2, expert=2), "expert", "experts"),
    ],
)
def test_what_cannot_be_divided_is_named_with_the_setting(layout, key, number):
    with pytest.raises(UsageError) as caught:
        layout.check_model(MODEL, [64])
    assert number in caught.value.what
    assert f"execution.layout.{key}" in caught.value.where


def test_the_hint_names_the_numbers_that_would_do():
    with pytest.raises(UsageError) as caught:
        Layout(pipeline=4).check_model(MODEL, [])
    assert caught.value.hint.endswith("1, 2, 3, 6")


def test_experts_divide_by_expert_ranks():
    model = MODEL.model_copy(update={"experts": Experts(experts=6, chosen=2, width=16)})
    Layout(data=2, expert=2).check_model(model, [64])
    with pytest.raises(UsageError, match="6 experts cannot be divided by 4"):
        Layout(data=4, expert=4).check_model(model, [64])


def test_sequences_are_divided_by_context_and_tensor_ranks():
    Layout(context=2, tensor=2).check_model(MODEL, [64, 128])
    with pytest.raises(UsageError, match="sequences of 36 tokens cannot be divided by 8"):
        Layout(context=2, tensor=2).check_model(MODEL, [64, 36])


def test_a_plan_refuses_a_layout_before_anything_runs(tmp_path):
    setting = "pretrain.execution.layout.pipeline=5"
    command = ["plan", "quickstart", "--store", str(tmp_path / "store"), "--set", setting]
    result = CliRunner().invoke(main, command)
    assert result.exit_code == 2
    assert "steps.pretrain: execution.layout.pipeline: 6 layers" in result.output
    assert "1, 2, 3, 6" in result.output


def test_a_layout_has_no_ranks_that_are_not_there():
    with pytest.raises(ValidationError):
        Layout(tensor=0)


@pytest.mark.parametrize("ranks", [2, 3, 4])
def test_context_ranks_share_a_row_and_its_work(ranks):
    length = 24
    own = [own_tokens(length, rank, ranks) for rank in range(ranks)]
    assert sorted(np.concatenate(own)) == list(range(length))
    pairs = {int((one + 1).sum()) for one in own}  # Keys that the tokens of a rank see.
    assert len(pairs) == 1


def test_sums_of_one_process_are_its_own():
    assert Ranks().sum_number(7) == 7
    assert Ranks().counts
    assert torch.equal(Ranks().sum(torch.tensor([3.0])), torch.tensor([3.0]))
