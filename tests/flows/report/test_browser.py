"""The report as a browser shows it: wide, on a phone, in the dark, on paper."""

from __future__ import annotations

import itertools
import re
from pathlib import Path

import pytest

from flows.recipe.execute import execute
from flows.report.report import write_report

HOSTILE = (
    "<script>document.title='owned'</script><img src=x onerror=\"document.title='owned'\"> " * 3
)


_REPORTS: dict[str, Path] = {}
"""Drawn by the first test: 60 figures in several widths take most of its time."""


@pytest.fixture
def report(request, kinds, tmp_path_factory):
    if not _REPORTS:
        names = ("given_pages", "open_pipeline", "inline", "store")
        given_pages, open_pipeline, inline, store = map(request.getfixturevalue, names)
        plain, hostile, long = kinds(), kinds(HOSTILE), kinds("a_name_without_any_space_" * 8)
        given_pages(choose=[*plain, *hostile], lines=long)
        execute(open_pipeline(), dispatch=inline)
        execute(open_pipeline("choose.least.characters=5"), dispatch=inline)
        folder = tmp_path_factory.mktemp("reports")
        single = write_report(store, "demo", folder / "one.html", full=True)
        against = write_report(store, "demo", folder / "two.html", against="demo/choose", full=True)
        folded = write_report(store, "demo", folder / "folded.html")
        _REPORTS.update(single=single, against=against, folded=folded)
    return _REPORTS


@pytest.fixture
def opened(browser, report):
    """`opened("single", width, scheme)` → a page without a message or a request."""
    pages = []

    def show(which: str, width: int, scheme: str = "light"):
        page = browser.new_page(viewport={"width": width, "height": 800}, color_scheme=scheme)
        events: list[str] = []
        page.on("console", lambda message: events.append(message.text))
        page.on("pageerror", lambda error: events.append(str(error)))
        page.on("request", lambda request: events.append(request.url))
        page.goto(report[which].as_uri())
        assert events == [report[which].as_uri()]
        pages.append(page)
        return page

    yield show
    for page in pages:
        page.close()


OVERFLOW = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
OUTSIDE = """() => [...document.querySelectorAll('figure, h1, h2, h3, h4, p, pre, dl, summary')]
    .filter(e => e.getClientRects().length && !e.closest('.scroll'))
    .filter(e => e.getBoundingClientRect().right > document.documentElement.clientWidth + 1)
    .map(e => e.outerHTML.slice(0, 120))"""


@pytest.mark.full
def test_nothing_stands_out_of_the_page_at_any_width(opened):
    for which, width in itertools.product(("single", "against"), (320, 360, 768, 1280)):
        page = opened(which, width)
        page.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
        assert page.evaluate(OUTSIDE) == [], (which, width)
        assert page.evaluate(OVERFLOW) <= 0, (which, width)
        assert page.title() != "owned"


@pytest.mark.full
def test_dark_and_light_have_their_own_ground_text_and_curves(opened):
    found = []
    for scheme in ("light", "dark"):
        page = opened("single", 1280, scheme)
        body = page.evaluate("getComputedStyle(document.body).backgroundColor")
        text = page.evaluate("getComputedStyle(document.body).color")
        curve = page.evaluate(
            "getComputedStyle(document.querySelector("
            "'.picture path[style*=\"stroke: var(--series-1)\"]')).stroke"
        )
        found.append((body, text, curve))
    assert all(light != dark for light, dark in zip(*found, strict=True))


def test_a_phone_gets_narrow_pictures_with_letters_as_large_as_on_a_screen(opened):
    page = opened("single", 360)
    sizes = page.evaluate(
        """() => [...document.querySelectorAll('.picture svg')]
            .filter(s => s.getClientRects().length)
            .map(s => s.getBoundingClientRect().width / s.viewBox.baseVal.width * 12)"""
    )
    assert sizes
    assert min(sizes) > 9


def test_no_two_labels_of_a_picture_overlap(opened):
    """Boxes of text within each plot, at both widths, in the fonts of this machine."""
    for width in (360, 1280):
        page = opened("single", width)
        overlaps = page.evaluate(
            """() => [...document.querySelectorAll('#step-read_5b_crawl-A_5d_ .picture svg, '
                + '#step-choose .picture svg')].slice(0, 14)
              .filter(s => s.getClientRects().length).flatMap(s => {
                const boxes = [...s.querySelectorAll('text')]
                    .map(t => [t.textContent, t.getBoundingClientRect()]);
                const hits = [];
                boxes.forEach(([a, p], i) => boxes.slice(i + 1).forEach(([b, q]) => {
                  const w = Math.min(p.right, q.right) - Math.max(p.left, q.left);
                  const h = Math.min(p.bottom, q.bottom) - Math.max(p.top, q.top);
                  if (w > 1 && h > 3) hits.push([a, b]);
                }));
                return hits; })"""
        )
        assert overlaps == []


SHOWN = """[...document.querySelectorAll("#step-choose figure")]
    .filter(e => e.checkVisibility({contentVisibilityAuto: true})).length"""


def test_a_step_is_folded_until_its_link_or_summary_is_clicked_without_a_script(opened):
    page = opened("folded", 1280)
    assert page.evaluate(SHOWN) == 0
    page.click("nav a[href='#step-choose']")
    assert page.evaluate(SHOWN) > 0


def test_paper_shows_the_first_page_and_leaves_folded_steps_folded(opened):
    def pages(which):
        return len(re.findall(rb"/Type\s*/Page\b", opened(which, 1280).pdf(format="A4")))

    assert pages("folded") <= 3 < pages("single")


def test_paper_shows_what_a_click_would_open(opened, tmp_path):
    page = opened("single", 1280)
    page.emulate_media(media="print")
    heights = page.evaluate(
        "[...document.querySelectorAll('details.sample pre')]"
        ".map(e => e.getBoundingClientRect().height)"
    )
    assert heights
    assert min(heights) > 10
    assert page.evaluate("getComputedStyle(document.querySelector('nav')).display") == "none"
    assert page.evaluate(OVERFLOW) <= 0
    assert len(page.pdf()) > 10_000
