"""Formats: of a file by its name and first bytes, of a body by its first bytes.

The patterns for HTML, XML and text are those of the MIME Sniffing standard
(https://mimesniff.spec.whatwg.org). Whether a body is read depends on these alone; of what is not
text only the common formats are named, for the reason of a rejected record. (puremagic 1.30 knows
more formats, but calls any zip archive a Word document and takes a millisecond.) Nothing is parsed:
the cost is that of looking at the first kilobytes.
"""

from __future__ import annotations

import re
from typing import Literal

from stages.engine.reading.row import Damage, Readable
from stages.engine.reading.rows import decompress_stream, row_format, row_format_by_magic
from stages.ingest.archive_heads import ARC_HEAD
from stages.ingest.charset import wide_encoding

Format = Literal["warc", "jsonl", "html", "text", "code", "unsupported"]
"""warc: every archive of a crawl (WARC, WET, WAT, ARC); jsonl: everything with rows, that is JSON
lines, JSON, Parquet and Arrow."""

_ARCHIVE = re.compile(r"\.(?:warc|wet|wat|arc)(?:\.gz|\.zst|\.zstd)?$")
_DICTIONARY = b"\x5d\x2a\x4d\x18"
"""How a .warc.zst begins whose frames share a dictionary."""
_PACKED = {
    ".tar": "a tar archive", ".tgz": "a tar archive", ".tbz2": "a tar archive",
    ".txz": "a tar archive", ".zip": "a zip archive", ".7z": "a 7z archive",
    ".rar": "a rar archive", ".bz2": "compressed by bzip2", ".xz": "compressed by xz",
    ".lz4": "compressed by lz4", ".br": "compressed by brotli",
}  # fmt: skip
_DESCRIPTIONS = frozenset(
    {"dataset_infos.json", "dataset_info.json", "dataset_dict.json", "state.json",
     ".gitattributes", "license", "license.txt", "license.md"}
)  # fmt: skip
_CARD = re.compile(
    rb"(?:\xef\xbb\xbf)?---[ \t]*\r?\n(?P<head>.*?)^---[ \t]*\r?$", re.DOTALL | re.MULTILINE
)
_CARD_KEY = re.compile(
    rb"^(?:dataset_info|configs|task_categories|size_categories|source_datasets"
    rb"|annotations_creators)[ \t]*:",
    re.MULTILINE,
)
_CARD_HEAD = 1 << 20
_TEXT = (".txt", ".text", ".md", ".markdown", ".rst", ".adoc", ".org", ".tex")
_HTML = (".html", ".htm", ".xhtml")
_LANGUAGES = {
    ".py": "python", ".pyi": "python", ".pyx": "cython", ".ipynb": "jupyter", ".c": "c", ".h": "c",
    ".cc": "c++", ".cpp": "c++", ".cxx": "c++", ".hh": "c++", ".hpp": "c++", ".cu": "cuda",
    ".cs": "c#", ".java": "java", ".kt": "kotlin", ".scala": "scala", ".groovy": "groovy",
    ".js": "javascript", ".mjs": "javascript", ".jsx": "javascript", ".ts": "typescript",
    ".tsx": "typescript", ".vue": "vue", ".css": "css", ".scss": "scss", ".go": "go", ".rs": "rust",
    ".rb": "ruby", ".php": "php", ".pl": "perl", ".pm": "perl", ".lua": "lua", ".swift": "swift",
    ".m": "objective-c", ".mm": "objective-c", ".r": "r", ".jl": "julia", ".hs": "haskell",
    ".ml": "ocaml", ".ex": "elixir", ".exs": "elixir", ".erl": "erlang", ".clj": "clojure",
    ".lisp": "lisp", ".el": "lisp", ".scm": "scheme", ".f90": "fortran", ".f": "fortran",
    ".sh": "shell", ".bash": "shell", ".ps1": "powershell", ".bat": "batch", ".sql": "sql",
    ".zig": "zig", ".dart": "dart", ".v": "verilog", ".sv": "systemverilog", ".vhd": "vhdl",
    ".asm": "assembly", ".s": "assembly", ".cmake": "cmake", ".toml": "toml", ".yaml": "yaml",
    ".yml": "yaml", ".xml": "xml", ".proto": "protobuf", ".tf": "terraform", ".nix": "nix",
}  # fmt: skip
_BY_NAME = {
    "makefile": "make", "dockerfile": "docker", "cmakelists.txt": "cmake", "rakefile": "ruby",
}  # fmt: skip


