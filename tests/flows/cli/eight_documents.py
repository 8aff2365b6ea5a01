"""Eight documents that a filter decides about, and what was measured of each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Row = dict[str, Any]

WORDS = {"a": 20, "b": 45, "c": 55, "d": 60, "e": 300, "f": 310, "g": 12, "h": 200}
"""Documents by their words; e and f are near copies, g is code, h holds benchmark n-grams."""
MAIL = "write to somebody@example.org about"
CONFIG = {
    "rules": ["gopher_quality@datatrove"],
    "rules_by_source": {"code": []},
    "languages": ["en"],
    "duplicates": {"threshold": 0.8},
    "contamination": {"min_ngrams_hit": 5},
}
SHARDS = [list("abcd"), list("efgh")]


def text_of(doc_id: str) -> str:
    """Its text: an address, then words."""
    return f"{MAIL} {doc_id} " + "word " * WORDS[doc_id]


def tables(row: Callable[[str], Row], within: str = "") -> dict[str, list[Row]]:
    """The tables of `SHARDS` by path, below the folder `within`."""
    return {
        f"{within}{number:05d}.parquet": [{"doc_id": d, **row(d)} for d in shard]
        for number, shard in enumerate(SHARDS)
    }


def document(doc_id: str) -> Row:
    """A row of documents."""
    source, url = "code" if doc_id == "g" else "web", f"https://example.org/{doc_id}"
    return {"doc_id": doc_id, "source": source, "url": url, "text": text_of(doc_id)}


def signals(doc_id: str) -> Row:
    """Signals of ordinary text but for the words; d is German, e and f alone end their lines."""
    fine = {"mean_word_length": 4.5, "alphabetic_word_share": 0.95, "stop_words": 6.0}
    ratios = ("hash_to_word", "ellipsis_to_word", "newline_to_word")
    lines = ("bullet", "ellipsis", "duplicate_filled", "short", "terminal_punctuation")
    zero = {f"{n}_ratio": 0.0 for n in ratios} | {f"{n}_line_share": 0.0 for n in lines}
    zero |= {"duplicate_filled_line_character_share": 0.0}
    ended = {"terminal_punctuation_line_share": 0.5 if doc_id in "ef" else 0.0}
    size = len(text_of(doc_id))
    sizes = {"words": float(WORDS[doc_id]), "characters": float(size), "bytes": float(size)}
    return {**fine, **zero, **ended, **sizes, "language": "de" if doc_id == "d" else "en"}


def spans(doc_id: str) -> Row:
    """The address as a span of the view `personal_data`."""
    start = MAIL.index("somebody")
    end = start + len("somebody@example.org")
    mail = {"view": "personal_data", "start": start, "end": end, "label": "email"}
    return {"spans": [{**mail, "replacement": "email@example.com"}]}


def copies(doc_id: str) -> Row:
    """e and f are near copies."""
    partner = {"e": "f", "f": "e"}.get(doc_id)
    near = {"doc_id": partner, "similarity": 0.9, "containment": 0.95, "band": 3}
    return {"exact_class": doc_id, "text_class": doc_id, "partners": [near] if partner else []}


def hits(doc_id: str) -> Row:
    """h holds benchmark n-grams."""
    return {"ngrams": 100, "ngrams_hit": 3 if doc_id == "h" else 0, "hits": []}
