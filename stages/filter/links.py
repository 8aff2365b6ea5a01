"""What the `duplicates` artifacts say of the documents of a shard: links between two names.

A shard's task leaves three tables: the numbers of its documents' ids, the names that its links
refer to, both in the order of a number (`id_words`), and the links as pairs of places among the
names. Matching them with each other is `matching`'s.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from artifacts_schema.errors import CorruptArtifact, UsageError
from artifacts_schema.kinds import sidecar_folder
from stages.engine.inputs import Shard
from stages.engine.tally import align_tables
from stages.filter.config import DuplicatesPolicy
from stages.filter.document_ids import id_words
from stages.filter.duplicates import EarlierDocuments, encode_names, list_pairs
from stages.filter.ordered import write_ordered
from stages.filter.sidecars import AlignedShard, covering_input, input_label

if TYPE_CHECKING:
    from stages.engine import Input, ShardOutput


CLASS, TEXT, PAIR, EARLIER_PAIR, EARLIER_CLASS, EARLIER_TEXT, EARLIER_NAME = range(7)
"""Kinds of links: to what stands for a class of equal normalised, and of equal raw, texts, and
pairs of documents; then those of earlier runs: pairs, classes and texts of what they kept, and
other members of classes."""

NUMBERS, NAMES, LINKS = "numbers", "names", "links"
"""Scratch tables: `number`, `check`, `row`; `number`, `check`, `doc_id`; and `one`, `two` (places
among the names), `kind`, `similarity`."""


def add_duplicates(
    shards: Sequence[AlignedShard],
    duplicates: Sequence[Input],
    ledgers: Sequence[Input],
    documents: Sequence[Input],
    policy: DuplicatesPolicy,
) -> tuple[list[AlignedShard], EarlierDocuments]:
    """The shards of `documents` with what their documents are copies of; those of earlier runs.

    UsageError if pairs at the threshold were never written down, or the policy does not go with a
    ledger; InputError unless `duplicates` cover each of `documents` once.
    """
    if ledgers and policy.priority:
        raise UsageError(
            "duplicates.priority can not be kept to where an earlier run decided already: its "
            "documents come first, whatever the priority",
            where="filter",
            hint="leave priority out, or leave the ledger out and give all documents",
        )
    if ledgers and not duplicates:
        raise UsageError(
            "a ledger tells which documents were kept, but no duplicates tell what copies them",
            where="filter",
            hint="give the duplicates of these documents and those of the earlier run",
        )
    for input_ in duplicates:
        check_measure(input_, policy)
    covered = _cover(shards, duplicates) if duplicates else list(shards)
    return covered, EarlierDocuments.read(duplicates, ledgers, documents)


def check_measure(duplicates: Input, policy: DuplicatesPolicy) -> None:
    """UsageError if pairs at the threshold were never written down."""
    if policy.threshold is None:
        return
    parameters = duplicates.read_json("statistics.json")["parameters"]
    floor = parameters["floor"]
    if policy.threshold < floor:
        raise UsageError(
            f"duplicates.threshold {policy.threshold} lies below dedup's floor {floor}",
            where="filter",
            hint=f"set dedup.floor to {policy.threshold} or less",
        )
    if (
        policy.measure == "containment"
        and parameters.get("measure", "containment") != "containment"
    ):
        raise UsageError(
            f"duplicates.measure is containment, but {input_label(duplicates)} "
            "kept pairs from a floor "
            f"of {parameters['measure']} on, under which pairs of higher containment may lie",
            where="filter",
            hint="set dedup.measure to containment",
        )


def _cover(shards: Sequence[AlignedShard], duplicates: Sequence[Input]) -> list[AlignedShard]:
    covers: dict[int, Input] = {}
    aligned = []
    for shard in shards:
        documents = shard.documents
        if id(documents.input) not in covers:
            covers[id(documents.input)] = covering_input(documents.input, duplicates, "duplicates")
        cover = covers[id(documents.input)]
        path = f"{sidecar_folder(documents.input.digest)}/{documents.path}"
        aligned.append(replace(shard, duplicates=Shard(cover, path, documents.rows)))
    return aligned


def leave_links(item: AlignedShard, out: ShardOutput, measure: str) -> int:
    """Leave `NUMBERS`, `NAMES` and `LINKS` of a shard; returns how many names there are."""
    words, links, stop = [np.empty((0, 2), np.uint64)], _OwnLinks(), 0
    for ids, table in _aligned_groups(item):
        stop += len(ids)
        words.append(id_words(ids))
        if table is not None:
            links.add(ids, table, measure)
    if item.duplicates is not None and stop != item.documents.rows:
        raise _other_rows_error(item.duplicates.input)
    numbers = np.concatenate(words)
    order = np.argsort(numbers[:, 0], kind="stable")
    columns = {"number": numbers[order, 0], "check": numbers[order, 1], "row": order}
    with out.open_scratch(NUMBERS) as file:
        write_ordered(pa.table(columns), file)
    return links.leave(out)


def _aligned_groups(item: AlignedShard) -> Iterator[tuple[pa.StringArray, pa.Table | None]]:
    """The ids of a shard, and the duplicates table about them, a row group at a time."""
    groups = item.documents.row_groups(["doc_id"])
    if item.duplicates is None:
        for ids in groups:
            yield ids["doc_id"].combine_chunks(), None
        return
    for table, ids in align_tables(item.duplicates.row_groups(), groups):
        if not table["doc_id"].equals(ids["doc_id"]):
            raise _other_rows_error(item.duplicates.input)
        yield ids["doc_id"].combine_chunks(), table


def _other_rows_error(duplicates: Input) -> CorruptArtifact:
    return CorruptArtifact(
        f"rows of duplicates {input_label(duplicates)} are not those of the documents",
        where="filter",
    )


class _OwnLinks:
    """Links of a shard's rows to other documents, by kind in the order of the rows."""

    def __init__(self) -> None:
        self._one: dict[int, list[pa.Array]] = {kind: [] for kind in (CLASS, TEXT, PAIR)}
        self._two: dict[int, list[pa.Array]] = {kind: [] for kind in (CLASS, TEXT, PAIR)}
        self._similarity: list[NDArray[np.float32]] = [np.empty(0, np.float32)]

    def add(self, ids: pa.StringArray, table: pa.Table, measure: str) -> None:
        """Rows that follow those before."""
        for kind, column in ((CLASS, "exact_class"), (TEXT, "text_class")):
            names = table[column].combine_chunks()
            others = pc.indices_nonzero(pc.not_equal(names, ids))
            self._one[kind].append(ids.take(others))
            self._two[kind].append(names.take(others))
        pairs = list_pairs(table)
        self._one[PAIR] += pairs["one"].chunks
        self._two[PAIR] += pairs["two"].chunks
        self._similarity.append(measure_column(pairs, measure))

    def leave(self, out: ShardOutput) -> int:
        """Write the names and the links."""
        kinds = (CLASS, TEXT, PAIR)
        one, two = (
            [pa.chunked_array(side[kind], pa.string()) for kind in kinds]
            for side in (self._one, self._two)
        )
        similarity = np.concatenate(self._similarity)
        return leave_named_links(out, kinds, one, two, {PAIR: similarity})[0]


