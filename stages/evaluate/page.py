"""What an evaluation contributes to a report."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from artifacts_schema.identity import short
from stages.engine.page import Artifact, Cell, Figure, TableFigure, TextFigure, make_table
from stages.evaluate import figures as own
from stages.evaluate import needles
from stages.evaluate.contamination_figures import contamination_figures
from stages.evaluate.extremes import document_ends, item_ends
from stages.evaluate.figures import CLEAN, HELD_OUT, HELD_OUT_MEASURE, PLANTED, cell, interval_text
from stages.scoring.metrics import SAVED, row_label

if TYPE_CHECKING:
    import pyarrow as pa

    from artifacts_schema.manifest import InputRef, Manifest

MISSED = 20
"""Missed records that are named."""

BETTER = (
    "`better by`: share of the token-unigram model's bits that are saved, both on the same texts, "
    "with its own 95 % interval."
)

PLANTED_NOTE = (
    "Records with defects were planted in the crawl. This measures the pipeline and its corpus, "
    "not a checkpoint. Intervals are Wilson's."
)


def summary(artifact: Artifact) -> list[Figure]:
    """Planted defects caught and missed, scores with standard errors, a generated sample."""
    output = artifact.output("evaluation")
    planted, scores = _results(artifact)
    figures: list[Figure] = [
        replace(figure, title=figure.title[0].lower() + figure.title[1:])
        for figure in (*_planted(planted), *_missed(output.read_table("items.parquet")))
    ]
    if scores:
        measured = " and ".join(reference.stage for reference in _checkpoints(artifact))
        title = f"scores of {measured}" if measured else "scores"
        figures.append(replace(_scores(scores, output.read_table("items.parquet")), title=title))
    generations = output.read_table("generations.parquet").to_pylist()
    plain = [row for row in generations if not row.get("benchmark")]
    figures += [
        TextFigure(f"a {row['form']} sample", f"{row['prompt']}▸{row['completion']}")
        for row in plain[:1]
    ]
    return [*figures, *_answers(generations)]


def _answers(generations: list[dict[str, Any]]) -> list[Figure]:
    """The answers that were kept, in one text for each benchmark of questions."""
    groups: dict[str, list[str]] = {}
    for row in generations:
        if name := row.get("benchmark"):
            question = row["prompt"].rsplit("user\n", 1)[-1].split("<|", 1)[0].strip()
            groups.setdefault(name, []).append(f"{question}\n▸ {row['completion'].strip()}")
    return [
        TextFigure(f"{name}: the first {len(texts)} by seed, not chosen", "\n\n".join(texts))
        for name, texts in groups.items()
    ]


def page(artifact: Artifact) -> list[Figure]:
    """Scores with intervals, planted defects, contamination, items at both ends, generations."""
    output = artifact.output("evaluation")
    planted, scores = _results(artifact)
    items = output.read_table("items.parquet")
    generations = output.read_table("generations.parquet").to_pylist()
    drawn = [row for row in scores if not _is_saved(row)]
    figures = [*_measured(artifact), *own.score_figures(drawn)]
    if scores:
        figures.append(replace(_scores(scores, items), title="Scores and baselines"))
    figures += needles.figures(artifact, items)
    figures += [replace(figure, note=PLANTED_NOTE) for figure in _planted(planted)]
    return [
        *figures,
        *_missed(items),
        *contamination_figures(artifact, items),
        *own.spread(items),
        *own.generations(generations, artifact.manifest.config.get("temperature", 0.0)),
        *item_ends(artifact, items),
        *document_ends(artifact, items),
    ]


def _checkpoints(artifact: Artifact) -> list[InputRef]:
    """The checkpoint that was measured; of `score` that of the evaluation before it."""
    manifest: Manifest | None = artifact.manifest
    while manifest is not None:
        checkpoints = [one for one in manifest.references if one.kind == "checkpoint"]
        evaluations = manifest.inputs.get("evaluation", ())
        if checkpoints or not evaluations:
            return checkpoints
        manifest = artifact.store.manifest(*evaluations[0].name)
    return []


def _measured(artifact: Artifact) -> list[TableFigure]:
    """Which checkpoint the scores are of: a report may hold evaluations of several."""
    rows = []
    for one in _checkpoints(artifact):
        made = artifact.store.manifest(*one.name)
        counts = {} if made is None else made.counts
        rows.append(
            (
                one.stage,
                short(one.key),
                short(one.digest),
                counts.get("training_steps"),
                counts.get("tokens"),
            )
        )
    headings = "made by | key | digest | training steps:, | tokens:,"
    table = make_table("Checkpoint measured", headings, rows).without_empty()
    return [table] if rows else []


def _results(artifact: Artifact) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Rows about planted defects, and all others."""
    results = artifact.output("evaluation").read_table("results.parquet").to_pylist()
    planted = [row for row in results if row["benchmark"].startswith(PLANTED)]
    return planted, [row for row in results if not row["benchmark"].startswith(PLANTED)]


