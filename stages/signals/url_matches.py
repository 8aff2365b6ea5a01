"""Addresses held against lists: which categories name them, and which words they hold.

As RefinedWeb does (Penedo et al. 2023, arXiv 2306.01116, appendix G.1): a domain counts with all
that lies below it, never as a part of a longer name; strict words count wherever they stand, with
`-` and `.` left out; hard and soft words only where they stand alone. Words are compared in lower
case, percent codes resolved.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any
from urllib.parse import unquote

import numpy as np

from stages.signals.url_lists import UrlLists, bare_address, hash_of

STRICT, HARD, SOFT = 2, 2, 1
"""Points of a word. RefinedWeb drops on one strict or hard word or two soft ones: on 2 points."""

MOST_NAMES = 32
"""Suffixes of a host, and beginnings of a path, that are looked up."""

_NOT_WORD = re.compile(r"[\W_]+")


def list_signals(
    urls: Sequence[str | None], hosts: Sequence[str | None], lists: UrlLists
) -> dict[str, list[Any]]:
    """`url_blocked`, `url_block_lists`, the counts of words and `url_score`; None without host."""
    named = _categories(urls, hosts, lists)
    rows = [
        _row(url, found, lists) if url and name else (None,) * len(COLUMNS)
        for url, name, found in zip(urls, hosts, named, strict=True)
    ]
    return {name: [row[place] for row in rows] for place, name in enumerate(COLUMNS)}


COLUMNS = (
    "url_blocked",
    "url_block_lists",
    "url_strict_words",
    "url_hard_words",
    "url_soft_words",
    "url_score",
)


def _row(url: str, categories: Sequence[int], lists: UrlLists) -> tuple[Any, ...]:
    strict, hard, soft = word_counts(url, lists.words)
    blocked = lists.names[min(categories)] if categories else None
    score = STRICT * strict + HARD * hard + SOFT * soft
    return blocked, len(categories), strict, hard, soft, score


def word_counts(url: str, words: dict[str, tuple[str, ...]]) -> tuple[int, int, int]:
    """Different strict, hard and soft words in an address."""
    text = unquote(url).lower()
    alone = set(_NOT_WORD.split(text))
    squeezed = text.replace("-", "").replace(".", "") if words["strict_words"] else ""
    strict = sum(word in squeezed for word in words["strict_words"])
    return (
        strict,
        sum(word in alone for word in words["hard_words"]),
        sum(word in alone for word in words["soft_words"]),
    )


def names_of(url: str, host: str) -> list[str]:
    """What a list may have to name an address: its host, what that is below, its path's folders."""
    labels = host.split(".")
    suffixes = [".".join(labels[start:]) for start in range(len(labels))][-MOST_NAMES:]
    address = bare_address(url)
    path, mark, _ = address.partition("?")
    parts = path.split("/")
    folders = ["/" + "/".join(parts[:end]) for end in range(1, min(len(parts), MOST_NAMES) + 1)]
    return [*suffixes, *folders, *([f"/{address}"] if mark else [])]


def _categories(
    urls: Sequence[str | None], hosts: Sequence[str | None], lists: UrlLists
) -> list[list[int]]:
    """The categories that name each address, by one lookup for all of them."""
    found: list[set[int]] = [set() for _ in urls]
    hashes: list[int] = []
    rows: list[int] = []
    for row, (url, host) in enumerate(zip(urls, hosts, strict=True)):
        if url and host:
            names = names_of(url, host)
            hashes += map(hash_of, names)
            rows += [row] * len(names)
    wanted = np.array(hashes, dtype=np.uint64)
    begin = np.searchsorted(lists.hashes, wanted, side="left")
    end = np.searchsorted(lists.hashes, wanted, side="right")
    for place in np.flatnonzero(begin < end).tolist():
        found[rows[place]].update(lists.categories[begin[place] : end[place]].tolist())
    return [sorted(categories) for categories in found]
