"""Pictures: right for every kind of figure, equal for equal figures, and nothing in them runs."""

from __future__ import annotations

import itertools
import math
import random
import re
from xml.etree import ElementTree

import pytest

from flows.report.display import DARK, LIGHT, text_width
from flows.report.draw import NARROW, draw, draw_svg, page_svg
from flows.report.sheet import (
    FONT,
    Sheet,
    fit,
    linear_ticks,
    log_ticks,
    place_labels,
    tick_text,
    x_to_pixels,
)
from stages.engine.page import (
    Axis,
    BarFigure,
    Bars,
    CurveFigure,
    Estimate,
    HistogramFigure,
    IntervalFigure,
    Mark,
    MatrixFigure,
    Series,
)

SVG = "{http://www.w3.org/2000/svg}"
HOSTILE = "</style><script>alert(1)</script> {{ 7*7 }} $\\frac{1}{2}$ & \x1b[31m\x00 ‮gnp"


def plots(kinds, text="name"):
    return [figure for figure in kinds(text) if hasattr(figure, "table")]


def texts(svg: str) -> str:
    return "\n".join(
        element.text or "" for element in ElementTree.fromstring(svg).iter(f"{SVG}text")
    )


def curve(*series: Series, x=Axis("x"), y=Axis("y"), marks=()) -> CurveFigure:  # noqa: B008
    return CurveFigure("Curve", x, y, series, marks)


def luminance(colour: str) -> float:
    """Relative luminance (WCAG 2.1)."""
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("colours", [LIGHT, DARK], ids=["light", "dark"])
def test_text_has_a_contrast_of_4_5_and_series_of_3_to_the_ground(colours):
    for name in ("text", "muted"):
        assert contrast(colours[name], colours["surface"]) >= 4.5
    for number in range(1, 9):
        assert contrast(colours[f"series-{number}"], colours["surface"]) >= 3
    assert contrast(colours["on-series"], colours["series-1"]) >= 4.5


def test_light_colours_are_all_different_so_that_each_can_be_renamed():
    assert len(set(LIGHT.values())) == len(LIGHT)
    assert LIGHT.keys() == DARK.keys()


def test_every_kind_is_drawn_with_its_labels_and_the_same_bytes_twice(kinds):
    for figure in plots(kinds):
        svg = draw_svg(figure)
        assert svg == draw_svg(figure)
        assert figure.title in texts(svg)
        assert "name" in texts(svg).replace(figure.title, "")
        assert not re.search(r"20\d\d-\d\d-\d\d|matplotlib", svg)


def test_dark_and_light_differ_in_colours_alone(kinds):
    for figure in plots(kinds):
        light, dark = draw_svg(figure), draw_svg(figure, dark=True)
        for name, literal in LIGHT.items():
            light = light.replace(literal, DARK[name])
        assert light == dark


def test_a_pictures_colours_in_a_page_are_the_pages_and_its_ids_its_own(kinds):
    for figure in plots(kinds):
        svg = page_svg(figure, width=360, prefix="p7-")
        assert not re.search(r"#[0-9a-fA-F]{6}", svg)
        ids = [element.get("id") for element in ElementTree.fromstring(svg).iter()]
        assert all(name.startswith("p7-") for name in ids if name)
        assert all(name in svg.split("<defs", 1)[-1] for name in ids if name)


def test_hostile_labels_are_text_and_nothing_else(kinds):
    for figure in plots(kinds, HOSTILE):
        svg = draw_svg(figure)
        root = ElementTree.fromstring(svg)
        assert {e.tag.removeprefix(SVG) for e in root.iter()} <= {
            "svg", "g", "path", "defs", "use", "text", "clipPath", "rect", "tspan"
        }  # fmt: skip
        shown = texts(svg).replace("\n", "")
        assert "\x1b" not in svg
        assert "‮" not in svg
        assert "script>" in shown
        assert "$" in shown
        assert "&#" not in shown


def test_dollar_signs_are_not_mathematics():
    svg = draw_svg(curve(Series("$a_b$ and $x^2$", (1, 2), (1.0, 2.0)), x=Axis("costs $1 to $2")))
    assert "$a_b$ and $x^2$" in texts(svg)
    assert "costs $1 to $2" in texts(svg)


