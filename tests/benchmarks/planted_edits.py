"""What happens to a page between two crawls: the edits that turn an original into a near-duplicate.

A document is a header, paragraphs of sentences, and a footer. Edits of content change its shingles:
sentences dropped, inserted or swapped, words dropped or swapped, another header or footer. Edits of
form leave the words what they are for a reader, and for a comparison that folds text rightly: case,
punctuation, quotation marks, full-width letters, accents composed or not.
"""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass
from random import Random

LEAST_RATE, GREATEST_RATE = 0.005, 0.2
"""Share of a text that one edit touches; drawn log-uniformly between the two."""
WORDS_OF_A_SHINGLE = 5
"""One changed word changes so many shingles: words are edited at a rate that many times lower."""


@dataclass
class Page:
    """A document in its parts; `paragraphs` hold sentences, `apart` stands between them."""

    header: str
    paragraphs: list[list[str]]
    footer: str
    apart: str

    def text(self) -> str:
        """The document; empty parts leave nothing behind."""
        middle = (" ".join(sentences) for sentences in self.paragraphs if sentences)
        return self.apart.join(part for part in (self.header, *middle, self.footer) if part)


@dataclass(frozen=True)
class Supply:
    """Where an edit finds other text."""

    sentence: Callable[[Random], str]
    edges: Callable[[Random], tuple[str, str]]
    """Header and footer of some site."""


Edit = Callable[[Page, float, Random, Supply], None]


def edited(page: Page, rng: Random, supply: Supply) -> tuple[Page, list[str]]:
    """A near-duplicate of `page` and the names of its edits.

    There are one or two of content and up to two of form; now and then one of form alone.
    """
    copy = Page(page.header, [list(part) for part in page.paragraphs], page.footer, page.apart)
    contents = rng.choices((0, 1, 2), (0.1, 0.6, 0.3))[0]
    forms = rng.choices((0, 1, 2), (0.5, 0.3, 0.2))[0] if contents else 1
    names = rng.sample(sorted(CONTENT), contents) + rng.sample(sorted(FORM), forms)
    for name in names:
        rate = math.exp(rng.uniform(math.log(LEAST_RATE), math.log(GREATEST_RATE)))
        (CONTENT | FORM)[name](copy, rate, rng, supply)
    return copy, names


def _places(page: Page) -> list[tuple[int, int]]:
    return [(i, j) for i, sentences in enumerate(page.paragraphs) for j in range(len(sentences))]


def _count(total: int, rate: float) -> int:
    return max(1, round(total * rate))


def drop_sentences(page: Page, rate: float, rng: Random, supply: Supply) -> None:
    """Sentences go; one at least stays."""
    places = _places(page)
    for i, j in rng.sample(places, min(_count(len(places), rate), len(places) - 1)):
        page.paragraphs[i][j] = ""
    page.paragraphs = [[one for one in part if one] for part in page.paragraphs]
    page.paragraphs = [part for part in page.paragraphs if part]


def insert_sentences(page: Page, rate: float, rng: Random, supply: Supply) -> None:
    """Foreign sentences come in."""
    for _ in range(_count(len(_places(page)), rate)):
        part = rng.choice(page.paragraphs)
        part.insert(rng.randrange(len(part) + 1), supply.sentence(rng))


def swap_sentences(page: Page, rate: float, rng: Random, supply: Supply) -> None:
    """Pairs of sentences change places."""
    places = _places(page)
    if len(places) < 2:
        return
    for _ in range(_count(len(places), rate / 2)):
        (a, b), (c, d) = rng.sample(places, 2)
        parts = page.paragraphs
        parts[a][b], parts[c][d] = parts[c][d], parts[a][b]


def change_words(page: Page, rate: float, rng: Random, supply: Supply) -> None:
    """Words are dropped or change places with the next one."""
    places = _places(page)
    words = sum(page.paragraphs[i][j].count(" ") + 1 for i, j in places)
    for _ in range(_count(words, rate / WORDS_OF_A_SHINGLE)):
        i, j = rng.choice(places)
        found = page.paragraphs[i][j].split(" ")
        if len(found) < 4:
            continue
        at = rng.randrange(len(found) - 1)
        if rng.random() < 0.5:
            del found[at]
        else:
            found[at : at + 2] = found[at + 1], found[at]
        page.paragraphs[i][j] = " ".join(found)


