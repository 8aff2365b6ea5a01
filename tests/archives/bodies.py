"""Defects of bodies: chunks and content encodings, sound, cut, broken, mislabelled and hostile."""

from __future__ import annotations

import zlib
from collections.abc import Callable

import brotli
import zstandard

from archives.defect import Defect, document, rejected
from archives.records import gz, http, page, warc

PAGE = page().encode()
# More than one block of zstd (128 KiB), so that a part of it can be read.
LONG = page([f"Sentence {n}: the heron flew over {n * n} reeds and rested." for n in range(6000)])
EARLY = "Sentence 7: the heron flew over 49 reeds and rested."


def chunked(body: bytes, size: int = 100, extension: str = "", trailer: str = "") -> bytes:
    """A body in chunks (RFC 9112, 7.1)."""
    parts = [body[at : at + size] for at in range(0, len(body), size)]
    chunks = b"".join(b"%x%s\r\n%s\r\n" % (len(p), extension.encode(), p) for p in parts)
    return chunks + b"0\r\n" + trailer.encode() + b"\r\n"


def raw_deflate(body: bytes) -> bytes:
    packer = zlib.compressobj(wbits=-15)
    return packer.compress(body) + packer.flush()


def encoded(body: bytes, *labels: str, transfer: str | None = None) -> bytes:
    """A record whose body claims these content encodings."""
    fields = [("Content-Encoding", ", ".join(labels))] if labels else []
    if transfer is not None:
        fields.append(("Transfer-Encoding", transfer))
    return warc(http(body, fields=fields))


CODINGS: dict[str, tuple[str, Callable[[bytes], bytes]]] = {
    "gzip": ("gzip", gz),
    "deflate": ("deflate", zlib.compress),
    "raw_deflate": ("deflate", raw_deflate),
    "brotli": ("br", lambda body: brotli.compress(body, quality=5)),
    "zstd": ("zstd", zstandard.compress),
}


