"""A whole snapshot: its units read, misaligned parts read again, and every record accounted for.

Where a part of an archive begins is found by looking for a record. Bytes inside a payload can look
like one, by chance or on purpose; then the part before goes on past that place, and both disagree:
what one part says comes next must be where the following one began.

Every record is a document, rejected with a reason, or ignored.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from artifacts_schema.errors import InputError
from stages.engine import Context, ShardResult, check_bad_share
from stages.engine.inputs import REPAIR
from stages.engine.sources import SourceFile
from stages.ingest.charset import decode
from stages.ingest.guard import CrashingPages
from stages.ingest.records import BROKEN, Tally, sum_tallies
from stages.ingest.rights import is_licence_file, licence_from_text
from stages.ingest.shards import ingest_unit
from stages.ingest.units import Part, Unit, format_by_name, misaligned_parts

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
        read = context.map(
            ingest_unit,
            [units[place] for place in pending],
            name=f"read-again-{rounds}" if rounds else "read",
            on_death=crashing_pages.on_crash,
            replace=rounds > 0,
            watch=crashing_pages.watch(),
            **shared,
        )
        results.update(zip(pending, read, strict=True))
        mended = dict(_parts_to_reread(units, results))
        pending = sorted(mended)
        for place, part in mended.items():
            units[place] = Unit(units[place].id, (part,))
        rounds += 1
    return [results[place] for place in range(len(units))]


@dataclass
class _PartBounds:
    first: int | None
    next: int | None


def _parts_to_reread(
    units: Sequence[Unit], results: dict[int, ShardResult]
) -> Iterator[tuple[int, Part]]:
    """Places of units that must be read again, and from where."""
    divided = [
        place for place, unit in enumerate(units) if _is_part_of_archive(unit, results[place])
    ]
    for _, group in groupby(divided, key=lambda place: units[place].parts[0].file.name):
        places = list(group)
        reads = [
            _PartBounds(results[place].value["first"], results[place].value["next"])
            for place in places
        ]
        parts = [units[place].parts[0] for place in places]
        for number, part in misaligned_parts(parts, reads):
            yield places[number], part


def _is_part_of_archive(unit: Unit, result: ShardResult) -> bool:
    """Whether the unit is one of several of an archive; those of tables need no mending."""
    return len(unit.parts) == 1 and not unit.parts[0].is_whole and result.value["is_archive"]


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
