"""Units of work: which files, or which part of a file, one worker reads into one shard."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Protocol

from stages.engine.reading.rows import row_format
from stages.engine.sources import SourceFile
from stages.ingest.formats import format_by_name

if TYPE_CHECKING:
    from stages.ingest.stage import IngestConfig

_COMPRESSED = (".gz", ".zst", ".zstd")


class Read(Protocol):
    """What reading a part told: see `stages.ingest.archive.Reading`."""

    @property
    def first(self) -> int | None:
        """Where the first record began; None if none begins in the part."""

    @property
    def next(self) -> int | None:
        """Where the following part has to begin."""


@dataclass(frozen=True)
class Part:
    """The records of a file that begin in its bytes [start, end); `end` None is the file's end.

    Where records can only be found by looking for them, the first begins at or after `start`; at
    `start` itself if that is `exact`.
    """

    file: SourceFile
    start: int = 0
    end: int | None = None
    exact: bool = False
    beside_tables: bool = False
    """Whether tables lie in its folder or below, so that it may describe them."""

    @property
    def is_whole(self) -> bool:
        """Whether this is the whole file."""
        return self.start == 0 and self.end is None


@dataclass(frozen=True)
class Unit:
    """Files, or a part of one, that one worker reads into one shard."""

    id: str
    parts: tuple[Part, ...]

    @property
    def files(self) -> tuple[SourceFile, ...]:
        """The files that the unit reads from."""
        return tuple(part.file for part in self.parts)


def units_of(
    files: Sequence[SourceFile], config: IngestConfig, split_bytes: int | None = None
) -> list[Unit]:
    """Files in their order as units: archives and tables alone, others up to `shard_bytes`.

    Archives and tables of more than `split_bytes` are cut into parts of about that size, unless
    only the first records of each file are wanted. Where they are cut depends on their names and
    sizes alone.
    """
    units: list[tuple[Part, ...]] = []
    group: list[Part] = []
    folders = folders_of_tables(file.name for file in files)
    for file in files:
        form = format_by_name(file.name) if config.format == "auto" else config.format
        alone = form in ("warc", "jsonl") or file.bytes >= config.shard_bytes
        held = sum(part.file.bytes for part in group)
        if group and (alone or held + file.bytes > config.shard_bytes):
            units.append(tuple(group))
            group = []
        if not alone:
            group.append(Part(file, beside_tables=_folder(file.name) in folders))
        elif config.max_records is None and is_divisible(file.name, form):
            units.extend((part,) for part in parts_of(file, split_bytes))
        else:
            units.append((Part(file, beside_tables=_folder(file.name) in folders),))
    if group:
        units.append(tuple(group))
    return [Unit(f"{number:05d}", parts) for number, parts in enumerate(units)]


def folders_of_tables(names: Iterable[str]) -> set[str]:
    """The folders that hold JSON lines, Parquet or Arrow tables, and those above them."""
    folders: set[str] = set()
    for name in names:
        if row_format(name) in ("jsonl", "parquet", "arrow"):
            folder = _folder(name)
            while folder not in folders:
                folders.add(folder)
                folder = _folder(folder)
    return folders


def _folder(name: str) -> str:
    return name.rpartition("/")[0]


def is_divisible(name: str, form: str | None) -> bool:
    """Whether parts of such a file can be read by themselves.

    Archives of any compression, plain JSON lines and Parquet (by row groups) can.
    """
    if form == "warc":
        return True
    rows = row_format(name) or "jsonl"
    if form != "jsonl" or rows not in ("jsonl", "parquet"):
        return False
    return rows == "parquet" or not name.lower().endswith(_COMPRESSED)


def parts_of(file: SourceFile, split_bytes: int | None) -> list[Part]:
    """The file in as many parts of equal size as keep each within `split_bytes`."""
    if split_bytes is None or file.bytes <= split_bytes:
        return [Part(file)]
    number = -(-file.bytes // split_bytes)
    cuts = [file.bytes * cut // number for cut in range(number + 1)]
    return [Part(file, start, end if end < file.bytes else None) for start, end in pairwise(cuts)]


def parts_to_mend(parts: Sequence[Part], reads: Iterable[Read]) -> list[tuple[int, Part]]:
    """Parts of one file that did not begin where the one before ended, and what to read instead.

    `parts` in their order, as they were read; `reads` what reading them told. Read the returned
    parts, put them in the place that their number names, and ask again until none is returned:
    then the parts hold what the whole file does, record for record. Every round sets at least one
    more part right, and none is read more than three times, so hostile data cannot make this dear.
    """
    expected: int | None = None
    broken: list[tuple[int, Part]] = []
    for number, (part, read) in enumerate(zip(parts, reads, strict=True)):
        is_right = expected is None or _continues(part, read, expected)
        # A part that was read again waits until all before it are right.
        if not is_right and expected is not None and (not part.exact or not broken):
            broken.append((number, replace(part, start=expected, exact=True)))
        if read.first is not None or expected is None:
            expected = read.next
    return broken


def _continues(part: Part, read: Read, expected: int) -> bool:
    if expected >= (part.file.bytes if part.end is None else part.end):
        return read.first is None
    if read.first is None:
        return part.exact and part.start == expected
    return read.first == expected
