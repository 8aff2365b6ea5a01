"""Each planted defect is what it claims to be."""

from __future__ import annotations

import ipaddress
import random
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stages.sample import defects
from stages.sample.crawl import Page, jaccard, visible_text, words
from stages.signals.personal_data import find_personal_data

SENTENCES = [
    f"Paragraph number {n} of this page tells how the {noun} is opened, read and closed again."
    for n, noun in enumerate(("file", "archive", "socket", "parser", "queue") * 8)
]
CONTENT = "<h1>streams &amp; files</h1>\n" + "\n".join(f"<p>{s}</p>" for s in SENTENCES)


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10**6), rate=st.sampled_from([0.003, 0.01, 0.05]))
def test_a_near_copy_differs_but_stays_above_the_least_similarity(seed: int, rate: float) -> None:
    copy = defects.make_near_copy(CONTENT, random.Random(seed), rate)
    assert 0.87 <= jaccard(CONTENT, copy) < 1
    tags = re.compile("<[^>]+>")
    assert set(tags.findall(copy)) <= set(tags.findall(CONTENT))


def test_jaccard_is_of_word_five_grams() -> None:
    # a b c d e f / a b c d e g: {abcde, bcdef} and {abcde, bcdeg} share one of three.
    assert jaccard("<p>a b c d e f</p>", "<b>A b</b> c d e g") == pytest.approx(1 / 3)


def test_a_shared_notice_makes_no_duplicates_of_different_pages() -> None:
    other = "".join(f"<p>{' '.join(reversed(s.split()))}</p>" for s in SENTENCES)
    assert jaccard(CONTENT + defects.NOTICE, other + defects.NOTICE) < 0.5


@pytest.mark.parametrize("manner", ["symbols", "mojibake", "digits"])
def test_garbled_pages_lack_stop_words(manner: str) -> None:
    """Gopher keeps a page with at least two of eight English stop words (Rae et al. 2021)."""
    found = words(defects.garble(CONTENT, random.Random(0), manner))
    stop = {"the", "be", "to", "of", "and", "that", "have", "with"}
    assert len(found) > 200
    assert not stop & set(found)


def test_repeated_pages_are_mostly_duplicate_lines() -> None:
    lines = re.findall(r"<p>(.*?)</p>", defects.repeat_sentences(CONTENT, random.Random(0)))
    assert len(lines) == 75
    assert len(set(lines)) == 3


def test_navigation_is_links_only() -> None:
    pages = [Page(f"https://docs.example/{n}.html", f"page {n}", "") for n in range(10)]
    content = defects.make_navigation(pages, random.Random(0))
    assert content.count("<a href=") == 10
    assert "." not in visible_text(content)


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_personal_data_is_in_the_text_and_counted_in_full(seed: int) -> None:
    content, planted = defects.add_personal_data(CONTENT, random.Random(seed))
    text = visible_text(content)
    mails = re.findall(r"[\w.]+@[\w.-]+\.[a-z]+", text)
    hosts = re.findall(r"\b\d+\.\d+\.\d+\.\d+\b", text)
    assert sorted(mails + hosts) == sorted(planted)
    assert mails
    assert all(mail.endswith(".corp") for mail in mails)
    assert all(ipaddress.ip_address(host).is_global for host in hosts)
    assert len(find_personal_data(text)) == len(planted)


def test_a_leaked_item_can_be_read_back_from_the_page() -> None:
    text = "heapq.merge(*iterables): Merge <sorted> & unique inputs"
    assert text in visible_text(defects.add_leak(CONTENT, text))


def test_broken_records_are_broken_in_eight_ways() -> None:
    body = b"<html>" + CONTENT.encode() + b"</html>"
    made = {m: defects.break_record(m, "https://docs.example/x", body) for m in defects.BREAKAGES}
    assert len(made) == 8
    assert made["http_404"].status.startswith("404")
    assert made["http_500"].status.startswith("500")
    assert made["not_html"].content_type == "image/png"
    assert made["empty_body"].body == b""
    assert made["truncated"].truncated == "length"
    assert len(made["truncated"].body) < len(body)
    with pytest.raises(UnicodeDecodeError):
        made["invalid_utf8"].body.decode()
    assert made["malformed_http"].raw is not None
    assert not made["malformed_http"].raw.startswith(b"HTTP/")
    assert 0 < made["cut_record"].cut < len(body)
    with pytest.raises(ValueError, match="'slightly'"):
        defects.break_record("slightly", "https://docs.example/x", body)
