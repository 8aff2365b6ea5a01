"""Rows of data files: JSON lines, JSON and Parquet, plain or compressed; faults are rows as well.

A bad line is returned as a fault, never raised, so that a stage can count it and continue.
Memory is bounded by the row limit and, for JSON that is one array, by the limits of a file's bytes
and values.
"""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Iterator
from typing import IO, Any

from stages.engine.reading.row import (
    ARROW,
    FREE_EXPANSION,
    GZIP,
    MAX_EXPANSION,
    PARQUET,
    ZSTD,
    Damage,
    Readable,
    Row,
    RowLimits,
    scrubbed_row,
)
from stages.engine.strict_json import MAX_DEPTH, is_too_deep, parse_json

_ARROW_STREAM = b"\xff\xff\xff\xff"
_CHUNK = 1 << 20
_ZSTD_SLICE = 1 << 10  # A block of 4 bytes can hold 128 KiB, so one slice gives 32 MiB at most.
_ESCAPED = re.compile(rb"\\u(?:0000|[dD][89a-fA-F])")
_UNDECODABLE = re.compile("[\udc80-\udcff]")
"""What `surrogateescape` makes of bytes that are no UTF-8."""


def row_format(name: str) -> str | None:
    """`jsonl`, `json`, `parquet` or `arrow` by a name, compression endings aside; else None."""
    stem = re.sub(r"\.(gz|zst|zstd)$", "", name.lower())
    for ending, form in ((".jsonl", "jsonl"), (".ndjson", "jsonl"), (".json", "json")):
        if stem.endswith(ending):
            return form
    for form in ("parquet", "arrow"):
        if stem.endswith(f".{form}"):
            return form
    return None


def row_format_by_magic(head: bytes) -> str | None:
    """`parquet` or `arrow` by a file's first 8 bytes; else None."""
    if head.startswith(PARQUET):
        return "parquet"
    return "arrow" if head.startswith((ARROW, _ARROW_STREAM)) else None


def stem(name: str) -> str:
    """The file's name without folders, compression and format endings: `a/b.jsonl.zst` → `b`."""
    return re.sub(
        r"(\.(jsonl|ndjson|json|parquet|arrow|gz|zst|zstd))+$", "", name.rsplit("/", 1)[-1]
    )


def read_rows(
    source: Readable, limits: RowLimits | None = None, start: int = 0, end: int | None = None
) -> Iterator[Row]:
    """Every row of a file in order; without a known ending it is read by magic, or as JSON lines.

    With `start` and `end`: the rows of plain JSON lines, or the row groups of Parquet, that begin
    in these bytes; other files can not be divided and have all rows in the part from 0.
    Reasons: too_large, truncated, expansion, malformed_record, undecodable, malformed_json,
    not_an_object. Strings of values hold no NUL (dropped) and no lone surrogate (U+FFFD); each row
    counts both, and the bytes that were no UTF-8.
    """
    limits = limits or RowLimits()
    end = source.bytes if end is None else end
    with source.open() as stream:
        head = stream.read(8)
        stream.seek(0)
        form = row_format(source.name) or row_format_by_magic(head) or "jsonl"
        if form in ("parquet", "arrow"):
            from stages.engine.reading.columnar import arrow_rows, parquet_rows

            if form == "parquet":
                yield from parquet_rows(stream, start, end, limits)
            elif start == 0:
                yield from arrow_rows(stream, limits)
        elif form == "jsonl" and not head.startswith((GZIP, ZSTD)):
            yield from _part_of_lines(stream, limits, start, end)
        elif start > 0:
            return
        elif form == "json":
            yield from _json_rows(stream, limits)
        else:
            yield from _lines_as_rows(decompress_stream(stream, limits.expansion), limits)


def metadata_json(value: dict[str, Any]) -> str:
    """A JSON object for a `metadata` column: sorted keys, other types as text, no NaN."""
    try:
        return json.dumps(
            value, sort_keys=True, ensure_ascii=False, allow_nan=False, default=_plain
        )
    except ValueError:
        cleaned = json.loads(json.dumps(value, default=_plain), parse_constant=lambda _: None)
        return json.dumps(cleaned, sort_keys=True, ensure_ascii=False)


