"""Which encoding wins: byte order mark, HTTP, the page's own word, detection."""

from __future__ import annotations

import codecs
import io
import json
import random
from pathlib import Path

import pytest
import zstandard
from archives.languages import ARTICLE_1, LEGACY
from archives.records import page as article
from hypothesis import given, settings
from hypothesis import strategies as st

from stages.ingest.charset import decode

WIDE = ["utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be"]


def page(charset: str, text: str = "Grüße") -> str:
    return f'<html><head><meta charset="{charset}"></head><body>{text}'


def test_a_byte_order_mark_beats_http_and_meta() -> None:
    found = decode(b"\xef\xbb\xbf" + page("windows-1252").encode(), "koi8-r")
    assert (found.encoding, found.source) == ("utf-8", "bom")
    assert "Grüße" in found.text
    assert not found.text.startswith("\ufeff")


def test_http_beats_meta() -> None:
    found = decode(page("koi8-r").encode("windows-1252"), "ISO-8859-1")
    assert (found.encoding, found.source) == ("cp1252", "http")
    assert "Grüße" in found.text


@pytest.mark.parametrize(
    "tag",
    [
        '<meta charset="windows-1251">',
        "<META http-equiv=Content-Type content='text/html; charset=windows-1251'>",
    ],
)
def test_meta_is_believed_where_http_is_silent(tag: str) -> None:
    found = decode(f"<html>{tag}<p>Добрый день, мир".encode("windows-1251"))
    assert (found.encoding, found.source) == ("cp1251", "meta")
    assert "Добрый день" in found.text


def test_an_unknown_label_is_passed_over() -> None:
    found = decode(page("windows-1252").encode("windows-1252"), "no-such-charset")
    assert (found.encoding, found.source) == ("cp1252", "meta")


def test_utf8_is_not_read_as_a_single_byte_encoding_that_a_server_declares() -> None:
    found = decode("<p>Grüße – 你好".encode(), "iso-8859-1")
    assert (found.text, found.encoding, found.replaced) == ("<p>Grüße – 你好", "utf-8", 0)


def test_a_page_cannot_declare_itself_utf16_byte_by_byte() -> None:
    for text in ("Grüße", "Grüße!"):  # Of one even and one odd number of bytes.
        found = decode(page("utf-16", text).encode())
        assert (found.text, found.encoding) == (page("utf-16", text), "utf-8")


@pytest.mark.parametrize("encoding", ["shift_jis", "euc-jp", "euc-kr", "big5", "koi8-r"])
def test_undeclared_encodings_are_detected(encoding: str) -> None:
    text = {
        "shift_jis": "吾輩は猫である。名前はまだ無い。どこで生れたかとんと見当がつかぬ。",
        "euc-jp": "吾輩は猫である。名前はまだ無い。どこで生れたかとんと見当がつかぬ。",
        "euc-kr": "모든 인간은 태어날 때부터 자유로우며 그 존엄과 권리에 있어 동등하다.",
        "big5": "人人生而自由,在尊嚴和權利上一律平等。他們賦有理性和良心,"
        "並應以兄弟關係的精神相對待。",
        "koi8-r": "Все люди рождаются свободными и равными в своем достоинстве и правах.",
    }[encoding]
    assert decode(text.encode(encoding) * 5).text == text * 5


def test_one_bad_byte_does_not_cost_the_declared_encoding() -> None:
    found = decode("Grüße ".encode() * 500 + b"\xff", "utf-8")
    assert (found.encoding, found.replaced) == ("utf-8", 1)


def test_a_declared_encoding_that_does_not_fit_gives_way_to_one_that_does() -> None:
    text = "Все люди рождаются свободными и равными в своем достоинстве и правах. "
    found = decode(text.encode("windows-1251") * 5, "utf-8")
    assert (found.text, found.source) == (text * 5, "bytes")


@pytest.mark.parametrize(("language", "label", "codec"), LEGACY)
def test_legacy_encodings_are_read_however_they_are_declared(
    language: str, label: str, codec: str
) -> None:
    """Declared rightly, not at all, as UTF-8, or by the page while the server has a default."""
    plain, told = (
        article([ARTICLE_1[language]] * 2, head=head) for head in ("", f'<meta charset="{label}">')
    )
    assert decode(plain.encode(codec), label).text == plain
    assert decode(plain.encode(codec)).text == plain
    assert decode(plain.encode(codec), "utf-8").text == plain
    assert decode(told.encode(codec)).text == told
    assert decode(told.encode(codec), "ISO-8859-1").text == told


