"""Texts to shingles: by their definition in plain Python, at the edges, quality of the hash."""

from __future__ import annotations

import ctypes
import io
import itertools
import json
import mmap
import re
import unicodedata
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest
import xxhash
import zstandard
from hypothesis import given
from hypothesis import settings as examples
from hypothesis import strategies as st
from numpy.typing import NDArray
from reference_shingles import (
    character_number,
    folded_words,
    sequence_digest,
    shingle_numbers,
    word_number,
)

from stages.dedup.presets import Settings
from stages.dedup.shingling import ShingledTexts, shingler

FOLD = Settings(
    unit="word",
    ngram=5,
    normalise="fold",
    hash="ingot",
    bands=14,
    rows=8,
    seed=1,
    most=65536,
)
CHARACTERS = replace(FOLD, unit="character", ngram=4)

WRITING = "abcdeXYZ 0189 _.,'\n\0“”—\u200b\u0301éßςΣ½ﬁＡ中文々ーがｶ한글निကောไทၠَب🙂"
TEXTS = st.one_of(st.text(), st.text(st.sampled_from(WRITING)), st.text("abc D.", min_size=60))


def shingles(text: str, settings: Settings = FOLD) -> list[int]:
    return shingler(settings)(pa.array([text], pa.string())).hashes.tolist()


def each(shingled: ShingledTexts) -> list[list[int]]:
    ends = shingled.offsets.tolist()
    return [shingled.hashes[a:b].tolist() for a, b in itertools.pairwise(ends)]


def words_digest(*texts: str, settings: Settings = FOLD) -> list[tuple[int, ...]]:
    return [tuple(row) for row in shingler(settings)(pa.array(texts)).words.tolist()]


@examples(max_examples=400, deadline=None)
@given(TEXTS, st.integers(1, 7))
def test_word_shingles_are_those_of_the_definition(text: str, ngram: int) -> None:
    expected = shingle_numbers(list(map(word_number, folded_words(text))), ngram)
    assert shingles(text, replace(FOLD, ngram=ngram)) == expected


@examples(max_examples=200, deadline=None)
@given(TEXTS, st.integers(1, 7))
def test_character_shingles_are_those_of_words_with_single_spaces(text: str, ngram: int) -> None:
    characters = list(map(character_number, " ".join(folded_words(text))))
    expected = shingle_numbers(characters, ngram)
    assert shingles(text, replace(CHARACTERS, ngram=ngram)) == expected


@examples(max_examples=100, deadline=None)
@given(TEXTS)
def test_without_normalisation_every_character_counts(text: str) -> None:
    expected = shingle_numbers(list(map(character_number, text)), 4)
    assert shingles(text, replace(CHARACTERS, normalise="none")) == expected


@examples(max_examples=100, deadline=None)
@given(TEXTS)
def test_words_without_normalisation_are_those_between_white_space(text: str) -> None:
    expected = shingle_numbers(list(map(word_number, text.split())), 5)
    assert shingles(text, replace(FOLD, normalise="none")) == expected


@examples(max_examples=100, deadline=None)
@given(st.lists(TEXTS, max_size=6), st.integers(0, 3), st.booleans())
def test_a_text_is_shingled_alike_alone_and_in_any_array(
    texts: list[str], skipped: int, large: bool
) -> None:
    array = pa.array(texts, pa.large_string() if large else pa.string())[skipped:]
    shingled = shingler(FOLD)(array)
    alone = [shingler(FOLD)(pa.array([text])) for text in texts[skipped:]]
    assert each(shingled) == [one.hashes.tolist() for one in alone]
    assert shingled.texts.tolist() == [one.texts[0].tolist() for one in alone]
    assert shingled.words.tolist() == [one.words[0].tolist() for one in alone]


@examples(max_examples=200, deadline=None)
@given(TEXTS, st.sampled_from(["NFC", "NFD", "NFKC", "NFKD"]))
def test_equal_text_in_another_unicode_form_has_equal_shingles(text: str, form: str) -> None:
    assert shingles(unicodedata.normalize(form, text)) == shingles(text)


