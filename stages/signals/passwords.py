"""Secrets that only their place tells: values of `api_key` and the like, Azure's keys, passwords.

They have no shape of their own, so they must not look like anything else: a placeholder, a
reference to somewhere else, a name of a program, a path. A value of `api_key`, `secret` or `token`
must look random; a password must have a letter and a digit (`Password: winter79!`), as people
choose them, so words alone and numbers alone after `password:` are not searched. The password
of `scheme://user:password@host` may be any that is no placeholder. Time is linear in the text:
what is matched has a bounded length.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator

from stages.signals.outputs import Span

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
    r"://[^\s:/?#@\"'<>\[\]{}$]{0,64}:([^\s/?#@\"'<>{}$]{3,64})@([A-Za-z0-9.-]{2,100})"
)
_EXAMPLE_HOSTS = re.compile(
    r"example\.|(?:localhost|127\.[0-9.]+|(?:db|your)?host(?:name)?[0-9]*|domain|server)(?:\Z|[.:/])"
)
_SAYS_PASSWORD = re.compile(r"pass|pwd|secret|\Apw", re.IGNORECASE)
_LOOK_BACK, _LOOK_AHEAD = 120, 200
"""Characters around a run of letters and digits that must hold its name and its end."""

_ASSIGNED = re.compile(
    r"(?:api_?-?key|access_?-?key|private_?-?key|account_?-?key|encryption_?-?key|signing_?-?key"
    r"|storage_?-?key|secret|token|passwo?r?d|pwd|credential)"
    r"[\w-]{0,24}(?:[\"'\]]{0,2}\s{0,4}(?:=>|:=|=|:)\s{0,4}|[\"'],\s{0,4}(?=[\"']))"
    r"(?:[\"'`]([^\s\"'`]{16,200})[\"'`]|([A-Za-z0-9+/_=.~-]{20,200})(?=[\s;&]|$))",
    re.IGNORECASE,
)
_AZURE_NAME = re.compile(
    r"azure|account_?-?\s?(?:key|name)|storage_?-?\s?(?:account_?-?\s?)?key|shared_?-?access"
    r"|windows\.net",
    re.IGNORECASE,
)
_AZURE_REACH = 80
_FEWEST_OF_AZURE = 32
"""Characters of the shortest key that an Azure service assigns: what is shorter was cut."""

_VALUE = re.compile(r"[A-Za-z0-9+/_=.~!@#$%^&*:-]+\Z")
_DIGIT, _LETTER = re.compile(r"[0-9]"), re.compile(r"[A-Za-z]")
_HEX = re.compile(r"[0-9a-fA-F]+\Z")
_PARTS = re.compile(r"[^A-Za-z0-9+/]+")
_WORDLIKE = re.compile(r"(?:[A-Z]?[a-z]+|[A-Z]+|[0-9]{1,4})\Z")


def find_url_passwords(text: str) -> Iterator[Span]:
    """The password of each `scheme://user:password@host`."""
    if "@" not in text or "://" not in text:
        return
    for match in _LOGIN.finditer(text):
        password, host = match[1], match[2].lower()
        if _EXAMPLE_HOSTS.match(host) or ".example" in host or is_placeholder(password):
            continue
        if not _SAYS_PASSWORD.search(password):
            yield Span(match.start(1), match.end(1), "url_password", "<secret:url_password>")


def find_assigned_secrets(text: str, start: int, end: int) -> Iterator[Span]:
    """Random-looking values around [start, end) that are assigned to a name such as `api_key`."""
    window = max(0, start - _LOOK_BACK)
    before = text[window:start]
    if "=" not in before and ":" not in before and "," not in before:
        return
    for match in _ASSIGNED.finditer(text, window, end + _LOOK_AHEAD):
        group = 1 if match[1] is not None else 2
        if not (match.start(group) <= start < match.end(group) and _looks_secret(match[group])):
            continue
        name_place = max(0, match.start(group) - _AZURE_REACH)
        is_cut = len(match[group]) < _FEWEST_OF_AZURE and _AZURE_NAME.search(
            text, name_place, match.start(group)
        )
        if not is_cut:
            yield Span(match.start(group), match.end(group), "assigned", "<secret:assigned>")


_AZURE_KEY = re.compile(r"(?<![A-Za-z0-9+/])[A-Za-z0-9+/]{86}==(?![A-Za-z0-9+/=])")
_AZURE_BODY = 86
_AZURE_LOOK_BACK, _AZURE_LOOK_AHEAD = 200, 100
_NAMES_KEY = re.compile(
    r"(?:account|access|storage|shared|primary|secondary|master|auth\w*|table|queue|blob|cosmos\w*"
    r"|batch|azure|secret)[\w -]{0,24}key[\w -]{0,12}[\"'\]]{0,2}\s{0,3}(?:=>|:=|=|:|\bis\b|,|\s)"
    r"[\s\"'`(]{0,4}\Z",
    re.IGNORECASE,
)
_NAMES_DIGEST = re.compile(
    r"(?:sha-?[0-9]{1,3}|integrity|digest|checksum|hash|signature|signed|certificate|cert|public"
    r"|pub_?key|fingerprint|host ?key|ssh|base64,|data:|nonce|image|thumbnail|png|jpe?g|etag|md5"
    r"|hmac|salt|-ref|ciphertext|encrypted|payload|body|avatar|proof)[^\n]{0,40}\Z",
    re.IGNORECASE,
)
_AZURE_WORDS = re.compile(
    r"azure|account_?-?\s?(?:key|name)|storage|endpoint|sharedaccess|windows\.net|blob|cosmos"
    r"|servicebus|event_?hub|connection_?-?\s?string|\bkey[12]\b|(?:primary|secondary)_?-?\s?key",
    re.IGNORECASE,
)
_EMULATOR_KEYS = ("Eby8vdM02xNOcqFl", "C2y6yDjf5/R+ob0N")
"""How the keys begin that Microsoft publishes for its emulators of storage and Cosmos DB."""


def find_azure_key(text: str, end: int) -> Iterator[Span]:
    """The storage key whose letters and digits end at `end`: 64 bytes in base64 in their context.

    A digest, a signature and the end of a certificate may have the same shape.
    """
    start = end - _AZURE_BODY
    match = _AZURE_KEY.match(text, start) if start >= 0 and text.startswith("==", end) else None
    if match is None or is_placeholder(match[0]) or not is_random(match[0][:-2], 450):
        return
    before = text[max(0, start - _AZURE_LOOK_BACK) : start]
    is_named = _NAMES_KEY.search(before) is not None
    if match[0].startswith(_EMULATOR_KEYS) or (not is_named and _NAMES_DIGEST.search(before)):
        return
    if is_named or _AZURE_WORDS.search(before + " " + text[end + 2 : end + _AZURE_LOOK_AHEAD]):
        tag = "<secret:azure_storage_key>"
        yield Span(start, match.end(), "azure_storage_key", tag)


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


_HINTS = (
    *("pass", "pwd", "wort", "woord", "contrase", "senha", "парол", "密码", "密碼", "パスワード"),
)
"""Parts of the names of passwords, in small letters: what is searched first."""

_NAMED_PASSWORD = re.compile(
    r"(?:(?<![a-z])passe?|passw(?:or)?d|passwort|pass-?(?:phrase|code)|pwd|(?<=kenn)wort"
    r"|(?<=wacht)woord|contraseña|senha|пароль|密码|密碼|パスワード)"
    r"(?:(?<=<password)>(?P<tagged>[^<>\s]{6,64})<"
    r"|[\"'\]]{0,2}\s?(?P<sign>=>|:=|=|:|\uff1a|\bis\b)\s{0,2}"
    r"(?:</?(?:b|strong|i|em|code|kbd|tt|td)>\s?|\*\*|&quot;|&#(?:x27|39|34);){0,2}"
    r"(?:(?P<quote>[\"'`])(?P<quoted>[^\s\"'`]{6,64})(?P=quote)"
    r"|(?P<bare>(?:(?!\*\*|&quot;|&#(?:x27|39|34);)[^\s\"'`<>,;]){6,64})))",
    re.IGNORECASE,
)
_CODE = re.compile(
    r"[(){}\[\]]|\A[$%@~./\\-]|://|/.*/|\\|\A(?:[A-Za-z_]\w*\.)+[A-Za-z_]\w*\Z"
    r"|\A(?:u?int[0-9]+|float[0-9]+|sha-?[0-9]+|md5|utf-?(?:8|16)|base(?:32|64)|argon2\w*"
    r"|pbkdf2\w*|n?varchar2?|oauth2?|v[0-9][\w.]*|[0-9]+-?[a-z]{0,12})\Z",
    re.IGNORECASE,
)
_IDENTIFIER = re.compile(r"[a-z_][a-z0-9_]*\Z|[A-Z_][A-Z0-9_]*\Z")
_NEXT_FIELD = re.compile(r"&\w+=.*")


def find_named_passwords(text: str) -> Iterator[Span]:
    """Values with a letter and a digit after `password:`, `PWD=`, `Passwort:` and the like."""
    lowered = text.lower()
    if len(lowered) != len(text):  # A capital that has no small letter of one character.
        lowered = text
    for hint in _HINTS:
        place = lowered.find(hint)
        while place >= 0:
            match = _NAMED_PASSWORD.match(text, place)
            if match is not None:
                yield from _read_password(text, match)
            place = lowered.find(hint, place + 1)


def _read_password(text: str, match: re.Match[str]) -> Iterator[Span]:
    group = next(name for name in ("tagged", "quoted", "bare") if match[name] is not None)
    value = match[group]
    if group == "bare":
        value = _NEXT_FIELD.sub("", value).rstrip(".:)")
        if _is_variable(text, match, value):
            return
    if _is_password(value):
        start = match.start(group)
        yield Span(start, start + len(value), "password", "<secret:password>")


def _is_password(value: str) -> bool:
    return (
        len(value) >= 6
        and _DIGIT.search(value) is not None
        and _LETTER.search(value) is not None
        and not is_placeholder(value)
        and not _SAYS_PASSWORD.search(value)
        and not _CODE.search(value)
    )


def _is_variable(text: str, match: re.Match[str], value: str) -> bool:
    """Whether a value without quotes is a name of a program: `password = pw1`, `f(password=p1)`."""
    if not _IDENTIFIER.match(value) or match["sign"] not in ("=", ":="):
        return False
    after = text[match.start("bare") + len(value) :][:1]
    return " " in text[match.end("sign") : match.start("bare")] or after in (",", ")")
