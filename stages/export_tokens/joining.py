"""Documents that lie in several shards are joined, and all tokens of a source are read in order.

Documents that are whole in no shard are joined from their pieces in all shards. The scans sort
their entries by id, so a range of ids is one stretch of each. Ranges are joined one after the
other, so the memory does not grow with the corpus.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from artifacts_schema.errors import CorruptArtifact, InputError
from stages.engine import ShardOutput, ShardResult
from stages.export_tokens.shards import (
    ENTRY,
    LAST,
    LENGTH,
    PART,
    PIECE,
    WHOLE,
    Entries,
    Ints,
    Packed,
    Source,
    blocks,
    check_lengths,
    plain_bytes,
    sum_groups,
    to_pieces,
)

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
            totals = sum_groups(entries["length"], first)
            check_lengths(entries["id"][first], totals, f"source '{source.name}'")
            pieces_out.write(plain_bytes(to_pieces(entries, files)))
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


def drop_counts(packed: Packed, written: Sequence[ShardResult]) -> dict[str, Any]:
    """The arguments of `conserve`: documents that were packed, exported, and excluded by `pack`.

    CorruptArtifact if a source holds more documents than its shards.json says.
    """
    stated = exported = 0
    for source, result in zip(packed.sources, written, strict=True):
        count = result.value["documents"]
        if count > source.documents:
            raise CorruptArtifact(
                f"{count:,} documents of source '{source.name}' in the index tables, "
                f"{source.documents:,} in shards.json",
                hint="pack again",
            )
        stated, exported = stated + source.documents, exported + count
    return {
        "records_in": stated,
        "out": exported,
        "dropped": {"left out by pack": stated - exported},
    }


BLOCK_TOKENS = 1 << 21
BLOCK_ROWS = 1 << 19
OPEN_FILES = 64


def token_blocks(source: Source) -> Iterator[NDArray[Any]]:
    """The ids of all documents, at most about BLOCK_TOKENS at a time."""
    opened = _OpenFiles(source)
    for result in (*source.scans, source.join):
        assert result is not None
        for pieces in blocks(result.scratch_path("pieces"), PIECE, BLOCK_ROWS):
            ends = np.cumsum(pieces["length"], dtype=np.int64)
            edges = np.arange(BLOCK_TOKENS, ends[-1], BLOCK_TOKENS)
            for part in np.split(pieces, np.unique(np.searchsorted(ends, edges, side="right"))):
                if len(part):
                    yield np.concatenate([opened.ids(*piece) for piece in part.tolist()])


def document_lengths(source: Source) -> Iterator[NDArray[Any]]:
    """The tokens of each document, in the order of `token_blocks`; no block is empty."""
    for result in (*source.scans, source.join):
        assert result is not None
        yield from blocks(result.scratch_path("lengths"), LENGTH, BLOCK_ROWS)


class _OpenFiles:
    """The token files of a source, those used last kept open."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._maps: OrderedDict[int, NDArray[Any]] = OrderedDict()

    def ids(self, file: int, length: int, place: int) -> NDArray[Any]:
        """The ids of a piece."""
        if file not in self._maps:
            self._maps[file] = self._source.files[file].ids()
            if len(self._maps) > OPEN_FILES:
                self._maps.popitem(last=False)
        self._maps.move_to_end(file)
        return self._maps[file][place : place + length]
