"""Tokens whose parts stand apart: in two variables, two messages of a chat, two cells.

    part1 = "hf_48jphlY1nk82m5Vo"            [05:17] Ann: first half npm_YubGcBz2MrggEOX
    part2 = "aY6xTRoVDWdW0z2nAn"             [05:18] Ann: second half XnpsPS1kczATy4T0sNzZQ

The first part begins as a token of a known form and is too short for one. Runs of letters and
digits that follow within a few lines are joined to it; the whole must have the form, and something
must say that they belong together: the length that the form wants to the character, lines that
begin alike but for a word, or nothing but quotes between. Parts that a program or a mail joins by
the end of a line are in `broken_tokens.py`. Time is linear in the text: what is looked at has a
bounded length.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from stages.signals.outputs import Span
from stages.signals.secret_kinds import SecretKind, is_json_object, make_tag
from stages.signals.secret_values import is_placeholder, is_random

_PART = re.compile(r"[A-Za-z0-9_%~-][A-Za-z0-9_.%~-]{7,}=?")
_BEGIN = re.compile(r"[A-Za-z0-9_%~-]+(?:\.[A-Za-z0-9_%~-]+)*")
_WEB_BEGIN = re.compile(r"[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]+){0,2}(?:\.(?!\.))?")
_TOKEN_LIKE = re.compile(r"[a-z][A-Z]|[A-Za-z][0-9]|[0-9][A-Za-z]")
_FEWEST, _MOST_PARTS = 12, 4
"""Characters of the first part, and parts of a token."""

_REACH, _MOST_LINES = 400, 3
"""Characters and ends of lines between two parts."""

_LONGEST_PART = 1200
_FEWEST_BITS = 280
"""Hundredths of a bit a character of a whole token: hexadecimal digits have up to 400."""

_TIME = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}")
_NOTHING = re.compile(
    r"(?:[\s\"'`,;|>*+\u2026\\]|\.{3}|\\n|</?\w{1,8}[^<>\n]{0,40}>|(?<=[\"' ])[fbrLuN@$](?=[\"'])"
    r"|\)?;?\s{0,8}[\w.]{0,24}(?:append|add|concat|push|write|strcat)\((?:\w{1,16}, ?)?){1,40}+"
)
"""What may stand between parts that follow each other at once: signs, tags, a call that appends."""

_FRAME_WORD = re.compile(r"[^\W\d_]+|\d+|[^\w\s]")
_LONGEST_FRAME, _MOST_OF_FRAME, _FEWEST_OF_FRAME = 80, 8, 4
"""Characters, words and signs before a part that are compared; so many, and one may be added."""

_SIGNATURES = frozenset((43, 64, 86, 88, 128, 171, 342, 512, 683))
"""Characters of the last part of a JSON web token: of 32, 48, 64, 66, 96, 128, 256, 384 and 512
bytes in base64 (RFC 7518, 3.1)."""


def may_go_on(sort: SecretKind, token: str) -> bool:
    """Whether a token that has the form of its kind is only the beginning of one.

    The last part of a JSON web token may have any length from 20 on, and hardly any is used.
    """
    return sort.literal == "eyJ" and len(token.rpartition(".")[2]) not in _SIGNATURES


def find_parts(text: str, sort: SecretKind, start: int) -> Iterator[Span]:
    """The parts of a token that begins at `start`, where the literal of its kind is.

    Nothing where no further part completes what stands there.
    """
    shape = _WEB_BEGIN if sort.literal == "eyJ" else _BEGIN
    begin = shape.match(text, start, start + _LONGEST_PART)
    if begin is None or len(begin[0]) < _FEWEST:
        return
    joined, parts = begin[0], [(start, begin.end())]
    if joined.endswith("-") and text.startswith(("\n", "\r\n"), begin.end()):
        joined, parts = joined[:-1], [(start, begin.end() - 1)]  # A hyphen of typesetting.
    for _ in range(_MOST_PARTS - 1):
        part = _next_part(text, parts[-1][1])
        if part is None or (text.startswith(sort.literal, part[0]) and joined[-1] != "."):
            return  # The next one begins anew.
        joined += text[slice(*part)]
        parts.append(part)
        if _is_whole(sort, joined) and (
            _has_exact_length(sort, joined) or _belong_together(text, parts)
        ):
            for place in parts:
                yield Span(*place, sort.label, make_tag(sort.label))
            return


def _next_part(text: str, end: int) -> tuple[int, int] | None:
    """The place of the next run of characters that may be a part of a token."""
    stop = min(len(text), end + _REACH)
    for _ in range(_MOST_LINES + 1):
        feed = text.find("\n", end, stop)
        line_end = feed if feed >= 0 else stop
        for run in _PART.finditer(text, end, min(len(text), line_end + _LONGEST_PART)):
            if run.start() >= line_end:
                break
            if _TOKEN_LIKE.search(run[0]) and not run[0].endswith(".") and not _TIME.match(run[0]):
                return run.span()
        if feed < 0:
            return None
        end = feed + 1
    return None


def _is_whole(sort: SecretKind, joined: str) -> bool:
    """Whether parts have the form of a kind together."""
    match = sort.shape.fullmatch(joined)
    if match is None or not sort.check(joined) or is_placeholder(joined):
        return False
    return is_random(joined[len(sort.literal) :], _FEWEST_BITS)


def _has_exact_length(sort: SecretKind, joined: str) -> bool:
    """Whether a token has one length and this is it; of a JSON web token, whether its parts fit."""
    if sort.literal != "eyJ":
        others = joined[:-1], joined + joined[-1]
        return not any(map(sort.shape.fullmatch, others))
    _, payload, signature = joined.split(".")
    return len(signature) in _SIGNATURES and is_json_object(payload)


def _belong_together(text: str, parts: list[tuple[int, int]]) -> bool:
    """Whether nothing but signs stands between parts, or nearly the same before each.

    What stands before a part in its line, behind the part before, may differ in numbers and in one
    word.
    """
    before = [0, *(end for _, end in parts)]
    frames = [_frame(text, end, start) for end, (start, _) in zip(before, parts, strict=False)]
    for place in range(len(parts) - 1):
        if _NOTHING.fullmatch(text, parts[place][1], parts[place + 1][0]):
            continue
        one, two = frames[place], frames[place + 1]
        pairs = [(one, two)]
        if min(len(one), len(two)) >= _FEWEST_OF_FRAME:
            pairs += [(one[:-1], two), (one, two[:-1])]
        if not any(_are_alike(*pair) for pair in pairs):
            return False
    return True


def _are_alike(one: list[str], two: list[str]) -> bool:
    """Whether the last words and signs of two lines are the same but for one."""
    shared = min(len(one), len(two))
    if not shared:
        return not one and not two
    return sum(a != b for a, b in zip(one[-shared:], two[-shared:], strict=True)) <= 1


def _frame(text: str, end: int, start: int) -> list[str]:
    """The last words and signs in the line before a part, behind `end`; numbers are all alike."""
    first = max(end, text.rfind("\n", 0, start) + 1, start - _LONGEST_FRAME)
    words = _FRAME_WORD.findall(text[first:start])[-_MOST_OF_FRAME:]
    return ["0" if word.isdecimal() else word for word in words]
