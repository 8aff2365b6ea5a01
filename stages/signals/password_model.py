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
import zlib
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from functools import cache, lru_cache
from itertools import chain, pairwise
from pathlib import Path
from typing import NamedTuple

from stages.signals.literals import Literals, Triples, find_all
from stages.signals.outputs import Span
from stages.signals.secret_values import (
    is_chosen_words,
    is_password,
    is_placeholder,
    is_strong_password,
    says_password,
)
from stages.signals.told_passwords import rate

Place = tuple[int, int]


class Name(NamedTuple):
    """Where a word stands beside which a password is told; `is_sure` for the names of one."""

    start: int
    end: int
    is_sure: bool


_WORDS = (
    *("pin", "code", "login", "log in", "logged in", "logon", "cred", "account", "key", "secret"),
    *("auth", "unlock", "combo", "combi", "wifi", "wi-fi", "wlan", "ssid", "hotspot", "user"),
    *("lock", "keypad", "safe", "combination", "gate", "passe", "install", "pairing", "entry"),
    *("admin", "root", "decrypt", "extract", "unprotect", "sign in", "vpn", "alarm", "invite"),
    *("zugang", "konto", "anmeld", "benutzer", "identifiant", "accès", "utilisateur", "acces"),
    *("usuario", "utente", "código", "codice", "kode", "kod", "код", "логин", "доступ", "вход"),
    *(
        "пользовател",
        "用户",
        "账号",
        "帐号",
        "帳號",
        "账户",
        "码",
        "碼",
        "ユーザ",
        "コード",
        "番号",
    ),
    *("아이디", "계정", "코드", "번호", "รหัส", "mã ", "akun", "hesap", "kullanıcı", "رمز", "کد"),
)
"""What other words name: accounts, codes, networks. Beside them only what stands out is rated."""

_LITERALS = Literals([word.encode() for word in _WORDS])
_TAIL = re.compile(r"(?:s|ed|name|ential|entials|nation|e|en|ung|edaten|sdaten)?(?![a-z])")


def find_other_names(lowered: str, triples: Triples | None) -> list[Name]:
    """Words of accounts, codes and networks in a text in small letters."""
    names = []
    for number in _LITERALS.choose(triples):
        word = _WORDS[number]
        for place in find_all(lowered, word):
            end = place + len(word)
            if word.isascii() and (
                lowered[place - 1 : place].isalpha() or not _TAIL.match(lowered, end)
            ):
                continue
            names.append(Name(place, end, False))
    return names


SIZE = 1 << 16
"""Weights, and what the hash of a feature is reduced to."""

SCALE = 16
"""What the weight 1.0 is stored as."""

CONSTANT = 3 * SCALE
"""What is taken off each sum: a token is a password with probability 1 / (1 + exp(3 - sum))."""

LEAST = CONSTANT - SCALE
"""The sum from which a token is marked: at a probability of .27, where precision and recall on
texts left out of the training meet."""

_REACH, _REACH_BACK, _MOST_LINES = 140, 60, 3
"""Characters behind a name and before it in which a token is rated, and lines behind it."""

_SHORTEST, _LONGEST, _LONGEST_CHUNK = 4, 64, 200
_CHUNK = re.compile(r"\S+")
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
_HAS_SIGN = re.compile(r"\d|[!@#$%^&*+~?]")
_LETTER_AND_DIGIT = re.compile(r"(?=.*[^\W\d_].*[^\W\d_]).*[0-9]", re.DOTALL)
_GROUPS = re.compile(r"[0-9]{1,5}(?:[-#*][0-9]{1,5}){1,3}[#*]?|[0-9]{4,6}[#*]")
_PHRASE = re.compile(
    r"[\"'`“„«「*](?P<quoted>[^\W_]{1,16}(?:[ '][^\W_]{1,16}){1,7})[\"'`”“»」*]"
    r"|[:=：] ?(?P<rest>[^\W\d_]{2,16}(?: [^\W_]{2,16}){2,7}|[0-9]{4}(?: [0-9]{4}){1,3})(?=[.!]?[ \t]*(?:[\n(]|\Z))"
)
"""A phrase with blanks, in quotes or to the end of a line."""

