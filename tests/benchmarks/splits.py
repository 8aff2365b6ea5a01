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
"""Seeds of labelled texts for redaction from here on draw from blind sets, of the test side: those
who wrote them knew neither the rules nor the other sets (`BLIND_SETS` in redaction.py). The first
fourteen, of fewer forms, are in the history alone (commit 943c76bd)."""

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
