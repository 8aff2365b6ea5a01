"""DCLM's variants: the vectors of its own tests, and its functions read in plain Python."""

from __future__ import annotations

import re
from collections import Counter

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from stages.signals.groups import DCLM_SIGNALS, measure_dclm
from stages.text.batch import split_texts
from stages.text.words import split_words as split

STOP_WORDS = {"the", "be", "to", "of", "and", "that", "have", "with"}


def measured(texts: list[str]) -> list[dict[str, float]]:
    columns = measure_dclm(split_texts(texts))
    assert list(columns) == [signal.name for signal in DCLM_SIGNALS]
    return [
        {name.removesuffix("@dclm"): column[i] for name, column in columns.items()}
        for i in range(len(texts))
    ]


def over(part: int, whole: int) -> float:
    return part / whole if whole else 0.0


def reference(text: str) -> dict[str, float]:
    words, lines = text.split(), pieces(text, "\n")
    hashes = text.count("#")
    ellipses = sum(map(text.count, ("...", ". . .", "…")))
    return {
        "words": sum(word[0].isalnum() for word in re.split("[ \n\r\t\v\f\0]", text) if word),
        "mean_word_length": over(sum(map(len, words)), len(words)),
        "hash_to_word_ratio": over(hashes, len(words)),
        "ellipsis_to_word_ratio": over(ellipses, len(words)),
        "symbol_to_word_ratio": over(hashes + ellipses, len(words)),
        "bullet_line_share": over(sum(line[0] in "●•*-" for line in lines), len(lines)),
        "ellipsis_line_share": over(
            sum(s.endswith(("...", ". . .", "…")) for s in lines), len(lines)
        ),
        "alphabetic_word_share": over(sum(any(map(str.isalpha, w)) for w in words), len(words)),
        "stop_words": sum(word.lower() in STOP_WORDS for word in words),
        **repeated("line", lines),
        **repeated("paragraph", pieces(text, "\n\n")),
        **ngrams([word for word in split(text) if word[0].isalnum()]),
    }  # fmt: skip


def pieces(text: str, end: str) -> list[str]:
    return [stripped for piece in text.split(end) if (stripped := piece.strip())]


def repeated(name: str, pieces: list[str]) -> dict[str, float]:
    counts = {piece: count for piece, count in Counter(pieces).items() if count > 1}
    characters = sum(len(piece) * count for piece, count in counts.items())
    return {
        f"duplicate_{name}_share": over(sum(counts.values()), len(pieces)),
        f"duplicate_{name}_character_share": over(characters, sum(map(len, pieces))),
    }


def ngrams(words: list[str]) -> dict[str, float]:
    shares = {}
    for n in range(2, 11):
        places = [tuple(words[i : i + n]) for i in range(len(words) - n + 1)]
        counts = Counter(places)
        most = max(counts.values(), default=0)
        if n < 5:
            longest = max((len("".join(g)) for g, c in counts.items() if c == most), default=0)
            characters = longest * most if most > 1 else 0
        else:
            inside = {i + k for i, g in enumerate(places) if counts[g] > 1 for k in range(n)}
            characters = sum(len(words[i]) for i in inside)
        name = "top" if n < 5 else "duplicate"
        shares[f"{name}_{n}_gram_character_share"] = over(characters, sum(map(len, words)))
    return shares


PIECES = st.sampled_from(
    [
        *("the ", "The\n", "of ", "a b ", "a b ", "c\n", "12 ", "1a ", "#", "...", ". . .", "… "),
        *(
            "\n",
            "\n\n",
            "\n\n\n",
            " ",
            "\xa0",
            "\x00",
            "\x1c",
            "\t",
            "* ",
            "● ",
            "-",
            "日本",
            "_x ",
        ),
    ]
)
TEXTS = st.lists(PIECES, max_size=40).map("".join) | st.text(max_size=20)


@given(st.lists(TEXTS, max_size=3))
@example(["", "\n", "\n\n\n", "a\n\n\nb\n\n \n\na", ". . . . .", "......", ", . .", "K\u0130 ſ"])
@settings(deadline=None, max_examples=300)
def test_any_batch_equals_the_definitions_text_by_text(texts: list[str]) -> None:
    assert measured(texts) == [reference(text) for text in texts]


