"""Where ids stand in the tables of an output: an index beside it, made when first asked for.

Without one, a look for an id reads the id column of every table. The index has 20 bytes a row (16
of the id, 4 of the row's number among all tables), sorted by id and cut into parts of 1.3 MB: a
look reads its list of parts and one of them. It lies in the attempt of its artifact, goes with it,
and is no output: digests do not know it. One that does not match the output, or is damaged, is made
again; where nothing can be written, tables are searched as before.

Ids are 32 hexadecimal digits. Those of documents are hashes, so the 256 files into which rows are
divided first are about equal: at 10⁹ rows, 80 MB each.
"""

from __future__ import annotations

import hashlib
import json
import logging
import tempfile
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from artifacts_schema.errors import IngotError
from stages.engine.inputs import Input

FEWEST_TABLES = 9
"""Fewer tables are searched without an index."""
PART_ROWS = 1 << 16
MOST_ROWS = 1 << 32
_VERSION, _LIST = 1, "parts.json"
_RECORD = np.dtype([("high", ">u8"), ("low", ">u8"), ("row", "<u4")])
_BYTES_RECORD = np.dtype([("id", "S16"), ("row", "<u4")])
"""The same 20 bytes; ids compare as bytes."""
_HEX_DIGITS = 32
log = logging.getLogger("ingot.analysis")


@dataclass(frozen=True)
class IdIndex:
    """The rows of an output's tables by id."""

    source: Input
    folder: str
    paths: tuple[str, ...]
    starts: tuple[int, ...]
    """Rows before each table, and of all."""
    least_ids: tuple[str, ...]
    """The least id of each part."""
    checksums: tuple[str, ...]
    _held: dict[int, NDArray[Any]] = field(default_factory=dict, repr=False)
    """The part that was read last: ids that are looked for are in order."""

    def find(self, doc_id: str) -> list[tuple[str, int]]:
        """Table and row of each row with this id."""
        return [place for _, place in self._between(doc_id, doc_id)]

    def find_prefix(self, prefix: str) -> list[tuple[str, tuple[str, int]]]:
        """Id, table and row of each row whose id begins so."""
        lacking = _HEX_DIGITS - len(prefix)
        return self._between(prefix + "0" * lacking, prefix + "f" * lacking)

    def _between(self, low: str, high: str) -> list[tuple[str, tuple[str, int]]]:
        """Of ids from `low` to `high`; an id may fill several parts."""
        first = max(bisect_left(self.least_ids, low) - 1, 0)
        results: list[tuple[str, tuple[str, int]]] = []
        for part in range(first, bisect_right(self.least_ids, high)):
            records = self._read(part)
            begin = np.searchsorted(records["id"], bytes.fromhex(low), "left")
            end = np.searchsorted(records["id"], bytes.fromhex(high), "right")
            own = records[begin:end]
            rows = own["row"].tolist()
            results += zip(_hex(own), map(self._place, rows), strict=True)
        return results

    def _place(self, row: int) -> tuple[str, int]:
        table = bisect_right(self.starts, row) - 1
        return self.paths[table], row - self.starts[table]

    def _read(self, part: int) -> NDArray[Any]:
        if part not in self._held:
            data = self.source.backend.read(f"{self.folder}/{part:06d}.ids")
            if _checksum(data) != self.checksums[part]:
                raise _Damaged
            self._held.clear()
            self._held[part] = np.frombuffer(data, _BYTES_RECORD)
        return self._held[part]


class _Damaged(Exception):
    """A part is not what the list of parts says."""


def find_ids(
    source: Input, column: str, pattern: str, ids: Collection[str], prefixes: Collection[str] = ()
) -> list[tuple[str, str, int]] | None:
    """Id, table and row of each row with one of `ids` or a beginning in `prefixes`.

    `pattern` names the tables, `column` is that of the ids. None where there is no index: there are
    few tables, ids are of another sort, or nothing can be written into the store.
    """
    paths = tuple(source.paths(pattern))
    if len(paths) < FEWEST_TABLES:
        return None
    folder = f"{source.folder.rpartition('/')[0]}/ids/{source.output}"
    index = _load(source, folder, paths)
    for _ in range(2):
        if index is None and not _build(source, folder, paths, column):
            return None
        index = index or _load(source, folder, paths)
        if index is None:
            return None
        try:
            places = [(doc_id, *place) for doc_id in sorted(ids) for place in index.find(doc_id)]
            for prefix in sorted(prefixes):
                places += [(doc_id, *place) for doc_id, place in index.find_prefix(prefix)]
            return places
        except (_Damaged, IngotError, OSError):
            log.warning("the index of ids of %s is damaged: it is made again", source.folder)
            index = None
    return None


