"""Tokens that are broken over lines or into strings, joined and matched as one.

A line is wrapped by a mail program or a terminal, continued by a backslash (shells) or `=` (quoted-
printable), marked on each line (`>`, `//`, `*`, `#`), or begins as the first one does (`auth | `,
the sign of a diff). A cell is broken by `<br>`, a string is in parts that a program joins: `+`,
`++`, `.`, `..`, `&`, `<>`, `^`, Visual Basic's `& _`, `TOKEN+=`, the items of a list. At least
eight characters of the token, with its literal where that does not end it, must stand before the
end of a line. Time is linear in the text: a token has a greatest number of lines.
"""

from __future__ import annotations

import re
import string
from collections.abc import Iterator, Sequence

from stages.signals.outputs import Span, to_character_offsets
from stages.signals.secret_kinds import (
    DISCORD_TOKEN,
    INNER_KINDS,
    PUBLISHED,
    SECRET_KINDS,
    SecretKind,
    is_in_run,
    make_tag,
    match_kind,
)
from stages.signals.secret_values import is_placeholder, is_random
from stages.signals.service_tokens import SERVICE_TOKENS

_LINE_SIGNS = {"n": "\n", "q": "\\\"'=\r ,)", "a": ".", "s": "&<>^|%`*"}
_ARROWS = "\u21b5\u21a9\u23ce\u2936\u00ac"
_OF_ARROWS = frozenset(_ARROWS.encode())
"""What editors show where they break a line: `↵`, `⏎`, `¬`."""


def _mark(byte: int) -> str:
    """The letter of a byte: `n`, `q`, `a`, `s`; a blank where no token goes on."""
    marks = (mark for mark, some in _LINE_SIGNS.items() if chr(byte) in some)
    return next(marks, "a" if is_in_run(byte) else "s" if byte in _OF_ARROWS else " ")


_LINE_MARKS = bytes(ord(_mark(byte)) for byte in range(256))
_LINE_END = re.compile(rb"n(?:(?:qaaqaaq)?[qa]{0,4}?|[qa]{0,3}s[qas]{0,14}?)aaaaaaaa")
"""Reversed: the end of a line, at most a sign that joins it to the next, and eight characters."""

_CLOSE = r"""["']\)?[ \t]?[^\w\s"']{0,4}(?: ?vb(?:CrLf|NewLine|Lf|Cr) ?&)?[ \t]?[_\\&]?"""
"""A quote, and the sign of a program that joins strings or lines: `" +`, `' ||`, `" & _`, `",`."""

_OPEN = r"""[ \t]{0,40}(?:[^\w\s"']{1,4}(?:\w{1,8}\()?[ \t]?)?[rRbBuUL]?["']"""
_TO_BUILDER = (
    r"""["']\);?\r?\n[ \t]{0,40}"""
    r"""(?:sb|buf|str|out|\w{0,20}(?:[bB]uilder|[bB]uffer|[tT]oken|[kK]ey))"""
    r"""\.(?:append|write|concat|Append|Write|WriteString)\(["']"""
)
"""The next part is appended to a buffer: `sb.append("…");`."""

_APPENDED = (
    r"""["'];?\r?\n[ \t]{0,40}(?:export )?[$@]?\w{1,40}"""
    r"""(?:(?: ?[+.|&]= ?| ?= ?[$@]?\w{1,40} ?(?:\.\.|[+.&~]) ?)["']|=["']\$\{?\w{1,40}\}?)"""
    r"""|;?\r?\n[ \t]{0,40}(?:export )?\w{1,40} ?\+= ?|["']; \w{1,40} ?[+.]= ?["']"""
    rf"|{_TO_BUILDER}"
)
"""The next part is appended to a variable: `TOKEN+="…"`, `$key .= '…'`, `key = key + "…"`."""

