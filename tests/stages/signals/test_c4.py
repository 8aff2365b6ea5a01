"""C4's line rules against plain versions of the three programs, line by line and page by page."""

from __future__ import annotations

import io
import json
import random
import re
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
import zstandard
from hypothesis import example, given, settings
from hypothesis import strategies as st

from stages.signals.c4 import C4_VARIANTS
from stages.signals.line_views import (
    LINE_SIGNALS,
    count_sentences_within,
    make_line_views,
)
from stages.signals.quality import measure_lines
from stages.text.batch import PUNCTUATION, SENTENCE_END, split_texts
from stages.text.splitters import Splitter
from tests.stages.signals.line_texts import edited_texts

CITATION = re.compile(r"\[\d*]|\[edit]|\[citation needed]")
POLICIES = (
    *("terms of use", "privacy policy", "cookie policy"),
    *("uses cookies", "use of cookies", "use cookies"),
)
VIEWS = [variant.view for variant in C4_VARIANTS]

FRAGMENTS = (
    *("It rains today and tomorrow.", "a b c", "a b", "one two three four five", "Yes?", "He said"),
    *(
        ".",
        "...",
        "…",
        "!",
        "?",
        '"',
        "'",
        ".)",
        ".  )",
        " ",
        "  ",
        "\t",
        "\u3000",
        "\x00",
        "\ud800",
    ),
    *("\n", "\n", "\n", "\r\n", "\r", "\x0b", "\x1c", "\x85", "\u2028", "\n\n", " \n "),
    *("[1]", "[]", "[edit]", "[citation needed]", "[citation  needed]", "[١]", "[[2]]", "[x", "]"),
    *(" [1] [2] [3]", "lorem ipsum", "Lorem [4]Ipsum", "JavaScript", "java[5]script", "{", "[6]{"),
    *("Privacy Policy", "uses coo\u212aies", "terms of [7]use", "x" * 999, "İ", "word"),
)
"""Pieces of text at which the rules part ways."""


class Page(NamedTuple):
    """What a program makes of a page: why it drops it ("" if not), the text that it leaves."""

    reason: str
    text: str
    sentences: int
    kept: int


def sentences(line: str) -> int:
    """spaCy's sentencizer, its tokens of white space included."""
    tokens = split_texts([line]).tokens
    kinds: list[int] = []
    behind = 0
    for start, end, kind in zip(tokens.starts, tokens.ends, tokens.kinds, strict=True):
        gap = line[behind:start]
        kinds += [0] * bool(gap[1:] if kinds and gap[:1] == " " else gap)
        kinds.append(kind)
        behind = end
    gap = line[behind:]
    kinds += [0] * bool(gap[1:] if kinds and gap[:1] == " " else gap)
    count, ended = int(bool(kinds)), False
    for kind in kinds:
        if kind & SENTENCE_END:
            ended = True
        elif ended and not kind & PUNCTUATION:
            count, ended = count + 1, False
    return count


def page(text: str, view: str) -> Page:
    """`clean_page` of C4's code, or datatrove's filter with and without its rule on ends."""
    of_code = view == "c4@code"
    ends = {"c4@code": '.?!"', "c4@datatrove": ".?!\"'", "c4@fineweb": ""}[view]
    kept: list[str] = []
    found = 0
    for raw in text.splitlines():
        stripped = raw.strip()
        line = CITATION.sub("", stripped)
        if any(len(word) > 1000 for word in stripped.split()):
            continue
        if ends and (not line.endswith(tuple(ends)) or line.endswith("...")):
            continue
        if len((line if of_code else stripped).split()) < (5 if of_code else 3):
            continue
        lowered = line.lower()
        if "lorem ipsum" in lowered:
            return Page("lorem_ipsum", "", 0, 0)
        if "javascript" in lowered:
            continue
        if "{" in line:
            return Page("curly_brace", "", 0, 0)
        if any(policy in lowered for policy in POLICIES):
            continue
        found += sentences(line)
        kept.append(line)
    reason = "" if found >= (3 if of_code else 5) else "few_sentences"
    return Page(reason, "\n".join(kept).strip(), found, len(kept))


def assert_equal_to_the_programs(texts: list[str]) -> set[str]:
    """Verdict, reason, text and sentences of every variant; returns the reasons that came up."""
    reasons = set()
    for view in make_line_views(split_texts(texts), VIEWS, split_texts):
        name = view.cuts.view
        for row, (text, edited) in enumerate(zip(texts, edited_texts(view, texts), strict=True)):
            expected = page(text, name)
            got = {key.split("/")[1]: values[row] for key, values in view.signals.items()}
            least = 3 if name == "c4@code" else 5
            reason = (
                "lorem_ipsum" if got["lorem_ipsum_lines"] else
                "curly_brace" if got["curly_brace_lines"] else
                "few_sentences" if got["sentences"] < least else
                ""
            )  # fmt: skip
            assert reason == expected.reason
            if reason in ("", "few_sentences"):
                assert edited == expected.text
                assert got["sentences"] == expected.sentences
                lines = len(text.splitlines())
                assert got["kept_line_share"] == (expected.kept / lines if lines else 0)
            reasons.add(reason)
    return reasons


