"""What measured duplicates contribute to a report."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from stages.dedup.figures import Clusters, count_between, read_duplicates, read_origins
from stages.dedup.presets import candidate_probability
from stages.engine.inputs import Input
from stages.engine.page import (
    Artifact,
    Axis,
    BarFigure,
    Cell,
    CurveFigure,
    Figure,
    Mark,
    MatrixFigure,
    Pair,
    PairsFigure,
    Series,
    TableFigure,
    TextFigure,
    make_bars,
    make_histogram,
    make_table,
)
from stages.engine.sampling import named_alike, sample_note, sampled
from stages.engine.tally import (
    LABEL,
    Row,
    add_counts,
    available_inputs,
    bars,
    diff_texts,
    excerpt,
    ranked,
    rows_by_id,
    sentences,
)

PAIRS = 8
LARGEST = 10
GROUPS = 12
"""Rows of a matrix between sources, snapshots or domains."""

FINE = 40
"""Points of the theoretical curve; those in the middle of measured steps are among them."""

_COUNTS = {
    "documents": "documents",
    "earlier_documents": "earlier documents they are compared with",
    "documents_without_words": "… without words, compared exactly alone",
    "text_classes": "texts that occur more than once, to the byte",
    "text_copies": "… their further copies",
    "exact_classes": "texts that occur more than once, once normalised",
    "exact_copies": "… their further copies, once normalised",
    "candidate_pairs": "pairs proposed by MinHash",
    "verified_pairs": "… at the floor or above",
    "closed_candidates": "pairs proposed by a common partner",
    "closed_pairs": "… at the floor or above, of these",
    "unequal_candidates": "proposed pairs refused for their lengths alone",
    "estimated_pairs": "pairs of estimated similarity: a document has more shingles than are kept",
    "documents_with_pairs": "documents with a near-duplicate",
    "capped_documents": "… with more partners than are listed",
    "capped_buckets": "buckets too large to compare all with all",
}
_ALWAYS = {"documents", "text_copies", "exact_copies", "candidate_pairs", "verified_pairs"}


def page(artifact: Artifact) -> list[Figure]:
    """What was compared, how alike the pairs are, what was missed, where copies lie, and some."""
    if artifact.manifest.stage == "merge_indexes":
        return [_merged(artifact)]
    whole = artifact.output("duplicates")
    duplicates = sampled(whole)
    measured = duplicates.read_json("statistics.json")
    figures: list[Figure] = [
        _counts(measured),
        *_similarity(measured),
        _recall(measured),
        *_passages(measured["passages"]),
    ]
    parameters = measured["parameters"]
    measure = "similarity" if parameters["measure"] == "jaccard" else parameters["measure"]
    sample = sample_note(duplicates.rows, whole.rows)
    clusters, pairs = read_duplicates(duplicates, parameters["floor"], PAIRS, measure, sample)
    if not len(clusters.ids):
        return [*figures, TextFigure("Clusters of copies", "None: no two documents are alike.")]
    tables = duplicates.paths("*/*.parquet")
    documents = [named_alike(one, tables) for one in available_inputs(artifact, "documents")]
    origins = read_origins(documents, clusters.ids)
    figures += [
        _sizes(clusters, parameters["verify"]),
        _largest(documents, clusters, origins),
    ]
    if origins is None:
        text = "Not shown: the documents that were compared have been collected since."
        return [*figures, TextFigure("Sources, domains and texts of copies", text)]
    return [*figures, *_between(clusters, origins), *_pairs(documents, pairs)]


def _merged(artifact: Artifact) -> TableFigure:
    """The outputs whose indexes were merged, oldest first."""
    record = artifact.output("dedup_index").read_json("index.json")
    rows = [
        (
            ", ".join(one["snapshots"]) or "none",
            sum(shard["documents"] for shard in one["shards"]),
            len(one["shards"]),
        )
        for one in record["generations"]
    ]
    counts, size = artifact.manifest.counts, sum(record["bytes"].values())
    note = (
        f"Of {counts['indexes']:,} indexes; {counts['shards_in']:,} shards became "
        f"{counts['shards']:,}, with {counts['pairs']:,} pairs. {size / 1e6:,.1f} MB without pairs."
    )
    return make_table("Merged indexes", "snapshot | documents:, | shards:,", rows, note)


def _counts(measured: dict[str, Any]) -> TableFigure:
    counts, parameters = measured["counts"], measured["parameters"]
    rows = tuple((t, counts[n]) for n, t in _COUNTS.items() if counts[n] or n in _ALWAYS)
    used, preset = parameters["settings"], parameters["preset"]
    measure = "a Jaccard similarity" if parameters["measure"] == "jaccard" else "a containment"
    kept = f"pairs are kept from {measure} of {parameters['floor']:g} on."
    note = (
        f"Preset {preset}: shingles of {used['ngram']} {used['unit']}s, normalised by "
        f"{used['normalise']!r}; {used['bands']} bands of {used['rows']} hashes; "
        + (kept if parameters["verify"] else "all proposed pairs are kept, not verified.")
    )
    return make_table("Documents compared and copies found", "what | number:,", rows, note)


def _similarity(measured: dict[str, Any]) -> list[Figure]:
    """Verified pairs in steps of 0.05, as the stage counted them."""
    pairs = {round(step["from"] * 20): step["pairs"] for step in measured["similarity"]}
    if not pairs:
        return []
    first = min(int(measured["parameters"]["floor"] * 20 + 1e-9), *pairs)
    return [
        make_histogram(
            "Verified pairs by similarity",
            "Jaccard similarity:.2f",
            (place / 20 for place in range(first, 21)),
            {"pairs": [pairs.get(place, 0) for place in range(first, 20)]},
            count="pairs",
            note="Exact copies are not among them: of equal texts the first alone is compared.",
        )
    ]


def _recall(measured: dict[str, Any]) -> CurveFigure:
    """The chance that a pair is proposed, and the share of a sample's pairs that was found."""
    parameters, recall = measured["parameters"], measured["recall"]
    bands, rows = parameters["settings"]["bands"], parameters["settings"]["rows"]
    x = tuple(step / FINE for step in range(1, FINE + 1))
    theory = tuple(round(candidate_probability(s, bands, rows), 6) for s in x)
    steps = recall["similarity"] if recall else []
    series = _shares(steps) if steps else []
    marks = (Mark(parameters["floor"], "floor"),) if parameters["measure"] == "jaccard" else ()
    return CurveFigure(
        "Pairs that are found, by similarity: in theory and measured",
        Axis("Jaccard similarity", format=".3f"),
        Axis("share of pairs", format=".3f"),
        (Series("1 − (1 − s^rows)^bands", x, theory), *series),
        marks,
        _recall_note(measured),
    )


