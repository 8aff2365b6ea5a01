"""Tokens that are broken over lines, joined and matched as one.

A line is wrapped by a mail program or a terminal, continued by a backslash (shells) or `=` (quoted-
printable), marked on each line (`>`, `//`, `*`, `#`), a cell with `<br>`, or a string in parts that
a program joins: `+`, `.`, `..`, `&`, `<>`, `^`, Visual Basic's `& _`. At least eight characters of
the token with its literal must stand on one line. Time is linear in the text: a token has a
greatest number of lines.
"""

from __future__ import annotations

import re
import string
from collections.abc import Iterator, Sequence

from stages.signals.outputs import Span, to_character_offsets
from stages.signals.secret_kinds import (
    INNER_KINDS,
    SECRET_KINDS,
    SecretKind,
    is_in_run,
    make_tag,
    match_kind,
)
from stages.signals.secret_values import is_placeholder
from stages.signals.service_tokens import SERVICE_TOKENS

_LINE_SIGNS = {"n": "\n", "q": "\\\"'=\r ,)", "a": ".", "s": "&<>^|%`"}


def _mark(byte: int) -> str:
    """The letter of a byte: `n`, `q`, `a`, `s`; a blank where no token goes on."""
    marks = (mark for mark, some in _LINE_SIGNS.items() if chr(byte) in some)
    return next(marks, "a" if is_in_run(byte) else " ")


_LINE_MARKS = bytes(ord(_mark(byte)) for byte in range(256))
_LINE_END = re.compile(rb"n(?:[qa]{0,4}?|[qa]{0,3}s[qas]{0,14}?)aaaaaaaa")
"""Reversed: the end of a line, at most a sign that joins it to the next, and eight characters."""

_CLOSE = r"""["']\)?[ \t]?[^\w\s"']{0,4}(?: ?vb(?:CrLf|NewLine|Lf|Cr) ?&)?[ \t]?[_\\&]?"""
"""A quote, and the sign of a program that joins strings or lines: `" +`, `' ||`, `" & _`, `",`."""

_OPEN = r"""[ \t]{0,40}(?:[^\w\s"']{1,4}(?:\w{1,8}\()?[ \t]?)?["']"""
_LINE_BREAK = re.compile(
    rf"""{_CLOSE}\r?\n{_OPEN}|(?: \|| ?<br ?/?>)?[=\\`^%]?\r?\n"""
    r"""(?:[ \t]{0,6}[0-9]{1,6} ?[:|] ?|[ \t>*#/|;%\\]{0,40}(?:-- )?)"""
)
_CONTINUED = re.compile(rf"""(?:{_CLOSE}| ?<br ?/?>| \|)? ?[\\`^%]?=?\r?\Z""")
_WEAK_BREAK = re.compile(r"""["'][^"']*[,(]|\r?\n[ \t]{0,6}[0-9]""")
"""What also stands between two values: items of a list, arguments, numbered lines."""

_LONGEST_SIGN = 24
_LOWER_WORD = re.compile(rb"[a-z.]+\Z")
_TOKEN_END = re.compile(r"[a-z][A-Z]|[A-Za-z][0-9]|[0-9][A-Za-z]")
_ORDINARY_WORD = re.compile(r"[A-Z]?[a-z]+[.,:]?\Z")
_PLAIN_BREAK = re.compile(r"\r?\n[ \t>*#/]{0,40}\Z")
_FRAGMENT = re.compile(r"[A-Za-z0-9_.+/%~:-]+(?:={1,2}(?![=\r\n])[A-Za-z0-9_-]{0,80})?")
"""`=` at the end of a line joins it to the next in quoted-printable; in a token of Atlassian or
Sentry a checksum or another part follows it."""

_FRAGMENT_CHARACTERS = string.ascii_letters + string.digits + "_.+/%~:-"
_LONGEST_LINE, _MOST_LINES = 1200, 40

_LINE_FEEDS = ("", "\n", "\r")
_ALL_KINDS = SECRET_KINDS + SERVICE_TOKENS + INNER_KINDS
_LITERAL = re.compile(
    "|".join(
        re.escape(one) for one in sorted({sort.literal for sort in _ALL_KINDS} | {"sk-", "hooks"})
    )
)
"""What a secret that goes on in the next line has in its first."""


