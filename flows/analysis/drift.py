"""Whether the documents of a new snapshot are distributed as those of the earlier ones.

The distance of a signal is that of Kolmogorov and Smirnov: the largest difference between the
shares of documents at or below a value. Its interval comes from a bootstrap of web sites, since
pages of one site resemble each other: each site gets a weight from Poisson(1), and the recentred
differences of the weighted distributions give the width, whatever ties there are. All intervals of
a table hold together with 95 % confidence: the width of each is its own scale times one quantile of
the largest scaled deviation (single-step maxT; Westfall and Young 1993, ch. 2). So a signal whose
interval leaves out zero differs beyond chance, corrected for the number of signals.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from scipy.sparse import coo_array

from flows.analysis.corpus_database import CorpusDatabase
from flows.analysis.run_corpus import (
    DescribedDocuments,
    RunCorpus,
    described_documents,
    signal_fields,
)
from stages.engine.inputs import Input
from stages.engine.page import Artifact
from stages.engine.tally import hosts, numbers

SAMPLE = 10_000
"""Documents of each side, those with the least ids: an even choice, since ids are hashes."""
REPLICATES = 399
CONFIDENCE = 0.95
POINTS = 256
"""Most values at which two distributions are compared."""
LEAST_SITES = 20
"""With fewer sites on a side, documents are drawn instead."""
QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
LABELS = ("language", "script", "charset", "licence", "programming_language", "extractor")
SITE = "registered_domain"
LABEL_SHARE, LABELS_EACH = 0.01, 8
"""Values of a label that are compared: with at least this share of both sides, at most so many."""


@dataclass(frozen=True)
class Drift:
    """How far one signal moved: its distance, between 0 and 1, with its simultaneous interval."""

    name: str
    description: str
    is_label: bool
    """Whether it is the share of documents with a label, and no number."""
    distance: float
    low: float
    high: float
    earlier: tuple[float, ...]
    """Its `QUANTILES`; of a label its share alone."""
    new: tuple[float, ...]
    curves: tuple[tuple[float, ...], tuple[float, ...]]
    """Percentiles 0 to 100 of both sides, by which it is drawn; empty of a label."""

    @property
    def beyond_chance(self) -> bool:
        """Whether the interval leaves out zero."""
        return self.low > 0


@dataclass(frozen=True)
class DriftTable:
    """The drift of all signals, the largest distance first."""

    kept: tuple[Drift, ...]
    """Of documents that the corpus keeps."""
    read: tuple[Drift, ...]
    """Of all documents that were decided on."""
    documents: tuple[int, int]
    """Documents in the samples: of earlier snapshots, of the new ones."""
    kept_documents: tuple[int, int]
    sites: tuple[int, int]
    """Web sites in the samples; 0 where documents without a site were drawn one by one."""


def measure_drift(
    database: CorpusDatabase, corpora: Sequence[RunCorpus], new: Sequence[str]
) -> DriftTable | None:
    """Signals of the documents of `new` snapshots against earlier ones of the same sources.

    The views `before` and `after` of `database` say which documents there are; signals are those
    that the filters of `corpora` read, of the first corpus if several did. None if one side has no
    documents, or nothing was measured.
    """
    sample = _read_sample(database, corpora, new)
    if sample is None:
        return None
    table, described = sample
    is_new = table["is_new"].to_numpy(zero_copy_only=False)
    kept = table["kept"].to_numpy(zero_copy_only=False)
    values = _signal_values(table, described)
    sites, counts = _sites(table, is_new)

    def sizes(rows: NDArray[np.bool_]) -> tuple[int, int]:
        return int((rows & ~is_new).sum()), int((rows & is_new).sum())

    return DriftTable(
        compare_distributions(_take(values, kept), is_new[kept], sites[kept], described),
        compare_distributions(values, is_new, sites, described),
        sizes(np.ones(len(is_new), dtype=bool)),
        sizes(kept),
        counts,
    )


def compare_distributions(
    values: Mapping[str, NDArray[np.float64]],
    is_new: NDArray[np.bool_],
    sites: NDArray[np.int64],
    descriptions: Mapping[str, str] | None = None,
    *,
    seed: int = 0,
) -> tuple[Drift, ...]:
    """The drift of each signal ([documents], NaN where unknown), the largest distance first.

    `sites` numbers the unit that each document is drawn with. Signals that are constant, or unknown
    on one side, are left out.
    """
    units = int(sites.max(initial=-1)) + 1
    weights = np.random.default_rng(seed).poisson(1.0, (units, REPLICATES)).astype(np.float32)
    names, distances, deviations = [], [], []
    for name, column in values.items():
        known = ~np.isnan(column)
        if not (known & is_new).any() or not (known & ~is_new).any():
            continue
        if column[known].min() == column[known].max():
            continue
        distance, deviation = _distance(column[known], is_new[known], sites[known], weights)
        names.append(name)
        distances.append(distance)
        deviations.append(deviation)
    if not names:
        return ()
    deviation = np.stack(deviations)
    scale = np.sqrt(np.square(deviation).mean(axis=1))
    scale[scale == 0] = np.finfo(float).tiny
    widest = float(
        np.quantile((deviation / scale[:, None]).max(axis=0), CONFIDENCE, method="higher")
    )
    about = descriptions or {}
    rows = [
        _drift(name, about, values[name], is_new, distance, widest * float(width))
        for name, distance, width in zip(names, distances, scale, strict=True)
    ]
    return tuple(sorted(rows, key=lambda one: (-one.distance, one.name)))


def _distance(
    column: NDArray[np.float64],
    is_new: NDArray[np.bool_],
    sites: NDArray[np.int64],
    weights: NDArray[np.float32],
) -> tuple[float, NDArray[np.float64]]:
    """The distance, and [replicates] the largest deviation of the differences from the measured."""
    different = np.unique(column)
    if len(different) > POINTS:
        different = np.unique(np.quantile(column, np.linspace(0, 1, POINTS), method="higher"))
    place = np.searchsorted(different, column)
    observed, drawn = [], []
    for side in (~is_new, is_new):
        shape = (len(different), len(weights))
        ones = np.ones(int(side.sum()), dtype=np.float32)
        counts = coo_array((ones, (place[side], sites[side])), shape=shape).tocsr()
        observed.append(_shares(counts.sum(axis=1)[:, None])[:, 0])
        drawn.append(_shares(counts @ weights))
    difference = observed[1] - observed[0]
    deviation = np.abs(drawn[1] - drawn[0] - difference[:, None]).max(axis=0)
    return float(np.abs(difference).max()), deviation


def _shares(counts: NDArray[Any]) -> NDArray[np.float64]:
    """[points, replicates] shares at or below each point; a replicate without documents is 0."""
    sums = np.cumsum(counts, axis=0, dtype=np.float64)
    return sums / np.maximum(sums[-1], 1e-12)


def _drift(
    name: str,
    about: Mapping[str, str],
    column: NDArray[np.float64],
    is_new: NDArray[np.bool_],
    distance: float,
    width: float,
) -> Drift:
    sides = [column[side & ~np.isnan(column)] for side in (~is_new, is_new)]
    is_label = " = " in name
    if is_label:
        earlier, new = ((float(side.mean()),) for side in sides)
        curves: tuple[tuple[float, ...], tuple[float, ...]] = ((), ())
    else:
        earlier, new = (tuple(np.quantile(side, QUANTILES).tolist()) for side in sides)
        percentiles = np.linspace(0, 1, 101)
        first, second = (tuple(np.quantile(side, percentiles).tolist()) for side in sides)
        curves = (first, second)
    description = about.get(name.partition(" = ")[0], "")
    low, high = max(0.0, distance - width), min(1.0, distance + width)
    return Drift(name, description, is_label, distance, low, high, earlier, new, curves)


# The sample --------------------------------------------------------------------------------------


def _read_sample(
    database: CorpusDatabase, corpora: Sequence[RunCorpus], new: Sequence[str]
) -> tuple[pa.Table, dict[str, str]] | None:
    """Signals, address, side and verdict of the sampled documents, and what the signals are."""
    if not new:
        return None
    database.execute("CREATE TABLE sampled (doc_id VARCHAR, is_new BOOLEAN, kept BOOLEAN)")
    names = {"new": list(new), "most": SAMPLE}
    for side, is_new in (("before", "false"), ("after", "true")):
        database.execute(
            f"INSERT INTO sampled SELECT doc_id, {is_new}, reason = 'kept' FROM {side} "
            f"WHERE list_contains($new, snapshot) = {is_new} AND source IN (SELECT source "
            "FROM after WHERE list_contains($new, snapshot)) ORDER BY doc_id LIMIT $most",
            names,
        )
    tables: dict[str, pa.Table] = {}
    described: dict[str, str] = {}
    for corpus in corpora:
        for manifest in corpus.filters.values():
            for one in described_documents(Artifact(corpus.store, manifest)):
                if one.digest not in tables:
                    tables[one.digest] = _join_signals(database, one)
                    described |= _descriptions(one.signals)
    table = pa.concat_tables(tables.values(), promote_options="permissive").sort_by("doc_id")
    sides = set(table["is_new"].to_pylist())
    return (table, described) if len(sides) == 2 and described else None


def _descriptions(signals: Sequence[Input]) -> dict[str, str]:
    """What each signal is, as far as its stage says so."""
    described: dict[str, str] = {}
    for source in signals:
        details = source.read_json("signals.json")
        columns = details.get("columns", ()) if isinstance(details, dict) else ()
        known = {column["name"]: column.get("description", "") for column in columns}
        described |= {name: known.get(name, "") for name in signal_fields(source)}
    return described


def _join_signals(database: CorpusDatabase, described: DescribedDocuments) -> pa.Table:
    """The sampled documents of one input, with the signals that are compared, and their sites."""
    query, values, selected = "FROM sampled k", dict[str, Any](), ["k.doc_id", "k.is_new", "k.kept"]
    names: set[str] = set()
    for number, source in enumerate(described.signals):
        fields = signal_fields(source)
        if fields:
            query += f" JOIN read_parquet($s{number}) s{number} ON s{number}.doc_id = k.doc_id"
            values[f"s{number}"] = database.tables(source)
            own = [name for name, field in fields.items() if _is_used(field)]
            selected += [f's{number}."{name}"' for name in own]
            names |= {*own}
    paths = database.tables(described.documents) if described.documents is not None else []
    if paths and SITE not in names:
        query += " JOIN read_parquet($documents) d ON d.doc_id = k.doc_id"
        values["documents"] = paths
        selected.append("d.url")
    if not values:
        query += " WHERE false"
    return database.table(f"SELECT {', '.join(selected)} {query}", values)


def _is_used(field: pa.Field) -> bool:
    is_number = pa.types.is_integer(field.type) or pa.types.is_floating(field.type)
    return is_number or field.name in (*LABELS, SITE)


def _signal_values(table: pa.Table, described: Collection[str]) -> dict[str, NDArray[np.float64]]:
    """Numbers by signal, and 0 or 1 for each frequent value of a label."""
    values: dict[str, NDArray[np.float64]] = {}
    for name in table.column_names:
        if name not in described or name == SITE:
            continue
        if name not in LABELS:
            values[name] = numbers(table[name])
            continue
        labels = np.array(table[name].fill_null("(none)").to_pylist(), dtype=str)
        different, counts = np.unique(labels, return_counts=True)
        frequent = counts >= LABEL_SHARE * len(labels)
        order = np.lexsort((different, -counts))
        for label in [different[i] for i in order if frequent[i]][:LABELS_EACH]:
            values[f"{name} = {label}"] = (labels == label).astype(np.float64)
    return values


def _sites(table: pa.Table, is_new: NDArray[np.bool_]) -> tuple[NDArray[np.int64], tuple[int, int]]:
    """[documents] The number of each one's site, or a number of its own; sites on each side."""
    own = np.arange(len(table))
    if SITE in table.column_names:
        names = table[SITE]
    elif "url" in table.column_names:
        names = hosts(table["url"])
    else:
        return own, (0, 0)
    encoded = names.combine_chunks().dictionary_encode()
    codes = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
    first, second = (len(np.unique(codes[side & (codes >= 0)])) for side in (~is_new, is_new))
    if min(first, second) < LEAST_SITES:
        return own, (0, 0)
    codes[codes < 0] = len(encoded.dictionary) + np.flatnonzero(codes < 0)
    return np.unique(codes, return_inverse=True)[1], (first, second)


def _take(
    values: Mapping[str, NDArray[np.float64]], rows: NDArray[np.bool_]
) -> dict[str, NDArray[np.float64]]:
    return {name: column[rows] for name, column in values.items()}
