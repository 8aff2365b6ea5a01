"""E-mail and public IP addresses in a text.

The shapes are those of datatrove's PII formatter with differences that each harm less text. An IPv4
address must not touch a letter or digit, nor be part of a longer dotted number ("1.2.3.4.5" is a
section, "v1.2.3.4" a version). Of at most six digits it needs a word beside it that speaks of
addresses, unless its four parts are equal: on crawled pages nearly all of these are versions
("4.4.2.8"), and of all addresses one in 700 is so short. IPv6 addresses are found as well: global
unicast (2000::/3), and others that are written in full. Time is linear in the text.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator
from string import ascii_letters, digits

_ATOM = "!#$%&'*+/=?^_`{|}~-" + ascii_letters + digits
_LOCAL = _ATOM + "."
_LONGEST_LOCAL = 256
_NAME_START = re.compile(rf"\b[{re.escape(_ATOM)}]")
_AT = re.compile(r"@(?=[A-Za-z0-9\[])")
_LABEL = r"[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?"
_IPV4 = r"[0-9]{1,3}\.[0-9]{1,3}\.[0-9]{1,3}\.[0-9]{1,3}"
_IPV6 = (
    r"[23][0-9A-Fa-f]{3}(?::[0-9A-Fa-f]{0,4}){2,7}"
    r"|[1-9A-Fa-f][0-9A-Fa-f]{3}(?::[0-9A-Fa-f]{1,4}){7}"
)
_DOMAIN = re.compile(rf"(?:{_LABEL}\.)+{_LABEL}|\[{_IPV4}\]")
# A pattern that starts with a literal is searched many times faster than any other: so the points
# and colons of addresses are looked for first, and what stands around each is looked at then.
_SHAPES = (
    (
        re.compile(r"\.(?=[0-9]{1,3}\.[0-9])"),
        re.compile(r"[0-9]{1,3}\Z"),
        re.compile(_IPV4),
        re.compile(r"[A-Za-z0-9]\Z|[0-9]\.\Z"),
        re.compile(r"[A-Za-z0-9]|\.[0-9]"),
    ),
    (
        re.compile(r":(?=[0-9A-Fa-f]{0,4}:)"),
        re.compile(r"[0-9A-Fa-f]{4}\Z"),
        re.compile(_IPV6),
        re.compile(r"[\w:.]\Z"),
        re.compile(r"[A-Za-z0-9:]|\.[0-9]"),
    ),
)
_SHORT = 6
_LOOK_BACK = 40
_ADDRESS_WORDS = re.compile(
    r"\b(?:ip(?:v4)?|address|adresse|dirección|server|host|dns|ping|login|logged|from|client|user"
    r"|proxy|router|gateway)\b[^0-9<>@]{0,30}\Z",
    re.IGNORECASE,
)


def emails(text: str) -> Iterator[tuple[int, int]]:
    """Where addresses stand: those around each '@'. A text without any costs nothing."""
    free = 0
    for mark in _AT.finditer(text):
        at = mark.end()  # just behind the '@'
        domain = _DOMAIN.match(text, at) if text[max(0, at - 2)] in _ATOM else None
        if domain is None:
            continue
        before = text[max(free, at - 1 - _LONGEST_LOCAL) : at - 1]
        run = before[len(before.rstrip(_LOCAL)) :].rpartition("..")[2]
        name = _NAME_START.search(text, at - 1 - len(run), at - 1)
        if name is not None:
            yield name.start(), domain.end()
            free = domain.end()


def ip_addresses(text: str) -> Iterator[tuple[int, int]]:
    """Where public addresses stand, those of IPv4 first."""
    for middle, beginning, shape, touching_before, touching_behind in _SHAPES:
        free = 0
        for mark in middle.finditer(text):
            begun = beginning.search(text, max(free, mark.start() - 4), mark.start())
            match = shape.match(text, begun.start()) if begun else None
            if match is None or touching_behind.match(text, match.end()):
                continue
            start, end = match.span()
            if touching_before.search(text, max(start - 2, 0), start):
                continue
            if _is_public(match[0]) and not _is_version(text, start, match[0]):
                yield start, end
                free = end


def _is_public(address: str) -> bool:
    try:
        return ipaddress.ip_address(address).is_global
    except ValueError:
        return False


def _is_version(text: str, start: int, address: str) -> bool:
    """Whether four short numbers stand where nothing says that they are an address."""
    parts = address.split(".")
    if len(parts) != 4 or len(set(parts)) == 1 or len("".join(parts)) > _SHORT:
        return False
    return not _ADDRESS_WORDS.search(text, max(0, start - _LOOK_BACK), start)
