"""The `duplicates` artifacts as numbers: classes of equal texts and pairs among documents."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from artifacts_schema.errors import CorruptArtifact, UsageError
from artifacts_schema.kinds import sidecar_folder
from stages.engine.tally import align_tables
from stages.filter.config import DuplicatesPolicy
from stages.filter.decide import (
    Copies,
    Links,
    decide_copies,
    decision_order,
    least_linked,
    least_linked_by_age,
)
from stages.filter.document_ids import DocumentIds
from stages.filter.duplicates import EarlierDocuments, encode_names, list_pairs, number_names
from stages.filter.sidecars import covering_input, input_label

if TYPE_CHECKING:
    from stages.engine import Input


@dataclass(frozen=True, eq=False)
class DuplicateClasses:
    """For each node the one that names its duplicate class; for such a one, other names of it.

    Earlier runs gave the other names to parts of the class, before a document linked them.
    """

    names: NDArray[np.int64]
    others: dict[int, list[int]]

    def nodes_with_others(self, start: int, stop: int) -> NDArray[np.int64]:
        """The nodes among `start : stop` whose class has other names."""
        return start + np.flatnonzero(np.isin(self.names[start:stop], list(self.others)))

    def other_names(self, nodes: NDArray[np.int64], ids: pa.StringArray) -> pa.ListArray:
        """The other names of each node's class, as doc_ids."""
        named = [self.others[name] for name in self.names[nodes].tolist()]
        offsets = np.cumsum([0, *(len(names) for names in named)])
        values = ids.take(pa.array([one for names in named for one in names], pa.int64()))
        return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), values)


@dataclass(frozen=True, eq=False)
class KnownCopies:
    """The links, the earlier documents, and for each node its doc_id and age.

    Ages are those of the ledgers that decided on them; documents to decide on now come last.
    """

    links: Links
    """Of documents that something links, and of those of earlier runs."""
    rows: NDArray[np.int64]
    """The first nodes, as rows of all documents to decide on, ascending."""
    ids: pa.StringArray
    age: NDArray[np.int64]
    earlier: EarlierDocuments
    verified: bool = True
    """Whether only verified pairs connect."""

    def decide(
        self,
        passes: NDArray[np.bool_],
        policy: DuplicatesPolicy,
        keys: Sequence[NDArray[np.float64]] = (),
    ) -> Copies:
        """Which of the linked documents are copies; `passes` and `keys` are of all documents.

        `keys` are those of each shard (see `priority_keys`), if the policy names criteria.
        """
        order = None
        if policy.priority:
            own, stop = [], 0
            for part in keys:
                start, stop = stop, stop + part.shape[1]
                low, high = np.searchsorted(self.rows, (start, stop))
                own.append(part[:, self.rows[low:high] - start])
            order = decision_order(own, len(policy.priority))
        return decide_copies(passes[self.rows], self.links, policy, order)

    def copies_among(
        self, copies: Copies, start: int, stop: int
    ) -> tuple[NDArray[np.int64], Copies]:
        """Of the documents `start : stop` the rows, from `start` on, of copies, and these."""
        low, high = np.searchsorted(self.rows, (start, stop))
        places = low + np.flatnonzero(copies.partner[low:high] >= 0)
        return self.rows[places] - start, copies.at(places)

    def classes(self) -> DuplicateClasses:
        """The duplicate class of each node.

        It is named by one of all that links connect it with: those of the least age, of them the
        least doc_id.
        """
        rank = self._rank()
        names = least_linked(self.links, rank, self.verified)
        if not self.earlier.folders:
            return DuplicateClasses(names, {})
        earlier_names = least_linked_by_age(self.links, rank, self.age, self.verified)
        others: dict[int, set[int]] = {}
        for node in np.flatnonzero(earlier_names != names).tolist():
            others.setdefault(int(names[node]), set()).add(int(earlier_names[node]))
        return DuplicateClasses(names, {name: sorted(nodes) for name, nodes in others.items()})

    def _rank(self) -> NDArray[np.int64]:
        """The place of each node in the order of who names a class."""
        links, nodes = self.links, len(self.ids)
        linked = links.classes != np.arange(nodes)
        linked[links.classes[linked]] = True
        linked[links.one] = linked[links.two] = True
        among = np.flatnonzero(linked)
        by_name = among[pc.sort_indices(self.ids.take(pa.array(among))).to_numpy()]
        by_age = by_name[np.argsort(self.age[by_name], kind="stable")]
        rank = np.empty(nodes, dtype=np.int64)
        rank[np.concatenate([by_age, np.flatnonzero(~linked)])] = np.arange(nodes)
        return rank


