"""What measured duplicates contribute to a report."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from stages.dedup.figures import (
    Clusters,
    between,
    read_duplicates,
    told_of,
)
from stages.engine.excerpts import Row, differences, excerpt, rows_of
from stages.engine.figures import (
    Axis,
    BarFigure,
    Bars,
    Cell,
    Column,
    CurveFigure,
    Figure,
    HistogramFigure,
    Mark,
    MatrixFigure,
    Pair,
    PairsFigure,
    Series,
    TableFigure,
    TextFigure,
    number,
)
from stages.engine.page import Artifact
from stages.engine.tally import LABEL, add_counts, at_hand, bars, ranked, sentences

PAIRS = 8
LARGEST = 10
GROUPS = 12
"""Rows of a matrix between sources, snapshots or domains."""

_COUNTS = {
    "documents": "documents compared",
    "documents_without_words": "… without words, compared exactly alone",
    "exact_classes": "texts that occur more than once",
    "exact_copies": "… their further copies",
    "documents_with_pairs": "documents with a near-duplicate",
    "candidate_pairs": "pairs proposed by MinHash",
    "verified_pairs": "… at least as similar as the floor",
    "capped_buckets": "buckets too large to compare all with all",
    "capped_documents": "documents with more partners than are listed",
}


def page(artifact: Artifact) -> list[Figure]:
    """What was compared, how alike the pairs are, clusters, where copies lie, and some pairs."""
    measured = artifact.output("duplicates").read_json("statistics.json")
    figures: list[Figure] = [_counts(measured), *_similarity(measured), _curve(measured)]
    floor = measured["parameters"]["floor"]
    clusters, pairs = read_duplicates(artifact.output("duplicates"), floor, PAIRS)
    if not len(clusters.ids):
        return [*figures, TextFigure("Clusters of copies", "None: no two documents are alike.")]
    told = told_of(artifact, clusters.ids)
    figures += [_sizes(clusters), _largest(artifact, clusters, told)]
    if told is None:
        text = "Not shown: the documents that were compared have been collected since."
        return [*figures, TextFigure("Sources, domains and texts of copies", text)]
    return [*figures, *_between(clusters, told), *_pairs(artifact, pairs)]


def _counts(measured: dict[str, Any]) -> TableFigure:
    rows = tuple((text, measured["counts"][name]) for name, text in _COUNTS.items())
    of = measured["parameters"]
    note = (
        f"Shingles of {of['ngram']} words; {of['bands']} bands of {of['rows']} hashes; pairs are "
        f"kept from a Jaccard similarity of {of['floor']:g} on."
    )
    return TableFigure(
        "Documents compared and copies found", (Column("what"), number("number")), rows, note
    )


def _similarity(measured: dict[str, Any]) -> list[Figure]:
    """Verified pairs in steps of 0.05, as the stage counted them."""
    pairs = {round(step["from"] * 20): step["pairs"] for step in measured["similarity"]}
    if not pairs:
        return []
    first = min(int(measured["parameters"]["floor"] * 20), *pairs)
    edges = tuple(place / 20 for place in range(first, 21))
    counts = tuple(pairs.get(place, 0) for place in range(first, 20))
    return [
        HistogramFigure(
            "Verified pairs by similarity",
            Axis("Jaccard similarity", format=".2f"),
            edges,
            (Bars("pairs", counts),),
            "pairs",
            "Exact copies are not among them: of equal texts the first alone is compared.",
        )
    ]


def _curve(measured: dict[str, Any]) -> CurveFigure:
    curve, floor = measured["curve"], measured["parameters"]["floor"]
    x = tuple(point["similarity"] for point in curve)
    y = tuple(point["probability"] for point in curve)
    return CurveFigure(
        "Chance that MinHash proposes a pair",
        Axis("Jaccard similarity", format=".2f"),
        Axis("probability", format=".3f"),
        (Series("probability", x, y),),
        (Mark(floor, "floor"),),
        "1 − (1 − s^rows)^bands: less similar pairs are found by chance or not at all.",
    )


def _sizes(clusters: Clusters) -> BarFigure:
    """Clusters by size in bins that double, apart by whether all their documents are equal."""
    bins = np.ceil(np.log2(clusters.sizes)).astype(np.int64)
    is_exact = clusters.classes == 1
    places = range(1, int(bins.max()) + 1)
    names = tuple(f"{2 ** (p - 1) + 1:,} to {2**p:,}" if p > 1 else "2" for p in places)
    counts = [np.bincount(bins[of], minlength=len(names) + 1)[1:] for of in (is_exact, ~is_exact)]
    return BarFigure(
        "Clusters of copies, by size",
        names,
        Axis("clusters", format=","),
        (
            Bars("exact copies alone", tuple(counts[0].tolist())),
            Bars("with near-duplicates", tuple(counts[1].tolist())),
        ),
        stacked=True,
        label="documents",
        note=f"{len(clusters.ids):,} documents stand in {len(bins):,} clusters: linked by equal "
        "text or by a pair above the floor, directly or through others.",
    )


def _largest(artifact: Artifact, clusters: Clusters, told: pa.Table | None) -> TableFigure:
    sizes, classes = clusters.sizes, clusters.classes
    largest = np.lexsort((np.arange(len(sizes)), -sizes))[:LARGEST]
    rows: list[tuple[Cell, ...]] = []
    first = [min(clusters.ids.filter(pa.array(clusters.cluster == c)).to_pylist()) for c in largest]
    named = rows_of(at_hand(artifact, "documents"), first, ["url", "title"])
    for place, cluster in enumerate(largest.tolist()):
        row = named.get(first[place], {})
        domains: dict[str, int] = {}
        if told is not None:
            own = told["domain"].filter(pa.array(clusters.cluster == cluster))
            add_counts(domains, own.drop_null())
        rows.append(
            (
                int(sizes[cluster]),
                int(classes[cluster]),
                len(domains) or None,
                ", ".join(name for name, _ in ranked(domains)[:3]) or None,
                (row.get("title") or "")[:LABEL],
                (row.get("url") or first[place])[: 2 * LABEL],
            )
        )
    rows.sort(key=lambda row: (-int(row[0] or 0), str(row[5])))
    columns = (
        number("documents"),
        number("different texts"),
        number("domains"),
        Column("most common domains"),
        Column("title of one"),
        Column("its address"),
    )
    return TableFigure("Largest clusters of copies", columns, tuple(rows))


def _between(clusters: Clusters, told: pa.Table) -> list[Figure]:
    """Between which sources and snapshots, and between which domains, copies lie."""
    where = pc.binary_join_element_wise(told["source"], told["snapshot"], ", ")
    by_domain: dict[str, int] = {}
    add_counts(by_domain, told["domain"].drop_null())
    return [
        *_matrix("Documents with a copy in another source or snapshot", clusters, where),
        *bars("Documents with a copy, by web domain", by_domain, label="domain", most=GROUPS),
        *_matrix("Documents with a copy on another domain", clusters, told["domain"]),
    ]


def _matrix(title: str, clusters: Clusters, labels: pa.ChunkedArray) -> list[Figure]:
    """Where the copies of each label's documents lie; none if each keeps to itself."""
    counts: dict[str, int] = {}
    add_counts(counts, labels.drop_null())
    shown = [name for name, _ in ranked(counts)[:GROUPS]]
    values = between(clusters, labels, shown)
    if not (values - np.diag(np.diag(values))).any():
        return []
    left = len(counts) - len(shown)
    told = "Documents of the row that have another one of the column in their cluster."
    rest = f"{left:,} labels with fewer copies are not shown." if left else ""
    cells = tuple(tuple(count or None for count in row) for row in values.tolist())
    return [MatrixFigure(title, tuple(shown), tuple(shown), cells, note=sentences(told, rest))]


