"""Noise on embeddings: its size by the paper's formula, what it depends on, where there is none."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from stages.training.embedding_noise import EmbeddingNoise, document_lengths
from stages.training.rows import Rows

WIDTH = 64
DOCUMENTS = np.array([[0] * 40 + [1] * 10 + [-1] * 14, [2] * 64])


def rows(documents=DOCUMENTS):
    tokens = np.zeros(documents.shape, dtype=np.int64)
    return Rows(tokens, tokens, documents)


def draw(alpha=5.0, seed=1, step=3, first=0, documents=DOCUMENTS):
    states = torch.zeros(*documents.shape, WIDTH)
    return EmbeddingNoise(alpha, seed).draw(rows(documents), states, step, first)


def test_lengths_are_those_of_documents_in_their_row():
    lengths = document_lengths(np.array([[0, 0, 1, -1], [1, 1, 1, 1], [-1, -1, -1, -1]]))
    assert lengths.tolist() == [[2, 2, 1, 0], [4, 4, 4, 4], [0, 0, 0, 0]]


@pytest.mark.parametrize(("row", "start", "length"), [(0, 0, 40), (0, 40, 10), (1, 0, 64)])
def test_noise_is_uniform_in_alpha_over_the_root_of_length_times_width(row, start, length):
    """A uniform draw from ±b has the variance b² / 3, so a document's norm is alpha / √3 in all."""
    noise = draw(alpha=5.0)[row, start : start + length]
    bound = 5.0 / np.sqrt(length * WIDTH)
    assert bound * 0.98 < float(noise.abs().max()) <= bound
    assert float(noise.norm()) == pytest.approx(5.0 / np.sqrt(3), rel=0.05)
    assert abs(float(noise.mean())) < 4 * bound / np.sqrt(3 * length * WIDTH)


def test_padding_has_none_and_without_alpha_there_is_none():
    assert (draw()[0, 50:] == 0).all()
    assert (draw(alpha=0.0) == 0).all()


def test_a_draw_depends_on_seed_step_and_row_alone():
    whole = draw()
    assert torch.equal(whole, draw())
    assert torch.equal(whole[1:], draw(first=1, documents=DOCUMENTS[1:]))
    for other in (draw(seed=2), draw(step=4), draw(first=1)):
        assert not torch.equal(whole[0, :40], other[0, :40])
    assert not torch.equal(whole[0, :10] / 40**-0.5, whole[1, :10] / 64**-0.5)
    torch.manual_seed(0)
    before = torch.random.get_rng_state()
    draw()
    assert torch.equal(before, torch.random.get_rng_state())


def test_each_pass_gets_the_noise_of_its_rows_and_later_ones_none(make_model):
    model = make_model(width=WIDTH)
    noise = EmbeddingNoise(5.0, seed=1)
    parts = rows().split(1)
    tokens = torch.zeros((1, 64), dtype=torch.long)
    with torch.no_grad():
        plain = model.embedding(tokens)
        with noise.applied(model, parts, 3, 0):
            noisy = [model.embedding(tokens) for _ in parts]
        after = model.embedding(tokens)
    torch.testing.assert_close(torch.cat(noisy) - plain, draw(), atol=1e-6, rtol=0)
    assert torch.equal(after, plain)


def test_a_whole_row_has_noise_of_the_size_that_transformers_adds():
    """Where nothing is padded or packed, both take the row's length: bound and norm agree."""
    from transformers.integrations.neftune import neftune_post_forward_hook

    embedding = torch.nn.Embedding(10, WIDTH).train()
    embedding.neftune_noise_alpha = 5.0
    states = torch.zeros(1, 64, WIDTH)
    theirs = neftune_post_forward_hook(embedding, None, states.clone())
    ours = draw()[1:]
    assert float(ours.norm()) == pytest.approx(float(theirs.norm()), rel=0.03)
    assert float(ours.abs().max()) == pytest.approx(float(theirs.abs().max()), rel=0.02)