def find_broken_tokens(text: str, encoded: bytes) -> Iterator[Span]:
    """Secrets of the kinds that are broken over lines; `encoded` is `text` in UTF-8."""
    if "\n" not in text:
        return
    ends, size = [], len(encoded)
    # Backwards, since a pattern is searched fastest by a rare byte that it begins with.
    for match in _LINE_END.finditer(encoded.translate(_LINE_MARKS)[::-1]):
        last, feed = encoded[size - match.end() : size - match.end() + 8], size - match.start() - 1
        # Words and rules of dashes are none: chance makes one end of a token in 1,000 so.
        if (
            not _LOWER_WORD.match(last)
            and len(set(last)) > 2
            and encoded[feed + 1 : feed + 2] != b"\n"
        ):
            ends.append(feed)
    free = 0
    for feed in to_character_offsets(text, encoded, ends[::-1]):
        first = max(free, feed - _LONGEST_LINE)
        sign = _CONTINUED.search(text, max(first, feed - _LONGEST_SIGN), feed)
        stop = sign.start() if sign else feed
        start = first + len(text[first:stop].rstrip(_FRAGMENT_CHARACTERS))
        fragment = text[start:stop]
        if (fragment.istitle() and fragment.isalpha()) or not _LITERAL.search(fragment):
            continue
        span = _join_lines(text, start, stop)
        if span is not None:
            yield span
            free = span.end


_JOINED = re.compile(rf"""(?:{_CLOSE}\r?\n{_OPEN}|\\\r?\n[ \t]{{0,40}})""")


def continue_lines(text: str, span: Span) -> Span:
    """A secret that only its place tells, with the parts that a program joins to it below."""
    end = span.end
    for _ in range(_MOST_LINES):
        gap = _JOINED.match(text, end)
        rest = _FRAGMENT.match(text, gap.end()) if gap else None
        if gap is None or rest is None or _WEAK_BREAK.match(gap[0]):
            break
        if not _TOKEN_END.search(rest[0]) and (len(rest[0]) > 7 or _ORDINARY_WORD.match(rest[0])):
            break
        end = rest.end()
    return span._replace(end=end)


def _join_lines(text: str, start: int, stop: int) -> Span | None:
    """The secret that begins in the fragment [start, stop) and goes on in the lines below it."""
    joined, place = text[start:stop], stop
    sorts = [
        sort
        for sort in _ALL_KINDS
        if sort.literal in joined or (sort.begins and sort.begins in joined)
    ]
    secret: Span | None = None
    width = 0
    for _ in range(_MOST_LINES):
        gap = _LINE_BREAK.match(text, place)
        rest = _FRAGMENT.match(text, gap.end()) if gap else None
        if gap is None or rest is None:
            break
        goes_on = not _WEAK_BREAK.match(gap[0]) and (
            not _PLAIN_BREAK.match(gap[0]) or _TOKEN_END.search(rest[0]) is not None
        )
        width, before = place - text.rfind("\n", 0, place), width
        if width == before and (
            text[rest.end() : rest.end() + 1] in _LINE_FEEDS or not _ORDINARY_WORD.match(rest[0])
        ):
            goes_on = True  # Two lines of equal width: a mail program wrapped them.
        if secret is not None and not goes_on:
            break  # A word of the next line, below a secret that is whole.
        whole = text[start - 1 : start] + joined + rest[0]
        match = _match_joined(whole, len(whole) - len(rest[0]), sorts, goes_on)
        joined, place = joined + rest[0], rest.end()
        if match is not None:
            label, first, last = match
            begins = start + first - (len(whole) - len(joined))
            secret = Span(begins, place - (len(whole) - last), label, make_tag(label))
    return secret


def _match_joined(
    joined: str, cut: int, sorts: Sequence[SecretKind], goes_on: bool
) -> tuple[str, int, int] | None:
    """Label and place of a secret over `cut`; if one is whole before, only where it `goes_on`."""
    for sort in sorts:
        place = joined.find(sort.literal)
        match = match_kind(joined, sort, place) if place >= 0 else None
        if match is None or match.end() <= cut or is_placeholder(match[0]):
            continue
        if sort.check(match[0]) and (goes_on or match_kind(joined[:cut], sort, place) is None):
            return sort.label, match.start(), match.end()
    return None
