"""What a WAT record tells of a page."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stages.ingest.archive import ArchiveReader
from stages.ingest.archive_heads import Capture
from stages.ingest.config import IngestConfig
from stages.ingest.pages import Document, Ignored, Record, Rejected
from stages.ingest.reader import MOST_LINKS, read_wat


def envelope(**html: Any) -> bytes:
    response = {
        "Response-Message": {"Status": "200", "Version": "HTTP/1.1", "Reason": "OK"},
        "Headers": {"Content-Language": "de, en", "Content-Type": "text/html"},
        "HTML-Metadata": html,
    }
    header = {"WARC-Type": "response", "WARC-Target-URI": "http://a.example/"}
    value = {
        "WARC-Header-Metadata": header,
        "Payload-Metadata": {"HTTP-Response-Metadata": response},
    }
    return json.dumps({"Envelope": value}).encode()


def read(block: bytes) -> Record:
    uri = "http://capture.example/"
    return read_wat(Capture("metadata", 0, 0, len(block), uri=uri, block=block), IngestConfig())


def test_title_description_status_and_links_of_a_page() -> None:
    page = read(
        envelope(
            Head={
                "Title": "  A\n title ",
                "Metas": [
                    {"property": "og:description", "content": "other"},
                    {"name": "Description", "content": "what it is"},
                ],
                "Link": [{"path": "LINK@/href", "url": "/style.css"}],
            },
            Links=[
                {"path": "A@/href", "url": "/b", "text": "B"},
                {"path": "IMG@/src", "url": "/c.png"},
                {"path": "A@/href", "url": "javascript:x()"},
            ],
        )
    )
    assert isinstance(page, Document)
    assert (page.text, page.title) == ("A title\nwhat it is", "A title")
    assert (page.url, page.language) == ("http://a.example/", "de")
    assert page.metadata == {"links": 2}


def test_links_are_capped() -> None:
    links = [{"path": "A@/href", "url": f"/{n}"} for n in range(MOST_LINKS + 5)]
    page = read(envelope(Head={"Title": "a"}, Links=links))
    assert isinstance(page, Document)
    assert page.metadata == {"links": MOST_LINKS}


def test_a_real_record_of_common_crawl(shared_data: Path) -> None:
    data = (shared_data / "warc_samples" / "whirlwind.warc.wat.gz").read_bytes()
    captures = list(ArchiveReader(io.BytesIO(data), len(data), limit=1 << 20, expansion=200))
    assert [(c.type, c.content_type) for c in captures] == [
        ("warcinfo", "application/warc-fields"),
        ("metadata", "application/json"),
    ]
    assert captures[0].block == b""
    # The sample's only record describes the request.
    assert read_wat(captures[1], IngestConfig()) == Ignored("metadata")


@pytest.mark.parametrize(
    ("block", "reason"),
    [
        (b"", "malformed_json"),
        (b'{"Envelope": ', "malformed_json"),
        (b"\xff\xfe", "malformed_json"),
        (b"[" * 100_000, "malformed_json"),
        (b'{"Envelope": ' + b"9" * 5_000 + b"}", "malformed_json"),
        (b"[]", "not_an_object"),
        (b'{"a": 1}', "not_an_object"),
    ],
)
def test_what_is_no_envelope_is_a_fault(block: bytes, reason: str) -> None:
    fault = read(block)
    assert isinstance(fault, Rejected)
    assert fault.reason == reason


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["Head", "Title", "Metas", "Links", "name", "content", "url", "path", "text"]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@settings(max_examples=80, deadline=None)
@given(html=JSON, links=JSON)
def test_an_envelope_of_any_shape_is_read(html: Any, links: Any) -> None:
    body = html if isinstance(html, dict) else {"Head": html}
    assert isinstance(read(envelope(**{**body, "Links": links})), Document | Rejected)
