"""Losses of rows against a plain forward pass with all logits at once."""

import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from stages.model.config import ModelShape
from stages.model.decoder import Decoder
from stages.training.config import TrainingExecution
from stages.training.losses import Arithmetic
from stages.training.rows import Rows
from stages.training.runtime import runtime
from stages.training.token_shards import IGNORED

CPU = Arithmetic(torch.device("cpu"), "fp32")
VOCABULARY = 23


def model_of(**shape):
    given = {"width": 16, "layers": 1, "heads": 2, "kv_heads": 1, "context": 16, **shape}
    return Decoder(ModelShape(init_std=0.5, **given).with_vocabulary(VOCABULARY), seed=3)


def rows_of(batch=4, length=9, ignored=0.3, seed=0, prefix=False):
    draw = np.random.default_rng(seed)
    targets = draw.integers(0, VOCABULARY, (batch, length))
    targets[draw.random((batch, length)) < ignored] = IGNORED
    documents = np.sort(draw.integers(0, 3, (batch, length)), axis=1).astype(np.int32)
    tokens = draw.integers(0, VOCABULARY, (batch, length)).astype(np.int32)
    marked = draw.random((batch, length)) < 0.5 if prefix else None
    return Rows(tokens, targets, documents, marked)


def plain(model, rows):
    """[B, L] Cross-entropy of torch over all logits; 0 where the target is ignored."""
    given = {"documents_BL": torch.from_numpy(rows.documents_BL)}
    if rows.prefix_BL is not None:
        given["prefix_BL"] = torch.from_numpy(rows.prefix_BL)
    logits = model(torch.from_numpy(rows.tokens_BL), **given)
    targets = torch.from_numpy(rows.targets_BL)
    return F.cross_entropy(
        logits.flatten(0, 1), targets.flatten(), ignore_index=IGNORED, reduction="none"
    ).view_as(targets)


def gradients(model, loss):
    model.zero_grad()
    loss.backward()
    return {name: one.grad.clone() for name, one in model.named_parameters()}


@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize("softcap", [None, 2.0])
@pytest.mark.parametrize("prefix", [False, True])
def test_losses_and_gradients_are_those_of_a_plain_forward_pass(tied, softcap, prefix):
    model = model_of(tied_embeddings=tied, logit_softcap=softcap)
    rows = rows_of(prefix=prefix)
    expected = plain(model, rows)
    each, mean = CPU.losses(model, rows), CPU.train(model, rows, targets=50)
    torch.testing.assert_close(each, expected)
    torch.testing.assert_close(mean.losses_BL, expected.detach())
    torch.testing.assert_close(mean.loss, expected.sum() / 50)

    wanted = gradients(model, expected.sum() / 50)
    torch.testing.assert_close(gradients(model, each.sum() / 50), wanted)
    torch.testing.assert_close(gradients(model, mean.loss), wanted)


def test_all_tokens_in_the_prefix_are_seen_from_both_sides():
    """A change of the last token moves the loss of the first, unless attention is causal."""
    model, rows = model_of(), rows_of(batch=1, ignored=0.0)
    rows.documents_BL[:] = 0
    changed = rows.tokens_BL.copy()
    changed[0, -1] = (changed[0, -1] + 1) % VOCABULARY
    for prefix, moves in ((None, False), (np.ones_like(changed, dtype=bool), True)):
        first, second = (
            CPU.losses(model, Rows(tokens, rows.targets_BL, rows.documents_BL, prefix))
            for tokens in (rows.tokens_BL, changed)
        )
        assert torch.equal(first[0, 0], second[0, 0]) is not moves


