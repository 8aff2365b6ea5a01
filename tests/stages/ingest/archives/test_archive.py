"""Every record at its true place, whatever state the file is in."""

from __future__ import annotations

import gzip
import io
import json
import random
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import zstandard
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from stages.ingest.archive import ArchiveReader
from stages.ingest.archive_heads import Capture

Maker = Callable[..., bytes]
Wrap = Callable[[bytes], bytes]


def read(data: bytes, *, limit: int = 1 << 20, expansion: int = 200) -> list[Capture]:
    return list(ArchiveReader(io.BytesIO(data), len(data), limit=limit, expansion=expansion))


def places(captures: list[Capture]) -> list[tuple[int | str, int, str | None]]:
    return [(c.record, c.length, c.fault) for c in captures]


@pytest.fixture
def three(warc_record: Maker, member: Wrap) -> list[bytes]:
    return [member(warc_record(f"<p>page {n}</p>" * 20)) for n in range(3)]


def test_offset_and_length_are_those_of_the_record_or_member(three: list[bytes]) -> None:
    a, b, c = map(len, three)
    assert places(read(b"".join(three))) == [(0, a, None), (a, b, None), (a + b, c, None)]


def test_offsets_of_a_real_crawl_are_those_its_maker_wrote_down(shared_data: Path) -> None:
    name = "crawl-2024-A-00003.warc.gz"
    with open(shared_data / "warc" / "pages.jsonl.zst", "rb") as packed:
        reader = zstandard.ZstdDecompressor().stream_reader(packed)
        rows = [json.loads(line) for line in io.TextIOWrapper(reader, encoding="utf-8")]
    truth = {
        (capture["offset"], capture["length"], row["url"])
        for row in rows
        for capture in row["captures"]
        if capture["file"] == name
    }
    data = (shared_data / "warc" / name).read_bytes()
    found = {(c.member, c.length, c.uri) for c in read(data) if c.type == "response"}
    assert found == truth
    plain = gzip.decompress(data)
    records = read(plain)
    assert all(plain[c.member : c.member + 5] == b"WARC/" for c in records)
    assert sum(c.length for c in records) == len(plain)


def test_cut_at_any_byte_keeps_all_complete_records_and_tells_of_one_cut(
    three: list[bytes],
) -> None:
    whole, last = b"".join(three[:2]), three[2]
    for cut in range(1, len(last)):
        captures = read(whole + last[:cut])
        good = [c for c in captures if c.fault is None]
        bad = [c for c in captures if c.fault is not None]
        assert [c.block.count(b"<p>") for c in good[:2]] == [20, 20]
        assert [c.fault for c in bad] in ([], ["truncated"])
        assert len(good) + len(bad) == 3
        # Without a fault the record's own bytes are all there: only what closes it is cut.
        assert bad or good[2].block.endswith(b"</p>")
        assert sum(c.length for c in captures) == len(whole) + cut


def test_bytes_that_are_no_record_are_told_of_and_passed_over(three: list[bytes]) -> None:
    a, b, _ = three
    found = places(read(a + b"garbage" + b))
    assert found == [
        (0, len(a), None),
        (len(a), 7, "malformed_record"),
        (len(a) + 7, len(b), None),
    ]


def test_a_file_that_begins_with_garbage_is_read_from_its_first_record(
    warc_record: Maker,
) -> None:
    good = warc_record("<p>x")
    assert places(read(b"#" + good)) == [(0, 1, "malformed_record"), (1, len(good), None)]


