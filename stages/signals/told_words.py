"""Words without a sign of chance that prose tells as a password.

Small words that hyphens, underscores or dots join (`nasigoreng_pedas`, `rondine.2018.tetto`) are
names of programs as well, so a verb, a sign or another script must join them to the name, and the
sentence must end there. Fewer than three are taken only where a network or an archive is named. The
name of a site (`www.modfiles.example`) is the password of archives that the site offers. All
patterns are bounded.
"""

from __future__ import annotations

import re

from stages.signals.secret_values import is_chosen_words

_WORDS = r"(?:[ \u00a0\u200c](?!(?:user|is|or|and|und|et)\b)[^\s:=,;|\"'<>{}()\[\]]{1,20}+){0,7}?"
_VERBS = (
    r"(?:is|ist|lautet|est|es|é|è|eh|jest|to|je|är|er|on|este|e|é|és|е|є|це|это|είναι|yra|ir|është"
    r"|adalah|ialah|là|ay|ni|hai|yw|hija|waa|estas|ita ce|lithi|ke|wa|da|nu|nå|now|jetzt|ahora"
    r"|agora|هي|هو|היא)"
)
_JOINT = (
    rf"(?:{_WORDS}(?:\s?[:=：→➜–—]\s{{0,2}}|\s->\s|[ \u00a0]{_VERBS}[ \u00a0])"
    r"|[ \u00a0](?=www\.)"
    r"|[ \u00a0](?:(?:wi-?fi|wlan|rar|zip)[-\w]{0,6}[ \u00a0])?(?=[^\W\d_]{3,16}[-_][^\W\d_])"
    r"|(?:[係是为為は]|パスは|คือ)\s?"
    r"|(?<=[^\x00-\u024f])(?:[ \u00a0][^\x00-\u024f\s]{1,16}){0,2}[ \u00a0])"
)
_JOINED_WORDS = r"[^\W\d_]{2,16}(?:[-_.][^\W\d_]{1,16}|[-_.][0-9]{1,4}){1,5}"
_SITE = r"(?:www\.)?[a-z0-9-]{2,30}(?:\.[a-z0-9-]{2,24}){1,2}"
_SHAPE = re.compile(
    rf"{_JOINT}[\"'`«“„「*]{{0,2}}(?:(?P<site>{_SITE})|(?P<words>{_JOINED_WORDS}))"
    r"(?=[\"'`»”」*]{0,2}(?:[.!,;。，]?(?:\s*\n|\s*\Z)|[.,;]? [(–—-]|, |。|[^\x00-\u024f]"
    r"| [^\x00-\u024f]| (?:ya|and|und|et|y|e|och|og|ja|i|a|и|та|ve|dan|ir|και|olacak)\b))",
    re.IGNORECASE,
)
_OF_ARCHIVE = re.compile(
    r"\b(?:un)?(?:zip|rar|pack)|archive?\b|archiv|extract|entpack|descompr|descompact"
    r"|dézip|compress|decompr|распак"
    r"|архив|распаков|розпак|解[压壓]|解凍|압축|giải nén|فایل|زیپ|ضغط|rozpak|uitpak",
    re.IGNORECASE,
)
_OF_NETWORK = re.compile(
    r"wi-?fi|wlan|hotspot|router|\brete\b|\bréseau\b|\bred\b|\brede\b|netz|nett|сет[иь]|вай-?фа|wireless"
    r"|واي فاي|وای|الراوتر|无线|無線|와이파이|\bxarxa\b",
    re.IGNORECASE,
)
_BEFORE, _LONGEST = 50, 190
_FEWEST_LETTERS = 9


def find_told_words(text: str, start: int, end: int) -> tuple[int, int] | None:
    """The place of joined words, or of a site, that the name in [start, end) is told to have."""
    match = _SHAPE.match(text, end, end + _LONGEST)
    if match is None:
        return None
    group = match.lastgroup or "words"
    place, value = match.span(group), match[group]
    around = text[max(0, start - _BEFORE) : place[0]]
    of_archive = _OF_ARCHIVE.search(around) is not None
    if group == "site" and of_archive:
        return place
    is_english = _ENGLISH.match(text, start) is not None
    if (
        is_english and group == "words" and _BARE.fullmatch(text, end, place[0])
    ):  # Neither a verb nor a sign.
        return None
    is_told = (
        of_archive
        or _OF_NETWORK.search(around) is not None
        or _is_foreign(text, start)
        or (not is_english and len(re.findall("[-_]", value)) > 1)
    )
    return place if is_told and _are_words(value) else None


_ENGLISH = re.compile(r"pass(?:word|phrase|code)|passwort|kennwort", re.IGNORECASE)
_BARE = re.compile(
    r"[ \u00a0](?:(?:wi-?fi|wlan|rar|zip)[-\w]{0,6}[ \u00a0])?[\"'`«“„「*]{0,2}", re.IGNORECASE
)


def _is_foreign(text: str, start: int) -> bool:
    """Whether the name of the password is in another script."""
    return text[start] > "\u024f"


def _are_words(value: str) -> bool:
    """Whether words in small letters are ones that a person joins."""
    parts = re.split(r"[-_.]", value)
    words = [part for part in parts if len(part) > 1 and not part.isdecimal()]
    return (
        len(parts) > 1
        and len(value) >= _FEWEST_LETTERS
        and value.islower()
        and is_chosen_words("-".join(words if len(words) > 1 else words * 2))
    )
