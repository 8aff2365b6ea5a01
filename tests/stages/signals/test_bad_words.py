"""Bad words: C4's rule by the lists of a document's own language."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from artifacts_schema.errors import InputError
from stages.signals.bad_words import WordList, load_words, measure_bad_words, pack_words

TERMS = ("ass", "big butt", "hot", "f**k", "xx", "ass hat", "🖕")


@pytest.fixture
def packed(snapshot: Any, read_input: Any, tmp_path: Path) -> Any:
    """`packed({"en": b"…"})` → the folder with the lists of a snapshot of these files."""

    def pack(files: dict[str, bytes]) -> Path:
        folder = tmp_path / f"packed-{len(list(tmp_path.iterdir()))}"
        ((manifest, output),) = snapshot(files, name="words")
        pack_words([read_input(manifest, output)], folder)
        return folder

    return pack


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("What an ass, really.", 1),  # dolma's vector: the comma does not hide it
        ("A class of assets.", 0),
        ("ASS", 1),
        ("a big  butt", 0),
        ("one big butt and an ass-hat", 2),
        ("ass hat ass", 2),  # The phrase, then the word; never the word inside the phrase.
        ("well f**k that", 1),
        ("xxx", 0),
        ("ass_hat", 0),
        ("🖕🖕", 2),
        ("", 0),
    ],
)
def test_a_listed_phrase_counts_between_characters_that_are_no_part_of_a_word(
    text: str, found: int
) -> None:
    assert WordList(TERMS, anywhere=False).occurrences(text) == found


def test_without_spaces_a_word_counts_wherever_it_stands() -> None:
    assert WordList(("巨乳", "乳"), anywhere=True).occurrences("これは巨乳と乳です") == 2


@settings(max_examples=60, deadline=None)
@given(st.lists(st.sampled_from([*TERMS, " ", "s", "-", "_", "b", ".", "Hot"]), max_size=14))
def test_counts_are_those_of_one_expression_of_all_phrases(pieces: list[str]) -> None:
    text = "".join(pieces)
    either = "|".join(map(re.escape, sorted(TERMS, key=lambda term: (-len(term), term))))
    rest = either.replace(re.escape("🖕"), "(?!)")
    expected = re.findall(rf"(?<!\w)(?:{rest}|🖕)(?!\w)", text.lower())
    assert WordList(TERMS, anywhere=False).occurrences(text) == len(expected)


def test_each_document_is_held_against_the_list_of_its_language(packed: Any) -> None:
    folder = packed({"en": b"damn\n", "de.txt": "# c\nMist\nver\u0064ammt\n".encode()})
    texts = ["damn damn fine", "So ein Mist, damn", "damn", "damn"]
    columns = measure_bad_words(texts, ["en", "de-AT", None, "fr"], [3, 4, 1, 1], folder)
    assert columns["bad_words"] == [2, 1, None, None]
    assert columns["bad_word_share"] == [2 / 3, 1 / 4, None, None]


def test_lists_may_be_json_lines_and_compressed(packed: Any) -> None:
    rows = [{"lang": "en", "term": "Big Butt"}, {"lang": "ja", "term": "乳"}]
    content = "\n".join(map(json.dumps, rows)).encode()
    lists = load_words(packed({"lists.jsonl.zst": zstandard.compress(content)}))
    assert lists["en"].occurrences("a BIG BUTT") == 1
    assert lists["ja"].occurrences("巨乳") == 1


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("readme.md", b"hello\n", "'readme'"),
        ("x.jsonl", b'{"term": "a"}\n', r"x\.jsonl:1"),
        ("en.zst", zstandard.compress(b"a" * 100)[:-4], r"en\.zst"),
    ],
)
def test_what_is_no_list_is_named(packed: Any, name: str, content: bytes, message: str) -> None:
    with pytest.raises(InputError, match=message):
        packed({name: content})
