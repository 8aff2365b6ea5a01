"""Averages against arithmetic on the weights that were seen."""

import pytest
import torch
from torch import nn

from artifacts_schema.errors import CorruptArtifact, UsageError
from stages.training.averages import Averages
from stages.training.config import AveragesConfig

STEPS = 12
BOTH = {"ema": 0.8, "last": 3, "every": 2}


def train(model, averages, first=1, last=STEPS):
    """Weights after each step, as captured beside the averages."""
    seen = []
    for step in range(first, last + 1):
        generator = torch.Generator().manual_seed(step)
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.add_(torch.randn(parameter.shape, generator=generator))
        averages.update(model, step)
        seen.append({name: p.detach().clone() for name, p in model.named_parameters()})
    return seen


def model(seed=0):
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4))


def average(averages, kind):
    prefix = f"{kind}."
    return {
        name.removeprefix(prefix): tensor
        for name, tensor in averages.tensors().items()
        if name.startswith(prefix)
    }


def test_the_mean_is_that_of_the_last_snapshots():
    """12 training steps, 3 snapshots, one every 2: those of steps 8, 10 and 12."""
    averages = Averages(AveragesConfig(**BOTH), STEPS)
    seen = train(model(), averages)
    for name, tensor in average(averages, "mean").items():
        expected = (seen[7][name] + seen[9][name] + seen[11][name]) / 3
        torch.testing.assert_close(tensor, expected)


def test_the_moving_average_weighs_each_step_by_its_age_alone():
    """Weights decay^age, over their sum: the first step lingers no longer than any other."""
    averages = Averages(AveragesConfig(**BOTH), STEPS)
    seen = train(model(), averages)
    shares = [0.8 ** (STEPS - step) for step in range(1, STEPS + 1)]
    for name, tensor in average(averages, "ema").items():
        expected = sum(share * one[name] for share, one in zip(shares, seen, strict=True))
        torch.testing.assert_close(tensor, expected / sum(shares), rtol=1e-5, atol=1e-5)


def test_after_one_step_every_average_is_the_weights():
    averages = Averages(AveragesConfig(ema=0.999, last=1), 1)
    (seen,) = train(model(), averages, last=1)
    for kind in ("ema", "mean"):
        for name, tensor in average(averages, kind).items():
            assert torch.equal(tensor, seen[name])


@pytest.mark.parametrize("cut", [1, 7, 8, 9, 11])
def test_state_goes_out_and_in_and_nothing_differs(cut):
    whole = Averages(AveragesConfig(**BOTH), STEPS)
    train(model(), whole)
    trained, before = model(), Averages(AveragesConfig(**BOTH), STEPS)
    train(trained, before, last=cut)
    saved = {name: tensor.clone() for name, tensor in before.tensors().items()}
    after = Averages(AveragesConfig(**BOTH), STEPS)
    after.load(saved, trained, where="here")
    train(trained, after, first=cut + 1)
    assert whole.tensors().keys() == after.tensors().keys()
    for name, tensor in whole.tensors().items():
        assert torch.equal(tensor, after.tensors()[name]), name


def test_nothing_is_kept_unless_asked_for_and_nothing_before_the_first_step():
    averages = Averages(AveragesConfig(), STEPS)
    train(model(), averages)
    assert averages.tensors() == {}
    assert Averages(AveragesConfig(**BOTH), STEPS).tensors() == {}


def test_what_is_saved_is_not_the_model_itself():
    """A live alias of the weights would average nothing."""
    trained, averages = model(), Averages(AveragesConfig(ema=0.5), STEPS)
    train(trained, averages, last=1)
    for name, parameter in trained.named_parameters():
        assert averages.tensors()[f"ema.{name}"].data_ptr() != parameter.data_ptr()