_WITHIN_LINE = (
    r"""["'`]\}\$\{["'`]|["'`] ?(?:[,+.&|~^]|\.\.|<>|\|\||\+\+)? ?["'`]"""
    r"""|(?<=[^|]) ?<br ?/?>(?=[^\s|])"""
)
_UNSEEN = (
    r"(?:<wbr ?/?>|</span><span[^<>\n]{0,40}>"
    r"|&(?:shy|#(?:173|8203|1[03]|x(?:200[Bb]|[Aa]?[Dd]|[Aa]))|ZeroWidthSpace"
    r"|NewLine);|\\u200[bB]|\\-|\\allowbreak(?:\{\}| )?|[\u00ad\u200b\u2060])+(?:(?<=\u00ad)\r?\n)?"
)
_UNSEEN_MARKS = bytes(ord("u" if byte in b"<&\\\xc2\xe2" else " ") for byte in range(256))
_UNSEEN_SIGN = re.compile(
    rb"<w?br|</span><s|&(?:shy|#|Zero|NewL)|\\(?:(?:r\\)?n|u200|-|allow)"
    rb"|\xc2\xad|\xe2\x80\x8b|\xe2\x81\xa0"  # in UTF-8
)
"""Where a page may break a word, and the end of a line in a string: beside `<br>`."""

_REDIRECTED = r"""["'] ?>{1,2} ?[\w./~$-]{1,60}\r?\n[ \t]{0,40}(?:echo|printf) (?:-\w{1,2} )?["']"""
"""The next part is appended to a file: `echo -n "…" > token`, `echo -n "…" >> token`."""

_LINE_BREAK = re.compile(
    rf"""{_APPENDED}|{_REDIRECTED}|{_WITHIN_LINE}|{_UNSEEN}|(?:\\r)?\\n(?:\\\r?\n)?|"""
    rf"""{_CLOSE}\r?\n{_OPEN}|(?: \|| ?<br ?/?>|=0D=0A)? ?[=\\`^%{_ARROWS}]?\r?\n"""
    r"""(?:[ \t]{0,40}\u21b3 ?|[ \t]{0,6}[0-9]{1,6} ?[:|] ?|[ \t>*#/|;%\\]{0,40}(?:-- )?)"""
)
_CONTINUED = re.compile(
    rf"""(?:{_CLOSE}| ?<br ?/?>|=0D=0A|[ \t]{{1,40}}\|| ?(?:-->|\*/))? ?[\\`^%{_ARROWS}]?=?\r?\Z"""
)
_BUILT = re.compile(_TO_BUILDER)
_WEAK_BREAK = re.compile(r"""["'][^"']*[,(]|\r?\n[ \t]{0,6}[0-9]""")
"""What also stands between two values: items of a list, arguments, numbered lines."""

_LINE_CLOSE = re.compile(
    rf"""(?P<quoted>{_CLOSE})?(?:[ \t]{{1,40}}\||<br ?/?>| ?(?:-->|\*/))? ?[=\\`^%]?\r?\n"""
)
_LINE_OPEN = re.compile(r"""[ \t]{0,40}(?:\|[ \t]{1,40})?(?P<quote>["'])?""")
_LONGEST_PREFIX = 80
"""Characters with which two lines begin alike."""

_JOINT_SIGNS = {"q": "\"'`", "g": ">", "s": " ,+.&|~^<\\", ";": ";", "n": "\n", "r": "\r", "p": ")"}
_JOINT_MARKS = bytes(
    ord(next((mark for mark, some in _JOINT_SIGNS.items() if chr(byte) in some), "a"))
    for byte in range(256)
)
_JOINT = re.compile(rb"q(?:[gs]{0,4}(?:q|r?n[gs]{0,40}a?q)|(?:p?;)?r?n|s?g{1,2}s?[as]{1,60}r?n)")
"""Two strings with nothing but signs between, the end of a line that ends with a string, or one
that is written to a file."""

_JOIN_BEFORE = re.compile(
    r"(?:(?:join|concat|implode|paste0?|strcat|sprintf|format)\b"
    r"|(?:lines|parts|chunks|pieces)[\"']? ?[:=] ?\[)"
    r"[^\n]{0,12}(?:\n[ \t]{0,12}[\"'`])?\Z",
    re.IGNORECASE,
)
_JOIN_AFTER = re.compile(r"[^\]]{0,1500}\]\s?(?:\.|->)?\s?(?:join|concat|implode)", re.IGNORECASE)
"""The call that joins the items of a list."""

