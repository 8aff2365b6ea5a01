"""Ten ways in which a text comes back changed: pure functions of text, random draws and strength.

`strength` is the share of the text that an edit touches, in (0, 1]; each edit has three strengths
that occur, light, medium and heavy. Nine make a copy that a reader would call the same text; the
tenth, a template page, has the frame of a text around other content, and is no copy.
`planted_edits.py` draws several small edits of one page at a time, for corpora of near-duplicates.
"""

from __future__ import annotations

import html
import random
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

Change = Callable[[str, random.Random, float], str]
Meaning = Literal["copy", "template"]

_SENTENCE = re.compile(r"(?<=[.!?\u061f\u06d4\u0964])(?=\s)|(?<=[\u3002\uff01\uff1f])")
_NUMBER = re.compile(r"[0-9]+(?:[.,][0-9]+)*")
_DIGIT_SYSTEMS = ("\u0660", "\u06f0", "\u0966", "\u09e6", "\u0e50", "\uff10")
"""The digit zero in Arabic-Indic, Persian, Devanagari, Bengali, Thai and full-width forms."""


@dataclass(frozen=True)
class TextEdit:
    """A kind of edit: its function, what its strength is, and three strengths of it."""

    change: Change
    strength: str
    levels: tuple[float, float, float]
    meaning: Meaning = "copy"


def move_paragraph(text: str, rng: random.Random, strength: float) -> str:
    """A run of paragraphs (of sentences where there is one paragraph) stands elsewhere."""
    pieces, joint = split_paragraphs(text)
    if len(pieces) < 3:
        pieces, joint = split_sentences(text), ""
    if len(pieces) < 2:
        return text
    size = min(max(1, round(strength * len(pieces))), len(pieces) - 1)
    start = rng.randrange(len(pieces) - size + 1)
    run, rest = pieces[start : start + size], pieces[:start] + pieces[start + size :]
    places = [place for place in range(len(rest) + 1) if place != start]
    place = rng.choice(places)
    return join(rest[:place] + run + rest[place:], joint)


def split_paragraphs(text: str) -> tuple[list[str], str]:
    """The paragraphs of a text, and what stands between them."""
    joint = "\n\n" if "\n\n" in text else "\n"
    return [piece for piece in text.split(joint) if piece.strip()], joint


def split_sentences(text: str) -> list[str]:
    """The sentences of a text, with the white space before each; joined they are the text."""
    return [piece for piece in _SENTENCE.split(text) if piece]


def join(pieces: Sequence[str], joint: str) -> str:
    """Pieces in a new order; where one that began a text follows another, a space parts them."""
    parts: list[str] = []
    for piece in pieces:
        begins_bare = parts and not joint and piece[0].isascii() and not piece[0].isspace()
        parts.append(f" {piece}" if begins_bare else piece)
    return joint.join(parts).strip()


_BARS = (
    "Home | About us | Contact | Sign in",
    "Skip to main content. Menu. Search this site",
    "We use cookies to improve your experience. Accept all. Settings",
    "Share this on Facebook, Twitter or by e-mail. Print this page",
    "All rights reserved. Terms of use. Privacy policy. Imprint",
    "Subscribe to our newsletter and never miss a post",
    "Startseite | Aktuelles | Kontakt | Impressum | Datenschutz",
    "Accueil | Actualités | Mentions légales | Nous contacter",
    "Leave a comment. Your e-mail address will not be published. Required fields are marked",
    "Related posts you may like. Read more. Next page. Previous page",
    "Log in or create an account to continue. Forgot your password?",
    "Customer service. Shipping and returns. Track your order. Gift cards",
)


def add_boilerplate(text: str, rng: random.Random, strength: float) -> str:
    """Menus, notices and links around the text, `strength` times as many characters as it has."""
    bars, size = list[str](), 0
    while size < strength * len(text):
        bars.append(rng.choice(_BARS))
        size += len(bars[-1])
    cut = rng.randrange(len(bars) + 1)
    return "\n".join([*bars[:cut], text, *bars[cut:]])


def change_numbers(text: str, rng: random.Random, strength: float) -> str:
    """Numbers become others, of more or fewer digits, with or without separators."""
    numbers = ["7", "48", "1,250", "3.5", "90210", "12,400.75"]

    def other(match: re.Match[str]) -> str:
        if strength < 1 and rng.random() >= strength:
            return match[0]
        return rng.choice(numbers)

    return _NUMBER.sub(other, text)


def cut_prefix(text: str, rng: random.Random, strength: float) -> str:
    """The beginning is missing, up to the end of a word where words are parted by spaces."""
    cut = round(min(strength, 0.95) * len(text))
    space = text.find(" ", cut, cut + 40)
    return text[space + 1 if space >= 0 else cut :]


_CONFUSED = (
    *(("rn", "m"), ("m", "rn"), ("li", "h"), ("cl", "d"), ("l", "1"), ("o", "0"), ("e", "c")),
    *(("h", "b"), ("u", "n"), ("S", "5"), ("B", "8"), ("fi", "\ufb01"), ("ı", "i"), ("и", "н")),
)


