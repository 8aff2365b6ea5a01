"""Lists of addresses and words: how they are read, and what they say of an address."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zstandard

from artifacts_schema.errors import InputError
from stages.engine import Input
from stages.signals.urls import (
    UrlLists,
    count_words,
    load_lists,
    measure_url_lists,
    pack_lists,
    parse_host,
    strip_address,
)

Pack = Callable[..., tuple[UrlLists, list[str]]]


@pytest.fixture
def pack(snapshot: Any, read_input: Any, tmp_path: Path) -> Pack:
    """`pack({"adult/domains": b"…"}, …)` → the lists of these snapshots, and what was left out."""

    def packed(*snapshots: dict[str, bytes]) -> tuple[UrlLists, list[str]]:
        given: list[Input] = []
        for number, files in enumerate(snapshots):
            ((manifest, output),) = snapshot(files, name=f"lists-{number}")
            given.append(read_input(manifest, output))
        folder = tmp_path / f"packed-{len(list(tmp_path.iterdir()))}"
        left_out = pack_lists(given, folder)
        return load_lists(folder), left_out

    return packed


def found(lists: UrlLists, *urls: str | None) -> list[str | None]:
    return measure_url_lists(urls, [parse_host(url) for url in urls], lists)["url_blocked"]


def test_a_domain_counts_with_all_below_it_and_never_as_part_of_a_name(pack: Pack) -> None:
    """DCLM's vector: google.com must not match "le.com"; datatrove's: domain, sub-domain, http."""
    lists, _ = pack({"adult/domains": b"le.com\nbad.example.org\n# c\n\nWWW.Shop.example\n"})
    assert found(
        lists,
        "https://google.com/",
        "https://le.com/x",
        "http://www.le.com",
        "https://a.b.le.com/",
        "https://example.org/bad.example.org",
        "https://bad.example.org:8080/",
        "https://bae.example.org/",
        "https://shop.example/",
        "https://user@le.com/",
        "le.com/file.py",
        None,
    ) == [None, "adult", "adult", "adult", None, "adult", None, "adult", "adult", None, None]


def test_an_address_counts_with_the_folders_below_it(pack: Pack) -> None:
    lists, _ = pack(
        {
            "phishing/urls": b"host.example/~user\nwww.q.example/show.php?id=5\nhttp://z.example/a/b/\n"
        }
    )
    assert found(
        lists,
        "https://host.example/~user/x/y.html?q=1",
        "https://host.example/~user",
        "https://host.example/~username",
        "https://host.example/",
        "https://www.q.example/show.php?id=5",
        "https://q.example/show.php?id=55",
        "https://z.example/a/b",
        "https://z.example/a",
        "https://sub.z.example/a/b",
    ) == ["phishing", "phishing", None, None, "phishing", None, "phishing", None, None]


def test_categories_are_folders_in_the_order_of_the_lists(pack: Pack) -> None:
    lists, left_out = pack(
        {
            "ut1/gambling/domains": b"both.example\ncasino.example\n",
            "ut1/adult/domains.gz": gzip.compress(b"both.example\n"),
            "ut1/adult/expressions": b"(sex|porn)\n",
        },
        {"domains-mine.txt.zst": zstandard.compress(b"mine.example\nnot a domain\n" + b"x" * 5000)},
    )
    assert lists.names == ("adult", "gambling", "domains-mine")
    urls = ["https://both.example", "https://casino.example", "https://mine.example"]
    columns = measure_url_lists(urls, [parse_host(url) for url in urls], lists)
    assert columns["url_blocked"] == ["adult", "gambling", "domains-mine"]
    assert columns["url_block_lists"] == [2, 1, 1]
    assert len(left_out) == 2
    assert left_out[0].startswith("ut1/adult/expressions: not a list")
    assert left_out[1].startswith("2 lines")


def test_words_are_compared_as_refinedweb_says(pack: Pack) -> None:
    """Strict anywhere without - and .; hard and soft alone; DCLM's ignored characters."""
    lists, _ = pack(
        {
            "strict_words.txt": b"xvideos\ngroup-sex\n",
            "hard_words": b"porn\n# nothing\nXXX\n",
            "soft_words": b"sex\nwebcam\nescort\n",
        }
    )
    words = lists.words
    assert count_words("https://my-x-vi.deos.com/", words) == (1, 0, 0)
    assert count_words("https://a.com/GroupSex", words) == (1, 0, 0)
    assert count_words("https://a.com/porn/xxx", words) == (0, 2, 0)
    assert count_words("https://a.com/pornography", words) == (0, 0, 0)
    assert count_words("https://essex.ac.uk/sex-education", words) == (0, 0, 1)
    assert count_words("https://a.com/sex_webcam/sex", words) == (0, 0, 2)
    assert count_words("https://a.com/p%6Frn", words) == (0, 1, 0)
    urls = ["https://a.com/sex", "https://a.com/sex/escort", "https://porn.com/", "src/sex/porn.py"]
    columns = measure_url_lists(urls, [parse_host(url) for url in urls], lists)
    assert columns["url_score"] == [1, 2, 2, None]
    assert columns["url_soft_words"] == [1, 2, 0, None]
    assert columns["url_block_lists"] == [0, 0, 0, None]


