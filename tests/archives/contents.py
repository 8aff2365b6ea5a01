"""What is not what it is called, where it says it comes from, and what it asks of readers."""

from __future__ import annotations

import json

from archives.defect import Defect, Outcome, document, rejected
from archives.records import HTML, SENTENCES, arc, arc_file_head, gz, http, page, warc, wet

PNG = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + bytes(range(64))
PDF = b"%PDF-1.7\n1 0 obj\n<< /Type /Catalog >>\nendobj\n%%EOF\n"
JPEG = b"\xff\xd8\xff\xe0\0\x10JFIF\0" + bytes(range(64))
JSON = json.dumps({"title": "Herons", "text": " ".join(SENTENCES)})
RSS = '<?xml version="1.0"?><rss version="2.0"><channel><title>Herons</title></channel></rss>'
ZIP = b"PK\x03\x04\x14\0\0\0\x08\0" + bytes(20) + b"word/document.xml" + bytes(64)
TEXT = "\n\n".join(SENTENCES)


def typed(body: bytes | str, content_type: str | None) -> bytes:
    return warc(http(body, content_type=content_type))


WRONG_TYPES = [
    *(
        Defect(f"{name}_called_html", f"{name.upper()} under text/html.",
               lambda body=body: typed(body, HTML), rejected("content_type"))
        for name, body in (("pdf", PDF), ("png", PNG), ("jpeg", JPEG), ("json", JSON),
                           ("rss", RSS), ("docx", ZIP), ("noise", bytes(range(256)) * 8))
    ),
    *(
        Defect(f"html_called_{name}", f"A page under the type {kind!r}.",
               lambda kind=kind: typed(page(), kind),
               document(sniffed_type="text/html", declared_type=kind))
        for name, kind in (("octet_stream", "application/octet-stream"), ("nothing", None),
                           ("xml", "application/xml"), ("xhtml", "application/xhtml+xml"),
                           ("text_xml", "text/xml"))
    ),
    *(
        Defect(f"other_type_{name}", f"What {kind} says it is.",
               lambda body=body, kind=kind: typed(body, kind), rejected("content_type"))
        for name, body, kind in (("png", PNG, "image/png"), ("pdf", PDF, "application/pdf"),
                                 ("css", "p { color: red }", "text/css"),
                                 ("script", "alert(1)", "application/javascript"),
                                 ("json", JSON, "application/json"),
                                 ("html_as_png", page(), "image/png"))
    ),
    Defect("plain_text", "A text document.", lambda: typed(TEXT, "text/plain; charset=utf-8"),
           document(declared_type="text/plain")),
    Defect("plain_text_untyped", "Words without a type: nothing says that they are a page.",
           lambda: typed(TEXT, None), rejected("content_type")),
    Defect("png_called_text", "A picture under text/plain.", lambda: typed(PNG, "text/plain"),
           rejected("content_type")),
    Defect("html_without_tags_first", "Words before the first tag, under text/html.",
           lambda: typed("Herons. " + page(), HTML), document()),
    Defect("gzip_file_called_html", "A gzip file of a page, under text/html.",
           lambda: typed(gz(page().encode()), HTML), document(encodings="gzip")),
]  # fmt: skip

ADDRESSES = {
    "file": "file:///etc/passwd",
    "javascript": "javascript:alert(document.cookie)",
    "data": "data:text/html,<script>alert(1)</script>",
    "traversal": "http://a.example/../../../../etc/cron.d/ingot-escape",
    "traversal_encoded": "http://a.example/..%2f..%2f..%2fingot-escape",
    "backslashes": "..\\..\\ingot-escape",
    "bare_path": "../../../../tmp/ingot-escape",
    "spaces": "http://a.example/a b",
    "not_ascii": "http://a.example/süß/鷺",
    "angle_brackets": "<http://a.example/in-brackets>",
    "very_long": "http://a.example/" + "a" * 8_000,
    "credentials": "http://user:secret@a.example/",
    "no_host": "http:///",
    "markup": 'http://a.example/"><script>alert(1)</script>',
}
"""Name → WARC-Target-URI. It is a label: nothing is opened, fetched or written by it."""