def _load(source: Input, folder: str, paths: tuple[str, ...]) -> IdIndex | None:
    """None where there is no index, or one of other tables."""
    for data in source.backend.read_many([f"{folder}/{_LIST}"]).values():
        try:
            plain = json.loads(data)
            is_whole = plain.pop("checksum") == _checksum(_canonical(plain))
            theirs = plain["version"], plain["digest"], plain["paths"]
            if is_whole and theirs == (_VERSION, source.digest, list(paths)):
                least_ids, checksums = (
                    zip(*plain["parts"], strict=True) if plain["parts"] else ((), ())
                )
                return IdIndex(source, folder, paths, tuple(plain["starts"]), least_ids, checksums)
        except (ValueError, KeyError, TypeError, AttributeError):
            log.debug("the list of parts of %s cannot be read", folder)
        log.warning("the index of ids of %s does not match it: it is made again", source.folder)
    return None


def _build(source: Input, folder: str, paths: tuple[str, ...], column: str) -> bool:
    """Make the index; False where ids are of another sort or the store cannot be written."""
    with tempfile.TemporaryDirectory(prefix="ingot-ids-") as scratch:
        try:
            # First, since all ids are read for nothing where nothing can be written.
            source.backend.replace(f"{folder}/begun", b"")
            starts = _divide(source, paths, column, Path(scratch))
            if starts is None:
                return False
            parts: list[tuple[str, str]] = []
            for records in _sorted_parts(Path(scratch)):
                data = records.tobytes()
                source.backend.replace(f"{folder}/{len(parts):06d}.ids", data)
                parts.append((_hex(records[:1])[0], _checksum(data)))
            plain = {
                "version": _VERSION,
                "digest": source.digest,
                "paths": list(paths),
                "starts": starts,
                "parts": parts,
            }
            plain["checksum"] = _checksum(_canonical(plain))
            source.backend.replace(f"{folder}/{_LIST}", json.dumps(plain).encode())
        except (IngotError, OSError) as error:
            log.warning("no index of ids can be written: %s", error)
            return False
        finally:
            with suppress(IngotError, OSError):
                source.backend.remove(f"{folder}/begun")
    return True


def _divide(source: Input, paths: Sequence[str], column: str, scratch: Path) -> list[int] | None:
    """Records of all rows into 256 files by the first byte of their id; rows before each table.

    None where ids are of another sort.
    """
    starts = [0]
    for path in paths:
        row = starts[-1]
        with source.open_table(path) as parquet:
            for batch in parquet.iter_batches(columns=[column]):
                id_bytes = _id_bytes(batch.column(0))
                if id_bytes is None or row + len(id_bytes) >= MOST_ROWS:
                    return None
                records = np.empty(len(id_bytes), _RECORD)
                records["high"], records["low"] = id_bytes.view(">u8").T
                records["row"] = np.arange(row, row + len(id_bytes))
                row += len(id_bytes)
                records = records[np.argsort(id_bytes[:, 0], kind="stable")]
                bytes_, begins = np.unique(np.sort(id_bytes[:, 0]), return_index=True)
                for byte, part in zip(bytes_, np.split(records, begins[1:]), strict=True):
                    with open(scratch / f"{byte:02x}", "ab") as out:
                        out.write(part.tobytes())
        starts.append(row)
    return starts


def _sorted_parts(scratch: Path) -> Iterator[NDArray[Any]]:
    """The records by id, then by row, in parts."""
    for path in sorted(scratch.iterdir()):
        records = np.fromfile(path, _RECORD)
        records = records[np.lexsort((records["row"], records["low"], records["high"]))]
        for begin in range(0, len(records), PART_ROWS):
            yield records[begin : begin + PART_ROWS]


_DIGITS = np.full(256, 255, np.uint8)
_DIGITS[np.frombuffer(b"0123456789abcdef", np.uint8)] = np.arange(16)


def _id_bytes(ids: pa.Array) -> NDArray[np.uint8] | None:
    """[rows, 16] The bytes of ids of 32 hexadecimal digits; None for others."""
    if ids.null_count or not pa.types.is_string(ids.type):
        return None
    _, offsets, data = ids.buffers()
    edges = np.frombuffer(offsets, "<i4")[ids.offset : ids.offset + len(ids) + 1]
    if (np.diff(edges) != _HEX_DIGITS).any():
        return None
    text = np.frombuffer(data or b"", np.uint8)[edges[0] : edges[-1]]
    digits = _DIGITS[text].reshape(-1, _HEX_DIGITS)
    if (digits == 255).any():
        return None
    return np.ascontiguousarray(digits[:, 0::2] << 4 | digits[:, 1::2])


def _hex(records: NDArray[Any]) -> list[str]:
    ids = records.view(_BYTES_RECORD)["id"]
    return [one.ljust(16, b"\0").hex() for one in ids.tolist()]


def _canonical(plain: dict[str, Any]) -> bytes:
    return json.dumps(plain, sort_keys=True).encode()


def _checksum(data: bytes) -> str:
    return hashlib.blake2b(data, digest_size=8).hexdigest()
