"""What bodies are by their first bytes, and which of them are read."""

from __future__ import annotations

import gzip
import io
import json
import tarfile
import time
import zipfile

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stages.ingest.formats import binary_type, may_be_page, page_kind, sniffed_type


def zipped(*names: str) -> bytes:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as archive:
        for name in names:
            archive.writestr(name, "application/epub+zip" if name == "mimetype" else "x")
    return data.getvalue()


def tarred() -> bytes:
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w") as archive:
        archive.addfile(tarfile.TarInfo("a"))
    return data.getvalue()


@pytest.mark.parametrize(
    ("body", "found"),
    [
        # Signatures of https://mimesniff.spec.whatwg.org, sections 6 and 7.
        (b"%PDF-1.7\n", "application/pdf"),
        (b"\xef\xbb\xbf\n %PDF-1.7\n", "application/pdf"),
        (b"%!PS-Adobe-3.0", "application/postscript"),
        (b"\x89PNG\r\n\x1a\n\0\0", "image/png"),
        (b"GIF89a\x01\0", "image/gif"),
        (b"\xff\xd8\xff\xe0", "image/jpeg"),
        (b"RIFF\x10\0\0\0WEBPVP8 ", "image/webp"),
        (b"BM\x36\0\0\0\0\0\0\0\x36\0", "image/bmp"),
        (b"\0\0\1\0\1\0", "image/x-icon"),
        (b"\0\0\0\x18ftypmp42", "video/mp4"),
        (b"\0\0\0\x18ftypavif", "image/avif"),
        (b"\x1a\x45\xdf\xa3\x01", "video/webm"),
        (b"ID3\x03\0\0\0\0", "audio/mpeg"),
        (b"OggS\0\2", "application/ogg"),
        (b"RIFF\x10\0\0\0AVI LIST", "application/x-riff"),
        (b"wOF2\0\1\0\0", "font/woff2"),
        (gzip.compress(b"x", mtime=0), "application/gzip"),
        (zipped("a.txt"), "application/zip"),
        (b"Rar!\x1a\x07\0", "application/vnd.rar"),
        # Signatures of the formats' own specifications.
        (zipped("[Content_Types].xml", "word/document.xml"), "application/zip"),
        (tarred(), "application/octet-stream"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1\0", "application/x-ole-storage"),
        (b"{\\rtf1\\ansi", "text/rtf"),
        (b"7z\xbc\xaf\x27\x1c", "application/x-7z-compressed"),
        (b"\x7fELF\2\1", "application/x-executable"),
        (b"MZ\x90\0\3\0", "application/x-msdownload"),
        # Text.
        (b'{"a": 1}', "application/json"),
        (b' [\n {"a": 1}, 2 ]\n', "application/json"),
        (json.dumps({"k" * 2000: 1}).encode(), "text/plain"),  # The key ends behind the window.
        (b"{}", "application/json"),
        (b"{ color: red }", "text/plain"),
        (b"[1] A footnote.", "text/plain"),
        (b"words", "text/plain"),
        (b" \r\n", "text/plain"),
        ("Grüße".encode("latin-1"), "text/plain"),
        ("すべての人間は".encode("iso2022_jp"), "text/plain"),
        ("plain text".encode("utf-16-le"), "text/plain"),
        ("\ufeffplain text".encode("utf-16-be"), "text/plain"),
        (b"a stray \x0b or \0 is " + b"no reason to give up a text, " * 9, "text/plain"),
        (b"BMW and MZ are makers.", "text/plain"),
        (b"ID3 is a decision tree.", "text/plain"),
        (b"BZh, PAR1 and wOFF are words.", "text/plain"),
        # Neither.
        (bytes(range(256)), "application/octet-stream"),
        (b"text\0with a zero", "application/octet-stream"),
        (b"", None),
    ],
    ids=lambda value: str(value)[:30],
)
def test_types_are_known_by_the_first_bytes(body: bytes, found: str | None) -> None:
    assert sniffed_type(body) == found


@pytest.mark.parametrize(
    "opening",
    [
        "<!DOCTYPE HTML>",
        "<!doctype  html PUBLIC '-//W3C//DTD'>",
        "<html lang=en>",
        "<HEAD>",
        "<script>",
        "<iframe src=x>",
        "<h1>",
        "<div\n>",
        "<font size=1>",
        "<table>",
        "<a href=x>",
        "<style>",
        "<title>",
        "<b>",
        "<body>",
        "<br>",
        "<p>",
        "<!-- a comment",
        "<!-- one --> <!-- two -->\n<html>",
        "<?xml version='1.0'?>\n<!DOCTYPE html>",
        "<?xml version='1.0'?><html xmlns='http://www.w3.org/1999/xhtml'>",
    ],
)
def test_html_is_known_by_the_tags_of_the_standard(opening: str) -> None:
    """https://mimesniff.spec.whatwg.org/#identifying-a-resource-with-an-unknown-mime-type"""
    for body in (opening, f" \r\n\t{opening}", f"\ufeff{opening}", f"\ufeff\ufeff{opening}x"):
        assert sniffed_type(body.encode()) == "text/html"
    for codec in ("utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be"):
        assert sniffed_type((opening + "\n<p>some words").encode(codec)) == "text/html"
        assert sniffed_type(("\ufeff" + opening + "\n<p>some words").encode(codec)) == "text/html"
    assert (
        sniffed_type(opening.encode() + b"<p>a page that holds \0 and \x1f now and then" * 40)
        == "text/html"
    )


@pytest.mark.parametrize(
    ("body", "found"),
    [
        ('<?xml version="1.0"?>\n<!-- x -->\n<rss version="2.0">', "application/rss+xml"),
        ("<rss>", "application/rss+xml"),
        ('<?xml version="1.0"?><feed xmlns="http://www.w3.org/2005/Atom">', "application/atom+xml"),
        ("<?xml version='1.0'?><rdf:RDF>", "application/rdf+xml"),
        ("<?xml version='1.0'?><urlset>", "application/xml"),
        ("<!DOCTYPE svg PUBLIC 'a' 'b' [<!ENTITY c 'd'>]>\n<svg>", "image/svg+xml"),
        ("<?xml version='1.0'?><book>", "text/xml"),
        ("<paragraph>", "text/plain"),
        ("<pre>", "text/plain"),
        ("< p>", "text/plain"),
    ],
)
def test_other_markup_is_told_apart(body: str, found: str) -> None:
    assert sniffed_type(body.encode()) == found
    assert sniffed_type(body.encode("utf-16-le") + "<x y='z'>\n".encode("utf-16-le")) == found


@pytest.mark.parametrize(
    "body",
    [b"<!---->" * 300_000, b"<!--" + b"-" * 2_000_000, b" " * 2_000_000, b"<!doctype[" * 9999],
)
def test_only_the_first_bytes_cost_time(body: bytes) -> None:
    begun = time.process_time()
    sniffed_type(body)
    assert time.process_time() - begun < 0.5  # Well under a millisecond.


@pytest.mark.parametrize(
    ("declared", "sniffed", "kind"),
    [
        ("text/html", "text/html", "html"),
        ("text/html", "text/plain", "html"),  # HTML needs no tag to begin with.
        ("text/html", "text/xml", "html"),
        ("text/html", "application/pdf", None),
        ("text/html", "application/json", None),
        ("text/html", "application/rss+xml", None),
        ("text/html", "image/png", None),
        ("text/html", "application/octet-stream", None),
        ("application/xhtml+xml", "text/html", "html"),
        ("application/xhtml+xml", "text/xml", "html"),
        ("application/xml", "text/html", "html"),
        ("text/xml", "text/html", "html"),
        ("text/xml", "text/xml", None),
        ("application/octet-stream", "text/html", "html"),
        ("application/octet-stream", "text/plain", None),
        (None, "text/html", "html"),
        (None, "text/plain", None),
        (None, "application/gzip", None),
        ("text/plain", "text/plain", "text"),
        ("text/plain", "text/html", "text"),
        ("text/plain", "image/png", None),
        ("text/markdown", "text/plain", "text"),
        ("text/css", "text/plain", None),
        ("image/png", "text/html", None),
        ("application/pdf", "application/pdf", None),
        ("application/json", "application/json", None),
    ],
)
def test_what_is_read_of_a_declared_and_a_sniffed_type(
    declared: str | None, sniffed: str, kind: str | None
) -> None:
    read_as, detail = page_kind(declared, sniffed)
    assert read_as == kind
    assert (detail is None) == (kind is not None)
    assert may_be_page(declared) or kind is None


def test_what_a_refused_body_is_stands_in_the_detail() -> None:
    assert page_kind("text/html", "application/pdf")[1] == "text/html, is application/pdf"
    assert page_kind(None, "text/plain")[1] == "no type, does not look like HTML"
    assert page_kind("image/png", "image/png")[1] == "image/png"


def test_text_of_any_form_is_not_binary() -> None:
    for body in (b"<html>", b"<?xml?><rss>", b'{"a":1}', "x".encode("utf-16"), b"", b"{\\rtf1"):
        assert binary_type(body) in (None, "text/rtf")
    assert binary_type(b"%PDF-1") == "application/pdf"
    assert binary_type(bytes(99)) == "application/octet-stream"


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=200), st.sampled_from([b"", b"<", b"\0", b"PK\x03\x04", b"<?xml", b"{"]))
def test_any_bytes_have_a_type_and_whether_they_are_read_follows(body: bytes, start: bytes) -> None:
    found = sniffed_type(start + body)
    assert (found is None) == (not start + body)
    assert page_kind("image/png", found)[0] is None


@settings(max_examples=200, deadline=None)
@given(st.text(st.characters(blacklist_categories=["Cs", "Cc"]), min_size=1, max_size=300))
def test_text_is_never_taken_for_bytes(text: str) -> None:
    assert sniffed_type(("Text: " + text).encode()) == "text/plain"
