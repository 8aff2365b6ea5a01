"""Secrets in a text, as spans with the tag that replaces them: keys, tokens and passwords.

Every secret but a short password holds a long run of letters, digits and `_+/-`, which prose hardly
does: a text without one costs one pass. In a run a literal tells the kind; then follow a shape and
a check: the length and alphabet that the service uses, its checksum where it has one (GitHub and
npm end tokens with a CRC-32) or enough different characters, and no sign of a placeholder.

A token that is broken over lines (wrapped, continued by a backslash, or a string in two parts) is
joined and matched as one, if at least eight characters of it with the literal stand on one line.
What only its place tells is in `passwords.py`, `assigned_secrets.py` and `azure_keys.py`. Time is
linear in the text: what is matched has a bounded length.
"""

from __future__ import annotations

import base64
import binascii
import re
import string
from collections import defaultdict
from collections.abc import Iterator, Sequence

from stages.signals.assigned_secrets import find_assigned_secrets
from stages.signals.azure_keys import find_azure_key, find_azure_token, find_broken_azure_key
from stages.signals.login_calls import find_url_passwords
from stages.signals.outputs import Span, drop_overlaps, to_character_offsets
from stages.signals.passwords import find_named_passwords
from stages.signals.salts import find_inserted_secrets, find_salts
from stages.signals.secret_kinds import INNER_KINDS, SECRET_KINDS, WORD_BEGIN, WORD_END, SecretKind
from stages.signals.secret_values import is_placeholder
from stages.signals.service_tokens import SERVICE_TOKENS

LONGEST_KEY_BLOCK = 20_000
"""Characters after the head of a private key within which it must end."""

_LONG = b"a" * 16
_IN_RUN = bytes(
    ord("a" if chr(byte) in "_+/-" or (chr(byte).isalnum() and byte < 128) else " ")
    for byte in range(256)
)
_REACH = 200
"""Characters before a literal in which its secret must begin."""

_LONGEST_LEAD = 20
"""Characters before a literal in which a secret with a varying beginning begins."""

_BEFORE = 8
"""Characters before a run in which a literal may begin: a run does not hold the point of `SG.`."""

_KEY_HEAD = re.compile(r"-----BEGIN ((?:[A-Z0-9]{2,12} ){0,3}PRIVATE KEY(?: BLOCK)?)-----")
_KEY_CHARACTERS = re.compile(r"[A-Za-z0-9+/=]")


def find_secrets(text: str) -> list[Span]:
    """Every secret in `text`, from left to right, without overlaps."""
    encoded = text.encode("utf-8", "surrogatepass")
    spans = list(find_url_passwords(text))
    for sort in INNER_KINDS:
        if sort.literal in text:
            spans += _find_kind(text, sort, 0, len(text))
    for start, end in _find_long_runs(text, encoded):
        first = max(0, start - _BEFORE)
        near = text[first:end]
        for sort in _WITHIN:
            if sort.literal in near:
                spans += _find_kind(text, sort, first, end)
        for begin in _TOKEN_BEGIN.finditer(text, first, end):
            for sort in _BY_BEGINNING.get(begin[0], ()):
                if text.startswith(sort.literal, begin.start()):
                    spans += _find_kind(
                        text, sort, begin.start(), begin.start() + len(sort.literal)
                    )
        spans += find_azure_key(text, end)
        spans += find_azure_token(text, start, end)
        spans += find_broken_azure_key(text, start, end)
        spans += find_assigned_secrets(text, start, end)
        if text.startswith(".", end):
            spans += _find_discord_token(text, start, end)
    spans += _find_broken(text, encoded)
    spans += find_salts(text)
    if "INSERT" in text or "insert" in text:
        spans += find_inserted_secrets(text)
    spans += find_named_passwords(text)
    if "PRIVATE KEY" in text:
        spans += _find_private_keys(text)
    return drop_overlaps(spans) if len(spans) > 1 else spans


def make_tag(label: str) -> str:
    """The text that replaces a secret."""
    return f"<secret:{label}>"


def _find_long_runs(text: str, encoded: bytes) -> list[tuple[int, int]]:
    """Places of runs that may hold a secret: those with a digit or with the literal of a kind."""
    marks = encoded.translate(_IN_RUN)
    runs, place = [], marks.find(_LONG)
    while place >= 0:
        end = marks.find(b" ", place)
        end = end if end >= 0 else len(marks)
        if _MAY_BE_SECRET.search(encoded, max(0, place - _BEFORE), end):
            runs.append((place, end))
        place = marks.find(_LONG, end)
    borders = to_character_offsets(text, encoded, [border for run in runs for border in run])
    return list(zip(borders[::2], borders[1::2], strict=True))


def _find_kind(text: str, sort: SecretKind, start: int, end: int) -> Iterator[Span]:
    """The secrets of a kind whose literal is in [start, end)."""
    place = text.find(sort.literal, start, end)
    while place >= 0:
        match = _match_kind(text, sort, place)
        if match is not None and not is_placeholder(match[0]) and sort.check(match[0]):
            yield Span(match.start(), match.end(), sort.label, make_tag(sort.label))
            place = match.end() - 1
        place = text.find(sort.literal, place + 1, end)


def _match_kind(text: str, sort: SecretKind, place: int) -> re.Match[str] | None:
    """The shape that holds the literal at `place`."""
    if sort.lead is not None:
        before = sort.lead.search(text, max(0, place - _LONGEST_LEAD), place)
        return sort.shape.match(text, before.start()) if before else None
    if not sort.begins:
        return sort.shape.match(text, place)
    start = text.rfind(sort.begins, max(0, place - _REACH), place)
    match = sort.shape.match(text, start) if start >= 0 else None
    return match if match is not None and place < match.end() else None