@settings(max_examples=400, deadline=None)
@given(st.lists(st.lists(st.sampled_from(FRAGMENTS), max_size=24).map("".join), max_size=4))
@example([""])
@example(["[1] [2] [3]\na b c [4]\n [5] [6] [7] "])
@example(["a b c\x85d e f\r\ng h i\u2028", "{ a b c.\nlorem ipsum dolor sit amet."])
def test_every_variant_equals_its_program(texts: list[str]) -> None:
    assert_equal_to_the_programs(texts)


def test_real_pages_with_lines_mangled_by_seed_equal_the_programs(shared_data: Path) -> None:
    rng = random.Random(5)
    texts = []
    for name in ("en-web-c4-demo", "wikitext2-valid", "zh"):
        with (shared_data / "text" / f"{name}.jsonl.zst").open("rb") as file:
            stream = zstandard.ZstdDecompressor().stream_reader(file)
            rows = [json.loads(line)["text"][:4000] for line in io.TextIOWrapper(stream, "utf-8")]
        for text in rng.sample(rows, 40):
            pieces = text.replace(". ", ".\n").split(" ")
            for _ in range(rng.choice((0, 2, 40))):
                pieces.insert(rng.randint(0, len(pieces)), rng.choice(FRAGMENTS))
            texts.append(" ".join(pieces))
    assert assert_equal_to_the_programs(texts) == {
        *("lorem_ipsum", "curly_brace", "few_sentences", ""),
    }


@pytest.mark.parametrize(
    ("line", "code", "datatrove", "fineweb"),
    [
        ("One two three four five.", "kept", "kept", "kept"),
        ("One two three four.", "few_words", "kept", "kept"),
        ("[1] One two three four.", "few_words", "kept", "kept"),
        ("One two.", "few_words", "few_words", "few_words"),
        ("One two three four five", *["no_terminal_punctuation"] * 2, "kept"),
        ("One two three four five'", "no_terminal_punctuation", "kept", "kept"),
        ("One two three four five...", *["no_terminal_punctuation"] * 2, "kept"),
        ("One two three four five..", "kept", "kept", "kept"),
        ("One two three four five. [1]", *["no_terminal_punctuation"] * 2, "kept"),
        ("One two three four five.[1]", "kept", "kept", "kept"),
        ("One two three four " + "x" * 1000 + '"', *["long_word"] * 3),
        ("One two three four " + "x" * 999 + '"', "kept", "kept", "kept"),
        ("Lorem ipsum with JavaScript { and a privacy policy.", *["lorem_ipsum"] * 3),
        ("This JavaScript { has a privacy policy.", *["javascript"] * 3),
        ("This { page has a privacy policy.", *["curly_brace"] * 3),
        ("This page has a PRIVACY POLICY.", *["policy"] * 3),
        ("This page has a privacy-policy.", "kept", "kept", "kept"),
        ("We use coo\u212aies on this page.", *["policy"] * 3),
    ],
)
def test_the_first_check_that_fails_names_the_cut(
    line: str, code: str, datatrove: str, fineweb: str
) -> None:
    for view, label in zip(
        make_line_views(split_texts([line]), VIEWS, split_texts),
        (code, datatrove, fineweb),
        strict=True,
    ):
        cuts = view.cuts
        whole = (cuts.starts == 0) & (cuts.ends == len(line))
        found = [cuts.label_names[label] for label in cuts.labels[whole]] or ["kept"]
        assert found == [label], view.cuts.view


def test_white_space_and_other_boundaries_become_single_line_feeds() -> None:
    text = (
        " A good line here.  \r\n\n\tThe next one follows.\x85Short.\n\u2028And the last one.\u2029"
    )
    view = make_line_views(split_texts([text]), ["c4@fineweb"], split_texts)[0]
    assert edited_texts(view, [text]) == [
        "A good line here.\nThe next one follows.\nAnd the last one."
    ]
    found = [
        (text[start:end], view.cuts.label_names[label], view.cuts.replacement_names[replacement])
        for start, end, label, replacement in zip(
            view.cuts.starts,
            view.cuts.ends,
            view.cuts.labels,
            view.cuts.replacements,
            strict=True,
        )
    ]
    assert found == [
        (" ", "white_space", ""),
        ("  \r", "white_space", ""),
        ("\n\t", "white_space", ""),
        ("\x85", "line_break", "\n"),
        ("Short.\n", "few_words", ""),
        ("\u2028", "white_space", ""),
        ("\u2029", "white_space", ""),
    ]


