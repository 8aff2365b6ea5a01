"""Lines against cc_net: `ccnet_vectors.json` holds what its own functions gave.

Made with cc_net bda555b: of each line `text_normalizer.normalize_for_dedup` and
`dedup.compute_hashes`, of each corpus what a `dedup.DuplicatesRemover(field, [], collect=True)`
leaves of its texts one after the other (null where it drops the document).
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from stages.dedup.passage_units import BLANK, line_hash, line_occurrences, normalised_lines

Make = Callable[..., Any]
VECTORS = json.loads(Path(__file__).with_name("ccnet_vectors.json").read_text())

TABLE = "，。、„”“«»１」「《》´∶：？！（）；–—．～’…━〈〉【】％►"
"""The keys of cc_net's UNICODE_PUNCT, its full-width digit one among them."""


def normalised(line: str) -> str:
    """The definition, one line at a time."""
    line = re.sub(r"\d", "0", line.strip().lower())
    controls = {chr(code) for code in (*range(32), *range(127, 160))}
    return "".join(char for char in line if char not in TABLE and char not in controls)


@pytest.mark.parametrize(("line", "plain", "value"), VECTORS["lines"])
def test_a_line_is_normalised_and_hashed_as_by_ccnet(line: str, plain: str, value: int) -> None:
    assert normalised_lines(line) == [plain.encode()]
    assert line_occurrences([line], 0)["hash"].tolist() == [value]


def test_the_slip_in_ccnets_table_changes_nothing() -> None:
    # 1 in full width is listed as punctuation there, but has become 0 before it could be removed.
    assert normalised_lines("１ and 1") == [b"0 and 0"]
    assert int.from_bytes(hashlib.sha1(b"").digest()[:8], "little") == BLANK


ASCII = st.text(alphabet="aZ7, \t\r\n\x00\x0b\x0c\x1c\x1d\x1e\x1f\x7f", max_size=12)
UNICODE = st.text(alphabet="aΣσİé \t\r\n\x0b\x1c\x85\u2028\u3000１٣7,“—…◌́", max_size=30)


@given(ASCII | UNICODE)
@settings(max_examples=300)
def test_a_text_at_once_is_what_its_lines_are_one_by_one(text: str) -> None:
    lines = text.split("\n")
    assert normalised_lines(text) == [normalised(line).encode() for line in lines]
    found = line_occurrences(["x", text], 5)[1:]
    assert [text[a:b] for a, b in zip(found["start"], found["end"], strict=True)] == lines
    assert found["next_start"].tolist() == [*(found["end"][:-1] + 1), len(text)]
    assert found["following"].tolist() == list(range(len(lines)))[::-1]
    assert set(found["row"].tolist()) == {6}
    hashes = [line_hash(normalised(line).encode()) for line in lines]
    assert found["hash"].tolist() == np.frombuffer(b"".join(hashes), "<u8").tolist()


@pytest.mark.parametrize("corpus", VECTORS["corpora"])
def test_what_is_left_is_what_ccnet_leaves(corpus: Any, find: Make, rows: Make) -> None:
    documents = rows(corpus["texts"])
    found = find([[documents[:2], documents[2:]]], lines=True)
    left = [found.cut(row["doc_id"], row["text"]) for row in documents]
    assert left == [text or "" for text in corpus["residual"]]


TEXTS = st.lists(
    st.lists(st.sampled_from(["a", "A ", "b“", "b", "", " ", "c1", "c2"]), min_size=1, max_size=6)
    .map("\n".join)
    .filter(bool),
    min_size=1,
    max_size=8,
)


@given(texts=TEXTS, order=st.randoms(use_true_random=False))
@settings(
    max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_the_first_of_equal_lines_stays_and_names_the_others(
    texts: list[str], order: Any, find: Make, rows: Make
) -> None:
    documents = rows(texts)
    shuffled = order.sample(documents, len(documents))
    found = find([[shuffled[::2], shuffled[1::2]]], lines=True)
    first: dict[str, str] = {}
    for row in documents:
        kept, labels = [], []
        for line in row["text"].split("\n"):
            holder = first.setdefault(normalised(line), f"{row['doc_id']} {len(kept)}")
            if holder == f"{row['doc_id']} {len(kept)}" and normalised(line) not in kept:
                kept.append(normalised(line))
            else:
                labels.append(holder.split()[0])
        left = found.cut(row["doc_id"], row["text"])
        assert [normalised(line) for line in left.split("\n")] == (kept or [""])
        told = [label for _, _, _, label in found.spans[row["doc_id"]]]
        assert all(label in labels for label in told)
        assert not kept or len(told) == len(labels)


def test_numbers_of_lines(find: Make, rows: Make) -> None:
    texts = ["Menu\n\nA text", "MENU\n\nAnother", "menu\nMenu"]
    told = find([[rows(texts)]], lines=True).told["duplicate_lines@ccnet"]
    assert told == {
        "documents": 3,
        "characters": 12 + 13 + 9,
        "passages": 3 + 3 + 2,
        "repeated": 4,  # Menu three times, and a blank line
        "repeated_blank": 1,
        "spans": 4,
        "repeated_characters": 5 + 1 + 4 + 5,
        "repeated_documents": 2,
        "most_frequent": [{"count": 4, "doc_id": rows(texts)[0]["doc_id"], "excerpt": "Menu"}],
    }
