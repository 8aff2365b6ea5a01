"""From bytes to characters: byte order mark, then HTTP, then the page's own word, then detection.

The order is that of the HTML standard (https://html.spec.whatwg.org/#determining-the-character-encoding),
with two departures that save text on real pages: bytes that are valid UTF-8 beyond ASCII are never
read as a single-byte encoding (whose every byte string is "valid"), and where the declared encoding
fits badly, a detected one that fits without error is taken.
"""

from __future__ import annotations

import codecs
import re
from dataclasses import dataclass

_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_META = re.compile(
    rb"""<meta\b[^>]{0,512}?charset\s*=\s*["']?\s*([A-Za-z0-9_:.\-]+)""", re.IGNORECASE
)
_XML = re.compile(
    rb"""\s*<\?xml\b[^>]{0,256}?encoding\s*=\s*["']([A-Za-z0-9_:.\-]+)""", re.IGNORECASE
)
_PRESCAN = 4096
_MULTIBYTE = ("utf", "gb", "big5", "euc", "shift", "iso-2022", "iso2022", "cp932", "cp949", "hz")
_SUPERSETS = {"euc-kr": "cp949", "gbk": "gb18030", "gb2312": "gb18030", "shift-jis": "cp932"}
"""Encoding → what its label stands for in browsers (https://encoding.spec.whatwg.org/#names)."""
_TOLERATED = 0.001
"""Share of replaced characters up to which a declared encoding is believed."""


@dataclass(frozen=True, slots=True)
class Decoded:
    """Text, the encoding used, where it was told (bom, http, meta, bytes), characters replaced."""

    text: str
    encoding: str
    told_by: str
    replaced: int


def decode(body: bytes, http_charset: str | None = None, *, markup: bool = True) -> Decoded:
    """Decode a page (or, without `markup`, plain text). Never raises: bad bytes become U+FFFD."""
    for mark, encoding in _MARKS:
        if body.startswith(mark):
            return _replaced(body[len(mark) :], encoding, "bom")
    declared, told_by = _declared(body, http_charset, markup)
    strict = _strictly(body, "utf-8")
    if strict is not None and (declared is None or not _multibyte(declared) or declared == "utf-8"):
        return Decoded(strict, "utf-8", told_by if declared == "utf-8" else "bytes", 0)
    if declared is not None:
        text = _strictly(body, declared)
        if text is not None:
            return Decoded(text, declared, told_by, 0)
        best = _replaced(body, declared, told_by)
        if best.replaced <= _TOLERATED * len(best.text):
            return best
    return _detected(body, declared, told_by)


def _declared(body: bytes, http_charset: str | None, markup: bool) -> tuple[str | None, str]:
    """The first declared encoding that is known, under Python's name for it."""
    if (encoding := _known(http_charset)) is not None:
        return encoding, "http"
    if markup:
        found = _META.search(body, 0, _PRESCAN) or _XML.match(body, 0, _PRESCAN)
        encoding = _known(found[1].decode("ascii")) if found else None
        if encoding is not None:
            # A tag that can be read byte by byte is not in UTF-16, whatever it says.
            return ("utf-8" if encoding.startswith("utf-16") else encoding), "meta"
    return None, "bytes"


def _known(label: str | None) -> str | None:
    """The codec that browsers mean by a label; None for a label that they do not know."""
    from resiliparse.parse.encoding import map_encoding_to_html5

    return _codec(map_encoding_to_html5(label, fallback_utf8=False)) if label else None


def _codec(name: str | None) -> str | None:
    """The widest codec of a name, if Python has it."""
    name = _SUPERSETS.get((name or "").replace("_", "-"), name)
    try:
        codecs.lookup(name or "")
    except LookupError:
        return None
    return name


def _detected(body: bytes, declared: str | None, told_by: str) -> Decoded:
    """What the bytes look like; if nothing fits all, the guess with the fewest replacements."""
    from resiliparse.parse.encoding import detect_encoding

    name = (detect_encoding(body, html5_compatible=False) or "").lower()
    found = _known(name) or _codec(name)  # uchardet knows some that browsers do not.
    if found is not None and (text := _strictly(body, found)) is not None:
        return Decoded(text, found, "bytes", 0)
    guesses = [(declared, told_by), (found, "bytes"), ("utf-8", "bytes")]
    tried = [_replaced(body, name, origin) for name, origin in guesses if name is not None]
    return min(tried, key=lambda decoded: decoded.replaced)


def _strictly(body: bytes, encoding: str) -> str | None:
    try:
        return body.decode(encoding)
    except (UnicodeDecodeError, LookupError):
        return None


def _replaced(body: bytes, encoding: str, told_by: str) -> Decoded:
    text = body.decode(encoding, "replace")
    return Decoded(text, encoding, told_by, text.count("\ufffd"))


def _multibyte(encoding: str) -> bool:
    return encoding.lower().startswith(_MULTIBYTE)