def test_copies_that_differ_in_typography_alone_are_one_class() -> None:
    plain = 'He said: "It\'s the naive cafe - 10 first offices."'
    copies = (
        plain.upper(),
        "He said: “It’s the naïve café — 10 ﬁrst oﬃces.”",
        "He said «It's the nai\u0308ve cafe\u0301» 10 ｆｉｒｓｔ offices",
        "he\tsaid\u00a0it s\u2028the na\u00adive c\u200bafe!!! １０ first…offices",
    )
    digests = words_digest(plain, *copies)
    assert len(set(digests)) == 1
    assert all(shingles(copy) == shingles(plain) for copy in copies)


def test_figures_part_copies() -> None:
    one, other = "sales rose by 12 in 2023", "sales rose by 13 in 2023"
    assert words_digest(one) != words_digest(other)
    assert not set(shingles(one)) & set(shingles(other))


@pytest.mark.parametrize("settings", [FOLD, CHARACTERS, replace(CHARACTERS, normalise="none")])
def test_short_texts_have_one_shingle_and_empty_ones_none(settings: Settings) -> None:
    shingled = shingler(settings)(pa.array(["", "one", "", "One"]))
    assert np.diff(shingled.offsets).tolist() == [0, 1, 0, 1]


def test_a_text_without_words_is_equal_to_its_like_alone() -> None:
    empty, marks, others, again = words_digest("", "?!", "!?", "?!")
    assert len({empty, marks, others}) == 3
    assert marks == again
    assert each(shingler(FOLD)(pa.array(["", "?!", " \0\n"]))) == [[], [], []]


def test_fewer_words_than_an_ngram_are_one_shingle_in_their_order() -> None:
    assert len({*shingles("a b c"), *shingles("c b a"), *shingles("a b"), *shingles("a")}) == 4


@pytest.mark.parametrize("array", [pa.array([], pa.string()), pa.array([""] * 3)])
def test_nothing_at_all_is_fine(array: pa.Array) -> None:
    shingled = shingler(FOLD)(array)
    assert len(shingled.hashes) == 0
    assert shingled.offsets.tolist() == [0] * (len(array) + 1)
    assert shingled.texts.shape == shingled.words.shape == (len(array), 2)


def test_raw_digests_are_xxh3_of_the_bytes() -> None:
    texts = ["", "naïve", "x" * 3000]
    rows = shingler(FOLD)(pa.array(["skipped", *texts])[1:]).texts.tolist()
    assert [high << 64 | low for high, low in rows] == [
        xxhash.xxh3_128_intdigest(text.encode()) for text in texts
    ]


@examples(max_examples=100, deadline=None)
@given(TEXTS.filter(folded_words))
def test_digests_of_words_and_characters_are_those_of_the_definition(text: str) -> None:
    words = folded_words(text)
    assert words_digest(text) == [sequence_digest(list(map(word_number, words)))]
    characters = sequence_digest(list(map(character_number, " ".join(words))))
    assert words_digest(text, settings=CHARACTERS) == [characters]


def test_digests_of_words_tell_any_other_sequence_apart() -> None:
    words = [f"w{i}" for i in range(3000)]
    texts = [" ".join(words)]
    for k in range(1, 3000, 37):
        swapped = [*words]
        swapped[0], swapped[k] = swapped[k], swapped[0]
        texts += [" ".join(swapped), " ".join(words[:k]), " ".join(words[k:])]
    texts += ["ab c", "a bc", "abc", "a b c", "a a", "a", "a a a"]
    digests = shingler(FOLD)(pa.array(texts)).words
    assert len({tuple(row) for row in digests.tolist()}) == len(texts)
    assert len(np.unique(digests[:, 0])) == len(np.unique(digests[:, 1])) == len(texts)