def two_thirds(body: bytes) -> bytes:
    return body[: len(body) * 2 // 3]


def spoiled(body: bytes, label: str) -> bytes:
    """A body whose checksum does not fit, or if its encoding has none, half of it overwritten.

    Less can go unseen: deflate's codes explain nearly any bytes.
    """
    if label in ("gzip", "deflate"):
        return body[:-1] + bytes([body[-1] ^ 0xFF])
    return body[: len(body) // 2] + b"\xff" * (len(body) - len(body) // 2)


def _codings() -> list[Defect]:
    found = []
    for name, (label, pack) in CODINGS.items():
        found += [
            Defect(f"{name}_body", f"A body in {label}.",
                   lambda label=label, pack=pack: encoded(pack(PAGE), label),
                   document(encodings=label)),
            Defect(f"{name}_chunked", f"A body in {label}, in chunks.",
                   lambda label=label, pack=pack: encoded(
                       chunked(pack(PAGE)), label, transfer="chunked"),
                   document(encodings=f"chunked {label}")),
            Defect(f"{name}_cut", f"A body in {label} that ends early: what came before is kept.",
                   lambda label=label, pack=pack: encoded(two_thirds(pack(LONG.encode())), label),
                   document(EARLY, truncated="body", encodings=label)),
        ]  # fmt: skip
        if name != "raw_deflate":
            found.append(
                Defect(
                    f"{name}_spoiled",
                    f"A body in {label} that is broken, not cut.",
                    lambda label=label, pack=pack: encoded(
                        spoiled(pack(LONG.encode()), label), label
                    ),
                    rejected("malformed_body"),
                )
            )
    return found


DEFECTS = [
    *_codings(),
    *(
        Defect(f"labelled_{label}_but_plain", f"Stored decoded under its old header {label}.",
               lambda label=label: encoded(PAGE, label, transfer="chunked"),
               document(encodings=None))
        for label in ("gzip", "deflate", "br", "zstd")
    ),
    Defect("gzip_unlabelled", "gzip without a Content-Encoding.", lambda: encoded(gz(PAGE)),
           document(encodings="gzip")),
    Defect("gzip_labelled_br", "gzip under the name br.", lambda: encoded(gz(PAGE), "br"),
           document(encodings="gzip")),
    Defect("zstd_labelled_gzip", "zstd under the name gzip.",
           lambda: encoded(zstandard.compress(PAGE), "gzip"), document(encodings="zstd")),
    Defect("encoding_of_no_name", "Content-Encoding: utf-8, which is none.",
           lambda: encoded(PAGE, "utf-8"), document(encodings=None)),
    Defect("identity", "Content-Encoding: identity.", lambda: encoded(PAGE, "identity"),
           document(encodings=None)),
    Defect("gzip_twice", "gzip in gzip, both declared.",
           lambda: encoded(gz(gz(PAGE)), "gzip", "gzip"), document(encodings="gzip gzip")),
    Defect("gzip_twice_told_once", "gzip in gzip, one declared.",
           lambda: encoded(gz(gz(PAGE)), "gzip"), document(encodings="gzip gzip")),
    Defect("gzip_then_brotli", "gzip, then Brotli over it.",
           lambda: encoded(brotli.compress(gz(PAGE)), "gzip", "br"),
           document(encodings="br gzip")),
    Defect("encoded_four_times", "More encodings in a row than anybody means.",
           lambda: encoded(gz(gz(gz(gz(PAGE)))), *["gzip"] * 4), rejected("malformed_body")),
    Defect("gzip_members", "A body of two gzip members.",
           lambda: encoded(gz(PAGE[:300]) + gz(PAGE[300:]), "gzip"), document(encodings="gzip")),
    Defect("gzip_and_garbage", "Bytes behind the gzip stream, as some servers pad.",
           lambda: encoded(gz(PAGE) + b"\0" * 100, "gzip"), document(encodings="gzip")),
    Defect("gzip_transfer", "gzip as a transfer encoding.",
           lambda: encoded(chunked(gz(PAGE)), transfer="gzip, chunked"),
           document(encodings="chunked gzip")),
    Defect("chunked_body", "A body in chunks.",
           lambda: encoded(chunked(PAGE), transfer="chunked"), document(encodings="chunked")),
    Defect("chunked_with_extensions", "Chunk extensions and a trailer.",
           lambda: encoded(chunked(PAGE, extension=';a="b"', trailer="X-T: 1\r\n"),
                           transfer="chunked"),
           document(encodings="chunked")),
    Defect("chunked_unlabelled", "Chunks without a Transfer-Encoding.",
           lambda: encoded(chunked(PAGE)), document(encodings="chunked")),
    Defect("chunked_cut", "Chunks that end early: what came before is kept.",
           lambda: encoded(chunked(LONG.encode())[:20_050], transfer="chunked"),
           document(EARLY, truncated="body", encodings="chunked")),
    Defect("chunked_without_last", "No last chunk.",
           lambda: encoded(chunked(PAGE).removesuffix(b"0\r\n\r\n"), transfer="chunked"),
           document(truncated="body", encodings="chunked")),
    Defect("chunked_wrong_size", "A chunk longer than its size says.",
           lambda: encoded(b"5\r\n<html>more than five\r\n0\r\n\r\n", transfer="chunked"),
           rejected("malformed_body")),
    Defect("gzip_bomb_small", "8 MiB of one letter in 8 kB.",
           lambda: encoded(gz(b"a" * (8 << 20)), "gzip"), rejected("expansion")),
    Defect("gzip_bomb_large", "64 MiB of zeros in 65 kB.",
           lambda: encoded(gz(b"\0" * (64 << 20)), "gzip"), rejected("too_large")),
    Defect("gzip_bomb_nested", "A bomb in gzip in gzip.",
           lambda: encoded(gz(gz(b"a" * (64 << 20))), "gzip", "gzip"), rejected("expansion")),
    Defect("brotli_bomb", "64 MiB in a hundred bytes.",
           lambda: encoded(brotli.compress(b"a" * (64 << 20), quality=5), "br"),
           rejected("expansion")),
    Defect("zstd_bomb", "64 MiB in a few kB.",
           lambda: encoded(zstandard.compress(b"a" * (64 << 20)), "zstd"), rejected("too_large")),
    Defect("many_gzip_members", "100,000 gzip members, each of one letter.",
           lambda: encoded(gz(b"a") * 100_000, "gzip"), rejected("malformed_body")),
]  # fmt: skip
