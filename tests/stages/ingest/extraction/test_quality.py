"""The shipped weights still find the main text of real pages (a part of the shared crawl)."""

from __future__ import annotations

from pathlib import Path

from stages.ingest.config import IngestConfig
from stages.ingest.extraction import extract
from tests.benchmarks.extraction import (
    agreement,
    load_pages,
    mean_agreement,
    mean_snippets,
    shingles,
    side_of,
    snippet_hits,
)

PART = "crawl-2024-B-00003"


def test_main_text_of_a_part_of_the_crawl(shared_data: Path) -> None:
    """Measured on this part: F1 .968, found .985, avoided .926; the floors are two points below."""
    pages = load_pages(shared_data, {"full_text", "snippets"}, PART)
    found = {page.url: extract(page.html, IngestConfig()).text for page in pages}
    full = [page for page in pages if page.kind == "full_text"]
    marked = [page for page in pages if page.kind == "snippets"]
    score = mean_agreement([agreement(found[page.url], page.text or "") for page in full])
    hits = mean_snippets(snippet_hits(found[page.url], page) for page in marked)
    assert len(full) >= 15
    assert len(marked) >= 40
    assert score.f1 > 0.94, score
    assert hits.found > 0.95, hits
    assert hits.avoided > 0.90, hits


def test_agreement_counts_shingles_as_multisets() -> None:
    """Found: abcd bcde; true: abcd bcda. One of two is common both ways."""
    assert shingles(["a", "b", "c"]) == {("a", "b", "c"): 1}
    score = agreement("a b c d e", "A b, c d a!")
    assert (score.precision, score.recall, score.f1) == (0.5, 0.5, 0.5)
    assert agreement("", "") == (1.0, 1.0)
    assert agreement("a", "").precision == agreement("", "a").recall == 0.0


def test_a_site_is_on_one_side() -> None:
    assert side_of("https://www.bbc.co.uk/a") == side_of("http://news.bbc.co.uk/b?c")
    sides = [side_of(f"https://site{number}.com/") for number in range(2_000)]
    assert 0.5 < sides.count("development") / 2_000 < 0.6
