"""The chunked output layer against torch's own product, cap and cross-entropy."""

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.utils._python_dispatch import TorchDispatchMode

from stages.training.losses import (
    OutputLayer,
    differentiated,
    linear_cross_entropy,
    mean_cross_entropy,
    most_logits,
)

DIVISOR = 7.0


def made(tokens=13, width=6, vocabulary=11, dtype=torch.float64, seed=0):
    """States, matrix and targets."""
    draw = torch.Generator().manual_seed(seed)
    x = torch.randn(tokens, width, generator=draw, dtype=dtype).requires_grad_()
    weight = torch.randn(vocabulary, width, generator=draw, dtype=dtype).requires_grad_()
    return x, weight, torch.randint(vocabulary, (tokens,), generator=draw)


def plain(x, weight, targets, softcap=None):
    """Loss and log Z of each token, as torch has them."""
    logits = F.linear(x, weight)
    if softcap is not None:
        logits = softcap * torch.tanh(logits / softcap)
    return F.cross_entropy(logits, targets, reduction="none"), logits.logsumexp(1)


def gradients(loss, *tensors):
    return torch.autograd.grad(loss, tensors)


@pytest.mark.parametrize("logits", [1, 11, 40, 10_000])
@pytest.mark.parametrize("softcap", [None, 1.5])
@pytest.mark.parametrize("z_loss", [0.0, 0.3])
def test_the_mean_and_its_gradients_are_those_of_all_logits_at_once(logits, softcap, z_loss):
    x, weight, targets = made()
    losses, log_z = plain(x, weight, targets, softcap)
    expected = (losses + z_loss * log_z**2).sum() / DIVISOR
    layer = OutputLayer(weight, torch.float64, softcap, logits)
    found = mean_cross_entropy(x, layer, targets, divisor=DIVISOR, z_loss=z_loss)

    torch.testing.assert_close(found.loss, expected)
    torch.testing.assert_close(found.losses_M, losses.detach())
    torch.testing.assert_close(found.log_z_M, log_z.detach())
    torch.testing.assert_close(
        gradients(found.loss * 3, x, weight), gradients(expected * 3, x, weight)
    )


@pytest.mark.parametrize("logits", [1, 40, 10_000])
@pytest.mark.parametrize("z_loss", [0.0, 0.3])
def test_weights_of_tokens_are_those_of_a_weighted_sum_of_all_logits_at_once(logits, z_loss):
    x, weight, targets = made()
    weights = torch.linspace(0, 2, len(targets), dtype=torch.float64)
    losses, log_z = plain(x, weight, targets, 1.5)
    expected = (weights * (losses + z_loss * log_z**2)).sum() / DIVISOR
    layer = OutputLayer(weight, torch.float64, 1.5, logits)
    result = mean_cross_entropy(
        x, layer, targets, divisor=DIVISOR, z_loss=z_loss, weights_M=weights
    )
    torch.testing.assert_close(result.loss, expected)
    torch.testing.assert_close(result.losses_M, losses.detach())
    torch.testing.assert_close(gradients(result.loss, x, weight), gradients(expected, x, weight))


@pytest.mark.parametrize("logits", [1, 40, 10_000])
@pytest.mark.parametrize("softcap", [None, 1.5])
def test_losses_of_tokens_can_be_put_to_any_use(logits, softcap):
    """As DPO does: a function of sums of them that is not linear."""
    x, weight, targets = made()
    expected = plain(x, weight, targets, softcap)[0]
    layer = OutputLayer(weight, torch.float64, softcap, logits)
    found = linear_cross_entropy(x, layer, targets)
    torch.testing.assert_close(found, expected)

    def use(losses):
        return F.logsigmoid(losses[:5].sum() - losses[5:].sum())

    torch.testing.assert_close(
        gradients(use(found), x, weight), gradients(use(expected), x, weight)
    )


