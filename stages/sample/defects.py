"""Planted defects: which pages carry which, how each is made of clean content, and the files.

A planted copy always comes after its original, so that whoever keeps the first of two alike pages
keeps the original.
"""

from __future__ import annotations

import hashlib
import html
import random
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from artifacts_schema.errors import UsageError
from stages.sample.crawl import (
    HOST,
    MIRROR,
    TAG,
    Exchange,
    Page,
    jaccard,
    render_page,
    visible_text,
    warc_file,
    words,
)

LEAST_JACCARD = 0.87
"""Of a near-duplicate with its original, over the content's word 5-grams."""
PARAGRAPH = re.compile(r"<p>(?:(?!</?p>).)*</p>\n?", re.DOTALL)

PEOPLE = (
    "Ada Brandt", "Milo Okafor", "Ines Tarkov", "Jonas Lindqvist", "Priya Raman", "Tomas Herrera",
    "Yuki Watanabe", "Noor Haddad",
)  # fmt: skip
MAIL_DOMAINS = ("mail-provider.corp", "post-office.corp", "campus-mail.corp")
"""Nobody can own a name below `corp` (ICANN, resolution 2018.02.04.12). Names below `example` will
not do: every letter to these is lost too, so `signals` does not take them for personal data."""

PUBLIC_ADDRESSES = (
    *("198.41.0.4", "192.33.4.12", "192.5.5.241", "192.36.148.17", "193.0.14.129", "199.7.83.42"),
)
"""Root name servers (IANA's root hints): global addresses that name no person."""

NOTICE = """<h2>Notice</h2>
<p>The names described on this page belong to the stable part of the library. They keep their
meaning within a major version, and a change that would break a program is announced two releases
before it is made. Where a note says that something is deprecated, the replacement is named in the
same place, and a warning is given when the old name is used. Examples are checked with every
release on all platforms that are built and tested; should one of them fail for you, then please
say which release you use and how it was installed, since distributors sometimes carry changes of
their own.</p>
"""
"""A paragraph that unrelated pages share: alike in part, yet no duplicates."""


def make_near_copy(content: str, rng: random.Random, rate: float) -> str:
    """A copy with a banner, a dropped paragraph and a share `rate` of its words changed.

    The edits shrink until the word-5-gram Jaccard similarity is at least `LEAST_JACCARD`.
    """
    banner = "<p>Archived copy of this page, kept for readers of older links.</p>\n"
    shorter = _drop_paragraph(content, rng)
    for attempt in range(8):
        body = shorter if attempt < 2 else content
        copy = banner + _replace_words(body, rng, rate / 2**attempt)
        if jaccard(content, copy) >= LEAST_JACCARD:
            return copy
    raise ValueError("content is too short to be edited and stay a near-duplicate")


def _drop_paragraph(content: str, rng: random.Random) -> str:
    """Without one paragraph of at most one word in fifty."""
    most = len(words(content)) / 50
    short = [m for m in PARAGRAPH.finditer(content) if 3 <= len(words(m.group())) <= most]
    if not short:
        return content
    chosen = rng.choice(short)
    return content[: chosen.start()] + content[chosen.end() :]


def _replace_words(content: str, rng: random.Random, rate: float) -> str:
    """Put other words of the same page in the place of a share of the longer words."""
    pieces = TAG.split(content)
    spots = [
        (i, match)
        for i in range(0, len(pieces), 2)
        for match in re.finditer(r"(?<![\w&#])[a-z]{4,}(?![\w;])", pieces[i])
    ]
    count = min(len(spots), max(1, round(rate * len(words(content)))))
    for i, match in sorted(rng.sample(spots, count), key=lambda s: (s[0], s[1].start()))[::-1]:
        other = rng.choice(spots)[1].group()
        pieces[i] = pieces[i][: match.start()] + other + pieces[i][match.end() :]
    return "".join(pieces)