def _shares(steps: list[dict[str, Any]]) -> list[Series]:
    """Of each step of similarity, in its middle: what bands found, what was found at all.

    A step without pairs in the sample is a gap.
    """
    step_at = {round(step["from"] * FINE): step for step in steps}
    places = range(min(step_at), max(step_at) + 1, 2)
    middles = tuple((place + 1) / FINE for place in places)

    def series(name: str, share: Callable[[dict[str, Any]], float], faint: bool = False) -> Series:
        y = tuple(share(step_at[place]) if place in step_at else None for place in places)
        return Series(name, middles, y, faint)

    return [
        series("found by bands", lambda step: step["by_bands"] / step["pairs"]),
        series("found, partners of partners too", lambda step: step["found"] / step["pairs"]),
        series("… of these, 95 % from", lambda step: step["interval"][0], faint=True),
        series("… 95 % to", lambda step: step["interval"][1], faint=True),
    ]


def _recall_note(measured: dict[str, Any]) -> str:
    parameters, recall, capped = (measured[name] for name in ("parameters", "recall", "counts"))
    if not recall:
        return "Not measured: no documents were sampled."
    pairs = sum(step["pairs"] for step in recall["similarity"])
    documents = recall["documents"]
    partners, like = documents["with_partner"], documents["similarity"]
    several = ""
    if partners:
        low, high = documents["interval"]
        several = (
            f"Of {partners:,} sampled documents with a partner at {like:g} or above, "
            f"{documents['found']:,} are paired with one: {documents['found'] / partners:.1%} "
            f"(95 %: {low:.1%} to {high:.1%})."
        )
    return sentences(
        f"{recall['sampled']:,} documents were compared with all others, which makes {pairs:,} "
        f"pairs at {recall['floor']:g} or above; intervals take them as independent, which "
        "those of one family are not.",
        several,
        f"{capped['capped_buckets']:,} buckets of more than {parameters['max_bucket']} documents "
        "were compared in part, so pairs within large families are missed, whatever the similarity."
        if capped["capped_buckets"]
        else "",
    )