def _pairs(artifact: Artifact, pairs: list[Row]) -> list[Figure]:
    ids = [pair[side] for pair in pairs for side in ("one", "two")]
    texts = rows_of(at_hand(artifact, "documents"), ids, ["text", "url", "source", "snapshot"])
    shown = tuple(
        _pair(pair, texts[pair["one"]], texts[pair["two"]])
        for pair in pairs
        if pair["one"] in texts and pair["two"] in texts
    )
    if not shown:
        return []
    note = (
        "Over the range of similarity, each around its first difference; what stands on one side "
        "alone is marked."
    )
    return [PairsFigure("Pairs of copies side by side", shown, note)]


def _pair(pair: Row, one: Row, two: Row) -> Pair:
    left, right = differences(one["text"], two["text"])
    similar = pair["similarity"]
    how = "equal once normalised" if similar is None else f"similarity {similar:.3f}"
    return Pair(
        f"{how}: {excerpt(one['url'] or pair['one'], LABEL)}",
        one["url"] or pair["one"],
        two["url"] or pair["two"],
        left,
        right,
        (
            ("characters left", len(one["text"])),
            ("characters right", len(two["text"])),
            ("from", f"{one['source']}, {one['snapshot']}"),
            ("to", f"{two['source']}, {two['snapshot']}"),
        ),
    )
