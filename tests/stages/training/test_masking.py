"""Masked tokens against the numbers of Devlin et al. 2019, section 3.1."""

import numpy as np
import pytest

from stages.pretrain.corruption import mask_tokens, token_draws
from stages.training.token_shards import IGNORED

MASK, TEXT_IDS = 3, np.arange(10, 60)
BERT = {"corrupted": 0.15, "masked": 0.8, "replaced": 0.1}


def masked(tokens, text=None, seed=0, **settings):
    text = tokens >= 10 if text is None else text
    drawn = token_draws(tokens.shape, seed, 1, 0)
    return mask_tokens(tokens, text, drawn, mask_id=MASK, text_ids=TEXT_IDS, **{**BERT, **settings})


@pytest.fixture
def tokens():
    """200,000 tokens of text; every tenth of a row is special (id 1)."""
    drawn = np.random.default_rng(0).integers(10, 60, (200, 1000)).astype(np.int32)
    drawn[:, ::10] = 1
    return drawn


def test_15_percent_are_chosen_and_80_10_10_hidden_replaced_kept(tokens):
    """Bounds are 5 standard deviations of a share: √(p (1 - p) / n)."""
    seen, targets = masked(tokens)
    chosen = targets != IGNORED
    text = tokens >= 10
    share = chosen[text].mean()
    assert share == pytest.approx(0.15, abs=5 * (0.15 * 0.85 / text.sum()) ** 0.5)

    n = chosen.sum()
    hidden = (seen[chosen] == MASK).mean()
    changed = ((seen != tokens) & (seen != MASK))[chosen].mean()
    kept = (seen == tokens)[chosen].mean()
    # One in 50 of the replaced tokens is replaced by itself.
    assert hidden == pytest.approx(0.8, abs=5 * (0.8 * 0.2 / n) ** 0.5)
    assert changed == pytest.approx(0.1 * 49 / 50, abs=5 * (0.1 * 0.9 / n) ** 0.5)
    assert kept == pytest.approx(0.1 + 0.1 / 50, abs=5 * (0.1 * 0.9 / n) ** 0.5)


def test_targets_are_the_tokens_themselves_in_place_and_nothing_else_changes(tokens):
    before = tokens.copy()
    seen, targets = masked(tokens)
    chosen = targets != IGNORED
    assert np.array_equal(tokens, before)
    assert np.array_equal(targets[chosen], tokens[chosen])
    assert np.array_equal(seen[~chosen], tokens[~chosen])
    assert not chosen[tokens == 1].any()


def test_random_tokens_are_text_and_all_as_likely(tokens):
    seen, targets = masked(tokens, masked=0.4, replaced=0.6)
    drawn = seen[(targets != IGNORED) & (seen != MASK)]
    counts = np.bincount(drawn, minlength=60)
    assert counts[:10].sum() == 0
    expected = len(drawn) / 50
    assert counts[10:] == pytest.approx(np.full(50, expected), abs=5 * expected**0.5)


@pytest.mark.parametrize("corrupted", [0.02, 0.15, 0.6])
def test_what_becomes_of_a_token_does_not_depend_on_how_many_are_chosen(tokens, corrupted):
    seen, targets = masked(tokens, corrupted=corrupted)
    chosen = targets != IGNORED
    n = chosen.sum()
    assert (seen[chosen] == MASK).mean() == pytest.approx(0.8, abs=5 * (0.16 / n) ** 0.5)


def test_without_replacement_all_others_stay(tokens):
    seen, targets = masked(tokens, replaced=0.0)
    chosen = targets != IGNORED
    assert set(np.unique(seen[chosen & (seen != tokens)])) == {MASK}
