"""The default word splitter: Unicode words and symbols, no dictionary, no language model.

A word is a run of letters, digits, marks and underscores. Inside a word an apostrophe, a full stop
("e.g", "3.14", "example.com") and a comma between digits ("1,000") do not break it, as in UAX #29
(WB6-WB12), except that a stop after a small and before a capital letter does ("end.Next"), since
crawled text loses spaces. Scripts without spaces: each Han, Hiragana, Thai, Lao, Khmer or Myanmar
letter is a word with its marks; Katakana runs are words. Everything else that is not white space is
a token of one character; runs of full stops or hyphens ("...", "--") are one token.

Tokens never overlap, and together hold every character that is not white space.
"""

from __future__ import annotations

import re

import regex

_ALONE = r"\p{Han}\p{Hiragana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}"
_LETTER = rf"[\w--[{_ALONE}]]"
_STOP = r"(?<!\p{Ll})\.|\.(?!\p{Lu})"

_TOKEN = regex.compile(
    rf"{_LETTER}+(?:(?:['’]|{_STOP}|(?<=\p{{Nd}}),(?=\p{{Nd}})){_LETTER}+)*"
    rf"|[{_ALONE}]\p{{M}}*"
    r"|\.{2,}|-{2,}"
    r"|[^\s\x1c-\x1f]",
    flags=regex.VERSION1,
)
_ASCII_TOKEN = re.compile(
    r"[A-Za-z0-9_]+"
    r"(?:(?:'|(?<![a-z])\.|\.(?![A-Z])|(?<=[0-9]),(?=[0-9]))[A-Za-z0-9_]+)*"
    r"|\.{2,}|-{2,}"
    r"|\S"
)
"""The same rules on ASCII text, where the standard library is several times faster."""


def words(text: str) -> list[str]:
    """The tokens of `text` in order: words, and symbols one by one. Empty for blank text."""
    return (_ASCII_TOKEN if text.isascii() else _TOKEN).findall(text)


def word_spans(text: str) -> list[tuple[int, int]]:
    """Where those tokens lie: characters [start, end) of each."""
    return [match.span() for match in (_ASCII_TOKEN if text.isascii() else _TOKEN).finditer(text)]