def test_names_with_an_underscore_in_front_stand_in_the_legend():
    svg = draw_svg(curve(Series("_hidden", (1, 2), (1.0, 2.0)), Series("b", (1, 2), (2.0, 1.0))))
    assert "_hidden" in texts(svg)


@pytest.mark.parametrize(
    "figure",
    [
        curve(),
        curve(Series("a", (), ())),
        curve(Series("a", (1.0, 2.0), (None, math.nan))),
        BarFigure("B", (), Axis("v"), (Bars("n", ()),)),
        HistogramFigure("H", Axis("v"), (0.0, 1.0), (Bars("n", (None,)),)),
        MatrixFigure("M", (), (), ()),
        IntervalFigure("I", Axis("v"), ()),
    ],
)
def test_a_figure_without_values_says_so(figure):
    assert "there are no values" in texts(draw_svg(figure))


@pytest.mark.parametrize(
    "figure",
    [
        curve(Series("a", (5.0,), (2.0,))),
        curve(Series("a", (0, 1, 9), (0.0, -1.0, 9.0)), x=Axis("x", "log"), y=Axis("y", "log")),
        curve(Series("a", (1, 2), (0.0, 0.0)), y=Axis("y", "log")),
        curve(Series("a", (1, 2), (1e300, -1e300))),
        curve(Series("a", (1, 2), (math.inf, 1.0)), marks=(Mark(math.nan, "no"), Mark(9, "b"))),
        curve(Series("a", (1, 2), (3.0, 3.0))),
        BarFigure("B", ("x", "y"), Axis("v", "log"), (Bars("n", (0.0, 100.0)),)),
        BarFigure("B", ("x", "y"), Axis("v"), (Bars("n", (-5.0, 0.0)),)),
        BarFigure("B", ("x",), Axis("v"), (Bars("n", (0.0,)),)),
        BarFigure("B", tuple(map(str, range(500))), Axis("v"), (Bars("n", (1.0,) * 500),)),
        HistogramFigure("H", Axis("v", "log"), (0, 1, 9, math.inf), (Bars("n", (1, 2, 3)),)),
        HistogramFigure("H", Axis("v"), (-math.inf, 0.0, math.inf), (Bars("n", (0.0, 0.0)),)),
        MatrixFigure("M", ("r",), ("c",), ((0,),)),
        MatrixFigure("M", ("r",) * 90, ("c",) * 90, ((1.0,) * 90,) * 90),
        IntervalFigure("I", Axis("v", "log"), (Estimate("e", 0.0), Estimate("f", 2.0, 1.0, 3.0))),
    ],
)  # fmt: skip
@pytest.mark.filterwarnings("error")
def test_odd_numbers_are_drawn_without_a_warning(figure):
    svg = draw_svg(figure)
    assert len(svg) < 400_000
    assert "nan" not in re.sub(r">[^<]*<", "><", svg)


def test_a_point_between_gaps_is_a_marker():
    y = (1.0, None, 5.0, None, 2.0, 3.0)
    svg = draw_svg(curve(Series("a", tuple(range(6)), y)))
    assert len(list(ElementTree.fromstring(svg).iter(f"{SVG}use"))) >= 2


def test_a_million_points_become_a_small_picture():
    count = 1_000_000
    y = [0.0] * count
    y[777_777] = 42.0
    svg = draw_svg(curve(Series("a", tuple(range(count)), tuple(y))))
    assert len(svg) < 60_000
    assert "40" in texts(svg)


def test_percent_axes_count_in_percent_and_thousands_are_short():
    assert tick_text(Axis("", format=".1%"), 0.25) == "25%"
    assert tick_text(Axis(""), 1_250_000) == "1.25M"
    assert tick_text(Axis(""), 1500) == "1,500"
    assert tick_text(Axis(""), 0.30000000000000004) == "0.3"
    assert tick_text(Axis(""), 0.00002) == "2e-5"


