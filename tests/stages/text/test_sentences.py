"""Sentence counts: expected ones are spaCy's, by the vectors beside this file or by its rules."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stages.text.batch import SENTENCE_MARKS, count_line_sentences, count_sentences, split_texts
from stages.text.splitters import Splitter

VECTORS = json.loads(Path(__file__).with_name("spacy_english_vectors.json").read_text())["vectors"]
SPLITTERS = pytest.mark.parametrize("splitter", ["unicode", "spacy_english"])


def test_counts_are_the_sentencizers() -> None:
    counts = count_sentences(split_texts([text for text, _, _ in VECTORS], "spacy_english"))
    assert counts.tolist() == [sentences for _, _, sentences in VECTORS]


@SPLITTERS
@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("", 0),
        (" \n", 0),
        ("no mark", 1),
        ("One. Two! Three? Four", 4),
        ('He said "no." Then', 2),  # the quote belongs to the first
        ("end. ) b", 2),
        ("One.\n. Two", 3),  # white space is a token to the sentencizer, and no punctuation
        ("One.  ", 1),
        ("... a ... b", 1),  # an ellipsis is no mark
    ],
)
def test_counts_by_the_rules(splitter: Splitter, text: str, sentences: int) -> None:
    assert count_sentences(split_texts([text], splitter)).tolist() == [sentences]


def test_the_marks_are_as_many_as_spacys() -> None:
    # `len(Sentencizer.default_punct_chars)` of spaCy 3.8.
    assert len(SENTENCE_MARKS) == 128


@SPLITTERS
@given(st.lists(st.text(alphabet='aB.!?)" \t', max_size=12), max_size=6))
@settings(deadline=None, max_examples=150)
def test_a_line_counts_as_it_would_alone(splitter: Splitter, lines: list[str]) -> None:
    batch = split_texts(["\n".join(lines)], splitter)
    lengths = np.array([len(line) for line in lines], dtype=np.int64)
    starts = np.cumsum(lengths + 1) - lengths - 1
    alone = count_sentences(split_texts(lines, splitter))
    assert count_line_sentences(batch, starts, starts + lengths).tolist() == alone.tolist()