def test_losses_of_tokens_pass_the_numerical_check_of_gradients():
    x, weight, targets = made(tokens=4, width=3, vocabulary=5)

    def losses(x, weight):
        return linear_cross_entropy(x, OutputLayer(weight, torch.float64, 2.0, 10), targets)

    assert torch.autograd.gradcheck(losses, (x, weight))


def test_z_loss_is_that_of_palm():
    """1e-4 · log²Z: of uniform logits at 0, Z is the vocabulary (11) and the loss its logarithm."""
    _, weight, targets = made()
    layer = OutputLayer(weight, torch.float64)
    found = mean_cross_entropy(
        torch.zeros(13, 6, dtype=torch.float64), layer, targets, divisor=13, z_loss=1e-4
    )
    log_11 = torch.tensor(11.0, dtype=torch.float64).log()
    torch.testing.assert_close(found.loss, log_11 + 1e-4 * log_11**2)


class Largest(TorchDispatchMode):
    """Notes the size of the largest tensor that any operation gives."""

    size = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        for one in out if isinstance(out, tuple | list) else (out,):
            if isinstance(one, torch.Tensor):
                self.size = max(self.size, one.numel())
        return out


@pytest.mark.parametrize("way", ["mean", "each"])
def test_no_more_than_a_chunk_of_logits_is_ever_alive(way):
    """512 tokens of 64 logits, 1,024 at once; states and matrix have 2,048 and 256 numbers."""
    x, weight, targets = made(tokens=512, width=4, vocabulary=64, dtype=torch.float32)
    layer = OutputLayer(weight, logits=1024)
    with Largest() as largest:
        if way == "mean":
            mean_cross_entropy(x, layer, targets, divisor=1.0).loss.backward()
        else:
            linear_cross_entropy(x, layer, targets).sum().backward()
    assert largest.size == 512 * 4