def format_by_name(name: str) -> Format | None:
    """The format by a file's name, or None."""
    base = name.rsplit("/", 1)[-1].lower()
    if _ARCHIVE.search(base):
        return "warc"
    if why_unsupported(base) is not None:
        return "unsupported"
    if row_format(base) is not None:
        return "jsonl"
    plain = re.sub(r"\.(?:gz|zst|zstd)$", "", base)
    if plain.endswith(_HTML):
        return "html"
    if programming_language(plain) is not None:
        return "code"
    return "text" if plain.endswith(_TEXT) else None


def format_by_content(source: Readable) -> Format:
    """The format by a file's first bytes; text if they may be text, else unsupported."""
    with source.open() as stream:
        magic = stream.read(8)
        if row_format_by_magic(magic) is not None:
            return "jsonl"
        if magic.startswith(_DICTIONARY):
            return "warc"
        stream.seek(0)
        try:
            head = next(decompress_stream(stream), b"")[:4096]
        except Damage:
            return "unsupported"
    if head.startswith(b"WARC/") or ARC_HEAD.match(head):
        return "warc"
    if re.match(rb"(?:\xef\xbb\xbf)?\s*\{\s*\"", head):
        return "jsonl"
    if sniffed_type(head) == "text/html":
        return "html"
    return "unsupported" if binary_type(head) else "text"


def why_unsupported(name: str) -> str | None:
    """What a file is that is not unpacked, by its name, and what to do; None for other files."""
    base = name.rsplit("/", 1)[-1].lower()
    stem = re.sub(r"\.(?:gz|zst|zstd)$", "", base)
    for ending, kind in _PACKED.items():
        if stem.endswith(ending):
            return f"{kind} is not read: unpack it and take its files as the snapshot"
    return None


def describes_dataset(source: Readable) -> bool:
    """Whether a file next to tables only describes them, as in a dataset's folder on a model hub.

    A README does if its YAML head has the keys of a dataset card.
    """
    base = source.name.rsplit("/", 1)[-1].lower()
    if base in _DESCRIPTIONS:
        return True
    if base != "readme.md":
        return False
    with source.open() as stream:
        card = _CARD.match(stream.read(_CARD_HEAD))
    return card is not None and _CARD_KEY.search(card["head"]) is not None


def programming_language(name: str) -> str | None:
    """The programming language of a source file by its name, or None."""
    base = name.rsplit("/", 1)[-1].lower()
    if base in _BY_NAME:
        return _BY_NAME[base]
    _, dot, ending = base.rpartition(".")
    return _LANGUAGES.get(dot + ending) if dot else None


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
_SIGNATURES = {
    b"%PDF-": "application/pdf",
    b"%!PS-Adobe-": "application/postscript",
    b"{\\rtf": "text/rtf",
    b"WARC/1.": "application/warc",
    b"\x89PNG": "image/png",
    b"GIF8": "image/gif",
    b"\xff\xd8\xff": "image/jpeg",
    b"BM": "image/bmp",
    b"\x00\x00\x01\x00": "image/x-icon",
    b"ID3": "audio/mpeg",
    b"OggS": "application/ogg",
    b"\x1a\x45\xdf\xa3": "video/webm",
    b"\x1f\x8b\x08": "application/gzip",
    b"\x28\xb5\x2f\xfd": "application/zstd",
    b"PK\x03\x04": "application/zip",
    b"Rar!": "application/vnd.rar",
    b"7z\xbc\xaf\x27\x1c": "application/x-7z-compressed",
    b"BZh": "application/x-bzip2",
    b"\xfd7zXZ": "application/x-xz",
    b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1": "application/x-ole-storage",
    b"wOFF": "font/woff",
    b"wOF2": "font/woff2",
    b"\x7fELF": "application/x-executable",
    b"MZ": "application/x-msdownload",
    b"PAR1": "application/vnd.apache.parquet",
}
_TEXT_SIGNATURES = (b"%PDF-", b"%!PS-Adobe-", b"{\\rtf", b"WARC/1.")
"""Signatures of forms that may hold no binary byte at first."""
_CONTROLS = bytes([*range(9), 11, *range(14, 27), *range(28, 32)])
"""Binary data bytes, as the standard lists them."""
_CONTROL_SHARE = 50
"""One control byte in so many makes a body binary. (Bytes at random hold one in nine; pages that a
browser shows well hold one now and then, so the standard's "any" would lose them.)"""