def garble(content: str, rng: random.Random, manner: str) -> str:
    """Content whose words are unreadable: `symbols`, `mojibake` or `digits`."""
    words_in_text = [word for word in visible_text(content).split() if word.isalpha()][:400]
    spoilt = [_spoil(word, rng, manner) for word in words_in_text]
    rows = [spoilt[i : i + 50] for i in range(0, len(spoilt), 50)]
    return "\n".join(f"<p>{html.escape(' '.join(row))}</p>" for row in rows)


def _spoil(word: str, rng: random.Random, manner: str) -> str:
    if manner == "symbols":
        return "".join(rng.choice("¤§¶†‡•¬±÷¿¡#%*~^|{}[]$") for _ in word)
    if manner == "mojibake":
        return re.sub("[aeiouy]", lambda _: rng.choice(("Ã©", "â€™", "Ã¼", "Â¤")), word.lower())
    return "".join(rng.choice("0123456789abcdef") for _ in range(24))


def repeat_sentences(content: str, rng: random.Random, times: int = 25) -> str:
    """A few of the content's sentences, over and over."""
    sentences = re.split(r"(?<=\.)\s+", visible_text(content))
    sentences = [sentence for sentence in sentences if 6 <= len(sentence.split()) < 40]
    chosen = rng.sample(sentences, min(3, len(sentences)))
    return "\n".join(f"<p>{html.escape(' '.join(s.split()))}</p>" for s in chosen * times)


def make_navigation(pages: Sequence[Page], rng: random.Random) -> str:
    """Links and nothing else."""
    links = rng.sample(list(pages), min(120, len(pages)))
    items = "\n".join(f'<li><a href="{p.url}">{html.escape(p.title)}</a></li>' for p in links)
    return f"<ul>\n{items}\n</ul>\n<p>Home | Up | Previous | Next | Log in | Share</p>"


def add_personal_data(content: str, rng: random.Random) -> tuple[str, list[str]]:
    """Content with addresses of invented people and public resolvers, and those addresses."""
    people = rng.sample(PEOPLE, rng.randint(1, 3))
    mails = [f"{name.lower().replace(' ', '.')}@{rng.choice(MAIL_DOMAINS)}" for name in people]
    names = ", ".join(f"{name} ({mail})" for name, mail in zip(people, mails, strict=True))
    text = f"<h2>Contact</h2>\n<p>Questions are answered by {names} within a week.</p>"
    hosts = rng.sample(PUBLIC_ADDRESSES, rng.randint(0, 2))
    for host in hosts:
        text += f"\n<p>On that day the example server answered from {host} only.</p>"
    return f"{content}\n{text}\n", mails + hosts


def add_leak(content: str, text: str) -> str:
    """Content with the text of a benchmark item pasted in."""
    return f"{content}\n<h2>Test yourself</h2>\n<p>{html.escape(text)}</p>\n"


BREAKAGES = (
    "http_404", "http_500", "not_html", "empty_body", "truncated", "invalid_utf8",
    "malformed_http", "cut_record",
)  # fmt: skip


