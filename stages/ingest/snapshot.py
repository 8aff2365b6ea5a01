"""A whole snapshot: cut into units, read, misaligned parts read again, every record accounted for.

Where a part of an archive begins is found by looking for a record. Bytes inside a payload can look
like one, by chance or on purpose; then the part before goes on past that place, and both disagree:
what one part says comes next must be where the following one began.

Every record is a document, rejected with a reason, or ignored.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import groupby, pairwise
from typing import Any

from artifacts_schema.errors import InputError
from stages.engine import Context, ShardResult, check_bad_share
from stages.engine.inputs import REPAIR
from stages.engine.reading.rows import row_format
from stages.engine.sources import SourceFile
from stages.ingest.charset import decode
from stages.ingest.config import IngestConfig
from stages.ingest.formats import format_by_name
from stages.ingest.guard import CrashingPages
from stages.ingest.reader import Part, Unit
from stages.ingest.rights import is_licence_file, licence_from_text
from stages.ingest.shards import Tally, ingest_unit, sum_tallies

MOST_LICENCE_FILES = 10_000
"""Licence files that are read."""
_LICENCE_BYTES = 64 << 10


def read_tree_licences(files: Sequence[SourceFile], form: str) -> dict[str, str]:
    """Folder ("" is the root) → licence, where a file in it names one.

    Read only where the snapshot may hold code: archives and tables bring no trees.
    """
    holds_code = form == "code" or (
        form == "auto" and any(format_by_name(file.name) == "code" for file in files)
    )
    licences: dict[str, str] = {}
    if not holds_code:
        return licences
    named = [file for file in files if is_licence_file(file.name)]
    for file in named[:MOST_LICENCE_FILES]:
        with file.open() as stream:
            text = decode(stream.read(_LICENCE_BYTES), markup=False).text
        folder = file.name.rpartition("/")[0]
        if (licence := licence_from_text(text)) is not None:
            licences.setdefault(folder, licence)
    return licences


_COMPRESSED = (".gz", ".zst", ".zstd")


def make_units(
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
            units.extend((part,) for part in split_file(file, split_bytes))
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


def split_file(file: SourceFile, split_bytes: int | None) -> list[Part]:
    """The file in as many parts of equal size as keep each within `split_bytes`."""
    if split_bytes is None or file.bytes <= split_bytes:
        return [Part(file)]
    number = -(-file.bytes // split_bytes)
    cuts = [file.bytes * cut // number for cut in range(number + 1)]
    return [Part(file, start, end if end < file.bytes else None) for start, end in pairwise(cuts)]


def read_units(
    context: Context, units: Sequence[Unit], crashing_pages: CrashingPages, **shared: Any
) -> list[ShardResult]:
    """Map `ingest_unit` over the units; results in their order, as if no file had been divided.

    A unit that is read again writes the same files as before, over them.
    """
    units, pending = list(units), list(range(len(units)))
    results: dict[int, ShardResult] = {}
    rounds = 0
    while pending:
        watch = crashing_pages.watch()
        read = context.map(
            ingest_unit,
            [units[place] for place in pending],
            name=f"read-again-{rounds}" if rounds else "read",
            on_death=crashing_pages.on_crash,
            mark_of=watch.page_at,
            replace=rounds > 0,
            watch=watch,
            **shared,
        )
        results.update(zip(pending, read, strict=True))
        mended = dict(_parts_to_reread(units, results))
        pending = sorted(mended)
        for place, part in mended.items():
            units[place] = Unit(units[place].id, (part,))
        rounds += 1
    return [results[place] for place in range(len(units))]


def _parts_to_reread(
    units: Sequence[Unit], results: dict[int, ShardResult]
) -> Iterator[tuple[int, Part]]:
    """Places of units that must be read again, and from where."""
    divided = [  # Parts of tables are cut at rows and need no mending.
        place
        for place, unit in enumerate(units)
        if len(unit.parts) == 1
        and not unit.parts[0].is_whole
        and results[place].value["is_archive"]
    ]
    for _, group in groupby(divided, key=lambda place: units[place].parts[0].file.name):
        places = list(group)
        parts = [units[place].parts[0] for place in places]
        bounds = [(results[place].value["first"], results[place].value["next"]) for place in places]
        for number, part in misaligned_parts(parts, bounds):
            yield places[number], part


Bounds = tuple[int | None, int | None]
"""`first` and `next` of the `ArchiveReader` that read a part."""


def misaligned_parts(parts: Sequence[Part], bounds: Iterable[Bounds]) -> list[tuple[int, Part]]:
    """Parts of one file that did not begin where the one before ended, and what to read instead.

    `parts` in their order, as they were read; `bounds` theirs. Read the returned
    parts, put them in the place that their number names, and ask again until none is returned:
    then the parts hold what the whole file does, record for record. Every round sets at least one
    more part right, and none is read more than three times, so hostile data cannot make this slow.
    """
    expected: int | None = None
    broken: list[tuple[int, Part]] = []
    for number, (part, (first, following)) in enumerate(zip(parts, bounds, strict=True)):
        is_right = expected is None or _continues(part, first, expected)
        # A part that was read again waits until all before it are right.
        if not is_right and expected is not None and (not part.exact or not broken):
            broken.append((number, replace(part, start=expected, exact=True)))
        if first is not None or expected is None:
            expected = following
    return broken


def _continues(part: Part, first: int | None, expected: int) -> bool:
    if expected >= (part.file.bytes if part.end is None else part.end):
        return first is None
    if first is None:
        return part.exact and part.start == expected
    return first == expected


BROKEN = frozenset(
    {
        "truncated",  # cut by the crawler (WARC-Truncated) or by the end of the file
        "malformed_record",  # not a record, not HTTP, bytes that do not decompress
        "malformed_body",  # the body contradicts its own Transfer- or Content-Encoding
        "malformed_json",
        "not_an_object",
        "missing_text",  # the text field is absent or no string
        "undecodable",  # no character encoding fits
        "expansion",  # decompresses beyond its budget
        "extractor_error",
        "hung",  # kept a parser busy beyond all limits
        "crashed",  # took a parser down
        "unsupported_format",
    }
)
"""Reasons that count against `max_bad_share`: the bytes or the program are at fault.