def decompress_stream(stream: IO[bytes], expansion: int = MAX_EXPANSION) -> Iterator[bytes]:
    """The stream's bytes in chunks, gzip or zstd decoded by magic number.

    Raises Damage with `truncated`, `malformed_record`, or `expansion` once the output exceeds
    `expansion` times what was read plus FREE_EXPANSION.
    """
    head = stream.read(4)
    stream.seek(0)
    if head[:2] == GZIP:
        chunks = _gunzip(stream)
    elif head == ZSTD:
        chunks = _unzstd(stream)
    else:
        while chunk := stream.read(_CHUNK):
            yield chunk
        return
    total = 0
    for chunk, read in chunks:
        total += len(chunk)
        if total > expansion * read + FREE_EXPANSION:
            raise Damage("expansion", f"more than {expansion} times its compressed size")
        yield chunk


def _gunzip(stream: IO[bytes]) -> Iterator[tuple[bytes, int]]:
    """Chunks of all members, each with the compressed bytes read so far."""
    read, member, fed = 0, zlib.decompressobj(31), False
    try:
        while data := stream.read(_CHUNK):
            read += len(data)
            while data := data if fed else data.lstrip(b"\0"):  # Padding, as gzip itself allows.
                chunk, fed = member.decompress(data, _CHUNK), True
                if chunk:
                    yield chunk, read
                data = member.unconsumed_tail
                if member.eof:
                    data, fed = member.unused_data, False
                    member = zlib.decompressobj(31)
        while fed and (chunk := member.decompress(b"", _CHUNK)):
            yield chunk, read
    except zlib.error as error:
        raise Damage("malformed_record", str(error)) from None
    if fed and not member.eof:
        raise Damage("truncated", "gzip data ends early")


def _unzstd(stream: IO[bytes]) -> Iterator[tuple[bytes, int]]:
    """Chunks of all frames, each with the compressed bytes read so far."""
    import zstandard

    read, frame, fed = 0, zstandard.ZstdDecompressor().decompressobj(), False
    while data := stream.read(_ZSTD_SLICE):
        read += len(data)
        while data:
            try:
                chunk, fed = frame.decompress(data), True
            except zstandard.ZstdError as error:
                raise Damage("malformed_record", str(error)) from None
            if chunk:
                yield chunk, read
            data = b""
            if frame.eof:
                data, fed = frame.unused_data, False
                frame = zstandard.ZstdDecompressor().decompressobj()
    if fed:
        raise Damage("truncated", "zstd data ends early")


def _part_of_lines(stream: IO[bytes], limits: RowLimits, start: int, end: int) -> Iterator[Row]:
    """Rows of the lines that begin in the bytes [start, end) of a plain file."""
    begin = start
    if start > 0:
        stream.seek(start - 1)
        begin -= 1
        while (newline := (chunk := stream.read(_CHUNK)).find(b"\n")) < 0:
            if not chunk or begin >= end:
                return
            begin += len(chunk)
        begin += newline + 1
    stream.seek(begin)
    if begin < end:
        yield from _lines_as_rows(iter(lambda: stream.read(_CHUNK), b""), limits, begin, end)


def _lines_as_rows(
    chunks: Iterator[bytes], limits: RowLimits, begin: int = 0, end: int | None = None
) -> Iterator[Row]:
    """Rows of lines, the first of which is at `begin`, up to the first at or after `end`."""
    for offset, length, line, damage in _lines(chunks, limits.row):
        offset += begin
        if end is not None and offset >= end:
            return
        if damage is not None:
            yield Row(offset, length, None, damage.reason, damage.detail)
        elif line is None:
            yield Row(offset, length, None, "too_large", f"{length} bytes")
        elif line.strip():
            yield _parse_line(offset, line, limits.undecodable_share)


def _lines(
    chunks: Iterator[bytes], limit: int
) -> Iterator[tuple[int, int, bytes | None, Damage | None]]:
    """(offset, length, line or None if longer than `limit`, damage) of every line."""
    start, length, parts = 0, 0, []
    try:
        for chunk in _short(chunks):
            *ended, rest = chunk.split(b"\n")
            for piece in ended:
                length += len(piece)
                parts.append(piece)
                yield start, length, b"".join(parts) if length <= limit else None, None
                start, length, parts = start + length + 1, 0, []
            length += len(rest)
            parts = [*parts, rest] if length <= limit else []
    except Damage as damage:
        yield start, length, None, damage
        return
    if length:
        yield start, length, b"".join(parts) if length <= limit else None, None


