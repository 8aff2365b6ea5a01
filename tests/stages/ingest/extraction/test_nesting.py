"""The bound on depth and unfolding, told from the tags alone."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from selectolax.lexbor import LexborHTMLParser

from stages.ingest.extraction import nesting
from stages.ingest.extraction.nesting import PageTooLarge, check_nesting

LIMITS = (1_000, 250_000)


def refusal(html: str, depth: int = LIMITS[0], nodes: int = LIMITS[1]) -> str | None:
    try:
        check_nesting(html, depth, nodes)
    except PageTooLarge as refused:
        return refused.reason
    return None


@pytest.mark.parametrize(
    "html",
    [
        "<div>" * 50_000,
        "<div>" * 50_000 + "</div>" * 50_000,
        "<DIV CLASS=x>" * 20_000,
        "<ul><li>" * 20_000,
        "<x-y>" * 20_000,
        # end tags that close nothing do not hide the depth
        "<div></x>" * 10_000 + "<x></div>" * 10_000,
        # nor do those in comments, scripts and attributes
        "<div><!-- </div> -->" * 10_000,
        "<div><script>'</div>'</script>" * 10_000,
        '<div title="></div>">' * 10_000,
    ],
)
def test_deep_pages_are_refused(html: str) -> None:
    assert refusal(html) == "too_deep"


@pytest.mark.parametrize(
    "html",
    [
        "<ul>" + "<li>x" * 50_000 + "</ul>",
        "<table>" + "<tr><td>x" * 20_000 + "</table>",
        "<p>x" * 50_000,
        "x<br>" * 50_000,
        "<div><p>x</p></div>" * 20_000,
        "<p><b>x</b> <i>y</i></p>" * 20_000,
        "<script>" + "'<div>'" * 20_000 + "</script>",
        "<!--" + "<div>" * 20_000 + "-->",
        '<img alt="' + "<div>" * 20_000 + '">',
        "a < b " * 50_000,
    ],
)
def test_long_flat_pages_pass(html: str) -> None:
    assert refusal(html) is None


def test_unclosed_formatting_that_unfolds_is_refused() -> None:
    """1,000 different open `b` are opened again in each of 1,000 paragraphs: 10^6 nodes."""
    opened = "".join(f"<b id={number}>" for number in range(900))
    html = f"<p>{opened}</p>" + "<p>x</p>" * 1_000
    assert refusal(html) == "too_many_nodes"
    small = f"<p>{opened[:800]}</p>" + "<p>x</p>" * 10
    nodes = sum(1 for _ in LexborHTMLParser(small).root.traverse())  # type: ignore[union-attr]
    assert nodes > 10 * 50  # it does unfold


@pytest.mark.parametrize(
    "piece",
    [
        "<div ",
        '<div a="',
        "<div a='",
        "<!--",
        "<script>",
        "<",
        "</",
        "<div",
        '"<a b="',
        "<!-",
        "<b ",
    ],
)
@pytest.mark.timeout(60)
def test_the_scan_is_linear(piece: str) -> None:
    """A scan quadratic in the number of pieces would take hours on these two megabytes."""
    html = piece * (2_000_000 // len(piece))
    assert len(nesting._TOKEN.findall(html)) <= html.count("<")
    assert nesting._distinct_formatting(html) <= html.count("<")


class _Reference:
    """The same count, tag by tag."""

    @staticmethod
    def most_open(names: list[str]) -> int:
        held: dict[str, int] = {}
        most = 0
        for name in names:
            if name[0] == "/":
                held[name[1:]] = max(held.get(name[1:], 0) - 1, 0)
            else:
                held[name] = held.get(name, 0) + 1
            most = max(most, sum(held.values()))
        return most


@given(st.lists(st.sampled_from(["a", "b", "c", "/a", "/b", "/c"]), max_size=60))
@settings(max_examples=200, deadline=None)
def test_open_elements_are_counted_as_one_by_one(names: list[str]) -> None:
    assert nesting._most_open(names) == _Reference.most_open(names)


@given(st.text(alphabet="<>/ab\"'=!- ", max_size=200))
@settings(max_examples=200, deadline=None)
def test_any_text_is_scanned(html: str) -> None:
    nesting._TOKEN.findall(html)
    check_nesting(html, 0, 0) if html.count("<") == 0 else refusal(html, 0, 0)


@pytest.mark.parametrize("quote", ["", "t='>' ", 't="a > b" '])
def test_a_tag_of_very_many_attributes_is_refused_unparsed(quote: str) -> None:
    """The parser compares each attribute with all before it: 20,000 are 2e8 pairs."""
    few = "".join(f" a{number}" for number in range(10_000))
    many = "".join(f" a{number}" for number in range(20_000))
    check_nesting(f"<p {quote}{few}>x", 1_000, 250_000)
    with pytest.raises(PageTooLarge, match="attributes") as refused:
        check_nesting(f"<p {quote}{many}>x", 1_000, 250_000)
    assert refused.value.reason == "too_many_nodes"


def test_a_long_text_and_a_long_value_are_no_attributes() -> None:
    check_nesting("<p>" + "a word " * 100_000, 1_000, 250_000)
    check_nesting('<img src="' + "a word " * 100_000 + '">', 1_000, 250_000)
