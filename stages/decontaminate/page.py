"""What measured contamination contributes to a report."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from stages.decontaminate.shingles import normalise, normalise_words
from stages.engine.inputs import Input, Shard
from stages.engine.page import (
    Artifact,
    Cell,
    Figure,
    HistogramFigure,
    Pair,
    PairsFigure,
    TableFigure,
    TextFigure,
    make_histogram,
    make_table,
)
from stages.engine.sampling import named_alike, sample_note, sampled
from stages.engine.tally import (
    CONTEXT,
    LABEL,
    Row,
    available_inputs,
    benchmark_items,
    diff_from,
    ranked,
    rows_by_id,
)
from stages.text.words import find_words

SEARCHED = "*/*.parquet"
"""The tables with a row for each document; `items.parquet` has one for each item."""
BENCHMARKS = 20
STRONGEST = 10
PAIRS = 6
BINS = 10
RUN = 4
"""Words in a row from which on two texts are shown to agree: fewer agree by chance."""


def page(artifact: Artifact) -> list[Figure]:
    """Which benchmarks the documents hold, how much of their items, and the strongest hits."""
    items = artifact.output("contamination").read_table("items.parquet")
    if not len(items):
        return [_counts(artifact), TextFigure("Benchmark items found", "None in any document.")]
    output = artifact.output("contamination")
    tables = sampled(output, SEARCHED).shards(SEARCHED)
    strongest = _strongest_documents(tables)
    read, total = (sum(t.rows for t in some) for some in (tables, output.shards(SEARCHED)))
    documents = [
        named_alike(source, [table.path for table in tables])
        for source in available_inputs(artifact, "documents")
    ]
    return [
        _counts(artifact),
        _by_benchmark(artifact, items),
        _held(items),
        _documents(documents, strongest, sample_note(read, total)),
        *_pairs(artifact, documents, strongest),
    ]


def summary(artifact: Artifact) -> list[Figure]:
    """Items found by benchmark, if any."""
    items = artifact.output("contamination").read_table("items.parquet")
    return [_by_benchmark(artifact, items)] if len(items) else []


def _counts(artifact: Artifact) -> TableFigure:
    counts, config = artifact.manifest.counts, artifact.manifest.config
    rows = (
        *(
            row
            for kind in ("documents", "conversations", "preferences")
            if kind in counts
            for row in (
                (f"{kind} searched", counts[kind]),
                ("… that hold an n-gram of a benchmark", counts[f"{kind}_hit"]),
            )
        ),
        ("benchmark items", counts["items"]),
        ("… found in some document", counts["items_hit"]),
        ("… too short to be looked for", counts["items_too_short"]),
        ("… found only as common phrases", counts["items_common"]),
        ("… of which documents hold only a quotation", counts.get("items_quoted")),
        ("n-grams ignored as common phrases", counts["common_ngrams"]),
    )
    note = (
        f"An n-gram is {config['ngram']} normalised words, or a whole passage of "
        f"{config['min_words']} to {config['ngram']}; a prompt with its answer counts from "
        f"{config['min_answered_words']}."
    )
    return make_table("Documents searched for benchmark items", "what | number:,", rows, note)


def _by_benchmark(artifact: Artifact, items: pa.Table) -> TableFigure:
    sizes = _sizes(artifact)
    grouped = items.group_by("benchmark").aggregate([([], "count_all"), ("documents", "sum")])
    hits = {row["benchmark"]: row for row in grouped.to_pylist()}
    totals = {name: sizes.get(name, 0) for name in hits} | sizes
    rows: list[tuple[Cell, ...]] = []
    for name, _ in ranked({n: hits[n]["count_all"] if n in hits else 0 for n in totals}):
        hit = hits[name]["count_all"] if name in hits else 0
        documents = hits[name]["documents_sum"] if name in hits else 0
        known = totals[name] or None
        rows.append((name, known, hit, hit / known if known else None, documents))
    left = len(rows) - BENCHMARKS
    note = f"{left:,} with fewer found are not shown." if left > 0 else ""
    return make_table(
        "Benchmark items found in the documents",
        "benchmark | items:, | found:, | share:.1% | hits in documents:,",
        rows[:BENCHMARKS],
        note,
    )


def _sizes(artifact: Artifact) -> Counter[str]:
    """Items of each benchmark that is still available."""
    sizes: Counter[str] = Counter()
    for input_ in available_inputs(artifact, "benchmarks"):
        for shard in input_.shards():
            for group in shard.row_groups(["benchmark"]):
                for row in pc.value_counts(group["benchmark"]).to_pylist():
                    sizes[row["values"]] += row["counts"]
    return sizes


def _held(items: pa.Table) -> HistogramFigure:
    share = items["ngrams_hit"].to_numpy() / np.maximum(items["ngrams"].to_numpy(), 1)
    edges = np.linspace(0, 1, BINS + 1)
    return make_histogram(
        "How much of a found item the documents hold",
        "share of its n-grams:.1f",
        edges.tolist(),
        {"items": np.histogram(share, edges)[0].tolist()},
        count="items",
        note="At 1 every n-gram of the item is in some document: it is leaked as a whole.",
    )


def _strongest_documents(tables: Sequence[Shard]) -> list[Row]:
    """The documents with the most n-grams of benchmarks, and their hits."""
    kept: list[Row] = []
    for shard in tables:
        for group in shard.row_groups():
            hit = group.filter(pc.greater(group["ngrams_hit"], 0))
            if len(hit):
                keys = [("ngrams_hit", "descending"), ("doc_id", "ascending")]
                most = pc.select_k_unstable(hit, k=STRONGEST, sort_keys=keys)
                kept += hit.take(most).to_pylist()
                kept = sorted(kept, key=lambda row: (-row["ngrams_hit"], row["doc_id"]))[:STRONGEST]
    return kept


def _documents(documents: list[Input], strongest: list[Row], note: str) -> TableFigure:
    """The strongest hits as a table."""
    known = rows_by_id(documents, [row["doc_id"] for row in strongest], ["url"])
    rows = tuple(
        (
            (known.get(row["doc_id"], {}).get("url") or row["doc_id"])[: 2 * LABEL],
            row["ngrams_hit"],
            row["ngrams_hit"] / max(row["ngrams"], 1),
            len(row["hits"]),
            ", ".join(f"{hit['benchmark']} {hit['item_id']}" for hit in row["hits"][:2])[:LABEL],
        )
        for row in strongest
    )
    return make_table(
        "Documents with the most benchmark text",
        "document | n-grams of benchmarks:, | share of its n-grams:.1% | items:, | first of them",
        rows,
        note,
    )


def _pairs(artifact: Artifact, available: list[Input], strongest: list[Row]) -> list[Figure]:
    """Documents and the item that each shares most with, from the first shared n-gram on."""
    chosen = [row for row in strongest[:PAIRS] if row["hits"]]
    documents = rows_by_id(available, [row["doc_id"] for row in chosen], ["text", "url"])
    best = {
        row["doc_id"]: max(row["hits"], key=lambda hit: (hit["ngrams"], hit["item_id"]))
        for row in chosen
    }
    wanted = {(hit["benchmark"], hit["item_id"]) for hit in best.values()}
    items = benchmark_items(available_inputs(artifact, "benchmarks"), wanted)
    pairs = []
    for row in chosen:
        hit = best[row["doc_id"]]
        item = items.get((hit["benchmark"], hit["item_id"]))
        document = documents.get(row["doc_id"])
        if item is not None and document is not None:
            pairs.append(_pair(row, hit, document, _text(item)))
    if not pairs and not artifact.manifest.inputs.get("documents"):
        return []  # Conversations are named in the table; their texts are not shown.
    if not pairs:
        text = "Not shown: the documents or the benchmarks have been collected since."
        return [TextFigure("Hits side by side", text)]
    note = "Around the first shared n-gram; what is not marked stands on both sides."
    return [PairsFigure("Hits side by side", tuple(pairs), note)]


def _text(item: dict[str, Any]) -> str:
    """The prompt of an item and its right answer (or all its choices)."""
    choices = item["choices"]
    answers = choices if item["answer"] is None else [choices[item["answer"]]]
    return " ".join([item["prompt"], *answers])


def _pair(row: Row, hit: Row, document: Row, item: str) -> Pair:
    start = max(0, hit["start"] - CONTEXT)
    place = _place(item, document["text"][hit["start"] : hit["end"]])
    left, right = diff_from(
        document["text"], item, start, max(0, place - CONTEXT), _normal_form, RUN
    )
    return Pair(
        f"{hit['benchmark']}, {hit['item_id']}: {hit['ngrams']:,} n-grams shared",
        document["url"] or row["doc_id"],
        f"{hit['benchmark']}, {hit['item_id']}",
        left,
        right,
        (("n-grams of the document", row["ngrams"]), ("items it holds", len(row["hits"]))),
    )


def _normal_form(word: str) -> str:
    """A word as it is compared; punctuation, which has none, as itself."""
    return normalise(word) or word


def _place(item: str, shared: str) -> int:
    """Where in an item's text the words of `shared` begin; 0 if they are not in it as such."""
    wanted = normalise_words(shared)
    spans = find_words(item)
    forms = [normalise(item[start:end]) for start, end in spans]
    filled = [(form, start) for form, (start, _) in zip(forms, spans, strict=True) if form]
    words = [form for form, _ in filled]
    for place in range(len(words) - len(wanted) + 1):
        if words[place : place + len(wanted)] == wanted:
            return filled[place][1]
    return 0
