"""HTTP as archives hold it: the head of a response, and its body with the encodings undone.

Heads are read as browsers read them (RFC 9112 with the leniencies of section 2.2). Bodies are what
servers send and crawlers store: encodings are declared and were undone already, or are there and
not declared, or have the wrong name. So an encoding is undone where the bytes show it, never only
because a header names it; what a header says of a length is a fact, not a reason to cut.

fastwarc's `parse_http` with `auto_decode="all"` was tried on 17 bodies as servers send them: it
decodes 5 alike, fails on stored-plain, raw deflate, undeclared or mislabelled ones, and does
not report a gzip stream that ends early, so all of this would stay as its fallback; it takes the
same time.

Output is bounded while it is made, in bytes and as a multiple of what was stored, so that a bomb
costs no more than its limit. Each decompressor tells a stream that ends early (kept as far as it
goes) from one that is broken.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

FREE_EXPANSION = 1 << 20
"""Decompressed bytes of a body that may precede any check of the ratio."""
MAX_ENCODINGS = 3
"""Content encodings in a row that are undone; servers err with two."""
_STEP = 1 << 20
_FED = 1 << 10
"""Bytes that are fed to zstd at once: 128 KiB of output for each 4 (RFC 8878, 3.1.1.2) at most."""
_MEMBERS = 1_000
"""Members or frames of one body: of more, each would cost more than it gives."""
_ZSTD_WINDOW = 8 << 20
"""What a content encoding may ask for (RFC 9659)."""
_CHUNK_HEAD = re.compile(rb"\s*([0-9A-Fa-f]{1,16})[ \t]*(?:;[^\r\n]*)?\r?\n")
_CONTROLS = bytes([*range(9), 11, *range(14, 27), *range(28, 32)])
"""Bytes that no text holds (https://mimesniff.spec.whatwg.org/#binary-data-byte)."""
_HEX = frozenset(bytes([digit]) for digit in b"0123456789abcdefABCDEF")
_LOOKED_AT = 1024


class MalformedBody(Exception):
    """The body is not what its own headers say, or it is larger than the limit (`too_large`)."""

    def __init__(self, detail: str, reason: str = "malformed_body") -> None:
        self.detail, self.reason = detail, reason
        super().__init__(detail, reason)


@dataclass(slots=True)
class _Output:
    """What a decompressor has given so far of a body of `stored` bytes.

    At most `limit` bytes, and `expansion` times what was stored.
    """

    coding: str
    limit: int
    expansion: int
    stored: int
    parts: list[bytes] = field(default_factory=list)
    made: int = 0

    def add(self, part: bytes) -> None:
        """Keep a part; MalformedBody if it is too much."""
        self.parts.append(part)
        self.made += len(part)
        if self.made > self.limit:
            raise MalformedBody(f"more than {self.limit} bytes after {self.coding}", "too_large")
        if self.made > FREE_EXPANSION and self.made > self.expansion * self.stored:
            detail = f"{self.coding}: more than {self.expansion} times its stored size"
            raise MalformedBody(detail, "expansion")

    def clear(self) -> None:
        """Drop what was given: it is decompressed in another way."""
        self.parts, self.made = [], 0


def join_chunks(body: bytes) -> tuple[bytes, str | None, bool]:
    """(joined body, what ended early, whether it was chunked at all); RFC 9112, 7.1.

    Extensions and trailers are skipped. A body that does not begin with a chunk is returned as
    it is: crawlers store bodies joined and leave the header. A size that contradicts what follows
    raises MalformedBody.
    """
    parts: list[bytes] = []
    position = 0
    while head := _CHUNK_HEAD.match(body, position):
        size = int(head[1], 16)
        if size == 0:
            # An empty page is one last chunk; a text that begins with a line "0" is none.
            trailer = parts or not body[head.end() :].strip(b"\r\n")
            return (b"".join(parts), None, True) if trailer else (body, None, False)
        chunk = body[head.end() : head.end() + size]
        position = head.end() + size
        if len(chunk) < size:
            opens = chunk.lstrip()[:1] in (b"<", b"\x1f")
            if not parts and not opens and head.end() + size > 2 * len(body):
                return body, None, False  # A number that happens to begin a body stored joined.
            parts.append(chunk)
            return b"".join(parts), f"chunk of {size} bytes ends after {len(chunk)}", True
        parts.append(chunk)
    if not parts:
        return body, None, False
    if not body[position:].strip(b"\r\n") or re.fullmatch(
        rb"\s*[0-9A-Fa-f]{1,16}[^\r\n]{0,256}\r?", body[position:]
    ):
        return b"".join(parts), "no last chunk", True
    raise MalformedBody(f"no chunk at byte {position} of a chunked body")


def is_surely_chunked(body: bytes) -> bool:
    """Whether a body that is not declared chunked is HTML in chunks, by its first two."""
    if body[:1] not in _HEX or not (head := _CHUNK_HEAD.match(body)):
        return False
    following = _CHUNK_HEAD.match(body, head.end() + int(head[1], 16))
    return following is not None and body[head.end() : head.end() + 64].lstrip()[:1] == b"<"


def detect_coding(body: bytes, label: str | None) -> str | None:
    """The encoding that a body is in: by its own first bytes, else as labelled; None for none.

    A body labelled `br` or `deflate` may be plain all the same, which `decompress` finds out:
    neither has a mark of its own.
    """
    if body[:3] == b"\x1f\x8b\x08":
        return "gzip"
    if body[:4] == b"\x28\xb5\x2f\xfd":
        return "zstd"
    if label == "gzip" and _has_zlib_header(body):
        return "deflate"
    return label if label in ("br", "deflate") and body else None


def decompress(
    body: bytes, coding: str, limit: int, expansion: int, stored: int
) -> tuple[bytes, str | None, str | None]:
    """(content, what ended early, encoding undone: None if the body was plain)."""
    output = _Output(coding, limit, expansion, stored)
    ended = _DECOMPRESSORS[coding](body, output)
    if ended is None:
        return b"".join(output.parts), None, coding
    if coding in ("br", "deflate") and looks_like_text(body):
        return body, None, None
    if ended != "cut":
        raise MalformedBody(f"{coding}: {ended}")
    return b"".join(output.parts), f"{coding} stream ends early", coding


def looks_like_text(body: bytes) -> bool:
    """Whether the first bytes hold none that no text holds; compressed ones nearly always do."""
    head = body[:_LOOKED_AT]
    return len(head.translate(None, _CONTROLS)) == len(head) and b"\x7f" not in head


def _has_zlib_header(body: bytes) -> bool:
    """Whether a body begins as zlib's format does (RFC 1950, 2.2)."""
    return len(body) > 2 and body[0] & 15 == 8 and int.from_bytes(body[:2]) % 31 == 0


def _gunzip(body: bytes, output: _Output) -> str | None:
    """Every member of a gzip stream; bytes after the last one are skipped, as browsers do."""
    position = 0
    for _ in range(_MEMBERS):
        ended, position = _inflate(body, position, 31, output)
        if ended is not None or body[position : position + 3] != b"\x1f\x8b\x08":
            return ended
    return f"more than {_MEMBERS} members"


def _undeflate(body: bytes, output: _Output) -> str | None:
    """zlib's format, or raw deflate, which some servers send instead (RFC 9110, 8.4.1.2)."""
    if not _has_zlib_header(body):
        return _inflate(body, 0, -zlib.MAX_WBITS, output)[0]
    ended, _ = _inflate(body, 0, zlib.MAX_WBITS, output)
    if ended is None or ended == "cut":
        return ended
    output.clear()  # Raw deflate that happens to begin as zlib's format does.
    raw, _ = _inflate(body, 0, -zlib.MAX_WBITS, output)
    return ended if raw is not None else None


def _inflate(body: bytes, position: int, window: int, output: _Output) -> tuple[str | None, int]:
    """(what is wrong or None, first byte after the stream)."""
    stream = zlib.decompressobj(window)
    try:
        while True:
            fed = stream.unconsumed_tail
            if not fed:
                fed = body[position : position + _STEP // 8]
                position += len(fed)
            part = stream.decompress(fed, _STEP)
            output.add(part)
            if stream.eof:
                return None, position - len(stream.unused_data)
            if not fed and not part:
                return "cut", position
    except zlib.error as error:
        return str(error), position


def _unbrotli(body: bytes, output: _Output) -> str | None:
    import brotli

    stream = brotli.Decompressor()
    data = body
    try:
        while not stream.is_finished():
            part = stream.process(data, output_buffer_limit=_STEP)
            output.add(part)
            data = b""
            if not part and stream.can_accept_more_data():
                return None if stream.is_finished() else "cut"
    except brotli.error as error:
        return str(error)
    return None


def _unzstd(body: bytes, output: _Output) -> str | None:
    """Every frame of a zstd stream."""
    import zstandard

    position = 0
    for _ in range(_MEMBERS):
        frame = zstandard.ZstdDecompressor(max_window_size=_ZSTD_WINDOW).decompressobj()
        try:
            while not frame.eof and position < len(body):
                fed = body[position : position + _FED]
                position += len(fed)
                output.add(frame.decompress(fed))
        except zstandard.ZstdError as error:
            return str(error)
        if not frame.eof:
            return "cut"
        position -= len(frame.unused_data)
        if body[position : position + 4] != b"\x28\xb5\x2f\xfd":
            return None
    return f"more than {_MEMBERS} frames"


_DECOMPRESSORS: dict[str, Callable[[bytes, _Output], str | None]] = {
    "gzip": _gunzip,
    "deflate": _undeflate,
    "br": _unbrotli,
    "zstd": _unzstd,
}


_STATUS_LINE = re.compile(
    rb"[\r\n]{0,4}(?:HTTP(?:/\d+(?:\.\d+)?)?|ICY)[ \t]+(\d{3})(?!\d)([^\r\n]*)", re.IGNORECASE
)
_HEAD_END = re.compile(
    rb"\r?\n(?:\r?\n|(?=<(?:!doctype|html|head|body|\?xml)[\s>]))", re.IGNORECASE
)
_HEAD_BYTES = 256 << 10
"""Bytes of a head that are read (what Chromium takes at most); the rest is skipped."""
_HEAD_FIELDS = 1_000
"""Fields of a head that are kept."""
_TOKEN = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_UNSAFE = re.compile(r"[\x00\r\n]+")
_CHARSET = re.compile(r"""charset\s*=\s*["']?([^\s"';,]+)""", re.IGNORECASE)
_MEDIA_TYPE = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+/[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_SINGLE = frozenset(
    {
        "age", "content-length", "content-location", "content-type", "date", "etag", "expires",
        "last-modified", "location", "retry-after", "server", "set-cookie",
    }
)  # fmt: skip
"""Fields that are no lists (RFC 9110, 5.3 and their own definitions): joining would change them."""
_TEXT_TYPES = frozenset({None, "application/xhtml+xml", "application/xml"})


@dataclass(frozen=True, slots=True)
class Response:
    """A response as stored.

    `headers` maps lower-case names to values: repeated ones joined by ", " (RFC 9110, 5.3), of
    those that are no lists the last. `repeated` holds all values of a name that came more often.
    """

    status: int
    headers: Mapping[str, str]
    body: bytes
    repeated: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def values(self, name: str) -> tuple[str, ...]:
        """Every value of a header, in order; the name in lower case."""
        if name in self.repeated:
            return self.repeated[name]
        return (self.headers[name],) if name in self.headers else ()

    @property
    def content_type(self) -> str | None:
        """The media type in lower case, without parameters: the last value that is one."""
        return self._type()[0]

    @property
    def charset(self) -> str | None:
        """The declared character encoding, of the value that `content_type` comes from.

        A repetition of the same type without a charset leaves the charset
        (https://fetch.spec.whatwg.org/#concept-header-extract-mime-type).
        """
        return self._type()[1]

    def _type(self) -> tuple[str | None, str | None]:
        kind, charset, first = None, None, None
        for value in self.values("content-type"):
            media = media_type(value)
            first = first or media
            if media is None or media == "*/*" or _MEDIA_TYPE.fullmatch(media) is None:
                continue
            if media != kind:
                charset = None
            kind, charset = media, charset_in(value) or charset
        return (kind, charset) if kind else (first, charset_in(self.headers.get("content-type")))


@dataclass(frozen=True, slots=True)
class Body:
    """A body without its encodings.

    `encodings` names those undone, outermost first ("chunked gzip"); `truncated` says what ended
    early, if the content is only what came before.
    """

    content: bytes
    encodings: str | None = None
    truncated: str | None = None


def media_type(content_type: str | None) -> str | None:
    """`Text/HTML; charset=x` → `text/html`; None for nothing."""
    return (content_type or "").split(";")[0].split(",")[0].strip().lower() or None


def charset_in(content_type: str | None) -> str | None:
    """`text/html; charset="x"` → `x`."""
    match = _CHARSET.search(content_type or "")
    return match[1] if match else None


def parse_response(block: bytes) -> Response | None:
    """The response that a record's block holds, or None if it does not begin with a status line.

    Lenient as browsers are: bare LF, folded lines, lines that are no fields (a second status line
    too), a head without an end. Interim responses (100, 103, a proxy's "Connection established")
    before the final one are skipped. CR and NUL inside a value become a space. Time is linear
    in the block; of a huge head the first 256 KiB and 1,000 fields are kept.
    """
    start = 0
    status = _STATUS_LINE.match(block)
    while status is not None:
        end = _HEAD_END.search(block, status.end())
        if end is None or not _is_interim(status):
            break
        following = _STATUS_LINE.match(block, end.end())
        if following is None:
            break
        start, status = end.end(), following
    if status is None:
        return None
    head = block[start : min(end.start() if end else len(block), start + _HEAD_BYTES)]
    values = _fields(head[status.end() - start :].decode("latin-1").split("\n")[1:])
    return Response(
        int(status[1]),
        {n: v[-1] if n in _SINGLE else ", ".join(v) for n, v in values.items()},
        block[end.end() :] if end else b"",
        {name: tuple(several) for name, several in values.items() if len(several) > 1},
    )


def _is_interim(status: re.Match[bytes]) -> bool:
    """Whether another response follows by its status: 1xx but 101, or what a proxy said."""
    code = status[1]
    return (code[:1] == b"1" and code != b"101") or b"connection established" in status[2].lower()


def _fields(lines: Iterable[str]) -> dict[str, list[str]]:
    """Header lines as name → values."""
    parts: list[tuple[str, list[str]]] = []
    for line in lines:
        if line[:1] in (" ", "\t") and parts:
            parts[-1][1].append(line.strip())
            continue
        name, colon, value = line.partition(":")
        name = name.strip()
        if not colon or _TOKEN.fullmatch(name) is None:
            continue
        if len(parts) == _HEAD_FIELDS:
            break
        parts.append((name.lower(), [value.strip()]))
    values: dict[str, list[str]] = {}
    for name, folded in parts:
        value = _UNSAFE.sub(" ", " ".join(folded)).strip()
        values.setdefault(name, []).append(value)
    return values


def decode_body(response: Response, limit: int, expansion: int = 200) -> Body:
    """The body without Transfer- and Content-Encodings, at most `limit` bytes long.

    What cannot be undone raises MalformedBody with its reason: `malformed_body` (contradicts
    itself, or more than MAX_ENCODINGS in a row), `too_large` (over the limit) and `expansion` (more
    than `expansion` times its stored size, and FREE_EXPANSION). A body that only ends early is
    returned as far as it goes, with `truncated`.
    """
    body, removed, truncated = response.body, list[str](), None
    transfer = _codings(response, "transfer-encoding")
    kind = response.content_type
    readable = kind in _TEXT_TYPES or (kind or "").startswith("text/")
    if "chunked" in transfer or (readable and is_surely_chunked(body)):
        body, truncated, chunked = join_chunks(body)
        removed += ["chunked"] if chunked else []
    declared = [*_codings(response, "content-encoding"), *(n for n in transfer if n != "chunked")]
    if len(declared) > MAX_ENCODINGS:
        raise MalformedBody(f"{len(declared)} content encodings in a row")
    stored = len(body)
    for label in reversed(declared):
        coding = detect_coding(body, label)
        if coding is not None:
            body, ended, coding = decompress(body, coding, limit, expansion, stored)
            # A stream that came to its own end is whole, whatever became of the chunks around it.
            truncated = ended if coding else truncated
            removed += [coding] if coding else []
    # Packed once more than declared, or not declared at all.
    while readable and len(removed) <= MAX_ENCODINGS and (coding := detect_coding(body, None)):
        body, truncated, _ = decompress(body, coding, limit, expansion, stored)
        removed.append(coding)
    if len(body) > limit:
        raise MalformedBody(f"{len(body)} bytes", "too_large")
    return Body(body, " ".join(removed) or None, truncated)


def _codings(response: Response, name: str) -> list[str]:
    """The encodings that a header lists, in the order in which they were applied."""
    labels = ",".join(response.values(name)).lower()
    names = (part.split(";")[0].strip().removeprefix("x-") for part in labels.split(","))
    return [name for name in names if name in ("chunked", "gzip", "deflate", "br", "zstd")]