_HTML_TYPES = frozenset({"text/html", "application/xhtml+xml", "application/vnd.wap.xhtml+xml"})
_UNKNOWN_TYPES = frozenset(
    {
        None, "*/*", "application/octet-stream", "application/unknown", "application/xml",
        "text/xml", "unknown/unknown", "binary/octet-stream", "content/unknown",
    }
)  # fmt: skip
_TEXT_TYPES = frozenset({"text/plain", "text/markdown", "text/x-markdown", "text/x-web-markdown"})


def may_be_page(declared: str | None) -> bool:
    """Whether a body of this type is worth decoding: `page_kind` may find a page or text in it."""
    return declared in _HTML_TYPES or declared in _TEXT_TYPES or declared in _UNKNOWN_TYPES


def page_kind(
    declared: str | None, sniffed: str | None
) -> tuple[Literal["html", "text"] | None, str | None]:
    """Whether a body is a page of HTML, a text document or neither (None, with the reason).

    `declared` is the media type of the header, `sniffed` that of `sniffed_type`. A declared type of
    text is believed unless the bytes are something else; without a usable declaration the bytes
    must say that they are HTML.
    """
    named = declared or "no type"
    if declared in _HTML_TYPES:
        # HTML needs no opening tag, and browsers read XML of no known kind under this type as HTML.
        if sniffed in ("text/html", "text/plain", "text/xml", None):
            return "html", None
        return None, f"{named}, is {sniffed}"
    if declared in _TEXT_TYPES:
        # A browser shows a page under this type as its source, and so it is meant.
        if sniffed in ("text/plain", "text/html", "text/xml", "application/json", None):
            return "text", None
        return None, f"{named}, is {sniffed}"
    if declared in _UNKNOWN_TYPES:
        if sniffed == "text/html":
            return "html", None
        seen = "does not look like HTML" if sniffed in ("text/plain", None) else f"is {sniffed}"
        return None, f"{named}, {seen}"
    return None, named


def sniffed_type(body: bytes) -> str | None:
    """The media type that the first bytes look like; None for an empty body.

    `text/plain` for text of no known form (any encoding), `application/octet-stream` for bytes that
    are no text.
    """
    if not body:
        return None
    if (signed := _signature_type(body)) is not None:
        return signed
    text, marked = _opening(body)
    if text is None:
        return "application/octet-stream"
    stripped = text.lstrip("\ufeff \t\r\n\x0c")
    if stripped.startswith("<"):
        return _markup_type(stripped) or "text/plain"
    if stripped.startswith("%PDF-"):
        return "application/pdf"
    if stripped[:1] in ("{", "[") and _JSON.match(stripped):
        # Closing brackets count only where all of the body is there to see.
        closed = marked or body.rstrip(b" \t\r\n\0")[-1:] in _JSON_END
        return "application/json" if stripped[0] == "{" or closed else "text/plain"
    return "text/plain"


def binary_type(body: bytes) -> str | None:
    """What a body is that cannot be text, by its first bytes; None if it may be text."""
    sniffed = sniffed_type(body)
    if sniffed is None or sniffed.startswith("text/"):
        return "text/rtf" if sniffed == "text/rtf" else None
    readable = sniffed.endswith(("+xml", "/xml", "/json", "/postscript"))
    return None if readable else sniffed


def _signature_type(body: bytes) -> str | None:
    """The type of a body that begins with a signature."""
    head = body[:_WINDOW]
    if head[4:8] == b"ftyp":
        return "image/avif" if head[8:12] in (b"avif", b"avis") else "video/mp4"
    if head[:4] == b"RIFF":
        return "image/webp" if head[8:12] == b"WEBP" else "application/x-riff"
    mark = next((mark for mark in _SIGNATURES if head.startswith(mark)), None)
    if mark is None or (mark.isascii() and mark not in _TEXT_SIGNATURES and not _is_binary(head)):
        return None  # A text may begin with the letters of a signature.
    return _SIGNATURES[mark]


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
    markup = text.lstrip().startswith("<") and _markup_type(text.lstrip()) is not None
    return (text if markup or not _is_binary(head) else None), False


def _is_binary(head: bytes) -> bool:
    """Whether more than one byte in fifty is one that no text holds."""
    controls = len(head) - len(head.translate(None, _CONTROLS))
    return controls * _CONTROL_SHARE > len(head)


def _markup_type(text: str) -> str | None:
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
