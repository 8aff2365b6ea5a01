"""Which pages carry what, and where records end up."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from artifacts_schema.errors import UsageError
from stages.sample.crawl import render_page, site_pages, visible_text
from stages.sample.defects import lay_out, leakable_items, plant
from stages.sample.modules import DocPage

WORDS = ("parser", "buffer", "socket", "reader", "writer", "module", "object", "method", "string")
COUNTS = {
    "near_duplicate": 3,
    "exact_duplicate": 2,
    "boilerplate": 2,
    "garbled": 3,
    "repetition": 2,
    "personal_data": 3,
    "benchmark_leak": 2,
    "broken_record": 9,
}
ITEMS: list[dict[str, Any]] = [
    {
        "benchmark": "b",
        "item_id": f"b-{n}",
        "form": "multiple_choice",
        "prompt": f"name_{n}(x):",
        "choices": [" short", " " + " ".join(f"answer{n}x{k}" for k in range(20))],
        "answer": 1,
    }
    for n in range(5)
]


def content(n: int) -> str:
    paragraphs = [
        f"The {WORDS[(n + k) % 9]} number {n * 100 + k} opens a {WORDS[(n * k) % 9]} of size {k}."
        for k in range(40)
    ]
    return f"<h1>Page {n}</h1>" + "".join(f"<p>{p}</p>" for p in paragraphs)


PAGES = site_pages([DocPage(f"library/m{n}", f"m{n}", content(n)) for n in range(60)], "3.11")


def test_planted_records_come_beside_the_pages_and_are_told() -> None:
    records = plant(PAGES, ITEMS, COUNTS, 4, "3.11.7", 0)
    told = Counter(r.defect.kind for r in records if r.defect)
    assert told == COUNTS
    # Leaks and personal data stand on pages of the site, all other defects are records more.
    added = sum(COUNTS.values()) - COUNTS["personal_data"] - COUNTS["benchmark_leak"]
    assert len(records) == len(PAGES) + added
    assert len({r.exchange.url for r in records}) == len(records)


def test_a_page_without_a_defect_is_as_it_was_but_for_the_decoys() -> None:
    before = {page.url: render_page(page, "3.11.7") for page in PAGES}
    records = plant(PAGES, ITEMS, COUNTS, 4, "3.11.7", 0)
    changed = [r for r in records if r.defect is None and r.exchange.body != before[r.exchange.url]]
    assert len(changed) == 4
    assert all(b"<h2>Notice</h2>" in r.exchange.body for r in changed)


def test_only_one_record_is_cut_and_it_ends_the_crawl() -> None:
    records = plant(PAGES, ITEMS, COUNTS, 0, "3.11.7", 0)
    _, located = lay_out(records, 4, 0)
    cut = [place for place in located if place.record.exchange.cut]
    assert cut == [located[-1]]


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_copies_come_after_their_originals(seed: int) -> None:
    records = plant(PAGES, ITEMS, COUNTS, 0, "3.11.7", seed)
    _, located = lay_out(records, 4, seed)
    order = {place.record.exchange.url: n for n, place in enumerate(located)}
    copies = [r for r in records if r.follows]
    assert len(copies) == COUNTS["near_duplicate"] + COUNTS["exact_duplicate"]
    for copy in copies:
        assert order[copy.follows or ""] < order[copy.exchange.url]


def test_an_offset_is_where_the_record_of_that_address_begins() -> None:
    files, located = lay_out(plant(PAGES, ITEMS, COUNTS, 0, "3.11.7", 0), 3, 0)
    assert sorted(files) == ["crawl-00000.warc", "crawl-00001.warc", "crawl-00002.warc"]
    for place in located:
        head = files[place.file][place.offset :].split(b"\r\n\r\n")[0].decode()
        assert head.startswith("WARC/1.1\r\n")
        assert f"WARC-Target-URI: {place.record.exchange.url}\r\n" in head


def test_another_seed_plants_elsewhere() -> None:
    def carriers(seed: int) -> set[str]:
        records = plant(PAGES, ITEMS, COUNTS, 0, "3.11.7", seed)
        return {r.exchange.url for r in records if r.defect}

    assert carriers(0) == carriers(0)
    assert carriers(0) != carriers(1)


def test_a_leaked_page_holds_the_item_it_names() -> None:
    records = plant(PAGES, ITEMS, COUNTS, 0, "3.11.7", 0)
    texts = {item["item_id"]: text for item, text in leakable_items(ITEMS)}
    for record in records:
        if record.defect and record.defect.kind == "benchmark_leak":
            page = visible_text(record.exchange.body.decode())
            assert texts[record.defect.partner_item or ""] in page


def test_more_defects_than_pages_is_refused_with_the_field_to_change() -> None:
    with pytest.raises(UsageError, match=r"sample\.planted\.near_duplicate: 100 .*\d"):
        plant(PAGES, ITEMS, {**COUNTS, "near_duplicate": 100}, 0, "3.11.7", 0)