@pytest.mark.parametrize("length", [7, 8, 9, 16, 17, 63, 64, 65, 127, 128, 129, 100_000])
def test_words_of_every_length_at_every_place_of_a_block(length: int) -> None:
    word = "".join(itertools.islice(itertools.cycle("abcdefghijklmnopqrstuvwxyz7"), length))
    number = shingle_numbers([word_number(word)], 1)
    for before in (*range(0, 66, 13), 55, 56, 57, 62, 63, 64):
        text = "." * before + word.upper() + ".é"
        assert shingles(text, replace(FOLD, ngram=1)) == number + shingles("e", FOLD)
        assert shingles(text[:-2], replace(FOLD, ngram=1)) == number


def test_texts_of_one_letter_words_have_room() -> None:
    texts = [f"{letter} b " * 500 for letter in "acdefghijklmnopqrstuvwxyz"]
    shingled = shingler(FOLD)(pa.array(texts))
    assert np.diff(shingled.offsets).tolist() == [996] * 25
    for text, hashes in zip(texts, each(shingled), strict=True):
        assert hashes == shingles(text)
        assert len(set(hashes)) == 2


def test_the_longest_expansions_have_room() -> None:
    assert len(shingles("ﷺ" * 5000 + "㌖" * 5000, CHARACTERS)) > 5000 * 18 + 5000 * 11
    assert len(shingles("㌖" * 5000)) == 5000 * 6 - 4


def test_nothing_past_the_end_of_a_buffer_is_read() -> None:
    page = mmap.PAGESIZE
    memory = mmap.mmap(-1, 2 * page)
    address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    text = ("naive “quoted” words " * page).encode()[:page].decode(errors="ignore")
    text = text[:-3] + "x" * (page - len(text[:-3].encode()))
    memory[:page] = text.encode()
    protect = ctypes.CDLL(None, use_errno=True).mprotect
    assert protect(ctypes.c_void_p(address + page), ctypes.c_size_t(page), 0) == 0
    try:
        for cuts in ([0, page], [0, page - 100, page - 9, page - 1, page]):
            offsets = pa.py_buffer(np.array(cuts, dtype=np.int32))
            data = pa.foreign_buffer(address, page)
            array = pa.Array.from_buffers(pa.string(), len(cuts) - 1, [None, offsets, data])
            for settings in (FOLD, CHARACTERS, replace(CHARACTERS, normalise="none")):
                expected = [shingles(one, settings) for one in array.to_pylist()]
                assert each(shingler(settings)(array)) == expected
    finally:
        protect(ctypes.c_void_p(address + page), ctypes.c_size_t(page), 3)


@pytest.mark.parametrize(
    "array", [pa.array(["a", None]), pa.array([b"a"]), pa.array(["a"]).dictionary_encode()]
)
def test_nulls_and_what_is_no_string_are_refused(array: pa.Array) -> None:
    with pytest.raises(ValueError, match=r"null|strings"):
        shingler(FOLD)(array)


@pytest.mark.parametrize(
    "wrong",
    [
        {"ngram": 0},
        {"hash": "sha1"},
        {"normalise": "datatrove"},
        {"normalise": "datatrove", "hash": "xxh64", "unit": "character"},
    ],
)
def test_settings_that_do_not_go_together_are_refused(wrong: dict) -> None:
    with pytest.raises(ValueError):
        shingler(replace(FOLD, **wrong))


def test_datatrove_shingles_come_from_its_own_module(monkeypatch: pytest.MonkeyPatch) -> None:
    def datatrove_shingles(texts: list[str], ngram: int, hash: str) -> tuple[NDArray, ...]:
        assert (texts, ngram, hash) == (["one two", "?"], 3, "sha1")
        return np.array([], np.uint64), np.array([0, 0, 0]), np.array([[7, 8], [0, 0]], np.uint64)

    module = SimpleNamespace(datatrove_shingles=datatrove_shingles)
    monkeypatch.setitem(__import__("sys").modules, "stages.dedup.datatrove", module)
    settings = replace(FOLD, normalise="datatrove", hash="sha1", ngram=3)
    shingled = shingler(settings)(pa.array(["one two", "?"]))
    assert shingled.words.tolist() == [[7, 8], shingled.texts[1].tolist()]


