"""Which data a rule may be developed on, and which is kept for the figures that the docs quote.

The rule, for every benchmark of this folder (docs/figures.md states it for readers):

- data from outside is split by where it comes from, never by row: `side` hashes the registered
  domain of a page, or the work (a book, a module, a file of a repository) of a text;
- planted corpora are split by seed: seeds below `FIRST_TEST_SEED` are for development, all others
  for tests; generators may use other templates for the test split, and say so;
- settings, patterns and weights are chosen on the development side alone. The test side is run
  when that is done, and a figure quoted in README or on a page comes from it, with its interval.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from hashlib import blake2b
from pathlib import PurePosixPath
from typing import Any, Literal, TypeVar

from stages.signals.urls import find_registered_domain, parse_host

Side = Literal["development", "test"]

FIRST_TEST_SEED = 1000
"""Seeds of planted corpora from here on are kept for tests."""

FIRST_BLIND_SEED = 2000
"""Seeds of labelled texts for redaction from here on draw from the blind set, of the test side: it
was written by somebody who knew neither the rules nor the other sets."""

SECOND_BLIND_SEED = 3000
"""Seeds from here on draw from the second blind set, by another writer who knew none of that."""

THIRD_BLIND_SEED = 7000
"""Seeds from here on draw from the third blind set (third_blind_set.py), by a third such writer."""

FOURTH_BLIND_SEED = 9001
"""Seeds from here on draw from the fourth blind set (fourth_blind/), by a fourth such writer."""

FIFTH_BLIND_SEED = 12001
"""Seeds from here on draw from the fifth blind set (fifth_blind/), by a fifth such writer."""

SIXTH_BLIND_SEED = 15001
"""Seeds from here on draw from the sixth blind set (sixth_blind/), by a sixth such writer."""

SEVENTH_BLIND_SEED = 18001
"""Seeds from here on draw from the seventh blind set (seventh_blind/), by a seventh such writer."""

EIGHTH_BLIND_SEED = 21001
"""Seeds from here on draw from the eighth blind set (eighth_blind/), by an eighth such writer."""

NINTH_BLIND_SEED = 24001
"""Seeds from here on draw from the ninth blind set (ninth_blind/), by a ninth such writer."""

TENTH_BLIND_SEED = 27001
"""Seeds from here on draw from the tenth blind set (tenth_blind/), by a tenth such writer; the
weights of its forms come from a count of public code and pages (FORMS.md there)."""

ELEVENTH_BLIND_SEED = 30001
"""Seeds from here on draw from the eleventh blind set (eleventh_blind/), by an eleventh such
writer; its forms are those met in documentation, forums, tickets and public code."""

TWELFTH_BLIND_SEED = 33001
"""Seeds from here on draw from the twelfth blind set (twelfth_blind/), by a twelfth such writer;
its forms are those of repositories of applications, notes and pages of organisations."""

THIRTEENTH_BLIND_SEED = 36001
"""Seeds from here on draw from the thirteenth blind set (thirteenth_blind/), by a thirteenth such
writer; its forms are weighted as a crawl of pages, forums and repositories holds them."""

FOURTEENTH_BLIND_SEED = 39001
"""Seeds from here on draw from the fourteenth blind set (fourteenth_blind/), by a fourteenth such
writer; its forms are those of pages, documentation, forums, notebooks and repositories."""

FIFTEENTH_BLIND_SEED = 42001
"""Seeds from here on draw from the fifteenth blind set (fifteenth_blind/), by three such writers:
140 templates and more of each kind and sign."""

SIXTEENTH_BLIND_SEED = 45001
"""Seeds from here on draw from the sixteenth blind set (sixteenth_blind/), by three such writers:
150 templates and more of each kind and sign, weighted as a crawl holds them."""

SEVENTEENTH_BLIND_SEED = 48001
"""Seeds from here on draw from the seventeenth blind set (seventeenth_blind/), by three further
writers with the same task."""

_KEY = b"ingot held-out 1"
Row = TypeVar("Row", bound=Mapping[str, Any])


def side(source: str) -> Side:
    """The side of a site or a source: one half of all names each, the same for ever."""
    digest = blake2b(source.casefold().encode("utf-8", "surrogatepass"), key=_KEY, digest_size=1)
    return "test" if digest.digest()[0] & 1 else "development"


def seed_side(seed: int) -> Side:
    """The side of a planted corpus by its seed."""
    return "test" if seed >= FIRST_TEST_SEED else "development"


def source_of(row: Mapping[str, Any]) -> str:
    """What a row of `../shared/data` comes from.

    The registered domain of a page with a `url`; otherwise repository and work: a book's file, or
    the package of a source file, so that neighbours never lie on both sides.
    """
    if row.get("url"):
        return registered_domain(row["url"])
    path = PurePosixPath(row.get("path") or "")
    work = PurePosixPath(*path.parts[:2]) if path.suffix == ".py" else path
    return f"{row.get('source', '')}:{work}"


def registered_domain(url: str) -> str:
    """The part of an address that somebody registered: `news.bbc.co.uk` gives `bbc.co.uk`."""
    host = parse_host(url)
    return (find_registered_domain(host) if host else None) or host or url


def select(rows: Iterable[Row], wanted: Side) -> list[Row]:
    """The rows whose source lies on one side."""
    return [row for row in rows if side(source_of(row)) == wanted]
