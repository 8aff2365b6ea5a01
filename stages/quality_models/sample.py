"""Which documents models learn from and which judge them: drawn by name, the same everywhere."""

from __future__ import annotations

import hashlib
import heapq
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from artifacts_schema.errors import InputError
from stages.language_model.classifier import CONTRAST, REFERENCE
from stages.text.draw import draw

if TYPE_CHECKING:
    from stages.engine import Input, Shard, ShardOutput, ShardResult

_TABLE = "drawn"
_SCHEMA = pa.schema(
    {"order": pa.float64(), "name": pa.string(), "held": pa.bool_(), "text": pa.large_string()}
)


@dataclass(frozen=True)
class RoleShard:
    """A shard of one role, with an id that is unique over both; `share` of the role is drawn."""

    id: str
    role: str
    shard: Shard
    share: float


@dataclass(frozen=True)
class Drawn:
    """A document of the sample. A `held` one is never learnt from."""

    role: str
    held: bool
    text: str


def role_shards(by_role: dict[str, Sequence[Input]], documents: int) -> list[RoleShard]:
    """The shards of all roles, each to give its part of about `documents` of its role."""
    shards = []
    for role, inputs in by_role.items():
        share = min(1.0, documents / max(1, sum(one.rows for one in inputs)))
        shards += [
            RoleShard(f"{role}-{number:02d}-{shard.id}", role, shard, share)
            for number, one in enumerate(inputs)
            for shard in one.shards()
        ]
    return shards


def draw_shard(
    item: RoleShard, out: ShardOutput, *, held_share: float, seed: int, language: str
) -> dict[str, Any]:
    """Leave the documents of a shard that were drawn, in an order drawn apart from that.

    A document's name is its duplicate class, or a digest of its text: copies share both draws, so
    they fall on one side of the split. The order knows no share, so roles of different sizes are
    mixed evenly. Documents that declare another language are skipped.
    """
    lost: Counter[str] = Counter()
    rows: list[tuple[float, str, bool, str]] = []
    for group in item.shard.row_groups(["duplicate_class", "language", "text"]):
        for row in group.to_pylist():
            text = row["text"]
            if not text.strip():
                lost["blank"] += 1
                continue
            if row["language"] is not None and _primary(row["language"]) != language:
                lost["other_language"] += 1
                continue
            name = row["duplicate_class"] or _digest(text)
            place = draw(name, f"quality models {seed}")
            if place < item.share:
                order = draw(name, f"order of quality models {seed}")
                rows.append((order, name, place < item.share * held_share, text))
            else:
                lost["not_drawn"] += 1
    rows.sort(key=lambda row: row[:2])
    columns = [list(column) for column in zip(*rows, strict=True)] or [[]] * len(_SCHEMA)
    out.write_scratch(_TABLE, pa.table(columns, schema=_SCHEMA))
    return {"lost": dict(lost), "drawn": len(rows)}


class Sample:
    """The documents that were drawn, in the order of the draw, each text once.

    A text that both roles hold belongs to neither. `lost` counts by reason what is not in it.
    """

    def __init__(self, items: Sequence[RoleShard], results: Sequence[ShardResult]) -> None:
        self._parts = list(zip(items, results, strict=True))
        self.lost: Counter[str] = Counter()
        self.counts: Counter[tuple[str, bool]] = Counter()
        for result in results:
            self.lost.update(result.value["lost"])
        drawn = 0
        for document in self.documents():
            self.counts[document.role, document.held] += 1
            drawn += 1
        total = sum(result.value["drawn"] for result in results)
        self.lost["repeated"] = total - drawn - self.lost["in_both"]

    def documents(self) -> Iterator[Drawn]:
        """Every document of the sample; a bounded part of it is in memory at a time."""
        streams = [_rows(item, result) for item, result in self._parts]
        merged = heapq.merge(*streams, key=lambda row: row[:2])
        both = 0
        for _, copies in groupby(merged, key=lambda row: row[:2]):
            first, roles, number = None, set(), 0
            for _, _, document in copies:
                first = first or document
                roles.add(document.role)
                number += 1
            assert first is not None
            if len(roles) == 1:
                yield first
            else:
                both += number
        self.lost["in_both"] = both

    def texts(self, role: str, *, held: bool) -> Iterator[str]:
        """The texts of one role on one side of the split."""
        for document in self.documents():
            if (document.role, document.held) == (role, held):
                yield document.text

    def by_role(self) -> dict[str, int]:
        """Documents of each role, on both sides of the split."""
        counts: Counter[str] = Counter()
        for (role, _), number in self.counts.items():
            counts[role] += number
        return {role: counts[role] for role in (REFERENCE, CONTRAST)}

    def require(self, role: str, least: int, what: str, held: bool | None = None) -> None:
        """InputError unless `role` has so many documents, on one side of the split or on both."""
        sides = (True, False) if held is None else (held,)
        count = sum(self.counts[role, side] for side in sides)
        if count < least:
            raise InputError(
                f"{count:,} documents of '{role}' to {what}, {least:,} are the least",
                where="quality_models",
                hint="give more documents, or set `held_share` so that both sides have some",
            )


def _rows(item: RoleShard, result: ShardResult) -> Iterator[tuple[float, str, Drawn]]:
    import pyarrow.parquet as pq

    path = result.scratch_path(_TABLE)
    group = 0
    while True:  # Opened again for each row group: there may be more shards than open files.
        with open(path, "rb") as file:
            parquet = pq.ParquetFile(file)
            if group == parquet.num_row_groups:
                return
            table = parquet.read_row_group(group, use_threads=False)
        for row in table.to_pylist():
            yield row["order"], row["name"], Drawn(item.role, row["held"], row["text"])
        group += 1


def _digest(text: str) -> str:
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def _primary(language: str) -> str:
    """`en` of `en-GB` or `en_US`."""
    return language.replace("_", "-").split("-")[0].lower()