def read_copies(
    duplicates: Sequence[Input],
    ledgers: Sequence[Input],
    documents: Sequence[Input],
    ids: DocumentIds,
    policy: DuplicatesPolicy,
) -> KnownCopies:
    """What is known of copies among the documents of `ids`, those of `documents` in order.

    UsageError if pairs at the threshold were never written down or verified, or the policy does not
    go with a ledger; InputError if the duplicates do not describe each of `documents` once.
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
    if not duplicates:
        return no_copies()
    for input_ in duplicates:
        check_measure(input_, policy)
    return _read_links(duplicates, ledgers, documents, ids, policy)


def no_copies() -> KnownCopies:
    """Documents without known copies."""
    none = np.empty(0, dtype=np.int64)
    links = Links(none, none, none, none, np.empty(0, dtype=np.float32), none)
    return KnownCopies(links, none, pa.array([], pa.string()), none, EarlierDocuments())


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


def _read_links(
    duplicates: Sequence[Input],
    ledgers: Sequence[Input],
    documents: Sequence[Input],
    ids: DocumentIds,
    policy: DuplicatesPolicy,
) -> KnownCopies:
    own_rows = _own_rows(duplicates, documents, policy.measure)
    earlier = EarlierDocuments.read(duplicates, ledgers, documents)
    classes = [*own_rows.classes, *own_rows.partners] if earlier.folders else []
    pairs = earlier.connected(encode_names(classes)[0], ids)
    kept, names = earlier.members(encode_names([*classes, pairs["one"], pairs["two"]])[0], ids)

    named = [
        pa.chunked_array(parts, pa.string())
        for parts in (own_rows.classes, own_rows.texts, own_rows.partners)
    ]
    named += [pairs["one"], pairs["two"], kept["doc_id"], kept["exact_class"], kept["text_class"]]
    named += [names["doc_id"], names["exact_class"]]
    known = ids.rows_of(encode_names(named)[0])
    rows = np.unique(np.concatenate([own_rows.linked(), known[known >= 0]]))
    own = ids.at(rows)
    beyond, numbers = number_names(own, named)
    own_class, own_text, partner, one, two, kept_id, kept_class, kept_text, *rest = numbers
    name_id, name_class = rest
    every = pa.concat_arrays([own, beyond])

    node_classes, node_texts = np.arange(len(every)), np.arange(len(every))
    node_classes[np.searchsorted(rows, _concatenate(own_rows.class_rows))] = own_class
    node_texts[np.searchsorted(rows, _concatenate(own_rows.text_rows))] = own_text
    node_classes[kept_id], node_texts[kept_id] = kept_class, kept_text
    node_classes[name_id] = name_class
    links = Links(
        classes=node_classes,
        texts=node_texts,
        one=np.concatenate([one, np.searchsorted(rows, _concatenate(own_rows.owners))]),
        two=np.concatenate([two, partner]),
        similarity=np.concatenate([_measure_column(pairs, policy.measure), *own_rows.similarity]),
        kept_before=kept_id,
    )
    _check_verified(links, policy)
    # Documents without a row in any table are the oldest.
    age = np.zeros(len(every), dtype=np.int64)
    age[: len(own)] = len(ledgers)
    age[name_id], age[kept_id] = names["age"].to_numpy(), kept["age"].to_numpy()
    return KnownCopies(links, rows, every, age, earlier, policy.unverified == "refuse")


@dataclass(frozen=True, eq=False)
class _OwnRows:
    """Links of the documents' rows, by row group: only those to other documents."""

    class_rows: list[NDArray[np.int64]] = field(default_factory=list)
    classes: list[pa.Array] = field(default_factory=list)
    text_rows: list[NDArray[np.int64]] = field(default_factory=list)
    texts: list[pa.Array] = field(default_factory=list)
    owners: list[NDArray[np.int64]] = field(default_factory=list)
    partners: list[pa.Array] = field(default_factory=list)
    similarity: list[NDArray[np.float32]] = field(default_factory=list)

    def add(self, table: pa.Table, start: int, measure: str) -> None:
        """Rows of which the first is document `start`."""
        ids = table["doc_id"].combine_chunks()
        for column, rows, names in (
            ("exact_class", self.class_rows, self.classes),
            ("text_class", self.text_rows, self.texts),
        ):
            class_names = table[column].combine_chunks()
            others = np.flatnonzero(pc.not_equal(class_names, ids).to_numpy(zero_copy_only=False))
            rows.append(start + others)
            names.append(class_names.take(pa.array(others)))
        pairs = list_pairs(table)
        lengths = pc.list_value_length(table["partners"]).to_numpy()
        self.owners.append(start + np.repeat(np.arange(len(table)), lengths))
        self.partners.extend(pairs["two"].chunks)
        self.similarity.append(_measure_column(pairs, measure))

    def linked(self) -> NDArray[np.int64]:
        """The rows of all that have a link."""
        return _concatenate([*self.class_rows, *self.text_rows, *self.owners])


def _own_rows(duplicates: Sequence[Input], documents: Sequence[Input], measure: str) -> _OwnRows:
    """The rows about the documents, which must be those and in their order."""
    own_rows, stop = _OwnRows(), 0
    for input_ in documents:
        shards = input_.shards()
        if not shards:
            continue
        cover = covering_input(input_, duplicates, "duplicates")
        for shard in shards:
            begin = stop
            tables = cover.row_groups(f"{sidecar_folder(input_.digest)}/{shard.path}")
            for table, ids in align_tables(tables, shard.row_groups(["doc_id"])):
                start, stop = stop, stop + len(table)
                if not table["doc_id"].equals(ids["doc_id"]):
                    raise _other_rows_error(cover)
                own_rows.add(table, start, measure)
            if stop - begin != shard.rows:
                raise _other_rows_error(cover)
    return own_rows


def _other_rows_error(duplicates: Input) -> CorruptArtifact:
    return CorruptArtifact(
        f"rows of duplicates {input_label(duplicates)} are not those of the documents",
        where="filter",
    )


def _check_verified(links: Links, policy: DuplicatesPolicy) -> None:
    """UsageError if a pair that would decide was not verified, unless such are accepted."""
    unverified = int(np.isnan(links.similarity).sum())
    if policy.threshold is None or policy.unverified == "accept" or not unverified:
        return
    raise UsageError(
        f"{unverified:,} listed pairs were not verified, so nothing says how similar they are",
        where="filter",
        hint="set dedup.verify to true, or duplicates.unverified to accept",
    )


def _measure_column(pairs: pa.Table, measure: str) -> NDArray[np.float32]:
    return pairs[measure].to_numpy().astype(np.float32)


def _concatenate(parts: Sequence[NDArray[np.int64]]) -> NDArray[np.int64]:
    return np.concatenate([np.empty(0, dtype=np.int64), *parts])