def _passages(passages: dict[str, Any]) -> list[Figure]:
    """What repeated lines, sentences or runs of tokens cover, and the most frequent ones."""
    if not passages:
        return []
    rows = tuple(
        (
            view,
            *(counts[name] for name in ("passages", "repeated", "spans")),
            *_of_all(counts["repeated_documents"], counts["documents"]),
            *_of_all(counts["repeated_characters"], counts["characters"]),
        )
        for view, counts in passages.items()
    )
    note = "Passages that occurred before, kept as spans of a view: `filter` may cut them."
    figures: list[Figure] = [
        make_table(
            "Repeated passages",
            "view | passages:, | repeated:, | spans:, | documents with one:, | of all:.1%"
            " | characters in them:, | of all:.1%",
            rows,
            note,
        )
    ]
    most = tuple(
        (view, each["count"], each["excerpt"], each["doc_id"])
        for view, counts in passages.items()
        for each in counts["most_frequent"]
    )
    if most:
        figures.append(
            make_table("Most frequent passages", "view | times:, | passage | first in", most)
        )
    return figures


def _of_all(part: int, whole: int) -> tuple[Cell, Cell]:
    return part, part / whole if whole else None


def _sizes(clusters: Clusters, verified: bool = True) -> BarFigure:
    """Clusters by size in bins that double, apart by whether all their documents are equal."""
    earlier = int(clusters.is_earlier.sum())
    bins = np.ceil(np.log2(clusters.sizes)).astype(np.int64)
    is_exact = clusters.classes == 1
    places = range(1, int(bins.max()) + 1)
    names = tuple(f"{2 ** (p - 1) + 1:,} to {2**p:,}" if p > 1 else "2" for p in places)
    counts = [
        np.bincount(bins[chosen], minlength=len(names) + 1)[1:] for chosen in (is_exact, ~is_exact)
    ]
    return make_bars(
        "Clusters of copies, by size",
        names,
        "clusters:,",
        {"exact copies alone": counts[0].tolist(), "with near-duplicates": counts[1].tolist()},
        stacked=True,
        label="documents",
        note=sentences(
            f"{len(clusters.ids):,} documents stand in {len(bins):,} clusters: linked by equal "
            f"text or by a pair {'above the floor' if verified else 'that MinHash proposed'}, "
            "directly or through others.",
            f"{earlier:,} of them are of {clusters.elsewhere}." if earlier else "",
            clusters.sample,
        ),
    )


def _largest(documents: list[Input], clusters: Clusters, origins: pa.Table | None) -> TableFigure:
    sizes, classes = clusters.sizes, clusters.classes
    largest = np.lexsort((np.arange(len(sizes)), -sizes))[:LARGEST].tolist()
    members = [clusters.members(cluster) for cluster in largest]
    first = [_first(clusters, rows_of_cluster) for rows_of_cluster in members]
    named = rows_by_id(documents, first, ["url", "title"])
    rows: list[tuple[Cell, ...]] = []
    for cluster, rows_of_cluster, one in zip(largest, members, first, strict=True):
        row = named.get(one, {})
        domains: dict[str, int] = {}
        if origins is not None:
            add_counts(domains, origins["domain"].take(pa.array(rows_of_cluster)).drop_null())
        rows.append(
            (
                int(sizes[cluster]),
                int(clusters.is_earlier[rows_of_cluster].sum()) or None,
                int(classes[cluster]),
                _names(domains) or None,
                (row.get("title") or "")[:LABEL] or None,
                (row.get("url") or one)[: 2 * LABEL],
            )
        )
    rows.sort(key=lambda row: (-int(row[0] or 0), str(row[-1])))
    return make_table(
        "Largest clusters of copies",
        f"documents:, | of {clusters.elsewhere}:, | different texts:, | domains | title of one"
        " | address of one",
        rows,
        clusters.sample,
    ).without_empty()


