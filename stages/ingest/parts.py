"""All units read, and those parts of huge archives again that began at the wrong byte.

Where a part of an archive begins is found by looking for a record. Bytes inside a payload can look
like one, by chance or on purpose; then the part before goes on past that place, and the two are
told apart: what one part says comes next must be where the following one began.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Any

from stages.ingest.guard import Culprits
from stages.ingest.shard import ingest_unit
from stages.ingest.units import Part, Unit, parts_to_mend

if TYPE_CHECKING:
    from stages.engine import Context, ShardResult


def read_units(
    context: Context, units: Sequence[Unit], culprits: Culprits, **shared: Any
) -> list[ShardResult]:
    """Map `ingest_unit` over the units; results in their order, as if no file had been divided.

    A unit that is read again writes the same files as before, over them.
    """
    units, again = list(units), list(range(len(units)))
    results: dict[int, ShardResult] = {}
    rounds = 0
    while again:
        read = context.map(
            ingest_unit,
            [units[place] for place in again],
            name=f"read-again-{rounds}" if rounds else "read",
            on_death=culprits.on_death,
            replace=rounds > 0,
            watch=culprits.watch(),
            **shared,
        )
        results.update(zip(again, read, strict=True))
        mended = dict(_to_mend(units, results))
        again = sorted(mended)
        for place, part in mended.items():
            units[place] = Unit(units[place].id, (part,))
        rounds += 1
    return [results[place] for place in range(len(units))]


@dataclass
class _Told:
    first: int | None
    next: int | None


def _to_mend(units: Sequence[Unit], results: dict[int, ShardResult]) -> Iterator[tuple[int, Part]]:
    """Places of units that must be read again, and from where."""
    divided = [
        place for place, unit in enumerate(units) if _is_part_of_archive(unit, results[place])
    ]
    for _, group in groupby(divided, key=lambda place: units[place].parts[0].file.name):
        places = list(group)
        reads = [
            _Told(results[place].value["first"], results[place].value["next"]) for place in places
        ]
        parts = [units[place].parts[0] for place in places]
        for number, part in parts_to_mend(parts, reads):
            yield places[number], part


def _is_part_of_archive(unit: Unit, result: ShardResult) -> bool:
    """Whether the unit is one of several of an archive; those of tables need no mending."""
    return len(unit.parts) == 1 and not unit.parts[0].is_whole and result.value["is_archive"]
