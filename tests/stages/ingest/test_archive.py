"""Every record at its true place, whatever state the file is in."""

from __future__ import annotations

import gzip
import io
import json
import random
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from stages.ingest.archive import Capture, read_archive

Maker = Callable[..., bytes]
Wrap = Callable[[bytes], bytes]


def read(data: bytes, *, limit: int = 1 << 20, expansion: int = 200) -> list[Capture]:
    return list(read_archive(io.BytesIO(data), len(data), limit=limit, expansion=expansion))


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

    with pytest.raises(OSError, match="Input/output error"):
        list(read_archive(Failing(warc_record("x")), 10_000, limit=100, expansion=100))


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
