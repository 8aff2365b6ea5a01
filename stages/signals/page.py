"""What measured signals contribute to a report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from stages.engine.page import (
    Artifact,
    Cell,
    Figure,
    HistogramFigure,
    TableFigure,
    TextFigure,
    make_bars,
    make_histogram,
    make_table,
)
from stages.engine.sampling import sample_note, sampled, sampled_groups
from stages.engine.tally import (
    LogHistogram,
    add_counts,
    bars,
    log_histogram,
    numbers,
    sentences,
)

Signal = dict[str, str]
"""A column as `signals.json` describes it."""

LENGTHS = ("characters", "words", "lines")
"""Counts that are drawn on a logarithmic axis."""

SHARES: dict[str, tuple[str, ...]] = {
    "Words with a letter, letters of the main script": ("alphabetic_word_share", "script_share"),
    "Repeated lines and paragraphs": ("duplicate_line_share", "duplicate_paragraph_share"),
    "Repeated n-grams": (
        "top_2_gram_character_share",
        "top_4_gram_character_share",
        "duplicate_5_gram_character_share",
        "duplicate_10_gram_character_share",
    ),
    "Ended, short and bulleted lines": (
        "terminal_punctuation_line_share",
        "short_line_share",
        "bullet_line_share",
    ),
    "Symbols and line feeds to words": (
        "hash_to_word_ratio",
        "ellipsis_to_word_ratio",
        "newline_to_word_ratio",
    ),
    "Score of the language, lines in it": ("language_score", "line_language_share"),
    "Scores of classifiers": ("quality_score", "toxicity_score"),
    "Lines that published rules leave": (
        "c4@code/kept_line_share",
        "c4@datatrove/kept_line_share",
        "c4@fineweb/kept_line_share",
    ),
}
"""Title of a histogram → the signals between 0 and 1 that it shows over each other."""

LABELS = {
    "language": "Documents by language",
    "script": "Documents by script",
    "perplexity_bucket": "Documents by bucket of perplexity",
    "programming_language": "Documents by programming language",
    "licence": "Documents by licence",
    "charset": "Documents by character set",
    "extractor": "Documents by extractor",
    "truncated": "Truncated documents",
    "ai_opt_out": "Documents by marks against use for AI",
    "url_blocked": "Documents by the list that names their address",
}
"""Labels that are counted; others, such as hosts, are too many."""

HIDDEN = ("addresses", "numbers", "secrets")
"""Units of what is counted and never shown."""

NAMED_ONLY = ("truncated", "ai_opt_out", "url_blocked", "programming_language", "licence")
"""Labels that most documents lack: only those that have one are drawn."""

BINS = 20
LONGEST_WORD = 20
"""Longer mean word lengths are drawn in the last bin."""


def page(artifact: Artifact) -> list[Figure]:
    """How the signals are distributed, which languages there are, and personal data by sort."""
    output = artifact.output("signals")
    described: list[Signal] = output.read_json("signals.json")["columns"]
    labels = [signal["name"] for signal in described if signal["name"] in LABELS]
    names = [signal["name"] for signal in described if not signal["type"].startswith("string")]
    groups = [group.select(names) for group in sampled_groups([output], names)]
    table = pa.concat_tables(groups) if groups else None
    if table is None or not len(table):
        return [TextFigure("Signals", "None: there are no documents.")]
    values = {name: numbers(table[name]) for name in names}
    sample = sample_note(len(table), output.rows)
    return [
        *_labels(artifact, labels),
        *_lengths(values, sample),
        *_shares(values, sample),
        *_mean_word_length(values, sample),
        *_stop_words(values, artifact, sample),
        *_personal_data(artifact, described),
        *_spans(artifact),
        *_tables(described, values, sample),
    ]


def _labels(artifact: Artifact, names: Sequence[str]) -> list[Figure]:
    """Documents by each label."""
    counts: dict[str, dict[str, int]] = {name: {} for name in names}
    output = artifact.output("signals")
    part = sampled(output)
    for shard in part.shards():
        for group in shard.row_groups(list(names)):
            for name in names:
                column = group[name].drop_null() if name in NAMED_ONLY else group[name]
                add_counts(counts[name], column)
    return [
        figure
        for name in sorted(names, key=[*LABELS].index)
        for figure in bars(
            LABELS[name], counts[name], label=name, note=sample_note(part.rows, output.rows)
        )
    ]


def _lengths(values: Mapping[str, NDArray[np.float64]], sample: str) -> list[Figure]:
    figures: list[Figure] = []
    for name in LENGTHS:
        if name in values:
            histogram = LogHistogram()
            histogram.add(values[name])
            title = f"{name.capitalize()} a document"
            figures += log_histogram(title, name, {"documents": histogram}, note=sample)
    return figures


def _shares(values: Mapping[str, NDArray[np.float64]], sample: str) -> list[Figure]:
    """Histograms from 0 to 1 of what is not 0: most documents repeat nothing."""
    edges = np.linspace(0, 1, BINS + 1)
    figures: list[Figure] = []
    for title, names in SHARES.items():
        there = {name: values[name] for name in names if name in values}
        drawn = {name: shares[shares > 0] for name, shares in there.items() if (shares > 0).any()}
        if not drawn:
            continue
        counts = {name: int((shares == 0).sum()) for name, shares in there.items()}
        zeros = ", ".join(f"{name} {count:,}" for name, count in counts.items() if count)
        above = sum(int((shares > 1).sum()) for shares in drawn.values())
        note = sentences(
            f"Not drawn, since 0: {zeros}." if zeros else "",
            f"Drawn as 1, since above: {above:,}." if above else "",
            sample,
        )
        figures.append(_histogram(title, "share:.2f", edges, drawn, note))
    return figures


def _mean_word_length(values: Mapping[str, NDArray[np.float64]], sample: str) -> list[Figure]:
    if "mean_word_length" not in values:
        return []
    drawn = {"documents": values["mean_word_length"]}
    last = min(LONGEST_WORD, int(drawn["documents"].max()) + 1)
    edges = np.linspace(0, last, 2 * last + 1)
    above = int((drawn["documents"] > last).sum())
    note = sentences(f"Drawn as {last}, since above: {above:,}." if above else "", sample)
    return [_histogram("Mean word length", "characters:,.4g", edges, drawn, note)]


def _histogram(
    title: str,
    value: str,
    edges: NDArray[np.float64],
    values: Mapping[str, NDArray[np.float64]],
    note: str,
) -> HistogramFigure:
    """Overlaid histograms; values above the last edge count in the last bin."""
    series = {
        name: np.histogram(np.minimum(column, edges[-1]), edges)[0].tolist()
        for name, column in values.items()
    }
    return make_histogram(title, value, edges.tolist(), series, note=note)


def _stop_words(
    values: Mapping[str, NDArray[np.float64]], artifact: Artifact, sample: str
) -> list[Figure]:
    """How many of the list's words occur, from none to all."""
    words: list[str] = artifact.output("signals").read_json("signals.json")["stop_words"]
    if "stop_words" not in values or not len(words):
        return []
    counts = np.bincount(values["stop_words"].astype(np.int64), minlength=len(words) + 1)
    return [
        make_bars(
            "Different stop words in a document",
            map(str, range(len(counts))),
            "documents:,",
            {"documents": counts.tolist()},
            label="stop words",
            note=sentences(f"Of the list: {', '.join(words[:12])}.", sample),
        )
    ]