_WORD = re.compile(r"\w+|[^\w\s]")
_BLANKS = re.compile(r"\s+")
_DIGIT = re.compile(r"\d")
_STEPS = (0, 1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 16, 20, 30, 40, 60, 100)


def find_candidates(text: str, names: Sequence[Name]) -> list[Place]:
    """The tokens near names of passwords that may be values, as places, in their order."""
    places = set[Place]()
    for name in names:
        limit = _end_of_reach(text, name.end)
        first = _begin_of_reach(text, name.start)
        chunks = _CHUNK.finditer(text, name.end, min(len(text), limit + _LONGEST))
        for chunk in chain(_CHUNK.finditer(text, first, name.start), chunks):
            start = chunk.start()
            if start >= limit:
                break
            if start == first and first and not text[first - 1].isspace():
                continue
            if not name.is_sure and not _HAS_SIGN.search(text, *chunk.span()):
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
    limit, line = min(len(text), end + _REACH), end
    for _ in range(_MOST_LINES):
        line = text.find("\n", line, limit) + 1
        if not line:
            return limit
    return line


def _begin_of_reach(text: str, start: int) -> int:
    """From where tokens before a name are rated: its line and the one above."""
    first = max(0, start - _REACH_BACK)
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
        if not value.isascii():
            return _LETTER_AND_DIGIT.match(value) is not None
        return _HAS_SIGN.search(value) is not None and (
            is_password(value) or _GROUPS.fullmatch(value) is not None
        )
    if _STANDS_OUT.search(text, first, last) and not _OF_CODE.fullmatch(text, first, last):
        return True
    if last == len(text) or text[last] == "\n" or first == 0 or text[first - 1] in "\n\"'`“„«「*_":
        return True
    if first >= name.end:
        return first - name.end <= 40 and text.count(" ", name.end, first) <= 3
    return name.start - last <= 30 and text.count(" ", last, name.start) <= 4


def describe_place(text: str, place: Place, names: Sequence[Name]) -> list[str]:
    """The features of what is around a token, and of the names beside it."""
    start, end = place
    value = text[start:end]
    kind = _kind(value)
    times = min(text.count(value, max(0, start - 400), end + 400), 3)
    features = [f"C{times}"]
    line, stop = text.rfind("\n", 0, start) + 1, text.find("\n", end)
    before = text[max(line, start - 60) : start]
    after = text[end : min(stop if stop >= 0 else len(text), end + 40)]
    left = before[-1:] if before.strip() else "^" + before[-1:]
    right = after[:1] + ("" if after.strip(" .!)\"'`*") else "$")
    features += [
        *("b" + before[-1:], "bb" + before[-2:], "a" + after[:1], "aa" + after[:2]),
        *(f"bq{left}{before[-2:]}{kind}", f"aq{right}{kind}", f"ba{left}|{right}"),
        f"baq{left}|{right}{kind}",
    ]
    words = [word.lower() for word in _WORD.findall(before)][:-5:-1]
    features += [f"p{at}{word}" for at, word in enumerate(words)]
    features.append("pp" + " ".join(words[:2]))
    words = [word.lower() for word in _WORD.findall(after)][:3]
    features += [f"n{at}{word}" for at, word in enumerate(words)]
    features.append("nn" + " ".join(words[:2]))
    if left[:1] == "^" and line:
        above = text[max(text.rfind("\n", 0, line - 1) + 1, line - 61) : line - 1]
        features += [f"l{above[-1:]}{kind}", f"lq{'?' in above}{right}"]
    last = _choose_before(names, start)
    if last is not None:
        features += _describe_joint(text, last, start, kind, right, value)
    at = bisect_right(names, (start, start)) - 1
    if at >= 0 and 0 <= start - names[at].end <= 12:  # The field right before, of whatever sort.
        joint = text[names[at].start : start].lower()
        features += ["w" + joint, "w" + joint[:6]]
    following = _choose_behind(names, end)
    if following is not None:
        between = _BLANKS.sub(" ", text[end : following.start].lower())
        name = text[following.start : following.end].lower()
        features += ["x" + name, f"xd{_step(len(between))}{kind}", "yl" + between[:6]]
        features.append("yz" + between[-6:])
        if len(between) <= 14:
            features += ["y" + between, f"yq{between}{kind}"]
    return features


