"""The `duplicates` artifact as numbers: exact classes and verified pairs among documents."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from artifacts_schema.errors import CorruptArtifact, InputError, UsageError
from artifacts_schema.identity import short
from artifacts_schema.kinds import beside
from stages.filter.decide import Links, components, least_members

if TYPE_CHECKING:
    from stages.engine import Input


@dataclass(frozen=True, eq=False)
class Known:
    """The links, and the doc_id of every node of them."""

    links: Links
    ids: pa.StringArray

    def classes(self) -> pa.StringArray:
        """For each node, the least doc_id among those that links connect it with."""
        component = components(self.links)
        linked = np.flatnonzero(np.bincount(component)[component] > 1)
        names = self.ids.take(pa.array(linked))
        rank = np.empty(len(linked), dtype=np.int64)
        rank[pc.sort_indices(names).to_numpy()] = np.arange(len(linked))
        least = np.arange(len(self.ids))
        _, dense = np.unique(component[linked], return_inverse=True)
        least[linked] = linked[least_members(dense, rank)]
        return self.ids.take(pa.array(least))


def known_links(
    duplicates: Input | None,
    documents: Sequence[Input],
    doc_ids: pa.StringArray,
    threshold: float | None,
) -> Known:
    """What is known of copies among `doc_ids`, those of `documents` in order.

    UsageError if pairs at `threshold` were never written down; InputError if the duplicates were
    not measured on one of `documents`.
    """
    if duplicates is None:
        return unlinked(doc_ids)
    check_floor(duplicates, threshold)
    return read_links(duplicates, documents, doc_ids)


def unlinked(doc_ids: pa.StringArray) -> Known:
    """Documents of which no copies are known."""
    none = np.empty(0, dtype=np.int64)
    own = np.arange(len(doc_ids))
    return Known(Links(own, none, none, np.empty(0, dtype=np.float32)), doc_ids)


def check_floor(duplicates: Input, threshold: float | None) -> None:
    """UsageError if pairs at `threshold` were never written down."""
    floor = duplicates.read_json("statistics.json")["parameters"]["floor"]
    if threshold is not None and threshold < floor:
        raise UsageError(
            f"duplicates.threshold {threshold} lies below dedup's floor {floor}",
            where="filter",
            hint=f"set dedup.floor to {threshold} or less",
        )


def read_links(duplicates: Input, documents: Sequence[Input], doc_ids: pa.StringArray) -> Known:
    """The links among `doc_ids`, those of `documents` in order, and through other documents.

    InputError if the duplicates were not measured on one of `documents`.
    """
    own = []
    for given in documents:
        paths = [f"{beside(given.digest)}/{shard.path}" for shard in given.shards()]
        if not all(duplicates.has(path) for path in paths):
            raise InputError(
                f"the duplicates do not cover documents {given.stage} {short(given.key)}",
                where="filter",
                hint="give dedup the same documents as filter",
            )
        own += paths
    others = [path for path in duplicates.paths("*/*.parquet") if path not in set(own)]
    tables = [duplicates.read_table(path) for path in [*own, *others]]
    table = pa.concat_tables(tables)
    ids = table["doc_id"].combine_chunks()
    if not ids.slice(0, len(doc_ids)).equals(doc_ids):
        raise CorruptArtifact(
            f"rows of duplicates {short(duplicates.key)} are not those of the documents",
            where="filter",
        )
    partners = table["partners"].combine_chunks()
    flat = partners.flatten()
    owners = np.repeat(np.arange(len(ids)), pc.list_value_length(partners).to_numpy())
    links = Links(
        classes=_nodes(table["exact_class"].combine_chunks(), ids),
        one=owners,
        two=_nodes(flat.field("doc_id"), ids),
        similarity=flat.field("similarity").to_numpy(),
    )
    return Known(links, ids)


def _nodes(names: pa.StringArray, ids: pa.StringArray) -> NDArray[np.int64]:
    """The place of each name among `ids`."""
    places = pc.index_in(names, value_set=ids)
    if places.null_count:
        raise CorruptArtifact("the duplicates name a document that has no row", where="filter")
    return places.to_numpy().astype(np.int64)
