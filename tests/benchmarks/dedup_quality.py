"""What a deduplication found, held against the exact similarity of its documents."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from tests.benchmarks.exact_jaccard import (
    Near,
    ShingleSets,
    jaccard,
    near_pairs,
    texts,
    write_shingles,
)

THRESHOLD = 0.8
FLOOR = 0.5
SAMPLE = 8_000
ROUNDING = 1e-6
"""Similarities are stored in 32 bits; two are the same up to this."""

Numbers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Truth:
    """The 5-gram sets of all documents, and the pairs of a sample with any from `FLOOR` on."""

    sets: ShingleSets
    near: Near
    plain: NDArray[np.bool_]
    """[documents] Those that need no folding of letters to be found; see `plainly_written`."""


def truth_of(
    paths: Sequence[Path], plain: NDArray[np.bool_], folder: Path, sample: int = SAMPLE
) -> Truth:
    """Made once, then read from `folder`. Made from the same documents, it is the same."""
    kept = folder / f"near-{sample}.npz"
    if not (folder / "offsets.npy").exists():
        write_shingles(texts(paths), folder)
    sets = ShingleSets.read(folder)
    if not kept.exists():
        draw = np.random.default_rng(0)
        chosen = draw.choice(sets.documents, min(sample, sets.documents), replace=False)
        near = near_pairs(sets, np.sort(chosen), FLOOR)
        np.savez(kept, sample=near.sample, one=near.one, other=near.other, s=near.similarity)
    with np.load(kept) as found:
        near = Near(found["sample"], found["one"], found["other"], found["s"])
    return Truth(sets, near, plain)


@dataclass(frozen=True, eq=False)
class Found:
    """What a deduplication said; documents are numbered as they lie in the corpus."""

    cluster: Numbers
    """[documents] The same for all that are linked, directly or by others."""
    partner: Numbers
    """[documents] Of a removed one the kept one that it goes for; -1 where kept."""
    first: Numbers | None = None
    """[documents] The one that stands for all of the same normalised text; None: not told."""
    pairs: tuple[Numbers, Numbers] | None = None
    """Pairs at the threshold among those that stand for others; None: clusters alone are told."""
    similarity: NDArray[np.float64] | None = None
    """[pairs] As it was told; NaN where it was not computed."""

    def linked(self, one: Numbers, other: Numbers) -> NDArray[np.bool_]:
        """Whether pairs are linked directly; where only clusters are told, whether they share one.

        Documents of the same normalised text are linked, and linked alike.
        """
        if self.pairs is None or self.first is None:
            return self.cluster[one] == self.cluster[other]
        known = np.unique(self._code(*self.pairs))
        one, other = self.first[one], self.first[other]
        return (one == other) | np.isin(self._code(one, other), known)

    def _code(self, one: Numbers, other: Numbers) -> Numbers:
        return np.minimum(one, other) * len(self.cluster) + np.maximum(one, other)


def found_by_clusters(cluster: Sequence[int], removed: Sequence[bool]) -> Found:
    """A peer's clusters; a removed document goes for the kept one of its cluster."""
    clusters, gone = np.asarray(cluster, dtype=np.int64), np.asarray(removed, dtype=bool)
    kept_of = np.full(clusters.max() + 1, -1)
    kept_of[clusters[~gone]] = np.flatnonzero(~gone)
    return Found(clusters, np.where(gone, kept_of[clusters], -1))


INDEXED = np.dtype(
    [("right", "<i8"), ("left", "<i8"), ("band", "<i2"), ("jaccard", "<f4"), ("containment", "<f4")]
)
"""A pair as the index of a run holds it: documents by their place in the inputs."""


def found_by_tables(
    documents: Sequence[Path],
    duplicates: Sequence[Path],
    ledger: Sequence[Path],
    indexed: Sequence[Path] = (),
) -> Found:
    """Ingot's tables: pairs from the threshold on, or unverified ones, and the ledger's removals.

    Pairs are those of the index, or where it is not given those of the lists, which are capped. A
    row of `documents` tells the number of its document in the corpus by its metadata.
    """
    number, places = _numbers(documents)
    rows = _read(duplicates, ["doc_id", "exact_class", "partners"])
    own = _of(number, rows["doc_id"])
    first = np.arange(len(number))
    first[own] = _of(number, rows["exact_class"])
    if indexed:
        told = np.concatenate([np.fromfile(path, INDEXED) for path in indexed])
        one, other = places[told["right"]], places[told["left"]]
        similarity = told["jaccard"].astype(np.float64)
    else:
        partners = rows["partners"].flatten()
        one = np.repeat(own, rows["partners"].value_lengths().to_numpy())
        other = _of(number, partners.field("doc_id"))
        stored = partners.field("similarity").cast(pa.float64())
        similarity = stored.to_numpy(zero_copy_only=False)
    near = ~(similarity < THRESHOLD - ROUNDING)
    pairs = one[near], other[near]
    cluster = _components(np.append(pairs[0], np.arange(len(number))), np.append(pairs[1], first))
    decided = _read(ledger, ["doc_id", "verdict", "partner"])
    partner = np.full(len(number), -1)
    gone = np.flatnonzero(decided["verdict"].to_numpy(zero_copy_only=False) != "kept")
    named = decided["partner"].take(pa.array(gone))
    partner[_of(number, decided["doc_id"])[gone]] = _of(number, named)
    return Found(cluster, partner, first, pairs, similarity[near])


