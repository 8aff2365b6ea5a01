from __future__ import annotations

import numpy as np
import pytest
from datasketch.lsh import _optimal_param
from scipy.integrate import quad

from stages.dedup.presets import _missed_area, candidate_probability, solve_bands


@pytest.mark.parametrize(
    ("bands", "rows", "expected"),
    [
        # 1 - (1 - s^r)^b at s = .5, .7, .75, .8, .9, to three places: FineWeb, RefinedWeb, NeMo
        # Curator, marin and RedPajama-V2 at 0.8.
        (14, 8, (0.053, 0.565, 0.772, 0.924, 1.000)),
        (450, 20, (0.000, 0.302, 0.761, 0.995, 1.000)),
        (20, 13, (0.002, 0.177, 0.382, 0.677, 0.997)),
        (26, 11, (0.013, 0.405, 0.674, 0.903, 1.000)),
        (9, 13, (0.001, 0.084, 0.195, 0.399, 0.929)),
    ],
)
def test_candidate_probability_is_the_s_curve_of_published_settings(
    bands: int, rows: int, expected: tuple[float, ...]
) -> None:
    found = [candidate_probability(s, bands, rows) for s in (0.5, 0.7, 0.75, 0.8, 0.9)]
    assert found == pytest.approx(expected, abs=0.0006)


@pytest.mark.parametrize(
    ("threshold", "hashes", "expected"),
    [
        # RedPajama-V2's four, and data-juicer's default.
        (0.7, 128, (14, 9)),
        (0.8, 128, (9, 13)),
        (0.9, 128, (5, 25)),
        (1.0, 128, (1, 128)),
        (0.7, 256, (25, 10)),
    ],
)
def test_solved_bands_are_the_published_ones(
    threshold: float, hashes: int, expected: tuple[int, int]
) -> None:
    assert solve_bands(threshold, hashes) == expected


@pytest.mark.parametrize("hashes", [1, 2, 16, 64, 112, 200])
def test_solved_bands_are_datasketch_s(hashes: int) -> None:
    for threshold in (0.05, 0.2, 0.35, 0.5, 0.6, 0.75, 0.85, 0.95, 1.0):
        assert solve_bands(threshold, hashes) == _optimal_param(threshold, hashes, 0.5, 0.5)


def test_thousands_of_hashes_are_solved_too() -> None:
    def area(bands: int, rows: int) -> float:
        below, _ = quad(candidate_probability, 0, 0.75, (bands, rows))
        above, _ = quad(lambda s: 1 - candidate_probability(s, bands, rows), 0.75, 1)
        return below + above

    bands, rows = solve_bands(0.75, 9000)
    assert bands * rows <= 9000
    around = [(bands + i, rows + j) for i in (-9, 0, 9) for j in (-1, 0, 1)]
    fitting = [(b, r) for b, r in [*around, (450, 20)] if b * r <= 9000]
    assert min(fitting, key=lambda some: area(*some)) == (bands, rows)


@pytest.mark.parametrize(
    ("similarity", "bands", "rows"), [(0.3, 7, 4), (1.0, 7, 4), (0.05, 3, 2000)]
)
def test_the_share_that_bands_miss_is_its_integral(
    similarity: float, bands: int, rows: int
) -> None:
    # 0.05^2000 is no float any more.
    expected, _ = quad(lambda s: 1 - candidate_probability(s, bands, rows), 0, similarity)
    assert _missed_area(similarity, np.array([bands]), np.array([rows])) == pytest.approx(expected)


@pytest.mark.parametrize(("threshold", "hashes"), [(0.0, 8), (1.1, 8), (0.5, 0)])
def test_nothing_solves_a_threshold_outside_its_range(threshold: float, hashes: int) -> None:
    with pytest.raises(ValueError, match="no bands"):
        solve_bands(threshold, hashes)
