"""The files of a data set: which documents each holds, and the columns that readers find.

A file holds documents of one source in the order of the inputs, whole row groups of their tables at
a time, up to a stated size of text. What is left out is decided here, the same way when files are
planned and when they are written.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from artifacts_schema.errors import InputError
from artifacts_schema.kinds import KINDS
from stages.engine import Input, Shard, ShardOutput, ShardResult
from stages.export.config import DatasetConfig

OPTED_OUT, OTHER_LICENCE = "opted_out", "other_licence"
MISSING = "(none)"
"""Of a language or a licence that nothing names."""
_CARRIED = ("source", "url", "date", "title", "language", "snapshot", "metadata")


@dataclass(frozen=True)
class PageNotes:
    """What pages say of themselves that bears on publishing them, for those that say anything."""

    ids: pa.Array
    licences: pa.Array
    opted_out: pa.Array

    @classmethod
    def read(cls, pages: Sequence[Input]) -> PageNotes | None:
        """Of all `pages` tables; None without any."""
        if not pages:
            return None
        names = ["doc_id", "licence", "ai_opt_out"]
        parts = []
        for shard in (shard for one in pages for shard in one.shards()):
            table = shard.read(names)
            stated = pc.or_(pc.is_valid(table["licence"]), pc.is_valid(table["ai_opt_out"]))
            parts.append(table.filter(stated))
        whole = pa.concat_tables(parts).combine_chunks()
        ids, licences, marks = (whole[name].combine_chunks() for name in names)
        return cls(ids, licences, pc.is_valid(marks))

    def look_up(self, ids: pa.Array) -> tuple[pa.Array, pa.Array]:
        """Licence (or null), and whether it is marked against use for AI, of each document."""
        places = pc.index_in(ids, value_set=self.ids)
        marked = pc.fill_null(self.opted_out.take(places), False)
        return self.licences.take(places), marked


@dataclass(frozen=True)
class Choice:
    """Which documents are published."""

    licences: tuple[str, ...]
    leave_out_opted_out: bool
    notes: PageNotes | None
    excluded: pa.Array | None
    """Ids that must not be there."""

    @classmethod
    def from_inputs(
        cls, config: DatasetConfig, pages: Sequence[Input], exclusions: Input | None
    ) -> Choice:
        """Of a run."""
        ids = None
        if exclusions is not None:
            tables = [shard.read(["doc_id"]) for shard in exclusions.shards()]
            ids = pa.chunked_array([c for t in tables for c in t["doc_id"].chunks], pa.string())
        return cls(
            config.licences,
            config.opted_out == "leave_out",
            PageNotes.read(pages),
            None if ids is None else ids.combine_chunks(),
        )

    def reasons(self, ids: pa.Array) -> tuple[pa.Array, pa.Array]:
        """Why each document is left out (null where it stays), and the licence of each.

        InputError names one that was to be forgotten.
        """
        if self.excluded is not None:
            forgotten = ids.filter(pc.is_in(ids, value_set=self.excluded))
            if len(forgotten):
                raise InputError(
                    f"{len(forgotten):,} documents are on the list of those to forget, first "
                    f"{forgotten[0].as_py()}",
                    where="documents",
                    hint="give the filter step that list, run it again, and export what it keeps",
                )
        none = pa.nulls(len(ids), pa.string())
        if self.notes is None:
            return none, none
        licences, marked = self.notes.look_up(ids)
        reasons = none
        if self.licences:
            allowed = pc.is_in(licences, value_set=pa.array(self.licences, pa.string()))
            reasons = pc.if_else(allowed, reasons, OTHER_LICENCE)
        if self.leave_out_opted_out:
            reasons = pc.if_else(marked, OPTED_OUT, reasons)
        return reasons, licences


def scan_documents(shard: Shard, out: ShardOutput, *, choice: Choice) -> dict[str, Any]:
    """Of each row group: documents and bytes of text by source; and counts for the card.

    Returns {"groups": [{source: [documents, bytes]}], "rows", "dropped": {reason: documents},
    "languages" and "licences": {source: {value: documents}}}.
    """
    groups: list[dict[str, list[int]]] = []
    dropped: Counter[str] = Counter()
    counts: dict[str, dict[str, Counter[str]]] = {"languages": {}, "licences": {}}
    rows = 0
    for table in shard.row_groups(["doc_id", "source", "language", "text"]):
        out.check_stop()
        rows += table.num_rows
        reasons, licences = choice.reasons(table["doc_id"].combine_chunks())
        dropped.update(_counts(reasons.drop_null()))
        stays = pc.is_null(reasons)
        kept = table.filter(stays).append_column("licence", licences.filter(stays))
        sizes: dict[str, list[int]] = {}
        for source in sorted(kept["source"].unique().to_pylist()):
            part = kept.filter(pc.equal(kept["source"], source))
            size = pc.sum(pc.binary_length(part["text"])).as_py()
            sizes[source] = [part.num_rows, size]
            for name, column in (("languages", "language"), ("licences", "licence")):
                counts[name].setdefault(source, Counter()).update(_counts(part[column]))
        groups.append(sizes)
    return {"groups": groups, "rows": rows, "dropped": dict(dropped), **counts}


def _counts(values: pa.Array | pa.ChunkedArray) -> dict[str, int]:
    pairs = pc.fill_null(values, MISSING).value_counts().to_pylist()
    return {pair["values"]: pair["counts"] for pair in pairs}


@dataclass(frozen=True)
class DatasetFile:
    """A file to be written: row groups of shards, of one source. An item of a map."""

    source: str
    folder: str
    number: int
    files: int
    """Of this source."""
    parts: tuple[tuple[Shard, tuple[int, ...]], ...]

    @property
    def id(self) -> str:
        """Unique among the files."""
        return f"{self.folder}-{self.number:05d}"

    @property
    def path(self) -> str:
        """Within the data set, as the Hub names files of a split."""
        return f"data/{self.folder}/train-{self.number:05d}-of-{self.files:05d}.parquet"


def folder_names(sources: Iterable[str]) -> dict[str, str]:
    """A name for each source that the Hub and every file system take; no two are equal."""
    names: dict[str, str] = {}
    for source in sorted(sources):
        plain = re.sub(r"[^A-Za-z0-9_-]+", "-", source).strip("-") or "source"
        taken = {name.lower() for name in names.values()}
        number = 1
        while (name := plain if number == 1 else f"{plain}-{number}").lower() in taken:
            number += 1
        names[source] = name
    return names


def plan_files(
    shards: Sequence[Shard], scans: Sequence[ShardResult], shard_bytes: int
) -> list[DatasetFile]:
    """The files, by source: as many row groups as have at most `shard_bytes` of text, or one."""
    planned: list[DatasetFile] = []
    groups = [scan.value["groups"] for scan in scans]
    folders = folder_names({name for shard in groups for group in shard for name in group})
    for source, folder in folders.items():
        files: list[list[tuple[int, int]]] = []
        filled = 0
        for place, shard in enumerate(groups):
            for number, group in enumerate(shard):
                if source not in group:
                    continue
                size = group[source][1]
                if not files or filled + size > shard_bytes:
                    files.append([])
                    filled = 0
                files[-1].append((place, number))
                filled += size
        for number, places in enumerate(files):
            by_shard: dict[int, list[int]] = {}
            for place, group_number in places:
                by_shard.setdefault(place, []).append(group_number)
            parts = tuple((shards[place], tuple(chosen)) for place, chosen in by_shard.items())
            planned.append(DatasetFile(source, folder, number, len(files), parts))
    return planned


def write_file(item: DatasetFile, out: ShardOutput, *, choice: Choice) -> dict[str, Any]:
    """Write the documents of a file; returns {"path", "documents", "bytes": of their text}."""
    documents = size = 0
    schema = KINDS["dataset"].tables["data/*/*.parquet"].arrow()
    with out.table_writer("dataset", item.path, schema) as writer:
        for table in _row_groups(item.parts):
            out.check_stop()
            table = table.filter(pc.equal(table["source"], item.source))
            reasons, licences = choice.reasons(table["doc_id"].combine_chunks())
            stays = pc.is_null(reasons)
            licences = licences.filter(stays)
            table = table.filter(stays)
            columns = {
                "id": table["doc_id"],
                "text": table["text"],
                **{name: table[name] for name in _CARRIED},
                "licence": licences,
            }
            writer.write(pa.table([columns[name] for name in schema.names], schema=schema))
            documents += table.num_rows
            size += pc.sum(pc.binary_length(table["text"])).as_py() or 0
    return {"path": item.path, "documents": documents, "bytes": size}


def _row_groups(parts: Sequence[tuple[Shard, Sequence[int]]]) -> Iterator[pa.Table]:
    names = ["doc_id", "text", *_CARRIED]
    for shard, wanted in parts:
        chosen = set(wanted)
        for number, table in enumerate(shard.row_groups(names)):
            if number in chosen:
                yield table


def sum_counts(scans: Sequence[ShardResult], name: str) -> dict[str, Mapping[str, int]]:
    """`languages` or `licences` of all scans: documents by source and value."""
    total: dict[str, Counter[str]] = {}
    for scan in scans:
        for source, counts in scan.value[name].items():
            total.setdefault(source, Counter()).update(counts)
    return dict(total)
