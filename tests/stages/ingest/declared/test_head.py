"""What a page declares: which source wins, what is refused, what cannot break it."""

from __future__ import annotations

import json
from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st
from selectolax.lexbor import LexborHTMLParser

from stages.ingest.head import Head, language_tag, read_head, web_address
from stages.ingest.linked_data import LONGEST_BLOCK, iso_date, read_linked_data


def head(html: str, **headers: str) -> Head:
    names = {name.replace("_", "-"): value for name, value in headers.items()}
    return read_head(LexborHTMLParser(html), names)


def json_ld(value: object) -> str:
    return f'<script type="application/ld+json">{json.dumps(value)}</script>'


ARTICLE = {
    "@context": "https://schema.org",
    "@type": "NewsArticle",
    "headline": "From JSON-LD",
    "author": [{"@type": "Person", "name": "Ada Lovelace"}, {"name": "Charles Babbage"}],
    "datePublished": "2021-02-03T04:05:06+09:00",
    "license": "https://creativecommons.org/licenses/by/4.0/",
}


DATED = "<meta name=date content=2019-01-02>"
CC = "//creativecommons.org/"


def test_a_page_that_declares_everything() -> None:
    found = head(
        """<html lang="en_gb"><head><title> A  title &amp; more </title>
        <meta property="og:title" content="Another"><meta name="author" content="By Jane Doe">
        <meta property="article:published_time" content="2020-05-06T23:30:00-08:00">
        <link rel="canonical" href="https://example.org/a">
        <meta name="robots" content="noindex, NOFOLLOW"><meta name="tdm-reservation" content="1">
        <meta name="tdm-policy" content="https://example.org/policy.json"></head>
        <body><a rel="license" href="https://creativecommons.org/licenses/by-sa/4.0/">CC</a>"""
    )
    assert found == Head(
        title="A title & more",
        author="Jane Doe",
        published="2020-05-06",
        language="en-GB",
        canonical_url="https://example.org/a",
        robots="nofollow noindex",
        ai_opt_out="tdm-reservation",
        tdm_policy="https://example.org/policy.json",
        licence="CC-BY-SA-4.0",
        licence_url="https://creativecommons.org/licenses/by-sa/4.0/",
    )


def test_a_page_that_declares_nothing() -> None:
    assert head("<p>Text</p>") == Head()
    assert head("") == Head()


@pytest.mark.parametrize(
    ("html", "title"),
    [
        ("<title>T</title><meta property='og:title' content=O><h1>H</h1>", "T"),
        ("<title> </title><meta property='og:title' content=O><h1>H</h1>", "O"),
        (json_ld(ARTICLE) + "<h1>H</h1>", "From JSON-LD"),
        ("<h1>H <b>one</b></h1><h1>H2</h1>", "H one"),
        ("<svg><title>Icon</title></svg><h1>H</h1>", "H"),
        ("<title>a\x00b\u2028c</title>", "a\ufffdb c"),
    ],
)
def test_the_order_of_titles(html: str, title: str) -> None:
    assert head(html).title == title


@pytest.mark.parametrize(
    ("html", "author"),
    [
        ("<meta name=author content='M'>" + json_ld(ARTICLE), None),
        ("<meta name=author content='Mo'>" + json_ld(ARTICLE), "Mo"),
        ("<meta property='article:author' content='http://x.org/mo'>" + json_ld(ARTICLE), None),
        (json_ld(ARTICLE) + "<a rel=author>Link</a>", None),
        ("<a rel='nofollow author' href=/u>Jane Doe</a>", "Jane Doe"),
        ("<span itemprop=author>by Jane Doe</span>", "Jane Doe"),
        ("<meta name=author content=A.B.><meta name=author content=C.D.>", "A.B.; C.D."),
        ("<meta name=author content=admin>", None),
        ("<meta name=author content='mail@example.org'>", None),
        (f"<meta name=author content='{'x' * 500}'>", None),
    ],
)
def test_the_order_of_authors(html: str, author: str | None) -> None:
    expected = author or ("Ada Lovelace; Charles Babbage" if "NewsArticle" in html else None)
    assert head(html).author == expected


