"""Files as units, and a file in parts: the parts hold what the whole does, record for record."""

from __future__ import annotations

import gzip
import io
import random
import struct
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, cast

import pytest
import zstandard
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from stages.engine.sources import SourceFile
from stages.ingest.archive import ArchiveReader
from stages.ingest.archive_heads import Capture
from stages.ingest.config import IngestConfig
from stages.ingest.reader import Part
from stages.ingest.snapshot import make_units, misaligned_parts, split_file

Maker = Callable[..., bytes]
Pack = Callable[[bytes], bytes]
LIMITS: dict[str, Any] = {"limit": 5_000, "expansion": 50}


@dataclass
class Named:
    """Stands for a file of a snapshot."""

    name: str
    bytes: int


def named(name: str, size: int) -> SourceFile:
    return cast(SourceFile, Named(name, size))


def cut(name: str, size: int = 1_000, **config: Any) -> list[tuple[int, int | None]]:
    units = make_units([named(name, size)], IngestConfig(**config), 300)
    return [(part.start, part.end) for unit in units for part in unit.parts]


PARTS = [(0, 250), (250, 500), (500, 750), (750, None)]
WHOLE = [(0, None)]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("a.warc.gz", PARTS),
        ("a.warc", PARTS),
        ("a.warc.zst", PARTS),
        ("a.arc.gz", PARTS),
        ("a.jsonl", PARTS),
        ("a.parquet", PARTS),
        ("a.jsonl.gz", WHOLE),
        ("a.json", WHOLE),
        ("a.arrow", WHOLE),
        ("a.txt", WHOLE),
        ("unknown", WHOLE),
    ],
)
def test_large_files_that_can_be_divided_are(name: str, expected: object) -> None:
    assert cut(name) == expected
    assert cut(name, 300) == WHOLE


def test_the_first_records_of_a_file_are_read_from_the_whole() -> None:
    assert cut("a.warc.gz", max_records=5) == WHOLE
    assert cut("unknown", format="warc") == PARTS


def test_no_byte_is_in_two_parts_or_none() -> None:
    for size in (1, 299, 300, 301, 1_001, 12_345):
        parts = split_file(named("a.warc", size), 300)
        ends = [size if part.end is None else part.end for part in parts]
        assert [part.start for part in parts] == [0, *ends[:-1]]
        assert ends[-1] == size
        assert all(end - part.start <= 300 for part, end in zip(parts, ends, strict=True))


def test_files_beside_or_above_tables_are_marked() -> None:
    names = ["README.md", "data/train.parquet", "data/LICENSE", "code/README.md", "x.json"]
    units = make_units([named(name, 10) for name in sorted(names)], IngestConfig())
    marked = {part.file.name for unit in units for part in unit.parts if part.beside_tables}
    assert marked >= {"README.md", "data/LICENSE", "x.json"}
    assert "code/README.md" not in marked


def told(captures: ArchiveReader) -> list[tuple[Any, ...]]:
    return [_fields(capture) for capture in captures]


def _fields(c: Capture) -> tuple[Any, ...]:
    return c.type, c.record, c.length, c.uri, c.date, c.block, c.fault, c.detail


def whole(data: bytes) -> list[tuple[Any, ...]]:
    return told(ArchiveReader(io.BytesIO(data), len(data), **LIMITS))


def in_parts(data: bytes, cuts: list[int]) -> tuple[list[tuple[Any, ...]], int]:
    """What the parts give once they are mended, and how often a part was read again."""
    edges = sorted({0, len(data), *(min(cut, len(data)) for cut in cuts)})
    file = named("a.warc", len(data))
    parts = [Part(file, a, b) for a, b in pairwise(edges)]

    def read(part: Part) -> tuple[list[tuple[Any, ...]], ArchiveReader]:
        reading = ArchiveReader(
            io.BytesIO(data),
            len(data),
            start=part.start,
            end=part.end,
            exact=part.exact,
            **LIMITS,
        )
        return told(reading), reading

    made = [read(part) for part in parts]
    again = 0
    while mended := misaligned_parts(parts, [(one.first, one.next) for _, one in made]):
        again += len(mended)
        assert again <= 2 * len(parts), "a part is read three times at most"
        for number, part in mended:
            parts[number], made[number] = part, read(part)
    return [capture for captures, _ in made for capture in captures], again