# From test_repetition_filter of tests/baselines/mappers/filters/test_content_filters.py, which
# holds each value from both sides.
@pytest.mark.parametrize(
    ("text", "name", "share"),
    [
        ("Hello, World.", "duplicate_line_share", 0),
        ("Hello\nHello\n\n\n\nHello", "duplicate_line_share", 1),
        ("Hello\nHello\n\n\n\nHello", "duplicate_line_character_share", 1),
        ("Hello, World.\nHello, World.\n\nHello", "duplicate_line_share", 2 / 3),
        ("Hello, World.\nHello, World.\n\nHello", "duplicate_line_character_share", 26 / 31),
        (
            "Hello, World.\n\nHello, World.\n\nHello, World.\nHello",
            "duplicate_paragraph_share",
            2 / 3,
        ),
        (
            "Hello, World.\n\nHello, World.\n\nHello, World.\nHello",
            "duplicate_paragraph_character_share",
            26 / 45,
        ),
        ("hello", "top_2_gram_character_share", 0),
        ("hello", "duplicate_5_gram_character_share", 0),
        ("hello world hello world hello world", "top_2_gram_character_share", 1),
        ("hello world hello world hello world", "top_3_gram_character_share", 1),
        ("hello world hello world hello world", "top_4_gram_character_share", 40 / 30),
        (
            "hello      world hello apple.... world hello\n world hello",
            "top_2_gram_character_share",
            30 / 40,
        ),
        (
            "hello      world hello apple.... world hello\n world hello",
            "top_3_gram_character_share",
            30 / 40,
        ),
        (
            "hello      world hello apple.... world hello\n world hello",
            "top_4_gram_character_share",
            0,
        ),
        ("a b a b a b ab cd ab cd ab cd abc def abc def", "top_2_gram_character_share", 12 / 30),
        ("a b a b a b abc def abc def ab cd ab cd ab cd", "top_2_gram_character_share", 12 / 30),
        (
            "hello world hello\n world hello. apple world hello world hello world hello world",
            "duplicate_5_gram_character_share",
            60 / 65,
        ),
    ],
)
def test_repetition_as_dclms_tests_have_it(text: str, name: str, share: float) -> None:
    assert measured([text])[0][name] == share


@pytest.mark.parametrize("mark", ["...", ". . .", "…"])
def test_ellipsis_lines_as_dclms_tests_have_them(mark: str) -> None:
    half = f"This text has one line that ends with an ellipsis{mark}\n and one line that doesn't."
    none = f"This text has one{mark}line that ends with an ellipsis{mark}and one that doesn't."
    rows = f"This text has one{mark}{mark}\n{mark}line that ends{mark}\nand one that doesn't."
    shares = [found["ellipsis_line_share"] for found in measured([half, none, rows])]
    assert shares == [1 / 2, 0, 2 / 3]


@pytest.mark.parametrize("first", "●•*-")
@pytest.mark.parametrize("second", "●•*-")
def test_bullet_lines_as_dclms_tests_have_them(first: str, second: str) -> None:
    text = f"{first}{first} two lines\n{second} start with a bullet\n and one line doesn't."
    inner = f"This text has two lines{second} that start with a bullet{first}\n and one doesn't."
    assert [found["bullet_line_share"] for found in measured([text, inner])] == [2 / 3, 0]


def test_words_as_dclms_tests_have_them() -> None:
    found = measured(
        [
            "The best of the best",
            "the be to of and that have with",
            "Then Tom and Sally withheld bees",
            "The average word length is 4.33",
            "Hello world. \n\n\n \n\n\n This is a test.",
            "Mr. Smith bought 2.5 kilograms of fruit.",
            "This sentence contains <1,000 non-alphabetic w0rd5 within it but >1.",
        ]
    )
    assert [row["stop_words"] for row in found[:3]] == [3, 8, 1]
    assert 4 <= found[3]["mean_word_length"] <= 5
    assert [row["words"] for row in found[4:6]] == [6, 7]
    assert 0.8 <= found[6]["alphabetic_word_share"] < 0.9


def test_symbols_as_dclms_tests_have_them() -> None:
    # One hash sign and one ellipsis: neither alone exceeds 0.25 of four to eight words, both do.
    texts = ["#hashtags and ellipses both count" + mark for mark in ("...", "…", ". . .")]
    found = measured(texts)
    assert [row["symbol_to_word_ratio"] for row in found] == [2 / 5, 2 / 5, 2 / 7]
    assert [row["hash_to_word_ratio"] for row in found] == [1 / 5, 1 / 5, 1 / 7]
    assert measured(["#hashtags #on #every #word"])[0]["symbol_to_word_ratio"] == 1
