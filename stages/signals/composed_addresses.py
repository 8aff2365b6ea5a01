"""E-mail addresses that stand in no one piece: in entities, scripts, lists of names.

`&#97;&#110;&#110;&#64;…`, `'ann' + '@' + 'corp.se'`, `{a.rossi, m.bianchi}@dei.it`. Every pattern
is bounded, and looked for around a literal only, so time is linear in the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import unescape

from stages.signals.literals import find_all
from stages.signals.sample_addresses import is_sample, is_top_level

LETTERS = r"A-Za-z0-9\u00c0-\u024f\u0370-\u052f"
LABEL = rf"[{LETTERS}](?:[{LETTERS}-]{{0,61}}[{LETTERS}])?"
"""A part of a domain, in the alphabets of Europe."""

_UNIT = re.compile(r"&#(?:[0-9]{2,5}|[xX][0-9A-Fa-f]{2,4});|[A-Za-z0-9._+-]")
_UNITS = re.compile(rf"(?:{_UNIT.pattern}){{6,160}}")
_ADDRESS = re.compile(rf"[A-Za-z0-9][A-Za-z0-9._+-]{{0,63}}@(?P<host>(?:{LABEL}\.){{1,5}}{LABEL})")


def _find_entities(text: str) -> Iterator[tuple[int, int]]:
    """Addresses of which more than the '@' is written as entities: `&#97;&#110;&#110;&#64;…`."""
    free = 0
    for place in find_all(text, "&#"):
        run = _UNITS.match(text, place) if place >= free else None
        if run is None:
            continue
        free = run.end()
        units = list(_UNIT.finditer(text, place, run.end()))
        plain = "".join(unescape(unit[0]) for unit in units)
        address = _ADDRESS.search(plain) if len(plain) == len(units) else None
        if address is not None and is_top_level(address["host"].rpartition(".")[2].lower()):
            yield units[address.start()].start(), units[address.end() - 1].end()


_SHARED_HOST = re.compile(
    rf"\{{(?:\s?[A-Za-z0-9][\w.+-]{{0,40}}\s?[,;|]){{1,12}}\s?[A-Za-z0-9][\w.+-]{{0,40}}\s?\}}@"
    rf"(?P<host>(?:{LABEL}\.){{1,5}}{LABEL})"
)
_ADDED = re.compile(
    r"(?P<quote>['\"])(?P<local>[A-Za-z0-9][\w.+-]{0,63})(?P=quote) ?\+ ?(?P=quote)@(?P=quote)"
    rf" ?\+ ?(?P=quote)(?P<host>(?:{LABEL}\.){{1,5}}{LABEL})(?P=quote)"
)


def _find_shared_hosts(text: str) -> Iterator[tuple[int, int]]:
    """Addresses at one host, as papers write their authors': `{a.rossi, m.bianchi}@dei.it`."""
    for match in _SHARED_HOST.finditer(text):
        if _is_real("", match["host"]):
            yield match.span()


def _find_added(text: str) -> Iterator[tuple[int, int]]:
    """Addresses that a script adds: `'ann' + '@' + 'corp.se'`."""
    for match in _ADDED.finditer(text):
        if _is_real(match["local"], match["host"]):
            yield match.start("local"), match.end("host")


def _is_real(local: str, host: str) -> bool:
    return is_top_level(host.rpartition(".")[2].lower()) and not is_sample(local, host)


def find_composed_emails(text: str) -> Iterator[tuple[int, int]]:
    """Places of addresses that a page, a script or a paper composes."""
    if "&#" in text:
        yield from _find_entities(text)
    if "}@" in text:
        yield from _find_shared_hosts(text)
    if "+" in text and ("'@'" in text or '"@"' in text):
        yield from _find_added(text)
