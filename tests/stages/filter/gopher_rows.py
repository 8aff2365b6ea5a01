"""Rows of documents and of their signals, and two configs of `filter`."""

from __future__ import annotations

from typing import Any

NO_RULES: dict[str, Any] = {"rules": []}
QUALITY = {"rules": ["gopher_quality@datatrove"]}


def document(doc_id: str, text: str = "some text", source: str = "web") -> dict[str, Any]:
    """A document with an address."""
    url = f"https://example.org/{doc_id}"
    return {"doc_id": doc_id, "source": source, "url": url, "text": text}


def quality(doc_id: str, **changed: float | None) -> dict[str, Any]:
    """Signals of a document that passes every Gopher quality rule."""
    fine = {
        "words": 300.0,
        "mean_word_length": 4.5,
        "hash_to_word_ratio": 0.0,
        "ellipsis_to_word_ratio": 0.0,
        "bullet_line_share": 0.0,
        "ellipsis_line_share": 0.0,
        "alphabetic_word_share": 0.95,
        "stop_words": 6.0,
    }
    return {"doc_id": doc_id, **fine, **changed}
