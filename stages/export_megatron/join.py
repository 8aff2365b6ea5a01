"""The documents of a source that lie whole in no shard: their pieces put together over all shards.

What the scans left is sorted by id, so a range of ids is one stretch of each: ranges are joined one
after the other, and what is in memory at once does not grow with the corpus.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from artifacts_schema.errors import InputError
from stages.export_megatron.scan import (
    ENTRY,
    LAST,
    PART,
    WHOLE,
    Entries,
    Ints,
    as_pieces,
    check_lengths,
    summed,
)
from stages.export_megatron.token_files import LENGTH, Source, plain_bytes

if TYPE_CHECKING:
    from stages.engine import ShardOutput

AT_ONCE = 1 << 20
"""Entries of a range of ids, about: some 200 MB of memory."""
_SIZE = ENTRY.itemsize
SAMPLED = 4096
"""Ids of each range that are looked at to cut ranges, about."""


def join_source(source: Source, out: ShardOutput) -> dict[str, Any]:
    """Join what no scan found whole; InputError for a document that comes twice.

    Leaves `pieces` (PIECE) and `lengths` (LENGTH), documents by id, their pieces by start. Returns
    {"documents", "tokens": of these, "incomplete": those of which tokens are missing}.
    """
    documents = tokens = incomplete = 0
    with out.open_scratch("pieces") as pieces_out, out.open_scratch("lengths") as lengths_out:
        for entries, files in id_ranges(source, AT_ONCE):
            check_once(source, entries, files)
            loose = entries["state"] != WHOLE
            entries, files = entries[loose], files[loose]
            if not len(entries):
                continue
            opens = np.append(True, entries["id"][1:] != entries["id"][:-1])
            first = np.flatnonzero(opens)
            totals = summed(entries["length"], first)
            check_lengths(entries["id"][first], totals, f"source '{source.name}'")
            pieces_out.write(plain_bytes(as_pieces(entries, files)))
            lengths_out.write(plain_bytes(totals.astype(LENGTH)))
            documents += len(first)
            tokens += int(totals.sum())
            incomplete += _incomplete(entries, opens, first)
    return {"documents": documents, "tokens": tokens, "incomplete": incomplete}


def id_ranges(source: Source, most: int) -> Iterator[tuple[Entries, Ints]]:
    """All entries of a source in ranges of ids: (entries by id and start, their files)."""
    paths = [scan.scratch_path("entries") for scan in source.scans]
    edges = cut_points(paths, most)
    cuts = [_cuts(path, edges) for path in paths]
    for number in range(len(edges) + 1):
        stretches = [
            np.fromfile(path, ENTRY, cut[number + 1] - cut[number], offset=cut[number] * _SIZE)
            for path, cut in zip(paths, cuts, strict=True)
        ]
        entries = np.concatenate(stretches)
        files = np.repeat(np.arange(len(paths)), [len(stretch) for stretch in stretches])
        order = np.lexsort((files, entries["start"], entries["id"]))
        yield entries[order], files[order]


def cut_points(paths: Sequence[Path], most: int) -> list[bytes]:
    """Ids that part the entries into ranges of about `most`; none where all fit into one.

    Found from a sample that is spread over the scans: each begins it at another of its first ids.
    """
    total = sum(path.stat().st_size for path in paths) // _SIZE
    if total <= most:
        return []
    every = max(1, most // SAMPLED)
    sample = np.concatenate(
        [_mapped(path)["id"][number * 101 % every :: every] for number, path in enumerate(paths)]
    )
    sample.sort()
    count = -(-total // most)
    return np.unique(sample[np.arange(1, count) * len(sample) // count]).tolist()


def _cuts(path: Path, edges: Sequence[bytes]) -> list[int]:
    """The first entry of each range in the entries of a scan, and their number."""
    ids = _mapped(path)["id"]
    return [0, *(bisect_left(ids, edge) for edge in edges), len(ids)]


def check_once(source: Source, entries: Entries, files: Ints) -> None:
    """InputError where two entries of a document hold the same tokens, or one follows its end."""
    same = entries["id"][1:] == entries["id"][:-1]
    before = entries["start"][:-1] + entries["length"][:-1]
    twice = same & ((entries["start"][1:] < before) | (entries["state"][:-1] != PART))
    if twice.any():
        row = int(np.argmax(twice))
        first, second = (source.files[int(files[n])].where for n in (row, row + 1))
        raise InputError(
            f"document {entries['id'][row].decode()} comes twice: in {first}, and in {second}",
            where=f"source '{source.name}'",
            hint="give each packing of the same documents to an export of its own",
        )


def _incomplete(entries: Entries, opens: NDArray[np.bool_], first: Ints) -> int:
    """Documents that do not begin at their first token, have a gap, or lack their end."""
    expected = np.append(0, entries["start"][:-1] + entries["length"][:-1])
    expected[opens] = 0
    sound = np.logical_and.reduceat(entries["start"] == expected, first)
    last = np.append(first[1:], len(entries)) - 1
    return int((~(sound & (entries["state"][last] == LAST))).sum())


def _mapped(path: Path) -> Entries:
    return np.memmap(path, ENTRY, mode="r") if path.stat().st_size else np.empty(0, ENTRY)
