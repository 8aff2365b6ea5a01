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
from artifacts_schema.kinds import beside
from stages.filter.coverage import covering, name_of
from stages.filter.decide import Links, least_linked, named_when_given
from stages.filter.duplicate_tables import pairs_of
from stages.filter.earlier import Earlier
from stages.filter.names import coded, numbered
from stages.filter.policies import DuplicatesPolicy

if TYPE_CHECKING:
    from stages.engine import Input


@dataclass(frozen=True, eq=False)
class Classes:
    """For each node the one that names its duplicate class; for such a one, other names of it.

    Those are what earlier runs named parts of the class by, before a document linked them.
    """

    names: NDArray[np.int64]
    others: dict[int, list[int]]

    def rows_with_others(self, start: int, stop: int) -> NDArray[np.int64]:
        """The nodes `start : stop` whose class has other names, counted from `start`."""
        return np.flatnonzero(np.isin(self.names[start:stop], list(self.others)))

    def others_of(self, nodes: NDArray[np.int64], ids: pa.StringArray) -> pa.ListArray:
        """The other names of each node's class, as doc_ids."""
        named = [self.others[name] for name in self.names[nodes].tolist()]
        offsets = np.cumsum([0, *(len(found) for found in named)])
        values = ids.take(pa.array([one for found in named for one in found], pa.int64()))
        return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), values)


@dataclass(frozen=True, eq=False)
class Known:
    """The links, what tells of earlier documents, and for each node its doc_id and age.

    Ages are those of the ledgers that decided on them; documents to decide on now come last.
    """

    links: Links
    ids: pa.StringArray
    age: NDArray[np.int64]
    earlier: Earlier
    verified: bool = True
    """Whether only verified pairs connect."""

    def classes(self) -> Classes:
        """The duplicate class of each node.

        It is named by one of all that links connect it with: those of the least age, of them the
        least doc_id.
        """
        rank = self._rank()
        names = least_linked(self.links, rank, self.verified)
        if not self.earlier.folders:
            return Classes(names, {})
        given = named_when_given(self.links, rank, self.age, self.verified)
        others: dict[int, set[int]] = {}
        for node in np.flatnonzero(given != names).tolist():
            others.setdefault(int(names[node]), set()).add(int(given[node]))
        return Classes(names, {name: sorted(found) for name, found in others.items()})

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


