"""Secrets in a text, as spans with the tag that replaces them: keys, tokens and passwords.

Every secret but a short password holds a long run of letters, digits and `_+/-`, which prose hardly
does: a text without one costs one pass. In a run a literal tells the kind; then follow a shape and
a check: the length and alphabet that the service uses, its checksum where it has one (GitHub and
npm end tokens with a CRC-32), enough different characters, and no sign of a placeholder.

Secrets without a shape of their own are passwords in addresses and values of names such as
`api_key`. Only their place tells them, so they must look random, and a value that says it is an
example, a reference to somewhere else or a path is left alone. Time is linear in the text: what is
matched has a bounded length.
"""

from __future__ import annotations

import base64
import binascii
import math
import re
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from stages.engine.strict_json import parse_json
from stages.signals.outputs import Span, drop_overlaps, to_character_offsets

_FILLER = re.compile(
    r"example|sample|placeholder|dummy|changeme|change[_-]me|redacted|your[_-]|[_-]here\b"
    r"|x{4}|\*{3}|\.{3}|1234567|abcdefg|0{6}|<[^<>]*>|\$\{|\{\{|\$\(|%\(",
    re.IGNORECASE,
)
_COMMON_PASSWORDS = frozenset(
    (
        *("admin", "changeit", "changeme", "default", "guest", "hunter2", "letmein", "mypass"),
        *("mypassword", "none", "null", "pass", "passw0rd", "passwd", "password", "password1"),
        *("pw", "pwd", "qwerty", "root", "s3cr3t", "secret", "test", "testing", "token", "toor"),
        *("user", "xxx", "yourpassword"),
    )
)
_SCALE = 1000
_LOGS = [0, *(int(c * math.log2(c) * _SCALE) for c in range(1, 256))]
"""c * log2(c) in whole thousandths of a bit, so that no rounding of a logarithm decides."""


def is_placeholder(value: str) -> bool:
    """Whether a value is filler for a secret, or a common password."""
    return value.lower() in _COMMON_PASSWORDS or _FILLER.search(value) is not None


def is_random(value: str, bits: int) -> bool:
    """Whether the entropy of the value's characters is at least `bits` hundredths a character.

    Shannon's, over the first 255 characters: n log2 n - sum of c log2 c, over n. 40 characters of
    random base64 have about 4.6 bits, hexadecimal at most 4, an English word of ten letters about
    3.
    """
    value = value[:255]
    size = len(value)
    if not size:
        return False
    spread = _LOGS[size] - sum(_LOGS[count] for count in Counter(value).values())
    return spread * 100 >= bits * _SCALE * size


# The part between "://" and "@" of an address with a password.
_LOGIN = re.compile(
    r"://[^\s:/?#@\"'<>\[\]{}$]{0,64}:([^\s/?#@\"'<>{}$%]{6,64})@([A-Za-z0-9.-]{3,100})"
)
_LOOK_BACK, _LOOK_AHEAD = 120, 200
"""Characters around a run of letters and digits that must hold its name and its end."""

_ASSIGNED = re.compile(
    r"(?:api_?-?key|access_?-?key|private_?-?key|account_?-?key|encryption_?-?key|signing_?-?key"
    r"|secret|token|passwo?r?d|pwd|credential)"
    r"[\w-]{0,24}[\"'\]]{0,2}\s{0,4}(?:=>|:=|=|:)\s{0,4}"
    r"(?:[\"'`]([^\s\"'`]{16,200})[\"'`]|([A-Za-z0-9+/_=.~-]{20,200})(?=\s|$))",
    re.IGNORECASE,
)
_VALUE = re.compile(r"[A-Za-z0-9+/_=.~!@#$%^&*:-]+\Z")
_DIGIT, _LETTER = re.compile(r"[0-9]"), re.compile(r"[A-Za-z]")
_HEX = re.compile(r"[0-9a-fA-F]+\Z")
_PARTS = re.compile(r"[^A-Za-z0-9+/]+")
_WORDLIKE = re.compile(r"(?:[A-Z]?[a-z]+|[A-Z]+|[0-9]{1,4})\Z")
_EXAMPLE_HOSTS = ("example.", "localhost", "host", "127.", "domain", "hostname", "server")