def _choose_before(names: Sequence[Name], start: int) -> Name | None:
    """The last name of a password before a token in reach, or of another where there is none."""
    other = None
    for at in range(bisect_right(names, (start, start)) - 1, -1, -1):
        name = names[at]
        if start - name.end > _REACH:
            break
        if name.end <= start:
            if name.is_sure:
                return name
            other = other or name
    return other


def _choose_behind(names: Sequence[Name], end: int) -> Name | None:
    """The first name of a password behind a token in reach, or of another."""
    other = None
    for at in range(bisect_left(names, (end,)), len(names)):
        name = names[at]
        if name.start - end > _REACH_BACK:
            break
        if name.is_sure:
            return name
        other = other or name
    return other


def _describe_joint(
    text: str, name: Name, start: int, kind: str, right: str, value: str
) -> list[str]:
    """What is between the name before a token and the token, and how the name stands."""
    between = text[name.end : start]
    called = text[name.start : name.end].lower()
    words = _WORD.findall(between)
    count = min(sum(map(str.isalnum, words)), 9)
    lines = between.count("\n")
    joint = _BLANKS.sub(" ", between.lower())
    features = [
        *("m" + called, f"md{_step(len(between))}", f"mw{count}", f"ml{lines}"),
        f"mk{name.is_sure}{kind}",
        f"mq{kind}{min(count, 5)}{lines}",
        *(
            "jl" + joint[-8:],
            f"jlq{joint[-4:]}{kind}",
            f"jle{joint[-4:]}{right}{_shape(value)[:4]}",
        ),
        *("v" + word for word in {word.lower() for word in words}),
        *("nc" + text[name.end : name.end + 1], "pc" + text[max(0, name.start - 1) : name.start]),
        f"ncq{text[name.end : name.end + 1]}{kind}",
    ]
    if len(joint) <= 14:
        features += ["j" + joint, f"jq{joint}{kind}", f"jn{joint}{called}"]
        features.append(f"jqe{joint}{kind}{right}")
    words = [word.lower() for word in _WORD.findall(text[max(0, name.start - 40) : name.start])][
        :-3:-1
    ]
    features += [f"u{at}{word}" for at, word in enumerate(words)]
    features.append(f"um{(words or ['^'])[0]} {called}")
    return features


def describe_value(value: str) -> list[str]:
    """The features of a token itself, whatever is around it."""
    kind = _kind(value)
    length = _step(len(value))
    signs = {character for character in value if not character.isalnum()}
    features = ["Q" + kind, "S" + _shape(value)[:14], f"L{length}", f"QL{kind}{length}"]
    features += [f"D{min(sum(map(str.isdigit, value)), 9)}", f"N{min(len(signs), 3)}"]
    features += ["G" + sign for sign in signs]
    letters = "^" + _DIGIT.sub("0", value.lower())[:24] + "$"
    features += ["T" + letters[at : at + 3] for at in range(len(letters) - 2)]
    features += ["4" + letters[at : at + 4] for at in range(len(letters) - 3)]
    features.append("W" + letters)
    return features


@lru_cache(maxsize=4096)
def _kind(value: str) -> str:
    """What the rules say of a token."""
    rating = rate(value)
    if rating:
        return f"q{rating}"
    if is_placeholder(value) or says_password(value):
        return "placeholder"
    if is_strong_password(value):
        return "strong"
    if is_password(value):
        return "weak"
    if value.isdecimal():
        return f"d{min(len(value), 9)}"
    if is_chosen_words(value):
        return "words"
    if not value.isalpha():
        return "none"
    return "lower" if value.islower() else "upper" if value.isupper() else "cases"