@pytest.mark.parametrize(
    ("html", "published"),
    [
        (DATED + "<meta property='article:published_time' content=2020-01-02>", "2020-01-02"),
        (DATED + json_ld(ARTICLE), "2019-01-02"),
        (json_ld(ARTICLE), "2021-02-03"),
        ("<time datetime=2022-03-04>", None),
        ("<time datetime=2022-03-04 pubdate>", "2022-03-04"),
        ("<time class='entry-date published' datetime=2022-03-04T00:00>", "2022-03-04"),
        ("<span itemprop=datePublished content=2022-03-05>x</span>", "2022-03-05"),
        ("<meta name=date content='13/45/2020'><meta name=pubdate content=20200102>", "2020-01-02"),
    ],
)
def test_the_order_of_dates(html: str, published: str | None) -> None:
    assert head(html).published == published


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("2011-09-05T10:00:00Z", "2011-09-05"),
        ("2011-9-5", "2011-09-05"),
        ("20110905", "2011-09-05"),
        ("20110905T100000Z", "2011-09-05"),
        ("2011/09/05 10:00", "2011-09-05"),
        ("Mon, 05 Sep 2011 10:00:00 GMT", "2011-09-05"),
        ("September 5th, 2011", "2011-09-05"),
        ("Sept. 5, 2011", "2011-09-05"),
        ("Mon Sep 5 10:00:00 UTC 2011", "2011-09-05"),
        ("05.09.2011", "2011-09-05"),
        ("25/09/2011", "2011-09-25"),
        ("09/25/2011", "2011-09-25"),
        ("05/09/2011", None),  # Two readings.
        ("09/09/2011", "2011-09-09"),
        ("2011-02-30", None),
        ("0001-01-01", None),
        ("1970-01-01T00:00:00Z", None),
        ("2011", None),
        ("201109051", None),
        ("Moon 5 2011", None),
        ("５/９/2011", None),
        (None, None),
    ],
)
def test_dates_in_the_ways_that_pages_write_them(value: str | None, expected: str | None) -> None:
    assert iso_date(value) == expected


@given(st.dates(date(1901, 1, 2), date(2100, 12, 31)))
def test_every_iso_date_is_read_back(day: date) -> None:
    if day.isoformat() not in ("1970-01-01", "1969-12-31", "2000-01-01"):
        assert iso_date(day.isoformat()) == day.isoformat()
        assert iso_date(day.strftime("%d %B %Y")) == day.isoformat()


@given(st.text(max_size=80))
def test_a_date_is_a_date_or_nothing(value: str) -> None:
    found = iso_date(value)
    assert found is None or date.fromisoformat(found).isoformat() == found


@pytest.mark.parametrize(
    ("html", "headers", "language"),
    [
        ("<html lang=de>", {"content_language": "en"}, "de"),
        ("<html xml:lang=pt-br>", {}, "pt-BR"),
        ("<html lang=''><meta http-equiv=Content-Language content=fr>", {}, "fr"),
        ("<p>", {"content_language": "sr-latn-rs"}, "sr-Latn-RS"),
        ("<p>", {"content_language": "de, en"}, None),
        ("<html lang='{{lang}}'><meta property='og:locale' content=en_US>", {}, "en-US"),
    ],
)
def test_the_order_of_languages(html: str, headers: dict[str, str], language: str | None) -> None:
    assert head(html, **headers).language == language


@pytest.mark.parametrize(
    ("value", "tag"),
    [
        ("zh-hant-tw", "zh-Hant-TW"),
        ("es-419", "es-419"),
        ("de-CH-1996", "de-CH-1996"),
        ("en-x-klingon", "en-x-klingon"),
        ("und", None),
        ("english", None),
        ("en-", None),
        ("e", None),
    ],
)
def test_language_tags_in_the_shape_and_case_of_bcp_47(value: str, tag: str | None) -> None:
    assert language_tag(value) == tag


@pytest.mark.parametrize(
    "href",
    [
        "javascript:alert(1)",
        "file:///etc/passwd",
        "data:text/html,x",
        "/relative",
        "//host/x",
        "https://user:secret@example.org/",
        "https://",
        "https://exa mple.org/",
        "http://x/" + "y" * 5000,
        "https://x/\n<script>",
        "https://x/\x01",
        "https://x\x7f/",
    ],
)
def test_addresses_that_are_no_web_addresses_are_refused(href: str) -> None:
    assert web_address(href) is None
    assert head(f"<link rel=canonical href='{href}'>").canonical_url is None
    assert head(f"<meta name=tdm-policy content='{href}'>").tdm_policy is None


def test_the_first_web_address_is_taken() -> None:
    page = "<link rel=canonical href=/a><meta property='og:url' content='https://example.org/b'>"
    assert head(page).canonical_url == "https://example.org/b"


