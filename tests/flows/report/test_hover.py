"""Values over a picture: invisible areas in the right place, each with its text."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest

from flows.report.draw import page_svg
from flows.report.hover import AREAS
from stages.engine.page import (
    Axis,
    BarFigure,
    Bars,
    CurveFigure,
    Estimate,
    HistogramFigure,
    IntervalFigure,
    Series,
)

SVG = "{http://www.w3.org/2000/svg}"


def areas(figure, width=720):
    root = ElementTree.fromstring(page_svg(figure, width=width, prefix="p-", hover=True))
    _, _, total, height = map(float, root.get("viewBox").split())
    found = []
    (group,) = (g for g in root.iter(f"{SVG}g") if g.get("class") == "hover")
    for box in group:
        left, top, wide, high = (float(box.get(n)) for n in ("x", "y", "width", "height"))
        assert 0 <= left <= left + wide <= total + 0.1
        assert 0 <= top <= top + high <= height + 0.1
        found.append((left, top, box.find(f"{SVG}title").text))
    return sorted(found)


def test_a_curve_tells_every_value_once_from_left_to_right():
    x = tuple(range(AREAS // 2))
    curve = CurveFigure(
        "c", Axis("tokens", format=",.0f"), Axis("loss", format=".2f"),
        (Series("a", x, tuple(v / 4 for v in x)), Series("b", (3,), (9.0,))),
    )  # fmt: skip
    texts = [text for _, _, text in areas(curve)]
    assert texts[0] == "tokens 0\na: 0.00"
    assert texts[3] == "tokens 3\na: 0.75\nb: 9.00"
    assert len(texts) == len(x)


@pytest.mark.parametrize("scale", ["linear", "log"])
def test_an_area_lies_over_its_point(scale):
    curve = CurveFigure(
        "c", Axis("x", scale, ",.0f"), Axis("y"), (Series("a", (1, 10, 100), (1.0, 2.0, 3.0)),)
    )
    first, middle, last = (left for left, _, _ in areas(curve))
    share = (middle - first) / (last - first)
    # 10 lies in the middle of 1 and 100 on a log axis, at 9/99 on a linear one; an area is 1/48.
    assert share == pytest.approx(0.5 if scale == "log" else 9 / 99, abs=1.5 / AREAS)


def test_bars_bins_and_estimates_have_an_area_each():
    bars = BarFigure("b", ("x", "y"), Axis("n", format=","), (Bars("kept", (1200, 3)),))
    assert [text for *_, text in sorted(areas(bars), key=lambda a: a[1])] == [
        "x\nkept: 1,200",
        "y\nkept: 3",
    ]
    bins = HistogramFigure("h", Axis("v", format="g"), (0, 1, 2), (Bars("n", (5, 7)),))
    assert [text for *_, text in areas(bins)] == ["v 0 to 1\nn: 5", "v 1 to 2\nn: 7"]
    scores = IntervalFigure("i", Axis("v", format=".1f"), (Estimate("e", 0.5, 0.4, 0.6, 0.2),))
    assert [text for *_, text in areas(scores)] == ["e: 0.5\n95 %: 0.4 to 0.6\nbaseline: 0.2"]
