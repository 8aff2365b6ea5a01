"""What a body is by its first bytes, whatever its header says.

The patterns are those of the MIME Sniffing standard (https://mimesniff.spec.whatwg.org) and, where
it knows none, the signatures that the formats' own specifications name. Nothing is parsed: the cost
is that of looking at the first kilobytes.
"""

from __future__ import annotations

import re
from typing import Literal, NamedTuple

from stages.ingest.responses.charset import wide_encoding

_WINDOW = 1445
"""Bytes looked at: the standard's resource header."""
_LEAD = re.compile(r"(?>\s|<!--.*?-->|<\?[^>]*>)*+", re.DOTALL)
_TAG = re.compile(
    r"<(?:!doctype\s+html|html|head|script|iframe|h1|div|font|table|a|style|title|b|body|br|p|meta|!--)"
    r"(?:[\s>]|\Z|(?<=<!--))",
    re.IGNORECASE,
)
"""The tags by which browsers know HTML, and `meta`; a comment that does not end is one of them."""
_ROOT = re.compile(
    r"(?>\s|<!--.*?-->|<\?[^>]*>|<!doctype(?:[^\[>]|\[[^\]]*\])*>)*+<([a-z_][\w:.\-]*)",
    re.IGNORECASE | re.DOTALL,
)
_XML_TYPES = {
    "html": "text/html",
    "rss": "application/rss+xml",
    "rdf:rdf": "application/rdf+xml",
    "feed": "application/atom+xml",
    "svg": "image/svg+xml",
    "svg:svg": "image/svg+xml",
    "urlset": "application/xml",
    "sitemapindex": "application/xml",
    "opensearchdescription": "application/opensearchdescription+xml",
}
_JSON = re.compile(
    r'\s*(?:\{\s*(?:"(?:[^"\\]|\\.)*"\s*:|\})|\[\s*(?:[\[{"\d\-\]]|true|false|null))'
)
_JSON_END = (b"}", b"]")
_MAGIC = (
    (b"%PDF-", "application/pdf"),
    (b"%!PS-Adobe-", "application/postscript"),
    (b"{\\rtf", "text/rtf"),
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\x89PNG", "image/png"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"\x00\x00\x01\x00", "image/x-icon"),
    (b"\x00\x00\x02\x00", "image/x-icon"),
    (b"II*\x00", "image/tiff"),
    (b"MM\x00*", "image/tiff"),
    (b"8BPS\x00", "image/vnd.adobe.photoshop"),
    (b"\x00\x00\x00\x0cjP  ", "image/jp2"),
    (b"\x00\x00\x00\x0cJXL ", "image/jxl"),
    (b"\xff\x0a", "image/jxl"),
    (b"AT&TFORM", "image/vnd.djvu"),
    (b"ID3", "audio/mpeg"),
    (b"\xff\xfb", "audio/mpeg"),
    (b"\xff\xf3", "audio/mpeg"),
    (b"\xff\xf1", "audio/aac"),
    (b"\xff\xf9", "audio/aac"),
    (b"OggS\x00", "application/ogg"),
    (b"fLaC", "audio/flac"),
    (b"MThd\x00\x00\x00\x06", "audio/midi"),
    (b".snd\x00", "audio/basic"),
    (b"#!AMR", "audio/amr"),
    (b"\x1a\x45\xdf\xa3", "video/webm"),
    (b"FLV\x01", "video/x-flv"),
    (b"\x30\x26\xb2\x75\x8e\x66\xcf\x11", "video/x-ms-asf"),
    (b"\x00\x00\x01\xba", "video/mpeg"),
    (b"\x00\x00\x01\xb3", "video/mpeg"),
    (b"\x1f\x8b\x08", "application/gzip"),
    (b"\x28\xb5\x2f\xfd", "application/zstd"),
    (b"Rar!\x1a\x07", "application/vnd.rar"),
    (b"7z\xbc\xaf\x27\x1c", "application/x-7z-compressed"),
    (b"\xfd7zXZ\x00", "application/x-xz"),
    (b"BZh", "application/x-bzip2"),
    (b"\x04\x22\x4d\x18", "application/x-lz4"),
    (b"MSCF\x00\x00\x00\x00", "application/vnd.ms-cab-compressed"),
    (b"!<arch>\n", "application/x-archive"),
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "application/x-ole-storage"),
    (b"wOFF", "font/woff"),
    (b"wOF2", "font/woff2"),
    (b"\x00\x01\x00\x00", "font/ttf"),
    (b"OTTO\x00", "font/otf"),
    (b"ttcf\x00", "font/collection"),
    (b"\x7fELF", "application/x-executable"),
    (b"\xca\xfe\xba\xbe", "application/java-vm"),
    (b"\xcf\xfa\xed\xfe", "application/x-mach-binary"),
    (b"\x00asm\x01\x00\x00\x00", "application/wasm"),
    (b"SQLite format 3\x00", "application/vnd.sqlite3"),
    (b"PAR1", "application/vnd.apache.parquet"),
    (b"\x89HDF\r\n\x1a\n", "application/x-hdf5"),
    (b"WARC/1.", "application/warc"),
)
"""Signature → type. Signatures that a text may begin with are checked further in `_signed`."""
_WORDS = (b"BZh", b"ID3", b"PAR1", b"wOFF", b"wOF2", b"fLaC", b"#!AMR")
"""Signatures of letters alone: a text may begin with them."""
_RIFF = {b"WEBP": "image/webp", b"WAVE": "audio/wave", b"AVI ": "video/avi"}
_BRANDS = {
    b"avif": "image/avif",
    b"avis": "image/avif",
    b"heic": "image/heic",
    b"heix": "image/heic",
    b"mif1": "image/heif",
    b"M4A ": "audio/mp4",
    b"qt  ": "video/quicktime",
}
_PACKED = (
    (b"mimetypeapplication/epub+zip", "application/epub+zip"),
    (b"mimetypeapplication/vnd.oasis.opendocument", "application/vnd.oasis.opendocument"),
    (b"word/", "application/vnd.openxmlformats-officedocument.wordprocessingml.document"),
    (b"xl/", "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"),
    (b"ppt/", "application/vnd.openxmlformats-officedocument.presentationml.presentation"),
    (b"META-INF/", "application/java-archive"),
)
_CONTROLS = bytes([*range(9), 11, *range(14, 27), *range(28, 32)])
"""Binary data bytes, as the standard lists them."""
_CONTROL_SHARE = 50
"""One control byte in so many makes a body binary. (Bytes at random hold one in nine; pages that a
browser shows well hold one now and then, so the standard's "any" would lose them.)"""