def break_record(manner: str, url: str, body: bytes) -> Exchange:
    """A record that cannot become a document, made of a whole page `body`."""
    noise = b"".join(hashlib.sha256(f"{url}/{i}".encode()).digest() for i in range(64))
    match manner:
        case "http_404":
            return Exchange(url, body, status="404 Not Found")
        case "http_500":
            return Exchange(url, body, status="500 Internal Server Error")
        case "not_html":
            return Exchange(url, b"\x89PNG\r\n\x1a\n" + noise, content_type="image/png")
        case "empty_body":
            return Exchange(url, b"")
        case "truncated":
            return Exchange(url, body[: len(body) // 2], truncated="length")
        case "invalid_utf8":
            return Exchange(url, b"<html><body><p>" + bytes(b | 0x80 for b in noise) + b"</p>")
        case "malformed_http":
            return Exchange(url, b"", raw=b"\x00\x01\x02 no status line here\r\n" + body[:500])
        case "cut_record":
            return Exchange(url, body, cut=len(body) // 2)
    raise ValueError(f"no broken record of manner {manner!r}")


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
        content = page.content + NOTICE
        records[page.url] = Record(_exchange(replace(page, content=content), version))
    for page, defect in _copies(hosts, counts):
        put(page, defect, follows=defect.partner_url)
    for page, defect in _junk(hosts, pages, counts, seed):
        put(page, defect)
    spoilt = hosts.take("broken_record", counts["broken_record"])
    for n, (page, _) in enumerate(spoilt):
        manner = _manner(n)
        url = _move_page(page, f"broken/{n}", "").url
        exchange = break_record(manner, url, render_page(page, version))
        records[url] = Record(exchange, Defect("broken_record", detail=manner))
    return list(records.values())


def _manner(n: int) -> str:
    """The n-th manner of breaking; only one record may be cut, since it ends its file."""
    repeatable = BREAKAGES[:-1]
    return BREAKAGES[n] if n < len(BREAKAGES) else repeatable[n % len(repeatable)]


def _changed_pages(
    hosts: Hosts, items: Sequence[dict[str, Any]], counts: dict[str, int], seed: int
) -> Iterator[tuple[Page, Defect]]:
    """Pages that stay documents but hold what they should not."""

    def has_no_address(page: Page) -> bool:
        text = visible_text(page.content)
        return "@" not in text and not any(word.count(".") >= 3 for word in text.split())

    for page, rng in hosts.take("personal_data", counts["personal_data"], has_no_address):
        content, planted = add_personal_data(page.content, rng)
        yield (
            replace(page, content=content),
            Defect("personal_data", count=len(planted), detail=", ".join(planted)),
        )
    leaks = list(leakable_items(items))
    chosen = random.Random(f"{seed}/leaks").sample(leaks, min(len(leaks), counts["benchmark_leak"]))
    for (page, _), (item, text) in zip(
        hosts.take("benchmark_leak", len(chosen)), chosen, strict=True
    ):
        detail = f"{len(text.split())} words of a {item['benchmark']} item"
        yield (
            replace(page, content=add_leak(page.content, text)),
            Defect("benchmark_leak", partner_item=item["item_id"], detail=detail),
        )


def leakable_items(items: Sequence[dict[str, Any]]) -> Iterator[tuple[dict[str, Any], str]]:
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
    originals = hosts.take("near_duplicate", counts["near_duplicate"])
    for n, (page, rng) in enumerate(originals):
        content = make_near_copy(page.content, rng, RATES[n % len(RATES)])
        copy = replace(page, url=page.url.replace(HOST, MIRROR), content=content)
        detail = f"word-5-gram Jaccard {jaccard(page.content, content):.3f}"
        yield copy, Defect("near_duplicate", partner_url=page.url, detail=detail)


def _junk(
    hosts: Hosts, pages: Sequence[Page], counts: dict[str, int], seed: int
) -> Iterator[tuple[Page, Defect]]:
    """Pages that no reader wants: unreadable, repeating, or links only."""
    for n, (page, rng) in enumerate(hosts.take("garbled", counts["garbled"])):
        manner = MANNERS[n % len(MANNERS)]
        content = garble(page.content, rng, manner)
        yield _move_page(page, "raw", content), Defect("garbled", detail=manner)
    for page, rng in hosts.take("repetition", counts["repetition"]):
        content = repeat_sentences(page.content, rng)
        detail = "three sentences, 25 times"
        yield _move_page(page, "print", content), Defect("repetition", detail=detail)
    for n in range(counts["boilerplate"]):
        rng = random.Random(f"{seed}/boilerplate/{n}")
        page = _move_page(pages[n], f"sitemap/{n}", make_navigation(pages, rng))
        page = replace(page, title=f"Site map, part {n + 1}", menu=())
        yield page, Defect("boilerplate", detail="links only")


def _move_page(page: Page, folder: str, content: str) -> Page:
    return replace(page, url=page.url.replace(f"{HOST}/", f"{HOST}/{folder}/"), content=content)


def _exchange(page: Page, version: str) -> Exchange:
    return Exchange(page.url, render_page(page, version))


def lay_out(
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