@pytest.mark.parametrize(
    ("html", "licence"),
    [
        (json_ld(ARTICLE), "CC-BY-4.0"),
        (json_ld(ARTICLE) + f"<a rel=license href='{CC}licenses/by/3.0/'>", "CC-BY-3.0"),
        (json_ld(ARTICLE) + f"<a href='{CC}licenses/by/3.0/'>", "CC-BY-4.0"),
        (f"<meta name='DC.rights' content='{CC}publicdomain/zero/1.0/'>", "CC0-1.0"),
        (f"<a href='{CC}licenses/by-nc-nd/4.0/deed.de'>", "CC-BY-NC-ND-4.0"),
        ("<a rel='license' href='/terms'>", None),
        (json_ld({"@type": "ImageObject", "license": ARTICLE["license"]}), None),
    ],
)
def test_the_order_of_licences(html: str, licence: str | None) -> None:
    assert head(html).licence == licence


def test_a_licence_without_an_identifier_keeps_its_address() -> None:
    found = head("<link rel=license href='https://example.org/terms'>")
    assert (found.licence, found.licence_url) == (None, "https://example.org/terms")


def test_marks_of_header_and_page_are_joined() -> None:
    found = head(
        "<meta name=robots content='noai'><meta name=GPTBot content=noindex>",
        x_robots_tag="CCBot: none, *: noarchive",
        tdm_reservation="1",
        tdm_policy="https://example.org/p",
    )
    assert found.ai_opt_out == "ccbot gptbot noai tdm-reservation"
    assert found.robots == "noai noarchive"
    assert found.tdm_policy == "https://example.org/p"


def test_authors_are_found_by_reference_in_the_graph() -> None:
    graph = {
        "@graph": [
            {"@type": "WebSite", "name": "Site", "author": "Nobody"},
            {"@type": ["Article", "Thing"], "author": {"@id": "#p"}, "datePublished": "2020-01-02"},
            {"@type": "Person", "@id": "#p", "name": "Grace &amp; Hopper"},
        ]
    }
    found = head(json_ld(graph))
    assert (found.author, found.published) == ("Grace & Hopper", "2020-01-02")


def test_what_is_said_of_a_product_or_review_is_not_said_of_the_page() -> None:
    product = {"@type": "Product", "review": {"@type": "Review", "author": {"name": "Buyer"}}}
    assert head(json_ld(product)).author is None


@pytest.mark.parametrize(
    "block",
    [
        "[" * 100_000,
        '{"@graph":' * 20_000,
        "9" * 100_000,
        '{"@type":"Article","author":' + "9" * 10_000 + "}",
        '{"@type":"Article","headline":"\\ud800\\u0000","author":["\\udfff",3,null,[],{}]}',
        '{"@type":[1,{}],"author":{"name":{"name":"x"}}}',
        "null",
        "",
        "{",
        " " * (LONGEST_BLOCK + 1),
    ],
)
def test_hostile_json_ld_says_nothing(block: str) -> None:
    said = read_linked_data([block])
    assert said.authors in ([], ["\udfff"])
    page = head(f"<script type=application/ld+json>{block}</script>")
    for value in (page.title, page.author):
        (value or "").encode()  # No lone surrogates.
        assert "\x00" not in (value or "")


def test_only_so_many_blocks_are_parsed() -> None:
    empty = ["{}"] * 8
    assert read_linked_data([*empty[:7], json.dumps(ARTICLE)]).headline == "From JSON-LD"
    assert read_linked_data([*empty, json.dumps(ARTICLE)]).headline == ""


NAMES = st.sampled_from(["author", "robots", "date", "og:title", "tdm-policy", "dc.rights"])


@given(st.lists(st.tuples(NAMES, st.text(max_size=40)), max_size=6), st.text(max_size=40))
def test_any_values_give_storable_lines(metas: list[tuple[str, str]], other: str) -> None:
    tags = "".join(
        f'<meta name="{name}" content="{value.replace(chr(34), "&quot;")}">'
        for name, value in metas
    )
    html = f"<title>{other}</title>{tags}<a rel=license href='{other}'>".encode("utf-8", "replace")
    found = read_head(LexborHTMLParser(html), {"x-robots-tag": other, "content-language": other})
    for name in found.__dataclass_fields__:
        value = getattr(found, name)
        if value is not None:
            value.encode()
            assert value == value.strip() != ""
            assert not set(value) & set("\n\r\x00\t")
