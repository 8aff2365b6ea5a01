"""Robots directives and marks against use for AI, in headers and tags."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stages.ingest.rights import (
    ai_marks,
    directives_from_header,
    directives_from_meta,
    robots_directives,
)


@pytest.mark.parametrize(
    ("header", "robots"),
    [
        ("noindex, nofollow", "nofollow noindex"),
        # The examples of Google's documentation of X-Robots-Tag.
        ("unavailable_after: 25 Jun 2010 15:00:00 PST", "unavailable_after"),
        ("googlebot: nofollow", "nofollow"),
        ("otherbot: noindex, nofollow", None),
        ("noarchive, unavailable_after: 25 Jun 2010 15:00:00 PST", "noarchive unavailable_after"),
        ("max-snippet:20, max-image-preview: large", "max-image-preview:large max-snippet:20"),
        ("max-snippet:-1", "max-snippet:-1"),
        ("otherbot: noindex, *: noarchive", "noarchive"),
        ("", None),
        (",,;:,", None),
    ],
)
def test_directives_of_the_header(header: str, robots: str | None) -> None:
    assert robots_directives(directives_from_header(header)) == robots


def test_directives_of_a_tag_are_split_at_spaces_too() -> None:
    assert (
        robots_directives(directives_from_meta("robots", "NOINDEX NOFOLLOW")) == "nofollow noindex"
    )
    assert robots_directives(directives_from_meta("bingbot", "noindex")) is None


@pytest.mark.parametrize(
    ("header", "marks"),
    [
        ("noai", "noai"),
        ("noai, noimageai", "noai noimageai"),
        ("DeviantBot: noai", "noai"),
        ("GPTBot: noindex, CCBot: none", "ccbot gptbot"),
        ("Google-Extended: index", None),
        ("googlebot: noindex", None),
        ("noindex, nofollow", None),
    ],
)
def test_marks_of_the_header(header: str, marks: str | None) -> None:
    assert ai_marks(directives_from_header(header), []) == marks


def test_a_tag_that_names_an_ai_crawler_is_a_mark_only_if_it_refuses() -> None:
    assert ai_marks(directives_from_meta("anthropic-ai", "noindex"), []) == "anthropic-ai"
    assert ai_marks(directives_from_meta("anthropic-ai", "index, follow"), []) is None


@pytest.mark.parametrize(("value", "marks"), [("1", "tdm-reservation"), ("0", None), ("yes", None)])
def test_tdm_reservation_is_1_or_nothing(value: str, marks: str | None) -> None:
    assert ai_marks([], [value]) == marks


def test_where_header_and_page_disagree_the_reservation_wins() -> None:
    assert ai_marks([], ["0", "1"]) == "tdm-reservation"
    assert ai_marks([], ["0, 1"]) == "tdm-reservation"


@given(st.text(max_size=300))
def test_values_are_sorted_directives_on_one_line(header: str) -> None:
    asked = list(directives_from_header(header))
    robots = robots_directives(asked)
    if robots is not None:
        words = robots.split(" ")
        assert words == sorted(set(words))
        assert robots.isascii()
        assert robots == robots.lower()
    ai_marks(asked, [header])
