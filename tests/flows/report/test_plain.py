"""Text of documents as a page shows it: nothing obeyed, nothing lost but what is said."""

from __future__ import annotations

import sys
import unicodedata

from flows.report.display import PLACEHOLDER, one_line, visible
from flows.report.views import TEXT, Viewer
from stages.engine.page import TextFigure


def test_escape_sequences_and_direction_marks_are_seen():
    assert visible("\x1b[31mred\x1b[0m") == "·[31mred·[0m"
    assert visible("\x00\u202egnp.exe\u2069") == "··gnp.exe·"
    assert visible("a\r\nb\tc\rd") == "a\nb\tc·d"
    assert visible("\ud800") == PLACEHOLDER


def test_only_joiners_of_all_control_and_format_characters_stay():
    kept = [
        char
        for char in map(chr, range(sys.maxunicode + 1))
        if unicodedata.category(char) in ("Cc", "Cf", "Cs", "Zl", "Zp") and visible(char) == char
    ]
    arabic_and_other_scripts = {
        char for char in kept if unicodedata.category(char) == "Cf" and char not in "\u200c\u200d"
    }
    assert {"\n", "\t", "\u200c", "\u200d"} <= set(kept)
    assert all(unicodedata.name(c, "").split()[0] in SCRIPTS for c in arabic_and_other_scripts)


SCRIPTS = {"ARABIC", "SYRIAC", "KAITHI", "EGYPTIAN", "SHORTHAND", "MUSICAL"}
"""Format characters of these belong to their script or notation, and are shown as part of it."""


def test_a_pile_of_marks_keeps_three():
    assert visible("e" + "\u0301" * 500 + "x") == "e" + "\u0301" * 3 + "x"
    assert visible("e\u0301") == "e\u0301"


def test_a_line_of_a_megabyte_is_one_short_line():
    assert one_line("a" * 1_000_000, 50) == "a" * 49 + "…"
    assert one_line(" two\n lines ", 50) == "two lines"


def test_a_long_text_is_cut_and_the_page_says_by_how_much():
    whole, cut = (Viewer().view(TextFigure("t", "a" * (TEXT + more))) for more in (0, 1234))
    assert len(whole.text) == len(cut.text) == TEXT
    assert whole.cut == ""
    assert "1,234" in cut.cut