_ENDINGS = ("-us", "NRAL", "_mmk")
_ENDING = re.compile(
    r"[0-9a-f]-us[0-9]{1,2}(?![A-Za-z0-9])|[0-9a-z]NRAL(?![A-Za-z0-9])|[A-Za-z0-9]_mmk(?!\w)"
)
"""How tokens end that begin with no literal."""

_ENDING_REACH = 90
_FEWEST = 8
"""Characters of a token at least in the part that it begins in."""

_LONGEST_SIGN = 24
_LOWER_WORD = re.compile(rb"[a-z.]+\Z")
_TOKEN_END = re.compile(r"[a-z][A-Z]|[A-Za-z][0-9]|[0-9][A-Za-z]")
_ORDINARY_WORD = re.compile(r"[A-Z]?[a-z]+[.,:]?\Z")
_SENTENCE_WORD = re.compile(r"[A-Z]?[a-z]+ [A-Za-z]")
_PLAIN_BREAK = re.compile(r"\r?\n[ \t>*#/]{0,40}\Z")
_FRAGMENT = re.compile(r"[A-Za-z0-9_.+/%~:-]+(?:={1,2}(?![=\r\n]|0D=0A)[A-Za-z0-9_-]{0,80})?")
"""`=` at the end of a line joins it to the next in quoted-printable; in a token of Atlassian or
Sentry a checksum or another part follows it."""

_FRAGMENT_CHARACTERS = string.ascii_letters + string.digits + "_.+/%~:-"
_LONGEST_LINE, _MOST_LINES = 1200, 40

_LINE_FEEDS = ("", "\n", "\r")
_ALL_KINDS = SECRET_KINDS + SERVICE_TOKENS + INNER_KINDS
_OF_ENDINGS = tuple(sort for sort in INNER_KINDS if sort.literal in _ENDINGS)
_BEGINNINGS = {
    *((sort.begins or sort.literal)[:2].encode() for sort in SECRET_KINDS + SERVICE_TOKENS),
    *((first + second).encode() for first in "MNO" for second in "DTjz"),  # of Discord
}
_DISCORD_BEGIN = re.compile(r"[MNO][A-Za-z0-9_-]{23,27}\.[A-Za-z0-9_-]{1,6}")
_LITERAL = re.compile(
    "|".join(
        re.escape(one) for one in sorted({sort.literal for sort in _ALL_KINDS} | {"sk-", "hooks"})
    )
)
"""What a secret that goes on in the next line has in its first."""


def find_broken_tokens(text: str, encoded: bytes) -> Iterator[Span]:
    """Secrets of the kinds that are in parts; `encoded` is `text` in UTF-8."""
    if any(name in text for name in ("ws_secret_access", "WS_SECRET_ACCESS", "ecret Access Key")):
        yield from _find_aws_secrets(text)
    fragments = {*_find_in_strings(text, encoded), *_find_in_markup(text, encoded)}
    if "\n" in text:
        fragments.update(_find_line_ends(text, encoded))
    free = 0
    for start, stop in sorted(fragments):
        if text.startswith(("+", "-"), start) and text[start - 1 : start] in _LINE_FEEDS:
            start += 1  # The sign of a diff.
        fragment = text[start:stop]
        if start < free or len(fragment) < _FEWEST or (fragment.isalpha() and fragment.istitle()):
            continue
        kinds = _ALL_KINDS
        if _DISCORD_BEGIN.match(fragment):
            kinds = (DISCORD_TOKEN,)
        elif not _LITERAL.search(fragment):
            below = text[stop : stop + _ENDING_REACH]
            if not any(ending in below for ending in _ENDINGS) or not _ENDING.search(below):
                continue
            kinds = _OF_ENDINGS
        parts = _join_parts(text, start, stop, kinds)
        if parts:
            yield from parts
            free = parts[-1].end


_AWS_IN_PARTS = re.compile(
    r"(?:ws_secret_access_key|secret access key)[\"']?(?: \[[^\]\n]{0,24}\])?\s?[=:]"
    r"\s?[\"']?(?P<first>[A-Za-z0-9+/]{8,39})\r?\n[ \t>]{0,12}"
    r"(?P<rest>[A-Za-z0-9+/]{1,32})(?![A-Za-z0-9+/=])",
    re.IGNORECASE,
)
_AWS_LENGTH = 40


