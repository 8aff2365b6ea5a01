"""Main text against hand-made truth: quality and CPU time beside trafilatura and resiliparse.

    python -m tests.benchmarks.extraction [--data ../shared/data] [--side development]

Pages are of two sides. `development` pages may be looked at, trained on and tuned on; `scoring`
pages are only scored. The side is drawn by a hash of the registered domain, so that no site is on
both: sha256 of the domain, first four bytes as a number, modulo 100; below 55 is development. Pages
at made-up `.example` addresses have no domain and are drawn one by one, by host.

Full-text truth is scored as in article-extraction-benchmark (Scrapinghub 2020, `evaluate.py`):
words are `\\w+` in lower case, a text is its multiset of 4-word shingles, precision and recall are
averaged over pages, F1 is that of the averages. Snippets are scored as in trafilatura's own
evaluation: does the text contain what it must, and not contain what it must not (white space
squeezed).
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple
from urllib.parse import urlsplit

Side = Literal["development", "scoring"]
SIDES: tuple[Side, ...] = ("development", "scoring")
DEVELOPMENT_PERCENT = 55
SHINGLE_WORDS = 4
LANGUAGES = 5  # languages that get a row of their own; the rest is one row
_WORD = re.compile(r"\w+")


@dataclass(frozen=True)
class LabelledPage:
    """A page of the shared crawl and what is known of its main text."""

    url: str
    html: str = field(repr=False)
    language: str
    kind: str | None  # full_text, readability_expected, recipe_fields, snippets, or None
    text: str | None = field(repr=False)
    must_contain: tuple[str, ...] = ()
    must_not_contain: tuple[str, ...] = ()

    @property
    def side(self) -> Side:
        """Whether the page may be learned from."""
        return side_of(self.url)


class Agreement(NamedTuple):
    """Averages over pages; `f1` is that of the averages."""

    precision: float
    recall: float

    @property
    def f1(self) -> float:
        """Harmonic mean of precision and recall."""
        both = self.precision + self.recall
        return 2 * self.precision * self.recall / both if both else 0.0


class Snippets(NamedTuple):
    """Shares of the snippets that were rightly found and rightly absent."""

    found: float
    avoided: float


class Run(NamedTuple):
    """What an extractor made of a page, and its CPU seconds."""

    text: str
    seconds: float
    doubt: float | None = None


Extractor = Callable[[str], tuple[str, float | None]]


def site_of(url: str) -> str:
    """The registered domain of a URL; its host where it has none."""
    from tld import get_fld

    return get_fld(url, fail_silently=True) or urlsplit(url).hostname or url


def bucket_of(url: str, salt: str = "") -> int:
    """A number of the URL's site, the same on every machine."""
    digest = hashlib.sha256((salt + site_of(url)).encode()).digest()
    return int.from_bytes(digest[:4], "big")


def side_of(url: str) -> Side:
    """The side that a page is on, by its site."""
    return "development" if bucket_of(url) % 100 < DEVELOPMENT_PERCENT else "scoring"


def load_pages(
    data: Path, kinds: Iterable[str | None] | None = None, files: str = ""
) -> list[LabelledPage]:
    """The pages of the shared crawl in the order of their list: those of the given kinds, from
    archive files whose name contains `files`."""
    import zstandard
    from fastwarc.warc import ArchiveIterator, WarcRecordType

    from stages.ingest.charset import decode

    packed = (data / "warc" / "pages.jsonl.zst").open("rb")
    with packed, zstandard.ZstdDecompressor().stream_reader(packed) as stream:
        rows = [json.loads(line) for line in stream.read().splitlines()]
    wanted = None if kinds is None else set(kinds)
    places: dict[str, dict[int, int]] = {}
    for number, row in enumerate(rows):
        capture = row["captures"][0]
        if (wanted is None or row["truth_kind"] in wanted) and files in capture["file"]:
            places.setdefault(capture["file"], {})[capture["offset"]] = number
    html: dict[int, str] = {}
    for file, offsets in sorted(places.items()):
        with (data / "warc" / file).open("rb") as archive:
            for record in ArchiveIterator(archive, record_types=WarcRecordType.response):
                index = offsets.get(record.stream_pos)
                if index is not None:
                    body = record.reader.read()
                    html[index] = decode(body, record.http_charset).text
    return [_labelled(rows[index], html[index]) for index in sorted(html)]