_HTML_TYPES = frozenset({"text/html", "application/xhtml+xml", "application/vnd.wap.xhtml+xml"})
_UNTOLD = frozenset(
    {
        None,
        "*/*",
        "application/octet-stream",
        "application/unknown",
        "application/xml",
        "text/xml",
        "unknown/unknown",
        "binary/octet-stream",
        "content/unknown",
    }
)
_TEXT_TYPES = frozenset({"text/plain", "text/markdown", "text/x-markdown", "text/x-web-markdown"})


class PageKind(NamedTuple):
    """How a body is read, and why not if it is not (`kind` None)."""

    kind: Literal["html", "text"] | None
    detail: str | None


def may_be_page(declared: str | None) -> bool:
    """Whether a body of this type is worth decoding: `page_kind` may find a page or text in it."""
    return declared in _HTML_TYPES or declared in _TEXT_TYPES or declared in _UNTOLD


def page_kind(declared: str | None, sniffed: str | None) -> PageKind:
    """Whether a body is a page of HTML, a text document or neither.

    `declared` is the media type of the header, `sniffed` that of `sniffed_type`. A declared type of
    text is believed unless the bytes are something else; without a usable declaration the bytes
    must say that they are HTML.
    """
    named = declared or "no type"
    if declared in _HTML_TYPES:
        # HTML needs no opening tag, and browsers read XML of no known kind under this type as HTML.
        if sniffed in ("text/html", "text/plain", "text/xml", None):
            return PageKind("html", None)
        return PageKind(None, f"{named}, is {sniffed}")
    if declared in _TEXT_TYPES:
        # A browser shows a page under this type as its source, and so it is meant.
        if sniffed in ("text/plain", "text/html", "text/xml", "application/json", None):
            return PageKind("text", None)
        return PageKind(None, f"{named}, is {sniffed}")
    if declared in _UNTOLD:
        if sniffed == "text/html":
            return PageKind("html", None)
        seen = "does not look like HTML" if sniffed in ("text/plain", None) else f"is {sniffed}"
        return PageKind(None, f"{named}, {seen}")
    return PageKind(None, named)


