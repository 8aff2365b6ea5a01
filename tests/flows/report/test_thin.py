"""Thinning keeps what stands out: the least, the greatest, the ends, the gaps."""

from __future__ import annotations

import math

from flows.report.display import sample_evenly, thin_curve
from flows.report.views import plot_table
from stages.engine.page import Axis, CurveFigure, Series


def test_a_spike_a_dip_and_the_ends_stay():
    y = [math.sin(i / 500) for i in range(10_000)]
    y[4321], y[8765] = 50.0, -50.0
    x, thin = thin_curve(range(10_000), y, 600)
    assert len(x) <= 602
    assert x[0] == 0
    assert x[-1] == 9_999
    kept = dict(zip(x, thin, strict=True))
    assert kept[4321] == 50.0
    assert kept[8765] == -50.0
    assert all(kept[at] == y[int(at)] for at in x)


def test_a_gap_stays_a_gap_and_short_curves_stay_whole():
    x, y = thin_curve((3, 1, 2), (3.0, 1.0, None), 600)
    assert x == [1, 2, 3]
    assert y[0] == 1.0
    assert math.isnan(y[1])
    long = [1.0] * 5_000 + [None] + [1.0] * 5_000
    assert any(math.isnan(value) for value in thin_curve(range(10_001), long, 100)[1])


def test_a_table_holds_every_kth_x_of_all_series():
    figure = CurveFigure(
        "c", Axis("x"), Axis("y"),
        (Series("a", tuple(range(1000)), (1.0,) * 1000), Series("b", (0, 5, 6), (7.0, 8.0, 9.0))),
    )  # fmt: skip
    view = plot_table(figure, "")
    assert len(view.rows) == 200
    assert [[cell.text for cell in row] for row in view.rows[:2]] == [
        ["0", "1", "7"],
        ["5", "1", "8"],
    ]
    assert "5th" in view.cut
    assert "1,000" in view.cut


def test_evenly_takes_every_kth():
    assert sample_evenly(range(10), 4) == (range(0, 10, 3), 3)
    assert sample_evenly([], 4) == ([], 1)