def _names(counts: dict[str, int]) -> str:
    """The most common labels, and how many more there are."""
    names = [name for name, _ in ranked(counts)]
    more = f" and {len(names) - 3:,} more" if len(names) > 3 else ""
    return ", ".join(names[:3]) + more


def _first(clusters: Clusters, members: NDArray[np.int64]) -> str:
    """The least id of a cluster's documents, of those that are here."""
    here = members[~clusters.is_earlier[members]]
    return str(min(clusters.ids.take(pa.array(here)).to_pylist()))


def _between(clusters: Clusters, origins: pa.Table) -> list[Figure]:
    """Between which sources and snapshots, and between which domains, copies lie."""
    where = pc.binary_join_element_wise(origins["source"], origins["snapshot"], ", ")
    earlier = pa.scalar(None if clusters.sample else clusters.elsewhere, pa.string())
    where = pc.if_else(pa.array(clusters.is_earlier), earlier, where)
    by_domain: dict[str, int] = {}
    add_counts(by_domain, origins["domain"].drop_null())
    return [
        *_matrix("Documents with a copy in another source or snapshot", clusters, where),
        *bars(
            "Documents with a copy, by web domain",
            by_domain,
            label="domain",
            most=GROUPS,
            note=clusters.sample,
        ),
        *_matrix("Documents with a copy on another domain", clusters, origins["domain"]),
    ]


def _matrix(title: str, clusters: Clusters, labels: pa.ChunkedArray) -> list[Figure]:
    """Where the copies of each label's documents lie; none if each keeps to itself."""
    counts: dict[str, int] = {}
    add_counts(counts, labels.drop_null())
    names = [name for name, _ in ranked(counts)[:GROUPS]]
    values = count_between(clusters, labels, names)
    if not (values - np.diag(np.diag(values))).any():
        return []
    left = len(counts) - len(names)
    meaning = "Documents of the row that have another one of the column in their cluster."
    rest = f"{left:,} labels with fewer copies are not shown." if left else ""
    cells = tuple(tuple(count or None for count in row) for row in values.tolist())
    note = sentences(meaning, rest, clusters.sample)
    return [MatrixFigure(title, tuple(names), tuple(names), cells, note=note)]


def _pairs(documents: list[Input], pairs: list[Row]) -> list[Figure]:
    ids = [pair[side] for pair in pairs for side in ("one", "two")]
    texts = rows_by_id(documents, ids, ["text", "url", "source", "snapshot"])
    examples = tuple(
        _pair(pair, texts[pair["one"]], texts[pair["two"]])
        for pair in pairs
        if pair["one"] in texts and pair["two"] in texts
    )
    if not examples:
        return []
    note = (
        "Over the range of similarity, each around its first difference; what stands on one side "
        "alone is marked."
    )
    return [PairsFigure("Pairs of copies side by side", examples, note)]


def _how(pair: Row) -> str:
    if pair["exact"]:
        return "equal once normalised"
    if pair["similarity"] is None:
        return "not verified"
    return f"similarity {pair['similarity']:.3f}, containment {pair['containment']:.3f}"


def _pair(pair: Row, one: Row, two: Row) -> Pair:
    left, right = diff_texts(one["text"], two["text"])
    return Pair(
        f"{_how(pair)}: {excerpt(one['url'] or pair['one'], LABEL)}",
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