def _labelled(row: dict[str, Any], html: str) -> LabelledPage:
    return LabelledPage(
        url=row["url"],
        html=html,
        language=row["lang_lid"] or "?",
        kind=row["truth_kind"],
        text=row["text"],
        must_contain=tuple(row["must_contain"] or ()),
        must_not_contain=tuple(row["must_not_contain"] or ()),
    )


def words_of(text: str) -> list[str]:
    """The words that texts are compared by."""
    return _WORD.findall(text.lower())


def shingles(words: Sequence[str]) -> Counter[tuple[str, ...]]:
    """Multiset of 4-word shingles; a shorter text is one shingle, an empty one none."""
    if len(words) < SHINGLE_WORDS:
        return Counter([tuple(words)] if words else [])
    return Counter(zip(*(words[start:] for start in range(SHINGLE_WORDS)), strict=False))


def agreement(found: str, truth: str) -> Agreement:
    """Precision and recall of one page's text."""
    mine, true = shingles(words_of(found)), shingles(words_of(truth))
    common = sum((mine & true).values())
    precision = common / mine.total() if mine else float(not true)
    recall = common / true.total() if true else 1.0
    return Agreement(precision, recall)


def mean_agreement(pages: Sequence[Agreement]) -> Agreement:
    """Precision and recall, each averaged over pages."""
    count = max(len(pages), 1)
    return Agreement(
        sum(page.precision for page in pages) / count, sum(page.recall for page in pages) / count
    )


def snippet_hits(found: str, page: LabelledPage) -> tuple[list[bool], list[bool]]:
    """For each snippet whether the text does right by it: those it must have, those it must not."""
    text = _squeezed(found)
    return (
        [_squeezed(snippet) in text for snippet in page.must_contain],
        [_squeezed(snippet) not in text for snippet in page.must_not_contain],
    )


def mean_snippets(hits: Iterable[tuple[list[bool], list[bool]]]) -> Snippets:
    """Shares over the snippets of all pages, each snippet counted once."""
    found: list[bool] = []
    avoided: list[bool] = []
    for must, must_not in hits:
        found += must
        avoided += must_not
    return Snippets(sum(found) / max(len(found), 1), sum(avoided) / max(len(avoided), 1))


def _squeezed(text: str) -> str:
    return " ".join(text.split())


def extractors() -> dict[str, Extractor]:
    """Ingot's extractor and its peers, by name, each from decoded HTML to text and doubt."""
    import trafilatura

    from stages.ingest.config import IngestConfig
    from stages.ingest.extraction import PageTooLarge, extract
    from stages.ingest.extraction.main_text import resiliparse_text

    rules = IngestConfig()

    def blocks(html: str) -> tuple[str, float | None]:
        try:
            found = extract(html, rules)
        except PageTooLarge:
            return "", None
        return found.text, found.doubt

    def careful(fast: bool) -> Extractor:
        def run(html: str) -> tuple[str, float | None]:
            text = trafilatura.extract(html, include_comments=False, include_tables=True, fast=fast)
            return text or "", None

        return run

    return {
        "blocks": blocks,
        "trafilatura": careful(fast=False),
        "trafilatura fast": careful(fast=True),
        "resiliparse": lambda html: (resiliparse_text(html), None),
    }


def run_interleaved(
    pages: Sequence[LabelledPage], by: dict[str, Extractor]
) -> dict[str, list[Run]]:
    """Each extractor on each page, page by page in turn, so that all see the same machine."""
    for extractor in by.values():  # what is loaded once is not a page's time
        extractor("<html><body><p>One short page.</p></body></html>")
    runs: dict[str, list[Run]] = {name: [] for name in by}
    for page in pages:
        for name, extractor in by.items():
            start = time.process_time()
            text, doubt = extractor(page.html)
            runs[name].append(Run(text, time.process_time() - start, doubt))
    return runs