def _find_aws_secrets(text: str) -> Iterator[Span]:
    """Secrets of AWS, which only their name and length tell, over two lines."""
    for match in _AWS_IN_PARTS.finditer(text):
        secret = match["first"] + match["rest"]
        if len(secret) == _AWS_LENGTH and is_random(secret, 400) and secret[:13] not in PUBLISHED:
            yield Span(match.start("first"), match.end(), "assigned", make_tag("assigned"))


def _find_line_ends(text: str, encoded: bytes) -> Iterator[tuple[int, int]]:
    """Places of the fragments at the ends of lines that may go on below."""
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
    for feed in to_character_offsets(text, encoded, ends[::-1]):
        first = max(0, feed - _LONGEST_LINE)
        sign = _CONTINUED.search(text, max(first, feed - _LONGEST_SIGN), feed)
        yield _fragment_before(text, sign.start() if sign else feed)


def _fragment_before(text: str, stop: int) -> tuple[int, int]:
    """The place of the characters of a token that end at `stop`."""
    first = max(0, stop - _LONGEST_LINE)
    return first + len(text[first:stop].rstrip(_FRAGMENT_CHARACTERS)), stop


def _find_in_strings(text: str, encoded: bytes) -> Iterator[tuple[int, int]]:
    """Strings that begin as a token does, before another string or the end of a statement."""
    places = list[int]()
    for joint in _JOINT.finditer(encoded.translate(_JOINT_MARKS)):
        stop = joint.start()
        start = encoded.rfind(encoded[stop : stop + 1], max(0, stop - _LONGEST_LINE), stop) + 1
        if (
            start
            and stop - start >= _FEWEST
            and (
                encoded[start : start + 2] in _BEGINNINGS
                or encoded[start + 14 : start + 23] == b".atlasv1."
            )
        ):
            places += (start, stop)
    borders = to_character_offsets(text, encoded, places) if places else []
    return zip(borders[::2], borders[1::2], strict=True)


def _find_in_markup(text: str, encoded: bytes) -> Iterator[tuple[int, int]]:
    """Fragments before a break of a line in a cell, and where a page may break a word."""
    places, marks = list[int](), encoded.translate(_UNSEEN_MARKS)
    place = marks.find(b"u")
    while place >= 0:
        if _UNSEEN_SIGN.match(encoded, place):
            places.append(place - encoded.startswith(b" ", place - 1))
        place = marks.find(b"u", place + 1)
    for stop in to_character_offsets(text, encoded, places) if places else ():
        yield _fragment_before(text, stop)


_JOINED = re.compile(
    rf"""(?:{_CLOSE}\r?\n{_OPEN}|\\\r?\n[ \t]{{0,40}}| ?<br ?/?>"""
    r"""|["'] ?(?:[+.&~]|\.\.|<>|\|\|)? ?["'](?=[A-Za-z0-9+/_=-]{6,120}["']))"""
)


def continue_lines(text: str, span: Span) -> Span:
    """A secret that only its place tells, with the parts that a program joins to it."""
    return span._replace(end=join_lines(text, span.end)[1])


def join_lines(text: str, end: int) -> tuple[str, int]:
    """The parts that a program joins to the string that ends at `end`, and where they end."""
    parts = list[str]()
    for _ in range(_MOST_LINES):
        gap = _JOINED.match(text, end)
        rest = _FRAGMENT.match(text, gap.end()) if gap else None
        if gap is None or rest is None or _WEAK_BREAK.match(gap[0]):
            break
        if not _TOKEN_END.search(rest[0]) and (len(rest[0]) > 7 or _ORDINARY_WORD.match(rest[0])):
            break
        parts.append(rest[0])
        end = rest.end()
    return "".join(parts), end


def _match_gap(text: str, start: int, place: int) -> tuple[str, int, bool] | None:
    """What parts the fragment that ends at `place` from the next: its text and end.

    And whether it is an end of a line alone. The token begins at `start`.
    """
    close = _LINE_CLOSE.match(text, place)
    if close is not None:
        shared = _shared_prefix(text, start, close.end())
        opened = _LINE_OPEN.match(text, close.end() + shared) if shared else None
        if opened is not None and (opened["quote"] is None) == (close["quoted"] is None):
            gap = text[place : opened.end()]
            return gap, opened.end(), gap[0] in "\r\n"
    match = _LINE_BREAK.match(text, place)
    if match is None:
        return None
    return match[0], match.end(), _PLAIN_BREAK.match(match[0]) is not None


