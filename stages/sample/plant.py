"""Decides which pages carry which planted defect, and lays all records out in files.

A planted copy always comes after its original, so that whoever keeps the first of two alike pages
keeps the original.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from artifacts_schema.errors import UsageError
from stages.sample import defects
from stages.sample.site import HOST, MIRROR, Page, framed, jaccard, visible_text, words
from stages.sample.warc import Exchange, warc_file

RATES = (0.003, 0.006, 0.012)
"""Shares of words changed in near-duplicates, in turn."""
MANNERS = ("symbols", "mojibake", "digits")
LEAST_WORDS, MOST_WORDS = 200, 2500
"""Of a page that carries a defect: long enough to pass a quality filter but for the defect."""
LEAKED_WORDS = 60


@dataclass(frozen=True)
class Defect:
    """One row of the truth; `partner` is the address of the original, or an item's id."""

    kind: str
    count: int = 1
    partner_url: str | None = None
    partner_item: str | None = None
    detail: str = ""


@dataclass(frozen=True)
class Record:
    """A record of the crawl, what is wrong with it, and the address it must follow."""

    exchange: Exchange
    defect: Defect | None = None
    follows: str | None = None


@dataclass(frozen=True)
class Located:
    """Where a record ended up."""

    record: Record
    file: str
    offset: int


class Hosts:
    """Hands out pages that carry nothing yet, in a seeded order, each once."""

    def __init__(self, pages: Sequence[Page], seed: int) -> None:
        self._free = [p for p in pages if LEAST_WORDS <= len(words(p.content)) <= MOST_WORDS]
        random.Random(f"{seed}/hosts").shuffle(self._free)

    def take(
        self, kind: str, count: int, fits: Callable[[Page], bool] = lambda page: True
    ) -> Iterator[tuple[Page, random.Random]]:
        """`count` pages that fit; UsageError if there are not so many left."""
        chosen = [page for page in self._free if fits(page)][:count]
        if len(chosen) < count:
            raise UsageError(
                f"{count} pages are to carry it, but only {len(chosen)} can",
                where=f"sample.planted.{kind}",
                hint="plant fewer, or raise sample.share",
            )
        self._free = [page for page in self._free if page not in chosen]
        for page in chosen:
            yield page, random.Random(f"{kind}/{page.url}")


def plant(
    pages: Sequence[Page],
    items: Sequence[dict[str, Any]],
    counts: dict[str, int],
    decoys: int,
    version: str,
    seed: int,
) -> list[Record]:
    """All records of the crawl: the pages, some of them changed, and planted ones.

    `items` are the benchmark items to leak from; `counts` says how many pages carry each defect.
    """
    hosts = Hosts(pages, seed)
    records = {page.url: Record(_exchange(page, version)) for page in pages}

    def put(page: Page, defect: Defect, follows: str | None = None) -> None:
        records[page.url] = Record(_exchange(page, version), defect, follows)

    for page, defect in _changed_pages(hosts, items, counts, seed):
        put(page, defect)
    for page, _ in hosts.take("decoys", decoys):
        content = page.content + defects.NOTICE
        records[page.url] = Record(_exchange(page.with_content(content), version))
    for page, defect in _copies(hosts, counts):
        put(page, defect, follows=defect.partner_url)
    for page, defect in _junk(hosts, pages, counts, seed):
        put(page, defect)
    spoilt = hosts.take("broken_record", counts["broken_record"])
    for n, (page, _) in enumerate(spoilt):
        manner = _manner(n)
        url = _moved(page, f"broken/{n}").url
        exchange = defects.broken(manner, url, framed(page, version))
        records[url] = Record(exchange, Defect("broken_record", detail=manner))
    return list(records.values())


def _manner(n: int) -> str:
    """The n-th manner of breaking; only one record may be cut, since it ends its file."""
    repeatable = defects.BROKEN[:-1]
    return defects.BROKEN[n] if n < len(defects.BROKEN) else repeatable[n % len(repeatable)]


