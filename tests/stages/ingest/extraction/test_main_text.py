"""From HTML to main text: rules, budgets, and pages made to break it."""

from __future__ import annotations

import pickle

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stages.ingest.config import IngestConfig
from stages.ingest.extraction import MainText, PageTooLarge, extract
from stages.ingest.extraction import main_text as main_text_module

PARAGRAPHS = [
    f"This is sentence {number} of the article, which says something, and goes on for a while. "
    "It has a second sentence as well, so that it reads like prose."
    for number in range(8)
]
PAGE = (
    "<html lang=en><head><title>A storm</title></head><body><nav class=menu><ul>"
    + "".join(f"<li><a href=/{n}>Section {n}</a></li>" for n in range(12))
    + "</ul></nav><article class='post entry-content'><h1>A storm</h1>"
    + "".join(f"<p>{text}</p>" for text in PARAGRAPHS)
    + "</article><div id=footer class=footer><a href=/i>Imprint</a> <a href=/p>Privacy</a></div>"
)


def test_the_default_keeps_the_article_and_drops_menu_and_footer() -> None:
    found = extract(PAGE, IngestConfig())
    lines = found.text.split("\n\n")
    assert [line for line in lines if line != "A storm"] == PARAGRAPHS
    assert found.extractor == "blocks"
    assert found.boilerplate == []
    assert found.doubt is not None
    assert 0 <= found.doubt <= 1
    assert 0.8 < found.main_share < 1
    assert found.link_share == 0
    assert found.head.title == "A storm"
    assert found.nodes > 50


def test_kept_boilerplate_is_spans_of_the_text() -> None:
    cut = extract(PAGE, IngestConfig())
    kept = extract(PAGE, IngestConfig(boilerplate="keep"))
    text = kept.text
    for span in reversed(kept.boilerplate):
        text = text[: span.start] + text[span.end :]
    assert text == cut.text
    assert "Section 3" in kept.text
    assert "Imprint" in kept.text
    assert {"navigation", "footer"} <= {span.label for span in kept.boilerplate}


def test_markdown_has_the_same_main_text() -> None:
    found = extract(PAGE.replace("<p>", "<p><b>So</b> "), IngestConfig(markup="markdown"))
    assert "**So** " + PARAGRAPHS[3] in found.text
    assert "Section 3" not in found.text


@pytest.mark.parametrize("extractor", ["resiliparse", "trafilatura"])
def test_other_extractors_answer_in_the_same_form(extractor: str) -> None:
    found = extract(PAGE, IngestConfig(extractor=extractor))  # type: ignore[arg-type]
    assert all(text in found.text for text in PARAGRAPHS)
    assert "Imprint" not in found.text
    assert (found.extractor, found.doubt, found.link_share) == (extractor, None, None)
    assert found.head.title == "A storm"
    assert 0 < found.main_share <= 1