def test_the_bare_address() -> None:
    assert strip_address("https://u:p@WWW.Example.com:8080/A/b/?q=1#f") == "example.com/A/b/?q=1"
    assert strip_address("example.com/") == "example.com"
    assert strip_address("http://example.com?q=1") == "example.com?q=1"


def test_a_snapshot_without_lists_and_a_broken_one_are_refused(pack: Pack) -> None:
    with pytest.raises(InputError, match=r"^signals\.url_lists"):
        pack({"readme.md": b"x"})
    with pytest.raises(InputError, match=r"^signals\.url_lists: .*domains\.gz"):
        pack({"adult/domains.gz": gzip.compress(b"a.example\n" * 999)[:-20]})


def test_an_entry_takes_ten_bytes(pack: Pack) -> None:
    names = "\n".join(f"site-{n}.example" for n in range(20_000))
    lists, _ = pack({"adult/domains": f"{names}\n{names}".encode()})
    assert len(lists.hashes) == 20_000
    assert lists.hashes.nbytes + lists.categories.nbytes == 200_000
    assert isinstance(lists.hashes, np.memmap)


def test_real_lists_name_what_they_hold_and_nothing_else(pack: Pack, shared_data: Path) -> None:
    """Every domain of a sample of UT1 in its category; none of the crawl's shifted by a letter."""
    with zstandard.open(shared_data / "blocklists" / "ut1-sample.jsonl.zst", "rt") as lines:
        rows = [json.loads(line) for line in lines]
    by_category: dict[str, list[str]] = {}
    for row in rows:
        by_category.setdefault(row["category"], []).append(row["domain"])
    files = {
        f"{name}/domains": "\n".join(domains).encode() for name, domains in by_category.items()
    }
    lists, _ = pack(files)
    domains = [row["domain"] for row in rows if parse_host(f"http://{row['domain']}")]
    assert len(domains) > 24_000
    urls = [f"https://m.{domain}/page" for domain in domains]
    columns = measure_url_lists(urls, [parse_host(url) for url in urls], lists)
    assert all(count >= 1 for count in columns["url_block_lists"])
    with zstandard.open(shared_data / "warc" / "pages.jsonl.zst", "rt") as lines:
        pages = [json.loads(line)["url"] for line in lines]
    named = {name for domains in by_category.values() for name in domains}
    for url, blocked in zip(pages, found(lists, *pages), strict=True):
        labels = (parse_host(url) or "").split(".")
        below = {".".join(labels[n:]) for n in range(len(labels))}
        bare = {name.removeprefix("www.") for name in named & (below | {f"www.{b}" for b in below})}
        assert (blocked is not None) == bool(bare), url
