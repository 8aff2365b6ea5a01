"""The rules of the default splitter as one regular expression: what the compiled one must equal."""

from __future__ import annotations

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


def reference_spans(text: str) -> list[tuple[int, int]]:
    """Characters [start, end) of each token."""
    return [match.span() for match in _TOKEN.finditer(text)]
