"""What a token near the name of a password is like: the features of `password_model.py`."""

from __future__ import annotations

import re
import zlib
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from functools import lru_cache

from stages.signals.password_names import Name
from stages.signals.password_shapes import rate
from stages.signals.secret_values import (
    is_chosen_words,
    is_password,
    is_strong_password,
)

Place = tuple[int, int]

SIZE = 1 << 16
"""Weights, and what the hash of a feature is reduced to."""

REACH, REACH_BACK = 140, 60
"""Characters behind a name and before it in which a token is rated."""

_WORD = re.compile(r"\w+|[^\w\s]")
_BLANKS = re.compile(r"\s+")
_DIGIT = re.compile(r"\d")
_STEPS = (0, 1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 16, 20, 30, 40, 60, 100)


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
        if start - name.end > REACH:
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
        if name.start - end > REACH_BACK:
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
    before = text[max(0, name.start - 40) : name.start]
    words = [word.lower() for word in _WORD.findall(before)][:-3:-1]
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


def hash_features(features: Sequence[str]) -> list[int]:
    """The places of the weights of features."""
    return [zlib.crc32(one.encode("utf-8", "surrogatepass")) % SIZE for one in features]