def _changed_pages(
    hosts: Hosts, items: Sequence[dict[str, Any]], counts: dict[str, int], seed: int
) -> Iterator[tuple[Page, Defect]]:
    """Pages that stay documents but hold what they should not."""

    def has_no_address(page: Page) -> bool:
        text = visible_text(page.content)
        return "@" not in text and not any(word.count(".") >= 3 for word in text.split())

    for page, rng in hosts.take("personal_data", counts["personal_data"], has_no_address):
        content, found = defects.personal(page.content, rng)
        yield (
            page.with_content(content),
            Defect("personal_data", count=len(found), detail=", ".join(found)),
        )
    leaks = list(leakable(items))
    chosen = random.Random(f"{seed}/leaks").sample(leaks, min(len(leaks), counts["benchmark_leak"]))
    for (page, _), (item, text) in zip(
        hosts.take("benchmark_leak", len(chosen)), chosen, strict=True
    ):
        detail = f"{len(text.split())} words of a {item['benchmark']} item"
        yield (
            page.with_content(defects.leaking(page.content, text)),
            Defect("benchmark_leak", partner_item=item["item_id"], detail=detail),
        )


def leakable(items: Sequence[dict[str, Any]]) -> Iterator[tuple[dict[str, Any], str]]:
    """Items long enough that a 13-gram of them can be found again, and the text to paste."""
    for item in items:
        if item["form"] == "text":
            yield item, " ".join(item["prompt"].split()[:LEAKED_WORDS])
        elif len(item["choices"][item["answer"]].split()) >= 15:
            yield item, item["prompt"] + item["choices"][item["answer"]]


def _copies(hosts: Hosts, counts: dict[str, int]) -> Iterator[tuple[Page, Defect]]:
    """Copies of pages on a mirror: the same words, or nearly."""
    for page, _ in hosts.take("exact_duplicate", counts["exact_duplicate"]):
        copy = replace(page, url=page.url.replace(HOST, MIRROR))
        yield copy, Defect("exact_duplicate", partner_url=page.url, detail="same content")
    taken = hosts.take("near_duplicate", counts["near_duplicate"])
    for n, (page, rng) in enumerate(taken):
        content = defects.near_copy(page.content, rng, RATES[n % len(RATES)])
        copy = replace(page, url=page.url.replace(HOST, MIRROR), content=content)
        detail = f"word-5-gram Jaccard {jaccard(page.content, content):.3f}"
        yield copy, Defect("near_duplicate", partner_url=page.url, detail=detail)


def _junk(
    hosts: Hosts, pages: Sequence[Page], counts: dict[str, int], seed: int
) -> Iterator[tuple[Page, Defect]]:
    """Pages that no reader wants: unreadable, repeating, or links only."""
    for n, (page, rng) in enumerate(hosts.take("garbled", counts["garbled"])):
        manner = MANNERS[n % len(MANNERS)]
        content = defects.garbled(page.content, rng, manner)
        yield _moved(page, "raw").with_content(content), Defect("garbled", detail=manner)
    for page, rng in hosts.take("repetition", counts["repetition"]):
        content = defects.repeated(page.content, rng)
        detail = "three sentences, 25 times"
        yield _moved(page, "print").with_content(content), Defect("repetition", detail=detail)
    for n in range(counts["boilerplate"]):
        rng = random.Random(f"{seed}/boilerplate/{n}")
        page = replace(_moved(pages[n], f"sitemap/{n}"), title=f"Site map, part {n + 1}", menu=())
        content = defects.navigation(pages, rng)
        yield page.with_content(content), Defect("boilerplate", detail="links only")


def _moved(page: Page, folder: str) -> Page:
    return replace(page, url=page.url.replace(f"{HOST}/", f"{HOST}/{folder}/"))


def _exchange(page: Page, version: str) -> Exchange:
    return Exchange(page.url, framed(page, version))


def layout(
    records: Sequence[Record], files: int, seed: int
) -> tuple[dict[str, bytes], list[Located]]:
    """Records in a seeded order over `files` WARC files, with the place of each."""
    order = sorted(records, key=lambda record: (_place(record, seed), record.exchange.url))
    size = -(-len(order) // files)
    made, located = {}, []
    for n in range(files):
        part = order[n * size : (n + 1) * size]
        name = f"crawl-{n:05d}.warc"
        made[name], offsets = warc_file(name, [record.exchange for record in part])
        located += [Located(r, name, offset) for r, offset in zip(part, offsets, strict=True)]
    return made, located


def _place(record: Record, seed: int) -> float:
    """In [0, 1); of a copy between its original and the end; a cut record comes last."""
    if record.exchange.cut:
        return 2.0
    own = _fraction(record.exchange.url, seed)
    if record.follows is None:
        return own
    first = _fraction(record.follows, seed)
    return first + (1 - first) * own


def _fraction(url: str, seed: int) -> float:
    digest = hashlib.blake2b(f"{seed}/{url}".encode(), digest_size=6).digest()
    return int.from_bytes(digest, "big") / 2**48