def _shape(value: str) -> str:
    """The sorts of characters in a row: `Aa9!` of `Winter79!`."""
    shape = ""
    for character in value:
        if character.isdigit():
            sort = "9"
        elif character.isascii():
            sort = "a" if character.islower() else "A" if character.isupper() else character
        elif character.isalpha():
            sort = "x" if character.islower() else "X" if character.isupper() else "c"
        else:
            sort = character
        if shape[-1:] != sort:
            shape += sort
    return shape


def _step(number: int) -> int:
    """The number of a step of lengths, which grow."""
    return next((at for at, most in enumerate(_STEPS) if number <= most), len(_STEPS))


_DIGEST = re.compile(r"\*?[0-9a-fA-F]{32,128}|(?:\{?SSHA|\$[0-9a-z]{1,12}\$).*")
_SCHEME_BEFORE = re.compile(r"\{\w{2,16}\}\Z|\bSHA-?[0-9]{1,3}:\Z|\bMD5:\Z")
_USER_BEFORE = re.compile(
    r"(?:user(?:[_ -]?(?:name|id))?|log ?in|logon|e-?mail|ssid|netz(?:werk)?(?:name)?|account|acc|host"
    r"|usuari[oa]|utilisateur|identifiant|benutzer(?:name|kennung)?|gebruiker(?:snaam)?|utente"
    r"|użytkownik|uživatel|kullanıcı(?: adı)?|användar(?:e|namn)|bruger(?:navn)?|bruker(?:navn)?|felhasználó\w*"
    r"|логин|пользовател\w{1,3}|користувач\w{0,2}|χρήστης|تکاربری|نام کاربری|اسم المستخدم|משתמש"
    r"|用户名?|[账帐帳][号號户戶]|使用者(?:名稱)?|ユーザー?(?:名|ID)?|아이디|사용자(?:명| 이름)?|tên đăng nhập|tài khoản"
    r"|nama pengguna|ชื่อผู้ใช้|customer(?: number)?|name|id)"
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
        or _DIGEST.fullmatch(value)
        or _SCHEME_BEFORE.search(text, max(0, start - 20), start)
        or _USER_BEFORE.search(text, max(0, start - 32), start)
    )


def hash_features(features: Sequence[str]) -> list[int]:
    """The places of the weights of features."""
    return [zlib.crc32(one.encode("utf-8", "surrogatepass")) % SIZE for one in features]


@cache
def read_weights() -> Sequence[int]:
    """The weights, in steps of 1 / `SCALE`."""
    stored = json.loads(Path(__file__).with_name("password_weights.json").read_text())
    weights: list[int] = memoryview(base64.b64decode(stored["weights"])).cast("b").tolist()
    return weights


@lru_cache(maxsize=4096)
def _weigh_value(value: str) -> int:
    """The sum of the weights of a token itself: names of programs stand in a text many times."""
    weights = read_weights()
    return sum(weights[at] for at in hash_features(describe_value(value)))


def find_modelled_passwords(
    text: str, names: Sequence[Name], spans: Sequence[Span]
) -> Iterator[Span]:
    """Tokens near `names` that the model takes for passwords, apart from `spans` that rules found.

    `names` are places in their order. Of tokens that overlap the best one is taken.
    """
    weights = read_weights() if names else ()
    taken = [(span.start, span.end) for span in spans]
    rated = list[tuple[int, Place]]()
    for place in find_candidates(text, names):
        if any(place[0] < end and start < place[1] for start, end in taken):
            continue
        if not may_be_chosen(text, place):
            continue
        around = hash_features(describe_place(text, place, names))
        score = _weigh_value(text[slice(*place)]) + sum(weights[at] for at in around)
        if score >= LEAST:
            rated.append((-score, place))
    for _, (start, end) in sorted(rated):
        if not any(start < last and first < end for first, last in taken):
            taken.append((start, end))
            yield Span(start, end, "password", "<secret:password>")
