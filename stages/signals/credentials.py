"""Secrets in a text, as spans with the tag that replaces them: keys and tokens of known services.

Every secret but a short password holds a long run of letters, digits and `_+/-`, which prose hardly
does: a text without one costs one look. In a run a literal tells the sort; then follow a shape and
a check: the length and alphabet that the service uses, its checksum where it has one (GitHub and
npm end tokens with a CRC-32), enough different characters, and no sign of a placeholder. Secrets
without a shape of their own (passwords in addresses, values of names such as `api_key`) are in
`assignments.py`. Time is linear in the text.
"""

from __future__ import annotations

import base64
import binascii
import re
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from stages.engine.strict_json import parse_json
from stages.signals.assignments import assigned_secrets, url_passwords
from stages.signals.byte_places import in_characters
from stages.signals.placeholders import is_placeholder, is_random
from stages.signals.spans import Span, without_overlap

LONGEST_KEY_BLOCK = 20_000
"""Characters after the head of a private key within which it must end."""

_BASE62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_WORD = r"(?<![A-Za-z0-9_-])"
_END = r"(?![A-Za-z0-9_-])"
_LONG = b"a" * 16
_IN_RUN = bytes(
    ord("a" if chr(byte) in "_+/-" or (chr(byte).isalnum() and byte < 128) else " ")
    for byte in range(256)
)
_REACH = 200
"""Characters before a literal in which its secret must begin."""

_BEFORE = 4
"""Characters before a run in which a literal may begin: a run does not hold the point of `SG.`."""

_KEY_HEAD = re.compile(r"-----BEGIN ((?:[A-Z0-9]{2,12} ){0,3}PRIVATE KEY(?: BLOCK)?)-----")
_KEY_CHARACTERS = re.compile(r"[A-Za-z0-9+/=]")


@dataclass(frozen=True)
class Sort:
    """A sort of secret: its label, the literal that marks it, its shape, and a further check."""

    label: str
    literal: str
    shape: re.Pattern[str]
    check: Callable[[str], bool] = lambda token: True
    begins: str = ""
    """What the secret begins with, where that is not the literal."""


def secrets(text: str) -> list[Span]:
    """Every secret in `text`, from left to right, without overlaps."""
    found: list[Span] = []
    if "@" in text and "://" in text:
        found += url_passwords(text)
    for start, end in _long_runs(text):
        near = text[max(0, start - _BEFORE) : end]
        for sort in SORTS:
            if sort.literal in near:
                found += _of_sort(text, sort, max(0, start - _BEFORE), end)
        found += assigned_secrets(text, start, end)
    if "PRIVATE KEY" in text:
        found += _private_keys(text)
    return without_overlap(found) if len(found) > 1 else found


def tag(label: str) -> str:
    """What stands in the place of a secret."""
    return f"<secret:{label}>"


def crc32_base62(body: str) -> str:
    """The last six characters of a GitHub or npm token whose random part is `body`."""
    number, digits = zlib.crc32(body.encode()), ""
    while number:
        number, digit = divmod(number, 62)
        digits = _BASE62[digit] + digits
    return digits.rjust(6, "0")


def _long_runs(text: str) -> list[tuple[int, int]]:
    """Where the runs lie that may hold a secret: those with a digit or with the mark of a sort."""
    encoded = text.encode("utf-8", "surrogatepass")
    marks = encoded.translate(_IN_RUN)
    runs, place = [], marks.find(_LONG)
    while place >= 0:
        end = marks.find(b" ", place)
        end = end if end >= 0 else len(marks)
        if _MAY_BE_SECRET.search(encoded, max(0, place - _BEFORE), end):
            runs.append((place, end))
        place = marks.find(_LONG, end)
    borders = in_characters(text, encoded, [border for run in runs for border in run])
    return list(zip(borders[::2], borders[1::2], strict=True))


def _of_sort(text: str, sort: Sort, start: int, end: int) -> Iterator[Span]:
    """The secrets of a sort whose literal stands in [start, end)."""
    place = text.find(sort.literal, start, end)
    while place >= 0:
        match = _match(text, sort, place)
        if match is not None and not is_placeholder(match[0]) and sort.check(match[0]):
            yield Span(match.start(), match.end(), sort.label, tag(sort.label))
            place = match.end() - 1
        place = text.find(sort.literal, place + 1, end)


def _match(text: str, sort: Sort, place: int) -> re.Match[str] | None:
    """The shape that holds the literal at `place`."""
    if not sort.begins:
        return sort.shape.match(text, place)
    start = text.rfind(sort.begins, max(0, place - _REACH), place)
    match = sort.shape.match(text, start) if start >= 0 else None
    return match if match is not None and place < match.end() else None