def _personal_data(artifact: Artifact, described: Sequence[Signal]) -> list[Figure]:
    """Counts alone; what was found is never shown."""
    names = [signal["name"] for signal in described if signal["unit"] in HIDDEN]
    totals = {name: np.zeros(3, dtype=np.int64) for name in names}
    output = artifact.output("signals")
    part = sampled(output)
    for shard in part.shards():
        for group in shard.row_groups(names) if names else ():
            for name, total in totals.items():
                counts = group[name].to_numpy()
                most = max(total[2], counts.max(initial=0))
                total[:] = total[0] + np.count_nonzero(counts), total[1] + counts.sum(), most
    rows: list[tuple[Cell, ...]] = [(name, *total.tolist()) for name, total in totals.items()]
    return (
        [
            make_table(
                "Personal data and secrets found",
                "signal | documents with any:, | found:, | most in one document:,",
                rows,
                sample_note(part.rows, output.rows),
            )
        ]
        if rows
        else []
    )


def _spans(artifact: Artifact) -> list[Figure]:
    """Spans that the views hold, by view and label."""
    counts: dict[tuple[str, str], int] = {}
    views = artifact.output("views")
    part = sampled(views)
    for shard in part.shards():
        for group in shard.row_groups(["spans"]):
            spans = group["spans"].combine_chunks().flatten()
            pairs = pa.table({n: pc.struct_field(spans, n) for n in ("view", "label")})
            for row in pairs.group_by(["view", "label"]).aggregate([([], "count_all")]).to_pylist():
                key = (row["view"], row["label"])
                counts[key] = counts.get(key, 0) + row["count_all"]
    rows = tuple((*key, count) for key, count in sorted(counts.items()))
    note = sentences(
        "What a filter replaces if its config applies the view.",
        sample_note(part.rows, views.rows),
    )
    return (
        [make_table("Spans to be replaced", "view | label | spans:,", rows, note)] if rows else []
    )


def _tables(
    described: Sequence[Signal], values: Mapping[str, NDArray[np.float64]], sample: str
) -> list[Figure]:
    """Every number: least, quantiles, greatest, share of zeros, and what it is."""
    counts = [signal for signal in described if signal["type"].startswith("int")]
    others = [signal for signal in described if signal not in counts]
    return [
        _table("Counts: quantiles over documents", counts, values, ",.0f", sample),
        _table("Shares and means: quantiles over documents", others, values, ",.3f", sample),
    ]


_QUANTILES = {"least": 0.0, "5 %": 0.05, "median": 0.5, "95 %": 0.95, "greatest": 1.0}


def _table(
    title: str,
    described: Sequence[Signal],
    values: Mapping[str, NDArray[np.float64]],
    format: str,
    sample: str,
) -> TableFigure:
    rows: list[tuple[Cell, ...]] = []
    for signal in described:
        if signal["name"] not in values:
            continue
        known = values[signal["name"]]
        known = known[~np.isnan(known)]
        cells: list[float | None] = [None] * 6
        if len(known):
            zeros = float((known == 0).mean())
            cells = [*np.quantile(known, list(_QUANTILES.values())).tolist(), zeros]
        rows.append((signal["name"], *cells, signal["description"]))
    quantiles = " | ".join(f"{name}:{format}" for name in _QUANTILES)
    return make_table(title, f"signal | {quantiles} | at 0:.1% | what it is", rows, sample)