def test_the_mean_over_a_step_does_not_depend_on_micro_batches():
    """Sums over all targets of the step: a mean of micro-batch means would weigh rows unequally."""
    model, rows = model_of(), rows_of(batch=6, ignored=0.5)
    rows.targets_BL[:2, 1:] = IGNORED
    whole = gradients(model, CPU.train(model, rows, targets=rows.targets).loss)
    for size in (1, 2, 4):
        model.zero_grad()
        parts = [
            CPU.train(model, part, targets=rows.targets, z_loss=0.0) for part in rows.split(size)
        ]
        for part in parts:
            part.loss.backward()
        found = {name: one.grad for name, one in model.named_parameters()}
        torch.testing.assert_close(found, whole)


def test_z_loss_is_told_apart_from_cross_entropy():
    model, rows = model_of(), rows_of()
    found = CPU.train(model, rows, targets=rows.targets, z_loss=1e-2)
    given = torch.from_numpy(rows.tokens_BL), None, torch.from_numpy(rows.documents_BL)
    log_z = model(*given).logsumexp(-1)[torch.from_numpy(rows.targets_BL) != IGNORED]
    assert found.z_loss.item() == pytest.approx(1e-2 * log_z.square().mean().item(), rel=1e-5)
    assert found.cross_entropy.item() == pytest.approx(
        plain(model, rows).sum().item() / rows.targets, rel=1e-5
    )
    assert found.loss.item() == pytest.approx((found.cross_entropy + found.z_loss).item())


def test_rows_without_a_target_cost_nothing_and_leave_gradients_of_zero():
    model, rows = model_of(), rows_of(ignored=1.1)
    assert rows.targets == 0
    assert not CPU.losses(model, rows).any()
    found = CPU.train(model, rows, targets=0, z_loss=1e-4)
    assert found.loss.item() == 0
    assert not any(one.any() for one in gradients(model, found.loss).values())


@pytest.mark.parametrize("precision", ["bf16", "fp16"])
def test_losses_are_float32_and_near_those_of_full_precision(precision):
    model, rows = model_of(), rows_of()
    with runtime(TrainingExecution(device="cpu", threads=1), precision, 0) as how:
        losses = how.losses(model, rows)
    assert losses.dtype == torch.float32
    torch.testing.assert_close(losses, plain(model, rows), atol=0.05, rtol=0.02)


def test_a_model_that_knows_nothing_pays_the_log_of_the_vocabulary():
    model = model_of(tied_embeddings=False)
    torch.nn.init.zeros_(model.head.weight)
    rows = rows_of(ignored=0.0)
    with runtime(TrainingExecution(device="cpu", threads=1), "fp32", 0) as how:
        losses = how.losses(model, rows)
    assert losses.flatten().tolist() == pytest.approx([math.log(VOCABULARY)] * losses.numel())


def test_one_chunk_or_many_give_the_same_step():
    model, rows = model_of(), rows_of(batch=8, length=16, ignored=0.1)
    few = Arithmetic(torch.device("cpu"), "fp32", logits=5 * VOCABULARY)
    whole, cut = (how.train(model, rows, targets=rows.targets) for how in (CPU, few))
    torch.testing.assert_close(whole.loss, cut.loss)
    torch.testing.assert_close(gradients(model, cut.loss), gradients(model, whole.loss))


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@pytest.mark.parametrize("compiled", ["off", "on"])
def test_a_gpu_gives_the_same_step_twice_to_the_bit_and_nearly_that_of_a_cpu(compiled):
    model, rows = model_of(logit_softcap=2.0), rows_of(batch=8, length=16, prefix=True)
    expected = gradients(model, CPU.train(model, rows, targets=50, z_loss=1e-2).loss)
    execution = TrainingExecution(
        device="cuda", compile=compiled, logits_in_memory=VOCABULARY * 40, attention="sdpa"
    )
    with runtime(execution, "fp32", 0) as how:
        model.to(how.device)
        one, other = (
            gradients(model, how.train(model, rows, targets=50, z_loss=1e-2).loss) for _ in "ab"
        )
    for name, gradient in one.items():
        assert torch.equal(gradient, other[name]), name
        torch.testing.assert_close(gradient.cpu(), expected[name], atol=1e-5, rtol=1e-4)