@pytest.mark.parametrize("compress", [lambda d: gzip.compress(d, mtime=0)])
def test_a_flipped_bit_costs_its_member_only(warc_record: Maker, compress: Wrap) -> None:
    a, b, c = (compress(warc_record(f"<p>page {n}</p>" * 20)) for n in range(3))
    flipped = bytearray(b)
    flipped[len(b) // 2] ^= 0x10
    found = places(read(a + bytes(flipped) + c))
    assert [(record, length) for record, length, _ in found] == [
        (0, len(a)),
        (len(a), len(b)),
        (len(a) + len(b), len(c)),
    ]
    assert [fault for *_, fault in found] == [None, "malformed_record", None]


def test_records_that_share_a_member_have_names_of_their_own(warc_record: Maker) -> None:
    records = [warc_record(f"<p>{n}") for n in range(3)]
    shared, alone = gzip.compress(records[0] + records[1], mtime=0), gzip.compress(records[2])
    assert places(read(shared + alone)) == [
        (0, 0, None),
        ("0#1", 0, None),
        (len(shared), len(alone), None),
    ]


def test_what_breaks_inside_a_shared_member_costs_the_rest_of_that_member(
    warc_record: Maker,
) -> None:
    noise = random.Random(7).randbytes(300_000)
    whole = gzip.compress(warc_record("<p>0") + warc_record(noise) + warc_record("<p>2"), mtime=0)
    broken = bytearray(whole)
    broken[-100_000] ^= 0xFF
    broken[-90_000] ^= 0xFF
    good = gzip.compress(warc_record("<p>3"), mtime=0)
    found = read(bytes(broken) + good)
    assert (found[0].record, found[0].fault) == (0, None)
    assert (found[-1].record, found[-1].fault) == (len(whole), None)
    assert [c.fault for c in found[1:-1] if c.fault] == ["malformed_record"]


@pytest.mark.parametrize("value", ["", "x12", "-5", "9" * 30])
def test_a_record_without_a_usable_length_is_malformed_and_the_next_is_read(
    warc_record: Maker, member: Wrap, value: str
) -> None:
    bad = member(warc_record("<p>bad", warc={"Content-Length": value}))
    good = member(warc_record("<p>good"))
    found = places(read(bad + good))
    assert found == [(0, len(bad), "malformed_record"), (len(bad), len(good), None)]


def test_a_block_over_the_limit_is_not_read(warc_record: Maker, member: Wrap) -> None:
    data = member(warc_record("a" * 5_000)) + member(warc_record("b"))
    big, small = read(data, limit=4_000)
    assert (big.fault, big.block) == ("too_large", b"")
    assert (small.fault, small.block[-1:]) == (None, b"b")


@pytest.mark.parametrize("compress", [gzip.compress, zstandard.ZstdCompressor().compress])
def test_a_bomb_is_refused_by_bytes_and_the_next_record_is_read(
    warc_record: Maker, compress: Wrap
) -> None:
    bomb = compress(warc_record(b"a" * (100 << 20)))
    good = compress(warc_record("<p>good"))
    assert len(bomb) * 500 < 100 << 20
    found = places(read(bomb + good, expansion=100))
    assert found == [(0, len(bomb), "expansion"), (len(bomb), len(good), None)]


def test_a_fault_of_the_disk_is_no_fault_of_the_data(warc_record: Maker) -> None:
    class Failing(io.BytesIO):
        def read(self, size: int | None = -1) -> bytes:
            if self.tell() > 0:
                raise OSError(5, "Input/output error")
            return super().read(size)

    with pytest.raises(OSError, match="Errno 5"):
        list(ArchiveReader(Failing(warc_record("x")), 10_000, limit=100, expansion=100))


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.binary(max_size=400), head=st.sampled_from([b"", b"WARC/1.0\r\n", b"\x1f\x8b\x08"]))
def test_arbitrary_bytes_are_told_of_once_and_never_crash(data: bytes, head: bytes) -> None:
    captures = read(head + data)
    assert sum(c.length for c in captures) == len(head + data)
    assert len({c.record for c in captures}) == len(captures)


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(edits=st.lists(st.tuples(st.integers(0, 2_000), st.binary(max_size=3)), max_size=4))
def test_a_damaged_archive_never_crashes_and_names_no_record_twice(
    three: list[bytes], edits: list[tuple[int, bytes]]
) -> None:
    data = bytearray(b"".join(three))
    for position, replacement in edits:
        data[position : position + 2] = replacement
    captures = read(bytes(data))
    assert len({c.record for c in captures}) == len(captures)
    assert sum(c.length for c in captures) <= len(data)