The other reasons (http_status, content_type, revisit, empty_body, no_text, too_large, too_deep,
too_many_nodes) are what any healthy source holds, or a limit that the Config sets.
"""
TEXT_FIELD = "say which field holds the text with `text_field`"


def account_for_records(context: Context, units: Sequence[dict[str, Any]], snapshot: str) -> None:
    """Counters, samples and conservation from the tallies of all units.

    InputError for too many broken records, or if no record became a document.
    """
    total = sum_tallies(units)
    records_in = total.documents + sum(total.rejected.values())
    for reason, texts in total.samples.items():
        for text in texts:
            context.sample(reason, text)
    context.count(
        records_in=records_in,
        documents=total.documents,
        characters=total.characters,
        characters_repaired=total.repaired,
        **{f"rejected_{reason}": number for reason, number in sorted(total.rejected.items())},
        **{f"ignored_{kind}": number for kind, number in sorted(total.ignored.items())},
        **{f"extracted_by_{name}": number for name, number in sorted(total.extractors.items())},
    )
    _check_totals(context, total, records_in, f"snapshot '{snapshot}'")
    context.conserve(records_in=records_in, out=total.documents, dropped=total.rejected)


def _check_totals(context: Context, total: Tally, records_in: int, where: str) -> None:
    unnamed = total.rejected.get("missing_text", 0)
    broken = {reason: total.rejected[reason] for reason in sorted(BROKEN & total.rejected.keys())}
    check_bad_share(
        sum(broken.values()),
        records_in,
        context.config.max_bad_share,
        [f"{reason}: {text}" for reason in broken for text in total.samples[reason][:1]],
        where,
        TEXT_FIELD if 2 * unnamed > sum(broken.values()) else REPAIR,
    )
    if not total.documents:
        counts = ", ".join(f"{reason} {n:,}" for reason, n in sorted(total.rejected.items()))
        raise InputError(
            f"none of {records_in:,} records became a document ({counts or 'no records'})",
            where=where,
            hint=TEXT_FIELD if unnamed else "check the format and the reasons",
        )