def find_url_passwords(text: str) -> Iterator[Span]:
    """The password of each `scheme://user:password@host`."""
    if "@" not in text:
        return
    for match in _LOGIN.finditer(text):
        password, host = match[1], match[2].lower()
        if host.startswith(_EXAMPLE_HOSTS) or ".example" in host or is_placeholder(password):
            continue
        if _DIGIT.search(password) and _LETTER.search(password) and is_random(password, 250):
            yield Span(match.start(1), match.end(1), "url_password", "<secret:url_password>")


def find_assigned_secrets(text: str, start: int, end: int) -> Iterator[Span]:
    """Random-looking values around [start, end) that are assigned to a name such as `api_key`."""
    window = max(0, start - _LOOK_BACK)
    before = text[window:start]
    if "=" not in before and ":" not in before:
        return
    for match in _ASSIGNED.finditer(text, window, end + _LOOK_AHEAD):
        group = 1 if match[1] is not None else 2
        if match.start(group) <= start < match.end(group) and _looks_secret(match[group]):
            yield Span(match.start(group), match.end(group), "assigned", "<secret:assigned>")


def _looks_secret(value: str) -> bool:
    """Letters and digits mixed as chance mixes them, and none of the signs of a name or a path."""
    if is_placeholder(value) or not _VALUE.match(value):
        return False
    if not (_DIGIT.search(value) and _LETTER.search(value)):
        return False
    if "://" in value or all(_WORDLIKE.match(part) for part in _PARTS.split(value) if part):
        return False
    longest = max(_PARTS.split(value), key=len)
    if _HEX.match(value):
        return len(value) >= 32 and is_random(value, 300)
    return len(longest) >= 16 and is_random(longest, 370)


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
class SecretKind:
    """A kind of secret: its label, the literal that marks it, its shape, and a further check."""

    label: str
    literal: str
    shape: re.Pattern[str]
    check: Callable[[str], bool] = lambda token: True
    begins: str = ""
    """What the secret begins with, where that is not the literal."""


def find_secrets(text: str) -> list[Span]:
    """Every secret in `text`, from left to right, without overlaps."""
    spans: list[Span] = []
    if "@" in text and "://" in text:
        spans += find_url_passwords(text)
    for start, end in _find_long_runs(text):
        near = text[max(0, start - _BEFORE) : end]
        for sort in SECRET_KINDS:
            if sort.literal in near:
                spans += _find_kind(text, sort, max(0, start - _BEFORE), end)
        spans += find_assigned_secrets(text, start, end)
    if "PRIVATE KEY" in text:
        spans += _find_private_keys(text)
    return drop_overlaps(spans) if len(spans) > 1 else spans


def make_tag(label: str) -> str:
    """The text that replaces a secret."""
    return f"<secret:{label}>"


def crc32_base62(body: str) -> str:
    """The last six characters of a GitHub or npm token whose random part is `body`."""
    number, digits = zlib.crc32(body.encode()), ""
    while number:
        number, digit = divmod(number, 62)
        digits = _BASE62[digit] + digits
    return digits.rjust(6, "0")


def _find_long_runs(text: str) -> list[tuple[int, int]]:
    """Places of runs that may hold a secret: those with a digit or with the literal of a kind."""
    encoded = text.encode("utf-8", "surrogatepass")
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
    if not sort.begins:
        return sort.shape.match(text, place)
    start = text.rfind(sort.begins, max(0, place - _REACH), place)
    match = sort.shape.match(text, start) if start >= 0 else None
    return match if match is not None and place < match.end() else None


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