def test_lorem_ipsum_behind_a_brace_does_not_count() -> None:
    brace, lorem = "This { line has enough words.", "Then lorem ipsum follows it here."
    texts = [f"{brace}\n{lorem}\n{brace}", f"{lorem}\n{brace}\n{lorem}", f"{brace} {lorem}"]
    signals = make_line_views(split_texts(texts), ["c4@code"], split_texts)[0].signals
    assert signals["c4@code/curly_brace_lines"].tolist() == [2, 1, 0]
    assert signals["c4@code/lorem_ipsum_lines"].tolist() == [0, 1, 1]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("Hello there. ", 1),
        ("Hello there.  ", 2),
        ("Hello there.\n", 2),
        ("  ", 1),
        ("  word", 1),
        ("Stop! ) Go on.", 2),
        ("Stop!  ) Go on.", 2),
        ("Hi there!  )", 2),
        ("Hi there! )", 1),
        ("", 0),
    ],
)
def test_sentences_as_datatrove_counts_them(line: str, expected: int) -> None:
    # Numbers: datatrove 0.10 with spaCy 3.8.18, len(split_into_sentences(line)).
    batch = split_texts([line], "spacy_english")
    assert count_sentences_within(batch, batch.offsets[:-1], batch.offsets[1:]).tolist() == [
        expected
    ]


@pytest.mark.parametrize("splitter", ["unicode", "spacy_english"])
@settings(max_examples=150, deadline=None)
@given(st.lists(st.lists(st.sampled_from(FRAGMENTS), max_size=24).map("".join), max_size=4))
@example(["[1] [2] [3]\n [4]x[5]y it is. \na b [6] c.\n[7] [8] [9]", "[1] a b c\nd e f"])
def test_fineweb_signals_are_those_of_the_edited_text(splitter: Splitter, texts: list[str]) -> None:
    split = partial(split_texts, splitter=splitter)
    view = make_line_views(split(texts), ["c4@fineweb"], split)[0]
    edited = edited_texts(view, texts)
    expected = measure_lines(edited, np.diff(split(edited).tokens.offsets))
    for name in ("newline_to_word_ratio", "filled_lines", "duplicate_filled_line_character_share"):
        assert view.signals[f"c4@fineweb/{name}"].tolist() == expected[name].tolist(), name


def test_fineweb_rules_see_the_text_that_c4_left() -> None:
    long = "This line holds more than thirty characters"
    text = f"no\n{long}.\nThree short words!\n{long}.\nno\n\n{long}"
    signals = make_line_views(split_texts([text]), ["c4@fineweb"], split_texts)[0].signals
    found = {name.split("/")[1]: values.tolist() for name, values in signals.items()}
    # Left are four lines of 44, 18, 44 and 43 characters with 8, 4, 8 and 7 tokens.
    assert found["filled_lines"] == [4]
    assert found["terminal_punctuation_line_share"] == [3 / 4]
    assert found["short_line_share"] == [1 / 4]
    assert found["duplicate_filled_line_character_share"] == [44 / (44 + 18 + 44 + 43)]
    assert found["newline_to_word_ratio"] == [3 / 27]


def test_no_text_is_too_odd() -> None:
    texts = [
        *("", " ", "\n", "\r", "\r\n", "\x00", "\ud800", "\udc00\ud800", "[", "[1", "{" * 10**5),
        *("Fine line of five words.\n" * 10**5, "\n" * 10**5, "[1" * 10**5, "x" * 10**6),
    ]
    for view in make_line_views(split_texts(texts), VIEWS, split_texts):
        assert all(np.isfinite(values).all() for values in view.signals.values())
        assert view.signals[f"{view.cuts.view}/sentences"][11] == 10**5
        edited = edited_texts(view, texts)
        assert edited[11] == texts[11].rstrip("\n")
        assert edited[-1] == ""
    assert [
        view.cuts.view for view in make_line_views(split_texts([]), VIEWS, split_texts)
    ] == VIEWS


def test_every_signal_is_described() -> None:
    names = {
        name
        for view in make_line_views(split_texts([]), VIEWS, split_texts)
        for name in view.signals
    }
    described = {s.name: s for s in LINE_SIGNALS if s.view in VIEWS}
    assert names == set(described)
    assert all(signal.view == name.split("/")[0] for name, signal in described.items())
