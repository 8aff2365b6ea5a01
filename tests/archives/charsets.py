"""Defects of character encodings: not declared, declared wrongly or twice, mixed, doubled."""

from __future__ import annotations

import codecs

from archives.defect import Defect, document
from archives.languages import ARTICLE_1, LEGACY
from archives.records import HTML, SENTENCES, http, page, warc


def written(language: str, codec: str, *, meta: str | None = None, http_says: str | None = None,
            mark: bytes = b"") -> bytes:  # fmt: skip
    """A page in a language and encoding, declared as said."""
    head = f'<meta charset="{meta}">' if meta else ""
    text = page([ARTICLE_1[language]] * 2, head=head)
    content_type = f"text/html; charset={http_says}" if http_says else "text/html"
    return warc(http(mark + text.encode(codec), content_type=content_type))


def _legacy() -> list[Defect]:
    found = []
    for language, label, codec in LEGACY:
        name = label.replace("-", "_")
        text = ARTICLE_1[language]
        found += [
            Defect(f"charset_{name}_http", f"{label}, told by HTTP.",
                   lambda a=(language, codec), b=label: written(*a, http_says=b),
                   document(text, charset_told_by="bytes" if label == "iso-2022-jp" else "http")),
            Defect(f"charset_{name}_meta", f"{label}, told by the page.",
                   lambda a=(language, codec), b=label: written(*a, meta=b), document(text)),
            Defect(f"charset_{name}_untold", f"{label}, told by nobody.",
                   lambda a=(language, codec): written(*a),
                   document(text, charset_told_by="bytes")),
            Defect(f"charset_{name}_called_utf8", f"{label}, but HTTP says UTF-8.",
                   lambda a=(language, codec): written(*a, http_says="utf-8"), document(text)),
            Defect(f"charset_{name}_default", f"{label} by its meta, ISO-8859-1 by the server.",
                   lambda a=(language, codec), b=label: written(*a, meta=b, http_says="iso-8859-1"),
                   document(text)),
        ]  # fmt: skip
    return found


def _unicode() -> list[Defect]:
    found = []
    for codec, mark in (
        ("utf-16-le", codecs.BOM_UTF16_LE),
        ("utf-16-be", codecs.BOM_UTF16_BE),
        ("utf-32-le", codecs.BOM_UTF32_LE),
        ("utf-32-be", codecs.BOM_UTF32_BE),
    ):
        for language in ("de", "ja"):
            name, text = f"{codec.replace('-', '')}_{language}", ARTICLE_1[language]
            found += [
                Defect(f"charset_{name}_marked", f"{codec} with a byte order mark.",
                       lambda a=(language, codec), m=mark: written(*a, mark=m),
                       document(text, charset=codec, charset_told_by="bom")),
                Defect(f"charset_{name}_bare", f"{codec} without a mark or a word about it.",
                       lambda a=(language, codec): written(*a),
                       document(text, charset=codec, charset_told_by="bytes")),
                Defect(f"charset_{name}_called_utf8", f"{codec}, but HTTP says UTF-8.",
                       lambda a=(language, codec): written(*a, http_says="utf-8"),
                       document(text, charset=codec)),
            ]  # fmt: skip
    return found


DEFECTS = [
    *_legacy(),
    *_unicode(),
    *(
        Defect(f"charset_utf8_called_{label.replace('-', '_')}",
               f"UTF-8 beyond ASCII, but HTTP says {label}.",
               lambda label=label, lang=lang: written(lang, "utf-8", http_says=label),
               document(ARTICLE_1[lang], charset="utf-8"))
        for label, lang in (("iso-8859-1", "de"), ("windows-1251", "ru"), ("gbk", "zh"),
                            ("shift_jis", "ja"), ("utf-16", "de"), ("utf-16le", "ja"))
    ),
    Defect("charset_mark_beats_all", "A UTF-8 mark, while HTTP and meta say otherwise.",
           lambda: written("fr", "utf-8", meta="koi8-r", http_says="big5", mark=codecs.BOM_UTF8),
           document(ARTICLE_1["fr"], charset="utf-8", charset_told_by="bom")),
    Defect("charset_two_marks", "Two UTF-8 marks, as pasted templates have.",
           lambda: written("fr", "utf-8", mark=codecs.BOM_UTF8 * 2), document(ARTICLE_1["fr"])),
    Defect("charset_unknown_label", "A label that no browser knows.",
           lambda: written("de", "utf-8", http_says="no-such-charset"),
           document(ARTICLE_1["de"], charset="utf-8")),
    Defect("charset_utf7", "UTF-7, which only serves to hide markup: read as ASCII.",
           lambda: warc(http(page(["+ADw-script+AD4-alert(1)+ADw-/script+AD4-", *SENTENCES]),
                             content_type="text/html; charset=utf-7")),
           document("+ADw-script+AD4-", charset="utf-8")),
    Defect("charset_late_meta", "The meta tag behind 2,000 bytes of comment.",
           lambda: warc(http(page([ARTICLE_1["ru"]] * 2,
                                  head="<!--" + "x" * 2000 + "--><meta charset=windows-1251>")
                             .encode("cp1251"), content_type="text/html")),
           document(ARTICLE_1["ru"], charset_told_by="meta")),
    Defect("charset_meta_in_comment", "A meta tag in a comment, before the true one.",
           lambda: warc(http(page([ARTICLE_1["ru"]] * 2, head="<!-- <meta charset=koi8-r> -->"
                                  "<meta http-equiv=Content-Type "
                                  "content='text/html; charset=windows-1251'>")
                             .encode("cp1251"), content_type="text/html")),
           document(ARTICLE_1["ru"], charset="cp1251", charset_told_by="meta")),
    Defect("charset_xml_declaration", "Told by the XML declaration alone.",
           lambda: warc(http(page([ARTICLE_1["ru"]] * 2, declaration=
                                  "<?xml version='1.0' encoding='windows-1251'?><!DOCTYPE html>")
                             .encode("cp1251"), content_type="application/xhtml+xml")),
           document(ARTICLE_1["ru"], charset_told_by="meta")),
    Defect("charset_one_bad_byte", "UTF-8 with one byte that is none.",
           lambda: warc(http(page([ARTICLE_1["ru"]] * 2).encode() + b"\xff", content_type=HTML)),
           document(ARTICLE_1["ru"], charset="utf-8", characters_repaired=1)),
    Defect("charset_cut_character", "UTF-8 that ends inside a character.",
           lambda: warc(http(page([ARTICLE_1["ja"]] * 2).encode() + "語".encode()[:2],
                             content_type="text/html")),
           document(ARTICLE_1["ja"], charset="utf-8")),
    Defect("charset_noise", "A paragraph that is text in no encoding, under the name of UTF-8: "
           "read as some single-byte encoding, which explains any bytes.",
           lambda: warc(http(page().replace("</article>", "</article><p>").encode()
                             + bytes(range(128, 256)) * 40)),
           document(SENTENCES[1])),
    Defect("mojibake", "UTF-8 read as windows-1252 and written as UTF-8 again: valid, and wrong. "
           "The repair is a view of the signals.",
           lambda: warc(http(page(["Die Gr\u00c3\u00bc\u00c3\u0178e vom Fu\u00c3\u0178e des "
                                   "Berges kamen sp\u00c3\u00a4t an.", *SENTENCES]))),
           document("Gr\u00c3\u00bc\u00c3\u0178e", charset="utf-8")),
]  # fmt: skip