def sniffed_type(body: bytes) -> str | None:
    """The media type that the first bytes look like; None for an empty body.

    `text/plain` for text of no known form (any encoding), `application/octet-stream` for bytes that
    are no text.
    """
    if not body:
        return None
    if (signed := _signed(body)) is not None:
        return signed
    text, marked = _opening(body)
    if text is None:
        return "application/octet-stream"
    stripped = text.lstrip("\ufeff \t\r\n\x0c")
    if stripped.startswith("<"):
        return _markup(stripped) or "text/plain"
    if stripped.startswith("%PDF-"):
        return "application/pdf"
    if stripped[:1] in ("{", "[") and _JSON.match(stripped):
        # Closing brackets count only where all of the body is there to see.
        closed = marked or body.rstrip(b" \t\r\n\0")[-1:] in _JSON_END
        return "application/json" if stripped[0] == "{" or closed else "text/plain"
    return "text/plain"


def is_html(body: bytes) -> bool:
    """Whether a body without a usable type begins as browsers expect of HTML."""
    return sniffed_type(body) == "text/html"


def binary_type(body: bytes) -> str | None:
    """What a body is that cannot be text, by its first bytes; None if it may be text."""
    sniffed = sniffed_type(body)
    if sniffed is None or sniffed.startswith("text/"):
        return "text/rtf" if sniffed == "text/rtf" else None
    readable = sniffed.endswith(("+xml", "/xml", "/json", "/postscript"))
    return None if readable else sniffed


def _signed(body: bytes) -> str | None:
    """The type of a body that begins with a signature."""
    head = body[:_WINDOW]
    if head[4:8] == b"ftyp":
        return _BRANDS.get(head[8:12], "video/mp4")
    if head[:4] == b"RIFF":
        return _RIFF.get(head[8:12], "application/x-riff")
    if head[:4] == b"FORM" and head[8:12] in (b"AIFF", b"AIFC"):
        return "audio/aiff"
    if head[:4] in (b"PK\x03\x04", b"PK\x05\x06", b"PK\x07\x08"):
        return next((name for inner, name in _PACKED if inner in head), "application/zip")
    if head[:2] == b"BM" and head[6:10] == b"\0\0\0\0":
        return "image/bmp"
    if head[:2] == b"MZ" and b"\0" in head[:64]:
        return "application/x-msdownload"
    if head[257:262] == b"ustar":
        return "application/x-tar"
    if head[34:36] == b"LP" and head[:1] != b"<" and b"\0\0" in head[:36]:
        return "application/vnd.ms-fontobject"
    for magic, name in _MAGIC:
        if head.startswith(magic):
            return name if magic not in _WORDS or _binary(head) else None
    return None


def _opening(body: bytes) -> tuple[str | None, bool]:
    """(the first characters, or None if the body is no text; whether in UTF-16 or UTF-32)."""
    head = body[:_WINDOW]
    for mark, encoding in (
        (b"\xff\xfe\0\0", "utf-32-le"),
        (b"\0\0\xfe\xff", "utf-32-be"),
        (b"\xff\xfe", "utf-16-le"),
        (b"\xfe\xff", "utf-16-be"),
    ):
        if head.startswith(mark):
            return head[len(mark) :].decode(encoding, "ignore"), True
    wide = wide_encoding(body)
    if wide is not None:
        return head.decode(wide, "ignore"), True
    while head.startswith(b"\xef\xbb\xbf"):  # Templates that are pasted together bring several.
        head = head[3:]
    text = head.decode("latin-1")
    markup = text.lstrip().startswith("<") and _markup(text.lstrip()) is not None
    return (text if markup or not _binary(head) else None), False


def _binary(head: bytes) -> bool:
    """Whether more than one byte in fifty is one that no text holds."""
    controls = len(head) - len(head.translate(None, _CONTROLS))
    return controls * _CONTROL_SHARE > len(head)


def _markup(text: str) -> str | None:
    """The type of what begins with a tag, comment or declaration; None for plain text."""
    lead = _LEAD.match(text)
    begin = lead.end() if lead else 0
    if _TAG.match(text, begin):
        return "text/html"
    root = _ROOT.match(text, begin)
    if root is not None and root[1].lower() in _XML_TYPES:
        return _XML_TYPES[root[1].lower()]
    if text[:5].lower() == "<?xml":
        return "text/xml"
    return "text/html" if text.startswith("<!--") else None