def arc(body: bytes, length: int | None = None) -> bytes:
    block = b"HTTP/1.1 200 OK\r\n\r\n" + body
    length = len(block) if length is None else length
    return b"http://a/ 1.2.3.4 20140216050221 text/html %d\n" % length + block + b"\n"


class Archive:
    """Archives drawn from a seed, with every kind of damage; see `STRETCHES`."""

    def __init__(self, seed: int, warc: Maker) -> None:
        self.draw, self.warc = random.Random(seed), warc
        self.is_arc = self.draw.random() < 0.35
        self.begin, self.pack = self._codec()

    def _codec(self) -> tuple[bytes, Pack]:
        codec = self.draw.choice(["plain", "gzip", "zstd", "dictionary"])
        if codec == "plain":
            return b"", bytes
        if codec == "gzip":
            return b"", lambda data: gzip.compress(data, 1, mtime=0)
        if codec == "zstd":
            return b"", zstandard.ZstdCompressor().compress
        samples = [self.warc(f"abc{n}") for n in range(200)]
        dictionary = zstandard.train_dictionary(400, list[Any](samples))
        raw = dictionary.as_bytes()
        raw = self.draw.choice([raw, zstandard.compress(raw)])
        frame = b"\x5d\x2a\x4d\x18" + struct.pack("<I", len(raw)) + raw
        return frame, zstandard.ZstdCompressor(dict_data=dictionary).compress

    def record(self, body: bytes, wrong: int = 0) -> bytes:
        """A record; its length is told `wrong` bytes too long."""
        if self.is_arc:
            return arc(body, max(0, len(body) + 19 + wrong) if wrong else None)
        kind = self.draw.choice(["response", "response", "request", "metadata", "resource"])
        length = {"Content-Length": str(max(0, len(body) + 58 + wrong))} if wrong else None
        return self.warc(body, type=kind, warc=length, uri=f"http://a/{self.draw.randrange(99)}")

    def body(self) -> bytes:
        if self.draw.random() < 0.5:
            return self.draw.randbytes(self.draw.choice([0, 10, 500, 6_000]))
        return b"<p>x" * self.draw.randint(0, 400)

    def stretch(self) -> bytes:
        draw, pack, record = self.draw, self.pack, self.record
        kind = draw.choices(
            ["one", "nested", "packed", "shared", "wrong", "other", "flip", "cut", "span"],
            [8, 2, 2, 2, 2, 1, 1, 1, 1],
        )[0]
        if kind == "nested":
            return pack(record(record(b"in") + record(b"in too")))
        if kind == "packed":
            return pack(record(pack(record(b"in")) + pack(record(b"in too"))))
        if kind == "shared":
            wrong = draw.choice([0, 0, 50])
            return pack(record(self.body()) + record(b"second") + record(b"", wrong))
        if kind == "wrong":
            return pack(record(self.body(), draw.choice([-40, -1, 1, 30, 300, 10**6])))
        if kind == "other":
            junk = [b"garbage", b"\0" * 20, b"\n\n", pack(b""), pack(b"\r\n"), pack(b"junk")]
            return draw.choice([*junk, b"\x1f\x8b\x08", b"WARC/1.0\r\n"])
        if kind == "span":
            text, step = record(self.body()) + record(b"span" * 100), draw.choice([50, 333, 1_000])
            return b"".join(pack(text[at : at + step]) for at in range(0, len(text), step))
        packed = bytearray(pack(record(self.body())))
        if kind == "flip":
            packed[draw.randrange(len(packed))] ^= 1 << draw.randrange(8)
        return bytes(packed[: draw.randrange(len(packed))] if kind == "cut" else packed)

    def data(self) -> bytes:
        data = self.begin + b"".join(self.stretch() for _ in range(self.draw.randint(1, 9)))
        return data[: self.draw.randrange(len(data) + 1)] if self.draw.random() < 0.15 else data