URIS = [
    *(
        Defect(f"uri_{name}", f"A page that was found at {uri[:60]!r}.",
               lambda uri=uri: warc(http(page()), uri=uri), document())
        for name, uri in ADDRESSES.items()
    ),
    Defect("uri_beyond_any_head", "An address of a megabyte: no head is that long.",
           lambda: warc(http(page()), uri="http://a.example/" + "a" * 1_000_000),
           rejected("malformed_record")),
    Defect("uri_missing", "A page from nowhere.", lambda: warc(http(page()), uri=None),
           document()),
    Defect("repeated_url", "The same address three times: each is a document, and counted.",
           lambda: [warc(http(page(title=f"Herons {n}")), uri="http://a.example/again")
                    for n in range(3)],
           Outcome(documents=3, text="Herons 2", columns={"url_repeats": 2})),
    *(
        Defect(f"resource_{name}", "A resource record, as wget and curators write them.",
               lambda uri=uri: warc(page(), type="resource", uri=uri, content_type=HTML),
               document(record_type="resource"))
        for name, uri in (("http", "http://a.example/r"), ("file", "file:///srv/www/index.html"),
                          ("traversal", "../../../tmp/ingot-escape"))
    ),
    Defect("resource_picture", "A picture as a resource.",
           lambda: warc(PNG, type="resource", content_type="image/png"),
           rejected("content_type")),
]  # fmt: skip

MARKS = [
    Defect("robots_meta", "A page that asks not to be indexed: a document all the same.",
           lambda: warc(http(page(head="<meta name=robots content='noindex, NoFollow'>"))),
           document(robots="nofollow noindex")),
    Defect("robots_header", "X-Robots-Tag, twice.",
           lambda: warc(http(page(), fields=[("X-Robots-Tag", "noindex"),
                                             ("X-Robots-Tag", "noai, noimageai")])),
           document(ai_opt_out="noai noimageai")),
    Defect("tdm_header", "The TDM Reservation Protocol, by headers.",
           lambda: warc(http(page(), fields=[("tdm-reservation", "1"),
                                             ("tdm-policy", "https://a.example/tdm.json")])),
           document(ai_opt_out="tdm-reservation", tdm_policy="https://a.example/tdm.json")),
    Defect("tdm_meta", "The TDM Reservation Protocol, by a tag.",
           lambda: warc(http(page(head="<meta name=tdm-reservation content=1>"))),
           document(ai_opt_out="tdm-reservation")),
]  # fmt: skip

FORMATS = [
    Defect("wet", "Text that somebody else extracted.", lambda: wet(TEXT),
           document(record_type="conversion"), suffix=".warc.wet"),
    Defect("wet_not_utf8", "A WET record that is not UTF-8.",
           lambda: wet("Stra\u00dfe".encode("cp1252") * 50), Outcome(documents=1),
           suffix=".warc.wet"),
    Defect("wet_nul", "A WET record with NUL in it.", lambda: wet("one\0two " + TEXT),
           document("onetwo"), suffix=".warc.wet"),
    Defect("wet_empty", "A WET record without text.", lambda: wet(" \n"), rejected("no_text"),
           suffix=".warc.wet"),
    *(
        Defect(f"arc_{packing}", "A file of the Internet Archive's old format.",
               lambda pack=pack: b"".join(map(pack, [arc_file_head(), arc(http(page()))])),
               document(record_type="response"), "plain", True, suffix)
        for packing, pack, suffix in (("plain", bytes, ".arc"), ("gzip", gz, ".arc.gz"))
    ),
    Defect("arc_404", "An ARC record of an error.",
           lambda: arc_file_head() + arc(http(page())) + arc(http(page(), status="404 Gone")),
           Outcome(documents=1, rejected={"http_status": 1}), "plain", True, ".arc"),
    Defect("arc_without_head", "An ARC record without HTTP, as the first crawls have.",
           lambda: arc_file_head() + arc(page().encode()), document(), "plain", True, ".arc"),
    Defect("arc_cut", "An ARC file that ends inside a record.",
           lambda: (arc_file_head() + arc(http(page())) * 2)[:-200],
           Outcome(documents=1, rejected={"truncated": 1}), "plain", True, ".arc"),
]  # fmt: skip

DEFECTS = [*WRONG_TYPES, *URIS, *MARKS, *FORMATS]
