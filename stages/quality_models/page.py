"""What models that judge text contribute to a report."""

from __future__ import annotations

from typing import Any

from stages.engine.page import (
    Artifact,
    Axis,
    CurveFigure,
    Estimate,
    Figure,
    HistogramFigure,
    IntervalFigure,
    Mark,
    Series,
    TableFigure,
    make_histogram,
    make_table,
)

SHARE = Axis("share", format=".3f")
INTERVAL = "Intervals of 95 %: {}. Of documents that the model never saw."


def summary(artifact: Artifact) -> list[Figure]:
    """How far the classifier can be trusted."""
    card = artifact.output("classifier").read_json("card.json")
    return [score_card(card)] if card["made"] else []


def page(artifact: Artifact) -> list[Figure]:
    """Score card, curves and histograms of the classifier; sizes and perplexity of n-grams."""
    card = artifact.output("classifier").read_json("card.json")
    model = artifact.output("ngram_model").read_json("card.json")
    cutoffs = artifact.output("cutoffs").read_json("cutoffs.json")
    figures: list[Figure] = []
    if card["made"]:
        figures += [
            score_card(card),
            score_histogram(card),
            precision_and_recall(card),
            reliability(card),
            quantiles(card),
            training(card),
        ]
    if model["made"]:
        figures += [ngrams(model), ngram_facts(model)]
    if cutoffs["made"]:
        figures += [cutoff_table(cutoffs), percentiles(cutoffs)]
    return figures


def score_card(card: dict[str, Any]) -> IntervalFigure:
    """What a decision at the cut-off is worth."""
    held, count = card["held"], card["held"]["documents"]
    at = held["at_cutoff"]
    rows = (
        ("precision", at["precision"], None),
        ("recall", at["recall"], None),
        ("contrast kept", at["contrast_kept"], None),
        ("F1", {**at["f1"], "count": sum(count.values())}, None),
        ("ROC AUC", {**held["roc_auc"], "count": sum(count.values())}, 0.5),
    )
    estimates = tuple(
        Estimate(
            name, measure["value"], measure["low"], measure["high"], baseline, measure["count"]
        )
        for name, measure, baseline in rows
        if measure is not None
    )
    note = INTERVAL.format("Wilson's for shares, bootstrap for F1, DeLong's for the area")
    return IntervalFigure(
        f"Classifier '{card['name']}' at its cut-off, {card['cutoff']['threshold']:.4g}",
        SHARE,
        estimates,
        f"The cut-off: {card['cutoff']['chosen']}. {note} Precision is that of the held sample: "
        "where the reference is rarer than in it, precision is lower.",
    )


def score_histogram(card: dict[str, Any]) -> HistogramFigure:
    """Scores of both classes over each other."""
    histogram = card["held"]["histogram"]
    return make_histogram(
        f"Scores of '{card['name']}' on held documents",
        "score:.2f",
        histogram["edges"],
        {role: histogram[role] for role in ("reference", "contrast")},
        note="Two heaps apart: the model tells the classes from each other. All at the ends: it "
        "may tell them by something that has nothing to do with quality, such as their source.",
    )


def precision_and_recall(card: dict[str, Any]) -> CurveFigure:
    """Precision over recall; the cut-off marked."""
    curve, recall = card["held"]["curve"], card["held"]["at_cutoff"]["recall"]
    points = dict(zip(curve["recall"], curve["precision"], strict=True))
    return CurveFigure(
        f"Precision over recall of '{card['name']}'",
        Axis("recall", format=".3f"),
        Axis("precision", format=".3f"),
        (Series("held documents", tuple(points), tuple(points.values())),),
        (Mark(recall["value"], "cut-off"),),
        "Further right more of the reference is kept, further up less of what is kept is contrast.",
    )