def change_edges(page: Page, rate: float, rng: Random, supply: Supply) -> None:
    """Header, footer or both become those of another site, or go; `rate` means nothing here."""
    header, footer = supply.edges(rng)
    which = rng.randrange(4)
    if which in (0, 2):
        page.header = header
    if which in (1, 2):
        page.footer = footer
    if which == 3:
        page.header = page.footer = ""


def _sentences(page: Page, rate: float, rng: Random, change: Callable[[str], str]) -> None:
    places = _places(page)
    for i, j in rng.sample(places, _count(len(places), rate)):
        page.paragraphs[i][j] = change(page.paragraphs[i][j])


def _sentences_or_all(page: Page, rate: float, rng: Random, change: Callable[[str], str]) -> None:
    """Change a share of the sentences or, once in three times, the whole document."""
    everywhere = rng.random() < 1 / 3
    places = _places(page)
    chosen = places if everywhere else rng.sample(places, _count(len(places), rate))
    for i, j in chosen:
        page.paragraphs[i][j] = change(page.paragraphs[i][j])
    if everywhere:
        page.header, page.footer = change(page.header), change(page.footer)


def change_case(page: Page, rate: float, rng: Random, supply: Supply) -> None:
    """Sentences in capitals, or in small letters."""
    _sentences_or_all(page, rate, rng, rng.choice((str.upper, str.lower)))


def change_punctuation(page: Page, rate: float, rng: Random, supply: Supply) -> None:
    """Marks between words are left out, spaced, or become others."""

    def bare(sentence: str) -> str:
        return sentence.replace(", ", " ").replace("; ", " ").replace(": ", " ").rstrip(".!?")

    def spaced(sentence: str) -> str:
        return sentence.replace(", ", " , ").replace("; ", " \u2014 ").replace(". ", " . ")

    def other(sentence: str) -> str:
        ended = sentence[:-1] + "\u2026" if sentence.endswith(".") else sentence
        return ended.replace(", ", "; ").replace(" (", " [").replace(") ", "] ")

    _sentences_or_all(page, rate, rng, rng.choice((bare, spaced, other)))


_CURLY = (("'", "\u2019"), (' "', " \u201c"), ('"', "\u201d"))
_STRAIGHT = str.maketrans({"\u2018": "'", "\u2019": "'", "\u201c": '"', "\u201d": '"'})


def change_quotes(page: Page, rate: float, rng: Random, supply: Supply) -> None:
    """Straight quotation marks and apostrophes become curly in the whole document, or back."""
    is_curly = "\u2019" in page.text()

    def turned(part: str) -> str:
        if is_curly:
            return part.translate(_STRAIGHT)
        if part.startswith('"'):
            part = "\u201c" + part[1:]
        for straight, curly in _CURLY:
            part = part.replace(straight, curly)
        return part

    page.header, page.footer = turned(page.header), turned(page.footer)
    page.paragraphs = [[turned(one) for one in part] for part in page.paragraphs]


_FULL = {code: code + 0xFEE0 for code in range(0x21, 0x7F) if chr(code).isalnum()}


def full_width(page: Page, rate: float, rng: Random, supply: Supply) -> None:
    """Letters and digits of sentences in their full-width forms, as in East Asian typesetting."""
    _sentences(page, rate, rng, lambda sentence: sentence.translate(_FULL))


_ACCENT = {
    vowel: vowel + mark
    for vowel, mark in zip("aeiou", "\u0301\u0300\u0308\u0302\u0304", strict=True)
}


def change_marks(page: Page, rate: float, rng: Random, supply: Supply) -> None:
    """Accents come onto words, composed with their letters or as marks of their own."""
    composed = rng.random() < 0.5

    def accented(sentence: str) -> str:
        words = sentence.split(" ")
        at = rng.randrange(len(words))
        words[at] = "".join(_ACCENT.get(letter, letter) for letter in words[at])
        changed = " ".join(words)
        return unicodedata.normalize("NFC" if composed else "NFD", changed)

    _sentences(page, rate, rng, accented)


CONTENT: dict[str, Edit] = {
    "drop": drop_sentences,
    "insert": insert_sentences,
    "swap": swap_sentences,
    "words": change_words,
    "edges": change_edges,
}
FORM: dict[str, Edit] = {
    "case": change_case,
    "punctuation": change_punctuation,
    "quotes": change_quotes,
    "full width": full_width,
    "marks": change_marks,
}