@pytest.mark.parametrize("output", ["weights", "ema", "mean"])
def test_applied_the_model_has_the_average_and_then_its_own_bits_again(output):
    trained = model()
    averages = Averages(AveragesConfig(**BOTH, output=output), STEPS)
    seen = train(trained, averages)
    wanted = seen[-1] if output == "weights" else average(averages, output)
    buffers = {name: buffer.clone() for name, buffer in trained.named_buffers()}
    with averages.applied(trained):
        inside = {name: t.clone() for name, t in trained.state_dict().items()}
    assert all(torch.equal(inside[name], tensor) for name, tensor in wanted.items())
    assert all(torch.equal(inside[name], buffer) for name, buffer in buffers.items())
    assert all(torch.equal(p, seen[-1][name]) for name, p in trained.named_parameters())


def test_applied_before_there_is_an_average_the_model_has_its_weights():
    trained = model()
    averages = Averages(AveragesConfig(last=1, output="mean"), STEPS)
    seen = train(trained, averages, last=3)
    with averages.applied(trained):
        assert torch.equal(trained[0].weight, seen[-1]["0.weight"])


def test_weights_come_back_though_measuring_fails():
    trained, averages = model(), Averages(AveragesConfig(ema=0.5, output="ema"), STEPS)
    seen = train(trained, averages)
    with pytest.raises(RuntimeError, match="measured"), averages.applied(trained):
        raise RuntimeError("measured")
    assert torch.equal(trained[0].weight, seen[-1]["0.weight"])


def test_an_update_while_applied_would_be_seen_by_the_optimizer_of_the_weights():
    """Weights that come back are the very tensors that an optimizer holds."""
    trained, averages = model(), Averages(AveragesConfig(ema=0.5, output="ema"), STEPS)
    train(trained, averages)
    pointers = [p.data_ptr() for p in trained.parameters()]
    with averages.applied(trained):
        assert [p.data_ptr() for p in trained.parameters()] != pointers
    assert [p.data_ptr() for p in trained.parameters()] == pointers


def test_the_mean_of_a_run_that_ended_earlier_is_not_that_of_its_extension():
    """Ended at 12 it is of 8, 10, 12; a run to 16 needs 12, 14, 16 and takes those it comes by."""
    trained, ended = model(), Averages(AveragesConfig(**BOTH), STEPS)
    train(trained, ended)
    longer = Averages(AveragesConfig(**BOTH), STEPS + 4)
    longer.load(ended.tensors(), trained, where="here")
    assert average(longer, "mean") == {}
    assert average(longer, "ema").keys() == average(ended, "ema").keys()
    seen = train(trained, longer, first=STEPS + 1, last=STEPS + 4)
    expected = (seen[1]["0.weight"] + seen[3]["0.weight"]) / 2
    torch.testing.assert_close(average(longer, "mean")["0.weight"], expected)


def test_state_of_another_model_is_refused_by_name():
    averages = Averages(AveragesConfig(ema=0.5), STEPS)
    train(model(), averages)
    tensors = dict(averages.tensors())
    with pytest.raises(CorruptArtifact, match=r"here: .*ema.*0\.weight"):
        Averages(AveragesConfig(ema=0.5), STEPS).load(
            tensors, nn.Sequential(nn.Linear(5, 4), nn.BatchNorm1d(4)), where="here"
        )
    del tensors["ema.1.bias"]
    with pytest.raises(CorruptArtifact, match=r"1\.bias"):
        Averages(AveragesConfig(ema=0.5), STEPS).load(tensors, model(), where="here")


def test_more_snapshots_than_the_run_has_are_refused_with_numbers():
    with pytest.raises(UsageError, match=r"7 .* 2 .* 12\b"):
        Averages(AveragesConfig(last=7, every=2), STEPS)
    Averages(AveragesConfig(last=6, every=2), STEPS)


@pytest.mark.parametrize("values", [{"output": "ema"}, {"output": "mean"}])
def test_an_output_that_is_not_kept_is_refused(values):
    with pytest.raises(UsageError, match="set"):
        AveragesConfig.parse(values, where="averages")
