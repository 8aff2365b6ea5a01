"""Why a capture is a document, or is not."""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import replace

import pytest

from stages.ingest import pages
from stages.ingest.archive import ArchiveReader
from stages.ingest.config import IngestConfig
from stages.ingest.pages import Document, Ignored, Record, Rejected, read_capture

Maker = Callable[..., bytes]


def only(data: bytes, rules: IngestConfig | None = None) -> Record:
    (capture,) = ArchiveReader(io.BytesIO(data), len(data), limit=1 << 20, expansion=200)
    return read_capture(capture, rules or IngestConfig(max_document_bytes=1 << 20))


def reason(record: Record) -> str:
    assert isinstance(record, Rejected), record
    return record.reason


def test_a_page_gives_its_main_text_title_language_date_and_address(
    warc_record: Maker, article: str
) -> None:
    found = only(warc_record(article))
    assert isinstance(found, Document)
    assert found.text == (
        "Foxes\n\nThe quick brown fox jumps over the lazy dog near the river bank.\n\n"
        "It was seen again in the evening, when the light had gone."
    )
    assert (found.title, found.language) == ("Of foxes", "de")
    assert (found.url, found.date) == ("http://a.example/", "2024-01-15T12:00:00Z")
    assert found.page["charset_told_by"] == "http"


def test_trafilatura_can_be_chosen(warc_record: Maker, article: str) -> None:
    rules = IngestConfig(extractor="trafilatura")
    found = only(warc_record(article), rules)
    assert isinstance(found, Document)
    assert "The quick brown fox" in found.text
    assert "All rights reserved" not in found.text


@pytest.mark.parametrize("status", ["404 Not Found", "301 Moved", "206 Partial", "500 x", "204 x"])
def test_only_status_200_is_read(warc_record: Maker, article: str, status: str) -> None:
    assert reason(only(warc_record(article, status=status))) == "http_status"


@pytest.mark.parametrize("content_type", ["text/plain", "application/pdf", "image/png", "text/css"])
def test_other_content_types_are_turned_away(
    warc_record: Maker, article: str, content_type: str
) -> None:
    assert reason(only(warc_record(article, content_type=content_type))) == "content_type"


def test_a_picture_that_is_called_html_is_turned_away(warc_record: Maker) -> None:
    found = only(warc_record(b"\x89PNG\r\n\x1a\n" + b"\0" * 50))
    assert (reason(found), getattr(found, "detail", "")) == (
        "content_type",
        "text/html, is image/png",
    )


def test_an_untyped_body_is_read_if_it_begins_as_html(warc_record: Maker, article: str) -> None:
    assert isinstance(only(warc_record(article, content_type="")), Document)
    assert reason(only(warc_record("just words", content_type=""))) == "content_type"


def test_bodies_that_say_nothing_have_reasons_of_their_own(warc_record: Maker) -> None:
    assert reason(only(warc_record(" \r\n "))) == "empty_body"
    assert reason(only(warc_record("<html><body><script>x()</script></body></html>"))) == "no_text"
    assert reason(only(warc_record(block=b""))) == "empty_body"


def test_broken_records_have_reasons_of_their_own(warc_record: Maker, article: str) -> None:
    assert reason(only(warc_record(article, warc={"WARC-Truncated": "length"}))) == "truncated"
    assert reason(only(warc_record(block=b"no http here"))) == "malformed_record"
    broken = warc_record(b"\x1f\x8b\x08broken" * 9, http={"Content-Encoding": "gzip"})
    assert reason(only(broken)) == "malformed_body"


def test_a_body_that_inflates_over_the_limit_is_too_large(warc_record: Maker) -> None:
    import gzip

    bomb = warc_record(gzip.compress(b"a" * (1 << 22)), http={"Content-Encoding": "gzip"})
    assert reason(only(bomb)) == "too_large"


def test_text_that_no_encoding_explains_is_undecodable(warc_record: Maker) -> None:
    noise = b"<html><body><p>" + bytes(range(128, 256)) * 40
    found = only(warc_record(noise), IngestConfig(max_replaced_share=0.0))
    assert reason(found) == "undecodable"


def test_an_extractor_that_raises_costs_the_page_not_the_stage(
    warc_record: Maker, article: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(html: str, *_: object) -> None:
        raise RuntimeError("boom")

    monkeypatch.setattr(pages, "extract", fail)
    found = only(warc_record(article))
    assert (reason(found), getattr(found, "detail", "")) == (
        "extractor_error",
        "RuntimeError: boom",
    )


def test_records_of_other_types_are_ignored_or_told_apart(warc_record: Maker, article: str) -> None:
    assert only(warc_record(type="request", block=b"GET / HTTP/1.1\r\n\r\n")) == Ignored("request")
    assert reason(only(warc_record(article, type="revisit"))) == "revisit"
    dns = warc_record(block=b"a.example. 1 IN A 192.0.2.1", warc={"Content-Type": "text/dns"})
    assert reason(only(dns)) == "content_type"


def test_a_resource_record_is_a_page_without_http(warc_record: Maker, article: str) -> None:
    data = warc_record(
        type="resource", block=article.encode(), warc={"Content-Type": "text/html; charset=utf-8"}
    )
    assert isinstance(only(data), Document)


def test_a_wet_record_is_its_text(warc_record: Maker) -> None:
    data = warc_record(
        type="conversion",
        block="Füchse\nschlafen\n".encode(),
        warc={"Content-Type": "text/plain", "WARC-Identified-Content-Language": "deu"},
    )
    found = only(data)
    assert isinstance(found, Document)
    assert (found.text, found.language) == ("Füchse\nschlafen", "deu")


def test_text_holds_no_nul_and_its_loss_is_counted(warc_record: Maker) -> None:
    data = warc_record(
        type="conversion", block=b"one\0two three", warc={"Content-Type": "text/plain"}
    )
    found = only(data)
    assert isinstance(found, Document)
    assert (found.text, found.repaired) == ("onetwo three", 1)


def test_a_fault_of_the_archive_stands_whatever_the_type(warc_record: Maker) -> None:
    data = warc_record(type="request", block=b"GET / HTTP/1.1\r\n\r\n")
    (capture,) = ArchiveReader(io.BytesIO(data), len(data), limit=100, expansion=200)
    faulty = replace(capture, fault="truncated", detail="1 of 2 bytes")
    assert reason(read_capture(faulty, IngestConfig())) == "truncated"
