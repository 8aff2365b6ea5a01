"""E-mail and public IP addresses in a text, as spans with the reserved example that replaces them.

The shapes are those of datatrove's PII formatter with three differences, each to harm less text. An
IPv4 address must not touch a letter or digit, nor be part of a longer dotted number ("1.2.3.4.5" is
a section, "v1.2.3.4" a version); IPv6 addresses are found (global unicast, 2000::/3); and what is
already the replacement is left alone, so redacting twice is redacting once. Time is linear in the
text.
"""

from __future__ import annotations

import ipaddress
import re
from string import ascii_letters, digits

from stages.signals.spans import Span, without_overlap

REPLACEMENTS = {"email": "email@example.com", "ipv4": "192.0.2.1", "ipv6": "2001:db8::1"}
"""Names reserved for examples: RFC 2606, RFC 5737, RFC 3849."""

_ATOM = "!#$%&'*+/=?^_`{|}~-" + ascii_letters + digits
_LOCAL = _ATOM + "."
_LONGEST_LOCAL = 256
_NAME_START = re.compile(rf"\b[{re.escape(_ATOM)}]")
_AT = re.compile(rf"(?<=[{re.escape(_ATOM)}])@(?=[A-Za-z0-9\[])")
_LABEL = r"[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?"
_IPV4 = r"[0-9]{1,3}\.[0-9]{1,3}\.[0-9]{1,3}\.[0-9]{1,3}"
_IPV6 = r"[23][0-9A-Fa-f]{3}(?::[0-9A-Fa-f]{0,4}){2,7}"
_DOMAIN = re.compile(rf"(?:{_LABEL}\.)+{_LABEL}|\[{_IPV4}\]")
# A pattern that starts with a digit is searched several times faster than one that starts by
# looking behind, so what touches an address is looked at once one is found. The middle of an
# address, which starts with a literal, is searched faster still, and most texts hold none.
_ADDRESSES = (
    (
        "ipv4",
        re.compile(r"\.[0-9]{1,3}\.[0-9]"),
        re.compile(_IPV4),
        re.compile(r"[A-Za-z0-9]|\.[0-9]"),
    ),
    (
        "ipv6",
        re.compile(r":[0-9A-Fa-f]{0,4}:"),
        re.compile(_IPV6),
        re.compile(r"[A-Za-z0-9:]|\.[0-9]"),
    ),
)
_TOUCHING_BEFORE = {"ipv4": re.compile(r"[A-Za-z0-9]\Z|[0-9]\.\Z"), "ipv6": re.compile(r"[\w:.]\Z")}


def personal_data(text: str) -> list[Span]:
    """Every address in `text`, from left to right, without overlaps."""
    # Of two that start together (8.8.8.8@corp.com) the longer stays.
    return without_overlap([*_emails(text), *_ip_addresses(text)])


def _emails(text: str) -> list[Span]:
    """Addresses around each '@' that could be inside one: text without any costs nothing."""
    spans: list[Span] = []
    free = 0
    for mark in _AT.finditer(text) if "@" in text else ():
        at = mark.end()  # just behind the '@'
        domain = _DOMAIN.match(text, at)
        if domain is None:
            continue
        before = text[max(free, at - 1 - _LONGEST_LOCAL) : at - 1]
        run = before[len(before.rstrip(_LOCAL)) :].rpartition("..")[2]
        name = _NAME_START.search(text, at - 1 - len(run), at - 1)
        if name is not None and text[name.start() : domain.end()] != REPLACEMENTS["email"]:
            spans.append(Span(name.start(), domain.end(), "email", REPLACEMENTS["email"]))
            free = domain.end()
    return spans


def _ip_addresses(text: str) -> list[Span]:
    spans = []
    for version, middle, pattern, touching in _ADDRESSES:
        for match in pattern.finditer(text) if middle.search(text) else ():
            start, end = match.span()
            alone = not touching.match(text, end) and not _TOUCHING_BEFORE[version].search(
                text, max(start - 2, 0), start
            )
            if alone and _is_public(match[0]):
                spans.append(Span(start, end, "ip_address", REPLACEMENTS[version]))
    return spans


def _is_public(address: str) -> bool:
    try:
        return ipaddress.ip_address(address).is_global
    except ValueError:
        return False
