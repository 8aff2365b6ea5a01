from __future__ import annotations

import hashlib
import re
import unicodedata
from itertools import pairwise

import regex
import xxhash
from hypothesis import example, given, settings
from hypothesis import strategies as st

from stages.dedup.datatrove import datatrove_shingles, simplify_text

NUMBER = regex.compile(r"\p{Nd}+([.,،٫⎖⎗⎘]\p{Nd}+)?")
PUNCTUATION = (
    "!/—”:％１〈&(、━\\【#%「」，】；+^]~“《„';’{|∶´[=-`*．（–？！：$～«〉,><》)?）。…@_.\"}►»"
    + "".join(map(chr, [*range(9), 11, 12, *range(13, 32), *range(127, 160)]))
)
TO_SPACE = str.maketrans(PUNCTUATION, " " * len(PUNCTUATION))

AWKWARD = (
    "aB zé ß ı İ Σς 0123456789 ١٢٣ ０１９ ५ 𝟗 ² Ⅷ .,،٫⎖⎗⎘ ‘’‹›“” \t\n\r\x0b\x1c\x85\xa0\u2028\u3000"
    "\u0301\u0300\u05b0\u0e31 각 字 ก 🙂 👩‍👩‍👧 \x00 \ufeff \u200b ̈ ﬁ Å ῭ ` _ … ''"
)
LEFT_OUT = {"Cn", "Co", "Cs"}
"""Unassigned, private, surrogates."""
TEXTS = st.text(st.sampled_from(AWKWARD) | st.characters(exclude_categories=["Cs"]), max_size=40)


def plainly_simplified(text: str) -> str:
    """What `simplify_text` is said to do, step by step."""
    text = NUMBER.sub("0", text.lower()).translate(TO_SPACE)
    text = unicodedata.normalize("NFD", re.sub(r"\s+", " ", text.strip()))
    return "".join(char for char in text if unicodedata.category(char) != "Mn").strip()


@settings(deadline=None)
@given(st.lists(TEXTS, max_size=4))
@example(["\u0301 a", "1,200.50 1.5.2 ١٬٢ 3٫5", "a \u0301 b", " \u0301 ", "e\u0323\u0302"])
@example(["a \u0301", "5", ",7 5,", "7", " - a - "])
@example(["‘Tis’ ‹so›", "X\u0345\u0301", "\u0345", "ΑΣ ΑΣΑ", "A\ud800"])
def test_texts_are_simplified_step_by_step(texts: list[str]) -> None:
    assert list(map(simplify_text, texts)) == [plainly_simplified(text) for text in texts]


def test_every_assigned_character_is_simplified_step_by_step() -> None:
    chars = [c for c in map(chr, range(0x110000)) if unicodedata.category(c) not in LEFT_OUT]
    texts = ["".join(f"a{char}1{char}2 " for char in chars[i::997]) for i in range(997)]
    for text in texts:
        assert simplify_text(text) == plainly_simplified(text)


def words_of(texts: list[str]) -> list[list[str]]:
    """For texts in which words are what stands between spaces."""
    return [plainly_simplified(text).split() for text in texts]


SOME = [
    "",
    "word",
    "only four words here",
    "now there are five words",
    "One two three! Four, five — six: seven; été 8.25 and 3 more",
    "straße naïve façade coöperate Ångström jalapeño",
    "a word of eighteen bytes " + "incomprehensibilities " * 4,
    "long " + "pneumonoultramicroscopicsilicovolcanoconiosis " * 9,
    "字 字 字 字 字 🙂 🙂",
]


def test_shingles_hash_words_joined_by_a_space() -> None:
    for name, digest in (
        ("sha1", lambda x: int.from_bytes(hashlib.sha1(x).digest()[:8], "little")),
        ("xxh64", xxhash.xxh64_intdigest),
    ):
        for n in (1, 2, 5):
            hashes, offsets, _ = datatrove_shingles(SOME, n, name)
            expected = [
                [digest(" ".join(words[i : i + n]).encode()) for i in range(len(words) - n + 1)]
                for words in words_of(SOME)
            ]
            found = [hashes[start:end].tolist() for start, end in pairwise(offsets)]
            assert found == expected, (name, n)


def test_words_are_split_after_punctuation_is_gone() -> None:
    # So "don't" has lost its apostrophe, by which spaCy would have known it, and "cannot" has not.
    one, _, _ = datatrove_shingles(["I don't; she cannot."], 2, "sha1")
    two, _, _ = datatrove_shingles(["i don t she can not"], 2, "sha1")
    assert one.tolist() == two.tolist()
    assert len(one) == 5


def test_texts_of_the_same_words_share_a_digest() -> None:
    texts = [
        "Café, one!",
        "cafe ONE",
        "caf eone",
        "",
        "!!!",
        "one cafe",
        "five words is one shingle",
    ]
    _, offsets, tokens = datatrove_shingles(texts, 5, "sha1")
    assert tokens.shape == (7, 2)
    assert offsets.tolist() == [0, 0, 0, 0, 0, 0, 0, 1]
    assert (tokens[0] == tokens[1]).all()
    assert (tokens[3:5] == 0).all()
    distinct = {tuple(row) for row in tokens.tolist()}
    assert len(distinct) == 5
    both = xxhash.xxh3_128_intdigest(b"cafe one")
    assert tokens[0].tolist() == [both >> 64, both & (2**64 - 1)]


def test_no_texts_have_no_shingles() -> None:
    hashes, offsets, tokens = datatrove_shingles([], 5, "sha1")
    assert (len(hashes), offsets.tolist(), tokens.shape) == (0, [0], (0, 2))
