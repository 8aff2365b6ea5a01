"""Secrets without a shape of their own: passwords in addresses, values of names such as `api_key`.

Nothing but their place tells them, so they must look random, and a value that says it is an
example, a reference to somewhere else or a path is left alone. Time is linear in the text: what is
matched has a bounded length.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from stages.signals.placeholders import is_placeholder, is_random
from stages.signals.spans import Span

# What stands between "://" and "@" in an address that carries a password.
_LOGIN = re.compile(
    r"://[^\s:/?#@\"'<>\[\]{}$]{0,64}:([^\s/?#@\"'<>{}$%]{6,64})@([A-Za-z0-9.-]{3,100})"
)
_LOOK_BACK, _LOOK_AHEAD = 120, 200
"""Characters around a run of letters and digits in which its name and its end must stand."""

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


def url_passwords(text: str) -> Iterator[Span]:
    """The password of each `scheme://user:password@host`."""
    if "@" not in text:
        return
    for match in _LOGIN.finditer(text):
        password, host = match[1], match[2].lower()
        if host.startswith(_EXAMPLE_HOSTS) or ".example" in host or is_placeholder(password):
            continue
        if _DIGIT.search(password) and _LETTER.search(password) and is_random(password, 250):
            yield Span(match.start(1), match.end(1), "url_password", "<secret:url_password>")


def assigned_secrets(text: str, start: int, end: int) -> Iterator[Span]:
    """The random-looking value around [start, end) that a name such as `api_key` is given."""
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
