"""Secrets in a text, as spans with the tag that replaces them: keys, tokens and passwords.

Every secret but a short password holds a long run of letters, digits and `_+/-`, which prose hardly
does: a text without one costs one pass. In a run a literal tells the kind; then follow a shape and
a check: the length and alphabet that the service uses, its checksum where it has one (GitHub and
npm end tokens with a CRC-32) or enough different characters, and no sign of a placeholder.

Tokens in parts are in `broken_tokens.py` and `token_parts.py`, blocks of keys in
`private_keys.py`, those of wallets in `wallet_keys.py`; what only its place tells is in
`passwords.py`, `assigned_secrets.py` and `azure_keys.py`. Time is linear in the text: what is
matched has a bounded length.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator, Sequence

from stages.signals.assigned_secrets import find_assigned_secrets
from stages.signals.azure_keys import find_azure_key, find_azure_token, find_broken_azure_key
from stages.signals.broken_tokens import continue_lines, find_broken_tokens
from stages.signals.entry_codes import find_entry_codes
from stages.signals.literals import Literals, Triples, find_triples
from stages.signals.outputs import Span, drop_overlaps, to_character_offsets
from stages.signals.password_model import find_modelled_passwords
from stages.signals.password_names import find_names
from stages.signals.passwords import find_named_passwords
from stages.signals.private_keys import find_bare_key, find_private_keys
from stages.signals.salts import find_inserted_secrets, find_salts
from stages.signals.secret_kinds import (
    DISCORD_TOKEN,
    INNER_KINDS,
    SECRET_KINDS,
    WORD_BEGIN,
    SecretKind,
    is_in_run,
    make_tag,
    match_kind,
)
from stages.signals.secret_values import is_placeholder, is_random
from stages.signals.service_tokens import SERVICE_TOKENS
from stages.signals.token_parts import find_parts, may_go_on
from stages.signals.url_passwords import find_url_passwords
from stages.signals.wallet_keys import find_key_arrays, find_wallet_key

_RUN, _LONGER = b"a" * 12, 16
"""A run that may begin a token in parts, and characters of those that may hold a whole one."""

_NO_NAME = re.compile(rb"[a-z_/+-]*[A-Z0-9]")
"""What sets a part of a token apart from `test_that_it_works`."""

_IN_RUN = bytes(ord("a" if is_in_run(byte) else " ") for byte in range(256))
_NEAR = 8
"""Characters before a run in which a digit makes it one that may hold a secret."""

_BEFORE = 20
"""Characters before a run in which a literal may begin: no run holds the points of `dp.st.`."""


_ENCODED = re.compile(r"=(?:\r?\n|3D|20)")
"""What a mail in quoted-printable (RFC 2045, 6.7) writes for the end of a line, `=` and a blank."""


class _Decoded:
    """A text in quoted-printable: what it says, and where that stands.

    Mail programs break lines with `=` and write `=` itself as `=3D`, also within passwords.
    """

    def __init__(self, encoded: str):
        pieces, end, size = list[str](), 0, 0
        self._begins, self._places = list[int](), list[int]()
        for match in (*_ENCODED.finditer(encoded), None):
            place = match.start() if match else len(encoded)
            sign = {"=3D": "=", "=20": " "}.get(match[0], "") if match else ""
            for piece, begin in ((encoded[end:place], end), (sign, place)):
                self._begins.append(size)
                self._places.append(begin)
                pieces.append(piece)
                size += len(piece)
            end = match.end() if match else place
        self.text = "".join(pieces)

    def find_place(self, start: int, end: int) -> tuple[int, int]:
        """Where the characters [start, end) of the decoded text are in the encoded one."""
        return self._find(start), self._find(end - 1) + 1

    def _find(self, place: int) -> int:
        piece = bisect_right(self._begins, place) - 1
        return self._places[piece] + place - self._begins[piece]


def find_secrets(text: str, with_model: bool = True) -> list[Span]:
    """Every secret in `text`, from left to right, without overlaps.

    Without the model of `password_model.py` only rules are asked.
    """
    spans = _find_all(text, with_model)
    if "=3D" in text and "=\n" in text.replace("\r", ""):
        decoded = _Decoded(text)
        for span in _find_all(decoded.text, with_model):
            start, end = decoded.find_place(span.start, span.end)
            spans = [one for one in spans if one.end <= start or end <= one.start]
            spans.append(span._replace(start=start, end=end))
    return drop_overlaps(spans) if len(spans) > 1 else spans


def _find_all(text: str, with_model: bool) -> list[Span]:
    """Every secret as it is written in `text`, in any order."""
    encoded = text.encode("utf-8", "surrogatepass")
    triples = find_triples(encoded)
    spans = list(find_url_passwords(text))
    for number in _INNER.choose(triples):
        sort = INNER_KINDS[number]
        if sort.literal in text:
            spans += _find_kind(text, sort, 0, len(text))
            if sort.label in _INNER_IN_PARTS:
                spans += _find_inner_parts(text, sort)
    for literal in _DOTTED:
        first = text.find(literal)
        while first >= 0:
            if not text[max(0, first - 1) : first].isalnum():
                spans += _find_parts(text, first)
            first = text.find(literal, first + 1)
    runs, short = _find_runs(text, encoded, triples)
    for start in short:
        spans += _find_parts(text, start)
    for start, end in runs:
        first = max(0, start - _BEFORE)
        near = text[first:end]
        for sort in _WITHIN:
            if sort.literal in near:
                spans += _find_kind(text, sort, first, end)
        for begin in _TOKEN_BEGIN.finditer(text, first, end):
            for sort in _BY_BEGINNING.get(begin[0], ()):
                if text.startswith(sort.literal, begin.start()):
                    stop = begin.start() + len(sort.literal)
                    tokens = list(_find_kind(text, sort, begin.start(), stop))
                    if not tokens or may_go_on(text, sort, tokens[0].start, tokens[0].end):
                        tokens = list(find_parts(text, sort, begin.start())) or tokens
                    spans += tokens
        if _DISCORD_USER.match(text, start) or text.startswith("sk-", start):
            spans += _find_parts(text, start)
        spans += find_azure_key(text, end)
        spans += find_azure_token(text, start, end)
        spans += find_broken_azure_key(text, start, end)
        for span in find_assigned_secrets(text, start, end):
            spans.append(continue_lines(text, span))
        for place in find_wallet_key(text, start, end):
            spans.append(Span(*place, "private_key", make_tag("private_key")))
        if text.startswith("M", start):
            bare = find_bare_key(text, start)
            if bare is not None:
                spans.append(Span(*bare, "private_key", make_tag("private_key")))
        if text.startswith(".", end):
            spans += _find_discord_token(text, start, end)
        if text.startswith("-", end - 9):
            spans += _find_mailgun_key(text, end)
    spans += find_broken_tokens(text, encoded)
    spans += find_salts(text, triples)
    if "INSERT" in text or "insert" in text:
        spans += find_inserted_secrets(text)
    spans += find_named_passwords(text)
    spans += find_entry_codes(text, triples)
    tag = make_tag("private_key")
    for places in (find_private_keys(text), find_key_arrays(text)):
        spans += [Span(*place, "private_key", tag) for place in places]
    if with_model:
        spans += find_modelled_passwords(text, find_names(text), spans)
    return spans


def _find_runs(
    text: str, encoded: bytes, triples: Triples | None
) -> tuple[list[tuple[int, int]], Sequence[int]]:
    """Places of runs that may hold a secret: those with a digit or with the literal of a kind.

    And the places of others that begin as a token in parts does. Of a hexadecimal token (`SK…`)
    digits are enough.
    """
    marks = encoded.translate(_IN_RUN)
    borders, short = list[int](), list[int]()
    place = marks.find(_RUN)
    if place < 0:
        return [], []
    signs: list[bytes] | None = None
    says_authorization = b"uth" in encoded and _AUTHORIZATION.search(encoded) is not None
    while place >= 0:
        end = marks.find(b" ", place)
        end = end if end >= 0 else len(marks)
        first = max(0, place - _NEAR)
        # A token in parts may have its first digit in the second one.
        last = end + _NEAR if encoded[end : end + 1] == b"." else end
        begins = _PARTED_BEGINNINGS.get(encoded[place : place + 2])
        if signs is None and end - place >= _LONGER:
            signs = [_SIGNS[number] for number in _SIGN_LITERALS.choose(triples)]
            signs = [sign for sign in signs if sign in encoded]
        if end - place >= _LONGER and (
            _DIGIT.search(encoded, first, last)
            or (signs and any(sign in encoded[first:last] for sign in signs))
            or (says_authorization and _AUTHORIZATION.search(encoded, first, last))
        ):
            borders += (place, end)
        elif begins is not None and _NO_NAME.match(encoded, place):
            begin = place if begins else place + 2  # Behind the `=3D` of quoted-printable.
            begins = begins or _PARTED_BEGINNINGS.get(encoded[begin : begin + 2])
            if begins and encoded.startswith(begins, begin):
                short.append(begin)
        place = marks.find(_RUN, end)
    places = to_character_offsets(text, encoded, borders)
    runs = list(zip(places[::2], places[1::2], strict=True))
    return runs, to_character_offsets(text, encoded, short)


def _find_parts(text: str, start: int) -> Iterator[Span]:
    """The parts of a token that begins at `start` and is not whole there."""
    for sort in _PARTED.get(text[start : start + 2], ()):
        if (
            text.startswith(sort.begins or sort.literal, start)
            if sort is not DISCORD_TOKEN
            else _DISCORD_USER.match(text, start)
        ) and sort.shape.match(text, start) is None:
            yield from find_parts(text, sort, start)


def _find_inner_parts(text: str, sort: SecretKind) -> Iterator[Span]:
    """The parts of a token that does not begin with its literal, which stands in the first."""
    place = text.find(sort.literal)
    while place >= 0:
        before = sort.lead.search(text, max(0, place - _NEAR - 2), place) if sort.lead else None
        if before is not None and sort.shape.match(text, before.start()) is None:
            yield from find_parts(text, sort, before.start())
        place = text.find(sort.literal, place + 1)


def _find_kind(text: str, sort: SecretKind, start: int, end: int) -> Iterator[Span]:
    """The secrets of a kind whose literal is in [start, end)."""
    place = text.find(sort.literal, start, end)
    while place >= 0:
        match = match_kind(text, sort, place)
        if match is not None and not is_placeholder(match[0]) and sort.check(match[0]):
            yield Span(match.start(), match.end(), sort.label, make_tag(sort.label))
            place = match.end() - 1
        place = text.find(sort.literal, place + 1, end)


def _find_discord_token(text: str, start: int, end: int) -> Iterator[Span]:
    """The token whose first part, the number of its user, is the run [start, end)."""
    match = DISCORD_TOKEN.shape.match(text, start) if end - start <= 28 else None
    if match is not None and DISCORD_TOKEN.check(match[0]):
        yield Span(*match.span(), "discord_token", make_tag("discord_token"))


_MAILGUN = re.compile(WORD_BEGIN + r"[0-9a-f]{32}(?:-[0-9a-f]{8}){2}")
_MAILGUN_LENGTH = 50


def _find_mailgun_key(text: str, end: int) -> Iterator[Span]:
    """Three parts of hexadecimal digits that end at `end`: only their lengths tell the key."""
    match = _MAILGUN.fullmatch(text, max(0, end - _MAILGUN_LENGTH), end)
    if match is not None and is_random(match[0][:32], 280):
        yield Span(*match.span(), "service_token", make_tag("service_token"))


_INNER_LITERALS = ("A" * 20, "com/services/T")
_SIGNS = [
    *(b"asic ", b"earer ", b"oken: "),
    *(sort.literal.encode() for sort in SECRET_KINDS if len(sort.literal) > 2),
]
_SIGN_LITERALS = Literals(_SIGNS)
_AUTHORIZATION = re.compile(rb"uth[\"']?\s?[:=]")
_DIGIT = re.compile(rb"[0-9]")

_WITHIN = tuple(sort for sort in SECRET_KINDS if sort.begins or sort.literal in _INNER_LITERALS)
"""Kinds whose literal does not begin them; others are looked up by their first characters."""

_BY_BEGINNING: dict[str, list[SecretKind]] = defaultdict(list)
for _sort in SECRET_KINDS + SERVICE_TOKENS:
    if _sort not in _WITHIN:
        _BY_BEGINNING[_sort.literal[:2]].append(_sort)
_TOKEN_BEGIN = re.compile(WORD_BEGIN + "[A-Za-z0-9][A-Za-z0-9/_.]")

_INNER = Literals([sort.literal.encode() for sort in INNER_KINDS])
_INNER_IN_PARTS = ("telegram_token", "azure_client_secret")
_DOTTED = ("SG.", "hvs.", "dp.")
"""Literals with a point, which no run of letters and digits holds."""

_DISCORD_USER = re.compile(r"(?:[MNO][DTjz][AEIMQUYcgk][w-z0-5]){3}")
"""How the digits of a number begin in base64."""

_PARTED: dict[str, list[SecretKind]] = defaultdict(list)
"""Kinds whose tokens may be in parts, by their first two characters."""

for _sort in SECRET_KINDS + SERVICE_TOKENS:
    if _sort.literal != "A" * 20:
        _PARTED[(_sort.begins or _sort.literal)[:2]].append(_sort)
for _first in "MNO":
    for _second in "DTjz":
        _PARTED[_first + _second].append(DISCORD_TOKEN)
_PARTED_BEGINNINGS = {
    begin.encode(): tuple(
        (begin if sort is DISCORD_TOKEN else sort.begins or sort.literal).encode() for sort in sorts
    )
    for begin, sorts in _PARTED.items()
} | {b"3D": ()}