def test_only_json_metadata_is_read_besides_pages(warc_record: Maker, member: Wrap) -> None:
    json_type = {"Content-Type": "application/json"}
    data = member(warc_record(block=b"{}", type="metadata", warc=json_type))
    data += member(warc_record(block=b"a: b", type="metadata")) + member(
        warc_record("x", type="request")
    )
    assert [c.block for c in read(data)] == [b"{}", b"", b""]


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ("response", "response"),
        ("Response", "response"),
        ("resp", "unknown"),
        ("ignored_x\u2028", "unknown"),
        ("", "unknown"),
    ],
)
def test_types_are_those_of_the_standard(
    warc_record: Maker, member: Wrap, given: str, told: str
) -> None:
    data = member(warc_record("x", type=given))
    assert [c.type for c in read(data)] == [told]


def test_fields_are_read_alike_in_every_compression(warc_record: Maker, member: Wrap) -> None:
    record = warc_record("x", uri="<http://a.example/\u00fc>").replace(
        b"WARC-Date:",
        b"no field\r\nwarc-truncated:  length \r\nWARC-Truncated: time\r\nWARC-Date:",
    )
    record = record.replace(b"12:00:00Z", b"12:00:00Z\r\n folded")
    (capture,) = read(member(record))
    assert capture.uri == "http://a.example/\u00fc"
    assert (capture.truncated, capture.date) == ("length", "2024-01-15T12:00:00Z folded")


@pytest.mark.parametrize("version", [b"WARC/0.18", b"WARC/1.0", b"WARC/1.1"])
def test_versions_and_bare_line_feeds(warc_record: Maker, member: Wrap, version: bytes) -> None:
    record = warc_record("<p>x").replace(b"WARC/1.1", version)
    head, _, block = record.partition(b"\r\n\r\n")
    bare = head.replace(b"\r\n", b"\n") + b"\n\n" + block
    for data in (member(record) * 2, member(bare) * 2):
        assert [(c.type, c.fault, c.block[-4:]) for c in read(data)] == [
            ("response", None, b"<p>x")
        ] * 2


def test_two_lengths_are_a_fault(warc_record: Maker, member: Wrap) -> None:
    two = warc_record("x").replace(
        b"\r\nContent-Length", b"\r\nContent-Length: 3\r\nContent-Length"
    )
    data = member(two) + member(warc_record("y"))
    assert [c.fault for c in read(data)] == ["malformed_record", None]


@pytest.mark.parametrize("extra", [1, 40, 400, 10**6, 10**17])
def test_a_length_into_the_next_record_costs_its_own_record_only(
    warc_record: Maker, member: Wrap, extra: int
) -> None:
    length = {"Content-Length": str(200 + extra)}
    bad, good = member(warc_record("b" * 141, warc=length)), member(warc_record("<p>good"))
    assert len(warc_record("b" * 141)) > 200
    found = places(read(bad + good + good))
    # One byte more is taken from the line breaks behind the record, by which nobody is harmed.
    fault = "malformed_record" if extra > 1 else None
    assert found == [
        (0, len(bad), fault),
        (len(bad), len(good), None),
        (len(bad) + len(good), len(good), None),
    ]


def test_every_cut_of_the_first_bytes_of_a_member_is_told(warc_record: Maker) -> None:
    good = warc_record("<p>x" * 50)
    for pack in (bytes, lambda d: gzip.compress(d, mtime=0), zstandard.compress):
        first, second = pack(good), pack(good)
        for cut in range(1, 65):
            captures = read(first + second[:cut])
            assert places(captures) == [(0, len(first), None), (len(first), cut, "truncated")]
            # In the middle of a file the rest of the member is missing, and the next one is read.
            captures = read(first + second[:cut] + first)
            assert sum(c.length for c in captures) == 2 * len(first) + cut
            good_ones = [c for c in captures if c.fault is None]
            assert [(c.uri, c.block[-4:]) for c in good_ones] == [
                ("http://a.example/", b"<p>x")
            ] * 2
            faults = [c.fault for c in captures if c.fault is not None]
            # A head that is cut before its first whole field is one with the head behind it.
            assert faults == ["malformed_record"] or (pack is bytes and not faults and cut < 40)


