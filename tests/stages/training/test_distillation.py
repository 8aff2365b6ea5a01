"""Divergences against torch's over the whole vocabulary, and what the rest as one class changes."""

from __future__ import annotations

from itertools import pairwise

import pytest
import torch
import torch.nn.functional as F

from stages.training.distillation import divergence, log_probs_of_classes

VOCABULARY = 12


@pytest.fixture
def logits():
    draw = torch.Generator().manual_seed(3)
    return [torch.randn(5, VOCABULARY, generator=draw) * 2 for _ in range(2)]


def classes(teacher, model, top):
    """Log-probabilities of the teacher's likeliest tokens and the rest, of both."""
    ids = teacher.topk(top).indices
    return log_probs_of_classes(teacher, ids), log_probs_of_classes(model, ids)


def whole(teacher, model):
    """KL(teacher, model) of each token over all tokens, by torch."""
    first, second = (one.log_softmax(-1) for one in (teacher, model))
    return F.kl_div(second, first, reduction="none", log_target=True).sum(-1)


def test_classes_are_the_tokens_of_a_softmax_and_what_is_left(logits):
    teacher, _ = logits
    ids = teacher.topk(3).indices
    made = log_probs_of_classes(teacher, ids)
    probabilities = teacher.softmax(-1)
    torch.testing.assert_close(made[:, :3].exp(), probabilities.gather(-1, ids))
    left = 1 - probabilities.gather(-1, ids).sum(-1)
    torch.testing.assert_close(made[:, 3].exp(), left, atol=1e-6, rtol=1e-4)


def test_with_all_tokens_but_one_they_are_torchs(logits):
    teacher, model = logits
    own = classes(teacher, model, VOCABULARY - 1)
    forward, reverse = whole(teacher, model), whole(model, teacher)
    torch.testing.assert_close(divergence("forward", *own), forward)
    torch.testing.assert_close(divergence("reverse", *own), reverse)
    torch.testing.assert_close(divergence("mixed", *own), (forward + reverse) / 2)


@pytest.mark.parametrize("kind", ["forward", "reverse"])
def test_fewer_classes_never_give_more_and_a_model_like_its_teacher_none(logits, kind):
    teacher, model = logits
    values = [divergence(kind, *classes(teacher, model, top)) for top in (1, 3, 6, 11)]
    for fewer, more in pairwise(values):
        assert (fewer <= more + 1e-6).all()
    assert (values[0] > 0).all()
    same = divergence(kind, *classes(teacher, teacher, 3))
    torch.testing.assert_close(same, torch.zeros_like(same), atol=1e-6, rtol=0)


def test_the_forward_gradient_is_model_less_teacher(logits):
    """With all tokens: the gradient by logits is p - q, as of a cross-entropy of soft targets."""
    teacher, model = logits[0], logits[1].requires_grad_()
    divergence("forward", *classes(teacher, model, VOCABULARY - 1)).sum().backward()
    torch.testing.assert_close(
        model.grad, model.detach().softmax(-1) - teacher.softmax(-1), atol=1e-6, rtol=1e-4
    )


def test_a_class_without_probability_leaves_values_and_gradients_finite():
    teacher = torch.tensor([[200.0, 0.0, -200.0]])
    model = torch.tensor([[-200.0, 0.0, 200.0]], requires_grad=True)
    for kind in ("forward", "reverse", "mixed"):
        value = divergence(kind, *classes(teacher, model, 1))
        (gradient,) = torch.autograd.grad(value.sum(), model, retain_graph=True)
        assert torch.isfinite(value).all()
        assert torch.isfinite(gradient).all()