def _components(one: Numbers, other: Numbers) -> Numbers:
    """The component of each document; every document is in some pair."""
    documents = int(one.max()) + 1
    linked = coo_array((np.ones(len(one), np.int8), (one, other)), shape=(documents, documents))
    return connected_components(linked, directed=False)[1].astype(np.int64)


def _numbers(documents: Sequence[Path]) -> tuple[Mapping[str, int], Numbers]:
    """The number in the corpus of each id, and of each place in the tables."""
    rows = _read(documents, ["doc_id", "metadata"])
    places = np.array([int(json.loads(told)["id"]) for told in rows["metadata"].to_pylist()])
    assert (np.sort(places) == np.arange(len(places))).all(), "not the planted documents"
    return dict(zip(rows["doc_id"].to_pylist(), places.tolist(), strict=True)), places


def _of(number: Mapping[str, int], ids: pa.Array) -> Numbers:
    return np.array([number[one] for one in ids.to_pylist()], dtype=np.int64)


def _read(paths: Sequence[Path], columns: list[str]) -> dict[str, pa.Array]:
    table = pa.concat_tables([pq.read_table(path, columns=columns) for path in sorted(paths)])
    return {name: table[name].combine_chunks() for name in columns}


@dataclass(frozen=True)
class Scores:
    """How good it is; shares from 0 to 1, NaN where a question does not arise."""

    documents: float
    """Sampled documents with a partner at the threshold that are linked to such a one."""
    plain: float
    """The same of those whose group has no full-width letters or accents put in."""
    pairs: float
    """Sampled pairs at the threshold that are linked."""
    closest: float
    """The same from .9 on."""
    clustered: float
    """Sampled pairs from .9 on that are in one cluster."""
    precision: float
    """Linked pairs, and documents with those that stand for them, that reach the threshold."""
    error: float
    """Greatest difference of a told similarity from the exact one."""
    loose: float
    """Sampled documents in clusters without any partner from .7 on."""
    removed: int
    unfounded: int
    """Removed documents whose named partner was not kept or is not similar at the threshold."""
    lost: float
    """Sampled removed documents that no kept document at all resembles at the threshold."""


def scores(found: Found, truth: Truth) -> Scores:
    """Hold what was found against the truth."""
    near = truth.near
    at = near.similarity >= THRESHOLD
    linked = found.linked(near.one, near.other)
    same = found.cluster[near.one] == found.cluster[near.other]
    closest = near.similarity >= 0.9
    with_partner = np.unique(near.one[at])
    recalled = np.unique(near.one[at & linked])
    sizes = np.bincount(found.cluster)
    clustered = near.sample[sizes[found.cluster[near.sample]] > 1]
    resembling = np.unique(near.one[near.similarity >= 0.7])
    removed = np.flatnonzero(found.partner >= 0)
    precision, error = _precision(found, truth)
    partner = found.partner[removed]
    founded = (found.partner[partner] < 0) & _reaches(truth, removed, partner)
    gone = near.sample[found.partner[near.sample] >= 0]
    still = np.unique(near.one[at & (found.partner[near.other] < 0)])
    return Scores(
        documents=_share(np.isin(with_partner, recalled)),
        plain=_share(np.isin(with_partner, recalled)[truth.plain[with_partner]]),
        pairs=_share(linked[at]),
        closest=_share(linked[closest]),
        clustered=_share(same[closest]),
        precision=precision,
        error=error,
        loose=_share(~np.isin(clustered, resembling)),
        removed=len(removed),
        unfounded=int((~founded).sum()),
        lost=_share(~np.isin(gone, still)),
    )


def _share(true: NDArray[np.bool_]) -> float:
    return float(true.mean()) if len(true) else float("nan")


def _reaches(truth: Truth, one: Numbers, other: Numbers) -> NDArray[np.bool_]:
    return jaccard(truth.sets, one, other) >= THRESHOLD - ROUNDING


def _precision(found: Found, truth: Truth) -> tuple[float, float]:
    if found.pairs is None or found.first is None or found.similarity is None:
        return float("nan"), float("nan")
    copies = np.flatnonzero(found.first != np.arange(len(found.first)))
    right = jaccard(truth.sets, *found.pairs)
    reached = right >= THRESHOLD - ROUNDING
    equal = _reaches(truth, copies, found.first[copies])
    precision = _share(np.append(reached, equal))
    told = ~np.isnan(found.similarity)
    differences = np.abs(found.similarity - right)[told]
    return precision, float(differences.max()) if len(differences) else float("nan")