# The quality of the hash.


def integer_ngrams(count: int) -> NDArray[np.uint64]:
    """The shingles of a text that counts, all distinct."""
    return shingler(FOLD)(pa.array([" ".join(map(str, range(count + 4)))])).hashes


def count_distinct(hashes: NDArray[np.uint64]) -> int:
    """Sorted, since `np.unique` takes a second for a million."""
    return 1 + int(np.count_nonzero(np.diff(np.sort(hashes))))


def _share_numbers_as_random_ones_would(hashes: NDArray[np.uint64]) -> None:
    """All 64 bits: none shared. Either half: k²/2³³ pairs, here within six standard deviations."""
    assert count_distinct(hashes) == len(hashes)
    expected = len(hashes) ** 2 / 2**33
    for half in (hashes >> np.uint64(32), hashes & np.uint64(0xFFFFFFFF)):
        shared = len(hashes) - count_distinct(half)
        assert abs(shared - expected) < 6 * expected**0.5 + 1


def test_a_million_ngrams_of_numbers_share_numbers_as_random_ones_would() -> None:
    _share_numbers_as_random_ones_would(integer_ngrams(1_000_000))


def test_a_million_ngrams_of_real_text_share_numbers_as_random_ones_would(
    shared_data: Path,
) -> None:
    words: list[str] = []
    with (shared_data / "text" / "en-fiction.jsonl.zst").open("rb") as file:
        for line in io.TextIOWrapper(zstandard.ZstdDecompressor().stream_reader(file), "utf-8"):
            words += re.findall("[a-z0-9]+", json.loads(line)["text"].lower())
            if len(words) > 1_200_000:
                break
    ngrams = {tuple(words[i : i + 5]) for i in range(len(words) - 4)}
    assert len(ngrams) > 1_000_000
    hashes = shingler(FOLD)(pa.array([" ".join(words)])).hashes
    assert count_distinct(hashes) == len(ngrams)
    _share_numbers_as_random_ones_would(np.array(list(set(hashes.tolist())), dtype=np.uint64))


def test_words_that_differ_where_a_weak_hash_is_blind_have_numbers_of_their_own() -> None:
    # Pairs of letters that differ in the two uppermost bits of a byte, at sixteen places.
    weak = ["".join(letters) for letters in itertools.product("1q", repeat=16)]
    alphabet = "abcdefghijklmnopqrstuvwxyz0123456789"
    short = ["".join(p) for n in (1, 2, 3) for p in itertools.product(alphabet, repeat=n)]
    repeated = ["a" * n for n in range(4, 400)]
    words = weak + short + repeated
    numbers = shingler(replace(FOLD, ngram=1))(pa.array([" ".join(words)])).hashes
    assert len(np.unique(numbers)) == len(words)


def test_every_bit_depends_on_every_word_and_its_place() -> None:
    rng = np.random.default_rng(11)
    samples = 4000
    words = rng.integers(0, 10**6, (samples, 5))
    changed = {f"word {k}": words + np.eye(5, dtype=int)[k] for k in range(5)}
    changed |= {"order": words[:, [1, 0, 2, 3, 4]], "reversed": words[:, ::-1]}
    before = shingler(FOLD)(pa.array([" ".join(map(str, row)) for row in words])).hashes
    for what, rows in changed.items():
        after = shingler(FOLD)(pa.array([" ".join(map(str, row)) for row in rows])).hashes
        flips = np.unpackbits((before ^ after).view(np.uint8)).reshape(samples, 64).mean(axis=0)
        # Six standard deviations of a mean of 4,000 fair bits: 0.047.
        assert np.abs(flips - 0.5).max() < 0.047, what
