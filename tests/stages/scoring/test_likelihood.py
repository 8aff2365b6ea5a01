from types import SimpleNamespace

import numpy as np
import pytest
import torch

from stages.scoring.likelihood import Request, target_nll, token_log_likelihoods


def log_likelihoods(model, given, **how):
    return np.array([one.sum() for one in token_log_likelihoods(model, given, **how)])


def alone(model, request: Request) -> float:
    """The same by the definition: one request, one row, one probability after another."""
    ids = [*request.context, *request.continuation][-(model.config.context + 1) :]
    with torch.no_grad():
        log_p = torch.log_softmax(model(torch.tensor([ids[:-1]]))[0].double(), dim=-1)
    n = len(request.continuation)
    return sum(float(log_p[-n + i, ids[-n + i]]) for i in range(n))


def requests(model, lengths):
    generator = torch.Generator().manual_seed(1)
    draw = lambda n: tuple(torch.randint(5, 300, (n,), generator=generator).tolist())  # noqa: E731
    return [Request((0, *draw(a)), draw(b)) for a, b in lengths]


def test_sums_are_the_log_probabilities_of_the_continuation(model):
    given = requests(model, [(3, 2), (0, 7), (12, 1), (5, 5), (1, 20)])
    found = log_likelihoods(model, given)
    np.testing.assert_allclose(found, [alone(model, r) for r in given], atol=1e-4)


def test_scores_do_not_depend_on_the_batch(model):
    given = requests(model, [(3, 2), (0, 7), (12, 1), (5, 5), (1, 20), (2, 2)])
    one_by_one = log_likelihoods(model, given, batch_tokens=1)
    np.testing.assert_allclose(log_likelihoods(model, given), one_by_one, atol=1e-4)
    backwards = log_likelihoods(model, given[::-1])[::-1]
    np.testing.assert_allclose(backwards, one_by_one, atol=1e-4)


def test_a_context_that_does_not_fit_loses_its_left_end(model):
    (long,) = requests(model, [(60, 4)])
    short = Request(long.context[-(model.config.context + 1 - 4) :], long.continuation)
    assert log_likelihoods(model, [long])[0] == log_likelihoods(model, [short])[0]


@pytest.mark.parametrize("scored", [0, 25])
def test_a_continuation_that_cannot_be_scored_is_refused(model, scored):
    with pytest.raises(ValueError, match=f"{scored} tokens cannot be scored in 24"):
        log_likelihoods(model, [Request((0,), (7,) * scored)])


def test_packed_rows_score_each_piece_as_if_alone(model):
    pieces = [torch.arange(10, 16), torch.arange(40, 45)]
    packed_BL = torch.cat([*pieces, torch.full((3,), 2)])[None]
    documents_BL = torch.tensor([[0] * 6 + [1] * 5 + [-1] * 3])
    targets_BL = torch.tensor([[*range(11, 16), -1, *range(41, 45), -1, -1, -1, -1]])
    nll = target_nll(model, packed_BL, targets_BL, documents_BL)[0]
    apart = [target_nll(model, piece[None, :-1], piece[None, 1:])[0] for piece in pieces]
    np.testing.assert_allclose(nll, [*apart[0], 0, *apart[1], 0, 0, 0, 0], atol=1e-5)


def test_many_targets_are_scored_like_few(model, monkeypatch):
    tokens_BL = torch.randint(5, 300, (4, 20), generator=torch.Generator().manual_seed(2))
    whole = target_nll(model, tokens_BL[:, :-1], tokens_BL[:, 1:])
    monkeypatch.setattr("stages.scoring.likelihood._ROWS_OF_LOGITS", 7)
    np.testing.assert_allclose(
        target_nll(model, tokens_BL[:, :-1], tokens_BL[:, 1:]), whole, atol=1e-5
    )


class Seen(Exception):
    """Where a model's tokens are."""


class Elsewhere(torch.nn.Module):
    """A model whose weights are on another device than the host."""

    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.empty(2, device="meta"))
        self.config = SimpleNamespace(context=8)

    def forward(self, tokens_BL, documents_BL=None, output=None):
        raise Seen(*{one.device.type for one in (tokens_BL, documents_BL) if one is not None})


def test_tokens_go_to_the_device_of_the_model(monkeypatch):
    from torch.fx.experimental import _config

    monkeypatch.setattr(_config, "meta_nonzero_assume_all_nonzero", True)
    zeros_BL = torch.zeros(1, 4, dtype=torch.int64)
    with pytest.raises(Seen, match=r"^meta$"):
        target_nll(Elsewhere(), zeros_BL, zeros_BL, zeros_BL)
