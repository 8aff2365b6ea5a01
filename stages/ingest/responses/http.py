"""HTTP as archives hold it: the head of a response, and its body with the encodings taken off.

Heads are read as browsers read them (RFC 9112 with the leniencies of section 2.2). Bodies are what
servers send and crawlers store: encodings are declared and were taken off already, or are there and
not declared, or bear the wrong name. So an encoding is taken off where the bytes show it, never
only because a header names it; what a header says of a length is a fact, not a reason to cut.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from stages.ingest.responses.encodings import (
    FREE_EXPANSION,
    MAX_ENCODINGS,
    Budget,
    MalformedBody,
    chunked_for_sure,
    coding_of,
    dechunked,
    taken_off,
)

__all__ = [
    "FREE_EXPANSION",
    "Body",
    "MalformedBody",
    "Response",
    "charset_of",
    "decode_body",
    "media_type",
    "parse_response",
]

_STATUS_LINE = re.compile(
    rb"[\r\n]{0,4}(?:HTTP(?:/\d+(?:\.\d+)?)?|ICY)[ \t]+(\d{3})(?!\d)([^\r\n]*)", re.IGNORECASE
)
_HEAD_END = re.compile(
    rb"\r?\n(?:\r?\n|(?=<(?:!doctype|html|head|body|\?xml)[\s>]))", re.IGNORECASE
)
_HEAD_BYTES = 256 << 10
"""Bytes of a head that are read (what Chromium takes at most); the rest is passed over."""
_HEAD_FIELDS = 1_000
"""Fields of a head that are kept."""
_TOKEN = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_UNSAFE = re.compile(r"[\x00\r\n]+")
_CHARSET = re.compile(r"""charset\s*=\s*["']?([^\s"';,]+)""", re.IGNORECASE)
_MEDIA_TYPE = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+/[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_SINGLE = frozenset(
    {
        "age",
        "content-length",
        "content-location",
        "content-type",
        "date",
        "etag",
        "expires",
        "last-modified",
        "location",
        "retry-after",
        "server",
        "set-cookie",
    }
)
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

    def all_of(self, name: str) -> tuple[str, ...]:
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
        for value in self.all_of("content-type"):
            told = media_type(value)
            first = first or told
            if told is None or told == "*/*" or _MEDIA_TYPE.fullmatch(told) is None:
                continue
            if told != kind:
                charset = None
            kind, charset = told, charset_of(value) or charset
        return (kind, charset) if kind else (first, charset_of(self.headers.get("content-type")))


@dataclass(frozen=True, slots=True)
class Body:
    """A body without its encodings.

    `encodings` names those taken off, outermost first ("chunked gzip"); `truncated` says what ended
    early, if the content is only what came before.
    """

    content: bytes
    encodings: str | None = None
    truncated: str | None = None


def media_type(content_type: str | None) -> str | None:
    """`Text/HTML; charset=x` → `text/html`; None for nothing."""
    return (content_type or "").split(";")[0].split(",")[0].strip().lower() or None


def charset_of(content_type: str | None) -> str | None:
    """`text/html; charset="x"` → `x`."""
    found = _CHARSET.search(content_type or "")
    return found[1] if found else None


def parse_response(block: bytes) -> Response | None:
    """The response that a record's block holds, or None if it does not begin with a status line.

    Lenient as browsers are: bare LF, folded lines, lines that are no fields (a second status line
    too), a head without an end. Interim responses (100, 103, a proxy's "Connection established")
    before the final one are passed over. CR and NUL inside a value become a space. Time is linear
    in the block; of a huge head the first 256 KiB and 1,000 fields are kept.
    """
    start = 0
    status = _STATUS_LINE.match(block)
    while status is not None:
        end = _HEAD_END.search(block, status.end())
        if end is None or not _interim(status):
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


def _interim(status: re.Match[bytes]) -> bool:
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
    given as far as it goes, with `truncated`.
    """
    body, removed, truncated = response.body, list[str](), None
    transfer = _codings(response, "transfer-encoding")
    kind = response.content_type
    readable = kind in _TEXT_TYPES or (kind or "").startswith("text/")
    if "chunked" in transfer or (readable and chunked_for_sure(body)):
        body, truncated, chunked = dechunked(body)
        removed += ["chunked"] if chunked else []
    declared = [*_codings(response, "content-encoding"), *(n for n in transfer if n != "chunked")]
    if len(declared) > MAX_ENCODINGS:
        raise MalformedBody(f"{len(declared)} content encodings in a row")
    budget = Budget(limit, expansion, len(body))
    for label in reversed(declared):
        coding = coding_of(body, label)
        if coding is not None:
            body, ended, coding = taken_off(body, coding, budget)
            # A stream that came to its own end is whole, whatever became of the chunks around it.
            truncated = ended if coding else truncated
            removed += [coding] if coding else []
    # Packed once more than declared, or not declared at all.
    while readable and len(removed) <= MAX_ENCODINGS and (coding := coding_of(body, None)):
        body, truncated, _ = taken_off(body, coding, budget)
        removed.append(coding)
    if len(body) > limit:
        raise MalformedBody(f"{len(body)} bytes", "too_large")
    return Body(body, " ".join(removed) or None, truncated)


def _codings(response: Response, name: str) -> list[str]:
    """The encodings that a header lists, in the order in which they were applied."""
    told = ",".join(response.all_of(name)).lower()
    names = (part.split(";")[0].strip().removeprefix("x-") for part in told.split(","))
    return [name for name in names if name in ("chunked", "gzip", "deflate", "br", "zstd")]
