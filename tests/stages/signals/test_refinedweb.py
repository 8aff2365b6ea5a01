"""RefinedWeb's line corrections: DCLM's own test cases, and a plain version of its modifiers."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from stages.signals.counting import classify
from stages.signals.line_views import LINE_SIGNALS, LineView, make_line_views
from stages.signals.refinedweb import COUNTERS, fold_code, lower_code
from stages.text.batch import split_texts
from tests.stages.signals.line_texts import edited_texts

COUNTER = re.compile(rf"^\W*\d(?:,|\.|\d)*(?:K|k|M|m|B|b)?\s+(?:{'|'.join(COUNTERS)})\W*$")
PIECES = (r"\s?(?:items in cart)", r"\s?(?:read more...)$", r"^(?:sign-in)\s?")

FRAGMENTS = (
    *(
        "\n",
        "\n",
        "\n",
        "\n\n",
        " ",
        "  ",
        "\t",
        "\r",
        "\x0b",
        "\x00",
        "\u3000",
        "word",
        "two words",
    ),
    *(
        "Ab",
        "ABC",
        "ÀÉ",
        "ǅ",
        "Ⅷ",
        "12",
        "½",
        "٣",
        "3 likes",
        "3,1K views!",
        "12\u212a  shares",
        "5b",
    ),
    *("items in cart", " Items In Cart", "\u0130tem\u017f \u0131n cart", "items in", " cart"),
    *("Read more...", " read more", "...", "»»»", "Sign-in", " sign-in ", "\u017fıgn-in x", "-"),
    *("a b c d e f g", "one two three", "comments", "7 ", ".", "_"),
)
"""Pieces of text at which the rules part ways."""


def corrected(text: str) -> str:
    """The modifiers of `dclm_baseline_refinedweb.yaml`, each over the whole page."""

    def kept_if(page: str, keep: Callable[[str], bool]) -> str:
        return "\n".join(line for line in page.split("\n") if not line or keep(line))

    page = kept_if(text, lambda line: sum(map(str.isupper, line)) / len(line) <= 0.5).strip()
    page = kept_if(page, lambda line: sum(map(str.isdigit, line)) / len(line) <= 0.999999).strip()
    page = kept_if(page, lambda line: not COUNTER.search(line.lower())).strip()
    page = kept_if(page, lambda line: len(line.split()) >= 2)
    for piece in PIECES:
        lines = []
        for line in page.split("\n"):
            cut = re.sub(piece, "", line, flags=re.I) if len(line.split()) <= 10 else line
            if not line or cut.strip():
                lines.append(cut)
        page = "\n".join(lines).strip()
    return page


def words(text: str) -> int:
    """fastText's tokens that begin with a letter or digit."""
    return sum(word[0].isalnum() for word in re.split("[ \n\r\t\v\f\0]+", text) if word)


def view_of(*texts: str) -> LineView:
    return make_line_views(split_texts(texts), ["refinedweb"], split_texts)[0]


def share_of(text: str) -> float:
    return float(view_of(text).signals["refinedweb/removed_word_share"][0])


@settings(max_examples=500, deadline=None)
@given(st.lists(st.lists(st.sampled_from(FRAGMENTS), max_size=24).map("".join), max_size=4))
@example([""])
@example(
    [
        "items in cart \x0b two words",
        "a b items in cart\tRead more...  ",
        " Sign-in items in cart x",
    ]
)
@example(["\u3000two words"])
@example(["x y\n 12 ", " 12 \nx y", "12 \nx y", "a b\nA items in cart"])
def test_pages_equal_dclms(texts: list[str]) -> None:
    view = view_of(*texts)
    for row, (text, edited) in enumerate(zip(texts, edited_texts(view, texts), strict=True)):
        expected, before = corrected(text), words(text)
        assert edited == expected
        share = (before - words(expected)) / before if before else 1.0
        # DCLM's share is below 0 where a cut makes a word of what was none; ours is 0 there.
        assert view.signals["refinedweb/removed_word_share"][row] == max(share, 0)


@pytest.mark.parametrize("counter", COUNTERS)
def test_counters_go(counter: str) -> None:
    # dclm: tests/baselines/mappers/modifiers/test_modifiers.py, test_counter_line_modifier.
    sentence = "This line does not contain a counter."
    text = f"3 {counter}\n3,000 {counter}\n123K {counter}!\n 5.1M   {counter}  \n{sentence}"
    texts = [text, f"It has 3 {counter}\n\n3 {counter}", f"3 {counter} now"]
    view = view_of(*texts)
    assert edited_texts(view, texts) == [sentence, f"It has 3 {counter}", f"3 {counter} now"]
    labels = {view.cuts.label_names[label] for label in view.cuts.labels}
    assert labels == {"counter", "white_space"}