@pytest.mark.parametrize(
    ("language", "codec", "wrong"),
    [
        ("ru", "cp1251", "iso-8859-1"),
        ("ru", "koi8-r", "windows-1251"),
        ("ru", "cp1251", "koi8-r"),
        ("el", "cp1253", "windows-1252"),
        ("he", "cp1255", "iso-8859-1"),
        ("ar", "cp1256", "iso-8859-1"),
        ("th", "cp874", "iso-8859-1"),
        ("ja", "euc_jp", "iso-8859-1"),
        ("ja", "cp932", "windows-1252"),
        ("zh", "gbk", "iso-8859-1"),
        ("ko", "cp949", "iso-8859-1"),
        ("de", "cp1252", "windows-1251"),
        ("fr", "cp1252", "koi8-r"),
    ],
)
def test_a_declaration_under_which_no_script_is_written_gives_way(
    language: str, codec: str, wrong: str
) -> None:
    text = article([ARTICLE_1[language]] * 2)
    assert decode(text.encode(codec), wrong).text == text


@pytest.mark.parametrize(("language", "label", "codec"), LEGACY)
def test_a_right_declaration_is_believed_against_detection(
    language: str, label: str, codec: str
) -> None:
    """A few words are enough for no detector, so here only the declaration tells."""
    text = "<p>" + ARTICLE_1[language][:12]
    found = decode(text.encode(codec), label)
    assert (found.text, found.replaced) == (text, 0)


@pytest.mark.parametrize("codec", WIDE)
@pytest.mark.parametrize("language", ARTICLE_1)
def test_utf16_and_utf32_are_known_without_a_mark(codec: str, language: str) -> None:
    text = article([ARTICLE_1[language]] * 2)
    for declared in (None, "utf-8", "iso-8859-1"):
        found = decode(text.encode(codec), declared)
        assert (found.text, found.encoding, found.source) == (text, codec, "bytes")
    cut = decode(text.encode(codec)[:-1])
    assert cut.text[:-2] == text[:-2]


@pytest.mark.parametrize(
    ("mark", "codec"),
    [
        (codecs.BOM_UTF16_LE, "utf-16-le"),
        (codecs.BOM_UTF16_BE, "utf-16-be"),
        (codecs.BOM_UTF32_LE, "utf-32-le"),
        (codecs.BOM_UTF32_BE, "utf-32-be"),
        (codecs.BOM_UTF8 * 2, "utf-8"),
    ],
)
def test_marks_of_all_widths_are_known(mark: bytes, codec: str) -> None:
    found = decode(mark + "<p>Grüße 語".encode(codec), "koi8-r")
    assert (found.text, found.encoding, found.source) == ("<p>Grüße 語", codec, "bom")


@pytest.mark.parametrize("label", ["utf-16", "utf-16le", "unicode", "gbk", "shift_jis", "big5"])
def test_utf8_is_known_under_a_multibyte_label(label: str) -> None:
    made = article([ARTICLE_1["zh"]] * 2)
    for text in (made, made + " "):  # Of one even and one odd number of bytes.
        assert decode(text.encode(), label).text == text


def test_utf8_wins_over_an_encoding_that_its_bytes_happen_to_fit() -> None:
    made = ARTICLE_1["ru"].replace(" ", "").replace(".", "")
    assert made.encode().decode("gb18030") != made
    assert decode(made.encode(), "gbk").text == made


def test_a_short_text_that_is_utf8_by_chance_is_what_it_is_declared() -> None:
    """The bytes of 联通 in GBK are valid UTF-8, which made a well-known bug of Windows' Notepad."""
    assert decode("联通".encode("gbk"), "gbk").text == "联通"


def test_a_few_stray_bytes_do_not_make_utf8_of_a_western_page() -> None:
    text = "plain words " * 2000 + "– caf\xe9"
    assert decode(text.encode("cp1252"), "utf-8").text == text


def test_utf8_that_ends_inside_a_character_is_utf8() -> None:
    found = decode("<p>これは文です。語".encode()[:-1])
    assert (found.text, found.encoding, found.replaced) == ("<p>これは文です。\ufffd", "utf-8", 1)