def _check_random_after(separators: str, bits: int = 350) -> Callable[[str], bool]:
    """A check that what follows the last prefix looks random."""

    def check(token: str) -> bool:
        return is_random(re.split(separators, token)[-1], bits)

    return check


def _kind(
    label: str,
    literal: str,
    shape: str,
    check: Callable[[str], bool] = lambda token: True,
    begins: str = "",
) -> SecretKind:
    return SecretKind(label, literal, re.compile(f"{_WORD}{shape}{_END}"), check, begins)


SECRET_KINDS: tuple[SecretKind, ...] = (
    *(
        _kind("aws_access_key", prefix, rf"{prefix}[A-Z2-7]{{16}}", lambda t: is_random(t[4:], 250))
        for prefix in ("AKIA", "ASIA")
    ),
    _kind("google_api_key", "AIza", r"AIza[A-Za-z0-9_-]{35}", _check_random_after("AIza")),
    _kind(
        "google_oauth_secret",
        "GOCSPX-",
        r"GOCSPX-[A-Za-z0-9_-]{28}",
        _check_random_after("GOCSPX-"),
    ),
    *(
        _kind("github_token", prefix, rf"{prefix}[A-Za-z0-9]{{36}}", _has_crc)
        for prefix in ("ghp_", "gho_", "ghu_", "ghs_", "ghr_")
    ),
    _kind(
        "github_token",
        "github_pat_",
        r"github_pat_[A-Za-z0-9]{22}_[A-Za-z0-9]{59}",
        _check_random_after("_", 400),
    ),
    _kind("npm_token", "npm_", r"npm_[A-Za-z0-9]{36}", _has_crc),
    _kind("gitlab_token", "glpat-", r"glpat-[A-Za-z0-9_-]{20,64}", _check_random_after("glpat-")),
    _kind(
        "slack_token",
        "xox",
        r"xox[abeoprs]-(?:[0-9A-Za-z]{1,24}-){1,5}[A-Za-z0-9]{16,72}",
        _check_random_after("-", 300),
    ),
    SecretKind(
        "slack_webhook",
        "com/services/T",
        re.compile(r"hooks\.slack\.com/services/T[A-Z0-9]{7,12}/B[A-Z0-9]{7,12}/[A-Za-z0-9]{24}"),
        _check_random_after("/"),
        begins="hooks.",
    ),
    *(
        _kind("stripe_key", prefix, rf"{prefix}[0-9A-Za-z]{{24,247}}", _check_random_after("_"))
        for prefix in ("sk_live_", "rk_live_")
    ),
    _kind(
        "openai_key",
        "T3BlbkFJ",
        r"sk-(?:[a-z]{3,10}-)?[A-Za-z0-9_-]{16,160}T3BlbkFJ[A-Za-z0-9_-]{16,160}",
        begins="sk-",
    ),
    _kind("anthropic_key", "sk-ant-", r"sk-ant-[a-z0-9]{3,12}-[A-Za-z0-9_-]{80,120}"),
    _kind("hugging_face_token", "hf_", r"hf_[A-Za-z]{34}", _check_random_after("_", 400)),
    _kind("sendgrid_key", "SG.", r"SG\.[A-Za-z0-9_-]{22}\.[A-Za-z0-9_-]{43}"),
    _kind("pypi_token", "pypi-AgE", r"pypi-AgE[A-Za-z0-9_-]{50,400}"),
    _kind(
        "json_web_token",
        "eyJ",
        r"eyJ[A-Za-z0-9_-]{10,2000}\.eyJ[A-Za-z0-9_-]{10,8000}\.[A-Za-z0-9_-]{20,2000}",
        _is_jwt,
    ),
)
"""The kinds with a shape of their own, in the order of the search."""

_MAY_BE_SECRET = re.compile(
    "|".join(["[0-9]", *(re.escape(sort.literal) for sort in SECRET_KINDS)]).encode()
)