def test_a_zero_length_block_is_a_record(warc_record: Maker, member: Wrap) -> None:
    (capture,) = read(member(warc_record(block=b"")))
    assert (capture.type, capture.block, capture.fault) == ("response", b"", None)


@pytest.mark.parametrize("packed", [False, True])
def test_frames_that_share_a_dictionary(warc_record: Maker, packed: bool) -> None:
    records = [warc_record(f"<p>page {n}") for n in range(300)]
    dictionary = zstandard.train_dictionary(1_000, list[Any](records))
    compress = zstandard.ZstdCompressor(dict_data=dictionary).compress
    raw = zstandard.compress(dictionary.as_bytes()) if packed else dictionary.as_bytes()
    # iipc.github.io/warc-specifications/specifications/warc-zstd: a skippable frame comes first.
    begin = b"\x5d\x2a\x4d\x18" + struct.pack("<I", len(raw)) + raw
    frames = [compress(record) for record in records[:3]]
    with pytest.raises(zstandard.ZstdError):
        zstandard.ZstdDecompressor().decompress(frames[0])
    captures = read(begin + b"".join(frames))
    assert [c.block[-6:] for c in captures] == [b"page 0", b"page 1", b"page 2"]
    assert (captures[0].member, captures[0].length) == (len(begin), len(frames[0]))
    damaged = read(begin + frames[0] + b"junk" + frames[1])
    assert [c.fault for c in damaged] == [None, "malformed_record", None]


@pytest.mark.parametrize("size", [0, 3, 1 << 31, (1 << 32) - 1])
def test_a_dictionary_that_is_none_harms_nothing(warc_record: Maker, size: int) -> None:
    data = b"\x5d\x2a\x4d\x18" + struct.pack("<I", size) + b"\x37\xa4\x30\xec"[:size]
    data += zstandard.compress(warc_record("<p>x"))
    captures = read(data)
    assert len({c.record for c in captures}) == len(captures)
    assert sum(c.length for c in captures) <= len(data)


def test_members_cut_without_regard_to_records_are_read(warc_record: Maker) -> None:
    # As bgzip does: blocks of equal size, whatever they hold.
    text = b"".join(warc_record(f"<p>{n}" * 300) for n in range(3))
    blocks = [text[at : at + 700] for at in range(0, len(text), 700)]
    captures = read(b"".join(gzip.compress(block, mtime=0) for block in blocks))
    assert [(c.fault, c.block.count(b"<p>")) for c in captures] == [(None, 300)] * 3


def test_going_on_does_not_read_the_same_bytes_again_and_again(warc_record: Maker) -> None:
    # Each record says that it reaches to the end of the file: reading each block to its end would
    # be half the square of the file's size.
    taken = 0

    class Counting(io.BytesIO):
        def read(self, size: int | None = -1) -> bytes:
            nonlocal taken
            data = super().read(size)
            taken += len(data)
            return data

    bad = warc_record("x", warc={"Content-Length": str(9 << 20)})
    padding = random.Random(3).randbytes(5_000)
    for pack in (bytes, lambda d: gzip.compress(d, mtime=0)):
        one = pack(bad[:-4] + padding)
        data = one * 200
        taken = 0
        stream = Counting(data)
        found = list(ArchiveReader(stream, len(data), limit=10 << 20, expansion=200))
        assert sum(c.fault is not None for c in found) == len(found) >= 200
        assert taken < 60 * len(data)


def test_names_in_an_archive_lead_nowhere(warc_record: Maker, member: Wrap, tmp_path: Path) -> None:
    names = ["../../../etc/passwd", "file:///etc/passwd", "javascript:x()", "/abs", "a\x00b"]
    data = b"".join(member(warc_record("<p>x", uri=name)) for name in names)
    assert [c.uri for c in read(data)] == names
    assert list(tmp_path.iterdir()) == []