def _private_keys(text: str) -> Iterator[Span]:
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
            yield Span(head.start(), foot + len(mark), "private_key", tag("private_key"))


def _is_key(body: str) -> bool:
    """Whether what stands between the marks is base64 and enough of it, not prose about keys.

    30 bytes are the least that a private key (Ed25519) takes.
    """
    letters = len(_KEY_CHARACTERS.findall(body))
    return letters >= 40 and "..." not in body and body.count(" ") * 8 < len(body)


def _has_crc(token: str) -> bool:
    body = token.partition("_")[2]
    return crc32_base62(body[:-6]) == body[-6:]


def _is_jwt(token: str) -> bool:
    """Whether the first part is a JSON object that names an algorithm."""
    head = token.partition(".")[0]
    try:
        value = parse_json(base64.urlsafe_b64decode(head + "=" * (-len(head) % 4)))
    except (binascii.Error, ValueError):
        return False
    return isinstance(value, dict) and "alg" in value


def _random_after(separators: str, bits: int = 350) -> Callable[[str], bool]:
    """A check that what follows the last prefix looks random."""

    def check(token: str) -> bool:
        return is_random(re.split(separators, token)[-1], bits)

    return check


def _sort(
    label: str,
    literal: str,
    shape: str,
    check: Callable[[str], bool] = lambda token: True,
    begins: str = "",
) -> Sort:
    return Sort(label, literal, re.compile(f"{_WORD}{shape}{_END}"), check, begins)


SORTS: tuple[Sort, ...] = (
    *(
        _sort("aws_access_key", prefix, rf"{prefix}[A-Z2-7]{{16}}", lambda t: is_random(t[4:], 250))
        for prefix in ("AKIA", "ASIA")
    ),
    _sort("google_api_key", "AIza", r"AIza[A-Za-z0-9_-]{35}", _random_after("AIza")),
    _sort("google_oauth_secret", "GOCSPX-", r"GOCSPX-[A-Za-z0-9_-]{28}", _random_after("GOCSPX-")),
    *(
        _sort("github_token", prefix, rf"{prefix}[A-Za-z0-9]{{36}}", _has_crc)
        for prefix in ("ghp_", "gho_", "ghu_", "ghs_", "ghr_")
    ),
    _sort(
        "github_token",
        "github_pat_",
        r"github_pat_[A-Za-z0-9]{22}_[A-Za-z0-9]{59}",
        _random_after("_", 400),
    ),
    _sort("npm_token", "npm_", r"npm_[A-Za-z0-9]{36}", _has_crc),
    _sort("gitlab_token", "glpat-", r"glpat-[A-Za-z0-9_-]{20,64}", _random_after("glpat-")),
    _sort(
        "slack_token",
        "xox",
        r"xox[abeoprs]-(?:[0-9A-Za-z]{1,24}-){1,5}[A-Za-z0-9]{16,72}",
        _random_after("-", 300),
    ),
    Sort(
        "slack_webhook",
        "com/services/T",
        re.compile(r"hooks\.slack\.com/services/T[A-Z0-9]{7,12}/B[A-Z0-9]{7,12}/[A-Za-z0-9]{24}"),
        _random_after("/"),
        begins="hooks.",
    ),
    *(
        _sort("stripe_key", prefix, rf"{prefix}[0-9A-Za-z]{{24,247}}", _random_after("_"))
        for prefix in ("sk_live_", "rk_live_")
    ),
    _sort(
        "openai_key",
        "T3BlbkFJ",
        r"sk-(?:[a-z]{3,10}-)?[A-Za-z0-9_-]{16,160}T3BlbkFJ[A-Za-z0-9_-]{16,160}",
        begins="sk-",
    ),
    _sort("anthropic_key", "sk-ant-", r"sk-ant-[a-z0-9]{3,12}-[A-Za-z0-9_-]{80,120}"),
    _sort("hugging_face_token", "hf_", r"hf_[A-Za-z]{34}", _random_after("_", 400)),
    _sort("sendgrid_key", "SG.", r"SG\.[A-Za-z0-9_-]{22}\.[A-Za-z0-9_-]{43}"),
    _sort("pypi_token", "pypi-AgE", r"pypi-AgE[A-Za-z0-9_-]{50,400}"),
    _sort(
        "json_web_token",
        "eyJ",
        r"eyJ[A-Za-z0-9_-]{10,2000}\.eyJ[A-Za-z0-9_-]{10,8000}\.[A-Za-z0-9_-]{20,2000}",
        _is_jwt,
    ),
)
"""The sorts with a shape of their own, in the order in which they are looked for."""

_MAY_BE_SECRET = re.compile(
    "|".join(["[0-9]", *(re.escape(sort.literal) for sort in SORTS)]).encode()
)
