"""What a file is, by its name and its first bytes."""

from __future__ import annotations

import gzip
import io
import struct
from collections.abc import Callable

import pyarrow as pa
import pytest
import zstandard

from stages.engine.reading.row import Readable
from stages.ingest.formats import (
    describes_dataset,
    format_by_content,
    format_by_name,
    why_unsupported,
)


class Given:
    """A file in memory."""

    def __init__(self, name: str, data: bytes) -> None:
        self.name, self.data, self.bytes = name, data, len(data)

    def open(self) -> io.BytesIO:
        return io.BytesIO(self.data)


def given(name: str, data: bytes) -> Readable:
    return Given(name, data)


@pytest.mark.parametrize(
    ("name", "form"),
    [
        ("CC-MAIN-2024.warc.gz", "warc"),
        ("x.warc.wet.gz", "warc"),
        ("x.warc.wat.gz", "warc"),
        ("old.ARC.gz", "warc"),
        ("x.arc", "warc"),
        ("x.warc.zst", "warc"),
        ("data/train-00000-of-00005.parquet", "jsonl"),
        ("train/data-00000-of-00001.arrow", "jsonl"),
        ("x.jsonl.zst", "jsonl"),
        ("x.md", "text"),
        ("x.py", "code"),
        ("x.tar", "unsupported"),
        ("x.tar.gz", "unsupported"),
        ("x.zip", "unsupported"),
        ("x.jsonl.bz2", "unsupported"),
        ("../../etc/passwd", None),
        ("arc", None),
    ],
)
def test_a_name_tells_the_format(name: str, form: str | None) -> None:
    assert format_by_name(name) == form


def test_what_is_not_unpacked_says_so() -> None:
    assert "unpack it" in (why_unsupported("a/x.tar.gz") or "")
    assert why_unsupported("x.warc.gz") is None


ARC = b"filedesc://x.arc 0.0.0.0 20140216050221 text/plain 4\n1 0\n\n"


def arrow() -> bytes:
    sink = io.BytesIO()
    table = pa.table({"text": ["a"]})
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue()


@pytest.mark.parametrize(
    ("data", "form"),
    [
        (b"WARC/1.0\r\n", "warc"),
        (gzip.compress(b"WARC/1.1\r\n", mtime=0), "warc"),
        (zstandard.compress(b"WARC/1.1\r\n"), "warc"),
        (b"\x5d\x2a\x4d\x18" + struct.pack("<I", 3) + b"abc", "warc"),
        (ARC, "warc"),
        (gzip.compress(ARC, mtime=0), "warc"),
        (b"PAR1....", "jsonl"),
        (arrow(), "jsonl"),
        (b'{"text": "x"}', "jsonl"),
        (b"<!doctype html><p>x", "html"),
        (b"words", "text"),
        (b"PK\x03\x04rest", "unsupported"),
        (gzip.compress(b"x" * 99, mtime=0)[:-20], "unsupported"),
    ],
)
def test_first_bytes_tell_the_format_where_a_name_does_not(data: bytes, form: str) -> None:
    assert format_by_content(given("unknown", data)) == form


CARD = b"---\nlicense: mit\ndataset_info:\n  features:\n---\n# A dataset\n"


@pytest.mark.parametrize(
    ("name", "data", "describes"),
    [
        ("README.md", CARD, True),
        ("data/readme.md", CARD.replace(b"\n", b"\r\n"), True),
        ("README.md", b"---\nconfigs:\n- config_name: default\n---\n", True),
        ("README.md", b"# A project\ndataset_info: none\n", False),
        ("README.md", b"---\ntitle: A page\n---\ndataset_info: x\n", False),
        ("README.md", b"---\ndataset_info: without an end\n", False),
        ("guide.md", CARD, False),
        ("dataset_infos.json", b"{}", True),
        ("train/state.json", b"{}", True),
        (".gitattributes", b"", True),
        ("LICENSE", b"MIT", True),
        ("rows.json", b"[]", False),
    ],
)
def test_files_that_describe_a_dataset_are_known(name: str, data: bytes, describes: bool) -> None:
    assert describes_dataset(given(name, data)) is describes


def test_every_reader_gets_what_the_content_tells(read_rows_of: Callable[..., list[str]]) -> None:
    assert read_rows_of("unknown", arrow()) == ["a"]


@pytest.fixture
def read_rows_of() -> Callable[..., list[str]]:
    """`read_rows_of(name, data)` → the texts of the rows."""
    from stages.ingest.config import IngestConfig
    from stages.ingest.pages import Document
    from stages.ingest.reader import Part, Reader

    def read(name: str, data: bytes) -> list[str]:
        made = list(Reader(Part(given(name, data)), IngestConfig(format="jsonl")))
        return [record.text for record in made if isinstance(record, Document)]

    return read