@pytest.mark.parametrize(
    ("label", "encoding"),
    [  # https://encoding.spec.whatwg.org/#names-and-labels
        ("latin1", "cp1252"),
        ("us-ascii", "cp1252"),
        (" ISO-8859-1 ", "cp1252"),
        ("x-sjis", "cp932"),
        ("ks_c_5601-1987", "cp949"),
        ("gb2312", "gb18030"),
        ("x-mac-cyrillic", "mac-cyrillic"),
        ("windows-874", "cp874"),
        ("tis-620", "cp874"),
        ("iso-8859-9", "cp1254"),
        ("x-user-defined", "cp1252"),
    ],
)
def test_labels_mean_what_they_mean_to_browsers(label: str, encoding: str) -> None:
    assert decode(b"<p>\xe9", label).encoding == encoding


@pytest.mark.parametrize(
    "label", ["utf-7", "cp65000", "csUnicode11UTF7", "rot13", "zlib", "base64"]
)
def test_what_is_no_encoding_of_the_web_is_never_used(label: str) -> None:
    hidden = "<p>+ADw-script+AD4-"
    for found in (decode(hidden.encode(), label), decode(page(label, hidden).encode())):
        assert hidden in found.text
        assert found.encoding == "utf-8"


@pytest.mark.parametrize(
    ("head", "encoding"),
    [
        ("<!-- <meta charset=koi8-r> --><meta charset=windows-1251>", "cp1251"),
        ("<meta name=description content='charset=koi8-r'><meta charset=windows-1251>", "cp1251"),
        ("<meta data-charset=koi8-r><meta charset = 'windows-1251'>", "cp1251"),
        ("<metadata charset=koi8-r><meta/charset=windows-1251>", "cp1251"),
        ("<meta charset=x-nonsense><meta charset=windows-1251>", "cp1251"),
        ("<?xml version='1.0' encoding='windows-1251'?>", "cp1251"),
    ],
)
def test_only_what_declares_an_encoding_is_read_as_that(head: str, encoding: str) -> None:
    text = f"{head}<p>{ARTICLE_1['ru']}"
    found = decode(text.encode("cp1251"))
    assert (found.text, found.encoding) == (text, encoding)


@pytest.mark.parametrize(
    ("encoding", "language", "least"),
    [
        ("cp1252", "de", 60), ("cp1252", "fr", 60), ("cp1252", "es", 59), ("cp1251", "ru", 60),
        ("koi8-r", "ru", 60), ("iso8859-5", "ru", 60), ("cp866", "ru", 59), ("cp932", "ja", 60),
        ("euc_jp", "ja", 60), ("iso2022_jp", "ja", 60), ("gb18030", "zh", 59), ("cp1256", "ar", 60),
        ("utf-16-le", "hi", 60), ("utf-32-be", "zh", 60), ("utf-8", "hi", 60), ("utf-8", "ja", 60),
    ],
)  # fmt: skip
def test_pages_of_200_characters_are_decoded_exactly_without_a_word(
    encoding: str, language: str, least: int, shared_data: Path
) -> None:
    """60 pages, made of real texts, in the encodings that such pages were written in."""
    with open(shared_data / "text" / f"{language}.jsonl.zst", "rb") as packed:
        reader = zstandard.ZstdDecompressor().stream_reader(packed)
        rows = [json.loads(line)["text"] for line in io.TextIOWrapper(reader, encoding="utf-8")]
    draw = random.Random(4)
    exact = pages = 0
    while pages < 60:
        text = draw.choice(rows)
        start = draw.randrange(max(1, len(text) - 200))
        part = text[start : start + 200].encode(encoding, "ignore").decode(encoding)
        if len(part) < 100 or part.isascii():
            continue
        made = article([part.replace("<", " ").replace("\r", " ")])
        exact += decode(made.encode(encoding)).text == made
        pages += 1
    assert exact >= least


@settings(max_examples=200, deadline=None)
@given(text=st.text(max_size=200), label=st.sampled_from([None, "utf-8", "windows-1251", "utf-16"]))
def test_every_utf8_page_comes_back(text: str, label: str | None) -> None:
    made = article([text.replace("\0", "")], title="Grüße aus 北京 und Москва")
    assert decode(made.encode(), label).text == made


@settings(max_examples=100, deadline=None)
@given(body=st.binary(max_size=300), label=st.sampled_from([None, "utf-8", "gbk", "utf-16", "x"]))
def test_any_bytes_decode_to_text_that_can_be_stored(body: bytes, label: str | None) -> None:
    text = decode(body, label).text
    assert text.encode("utf-8").decode("utf-8") == text