def _shared_prefix(text: str, start: int, below: int) -> int:
    """Characters up to a sign with which the line of `start` and that at `below` begin alike.

    Any digit is like any other.
    """
    line = text.rfind("\n", max(0, start - _LONGEST_PREFIX), start) + 1
    if not line and start > _LONGEST_PREFIX:
        return 0
    first, other = (text[at : at + _LONGEST_PREFIX] for at in (line, below))
    size = 0
    for one, two in zip(first[: start - line], other, strict=False):
        if one != two and not (one.isdecimal() and two.isdecimal()):
            break
        size += 1
    prefix = first[:size].rstrip(_FRAGMENT_CHARACTERS) or first[: size and first[0] in "+-"]
    return len(prefix) if prefix.strip() else 0


def _join_parts(text: str, start: int, stop: int, kinds: Sequence[SecretKind]) -> list[Span]:
    """The secret that begins in the fragment [start, stop) and goes on after it.

    One span; one for each part where more stands between them than in them.
    """
    joined, place, parts = text[start:stop], stop, [(start, stop)]
    sorts = [
        sort
        for sort in kinds
        if kinds is _OF_ENDINGS or sort.literal in joined or (sort.begins and sort.begins in joined)
    ]
    beginnings = tuple(sort.begins or sort.literal for sort in sorts)
    secret: Span | None = None
    width, is_list = 0, False
    for _ in range(_MOST_LINES):
        gap = _match_gap(text, start, place)
        rest = _FRAGMENT.match(text, gap[1]) if gap else None
        if gap is None or rest is None or _begins_anew(joined, rest[0], beginnings):
            break
        if _SENTENCE_WORD.match(text, gap[1]):
            break
        is_weak = _WEAK_BREAK.match(gap[0]) is not None and not _BUILT.match(gap[0])
        if is_weak and not is_list:
            is_list = _is_joined(text, start)
        goes_on = (is_list or not is_weak) and (not gap[2] or bool(_TOKEN_END.search(rest[0])))
        width, before = place - text.rfind("\n", max(0, place - _LONGEST_LINE), place), width
        if (
            not is_weak
            and width == before
            and (
                text[rest.end() : rest.end() + 1] in _LINE_FEEDS
                or not _ORDINARY_WORD.match(rest[0])
            )
        ):
            goes_on = True  # Two lines of equal width: a mail program wrapped them.
        if secret is not None and not goes_on:
            break  # A word of the next line, below a secret that is whole.
        edge = "" if _is_removed_line(text, start) else text[start - 1 : start]
        whole = edge + joined + rest[0]
        match = _match_joined(whole, len(whole) - len(rest[0]), sorts, goes_on)
        joined, place = joined + rest[0], rest.end()
        parts.append(rest.span())
        if match is not None:
            label, first, last = match
            begins = start + first - (len(whole) - len(joined))
            secret = Span(begins, place - (len(whole) - last), label, make_tag(label))
    if secret is None:
        return []
    places = [
        (max(first, secret.start), min(last, secret.end))
        for first, last in parts
        if first < secret.end
    ]
    if 2 * sum(last - first for first, last in places) > secret.end - secret.start:
        return [secret]
    return [Span(*part, secret.label, secret.replacement) for part in places]


def _is_removed_line(text: str, start: int) -> bool:
    """Whether the sign of a diff stands right before, at the beginning of a line."""
    return text[start - 1 : start] == "-" and text[max(0, start - 2) : start - 1] in _LINE_FEEDS


def _begins_anew(joined: str, rest: str, beginnings: tuple[str, ...]) -> bool:
    """Whether a fragment is the begin of another token; parts of a web token begin alike."""
    return rest.startswith(beginnings) and not joined.endswith(".")


def _is_joined(text: str, start: int) -> bool:
    """Whether the items of the list that begins at `start` are joined by a call."""
    before = _JOIN_BEFORE.search(text, max(0, start - 30), start)
    return before is not None or _JOIN_AFTER.match(text, start) is not None


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
