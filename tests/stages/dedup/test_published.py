"""How RedPajama-V2 and Marin read texts, by their own code and tests."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest
from reference_shingles import character_number, shingle_numbers, word_number

from stages.dedup.presets import Settings
from stages.dedup.shingling import MARIN_CHARACTERS, marin, redpajama, shingler, squeeze_spaces

SETTINGS = Settings(
    unit="word",
    ngram=13,
    normalise="redpajama",
    hash="ingot",
    bands=9,
    rows=13,
    seed=1,
    most=65536,
)
MARIN = replace(SETTINGS, normalise="marin", unit="character", ngram=5)


def parted(text: str) -> list[str]:
    return [word for word in text.split(" ") if word]


def test_redpajama_reads_words_as_its_code_does() -> None:
    # What normalize() of RedPajama-Data at 6d2cee9 returned, split as core/document.py does.
    text = "  It's  a\tTest-case:\u00a0ΑΣ-Α, café… “Q”\n"
    assert parted(redpajama(text)) == ["its", "a", "testcase", "ασα", "cafe\u0301…", "“q”"]


@pytest.mark.parametrize(
    ("text", "cleaned"),
    [
        # tests/test_minhash.py of Marin's dupekit.
        ("Hello,   World! This is a test.", "hello world this is a test"),
        ("   ", ""),
        ("  NAÏVE\u2003CAFÉ...  ", "naïve café"),
        ("ΟΣ", "ος"),
        # Rust's white space is not Python's: U+001C to U+001F are none.
        ("a\x1cb\x85c_d", "a\x1cb cd"),
    ],
)
def test_marin_reads_texts_as_its_tests_say(text: str, cleaned: str) -> None:
    assert " ".join(parted(marin(text))) == cleaned


def test_marin_reads_the_first_half_million_characters() -> None:
    assert marin("é" * (MARIN_CHARACTERS + 1)) == "é" * 500_000


def test_without_normalisation_words_stay_as_they_are() -> None:
    text = " Don’t\tstop,\x1cthe\u3000MUSIC "
    assert parted(squeeze_spaces(text)) == ["Don’t", "stop,", "the", "MUSIC"]


def test_redpajama_shingles_are_ngrams_of_those_words() -> None:
    words = [f"w{i}é" for i in range(20)]
    shingled = shingler(SETTINGS)(pa.array(["W-" + ", W".join(w[1:] for w in words), "!"]))
    numbers = [word_number(f"w{i}e\u0301") for i in range(20)]
    assert shingled.hashes.tolist() == shingle_numbers(numbers, 13)
    assert shingled.offsets.tolist() == [0, 8, 8]
    assert shingled.words[1].tolist() == shingled.texts[1].tolist()


def test_marin_shingles_are_characters_of_the_cleaned_text() -> None:
    shingled = shingler(MARIN)(pa.array(["  Naïve,\n CAFÉ\0!"]))
    numbers = list(map(character_number, "naïve café\0"))
    assert shingled.hashes.tolist() == shingle_numbers(numbers, 5)


def test_other_normalisations_keep_case_and_control_characters_apart() -> None:
    settings = replace(SETTINGS, normalise="none", ngram=1)
    texts = ["a", "A", "a\0", "a\0\0", "ä", "a\u0308"]
    assert len(set(shingler(settings)(pa.array(texts)).hashes.tolist())) == len(texts)
