"""Keys of Azure by their context: storage keys, also over lines, and tokens of Azure DevOps.

A storage key has the shape of any digest of 64 bytes, a token that of any number in base32: what
stands near tells. Time is linear in the text: what is matched has a bounded length.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator

from stages.signals.outputs import Span
from stages.signals.secret_values import is_placeholder, is_random

EMULATOR_KEYS = ("Eby8vdM02xNOcqFl", "C2y6yDjf5/R+ob0N")
"""How the keys begin that Microsoft publishes for its emulators of storage and Cosmos DB."""

_AZURE_KEY = re.compile(r"(?<![A-Za-z0-9+/])[A-Za-z0-9+/]{86}==(?![A-Za-z0-9+/=])")
_AZURE_BODY = 86
_AZURE_LOOK_BACK, _AZURE_NEAR, _AZURE_LOOK_AHEAD = 200, 40, 200
_SERVICE_MARK, _SERVICE_MARK_PLACE = "+ASt", 76
"""What Microsoft writes into the keys of storage accounts since 2022."""

_NAMES_KEY = re.compile(
    r"(?:account|access|storage|shared|primary|secondary|master|auth\w*|table|queue|blob|cosmos\w*"
    r"|batch|azure|secret|api)[\w -]{0,24}key[\w -]{0,12}[\"'\]]{0,2}\s{0,3}"
    r"(?:=>|:=|=|:(?: ?[>|]-?)?|\bis\b|,|\s)"
    r"[\s\"'`(]{0,4}\Z",
    re.IGNORECASE,
)
_NAMES_DIGEST = re.compile(
    r"sha-?_?[0-9]{1,3}|integrity|digest|checksum|check sum|prüfsumme|somme de contr|suma de|hash"
    r"|signature"
    r"|\bsign|\bsig\b|certificate|\bcert\b|public[ _-]?key|pub_?key|\bexpected\b|\bactual\b"
    r"|\bwanted\b|fingerprint|dnskey|host ?key|ssh|base64,|data:|nonce"
    r"|image|thumbnail|png|jpe?g|etag|md5|hmac|salt|-ref|ciphertext|encrypt|payload|body|avatar"
    r"|proof"
    r"|BEGIN |ed25519|minisign|manifest|merkle|block",
    re.IGNORECASE,
)
_AZURE_WORDS = re.compile(
    r"azure|account_?-?\s?(?:key|name)|storage|endpoint|sharedaccess|windows\.net|blob|cosmos"
    r"|servicebus|event_?hub|connection_?-?\s?string|\bkey[12]\b|(?:primary|secondary)_?-?\s?key",
    re.IGNORECASE,
)
_LINE_BREAK = r"(?:[\"'] ?[+.&]? ?\\?\r?\n[ \t]{0,40}(?:[+.&] ?)?[\"']|[=\\]?\r?\n[ \t>*#|]{0,40})"
_BROKEN_KEY = re.compile(
    rf"[A-Za-z0-9+/]{{4,84}}(?:{_LINE_BREAK}[A-Za-z0-9+/]{{1,82}}){{1,3}}={{1,2}}(?:{_LINE_BREAK}=)?(?![A-Za-z0-9+/=])"
)
_LINE_AFTER = re.compile(_LINE_BREAK)


_AZURE_TOKEN = re.compile(r"[a-z2-7]{52}|[A-Za-z0-9]{52}JQQJ99[A-Za-z0-9]{18,22}AZDO[A-Za-z0-9]{4}")
_AZURE_TOKEN_NEAR = re.compile(
    r"(?<![a-z])pat(?![a-z])|azure|devops|vsts|visualstudio|personal.?access", re.IGNORECASE
)
_TOKEN_REACH = 80


def find_azure_token(text: str, start: int, end: int) -> Iterator[Span]:
    """A personal access token of Azure DevOps: 52 characters of base32, beside what names it.

    Since 2024 it has 84 with two marks.
    """
    if end - start not in (52, 84) or not _AZURE_TOKEN.fullmatch(text, start, end):
        return
    near = text[max(0, start - _TOKEN_REACH) : start]
    is_named = _AZURE_TOKEN_NEAR.search(near) and not _NAMES_DIGEST.search(near)
    if is_named and is_random(text[start:end], 370):
        yield Span(start, end, "assigned", "<secret:assigned>")


def find_broken_azure_key(text: str, start: int, end: int) -> Iterator[Span]:
    """The key that begins with the run [start, end) at the end of a line, below its own name."""
    if end - start >= _AZURE_BODY or not _LINE_AFTER.match(text, end):
        return
    match = _BROKEN_KEY.match(text, start)
    if match is None or not _NAMES_KEY.search(text, max(0, start - _AZURE_LOOK_BACK), start):
        return
    joined = re.sub(_LINE_BREAK, "", match[0])
    if len(joined) == _AZURE_BODY + 2 and is_random(joined[:-2], 450):
        yield Span(start, match.end(), "azure_storage_key", "<secret:azure_storage_key>")


def find_azure_key(text: str, end: int) -> Iterator[Span]:
    """The storage key whose letters and digits end at `end`: 64 bytes in base64.

    A digest, a signature and the end of a certificate have the same shape: what speaks of these
    near it makes it none, unless the mark of the service is in it.
    """
    start = end - _AZURE_BODY
    match = _AZURE_KEY.match(text, start) if start >= 0 and text.startswith("==", end) else None
    if match is None or is_placeholder(match[0]) or not is_random(match[0][:-2], 450):
        return
    if base64.b64decode(match[0]).isascii():
        return
    before = text[max(0, start - _AZURE_LOOK_BACK) : start]
    if match[0].startswith(EMULATOR_KEYS) or before.endswith(("-", "=:")):
        return
    has_mark = match[0].startswith(_SERVICE_MARK, _SERVICE_MARK_PLACE)
    if has_mark or _NAMES_KEY.search(before) or not _is_digest(text, start, match.end()):
        tag = "<secret:azure_storage_key>"
        yield Span(start, match.end(), "azure_storage_key", tag)


def _is_digest(text: str, start: int, end: int) -> bool:
    """Whether words around speak of a digest, a signature or a file, and none of Azure is near."""
    before = text[max(0, start - _AZURE_LOOK_BACK) : start]
    after = text[end : end + _AZURE_LOOK_AHEAD]
    near = before[-_AZURE_NEAR:].rsplit("\n", 1)[-1]
    if _NAMES_DIGEST.search(near):
        return True
    if _AZURE_WORDS.search(before) or _AZURE_WORDS.search(after):
        return False
    return _NAMES_DIGEST.search(before) is not None or _NAMES_DIGEST.search(after) is not None
