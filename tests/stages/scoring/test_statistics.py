import math

import numpy as np
import pytest

from stages.scoring.uncertainty import mean, ratio
from stages.scoring.unigram import unigram_nll


def test_standard_error_of_a_mean_is_that_of_lm_eval():
    # sample standard deviation over the square root of n: sqrt(0.3) / sqrt(5)
    estimate = mean([1, 0, 1, 1, 0])
    assert estimate.value == 0.6
    assert estimate.standard_error == pytest.approx(math.sqrt(0.3 / 5))


def test_a_ratio_of_equal_documents_is_their_mean():
    values = [3.0, 5.0, 4.0, 9.0]
    as_mean, as_ratio = mean(values), ratio(values, [1, 1, 1, 1])
    assert as_ratio.value == as_mean.value
    assert as_ratio.standard_error == pytest.approx(as_mean.standard_error)


def test_bits_per_byte_of_texts_of_unlike_length_is_sum_over_sum():
    # lm-eval: -sum ll / (bytes · ln 2) for (-120.5, 80 bytes) and (-33.25, 21 bytes) is 2.196182
    estimate = ratio([120.5 / math.log(2), 33.25 / math.log(2)], [80, 21])
    assert estimate.value == pytest.approx(2.196182, abs=1e-6)


def test_standard_error_of_a_ratio_agrees_with_the_bootstrap():
    rng = np.random.default_rng(0)
    y = rng.integers(50, 500, size=300)
    x = 1.5 * y + rng.normal(0, 60, size=300)
    draws = rng.integers(0, 300, size=(4000, 300))
    bootstrap = (x[draws].sum(axis=1) / y[draws].sum(axis=1)).std()
    assert ratio(x, y).standard_error == pytest.approx(bootstrap, rel=0.08)


def test_one_observation_has_no_standard_error():
    assert mean([1.0]).standard_error is None
    assert ratio([1.0], [2.0]).standard_error is None


def test_unigram_model_is_add_one_smoothed_and_sums_to_one():
    nll = unigram_nll(np.array([0, 3, 1], dtype=np.int64))
    np.testing.assert_allclose(np.exp(-nll), [1 / 7, 4 / 7, 2 / 7])
