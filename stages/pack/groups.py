"""Which documents are packed together: of one source and split, over shards in order.

Best fit leaves room in the last sequences alone, so the more tokens it has to choose from, the
fuller the sequences; a shard at a time left 7 % of them empty where shards are small. What is held
of a group is a few numbers and the ids of each document, not its tokens. The cut follows from
counts, so it is the same for any number of workers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import quote

from stages.pack.documents import DOCUMENTS, IDS, SPLITS

if TYPE_CHECKING:
    from stages.engine import ShardResult
    from stages.engine.outputs import LeftFile

TOKENS = 1 << 26
"""A group has so many at least, where its source has: a file of 128 MiB with ids of two bytes."""
SEQUENCES = 1024
"""And so many sequences, so that the last one's padding is less than a thousandth."""
DOCUMENTS_AT_ONCE = 1 << 20
PARTS = 512
"""A group with so many documents, or of so many shards, is large enough, whatever else it has."""


@dataclass(frozen=True)
class Part:
    """Documents of a group that one shard holds: rows of its table, from `first` on."""

    ids: LeftFile
    documents: LeftFile
    first: int
    rows: int
    tokens: int


@dataclass(frozen=True)
class Group:
    """Documents that are packed together into one token shard."""

    id: str
    source: str
    split: str
    number: int
    parts: tuple[Part, ...]

    @property
    def path(self) -> str:
        """Of its files, without their endings: a folder for each source, whatever its name."""
        return f"{folder_of(self.source)}/{self.number:05d}"


def folder_of(source: str) -> str:
    """The name of a source as that of a folder; different ones stay different."""
    name = quote(source, safe="")
    return name if name.strip(".") else f"%{name.replace('.', '%2E')}"


def groups_of(results: Sequence[ShardResult], sequence_length: int) -> list[Group]:
    """The groups of all shards encoded (`documents.encode_shard`), by source and split."""
    parts: dict[tuple[str, str], list[Part]] = {}
    for result in results:
        for found in result.value["groups"]:
            part = Part(
                result.left(None, IDS),
                result.left(None, DOCUMENTS),
                found["first"],
                found["documents"],
                found["tokens"],
            )
            parts.setdefault((found["source"], found["split"]), []).append(part)
    sources = sorted({source for source, _ in parts})
    return [
        Group(f"{split}-{place:05d}-{number:05d}", source, split, number, cut)
        for place, source in enumerate(sources)
        for split in SPLITS
        for number, cut in enumerate(_cut(parts.get((source, split), []), sequence_length))
    ]


def _cut(parts: Sequence[Part], sequence_length: int) -> list[tuple[Part, ...]]:
    """Consecutive parts, each time until they are enough; what is left over goes with the last."""
    enough = max(TOKENS, SEQUENCES * sequence_length)
    cuts: list[tuple[Part, ...]] = []
    held: list[Part] = []
    tokens = rows = 0
    for part in parts:
        held.append(part)
        tokens, rows = tokens + part.tokens, rows + part.rows
        if tokens >= enough or rows >= DOCUMENTS_AT_ONCE or len(held) >= PARTS:
            cuts.append(tuple(held))
            held, tokens, rows = [], 0, 0
    if held:
        cuts[-1:] = [(*(cuts[-1] if cuts else ()), *held)]
    return cuts