@settings(
    max_examples=150,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(seed=st.integers(0, 1 << 32), cuts=st.lists(st.integers(0, 30_000), max_size=6))
def test_parts_hold_what_the_whole_does(warc_record: Maker, seed: int, cuts: list[int]) -> None:
    data = Archive(seed, warc_record).data()
    expected = whole(data)
    scaled = [cut * (len(data) + 1) // 30_001 for cut in cuts]
    assert in_parts(data, scaled)[0] == expected
    names = [record for _, record, *_ in expected]
    assert len(set(names)) == len(names)
    assert sum(length for _, _, length, *_ in expected) <= len(data)


@dataclass
class Told:
    """What reading a part told."""

    first: int | None
    next: int | None


@settings(max_examples=200, deadline=None)
@given(
    steps=st.lists(st.integers(1, 40), min_size=100, max_size=100),
    looks=st.sets(st.integers(0, 99)),
    cuts=st.sets(st.integers(1, 99), max_size=7),
)
def test_parts_are_mended_whatever_looks_like_a_record(
    steps: list[int], looks: set[int], cuts: set[int]
) -> None:
    # A record at byte n ends at n + steps[n]; at the bytes `looks` one seems to begin.
    edges = sorted({0, 100, *cuts})
    file = named("a.warc", 100)
    parts = [Part(file, a, b if b < 100 else None) for a, b in pairwise(edges)]

    def read(part: Part) -> tuple[list[int], Told]:
        end = 100 if part.end is None else part.end
        position = part.start
        if part.start and not part.exact:
            position = min((n for n in looks if part.start <= n < end), default=end)
            if position >= end:
                return [], Told(None, None)
        first, records = position if position < end else None, []
        while position < end:
            records.append(position)
            position = min(100, position + steps[position])
        return records, Told(first, position)

    made = [read(part) for part in parts]
    times = [1] * len(parts)
    while mended := misaligned_parts(parts, [(one.first, one.next) for _, one in made]):
        for number, part in mended:
            parts[number], made[number] = part, read(part)
            times[number] += 1
    position, chain = 0, []
    while position < 100:
        chain.append(position)
        position += steps[position]
    assert [record for records, _ in made for record in records] == chain
    assert max(times) <= 3


def test_every_cut_of_a_sound_archive_needs_no_second_reading(
    warc_record: Maker, member: Pack
) -> None:
    data = b"".join(member(warc_record(f"<p>{n}" * 9)) for n in range(4))
    expected = whole(data)
    for cut in range(1, len(data)):
        assert in_parts(data, [cut]) == (expected, 0)


def test_a_payload_that_is_an_archive_itself_misleads_no_part(warc_record: Maker) -> None:
    inner = b"".join(warc_record(f"<p>inner {n}") for n in range(9))
    data = warc_record("a") + warc_record(inner) + warc_record("b")
    expected = whole(data)
    assert [kind for kind, *_ in expected] == ["response"] * 3
    counts = set()
    for cut in range(0, len(data), 7):
        found, again = in_parts(data, [cut, cut + 400, cut + 800])
        assert found == expected
        counts.add(again)
    assert max(counts) > 0, "some parts began within the payload"


@pytest.mark.full
def test_a_member_of_blank_lines_ends_at_its_budget(warc_record: Maker) -> None:
    good = gzip.compress(warc_record("<p>good"), mtime=0)
    blank = gzip.compress(b"\n" * (1 << 20), mtime=0)
    assert [fault for *_, fault, _ in whole(good + blank + good)] == [None, None]
    noise = random.Random(1).choices([b"\n", b"\r\n"], k=8 << 20)
    stretch = gzip.compress(b"".join(noise), 1, mtime=0)
    found = whole(good + stretch + good)
    assert [fault for *_, fault, _ in found] == [None, "malformed_record", None]