def _planted(rows: list[dict[str, Any]]) -> list[TableFigure]:
    """Caught and missed by defect; sound documents, in a table of their own, kept and dropped."""
    defects = [row for row in rows if row["metric"] != "kept"]
    sound = [row for row in rows if row["metric"] == "kept"]
    caught = make_table(
        "Planted defects caught and missed",
        "planted | records:, | caught:, | missed:, | share caught, 95 %:",
        ((row["benchmark"].removeprefix(PLANTED), *_split(row)) for row in defects),
    )
    kept = make_table(
        "Sound documents kept and dropped",
        " | documents:, | kept:, | dropped:, | share kept, 95 %:",
        (("no planted defect", *_split(row)) for row in sound),
    )
    return [figure for figure in (caught, kept) if figure.rows]


def _split(row: dict[str, Any]) -> tuple[Cell, ...]:
    """Of how many, how many, how many not, and the interval of the share."""
    hits = round(row["value"] * row["count"])
    return row["count"], hits, row["count"] - hits, interval_text(row["low"], row["high"])


def _missed(items: pa.Table) -> list[TableFigure]:
    """Which planted records were missed, by document id."""
    import pyarrow.compute as pc

    recall = items.filter(pc.equal(items["metric"], "recall"))
    missed = recall.filter(pc.equal(recall["value"], 0.0))
    if not missed.num_rows:
        return []
    rows = tuple(
        (row["benchmark"].removeprefix(PLANTED), row["item_id"])
        for row in missed.slice(0, MISSED).to_pylist()
    )
    note = "`ingot why DOCUMENT` says what became of one."
    if missed.num_rows > MISSED:
        note += f" The first {MISSED} of {missed.num_rows:,}."
    return [make_table("Planted defects missed", "planted | document", rows, note)]


def _scores(every: list[dict[str, Any]], items: pa.Table) -> TableFigure:
    rows = [row for row in every if not _is_saved(row)]
    saved = {_saved_name(row): row for row in every if _is_saved(row)}
    cells = (
        (
            row_label(row),
            row["metric"],
            cell(row["value"]),
            interval_text(row["low"], row["high"]),
            cell(row["baseline"]),
            _better(row, saved.get(_saved_name(row))),
            row["count"],
        )
        for row in rows
    )
    has_held_out = any(row["benchmark"].startswith(HELD_OUT) for row in rows)
    chance = [f"{row_label(row)} {row['metric']}" for row in rows if _is_chance(row)]
    notes = [
        f"At chance (the interval holds the baseline, or lies below): {', '.join(chance)}."
        if chance
        else "",
        own.doubtful_intervals(items),
        BETTER if saved else "",
        HELD_OUT_MEASURE if has_held_out else "",
    ]
    return make_table(
        "scores",
        "benchmark | metric | score:.3f | 95 % interval: | baseline:.3f | better by: | n:,",
        cells,
        " ".join(filter(None, notes)),
    )


def _is_chance(row: dict[str, Any]) -> bool:
    """Whether an accuracy is not shown to be above chance."""
    if own.family(row["metric"]) != "accuracy" or row["baseline"] is None:
        return False
    return row["low"] is None or bool(row["low"] <= row["baseline"])


def _is_saved(row: dict[str, Any]) -> bool:
    """Whether it is a part of the row of bits per byte, not one of its own."""
    return bool(row["metric"].removesuffix(CLEAN) == SAVED)


def _saved_name(row: dict[str, Any]) -> tuple[str, str]:
    """What a row of bits per byte and that of the bits saved share; another metric has neither."""
    return row_label(row), row["metric"].replace("bits_per_byte", SAVED)


def _better(row: dict[str, Any], saved: dict[str, Any] | None) -> str | None:
    """Bits saved against the baseline, as a share of it, with its interval; None for others.

    An evaluation before version 6 has the share alone.
    """
    from stages.scoring.uncertainty import show_estimate

    if saved is not None:
        ends = None if saved["low"] is None else (saved["low"], saved["high"])
        return show_estimate(saved["value"], ends, ".1%")
    if row["metric"] != "bits_per_byte" or not row["baseline"]:
        return None
    return show_estimate(1 - row["value"] / row["baseline"], None, ".1%")