def reliability(card: dict[str, Any]) -> CurveFigure:
    """Share of the reference by score, with the diagonal of a calibrated model."""
    calibration = card["held"]["calibration"]
    bins = calibration["bins"]
    return CurveFigure(
        f"Calibration of '{card['name']}'",
        Axis("mean score of the bin", format=".3f"),
        Axis("share of reference", format=".3f"),
        (
            Series(
                "held documents",
                tuple(one["score"] for one in bins),
                tuple(one["reference_share"] for one in bins),
            ),
            Series("calibrated", (0.0, 1.0), (0.0, 1.0), faint=True),
        ),
        note="Both classes weigh alike. Expected calibration error "
        f"{calibration['expected_error']:.3f}, Brier score {calibration['brier']:.3f} "
        "(0.25: a coin). Below the diagonal scores promise too much.",
    )


def quantiles(card: dict[str, Any]) -> TableFigure:
    """Scores by quantile and class: where a cut-off would fall."""
    values = card["held"]["quantiles"]
    rows = tuple(
        (f"{float(share):.0%}", value, values["contrast"][share])
        for share, value in values["reference"].items()
    )
    note = "A cut-off at the contrast's 90 % keeps a tenth of it."
    return make_table(
        f"Scores of '{card['name']}' by quantile",
        "quantile | reference:.4f | contrast:.4f",
        rows,
        note,
    )


def training(card: dict[str, Any]) -> TableFigure:
    """What the classifier was made of."""
    trained, held = card["trained"], card["held"]["documents"]
    rows = (
        *((f"{role} documents learnt from", n) for role, n in trained["documents"].items()),
        *((f"{role} documents held", n) for role, n in held.items()),
        ("lower case", str(card["preparation"]["lower_case"])),
        ("quantized", str(trained["quantized"])),
        *((f"fastText: {name}", value) for name, value in sorted(trained["arguments"].items())),
        *((f"version of {name}", value) for name, value in sorted(trained["libraries"].items())),
    )
    return make_table(f"Training of '{card['name']}'", " | value:", rows)


def ngrams(model: dict[str, Any]) -> TableFigure:
    """n-grams by order, before and after pruning."""
    rows = tuple(
        (order, before, after)
        for order, (before, after) in enumerate(
            zip(model["ngrams_before_pruning"], model["ngrams"], strict=True), 1
        )
    )
    return make_table("n-grams of the model", "order:, | n-grams found:, | n-grams kept:,", rows)


def ngram_facts(model: dict[str, Any]) -> TableFigure:
    """How much text the n-gram model knows, and how well it predicts."""
    rows = [
        ("documents learnt from", model["documents"]),
        ("lines", model["lines"]),
        ("words", model["words"]),
        ("order", len(model["ngrams"])),
    ]
    rows += [
        (f"perplexity of held {role}, a word", round(value, 1))
        for role, value in sorted(model["held_perplexity"].items())
    ]
    note = "10 ^ (-log10 likelihood / words and line ends), strange words included."
    return make_table("n-gram model", " | value:,", rows, note)


def cutoff_table(cutoffs: dict[str, Any]) -> TableFigure:
    """Perplexities that part head, middle and tail, by language."""
    rows = tuple(
        (language, cutoff["documents"], cutoff["measured_on"], cutoff["head"], cutoff["tail"])
        for language, cutoff in sorted(cutoffs["languages"].items())
    )
    (head, tail) = (cutoffs["percentiles"][end] for end in ("head", "tail"))
    note = f"Percentiles {head:g} and {tail:g} of the documents' perplexity, line by line."
    return make_table(
        "Cut-offs of perplexity",
        "language | documents:, | measured on | head below:,.1f | tail from:,.1f",
        rows,
        note,
    )


def percentiles(cutoffs: dict[str, Any]) -> CurveFigure:
    """The distribution from which the cut-offs were taken."""
    series = tuple(
        Series(language, tuple(range(1, 100)), tuple(cutoff["percentiles"]))
        for language, cutoff in sorted(cutoffs["languages"].items())
    )
    marks = tuple(Mark(cutoffs["percentiles"][end], end) for end in ("head", "tail"))
    return CurveFigure(
        "Perplexity by percentile",
        Axis("percentile of documents"),
        Axis("perplexity", scale="log"),
        series,
        marks,
        "The head reads like the reference; the tail is text of another sort, or no text.",
    )
