"""The task of pretraining on real shards: objectives, draws, sums over a step, measured columns."""

import math

import numpy as np
import pytest
import torch

from stages.model.config import ModelShape
from stages.model.decoder import Decoder
from stages.parallel.ranks import ALONE
from stages.pretrain.config import ObjectiveConfig, PretrainConfig
from stages.pretrain.objectives import build_objective
from stages.pretrain.plan import make_plan
from stages.pretrain.task import HeldOutSet, PretrainTask
from stages.training.config import TrainingExecution
from stages.training.loop import StepSums
from stages.training.runtime import runtime
from stages.training.token_shards import IGNORED, TokenShards

NAMES = ("causal", "masked", "prefix", "span_corruption")
MIXED = [{"name": name, "share": 0.25} for name in NAMES]


@pytest.fixture
def made(packed, read_input, tiny):
    """`made(objective, micro_batch)` → a task over real shards, and a model."""
    inputs = packed(sequence_length=64)
    shards = TokenShards([read_input(*inputs["train"][0])])
    held_out = HeldOutSet.from_inputs([read_input(*inputs["held_out"][0])], 12)
    config = PretrainConfig.parse({**tiny, "model": {}}, where="test")
    clock = make_plan(config, shards).clock
    tokenizer = read_input(*inputs["tokenizer"][0])

    def make(how, seed=0, **objective):
        given = ObjectiveConfig.parse(objective, where="objective")
        chosen = build_objective(given, shards, tokenizer, seed)
        return PretrainTask(shards, clock, held_out, how, chosen)

    return make


def model():
    shape = ModelShape(width=32, layers=1, heads=2, kv_heads=1, context=64)
    return Decoder(shape.with_vocabulary(320), seed=1)


def with_runtime(micro_batch=3):
    execution = TrainingExecution(device="cpu", threads=1, micro_batch=micro_batch)
    return runtime(execution, "fp32", 0)


def summed(task, decoder, training_step):
    """Gradients of a step, and the columns that are told of it."""
    decoder.zero_grad()
    total = StepSums()
    for share in task.micro_batches(decoder, task.batch(training_step)):
        share.loss.backward()
        total.add(share)
    sums = total.floats(torch.zeros(()), ALONE)
    del sums["step_tokens"], sums["grad_norm"]
    told = {"loss": sums.pop("loss")[0], **task.measures(sums)}
    return {name: one.grad.clone() for name, one in decoder.named_parameters()}, told


@pytest.mark.parametrize("parts", [[{"name": name}] for name in NAMES] + [MIXED])
def test_a_step_is_the_same_in_any_micro_batches(made, parts):
    """Loss and gradient are a mean over all targets of the step, whatever the objective."""
    decoder, found = model(), []
    for micro_batch in (1, 3, 8):
        with with_runtime(micro_batch) as how:
            found.append(summed(made(how, parts=parts), decoder, 2))
    for gradients, told in found[1:]:
        torch.testing.assert_close(gradients, found[0][0])
        assert told.keys() == found[0][1].keys()
        for name, value in told.items():
            expected = found[0][1][name]
            assert value == (None if expected is None else pytest.approx(expected, rel=1e-5)), name


def test_a_step_reads_the_same_whoever_asks_and_when(made):
    with with_runtime() as how:
        first, again, other = (
            made(how, parts=MIXED),
            made(how, parts=MIXED),
            made(how, 1, parts=MIXED),
        )
        for step in (5, 1, 5):
            one, two = first.batch(step), again.batch(step)
            for name in ("tokens_BL", "targets_BL", "documents_BL", "prefix_BL"):
                assert np.array_equal(getattr(one.rows, name), getattr(two.rows, name))
        assert not np.array_equal(first.batch(1).rows.tokens_BL, first.batch(2).rows.tokens_BL)
        assert not np.array_equal(first.batch(1).rows.tokens_BL, other.batch(1).rows.tokens_BL)


@pytest.mark.parametrize("parts", [[{"name": "masked"}], MIXED])
def test_held_out_rows_are_the_same_each_time_and_in_any_micro_batches(made, parts):
    decoder, found = model(), []
    for micro_batch in (1, 5, 5):
        with with_runtime(micro_batch) as how, torch.no_grad():
            found.append(made(how, parts=parts).held_out(decoder))
    assert found[1] == found[2]
    assert [one.source for one in found[0]] == ["all", "code", "web"]
    for one, other in zip(found[0], found[1], strict=True):
        assert one.loss == pytest.approx(other.loss, rel=1e-6)
        assert one.bits_per_byte == pytest.approx(other.bits_per_byte, rel=1e-6)


def test_z_loss_has_a_column_of_its_own_and_is_learnt(made):
    decoder = model()
    with with_runtime() as how:
        plain, (penal, told) = (
            summed(made(how), decoder, 1),
            summed(made(how, z_loss=0.1), decoder, 1),
        )
    assert "z_loss" not in plain[1]
    assert told["loss"] == pytest.approx(plain[1]["loss"], rel=1e-6)
    # Of a new model, all logits are near 0: Z is the number of rows of its output layer.
    assert told["z_loss"] == pytest.approx(0.1 * math.log(320) ** 2, rel=0.01)
    assert any(not torch.allclose(penal[name], one) for name, one in plain[0].items())


def test_bits_per_byte_by_source_are_those_of_its_targets(made):
    decoder = model()
    with with_runtime() as how:
        task = made(how)
        _, told = summed(task, decoder, 3)
        batch, sizes = task.batch(3), task.shards.token_bytes()
        losses = how.losses(decoder, batch.rows).detach().double().numpy()
    targets = batch.rows.targets_BL
    for number, name in enumerate(task.shards.sources):
        chosen = (targets != IGNORED) & (batch.groups_BL == number)
        text = chosen & (sizes[np.where(chosen, targets, 0)] > 0)
        expected = losses[text].sum() / math.log(2) / sizes[targets[text]].sum()
        assert told[f"bits_per_byte/{name}"] == pytest.approx(expected, rel=1e-6)


def test_documents_of_a_step_are_named(made):
    with with_runtime() as how:
        task = made(how)
        documents = task.documents(1)
    assert {one.source for one in documents} <= {"code", "web"}
    assert len({one.doc_id for one in documents}) == len(documents) > 0


@pytest.mark.parametrize("parts", [[{"name": name}] for name in NAMES[1:]] + [MIXED])
def test_each_objective_is_learnt(made, parts):
    """Thirty updates on one step's batch: the loss falls by more than a third."""
    torch.manual_seed(0)
    decoder = model()
    optimizer = torch.optim.Adam(decoder.parameters(), 1e-2)
    with with_runtime(8) as how:
        task = made(how, parts=parts)
        losses = []
        for _ in range(30):
            optimizer.zero_grad()
            (share,) = task.micro_batches(decoder, task.batch(1))
            share.loss.backward()
            optimizer.step()
            losses.append(share.loss.item())
    assert losses[-1] < losses[0] * 2 / 3
