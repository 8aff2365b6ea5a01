"""Runs of tokens against the definition: the set of all windows, without hashes or anchors."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from stages.dedup.passage_units import (
    anchor_occurrences,
    gram_length,
    joined_tokens,
    window_occurrences,
)
from stages.text.batch import split_texts
from stages.text.words import find_words

Make = Callable[..., Any]
Row = dict[str, Any]
QUIET = [HealthCheck.function_scoped_fixture]


def tokens(text: str) -> list[tuple[int, int]]:
    """The definition: words and symbols, rows of one sign that is no letter joined."""
    found: list[tuple[int, int]] = []
    for start, end in find_words(text):
        row = found and text[found[-1][0] : end] == text[start] * (end - found[-1][0])
        if row and not text[start].isalpha():
            found[-1] = (found[-1][0], end)
        else:
            found.append((start, end))
    return found


def windows(text: str, least: int) -> Iterator[tuple[int, int, tuple[str, ...]]]:
    """Characters and tokens of every window."""
    spans = tokens(text)
    for first in range(len(spans) - least + 1):
        part = spans[first : first + least]
        yield part[0][0], part[-1][1], tuple(text[a:b] for a, b in part)


def repeated(documents: list[Row], least: int) -> dict[str, list[tuple[str, int, int, str]]]:
    """The union of the windows that occur earlier, by brute force."""
    first: dict[tuple[str, ...], str] = {}
    found: dict[str, list[tuple[str, int, int, str]]] = {}
    for row in documents:
        spans = found[row["doc_id"]] = []
        for start, end, window in windows(row["text"], least):
            if window not in first:
                first[window] = row["doc_id"]
            elif spans and start < spans[-1][2]:
                spans[-1] = (*spans[-1][:2], end, spans[-1][3])
            else:
                spans.append(("duplicate_substrings", start, end, first[window]))
    return found


def planted(seed: int, words: int, texts: int, least: int) -> list[str]:
    """Texts of few words with passages of others in them, shorter and longer than `least`."""
    rng = random.Random(seed)
    made: list[list[str]] = []
    for _ in range(texts):
        text = [f"w{rng.randrange(words)}" for _ in range(rng.randint(1, 4 * least))]
        for _ in range(rng.randint(0, 3)):
            if made:
                source = rng.choice(made)
                start = rng.randrange(len(source))
                piece = source[start : start + rng.randint(1, 3 * least)]
                place = rng.randint(0, len(text))
                text[place:place] = piece
        made.append(text)
    return [rng.choice([" ", "\n", "  "]).join(text) for text in made]


@pytest.mark.full
@given(
    seed=st.integers(0, 2**32),
    words=st.sampled_from([1, 2, 3, 10, 1000]),
    least=st.integers(2, 12),
    texts=st.integers(1, 9),
)
@settings(max_examples=20, deadline=None, suppress_health_check=QUIET)
def test_spans_are_the_union_of_all_windows_that_occur_earlier(
    seed: int, words: int, least: int, texts: int, find: Make, rows: Make
) -> None:
    documents = rows(planted(seed, words, texts, least))
    expected = repeated(documents, least)
    shuffled = random.Random(seed).sample(documents, len(documents))
    found = find([[shuffled[: texts // 2], shuffled[texts // 2 :]]], substrings=least)
    assert found.spans == expected
    told = found.told["duplicate_substrings"]
    lengths = [end - start for spans in expected.values() for _, start, end, _ in spans]
    assert told["spans"] == len(lengths)
    assert told["repeated_characters"] == sum(lengths)
    counts = [len(list(windows(row["text"], least))) for row in documents]
    assert told["passages"] == sum(counts)
    distinct = {window for row in documents for *_, window in windows(row["text"], least)}
    assert told["repeated"] == sum(counts) - len(distinct)


@given(text=st.text(alphabet="ab'. \n=-😀中", max_size=200), least=st.integers(2, 6))
@settings(max_examples=20, deadline=None, suppress_health_check=QUIET)
def test_any_characters(text: str, least: int, find: Make, rows: Make) -> None:
    documents = rows([text or "a", text[::-1] or "a", text or "b"])
    assert find([[documents]], substrings=least).spans == repeated(documents, least)


def test_at_fifty_tokens(find: Make, rows: Make) -> None:
    # 49 tokens in common are not enough, 50 are, 51 go in whole length.
    common = [f"c{number}" for number in range(51)]
    texts = [
        " ".join(["x", *common, "y"]),
        " ".join(["p", *common[:49], "q"]),
        " ".join(["r", *common[1:], "s"]),
        " ".join(["t", *common, "u"]),
    ]
    documents = rows(texts)
    found = find([[documents]], substrings=50)
    left = [found.cut(row["doc_id"], row["text"]) for row in documents]
    assert left == [texts[0], texts[1], "r  s", "t  u"]
    labels = [label for spans in found.spans.values() for *_, label in spans]
    assert labels == [documents[0]["doc_id"]] * 2


def test_a_later_place_that_agrees_further_is_found(find: Make, rows: Make) -> None:
    # The n-grams in the middle occur first in a text that agrees on nothing else; whoever extends
    # matches with the first place of an n-gram alone finds nothing in the last text.
    middle = [f"m{number}" for number in range(30)]
    longer = [*(f"l{number}" for number in range(15)), *middle, *(f"r{n}" for n in range(15))]
    texts = [" ".join(["a", *middle, "b"]), " ".join(["c", *longer, "d"]), " ".join(longer)]
    documents = rows(texts)
    assert find([[documents]], substrings=50).spans == repeated(documents, 50)
    assert repeated(documents, 50)[documents[2]["doc_id"]] == [
        ("duplicate_substrings", 0, len(texts[2]), documents[1]["doc_id"])
    ]


def test_periodic_text_keeps_its_first_window(find: Make, rows: Make) -> None:
    # Of 300 tokens all windows but the first occur one token earlier: tokens 2 to 300 are covered.
    documents = rows([" ".join(["ab"] * 300)])
    ((_, start, end, label),) = find([[documents]], substrings=50).spans[documents[0]["doc_id"]]
    assert (start, end, label) == (3, 899, documents[0]["doc_id"])


def test_a_rule_of_signs_is_one_token(find: Make, rows: Make) -> None:
    rule = "=" * 400
    documents = rows([f"A\n{rule}\nb", f"C\n{rule}\nd", "字" * 60, "字" * 60])
    found = find([[documents]], substrings=50)
    assert [len(spans) for spans in found.spans.values()] == [0, 0, 1, 1]
    made = joined_tokens(split_texts([f"{rule} {rule[1:]} {rule}", "==", "=", "="]))
    assert made.offsets.tolist() == [0, 3, 4, 5, 6]
    assert len(set(made.hashes.tolist())) == 4
    assert made.hashes[0] == made.hashes[2]
    assert made.hashes[4] == made.hashes[5] != made.hashes[3]


@pytest.mark.parametrize("least", [50, 51, 200])
def test_anchors_are_few_and_every_window_has_one(least: int) -> None:
    rng = random.Random(least)
    text = " ".join(f"w{rng.randrange(10**6)}" for _ in range(20_000))
    made = joined_tokens(split_texts([text]))
    anchors, count = anchor_occurrences(made, 0, least)
    assert count == 20_000 - least + 1
    # Schleimer, Wilkerson and Aiken 2003: density 2 / (w + 1) for windows of w n-grams.
    width = least - gram_length(least) + 1
    assert len(anchors) == pytest.approx(2 / (width + 1) * count, rel=0.05)
    every = window_occurrences(made, 0, least, np.sort(anchors["hash"]))
    assert len(every) == count
    assert not len(window_occurrences(made, 0, least, np.empty(0, np.uint64)))


def test_rows_of_one_sign_are_joined_and_nothing_else() -> None:
    text = "Don't — say '''' or === ... -- ++ += 哈哈 1,000 😀😀😀 a_b !!!? ! !"
    made = joined_tokens(split_texts([text]))
    spans = zip(made.starts.tolist(), made.ends.tolist(), strict=True)
    assert [text[a:b] for a, b in spans] == [
        *("Don't", "—", "say", "''''", "or", "===", "...", "--", "++", "+", "=", "哈", "哈"),
        *("1,000", "😀😀😀", "a_b", "!!!", "?", "!", "!"),
    ]
