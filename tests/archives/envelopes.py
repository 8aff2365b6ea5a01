"""Defects of the records themselves and of the file that holds them."""

from __future__ import annotations

import zlib

import zstandard

from archives.defect import Defect, Outcome, document, ignored, rejected
from archives.records import Packing, good, gz, http, packed, page, warc

PAGE = http(page())


def _both(middle: bytes, packing: Packing = "gzip") -> bytes:
    """A file with bytes between two sound records."""
    before, after = (packed([good(name)], packing) for name in ("before", "after"))
    return before + middle + after


def _flipped(data: bytes, at: int) -> bytes:
    return data[:at] + bytes([data[at] ^ 0x10]) + data[at + 1 :]


def cut_member(cut: int, packing: Packing = "gzip") -> bytes:
    """Two sound records, and the first `cut` bytes of a third."""
    return packed([good("before"), good("after")], packing) + packed([warc(PAGE)], packing)[:cut]


TYPES = [
    *(
        Defect(f"type_{kind}", f"A {kind} record: counted, no more.",
               lambda kind=kind, block=block, content=content:
                   warc(block, type=kind, content_type=content),
               ignored(kind))
        for kind, block, content in (
            ("warcinfo", "software: x\r\n", "application/warc-fields"),
            ("request", "GET / HTTP/1.1\r\nHost: a.example\r\n\r\n",
             "application/http; msgtype=request"),
            ("metadata", "fetchTimeMs: 5\r\n", "application/warc-fields"),
            ("continuation", "the rest", None),
        )
    ),
    Defect("type_unknown", "A record of a type that WARC does not know.",
           lambda: warc(PAGE, type="fancy"), ignored("unknown")),
    Defect("type_missing", "A record without WARC-Type.", lambda: warc(PAGE, type=None),
           ignored("unknown")),
    Defect("type_in_capitals", "WARC-Type: Response.", lambda: warc(PAGE, type="Response"),
           document(record_type="response")),
    Defect("revisit", "A page that had not changed since an earlier crawl.",
           lambda: warc("HTTP/1.1 200 OK\r\n\r\n", type="revisit"), rejected("revisit")),
    Defect("dns", "An answer of the DNS as a response.",
           lambda: warc("a.example. 1 IN A 192.0.2.1", content_type="text/dns"),
           rejected("content_type")),
    *(
        Defect(f"warc_truncated_{why}", f"The crawler stopped reading ({why}): kept, and marked.",
               lambda why=why: warc(PAGE[:-60], fields=[("WARC-Truncated", why)]),
               document(truncated=why))
        for why in ("length", "time", "disconnect", "unspecified")
    ),
    Defect("warc_truncated_gzip", "A body in gzip that the crawler cut.",
           lambda: warc(http(gz(page().encode())[:-9], fields=[("Content-Encoding", "gzip")]),
                        fields=[("WARC-Truncated", "length")]),
           document(truncated="length", encodings="gzip")),
    Defect("bad_digest", "Digests that are not those of the bytes: nobody's page is lost for it.",
           lambda: warc(PAGE, fields=[("WARC-Block-Digest", "sha1:" + "A" * 32),
                                      ("WARC-Payload-Digest", "sha1:" + "B" * 32)]),
           document()),
    Defect("digest_of_no_form", "A digest that is none.",
           lambda: warc(PAGE, fields=[("WARC-Block-Digest", "\0:::")]), document()),
    Defect("warc_1_0", "A WARC/1.0 record.", lambda: good("old", "WARC/1.0"), document()),
    Defect("warc_no_content_type", "A response whose block has no type.",
           lambda: warc(PAGE, content_type=None), document()),
]  # fmt: skip

LENGTHS = [
    *(
        Defect(f"length_{name}", f"Content-Length: {value}.",
               lambda value=value: warc(PAGE, length=value), rejected(reason), "gzip")
        for name, value, reason in (
            ("negative", "-5", "malformed_record"),
            ("words", "many", "malformed_record"),
            ("empty", "", "malformed_record"),
            ("huge", "999999999999", "malformed_record"),
            ("over_64_bits", "9" * 40, "malformed_record"),
            ("hexadecimal", "0x10", "malformed_record"),
        )
    ),
    Defect("length_twice_equal", "Content-Length twice, the same.",
           lambda: warc(PAGE, fields=[("Content-Length", str(len(PAGE)))]), document(), "gzip"),
    Defect("length_plus_one", "A byte more than there is, in a plain file: the next record lives.",
           lambda: warc(PAGE, length=str(len(PAGE) + 2000)), rejected("malformed_record"),
           "plain"),
]  # fmt: skip

FILES = [
    *(
        Defect(f"sound_{packing}", f"Nothing is wrong; records lie {packing}.",
               lambda: warc(PAGE), document(), packing)
        for packing in ("plain", "gzip", "shared", "zstd")
    ),
    *(
        Defect(f"cut_{packing}_{cut:02d}", f"The file ends after {cut} bytes of a record.",
               lambda cut=cut, packing=packing: cut_member(cut, packing),
               Outcome(documents=2, rejected={"truncated": 1}), "plain", True,
               {"plain": ".warc", "gzip": ".warc.gz", "zstd": ".warc.zst"}[packing])
        for packing, cuts in (("gzip", range(1, 65)), ("plain", range(1, 65, 9)),
                              ("zstd", range(1, 65, 9)))
        for cut in cuts
    ),
    Defect("garbage_between", "Bytes that are no record between two records.",
           lambda: _both(b"garbage" * 100), Outcome(documents=2, rejected={"malformed_record": 1}),
           "plain", True, ".warc.gz"),
    Defect("garbage_first", "A file that begins with garbage.",
           lambda: b"#!" + packed([good("a")], "plain"),
           Outcome(documents=1, rejected={"malformed_record": 1}), "plain", True),
    Defect("flipped_bit", "One bit of a gzip member turned over.",
           lambda: _both(_flipped(gz(warc(PAGE)), len(gz(warc(PAGE))) // 2)),
           Outcome(documents=2, rejected={"malformed_record": 1}), "plain", True, ".warc.gz"),
    Defect("wrong_checksum", "A gzip member whose checksum does not fit.",
           lambda: _both(_flipped(gz(warc(PAGE)), len(gz(warc(PAGE))) - 8)),
           Outcome(documents=2, rejected={"malformed_record": 1}), "plain", True, ".warc.gz"),
    Defect("member_of_nothing", "An empty gzip member between two records.",
           lambda: _both(gz(b"")), Outcome(documents=2, rejected={"malformed_record": 1}),
           "plain", True, ".warc.gz"),
    Defect("member_of_text", "A gzip member that holds no record.",
           lambda: _both(gz(b"no record at all, only words\n")),
           Outcome(documents=2, rejected={"malformed_record": 1}), "plain", True, ".warc.gz"),
    Defect("raw_zlib_member", "zlib's format where gzip's belongs.",
           lambda: _both(zlib.compress(warc(PAGE))),
           Outcome(documents=2, rejected={"malformed_record": 1}), "plain", True, ".warc.gz"),
    Defect("zstd_one_frame", "A whole file as one zstd frame.",
           lambda: zstandard.compress(packed([good("before"), warc(PAGE), good("after")], "plain")),
           Outcome(documents=3), "plain", True, ".warc.zst"),
]  # fmt: skip

DEFECTS = [*TYPES, *LENGTHS, *FILES]