def test_doubtful_pages_go_to_the_careful_extractor(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(main_text_module, "trafilatura_text", lambda html, markup: "careful")
    sure = extract(PAGE, IngestConfig(careful_from=1001))
    doubt = round((sure.doubt or 0) * 1000)
    assert extract(PAGE, IngestConfig(careful_from=doubt)).text == "careful"
    assert extract(PAGE, IngestConfig(careful_from=doubt)).extractor == "trafilatura"
    assert extract(PAGE, IngestConfig(careful_from=doubt + 1)).text == sure.text


def test_a_plain_text_in_one_element_is_main_text() -> None:
    lines = [f"{number}. A line of a plain text, as of old." for number in range(40)]
    page = "<a href=/>up</a><pre>" + "\n".join(lines) + "</pre>"
    assert extract(page, IngestConfig()).text.split("\n") == lines


def test_where_the_careful_extractor_finds_nothing_the_blocks_stand(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(main_text_module, "trafilatura_text", lambda html, markup: "")
    assert extract(PAGE, IngestConfig(careful_from=0)).extractor == "blocks"


def test_a_page_over_a_budget_is_refused_with_its_reason() -> None:
    with pytest.raises(PageTooLarge) as deep:
        extract("<div>" * 50_000, IngestConfig())
    with pytest.raises(PageTooLarge) as wide:
        extract("<a href=x>y</a>" * 1_000_000, IngestConfig())
    with pytest.raises(PageTooLarge) as shallow:
        extract("<div>" * 50 + "x", IngestConfig(max_depth=40))
    reasons = [error.value.reason for error in (deep, wide, shallow)]
    assert reasons == ["too_deep", "too_many_nodes", "too_deep"]
    again = pickle.loads(pickle.dumps(deep.value))  # as it comes from a worker
    assert (again.reason, again.detail) == (deep.value.reason, deep.value.detail)


@pytest.mark.timeout(120)
@pytest.mark.parametrize(
    "html",
    [
        "<p>" + "word " * 4_000_000,
        "word" * 5_000_000,
        "<div " + "x" * 100_000_000,
        "<p>x</p>" * 60_000,
        "<title>" + "t " * 500_000 + "</title>" + "<p>t t t t t t t t t" * 20_000,
        "<meta name=description content='" + "d " * 500_000 + "'>" + "<p>d d d d d d d" * 20_000,
        "<pre>" + "\t" * 1_000_000 + "x",
        "<br>" * 100_000 + "x",
        "<div class='" + "a-b_c " * 200_000 + "'>x",
        "<span style='display:none'><math>" * 900 + "x",
    ],
    ids=[
        "words",
        "one-word",
        "one-tag",
        "blocks",
        "title",
        "description",
        "tabs",
        "breaks",
        "names",
        "formulas",
    ],
)
def test_huge_pages_come_back(html: str) -> None:
    """Each takes seconds where time grows with the size, and hours where it grows faster."""
    assert isinstance(extract(html, IngestConfig()), MainText)


@pytest.mark.parametrize("extractor", ["blocks", "resiliparse", "trafilatura"])
def test_nesting_just_within_the_budget_is_borne(extractor: str) -> None:
    html = "<div>" * 990 + "<p>Some text in the depth.</p>"
    rules = IngestConfig(extractor=extractor, careful_from=0)  # type: ignore[arg-type]
    assert isinstance(extract(html, rules).text, str)


@pytest.mark.parametrize(
    "html", ["", " ", "<", "\x00", "<html>", "<p>", "x", "\ud800", "<p>\udfff x"]
)
def test_pages_of_nothing(html: str) -> None:
    found = extract(html, IngestConfig(boilerplate="keep"))
    assert found.text == "" or found.boilerplate or found.text.strip()


_TAGS = st.sampled_from(
    [
        "<p>",
        "</p>",
        "<div",
        "class=entry>",
        "</div>",
        "<ul>",
        "<li>",
        "</ul>",
        "<table>",
        "<tr>",
        "<td>",
        "</table>",
        "<a",
        "href=x>",
        "</a>",
        "<br>",
        "<h1>",
        "<pre>",
        "</pre>",
        "<span",
        "style='display:none'>",
        "</span>",
        "<math",
        "alttext=a>",
        "<script>",
        "</script>",
        "<!--",
        "-->",
        "<svg>",
        "</svg>",
        "<article>",
        "</article>",
        "<b>",
        "</i>",
        "<title>",
        "<body>",
        "<template>",
        "<select>",
    ]
)


@given(st.lists(st.one_of(_TAGS, st.text(max_size=12)), max_size=60))
@settings(max_examples=150, deadline=None)
def test_any_page_gives_a_text_and_spans_that_fit_it(pieces: list[str]) -> None:
    html = "".join(pieces)
    cut = extract(html, IngestConfig())
    kept = extract(html, IngestConfig(boilerplate="keep"))
    text = kept.text
    for span in reversed(kept.boilerplate):
        assert 0 <= span.start < span.end <= len(kept.text)
        text = text[: span.start] + text[span.end :]
    assert text == cut.text
    assert 0 <= cut.main_share <= 1
    assert 0 <= (cut.link_share or 0) <= 1
    assert extract(html, IngestConfig()) == cut
