"""CCNet's text normalisation, before perplexity (Wenzek et al. 2020, cc_net/text_normalizer.py).

In its order: lower case; accents dropped (NFD without Mn); each digit becomes 0; typographic and
full-width punctuation becomes ASCII; control characters go, tabs among them. CCNet's table maps
the full-width digit one to a quotation mark, a slip that datatrove and DCLM carry along; it is not
here, and makes no difference: digits are zeros before the table is read.
"""

from __future__ import annotations

import re
import unicodedata

_PUNCTUATION: dict[str, str] = {
    **dict.fromkeys("，、", ","), "。": ".", "．": ". ", "…": "...", **dict.fromkeys("：∶", ":"),
    "；": ";", "？": "?", "！": "!", "％": "%", "（": "(", "）": ")", "【": "[", "】": "]",
    "〈": "<", "〉": ">",
    **dict.fromkeys("„”“«»」「《》", '"'), **dict.fromkeys("´’", "'"),
    **dict.fromkeys("–━►", "-"), "—": " - ", "～": "~",
}  # fmt: skip

_ASCII: dict[int, str] = {
    **dict.fromkeys([*range(10), *range(11, 32), *range(127, 160)], ""),
    **dict.fromkeys(map(ord, "0123456789"), "0"),
}
_ANY = {**_ASCII, **{ord(char): plain for char, plain in _PUNCTUATION.items()}}
_DIGIT = re.compile(r"\d")


def normalise_lines(text: str) -> str:
    """Each line of `text` as CCNet normalises it; lines end at line feeds alone.

    Any string is fine. White space at the ends of lines, which CCNet strips, stays.
    """
    lowered = text.lower()
    if lowered.isascii():
        return lowered.translate(_ASCII)
    plain = unicodedata.normalize("NFD", lowered)
    accents = {ord(char): "" for char in set(plain) if unicodedata.category(char) == "Mn"}
    return _DIGIT.sub("0", plain).translate({**_ANY, **accents})


def normalise_text(text: str) -> str:
    """`text` as one line, as CCNet's own pipeline had it: line feeds go like other controls.

    So the last word of a line and the first of the next become one.
    """
    return normalise_lines(text.strip()).replace("\n", "")