def table(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Aligned columns: the first to the left, the others to the right."""
    cells = [[*header], *([str(cell) for cell in row] for row in rows)]
    widths = [max(len(row[column]) for row in cells) for column in range(len(header))]
    lines = []
    for row in cells:
        first = row[0].ljust(widths[0])
        rest = (cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True))
        lines.append("  ".join((first, *rest)).rstrip())
    return "\n".join(lines)


def full_text_table(pages: Sequence[LabelledPage], runs: dict[str, list[Run]]) -> str:
    """Precision, recall and F1 by side and by language."""
    rows = []
    for label, chosen in _groups(pages):
        for name, made in runs.items():
            scores = mean_agreement([agreement(made[i].text, pages[i].text or "") for i in chosen])
            rows.append(
                (label, len(chosen), name, f"{scores.precision:.4f}", f"{scores.recall:.4f}",
                 f"{scores.f1:.4f}")
            )  # fmt: skip
    return table(("pages with full text", "n", "extractor", "P", "R", "F1"), rows)


def snippet_table(pages: Sequence[LabelledPage], runs: dict[str, list[Run]]) -> str:
    """Snippets found and avoided, by side and by language."""
    rows = []
    for label, chosen in _groups(pages):
        for name, made in runs.items():
            share = mean_snippets(snippet_hits(made[i].text, pages[i]) for i in chosen)
            rows.append((label, len(chosen), name, f"{share.found:.2%}", f"{share.avoided:.2%}"))
    header = ("pages with snippets", "n", "extractor", "must: found", "must not: avoided")
    return table(header, rows)


def _groups(pages: Sequence[LabelledPage]) -> list[tuple[str, list[int]]]:
    """All pages, each side, the most frequent languages, and the others together."""
    numbers = range(len(pages))
    groups = [("all", list(numbers))]
    groups += [(side, [i for i in numbers if pages[i].side == side]) for side in SIDES]
    counts = Counter(page.language for page in pages)
    frequent = [name for name, _ in sorted(counts.items(), key=lambda c: (-c[1], c[0]))][:LANGUAGES]
    groups += [(name, [i for i in numbers if pages[i].language == name]) for name in frequent]
    groups.append(("others", [i for i in numbers if pages[i].language not in frequent]))
    return [(label, chosen) for label, chosen in groups if chosen]


def speed_table(runs: dict[str, list[Run]]) -> str:
    """Pages per CPU second, and against trafilatura with its standard settings."""
    per = {name: len(made) / sum(run.seconds for run in made) for name, made in runs.items()}
    rows = [
        (name, f"{1000 / speed:.2f}", f"{speed:.0f}", f"{speed / per['trafilatura']:.2f}")
        for name, speed in per.items()
    ]
    return table(("speed", "ms a page", "pages / CPU s", "x trafilatura"), rows)


def curve_table(pages: Sequence[LabelledPage], runs: dict[str, list[Run]]) -> str:
    """F1 against speed when trafilatura takes the most doubtful share of the pages."""
    fast, careful = runs["blocks"], runs["trafilatura"]
    order = sorted(range(len(pages)), key=lambda i: -(fast[i].doubt or 0.0))
    mine = [agreement(run.text, page.text or "") for run, page in zip(fast, pages, strict=True)]
    theirs = [
        agreement(run.text, page.text or "") for run, page in zip(careful, pages, strict=True)
    ]
    alone = sum(run.seconds for run in careful)
    rows = []
    for percent in (0, 5, 10, 15, 20, 30, 40, 60, 80, 100):
        count = round(len(pages) * percent / 100)
        chosen = set(order[:count])
        scores = mean_agreement([theirs[i] if i in chosen else mine[i] for i in order])
        seconds = sum(run.seconds for run in fast) + sum(careful[i].seconds for i in chosen)
        doubt = fast[order[count - 1]].doubt if count else None
        rows.append(
            (f"{percent} %", "never" if doubt is None else f"{doubt:.3f}",
             f"{scores.precision:.4f}", f"{scores.recall:.4f}", f"{scores.f1:.4f}",
             f"{alone / seconds:.2f}")
        )  # fmt: skip
    header = ("share for trafilatura", "doubt from", "P", "R", "F1", "x trafilatura")
    return table(header, rows)


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--side", choices=[*SIDES, "both"], default="both")
    chosen = parser.parse_args()
    pages = [
        page
        for page in load_pages(chosen.data, {"full_text", "snippets"})
        if chosen.side in ("both", page.side)
    ]
    full = [page for page in pages if page.kind == "full_text"]
    marked = [page for page in pages if page.kind == "snippets"]
    by = extractors()
    full_runs, marked_runs = run_interleaved(full, by), run_interleaved(marked, by)
    print(full_text_table(full, full_runs), end="\n\n")
    print(snippet_table(marked, marked_runs), end="\n\n")
    print(speed_table(full_runs), end="\n\n")
    print(curve_table(full, full_runs))


if __name__ == "__main__":
    main()
