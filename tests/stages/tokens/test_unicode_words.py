"""Words by UAX #29: Unicode's own test cases, and its rules written down one by one."""

from __future__ import annotations

from itertools import pairwise, takewhile

import pytest
import regex
from hypothesis import given, settings
from hypothesis import strategies as st

from stages.tokens.fertility import find_unicode_words

WORDLIKE = regex.compile(r"[\p{Alphabetic}\p{N}]")

# Of WordBreakTest.txt (https://www.unicode.org/Public/15.0.0/ucd/auxiliary/), "|" where it has a
# boundary. All 1,823 of its cases were tried; one differs, since U+2701 is no longer
# Extended_Pictographic.
OFFICIAL = [
    "\r\n|a|\n|\u0308", "A|:|:|A", "A00A", "0|,|,|0", "A_0_\u3031_", "A__A", "a|  |b",
    "\U0001f1e6\U0001f1e7|\U0001f1e8|b", "a|\U0001f1e6\U0001f1e7|\U0001f1e8|b",
    "a|\U0001f1e6\U0001f1e7\u200d|\U0001f1e8|b", "a|\U0001f1e6\u200d\U0001f1e7|\U0001f1e8|b",
    "a|\U0001f1e6\U0001f1e7|\U0001f1e8\U0001f1e9|b", "\U0001f1e6|\u0041", "\u3031\u0308|a|:",
    "a\u0308\u200d\u0308b", "1|,|:|1", "1_a|.|:|1", "a|'\u2060\u0308|0",
    "a'a|,", "a'\u2060\u0308A", "a|'\u0308|1|:", "1,1|'", "1,\u03080", "1|'\u0308|a\u2060",
    "a\u2060\u0308|\u3031", "a\u2060\u0308_", "_\u0308a|'", "\u05d0a|'\u2060", "a|,|a\u2060",
    "\x01|a|'\u2060", "\n|\u0308|1|,", " \u0308|1|:",
]  # fmt: skip

ODD = st.text(
    alphabet=st.one_of(
        st.sampled_from(
            "aZ19_.,:;'’\"· \n\r\x85\x00éßאבע日あカ゛ー한ไนั้ကहि़ٱ١²ͅ🇦🇧"
            "\u200d\u200e\xad\u0301😀👍🏽🛑\u202f"
        ),
        st.characters(),
    ),
    max_size=40,
)

CLASSES = (
    *("CR", "LF", "Newline", "Extend", "Format", "ZWJ", "WSegSpace", "Regional_Indicator"),
    *("ALetter", "Hebrew_Letter", "Numeric", "Katakana", "ExtendNumLet"),
    *("Single_Quote", "Double_Quote", "MidNumLet", "MidLetter", "MidNum"),
)


def class_of(char: str) -> str:
    found = (name for name in CLASSES if regex.match(rf"\p{{WB={name}}}", char))
    return next(found, "Other")


def breaks(text: str, at: int) -> bool:
    """Whether UAX #29 has a word boundary before the character at `at` > 0, rule by rule."""
    ignored, lines = {"Extend", "Format", "ZWJ"}, {"CR", "LF", "Newline"}
    letters = {"ALetter", "Hebrew_Letter"}
    middle = {"MidLetter", "MidNumLet", "Single_Quote"}
    digits = {"MidNum", "MidNumLet", "Single_Quote"}
    of = [class_of(char) for char in text]
    before, here = of[at - 1], of[at]
    if (before, here) == ("CR", "LF"):  # WB3
        return False
    if {before, here} & lines:  # WB3a, WB3b
        return True
    if before == "ZWJ" and regex.match(r"\p{Extended_Pictographic}", text[at]):  # WB3c
        return False
    if before == here == "WSegSpace" or here in ignored:  # WB3d, WB4
        return False
    # WB4: a mark takes the place of nothing, unless it begins a text or line.
    kept = [i for i, name in enumerate(of) if name not in ignored or i == 0 or of[i - 1] in lines]
    left = [of[i] for i in kept if i < at]
    right = [name for name in of[at + 1 :] if name not in ignored]
    one, two = left[-1], left[-2] if len(left) > 1 else ""
    after = right[0] if right else ""
    word = letters | {"Numeric"}
    return not (
        (one in word and here in word)  # WB5, WB8, WB9, WB10
        or (one in letters and here in middle and after in letters)  # WB6
        or (two in letters and one in middle and here in letters)  # WB7
        or (one == "Hebrew_Letter" and here == "Single_Quote")  # WB7a
        or (one == after == "Hebrew_Letter" and here == "Double_Quote")  # WB7b
        or (two == here == "Hebrew_Letter" and one == "Double_Quote")  # WB7c
        or (two == here == "Numeric" and one in digits)  # WB11
        or (one == after == "Numeric" and here in digits)  # WB12
        or one == here == "Katakana"  # WB13
        or (one in word | {"Katakana", "ExtendNumLet"} and here == "ExtendNumLet")  # WB13a
        or (one == "ExtendNumLet" and here in word | {"Katakana"})  # WB13b
        or (
            one == here == "Regional_Indicator"  # WB15, WB16
            and sum(1 for _ in takewhile("Regional_Indicator".__eq__, reversed(left))) % 2 == 1
        )
    )


def reference(text: str) -> list[str]:
    edges = [0, *(at for at in range(1, len(text)) if breaks(text, at)), len(text)]
    parts = [text[start:end] for start, end in pairwise(edges)]
    return [part for part in parts if WORDLIKE.search(part)]


def words_of(*texts: str) -> list[list[str]]:
    found, joined = find_unicode_words(texts), "".join(texts)
    split: list[list[str]] = [[] for _ in texts]
    for text, start, end in zip(found.text, found.starts, found.ends, strict=True):
        assert found.texts[text] <= start < end <= found.texts[text + 1]
        split[text].append(joined[start:end])
    return split


@pytest.mark.parametrize("case", OFFICIAL, ids=ascii)
def test_boundaries_are_those_of_unicodes_own_cases(case: str) -> None:
    expected = [part for part in case.split("|") if WORDLIKE.search(part)]
    assert words_of(case.replace("|", "")) == [expected]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", []),
        ("Don't stop… 3.14 or 1,000,000!", ["Don't", "stop", "3.14", "or", "1,000,000"]),
        ("well-known e.g. example.com", ["well", "known", "e.g", "example.com"]),
        ("日本語のテスト", ["日", "本", "語", "の", "テスト"]),
        ("ไทยนี้", ["ไ", "ท", "ย", "นี้"]),
        ("हिन्दी भाषा", ["हिन्दी", "भाषा"]),
        ('צה"ל', ['צה"ל']),
        ("🇩🇪Deutschland 👍", ["Deutschland"]),
    ],
)
def test_words_hold_a_letter_or_a_digit(text: str, words: list[str]) -> None:
    assert words_of(text) == [words]


@pytest.mark.full
@given(st.lists(ODD, max_size=4))
@settings(deadline=None, max_examples=300)
def test_words_of_a_batch_are_those_of_the_rules_one_by_one(texts) -> None:
    assert words_of(*texts) == [reference(text) for text in texts]