_LINE_SIGNS = {"n": "\n", "q": "\\\"'=\r ", "a": "."}
_LINE_MARKS = bytes(
    ord(next((mark for mark, some in _LINE_SIGNS.items() if chr(byte) in some), chr(_IN_RUN[byte])))
    for byte in range(256)
)
_LINE_END = re.compile(rb"n[qa]{0,4}?aaaaaaaa")
_LINE_BREAK = re.compile(
    r"""["'](?: ?[+.&])?(?: ?\\)?\r?\n[ \t]{0,40}(?:[+.&] ?)?["']"""
    r"""|(?: \|)?[=\\]?\r?\n[ \t>*#/|]{0,40}"""
)
_CONTINUED = re.compile(r"""(?:["'](?: ?[+.])?)? ?\\?=?\r?\Z""")
_LOWER_WORD = re.compile(rb"[a-z.]+\Z")
_TOKEN_END = re.compile(r"[a-z][A-Z]|[A-Za-z][0-9]|[0-9][A-Za-z]")
_ORDINARY_WORD = re.compile(r"[A-Z]?[a-z]+[.,:]?\Z")
_PLAIN_BREAK = re.compile(r"\r?\n[ \t>*#/]{0,40}\Z")
_FRAGMENT = re.compile(r"[A-Za-z0-9_.+/%~:-]+={0,2}")
_FRAGMENT_CHARACTERS = string.ascii_letters + string.digits + "_.+/%~:-"
_LONGEST_LINE, _MOST_LINES = 1200, 40


def _find_broken(text: str, encoded: bytes) -> Iterator[Span]:
    """Secrets of the kinds that are broken over lines."""
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
        sign = _CONTINUED.search(text, max(first, feed - 6), feed)
        stop = sign.start() if sign else feed
        start = first + len(text[first:stop].rstrip(_FRAGMENT_CHARACTERS))
        fragment = text[start:stop]
        if (fragment.istitle() and fragment.isalpha()) or not _LITERAL.search(fragment):
            continue
        span = _join_lines(text, start, stop)
        if span is not None:
            yield span
            free = span.end


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
        goes_on = not _PLAIN_BREAK.match(gap[0]) or _TOKEN_END.search(rest[0]) is not None
        width, before = place - text.rfind("\n", 0, place), width
        if width == before and not _ORDINARY_WORD.match(rest[0]):
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
        match = _match_kind(joined, sort, place) if place >= 0 else None
        if match is None or match.end() <= cut or is_placeholder(match[0]):
            continue
        if sort.check(match[0]) and (goes_on or _match_kind(joined[:cut], sort, place) is None):
            return sort.label, match.start(), match.end()
    return None


_DISCORD = re.compile(
    r"[MNO][A-Za-z0-9_-]{23,27}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,38}" + WORD_END
)


def _find_discord_token(text: str, start: int, end: int) -> Iterator[Span]:
    """The token whose first part, the number of its user, is the run [start, end)."""
    match = _DISCORD.match(text, start) if end - start <= 28 else None
    if match is not None and _is_discord_token(match[0]):
        yield Span(*match.span(), "discord_token", make_tag("discord_token"))


def _find_private_keys(text: str) -> Iterator[Span]:
    """Blocks from their BEGIN to their END line; in strings, with line feeds as `\\n`, as well."""
    feet: dict[str, int] = {}
    for head in _KEY_HEAD.finditer(text):
        mark = f"-----END {head[1]}-----"
        foot = feet.get(mark, 0)
        if 0 <= foot < head.end():
            foot = feet[mark] = text.find(mark, head.end())
        if foot < 0 or foot > head.end() + LONGEST_KEY_BLOCK:
            continue
        if _is_key(text[head.end() : foot]):
            yield Span(head.start(), foot + len(mark), "private_key", make_tag("private_key"))


def _is_key(body: str) -> bool:
    """Whether the text between the marks is base64 and enough of it, not prose about keys.

    30 bytes are the least that a private key (Ed25519) takes.
    """
    letters = len(_KEY_CHARACTERS.findall(body))
    return letters >= 40 and "..." not in body and body.count(" ") * 8 < len(body)


def _is_discord_token(token: str) -> bool:
    """Whether the first part holds the digits of a user's number."""
    head = token.partition(".")[0]
    try:
        return base64.urlsafe_b64decode(head + "=" * (-len(head) % 4)).isdigit()
    except (binascii.Error, ValueError):
        return False


_INNER_LITERALS = ("A" * 20, "com/services/T")
_LITERALS = [sort.literal for sort in SECRET_KINDS]
_MAY_BE_SECRET = re.compile(
    "|".join(["[0-9]", *(re.escape(one) for one in _LITERALS if len(one) > 2)]).encode()
)
"""A digit, or a literal; of a hexadecimal token (`SK…`) the digits are enough."""

_ALL_KINDS = SECRET_KINDS + SERVICE_TOKENS + INNER_KINDS
_LITERAL = re.compile(
    "|".join(
        re.escape(one) for one in sorted({sort.literal for sort in _ALL_KINDS} | {"sk-", "hooks"})
    )
)
"""What a secret that goes on in the next line has in its first."""

_WITHIN = tuple(sort for sort in SECRET_KINDS if sort.begins or sort.literal in _INNER_LITERALS)
"""Kinds whose literal does not begin them; others are looked up by their first characters."""

_BY_BEGINNING: dict[str, list[SecretKind]] = defaultdict(list)
for _sort in SECRET_KINDS + SERVICE_TOKENS:
    if _sort not in _WITHIN:
        _BY_BEGINNING[_sort.literal[:2]].append(_sort)
_TOKEN_BEGIN = re.compile(WORD_BEGIN + "[A-Za-z0-9][A-Za-z0-9/_.]")