def _short(chunks: Iterator[bytes]) -> Iterator[bytes]:
    """The chunks, none longer than _CHUNK: split into lines they take many times as much memory."""
    for chunk in chunks:
        for begin in range(0, len(chunk), _CHUNK):
            yield chunk[begin : begin + _CHUNK]


def _parse_line(offset: int, line: bytes, undecodable_share: float) -> Row:
    """The row of one line of JSON."""
    length = len(line)
    if offset == 0:
        line = line.removeprefix(b"\xef\xbb\xbf")
    try:
        text, undecodable = _decode_json(line, undecodable_share)
        value = parse_json(text)
    except UnicodeDecodeError as error:
        return Row(offset, length, None, "undecodable", str(error)[:200])
    except ValueError as error:
        return Row(offset, length, None, "malformed_json", str(error)[:200])
    if not isinstance(value, dict):
        return Row(offset, length, None, "not_an_object", type(value).__name__)
    if undecodable or _ESCAPED.search(line):
        return scrubbed_row(offset, length, value)
    return Row(offset, length, value)


def _decode_json(data: bytes, undecodable_share: float) -> tuple[str, int]:
    """The characters of JSON, and how many bytes were no UTF-8: they are lone surrogates then.

    `scrub` makes U+FFFD of each. UTF-16 and UTF-32 are known as `json` knows them. Raises
    UnicodeDecodeError above the share.
    """
    encoding = json.detect_encoding(data)
    try:
        return data.decode(encoding), 0
    except UnicodeDecodeError:
        text = data.decode("utf-8", "surrogateescape")
        undecodable = len(_UNDECODABLE.findall(text))
        if encoding.startswith("utf-8") and undecodable <= undecodable_share * len(text):
            return text, undecodable
        raise


def _json_rows(stream: IO[bytes], limits: RowLimits) -> Iterator[Row]:
    """Rows of a file that is one JSON value; one with several values is read as JSON lines."""
    parts, total = [], 0
    try:
        for chunk in decompress_stream(stream, limits.expansion):
            total += len(chunk)
            if total > limits.file:
                yield Row(0, total, None, "too_large", f"more than {limits.file} bytes of JSON")
                return
            parts.append(chunk)
    except Damage as damage:
        yield Row(0, total, None, damage.reason, damage.detail)
        return
    text = b"".join(parts)
    parts.clear()
    if sum(map(text.count, (b"[", b"{", b","))) > limits.values:
        end = text.find(b"\n", 0, limits.row)
        if (
            end > 0 and _parse_line(0, text[:end], limits.undecodable_share).value is not None
        ):  # JSON lines: one row at a time.
            yield from _lines_as_rows(iter([text]), limits)
        else:
            yield Row(0, total, None, "too_large", f"more than {limits.values:,} values of JSON")
        return
    try:
        value = json.loads(_decode_json(text, limits.undecodable_share)[0])
    except (ValueError, RecursionError):
        yield from _lines_as_rows(iter([text]), limits)
        return
    for ordinal, item in enumerate(_as_list(value)):
        if is_too_deep(item):
            yield Row(ordinal, 0, None, "malformed_json", f"more than {MAX_DEPTH} levels deep")
        elif isinstance(item, dict):
            yield scrubbed_row(ordinal, 0, item)
        else:
            yield Row(ordinal, 0, None, "not_an_object", type(item).__name__)


def _as_list(value: Any) -> list[Any]:
    """The rows of a JSON value: its items, those of its only list of objects, or itself."""
    if isinstance(value, list):
        return value
    if isinstance(value, dict):
        lists = [item for item in value.values() if _is_table(item)]
        scalars = all(
            not isinstance(item, dict | list) or _is_table(item) for item in value.values()
        )
        if len(lists) == 1 and scalars and "messages" not in value and "conversations" not in value:
            return list(lists[0])
    return [value]


def _is_table(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(item, dict) for item in value)


def _plain(value: Any) -> Any:
    """Types of Parquet that JSON lacks."""
    if isinstance(value, bytes):
        return value.hex()
    return value.isoformat() if hasattr(value, "isoformat") else str(value)