@settings(max_examples=60, deadline=None)
@given(tokens=st.integers(0, 3000), vocabulary=st.integers(1, 40), logits=st.integers(1, 9000))
def test_chunks_cover_every_token_once_and_hold_no_more_than_asked_for(tokens, vocabulary, logits):
    chunks = OutputLayer(torch.zeros(vocabulary, 1), logits=logits).chunks(tokens)
    assert [i for part in chunks for i in range(part.start, part.stop)] == list(range(tokens))
    sizes = [part.stop - part.start for part in chunks]
    assert all(size * vocabulary <= max(logits, vocabulary) for size in sizes)
    assert len(set(sizes[:-1])) <= 1
    # As few as may be, and of about equal size: no more is lacking than one token a chunk.
    assert len(chunks) == -(-tokens // max(1, logits // vocabulary))
    assert all(sizes[0] - size < len(sizes) for size in sizes)


def test_a_chunk_has_128_tokens_at_the_least_unless_it_is_asked_for():
    cpu = torch.device("cpu")
    small, large = torch.zeros(64, 1), torch.empty(most_logits(cpu) // 4, 1)
    assert [part.stop - part.start for part in OutputLayer(large).chunks(256)] == [128, 128]
    assert len(OutputLayer(small).chunks(most_logits(cpu) // 64)) == 1
    assert len(OutputLayer(small).chunks(most_logits(cpu) // 64 + 1)) == 2


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_is_in_the_products_alone(dtype):
    """Losses differ from torch's autocast by rounding alone, and gradients by no more than those
    of autocast differ from float32's.
    """
    x, weight, targets = made(tokens=512, width=32, vocabulary=96, dtype=torch.float32)
    with torch.autocast("cpu", dtype):
        logits = F.linear(x, weight)
    reference = F.cross_entropy(logits.float(), targets, reduction="none")
    exact = gradients(plain(x, weight, targets)[0].sum(), x, weight)
    theirs = gradients(reference.sum(), x, weight)
    found = mean_cross_entropy(x, OutputLayer(weight, dtype, logits=96 * 100), targets, divisor=1.0)

    assert found.losses_M.dtype == torch.float32
    torch.testing.assert_close(found.losses_M, reference, atol=1e-5, rtol=1e-5)
    ours = gradients(found.loss, x, weight)
    assert [one.dtype for one in ours] == [torch.float32] * 2
    for mine, other, true in zip(ours, theirs, exact, strict=True):
        assert (mine - true).norm() <= 1.1 * (other - true).norm()


def test_float16_sees_no_tiny_factors():
    """Over a million targets, each token's gradient is below what float16 can hold (6e-8)."""
    x, weight, targets = made(tokens=64, width=8, vocabulary=16, dtype=torch.float32)
    exact = gradients(plain(x, weight, targets)[0].sum() / 1e9, x, weight)
    found = mean_cross_entropy(x, OutputLayer(weight, torch.float16), targets, divisor=1e9)
    for mine, true in zip(gradients(found.loss, x, weight), exact, strict=True):
        assert (mine - true).norm() < 2e-3 * true.norm()


def test_without_any_target_there_is_no_loss_and_no_gradient():
    x, weight, _ = made(tokens=0)
    none = torch.zeros(0, dtype=torch.long)
    found = mean_cross_entropy(
        x, OutputLayer(weight, torch.float64), none, divisor=5.0, z_loss=1e-4
    )
    assert found.loss.item() == 0
    by_x, by_weight = gradients(found.loss, x, weight)
    assert by_x.shape == (0, 6)
    assert not by_weight.any()


@pytest.mark.parametrize("way", ["mean", "each"])
def test_what_is_compiled_sees_one_shape_whatever_has_a_target(way):
    """Of 100 tokens, 30 at once: chunks of 25, filled up, and results as without."""
    seen = set()

    def noting(logits, targets, softcap, z_loss):
        seen.add(tuple(logits.shape))
        return differentiated(logits, targets, softcap, z_loss)

    for tokens in (100, 99, 51, 26, 3):
        x, weight, targets = made(tokens=tokens)
        given = {"dtype": torch.float64, "softcap": 2.0, "logits": 11 * 30}
        found = []
        for layer in (
            OutputLayer(weight, **given, differentiated=noting, filled=100),
            OutputLayer(weight, **given),
        ):
            if way == "mean":
                loss = mean_cross_entropy(x, layer, targets, divisor=DIVISOR, z_loss=0.1).loss
            else:
                loss = linear_cross_entropy(x, layer, targets).square().sum()
            found.append((loss.detach(), *gradients(loss, x, weight)))
        torch.testing.assert_close(found[0], found[1])
    assert seen == {(25, 11)}


@pytest.mark.full
@pytest.mark.slow
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_compiled_it_gives_the_same(dtype):
    compiled = torch.compile(differentiated, dynamic=False, fullgraph=True)
    draw = torch.Generator().manual_seed(0)
    logits = torch.randn(64, 96, generator=draw).to(dtype)
    targets = torch.randint(96, (64,), generator=draw)
    for softcap in (None, 3.0):
        expected = differentiated(logits.clone(), targets, softcap, 1e-2)
        found = compiled(logits.clone(), targets, softcap, 1e-2)
        for one, other in zip(found, expected, strict=True):
            torch.testing.assert_close(one, other, atol=1e-5, rtol=1.6e-2)


def test_equal_runs_have_equal_bits():
    x, weight, targets = made(tokens=300, width=16, vocabulary=50, dtype=torch.float32)
    layer = OutputLayer(weight, logits=50 * 64)
    first, second = (mean_cross_entropy(x, layer, targets, divisor=3.0) for _ in range(2))
    assert torch.equal(first.loss, second.loss)
    for one, other in zip(
        gradients(first.loss, x, weight), gradients(second.loss, x, weight), strict=True
    ):
        assert torch.equal(one, other)


def test_the_gradient_of_a_mean_is_used_once():
    x, weight, targets = made()
    loss = mean_cross_entropy(x, OutputLayer(weight, torch.float64), targets, divisor=1.0).loss
    loss.backward(retain_graph=True)
    with pytest.raises(ValueError, match="differentiated once"):
        loss.backward()