def known_copies(
    duplicates: Sequence[Input],
    ledgers: Sequence[Input],
    documents: Sequence[Input],
    doc_ids: pa.StringArray,
    policy: DuplicatesPolicy,
) -> Known:
    """What is known of copies among `doc_ids`, those of `documents` in order.

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
        return unlinked(doc_ids)
    for given in duplicates:
        check_measure(given, policy)
    return _linked(duplicates, ledgers, documents, doc_ids, policy)


def unlinked(doc_ids: pa.StringArray) -> Known:
    """Documents of which no copies are known."""
    none, own = np.empty(0, dtype=np.int64), np.arange(len(doc_ids))
    links = Links(own, own, none, none, np.empty(0, dtype=np.float32), none)
    return Known(links, doc_ids, np.zeros_like(own), Earlier())


def check_measure(duplicates: Input, policy: DuplicatesPolicy) -> None:
    """UsageError if pairs at the threshold were never written down."""
    if policy.threshold is None:
        return
    told = duplicates.read_json("statistics.json")["parameters"]
    floor = told["floor"]
    if policy.threshold < floor:
        raise UsageError(
            f"duplicates.threshold {policy.threshold} lies below dedup's floor {floor}",
            where="filter",
            hint=f"set dedup.floor to {policy.threshold} or less",
        )
    if policy.measure == "containment" and told.get("measure", "containment") != "containment":
        raise UsageError(
            f"duplicates.measure is containment, but {name_of(duplicates)} kept pairs from a floor "
            f"of {told['measure']} on, under which pairs of higher containment may lie",
            where="filter",
            hint="set dedup.measure to containment",
        )


def _linked(
    duplicates: Sequence[Input],
    ledgers: Sequence[Input],
    documents: Sequence[Input],
    doc_ids: pa.StringArray,
    policy: DuplicatesPolicy,
) -> Known:
    rows = _own_rows(duplicates, documents, doc_ids, policy.measure)
    earlier = Earlier.of(duplicates, ledgers, documents)
    classes = [*rows.classes, *rows.partners, doc_ids] if earlier.folders else []
    pairs = earlier.connected(coded(classes)[0])
    kept, names = earlier.members(coded([*classes, pairs["one"], pairs["two"]])[0])

    named = [
        pa.chunked_array(names, pa.string()) for names in (rows.classes, rows.texts, rows.partners)
    ]
    named += [pairs["one"], pairs["two"], kept["doc_id"], kept["exact_class"], kept["text_class"]]
    named += [names["doc_id"], names["exact_class"]]
    beyond, numbers = numbered(doc_ids, named)
    own_class, own_text, partner, one, two, kept_id, kept_class, kept_text, *rest = numbers
    name_id, name_class = rest
    ids = pa.concat_arrays([doc_ids, beyond])

    classes_of, texts_of = np.arange(len(ids)), np.arange(len(ids))
    classes_of[_joined(rows.class_rows)] = own_class
    texts_of[_joined(rows.text_rows)] = own_text
    classes_of[kept_id], texts_of[kept_id] = kept_class, kept_text
    classes_of[name_id] = name_class
    links = Links(
        classes=classes_of,
        texts=texts_of,
        one=np.concatenate([one, _joined(rows.owners)]),
        two=np.concatenate([two, partner]),
        similarity=np.concatenate([_measured(pairs, policy.measure), *rows.similarity]),
        kept_before=kept_id,
    )
    _check_verified(links, policy)
    # What no table tells of was there before all others.
    age = np.zeros(len(ids), dtype=np.int64)
    age[: len(doc_ids)] = len(ledgers)
    age[name_id], age[kept_id] = names["age"].to_numpy(), kept["age"].to_numpy()
    return Known(links, ids, age, earlier, policy.unverified == "refuse")


@dataclass(frozen=True, eq=False)
class _Rows:
    """What the rows of the documents say, by row group: only what is not the document itself."""

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
            told = table[column].combine_chunks()
            others = np.flatnonzero(pc.not_equal(told, ids).to_numpy(zero_copy_only=False))
            rows.append(start + others)
            names.append(told.take(pa.array(others)))
        pairs = pairs_of(table)
        lengths = pc.list_value_length(table["partners"]).to_numpy()
        self.owners.append(start + np.repeat(np.arange(len(table)), lengths))
        self.partners.extend(pairs["two"].chunks)
        self.similarity.append(_measured(pairs, measure))


def _own_rows(
    duplicates: Sequence[Input],
    documents: Sequence[Input],
    doc_ids: pa.StringArray,
    measure: str,
) -> _Rows:
    """The rows about the documents, which must be those and in their order."""
    found, stop = _Rows(), 0
    for given in documents:
        shards = given.shards()
        if not shards:
            continue
        cover = covering(given, duplicates, "duplicates")
        for shard in shards:
            begin = stop
            for table in cover.row_groups(f"{beside(given.digest)}/{shard.path}"):
                start, stop = stop, stop + len(table)
                if not table["doc_id"].combine_chunks().equals(doc_ids.slice(start, len(table))):
                    raise _other_rows(cover)
                found.add(table, start, measure)
            if stop - begin != shard.rows:
                raise _other_rows(cover)
    return found


def _other_rows(duplicates: Input) -> CorruptArtifact:
    return CorruptArtifact(
        f"rows of duplicates {name_of(duplicates)} are not those of the documents", where="filter"
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


def _measured(pairs: pa.Table, measure: str) -> NDArray[np.float32]:
    return pairs[measure].to_numpy().astype(np.float32)


def _joined(parts: Sequence[NDArray[np.int64]]) -> NDArray[np.int64]:
    return np.concatenate([np.empty(0, dtype=np.int64), *parts])
