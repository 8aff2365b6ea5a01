"""Real archives, sound and faulty: exact counts by type and fault, and warcio as the oracle."""

from __future__ import annotations

import io
from collections import Counter
from pathlib import Path

import pytest

from stages.ingest.archive import ArchiveReader
from stages.ingest.archive_heads import Capture


def read(data: bytes) -> list[Capture]:
    return list(ArchiveReader(io.BytesIO(data), len(data), limit=10 << 20, expansion=200))


SAMPLES: dict[str, dict[tuple[str, str | None], int]] = {
    "aut-example.warc.gz": {
        ("warcinfo", None): 1,
        ("response", None): 299,
        ("request", None): 261,
        ("metadata", None): 261,
    },
    "ia-web-commons-IAH-urls-wget.warc.gz": {
        ("warcinfo", None): 1,
        ("request", None): 16,
        ("response", None): 16,
        ("resource", None): 3,
    },
    "jwarc-cc.warc.gz": {("response", None): 1},
    "pywb-dupes.warc.gz": {
        ("warcinfo", None): 1,
        ("response", None): 3,
        ("request", None): 12,
        ("revisit", None): 9,
    },
    "pywb-iana.warc.gz": {
        ("warcinfo", None): 1,
        ("response", None): 48,
        ("request", None): 171,
        ("revisit", None): 123,
    },
    "pywb-revisit.warc.gz": {("warcinfo", None): 1, ("revisit", None): 1},
    "resiliparse-clipped.warc.gz": {("response", "truncated"): 1},
    # One gzip member for all records: warcio stops there, fastwarc reads on.
    "warcio-example-bad.warc.gz.bad": {
        ("warcinfo", None): 1,
        ("response", None): 2,
        ("request", None): 2,
        ("revisit", None): 1,
    },
    "warcio-example-iana.org-chunked.warc": {
        ("warcinfo", None): 1,
        ("response", None): 1,
        ("request", None): 1,
    },
    "warcio-example-resource.warc.gz": {("warcinfo", None): 2, ("resource", None): 1},
    # The response's length is two bytes short of its block: fastwarc stops there, warcio warns.
    "warcio-example-trunc.warc": {
        ("warcinfo", None): 2,
        ("response", None): 1,
        ("damage", "malformed_record"): 1,
        ("request", None): 1,
    },
    "warcio-example.arc.gz": {("warcinfo", None): 1, ("response", None): 1},
    "warcio-example.warc.gz": {
        ("warcinfo", None): 2,
        ("response", None): 1,
        ("request", None): 2,
        ("revisit", None): 1,
    },
    "warcio-post-test.warc.gz": {("response", None): 3, ("request", None): 3},
    "whirlwind.warc.gz": {
        ("warcinfo", None): 1,
        ("request", None): 1,
        ("response", None): 1,
        ("metadata", None): 1,
    },
    "whirlwind.warc.wat.gz": {("warcinfo", None): 1, ("metadata", None): 1},
    "whirlwind.warc.wet.gz": {("warcinfo", None): 1, ("conversion", None): 1},
}
"""File of shared/data/warc_samples → records by type and fault."""


@pytest.mark.parametrize("name", SAMPLES)
def test_records_and_faults_of_a_real_archive(shared_data: Path, name: str) -> None:
    data = (shared_data / "warc_samples" / name).read_bytes()
    captures = read(data)
    assert Counter((c.type, c.fault) for c in captures) == SAMPLES[name]
    if not any(c.ordinal for c in captures):
        assert sum(c.length for c in captures) == len(data)


@pytest.mark.parametrize("name", SAMPLES)
def test_blocks_and_fields_are_those_that_warcio_reads(shared_data: Path, name: str) -> None:
    warcio = pytest.importorskip("warcio.archiveiterator")
    if name.endswith((".bad", ".arc.gz")) or "clipped" in name or "trunc" in name:
        pytest.skip("warcio reads this otherwise; see test_records_and_faults_of_a_real_archive")
    path = shared_data / "warc_samples" / name
    expected = []
    with path.open("rb") as stream:
        for item in warcio.ArchiveIterator(stream, no_record_parse=True):
            field = item.rec_headers.get_header
            uri = field("WARC-Target-URI")
            block = item.raw_stream.read()
            expected.append((item.rec_type, uri, field("WARC-Date"), len(block), block))
    found = read(path.read_bytes())
    assert [(c.type, c.uri, c.date) for c in found] == [made[:3] for made in expected]
    pages = {"response", "resource", "conversion", "revisit"}
    assert [c.block for c in found if c.type in pages] == [
        block for kind, *_, block in expected if kind in pages
    ]
