"""Spans of three sentences against datatrove: `datatrove_vectors.json` holds what it left.

Made with datatrove 0.10.1 and spaCy 3.8.18: `SentenceDedupSignature`, `SentenceFindDedups` and
`SentenceDedupFilter` one after the other, with `min_doc_words` and `min_num_sentences` 0. "shape"
has the overlaps of the six texts of datatrove's own test, "mixed" is drawn from 36 sentences full
of abbreviations, marks and odd white space. White space at the ends of a text aside, they agree.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from stages.dedup.passage_units import sentence_bounds, sentence_occurrences
from stages.text.batch import count_sentences, split_texts

Make = Callable[..., Any]
HERE = Path(__file__).parent
VECTORS = json.loads((HERE / "datatrove_vectors.json").read_text())
SPACY = HERE.parents[1] / "text" / "spacy_english_vectors.json"


@pytest.mark.parametrize("corpus", VECTORS)
def test_what_is_left_is_what_datatrove_leaves(corpus: str, find: Make, rows: Make) -> None:
    documents = rows(VECTORS[corpus]["texts"])
    found = find([[documents]], sentences=True)
    left = [found.cut(row["doc_id"], row["text"]).strip() for row in documents]
    assert left == [text.strip() for text in VECTORS[corpus]["residual"]]
    # Nothing that was cut leaves white space at the beginning.
    begun = [row for row in documents if (found.spans[row["doc_id"]] or [("", 1)])[0][1] == 0]
    assert all(not found.cut(row["doc_id"], row["text"])[:1].isspace() for row in begun)
    assert bool(begun) == (corpus in ("shape", "mixed"))


def test_there_are_as_many_sentences_as_spacy_counts() -> None:
    texts = [text for text, _, _ in json.loads(SPACY.read_text())["vectors"]]
    batch = split_texts(texts, "spacy_english")
    found, starts, ends = sentence_bounds(batch)
    counts = [found.tolist().count(text) for text in range(len(texts))]
    assert counts == count_sentences(batch).tolist()
    assert (starts < ends).all()


def test_a_span_takes_the_white_space_before_it() -> None:
    text = "  One. Two?\n\nThree! Four"
    found = sentence_occurrences(["", text], 3)
    assert found["row"].tolist() == [4, 4]
    assert [text[a:b] for a, b in zip(found["start"], found["end"], strict=True)] == [
        "  One. Two?\n\nThree!",
        " Two?\n\nThree! Four",
    ]
    assert [text[a:] for a in found["next_start"]] == ["Four", ""]


def test_texts_without_spaces_have_sentences() -> None:
    # spaCy's English rules see one token here, so no mark.
    text = "今日は雨です。傘を持ちました。駅まで歩きました。電車が来ました。"
    assert len(sentence_occurrences([text], 0)) == 2


def test_spans_of_which_nothing_is_left_do_not_count() -> None:
    text = "Go.\n*!\n*!\n*!\nStop."
    found = sentence_occurrences([text], 0)
    assert [text[a:b] for a, b in zip(found["start"], found["end"], strict=True)] == [
        "Go.\n*!\n*!",
        "\n*!\n*!\nStop.",
    ]


def test_two_spans_at_the_beginning_leave_no_white_space(find: Make, rows: Make) -> None:
    one, two = "A one. A two. A three.", "B one. B two. B three."
    documents = rows([one, two, f"{one} {two} C one."])
    found = find([[documents]], sentences=True)
    ident = documents[2]["doc_id"]
    assert [span[1:3] for span in found.spans[ident]] == [(0, 23), (23, 46)]
    assert found.cut(ident, documents[2]["text"]) == "C one."


WORDS = ("Ada", "Ben", "Cid")


@given(texts=st.lists(st.lists(st.sampled_from(WORDS), max_size=8).filter(bool), max_size=6))
@settings(
    max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_every_sentence_of_a_span_seen_before_goes(
    texts: list[list[str]], find: Make, rows: Make
) -> None:
    if not texts:
        return
    documents = rows([" ".join(f"{word} sat." for word in words) for words in texts])
    found = find([[documents]], sentences=True)
    first: dict[tuple[str, ...], str] = {}
    for row, words in zip(documents, texts, strict=True):
        cut, begins = set[int](), dict[int, str]()
        for place in range(len(words) - 2):
            span = tuple(words[place : place + 3])
            if span in first:
                cut |= {place, place + 1, place + 2}
                begins[place] = first[span]
            first.setdefault(span, row["doc_id"])
        left = found.cut(row["doc_id"], row["text"])
        assert left == " ".join(f"{word} sat." for i, word in enumerate(words) if i not in cut)
        spans = found.spans[row["doc_id"]]
        assert [label for *_, label in spans[:1]] == [begins[min(begins)] for _ in spans[:1]]
        assert bool(spans) == bool(cut)
