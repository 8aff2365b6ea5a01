"""Ingot's shingles as they are defined, in plain Python: whole strings, unbounded integers."""

from __future__ import annotations

import unicodedata

import regex

_ALONE = regex.compile(
    r"[\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}"
    "\u3006\u3031-\u3035\u303c\u30fc]",
    flags=regex.VERSION1,
)
_64 = (1 << 64) - 1
_BASE = 0xD1342543DE82EF95
_LENGTH, _MIDDLE, _LAST = 0x9E3779B97F4A7C15, 0xA0761D6478BD642F, 0xE7037ED1A0B428DB
_OTHER = 0x8EBC6AF09C88C6E3


def folded_words(text: str) -> list[str]:
    """The words of the fold of a text, from decompositions of the whole text."""
    folded = None
    while folded != text:
        folded = text
        decomposed = unicodedata.normalize("NFKD", text)
        text = "".join(char for char in decomposed if not _is_mark(char)).casefold()
    digits = (str(int(char)) if unicodedata.category(char) == "Nd" else char for char in text)
    return _words("".join(digits))


def _is_mark(char: str) -> bool:
    return unicodedata.category(char) in {"Mn", "Me", "Cf"} or unicodedata.combining(char) > 0


def _words(text: str) -> list[str]:
    words: list[str] = []
    inside = alone = False
    for char in text:
        category = unicodedata.category(char)
        if category[0] not in "LN" and category != "Mc":
            inside = alone = False
            continue
        single = category != "Mc" and category != "Nd" and _ALONE.match(char) is not None
        if inside and (category == "Mc" or not (single or alone)):
            words[-1] += char
        else:
            words.append(char)
        alone = single or (alone and category == "Mc")
        inside = True
    return words


def word_number(word: str) -> int:
    """The number of a word that is in small letters."""
    content = word.encode()
    number = len(content) * _LENGTH & _64
    while len(content) > 8:
        number = _product_halves(number ^ int.from_bytes(content[:8], "little"), _MIDDLE)
        content = content[8:]
    return _product_halves(number ^ int.from_bytes(content, "little"), _LAST)


def character_number(char: str) -> int:
    """The number of a character."""
    return _product_halves(ord(char) ^ _LENGTH, _LAST)


def shingle_numbers(tokens: list[int], ngram: int) -> list[int]:
    """The numbers of the n-grams of tokens, given the tokens' numbers."""
    width = min(ngram, len(tokens)) or 1
    numbers = []
    for start in range(len(tokens) - width + 1):
        polynomial = 0
        for token in tokens[start : start + width]:
            polynomial = (polynomial * _BASE + token) & _64
        numbers.append(_split_mix(polynomial))
    return numbers


def sequence_digest(tokens: list[int]) -> tuple[int, int]:
    """The two halves of the digest of a sequence of tokens, given the tokens' numbers."""
    placed = [token + place * _LENGTH & _64 for place, token in enumerate(tokens)]
    left = sum(map(_split_mix, placed))
    right = sum(_split_mix(token ^ _OTHER) for token in placed) & _64
    length = len(tokens) * _MIDDLE & _64
    return _split_mix(left + length & _64), _split_mix(right ^ length)


def _product_halves(left: int, right: int) -> int:
    product = left * right
    return product >> 64 ^ product & _64


def _split_mix(value: int) -> int:
    value = (value ^ value >> 30) * 0xBF58476D1CE4E5B9 & _64
    value = (value ^ value >> 27) * 0x94D049BB133111EB & _64
    return value ^ value >> 31
