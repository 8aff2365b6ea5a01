"""Defects of HTTP heads: status, interim responses, fields that are broken or injected."""

from __future__ import annotations

from archives.defect import Defect, document, rejected
from archives.records import HTML, http, page, warc

PAGE = page().encode()
TYPE = f"Content-Type: {HTML}".encode()


def raw(head: bytes) -> bytes:
    """A record of a head as it stands (its blank line included), and a sound page."""
    return warc(head + PAGE)


DEFECTS = [
    *(
        Defect(
            f"status_{code}",
            f"A page with the body of a page, but status {code}.",
            lambda code=code: warc(http(page(), status=f"{code} Some Reason")),
            rejected("http_status"),
        )
        for code in (204, 206, 301, 302, 403, 404, 410, 429, 500, 503, 999)
    ),
    *(
        Defect(f"status_line_{name}", about, lambda line=line: raw(line), document())
        for name, line, about in (
            ("http2", b"HTTP/2 200\r\n" + TYPE + b"\r\n\r\n", "No reason phrase."),
            ("http10", b"HTTP/1.0 200 Fine\r\n" + TYPE + b"\r\n\r\n", "The old version."),
            ("lower_case", b"http/1.1 200 ok\r\n" + TYPE + b"\r\n\r\n", "In lower case."),
            ("tab", b"HTTP/1.1\t200\tOK\r\n" + TYPE + b"\r\n\r\n", "Tabs for spaces."),
            ("glued", b"HTTP/1.1 200OK\r\n" + TYPE + b"\r\n\r\n", "No space before the reason."),
            ("late", b"\r\nHTTP/1.1 200 OK\r\n" + TYPE + b"\r\n\r\n", "An empty line before it."),
            ("no_version", b"HTTP 200 OK\r\n" + TYPE + b"\r\n\r\n", "No version at all."),
        )
    ),
    Defect(
        "interim_responses",
        "100 Continue and 103 Early Hints before the response.",
        lambda: raw(
            b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a.css>\r\n\r\n"
            b"HTTP/1.1 200 OK\r\n" + TYPE + b"\r\n\r\n"
        ),
        document(http_status=200),
    ),
    Defect(
        "interim_then_404",
        "100 Continue before an error.",
        lambda: raw(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 404 Gone\r\n" + TYPE + b"\r\n\r\n"),
        rejected("http_status"),
    ),
    Defect(
        "proxy_connection",
        "What a proxy said before the server spoke.",
        lambda: raw(
            b"HTTP/1.0 200 Connection established\r\n\r\nHTTP/1.1 200 OK\r\n" + TYPE + b"\r\n\r\n"
        ),
        document(http_status=200),
    ),
    Defect("no_http_head", "A page without a status line.", lambda: warc(PAGE),
           rejected("malformed_record")),
    Defect("text_for_http", "Words where a response should be.", lambda: warc(b"no http here"),
           rejected("malformed_record")),
    Defect("zero_length_record", "A response of no bytes.", lambda: warc(b""),
           rejected("empty_body")),
    Defect("zero_length_body", "A head without a body.", lambda: warc(http("")),
           rejected("empty_body")),
    Defect("white_body", "A body of white space.", lambda: warc(http(" \r\n\t\n")),
           rejected("empty_body")),
    Defect("line_feeds_only", "Bare LF ends each line.",
           lambda: raw(b"HTTP/1.1 200 OK\n" + TYPE + b"\n\n"), document()),
    Defect(
        "no_blank_line",
        "The page follows the last header at once.",
        lambda: raw(b"HTTP/1.1 200 OK\r\n" + TYPE + b"\r\n"),
        document(),
    ),
    Defect(
        "head_without_end",
        "Nothing behind the head, not even its end.",
        lambda: warc(b"HTTP/1.1 200 OK\r\n" + TYPE),
        rejected("empty_body"),
    ),
    Defect(
        "folded_header",
        "The type goes on in a second line (obs-fold).",
        lambda: raw(b"HTTP/1.1 200 OK\r\nContent-Type: text/html;\r\n charset=utf-8\r\n\r\n"),
        document(declared_type="text/html", charset="utf-8"),
    ),
    Defect(
        "lines_without_colon",
        "Lines in the head that are no fields.",
        lambda: raw(b"HTTP/1.1 200 OK\r\nnonsense\r\n: x\r\nA B: c\r\n" + TYPE + b"\r\n\r\n"),
        document(),
    ),
    Defect(
        "injected_nul_and_cr",
        "NUL and a bare CR inside a value.",
        lambda: raw(
            b"HTTP/1.1 200 OK\r\nX-A: a\0b\rSet-Cookie: c=d\r\n" + TYPE + b"\r\n\r\n"
        ),
        document(),
    ),
    Defect(
        "injected_status_line",
        "A second status line inside the head: the first counts.",
        lambda: raw(b"HTTP/1.1 302 Found\r\nHTTP/1.1 200 OK\r\n" + TYPE + b"\r\n\r\n"),
        rejected("http_status"),
    ),
    Defect(
        "injected_response",
        "A redirection split by injection: the second response is part of the first one's body.",
        lambda: raw(
            b"HTTP/1.1 302 Found\r\nLocation: /\r\nContent-Length: 0\r\n\r\n"
            b"HTTP/1.1 200 OK\r\n" + TYPE + b"\r\n\r\n"
        ),
        rejected("http_status"),
    ),
    Defect(
        "repeated_type",
        "Two types: the last one that is a type counts, as in browsers.",
        lambda: raw(
            b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n" + TYPE
            + b"\r\nContent-Type: nonsense\r\n\r\n"
        ),
        document(declared_type="text/html"),
    ),
    Defect(
        "header_of_a_megabyte",
        "One field of a million bytes, before the others.",
        lambda: raw(b"HTTP/1.1 200 OK\r\n" + TYPE + b"\r\nX: " + b"a" * 1_000_000 + b"\r\n\r\n"),
        document(),
    ),
    Defect(
        "hundred_thousand_headers",
        "100,000 fields of one name.",
        lambda: raw(b"HTTP/1.1 200 OK\r\n" + TYPE + b"\r\n" + b"X: y\r\n" * 100_000 + b"\r\n"),
        document(),
    ),
    *(
        Defect(
            f"content_length_{name}",
            f"Content-Length of the response says {value!r}: a fact, the body stays whole.",
            lambda value=value: warc(http(page(), fields=[("Content-Length", value)])),
            document(),
        )
        for name, value in (
            ("short", "10"),
            ("long", "1000000000"),
            ("negative", "-1"),
            ("words", "many"),
            ("two", "5, 6"),
        )
    ),
]  # fmt: skip
