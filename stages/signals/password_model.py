"""Passwords that a linear model tells, where no rule of `passwords.py` does.

How people tell a password is open-ended (`yes and its …`, `the slides open with the password …`,
`Contraseña (para todos): …`), so beside the rules a logistic regression rates each token near a
name for passwords: what it looks like (shape, length, parts of three and four characters), what
joins it to the name before and behind it, and what is right around it. Features are hashed into
`SIZE` weights of one byte (Weinberger et al., Feature Hashing for Large Scale Multitask Learning,
2009), which `tests/benchmarks/password_training.py` makes from labelled texts of the development
side. Whole numbers are summed, so a score has the same bits on every machine. Windows are bounded,
so time is linear in the text.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator, Sequence
from functools import cache, lru_cache
from itertools import chain, pairwise
from pathlib import Path

from stages.signals.assigned_secrets import PUBLIC_VALUE
from stages.signals.outputs import Span
from stages.signals.password_features import (
    REACH,
    REACH_BACK,
    Place,
    describe_place,
    describe_value,
    hash_features,
)
from stages.signals.password_names import Name
from stages.signals.secret_kinds import PUBLISHED
from stages.signals.secret_values import (
    is_password,
    is_placeholder,
    names_other,
    says_password,
)

SCALE = 16
"""What the weight 1.0 is stored as."""

CONSTANT = 3 * SCALE
"""What is taken off each sum: a token is a password with probability 1 / (1 + exp(3 - sum))."""

LEAST = CONSTANT - SCALE // 2
"""The sum from which a token is marked: at a probability of .38. Of writers left out of the
training nearly all that is marked there is right (docs/stages/signals.md)."""

_LEAST_OF_VALUE = -5 * SCALE
"""Of a token itself: nine of ten tokens in real text have less, of labelled passwords one in 1,000,
and what is around them need not be described."""

_MOST_LINES = 3
"""Lines behind a name in which a token is rated."""

_SHORTEST, _LONGEST, _LONGEST_CHUNK = 4, 64, 200
_CHUNK, _CHUNK_WITH_DIGIT = re.compile(r"\S+"), re.compile(r"(?<!\S)[^\s\d]*\d\S*")
_OPENING = "([{<\"'`«»“”„‚‘’‹›「『【（《*_"
_CLOSING = ".,;:)]}>\"'`»”’‹›」』】）》*_。，、！!?"
_BORDER = re.compile(r"[\"'`“”„«»「」『』()\[\]{}<>，。、；：（）]")
_SIGN = re.compile(r"[=:/|,;：→&]")
_PRINTABLE = re.compile(r"[!-~]+")
_STANDS_OUT = re.compile(r"\d|[a-z][A-Z]|[A-Z]{2}.*[a-z]|\w[!@#$%^&*+=~?_|.-]\w|[!@#$%^&*+=~?]")
_OF_CODE = re.compile(
    r"[A-Za-z_.]+(?:\([\w., ]*\)?)?|[a-z]+(?:[A-Z][a-z]+)+|[-/.\w]*/[-/.\w]*|--?[a-z-]+|[$@%&]\w+"
)
"""Names of programs, calls, paths and options without a digit."""

_LETTER_AND_DIGIT = re.compile(r"(?=.*[^\W\d_].*[^\W\d_]).*[0-9]", re.DOTALL)
_GROUPS = re.compile(r"[0-9]{1,5}(?:[-#*][0-9]{1,5}){1,3}[#*]?|[0-9]{4,6}[#*]")
_OF_DIGITS = ("pin", "lock", "keypad", "safe", "gate", "entry", "combo", "combi", "combination")
"""Words whose values are digits and signs."""

_PHRASE = re.compile(
    r"[\"'`“„«「*](?P<quoted>[^\W_]{1,16}(?:[ '][^\W_]{1,16}){1,7})[\"'`”“»」*]"
    r"|[:=：] ?(?P<rest>[^\W\d_]{2,16}(?: [^\W_]{2,16}){2,7}|[0-9]{4}(?: [0-9]{4}){1,3})"
    r"(?=[.!]?[ \t]*(?:[\n(]|\Z))"
)
"""A phrase with blanks, in quotes or to the end of a line."""


def find_candidates(text: str, names: Sequence[Name]) -> list[Place]:
    """The tokens near names of passwords that may be values, as places, in their order."""
    places = set[Place]()
    for name in names:
        limit = _end_of_reach(text, name.end)
        first = _begin_of_reach(text, name.start)
        shape = _CHUNK if name.is_sure else _CHUNK_WITH_DIGIT
        behind = shape.finditer(text, name.end, min(len(text), limit + _LONGEST))
        for chunk in chain(shape.finditer(text, first, name.start), behind):
            start = chunk.start()
            if start >= limit:
                break
            if start == first and first and not text[first - 1].isspace():
                continue
            for place in _parts(text, *chunk.span()):
                if place not in places and _may_be(text, place, name):
                    places.add(place)
        if name.is_sure:
            for phrase in _PHRASE.finditer(text, first, limit):
                places.add(phrase.span(phrase.lastgroup or 0))
    return sorted(places)


def _end_of_reach(text: str, end: int) -> int:
    """Up to where tokens behind a name are rated."""
    limit, line = min(len(text), end + REACH), end
    for _ in range(_MOST_LINES):
        line = text.find("\n", line, limit) + 1
        if not line:
            return limit
    return line


def _begin_of_reach(text: str, start: int) -> int:
    """From where tokens before a name are rated: its line and the one above."""
    first = max(0, start - REACH_BACK)
    line = text.rfind("\n", first, start)
    return max(first, text.rfind("\n", first, line) + 1) if line >= 0 else first


def _parts(text: str, start: int, end: int) -> Iterator[Place]:
    """What between two blanks may be a value: without quotes, and the sides of signs."""
    if end - start > _LONGEST_CHUNK:
        return
    yield start, end
    first = start
    while first < end and text[first] in _OPENING:
        first += 1
    last = end
    while last > first and text[last - 1] in _CLOSING:
        yield first, last
        last -= 1
    yield first, last
    pieces, begin = list[Place](), start
    for border in _BORDER.finditer(text, start, end):
        if border.start() > begin:
            pieces.append((begin, border.start()))
        begin = border.end()
    if start < begin < end:
        pieces.append((begin, end))
    yield from pieces
    for first, last in pieces or [(start, end)]:
        signs = [sign.start() for sign in _SIGN.finditer(text, first, last)]
        if signs:
            yield first, signs[0]
        for before, after in pairwise(signs):
            yield before + 1, after
        for sign in {*signs[:1], *signs[-1:]}:
            begin, stop = sign + 1, last
            while begin < last and text[begin] in "/'\"":
                begin += 1
            yield begin, stop
            while stop > begin and text[stop - 1] in _CLOSING:
                stop -= 1
            yield begin, stop
    if not text[start:end].isascii():
        for run in _PRINTABLE.finditer(text, start, end):
            first, last = run.span()
            yield first, last
            while last > first and text[last - 1] in _CLOSING:
                last -= 1
            yield first, last


def _may_be(text: str, place: Place, name: Name) -> bool:
    """Whether a token is worth rating: plain letters only close to the name or set apart."""
    first, last = place
    if not _SHORTEST <= last - first <= _LONGEST:
        return False
    if not name.is_sure:
        value = text[first:last]
        if value.isdecimal():
            return len(value) <= 8 and 0 <= first - name.end <= 40
        if _GROUPS.fullmatch(value):
            return True
        if text[name.start : name.end].lower() in _OF_DIGITS:
            return False
        if not value.isascii():
            return _LETTER_AND_DIGIT.match(value) is not None
        return any(map(str.isdecimal, value)) and is_password(value)
    if _STANDS_OUT.search(text, first, last) and not _OF_CODE.fullmatch(text, first, last):
        return True
    if last == len(text) or text[last] == "\n" or first == 0 or text[first - 1] in "\n\"'`“„«「*_":
        return True
    if first >= name.end:
        return first - name.end <= 40 and text.count(" ", name.end, first) <= 3
    return name.start - last <= 30 and text.count(" ", last, name.start) <= 4


_ADDRESS = re.compile(r"[\w.+-]{1,40}@[\w-]{1,40}(?:\.[\w-]{1,40}){0,3}\.[a-z]{2,12}")
_DIGEST = re.compile(r"\*?[0-9a-fA-F]{32,128}|(?:\{?SSHA|\$[0-9a-z]{1,12}\$).*")
_SCHEME_BEFORE = re.compile(r"\{\w{2,16}\}\Z|\b(?:SHA-?[0-9]{1,3}|MD5):\S*\Z")
_FIELD_BEFORE = re.compile(
    r"(?:user(?:[_ -]?(?:name|id))?|log ?in|logon|e-?mail|ssid|netz(?:werk)?(?:name)?|account"
    r"|(?<![a-z])(?:acc|host|name|id)|usuari[oa]|utilisateur|identifiant"
    r"|benutzer(?:name|kennung)?|gebruiker(?:snaam)?|utente"
    r"|użytkownik|uživatel|kullanıcı(?: adı)?|användar(?:e|namn)"
    r"|bruger(?:navn)?|bruker(?:navn)?|felhasználó\w*"
    r"|логин|пользовател\w{1,3}|користувач\w{0,2}|χρήστης|تکاربری|نام کاربری|اسم المستخدم|משתמש"
    r"|用户名?|[账帐帳][号號户戶]|使用者(?:名稱)?|ユーザー?(?:名|ID)?|아이디|사용자(?:명| 이름)?"
    r"|tên đăng nhập|tài khoản|nama pengguna|ชื่อผู้ใช้|customer(?: number)?)"
    r"[\"'`\])*]{0,3}\s?(?:[:=,：]|=>|is(?: :)?|ist|est|es)\s{0,4}[\"'`*(\[]{0,3}\Z",
    re.IGNORECASE,
)
"""The field of a user, an account or a network, whose value stands right behind."""

_COUNTED = "0123456789009876543210"


def may_be_chosen(text: str, place: Place) -> bool:
    """Whether a token is no placeholder, no hash of a password and not the name of a user."""
    start, end = place
    value = text[start:end]
    if value.isdecimal() and (len(set(value)) < 4 or value in _COUNTED):
        return len(set(value)) == 3 and len(value) < 6
    return not (
        is_placeholder(value)
        or says_password(value)
        or value.startswith(PUBLISHED)
        or _ADDRESS.fullmatch(value)
        or PUBLIC_VALUE.match(value)
        or names_other(value)
        or _DIGEST.fullmatch(value)
        or _SCHEME_BEFORE.search(text, max(0, start - 60), start)
        or _FIELD_BEFORE.search(text, max(0, start - 32), start)
    )


@cache
def read_weights() -> Sequence[int]:
    """The weights, in steps of 1 / `SCALE`."""
    stored = json.loads(Path(__file__).with_name("password_weights.json").read_text())
    weights: list[int] = memoryview(base64.b64decode(stored["weights"])).cast("b").tolist()
    return weights


@lru_cache(maxsize=4096)
def weigh_value(value: str) -> int:
    """The sum of the weights of a token itself: names of programs stand in a text many times."""
    weights = read_weights()
    return sum(weights[at] for at in hash_features(describe_value(value)))


def find_modelled_passwords(
    text: str, names: Sequence[Name], spans: Sequence[Span]
) -> Iterator[Span]:
    """Tokens near `names` that the model takes for passwords, apart from `spans` that rules found.

    `names` are places in their order. Of tokens that overlap the best one is taken.
    """
    places = find_candidates(text, names)
    if not places:
        return
    weights, taken = read_weights(), bytearray(len(text))
    for span in spans:
        taken[span.start : span.end] = b"\1" * (span.end - span.start)
    rated = list[tuple[int, Place]]()
    for place in places:
        if taken.find(1, *place) >= 0 or not may_be_chosen(text, place):
            continue
        score = weigh_value(text[slice(*place)])
        if score < _LEAST_OF_VALUE:
            continue
        around = hash_features(describe_place(text, place, names))
        score += sum(weights[at] for at in around)
        if score >= LEAST:
            rated.append((-score, place))
    for _, (start, end) in sorted(rated):
        if taken.find(1, start, end) < 0:
            taken[start:end] = b"\1" * (end - start)
            yield Span(start, end, "password", "<secret:password>")
