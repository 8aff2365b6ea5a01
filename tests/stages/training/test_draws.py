import numpy as np
import pytest

from stages.pretrain.corruption import row_draws, token_draws


def test_a_draw_depends_on_seed_step_row_and_position_alone():
    whole = token_draws((6, 10), 1, 2, 0)
    assert np.array_equal(token_draws((4, 10), 1, 2, 2), whole[2:])
    assert np.array_equal(token_draws((6, 3), 1, 2, 0), whole[:, :3])
    assert np.array_equal(row_draws(6, 1, 2, 0)[2:], row_draws(4, 1, 2, 2))
    for seed, step in ((2, 2), (1, 3)):
        assert not np.any(token_draws((6, 10), seed, step, 0) == whole)
        assert not np.any(row_draws(6, seed, step, 0) == row_draws(6, 1, 2, 0))


def test_token_draws_are_uniform_and_unrelated():
    """Moments of 2^19 numbers in [0, 1): mean 1/2 ± 5 σ = 0.002, variance 1/12; no correlation
    with the neighbour in the row, in the column, or in the next step.
    """
    drawn = token_draws((512, 1024), 7, 9, 0)
    assert drawn.min() >= 0
    assert drawn.max() < 1
    assert drawn.mean() == pytest.approx(0.5, abs=0.002)
    assert drawn.var() == pytest.approx(1 / 12, abs=0.001)
    assert np.bincount((drawn * 16).astype(int).ravel()) == pytest.approx(
        np.full(16, drawn.size / 16), rel=0.03
    )
    after = token_draws((512, 1024), 7, 10, 0)
    for one, other in ((drawn[:, 1:], drawn[:, :-1]), (drawn[1:], drawn[:-1]), (drawn, after)):
        assert abs(np.corrcoef(one.ravel(), other.ravel())[0, 1]) < 0.007


def test_row_draws_are_uniform_over_steps_and_even_within_one():
    """Of 1,000 rows the number below any share is within 3 of its expectation; of 1,000 draws by
    chance it would be off by up to 50.
    """
    first = np.array([row_draws(1, 3, step, 0)[0] for step in range(1, 2001)])
    assert first.mean() == pytest.approx(0.5, abs=0.03)
    assert np.bincount((first * 4).astype(int)) == pytest.approx([500] * 4, abs=90)
    for step in range(1, 20):
        drawn = row_draws(1000, 3, step, 0)
        for share in (0.1, 0.25, 0.5, 0.9):
            assert abs((drawn < share).sum() - 1000 * share) <= 3