def sort_names(names: pa.StringArray) -> tuple[pa.Table, NDArray[np.int64]]:
    """`number`, `check` and `doc_id` of names in the order of their numbers, and their places."""
    words = id_words(names)
    order = np.argsort(words[:, 0], kind="stable")
    columns = {
        "number": words[order, 0],
        "check": words[order, 1],
        "doc_id": names.take(pa.array(order)),
    }
    return pa.table(columns), order


def leave_named_links(
    out: ShardOutput,
    kinds: Sequence[int],
    one: Sequence[pa.ChunkedArray],
    two: Sequence[pa.ChunkedArray],
    similarity: dict[int, NDArray[np.float32]],
) -> tuple[int, list[NDArray[np.int64]]]:
    """Leave `NAMES` and `LINKS` for links of several kinds, which have two names each.

    Returns the number of names, and for each kind the places of the first ones.
    """
    names, places = encode_names([*one, *two])
    ordered, order = sort_names(names)
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.arange(len(order))
    with out.open_scratch(NAMES) as file:
        write_ordered(ordered, file)
    places = [place[own] for own in places]
    ones, twos = places[: len(kinds)], places[len(kinds) :]
    none = np.empty(0, dtype=np.int64)
    measured = [
        similarity.get(kind, np.zeros(len(own), np.float32))
        for kind, own in zip(kinds, ones, strict=True)
    ]
    links = {
        "one": np.concatenate([none, *ones]),
        "two": np.concatenate([none, *twos]),
        "kind": np.repeat(np.array(kinds, np.int8), [len(own) for own in ones]),
        "similarity": np.concatenate(measured),
    }
    with out.open_scratch(LINKS) as file:
        write_ordered(pa.table(links), file)
    return len(names), ones


def measure_column(pairs: pa.Table, measure: str) -> NDArray[np.float32]:
    """The similarities of pairs; NaN where a pair was not verified."""
    return pairs[measure].to_numpy().astype(np.float32)
