"""Texts as RedPajama-V2 and Marin read them before they shingle: words parted by spaces."""

from __future__ import annotations

import string
import unicodedata

MARIN_CHARACTERS = 500_000
"""Marin reads so many characters of a text (its `text_cap_chars`)."""

_PUNCTUATION: dict[int, str | None] = dict.fromkeys(map(ord, string.punctuation))
_SPACES: dict[int, str | None] = {code: " " for code in range(0x3001) if chr(code).isspace()}
_NO_PUNCTUATION = _PUNCTUATION | _SPACES
_NO_PUNCTUATION_RUST = {
    code: char for code, char in _NO_PUNCTUATION.items() if not 0x1C <= code <= 0x1F
}
"""Rust's white space is Unicode's property, Python's has four separators more."""


def redpajama(text: str) -> str:
    """RedPajama-V2's `normalize` (app/src/utilities/text/normalization.py): the same words.

    ASCII punctuation is deleted, letters become small, then NFD. White space is not squeezed.
    """
    return unicodedata.normalize("NFD", text.translate(_NO_PUNCTUATION).lower())


def marin(text: str) -> str:
    """Marin's `CleanText` (rust/dupekit/src/minhash_ops.rs) of what it reads: the same words.

    Letters become small, ASCII punctuation is deleted. White space is not squeezed.
    """
    return text[:MARIN_CHARACTERS].lower().translate(_NO_PUNCTUATION_RUST)


def unchanged(text: str) -> str:
    """The words of a text as it is."""
    return " ".join(text.split())