@pytest.mark.parametrize(
    ("text", "left", "label"),
    [
        # Half capitals stay; white space counts, but not at the ends of the page.
        ("ABcd EFgh\nABCd EFgh", "ABcd EFgh", "capitals"),
        ("AB C d e\nx y\nABC d", "AB C d e\nx y", "capitals"),
        ("1234\n123 4\nx y", "123 4\nx y", "digits"),
        (" 12\nx y", "x y", "digits"),
        ("x y\nword\n\n \ntwo words", "x y\n\ntwo words", "few_words"),
        # dclm: test_substring_line_modifier, with the case, place and length of each.
        ("You have 7 items in cart right now", "You have 7 right now", "items_in_cart"),
        ("a b c d e f g items in cart\nx y", "a b c d e f g\nx y", "items_in_cart"),
        (
            "Please do read more...\nRead more...and find out",
            "Please do\nRead more...and find out",
            "read_more",
        ),
        ("sign-in for full access\nhow to sign-in", "for full access\nhow to sign-in", "sign_in"),
        ("Go on and read more »»\nx y", "Go on and\nx y", "read_more"),
    ],
)
def test_each_rule_says_why(text: str, left: str, label: str) -> None:
    view = view_of(text)
    assert edited_texts(view, [text]) == [left]
    assert label in [view.cuts.label_names[number] for number in view.cuts.labels]


def test_lines_of_more_than_ten_words_keep_their_pieces() -> None:
    ten, eleven = "a b c d e f g items in cart", "a b c d e f g h items in cart"
    text = f"{ten}\n{eleven}\nx y"
    assert edited_texts(view_of(text), [text]) == [f"a b c d e f g\n{eleven}\nx y"]


def test_the_share_lies_on_either_side_of_five_percent() -> None:
    # As in dclm's test_word_removal_ratio_filter: 5 words of 100 may go, 6 may not.
    assert share_of("two words\n" * 47 + "one more\nA\nB\nC\nD\n") == 4 / 100
    assert share_of("two words and\n" * 31 + "two words\nA\nB\nC\nD\nE") == 5 / 100
    assert share_of("two words\n" * 47 + "A\nB\nC\nD\nE\nF") == 6 / 100
    assert share_of("...") == share_of("") == 1.0


def test_only_four_characters_beyond_ascii_pass_for_letters() -> None:
    letters = "itemsnarcdog"
    for code in range(0x110000):
        char = chr(code)
        if code < 128 or code in (0x130, 0x131, 0x17F, 0x212A):
            for letter in letters:
                matches = re.fullmatch(letter, char, re.I) is not None
                assert (fold_code(code) == ord(letter)) == matches
        else:
            assert fold_code(code) == lower_code(code) == code
    pattern = re.compile(f"[{letters}]", re.I)
    every = "".join(map(chr, range(0x110000)))
    assert {m[0] for m in pattern.finditer(every) if not m[0].isascii()} <= set("İıſ\u212a")


def test_character_classes_are_pythons() -> None:
    from stages.signals import counting

    codes = np.arange(0x20000, dtype=np.uint32)
    every = "".join(map(chr, codes))
    bits = classify(split_texts([every])).classes
    for bit, pattern in (
        (counting.SPACE, r"\s"),
        (counting.DECIMAL, r"\d"),
        (counting.WORD, r"\w"),
    ):
        expected = [match.start() for match in re.finditer(pattern, every)]
        assert np.flatnonzero(bits[codes] & bit).tolist() == expected
    breaks = [code for code in range(0x20000) if len(f"a{chr(code)}b".splitlines()) == 2]
    assert np.flatnonzero(bits[codes] & counting.BREAK).tolist() == breaks
    assert (bits[codes] & counting.DIGIT > 0).tolist() == list(map(str.isdigit, every))
    assert (bits[codes] & counting.UPPER > 0).tolist() == list(map(str.isupper, every))


def test_no_text_is_too_odd() -> None:
    texts = [
        *("", " ", "\n", "\x00", "\ud800", "x" * 10**6, "3 " * 10**6, "\n" * 10**6, "1" * 10**6),
        *("items in cart" * 10**4, "Two words.\n" * 10**5, " " * 10**6 + "x y" + " " * 10**6),
    ]
    view = view_of(*texts)
    assert np.isfinite(view.signals["refinedweb/removed_word_share"]).all()
    edited = edited_texts(view, texts)
    assert edited[-1] == "x y"
    assert edited[-2] == texts[-2].rstrip("\n")
    assert edited[6] == texts[6].strip()


def test_the_signal_is_described() -> None:
    assert list(view_of().signals) == [s.name for s in LINE_SIGNALS if s.view == "refinedweb"]
