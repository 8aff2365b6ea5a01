"""Which encoding wins: byte order mark, HTTP, the page's own word, detection."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stages.ingest.charset import decode


def page(charset: str, text: str = "Grüße") -> str:
    return f'<html><head><meta charset="{charset}"></head><body>{text}'


def test_a_byte_order_mark_beats_http_and_meta() -> None:
    found = decode(b"\xef\xbb\xbf" + page("windows-1252").encode(), "koi8-r")
    assert (found.encoding, found.told_by) == ("utf-8", "bom")
    assert "Grüße" in found.text
    assert not found.text.startswith("\ufeff")


def test_http_beats_meta() -> None:
    found = decode(page("koi8-r").encode("windows-1252"), "ISO-8859-1")
    assert (found.encoding, found.told_by) == ("cp1252", "http")
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
    assert (found.encoding, found.told_by) == ("cp1251", "meta")
    assert "Добрый день" in found.text


def test_an_unknown_label_is_passed_over() -> None:
    found = decode(page("windows-1252").encode("windows-1252"), "no-such-charset")
    assert (found.encoding, found.told_by) == ("cp1252", "meta")


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
    assert (found.text, found.told_by) == (text * 5, "bytes")


@settings(max_examples=100, deadline=None)
@given(body=st.binary(max_size=300), label=st.sampled_from([None, "utf-8", "gbk", "utf-16", "x"]))
def test_any_bytes_decode_to_text_that_can_be_stored(body: bytes, label: str | None) -> None:
    text = decode(body, label).text
    assert text.encode("utf-8").decode("utf-8") == text
