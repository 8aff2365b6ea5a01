"""Texts in, signal columns and spans out: words are split once and shared by all signals."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from stages.signals.columns import DUPLICATE_NGRAMS, SIGNALS, TOP_NGRAMS
from stages.signals.credentials import secrets
from stages.signals.line_signals import line_signals
from stages.signals.mojibake import mojibake
from stages.signals.personal_data import personal_data
from stages.signals.quality import share, word_signals
from stages.signals.repetition import duplicate_ngram_characters, top_ngram_characters
from stages.signals.spans import Span
from stages.text.scripts import main_script
from stages.text.tokens import Vocabulary
from stages.text.words import words as unicode_words

BATCH_CHARACTERS = 1 << 19
"""Texts measured together; it bounds memory and changes no value."""

WordSplitter = Callable[[str], Sequence[str]]
Columns = dict[str, Any]

VIEWS = ("mojibake", "personal_data", "secrets")
"""Views of a text that are found here, in alphabetical order."""

Views = dict[str, list[Span]]
"""The spans of one text, by view."""


def measure(
    texts: Sequence[str],
    stop_words: Sequence[str],
    *,
    split: WordSplitter = unicode_words,
    batch_characters: int = BATCH_CHARACTERS,
) -> tuple[Columns, list[Views]]:
    """A sequence of values for each of `SIGNALS`, and the spans of each text by view.

    No text is too odd: an empty one has 0 in every number and a null script.
    """
    vocabulary = Vocabulary()
    parts = [
        _measure_batch(batch, stop_words, split, vocabulary)
        for batch in _batches(texts, batch_characters)
    ]
    columns = {
        signal.name: [value for part, _ in parts for value in part[signal.name]]
        for signal in SIGNALS
    }
    return columns, [spans for _, batch_spans in parts for spans in batch_spans]


def _batches(texts: Sequence[str], limit: int) -> Iterator[list[str]]:
    """Consecutive texts of at most `limit` characters together, and at least one."""
    batch: list[str] = []
    size = 0
    for text in texts:
        if batch and size + len(text) > limit:
            yield batch
            batch, size = [], 0
        batch.append(text)
        size += len(text)
    if batch:
        yield batch


def _measure_batch(
    texts: list[str], stop_words: Sequence[str], split: WordSplitter, vocabulary: Vocabulary
) -> tuple[Columns, list[Views]]:
    words = [split(text) for text in texts]
    tokens = vocabulary.tokens(words)
    characters = np.array([len(text) for text in texts], dtype=np.int64)
    columns: Columns = {"characters": characters}
    columns |= word_signals(texts, words, tokens, stop_words)
    for n in TOP_NGRAMS:
        columns[f"top_{n}_gram_character_share"] = share(
            top_ngram_characters(tokens, n), characters
        )
    duplicates = duplicate_ngram_characters(tokens, DUPLICATE_NGRAMS)
    for n, counts in zip(DUPLICATE_NGRAMS, duplicates, strict=True):
        columns[f"duplicate_{n}_gram_character_share"] = share(counts, characters)

    by_text = [_text_signals(text) for text in texts]
    columns |= {name: [row[name] for row in by_text] for name in by_text[0]}
    views = _views(texts)
    personal = [found["personal_data"] for found in views]
    for name, label in (("email_count", "email"), ("ip_count", "ip_address")):
        columns[name] = [sum(span.label == label for span in found) for found in personal]
    columns["secret_count"] = [len(found["secrets"]) for found in views]
    columns["mojibake_characters"] = [
        sum(span.end - span.start for span in found["mojibake"]) for found in views
    ]
    return columns, views


def _views(texts: list[str]) -> list[Views]:
    """The spans of each text by view.

    Where a repair would overlap what may have to be hidden, it is left undone: of two spans that
    overlap a filter makes one edit, and the repair would bring the hidden text back.
    """
    views = []
    for text, repairs in zip(texts, mojibake(texts), strict=True):
        personal, keys = personal_data(text), secrets(text)
        if repairs and (personal or keys):
            hidden = [*personal, *keys]
            repairs = [
                repair
                for repair in repairs
                if not any(s.start < repair.end and repair.start < s.end for s in hidden)
            ]
        views.append({"mojibake": repairs, "personal_data": personal, "secrets": keys})
    return views


def _text_signals(text: str) -> dict[str, Any]:
    """What is computed from the characters of one text, without its words."""
    lowered = text.lower()
    script, script_share = main_script(text)
    return line_signals(text) | {
        "bytes": len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass")),
        "lorem_ipsum_count": lowered.count("lorem ipsum"),
        "curly_brace_count": text.count("{"),
        "javascript_count": lowered.count("javascript"),
        "script": script,
        "script_share": script_share,
        "replacement_character_share": text.count("\ufffd") / len(text) if text else 0.0,
    }