def add_ocr_noise(text: str, rng: random.Random, strength: float) -> str:
    """Words are read wrongly: letters confused, dropped or doubled, words cut or run together."""
    parts = re.split(r"(\s+)", text)
    for place in range(0, len(parts), 2):
        # One draw for each seven letters, so that scripts without spaces are hit as often.
        for _ in range(max(1, len(parts[place]) // 7)):
            if parts[place] and rng.random() < strength:
                parts[place] = _misread(parts[place], rng)
    return "".join(parts)


def _misread(word: str, rng: random.Random) -> str:
    known = [pair for pair in _CONFUSED if pair[0] in word]
    at = rng.randrange(len(word))
    kind = rng.random()
    if known and kind < 0.7:
        right, wrong = rng.choice(known)
        return word.replace(right, wrong, 1)
    if kind < 0.85:
        return f"{word[:at]} {word[at:]}"
    return word[:at] + word[at + 1 :] if kind < 0.95 else word[: at + 1] + word[at:]


def translate_digits(text: str, rng: random.Random, strength: float) -> str:
    """The digits of numbers become those of another script, one for the whole text."""
    zero = ord(rng.choice(_DIGIT_SYSTEMS))
    digits = {ord("0") + value: zero + value for value in range(10)}
    return _NUMBER.sub(
        lambda number: number[0].translate(digits) if rng.random() < strength else number[0], text
    )


def reorder_sentences(text: str, rng: random.Random, strength: float) -> str:
    """A share of the sentences change places among each other."""
    pieces = split_sentences(text)
    size = min(max(2, round(strength * len(pieces))), len(pieces))
    places = rng.sample(range(len(pieces)), size)
    for place, other in zip(places, [pieces[p] for p in places[1:] + places[:1]], strict=True):
        pieces[place] = other
    return join(pieces, "")


def fill_template(text: str, rng: random.Random, strength: float) -> str:
    """Another page of the template: `strength` of the words, at both ends, around other content.

    The other content is the page's own words in no order, so that not even its 2-grams are kept;
    of a text without spaces its characters.
    """
    spaced = text.count(" ") > len(text) / 30
    units = text.split(" ") if spaced else list(text)
    kept = round(strength * len(units))
    before = rng.randrange(kept + 1)
    middle = units[before : len(units) - (kept - before)]
    rng.shuffle(middle)
    whole = units[:before] + middle + units[len(units) - (kept - before) :]
    return (" " if spaced else "").join(whole)


def add_markup(text: str, rng: random.Random, strength: float) -> str:
    """HTML or Markdown around it, words set off, and in HTML what must be escaped."""
    as_html = rng.random() < 0.5
    words = text.split(" ")
    places = rng.sample(range(len(words)), max(1, round(strength * len(words))))
    if as_html:
        words = [html.escape(word, quote=True) for word in words]
    for place in places:
        before, after = rng.choice(_HTML if as_html else _MARKDOWN)
        words[place] = f"{before}{words[place]}{after}"
    if as_html:
        return f'<li class="q{len(words)}"><p>{" ".join(words)}</p></li>'
    return "> ### " + " ".join(words).replace("\n", "\n> ") + "\n> ---"


_HTML = (("<b>", "</b>"), ("<em>", "</em>"), ('<span class="x">', "</span>"), ("", "<br/>"))
_MARKDOWN = (("**", "**"), ("_", "_"), ("`", "`"), ("[", "](#)"))


def change_case(text: str, rng: random.Random, strength: float) -> str:
    """Sentences in capitals, in small letters, or with capitals at the beginning of each word."""
    change = rng.choice((str.upper, str.lower, str.title))
    pieces = split_sentences(text)
    count = min(max(1, round(strength * len(pieces))), len(pieces))
    for place in rng.sample(range(len(pieces)), count):
        pieces[place] = change(pieces[place])
    return "".join(pieces)


EDITS: dict[str, TextEdit] = {
    "paragraph moved": TextEdit(move_paragraph, "paragraphs moved", (0.05, 0.2, 0.5)),
    "boilerplate": TextEdit(add_boilerplate, "characters added", (0.05, 0.2, 1.0)),
    "numbers changed": TextEdit(change_numbers, "numbers changed", (0.1, 0.5, 1.0)),
    "prefix cut": TextEdit(cut_prefix, "characters cut", (0.05, 0.2, 0.5)),
    "OCR noise": TextEdit(add_ocr_noise, "words misread", (0.01, 0.05, 0.2)),
    "digits translated": TextEdit(translate_digits, "numbers translated", (0.1, 0.5, 1.0)),
    "sentences reordered": TextEdit(reorder_sentences, "sentences moved", (0.05, 0.2, 1.0)),
    "markup": TextEdit(add_markup, "words set off", (0.005, 0.02, 0.1)),
    "casing": TextEdit(change_case, "sentences changed", (0.1, 0.5, 1.0)),
    "template page": TextEdit(fill_template, "words of the frame", (0.3, 0.6, 0.8), "template"),
}