def test_counts_have_whole_ticks_and_few_decades_more_than_powers():
    assert linear_ticks(0, 2.2, 6, whole=True) == [0, 1, 2]
    assert log_ticks(1, 100, 8) == [1, 2, 5, 10, 20, 50, 100]
    assert log_ticks(1, 1e6, 8) == [10.0**i for i in range(7)]
    assert len(log_ticks(1e-9, 1e9, 6)) <= 6


def test_marks_that_have_room_are_named_beside_their_line():
    marks = (Mark(2, "phase 1"), Mark(30, "phase 2"), Mark(31, "resumed"))
    shown = texts(draw_svg(curve(Series("a", tuple(range(60)), (1.0,) * 60), marks=marks)))
    assert {"phase 1", "phase 2", "resumed"} <= set(shown.splitlines())


def test_marks_that_have_none_are_numbered_and_counted_below():
    marks = tuple(Mark(i, "a batch was skipped" if i % 2 else "rolled back") for i in range(60))
    shown = texts(draw_svg(curve(Series("a", tuple(range(60)), (1.0,) * 60), marks=marks)))
    assert "rolled back (×30)" in shown
    assert "(×30)" in shown


@pytest.mark.parametrize("seed", range(20))
def test_labels_of_marks_touch_neither_each_other_nor_a_line(seed):
    from matplotlib.figure import Figure

    print("seed", seed)
    rng = random.Random(seed)
    marks = [Mark(rng.uniform(0, 100), "x" * rng.randint(1, 20)) for _ in range(rng.randint(1, 9))]
    marks.sort(key=lambda mark: mark.x)
    sheet = Sheet(Figure().add_axes((0, 0, 1, 1)), 720)
    sheet.axes.set_xlim(0, 100)
    rows = place_labels(marks, [mark.label for mark in marks], sheet, most=3)
    spans = [
        (x_to_pixels(m.x, sheet), x_to_pixels(m.x, sheet) + 3 + text_width(m.label, FONT - 1), row)
        for m, row in zip(marks, rows, strict=True)
        if row >= 0
    ]
    for (start, end, row), (other, _, above) in itertools.combinations(spans, 2):
        assert other >= end or above < row, "a later line ends below every label it would cross"
        assert start <= other


def test_long_labels_break_after_underscores_and_are_cut_in_the_end():
    lines = fit("gopher_duplicate_paragraph_characters", 120, 2).splitlines()
    assert lines == ["gopher_", "duplicate_", "paragraph_"][: len(lines)] or len(lines) == 2
    assert all(text_width(line, FONT) <= 130 for line in lines)
    assert fit("x" * 900, 100, 2).endswith("…")
    assert fit("a b", 100, 2) == "a b"


def test_a_notebook_may_draw_on_its_own_axes(kinds):
    from matplotlib.figure import Figure

    figure = Figure(figsize=(12, 4))
    axes = figure.subplots(1, 2)
    for one, where in zip(plots(kinds), itertools.cycle(axes), strict=False):
        where.clear()
        assert draw(one, where) is figure


def test_a_notebook_shows_a_figure_that_is_the_last_value_of_a_cell(kinds):
    from IPython.core.formatters import DisplayFormatter

    figure = draw(plots(kinds)[0])
    assert figure.axes[0].get_lines()
    shown, _ = DisplayFormatter().format(figure)
    assert "name curve" in texts(shown["image/svg+xml"])


def test_rows_that_differ_at_their_ends_alone_have_different_names_on_a_phone():
    """Two lines of 140 pixels hold some 40 letters; the names below differ behind the 44th."""
    name = "multilingual_hatecheck_functional_tests (free, 5 shots)"
    names = [name, f"{name} · accuracy_clean", f"{name} · accuracy_by_bytes"]
    figure = IntervalFigure(
        "t", Axis("accuracy", format=".3f"), tuple(Estimate(one, 0.3, 0.2, 0.4) for one in names)
    )
    drawn = page_svg(figure, width=NARROW, prefix="a")
    groups = re.findall(r"<g>(<text.*?)</g>", drawn)
    lines = [re.findall(r"<text[^>]*>([^<]*)", group) for group in groups]
    shown = ["".join(group).strip("…") for group in lines if group[0].startswith("multilingual")]
    assert len(shown) == len(set(shown)) == 3
