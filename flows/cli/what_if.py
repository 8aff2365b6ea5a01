"""`ingot what-if CORPUS --set RULE=VALUE`: another decision about the same documents, in memory.

Of an evaluation: other metrics of the same measurements.
"""

from __future__ import annotations

import shlex
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from artifacts_schema.store import Store
from artifacts_schema.store.runs import recorded_recipes
from flows.analysis.artifacts import format_title, open_store, refs_by_artifact
from flows.analysis.corpus import Corpus
from flows.analysis.score_comparison import is_evaluation
from flows.analysis.what_if import (
    EXCERPT,
    ChangeReport,
    Retention,
    RuleEffect,
    RulesReport,
    Sample,
    SweepReport,
    WhatIfReport,
    WhatIfRequest,
    setting_path,
)
from flows.cli.options import json_option, store_option
from flows.cli.output import Column, duration, echo, excerpt, print_json, print_table
from stages.scoring.metrics import label

if TYPE_CHECKING:
    from flows.analysis.what_if_scores import Ends, OverlapSweep, ScoresReport
    from stages.scoring.contamination import Side

SAMPLES = 3
BAR = 10
"""Characters of a bar that means all documents."""


@click.command("what-if")
@click.argument("corpus")
@click.option(
    "--set",
    "settings",
    metavar="RULE=VALUE",
    multiple=True,
    help="Another threshold, by rule or by path in the config of `filter`; may be repeated.",
)
@click.option(
    "--sweep", metavar="RULE=A:B:N", help="A table over N values of one threshold, from A to B."
)
@click.option(
    "--samples",
    metavar="N",
    type=click.IntRange(min=0),
    default=SAMPLES,
    show_default=True,
    help="Documents shown of those gained, and of those lost.",
)
@store_option
@json_option
def what_if(
    corpus: str,
    settings: tuple[str, ...],
    sweep: str | None,
    samples: int,
    store: str,
    as_json: bool,
) -> None:
    """Decide again about the documents of CORPUS with other thresholds. Nothing is run or written.

    CORPUS is a name or key of what a filter step made. Without --set, its rules are listed, and how
    many documents fail each.

    \b
    ingot what-if quickstart/filter --set gopher_few_words=30
    ingot what-if quickstart/filter --set duplicates.threshold=0.7 --set 'languages=[en, de]'
    ingot what-if quickstart/filter --set 'duplicates.priority=[{by: length}]'
    ingot what-if quickstart/filter --sweep gopher_few_words=10:100:10

    CORPUS may also be what a step `evaluate` or `score` made: then --set names settings of `score`,
    and no model is loaded.

    \b
    ingot what-if quickstart/evaluate --set 'normalisations=[bytes, tokens]'
    ingot what-if quickstart/evaluate --sweep max_overlap=0:1:11
    """  # fmt: skip
    started = time.perf_counter()
    opened = open_store(store)
    if is_evaluation(opened.resolve(corpus)[0]):
        _about_scores(opened, corpus, settings, sweep, as_json=as_json)
        return
    request = WhatIfRequest.make(Corpus.open(opened, corpus), settings)
    report: WhatIfReport
    if sweep is not None:
        report = SweepReport(request, sweep)
    else:
        report = ChangeReport(request, samples) if settings else RulesReport(request)
    if as_json:
        print_json(report.to_json())
        return
    echo(format_title(request.corpus.manifest, refs_by_artifact(request.corpus.store)))
    if request.deviations:
        echo(
            f"note: the program that made it decided {request.deviations:,} documents differently; "
            "before is what this one decides"
        )
    if isinstance(report, SweepReport):
        _print_sweep(report)
    elif isinstance(report, ChangeReport):
        _print_change(report, corpus)
    else:
        _print_rules(report)
    documents = report.decisions * len(request.before.kept)
    seconds = duration(time.perf_counter() - started)
    echo(f"\n{documents:,} decisions in {seconds}; nothing was run or written")


def _about_scores(
    store: Store, text: str, settings: Sequence[str], sweep: str | None, *, as_json: bool
) -> None:
    from flows.analysis.what_if_scores import MeasuredScores, OverlapSweep, ScoresReport

    measured = MeasuredScores.open(store, text)
    if sweep is not None:
        report: ScoresReport | OverlapSweep = OverlapSweep(measured, settings, sweep)
    else:
        report = ScoresReport(measured, settings)
    if as_json:
        print_json(report.to_json())
        return
    echo(format_title(measured.manifest, refs_by_artifact(store)))
    echo()
    if isinstance(report, OverlapSweep):
        _print_splits(report)
    else:
        _print_scores(report)
    echo("\nno model was loaded; nothing was written")


def _print_scores(report: ScoresReport) -> None:
    from flows.analysis.what_if_scores import GONE, UNCHANGED

    rows = [
        (one.label, one.name.metric, _side(one.before), _side(one.after), _ends(one.difference),
         one.basis, one.reading)
        for one in report.changes if one.basis not in (GONE, UNCHANGED)
    ]  # fmt: skip
    if rows:
        numbers = _number_columns("before", "after", "difference, 95 %")
        print_table(["score", "metric", *numbers, "of what", "reading"], rows)
    for basis in (UNCHANGED, GONE):
        if count := sum(one.basis == basis for one in report.changes):
            echo(f"{count} scores are {basis}")


def _print_splits(report: OverlapSweep) -> None:
    rows = [
        (label(*name[:3]), name.metric, f"{one.threshold:.0%}", _side(one.clean),
         _side(one.contaminated), _ends(one.difference))
        for name, splits in report.splits.items()
        for one in splits if one.contaminated is not None
    ]  # fmt: skip
    clean = sum(splits[0].contaminated is None for splits in report.splits.values())
    if clean:
        echo(f"the corpus holds nothing of the items of {clean} scores\n")
    numbers = _number_columns("held, more than", "clean", "contaminated", "clean − contaminated")
    print_table(["score", "metric", *numbers], rows)


def _side(side: Side | None) -> str:
    """`0.271 (0.216–0.333) n 218`; nothing without items."""
    if side is None:
        return ""
    ends = "" if side.low is None else f" ({side.low:.3f}–{side.high:.3f})"
    return f"{side.value:.3f}{ends} n {side.items:,}"


def _ends(difference: Ends | None) -> str:
    if difference is None:
        return ""
    value, low, high = difference
    return f"{value:+.3f}" + ("" if low is None else f" ({low:+.3f} to {high:+.3f})")


def _print_rules(report: RulesReport) -> None:
    echo()
    print_table(
        [
            Column("rule", wraps=True),
            Column("a document stays where", wraps=True),
            *_number_columns("fail", "it alone"),
        ],
        [
            (row["rule"], row["stays"], f"{row['failing']:,}", f"{row['failing_alone']:,}")
            for row in report.rows
        ],
    )
    echo("\nchange one with --set RULE=VALUE")


def _print_change(report: ChangeReport, corpus: str) -> None:
    echo()
    _print_amounts(report)
    if len(report.by_source) > 1:
        echo()
        _print_sources(report.by_source)
    if not any(report.effects.values()):
        echo("\nthe same documents stay")
        return
    echo()
    _print_effects(report.effects)
    for way, samples in report.samples.items():
        for sample in samples:
            _print_sample(way, sample)
    recipe, _, step = corpus.removeprefix("@").partition(":")[0].rpartition("/")
    if recipe in recorded_recipes(report.request.corpus.store):
        paths = (f"{step}.{setting_path(text)}" for text in report.request.settings)
        sets = " ".join(f"--set {shlex.quote(path)}" for path in paths)
        echo(f"\nkeep it: ingot run {recipe} --through {step} {sets}")


def _print_amounts(report: ChangeReport) -> None:
    tokens, rows = report.request.tokens, []
    for name in ("documents", "characters", "tokens"):
        total, before, after = (getattr(amount, name) for amount in report.total[1:])
        if total is None:
            continue
        estimated = name == "tokens" and tokens is not None and not tokens.counted.all()
        label = f"{name}, about" if estimated else name
        shares = [f"{part / max(1, total):.1%}" for part in (before, after)]
        parts = (f"{before:,}", shares[0], f"{after:,}", shares[1])
        rows.append((label, f"{total:,}", *parts, f"{after - before:+,}"))
    print_table(["", *_number_columns("of", "before", "", "after", "", "change")], rows)
    if tokens is None:
        echo("tokens: no tokenizer read this corpus")
        return
    is_partial = tokens.counted.any() and (report.change.gained & ~tokens.counted).any()
    note = "; of those gained, as their source's tokens per character" if is_partial else ""
    echo(f"tokens: {tokens.origin}{note}")


def _print_sources(by_source: Sequence[Retention]) -> None:
    rows = []
    for one in by_source:
        counts = [amount.documents for amount in (one.total, one.before, one.after)]
        characters = one.after.characters - one.before.characters
        changes = (f"{counts[2] - counts[1]:+,}", f"{characters:+,}")
        rows.append((one.source, *(f"{count:,}" for count in counts), *changes))
    headings = ("documents", "before", "after", "change", "in characters")
    print_table(["source", *_number_columns(*headings)], rows)


def _print_effects(effects: dict[str, list[RuleEffect]]) -> None:
    rows = [
        (
            way,
            f"{one.documents:,}",
            one.reason,
            _format_pair(one.least, one.most, " to "),
            _format_pair(one.before, one.after, " → "),
        )
        for way, group in effects.items()
        for one in group
    ]
    documents, *numbers = _number_columns("documents", "values", "threshold")
    print_table(["", documents, "rule", *numbers], rows)


def _print_sample(way: str, sample: Sample) -> None:
    value = "" if sample.value is None else f" {_format_number(sample.value)}"
    echo(f"\n{way} {sample.doc_id}  {sample.rule}{value}")
    for line in (sample.url, sample.text):
        if line:
            echo(f"  {excerpt(line, EXCERPT)}")


def _print_sweep(report: SweepReport) -> None:
    threshold = "" if report.threshold is None else f", now {_format_number(report.threshold)}"
    echo(f"{report.name}{threshold}; {report.documents:,} documents\n")
    rows = []
    for value, kept in report.rows:
        share = kept.documents / max(1, report.documents)
        cells = [_format_number(value), f"{kept.documents:,}", f"{share:.1%}", _format_bar(share)]
        cells.append(f"{kept.characters:,}")
        rows.append([*cells, *([f"{kept.tokens:,}"] if kept.tokens is not None else [])])
    headings = ["characters", *(["tokens"] if report.request.tokens is not None else [])]
    print_table(
        [*_number_columns("threshold", "documents", "kept"), "", *_number_columns(*headings)], rows
    )


def _number_columns(*headings: str) -> list[Column]:
    """On a narrow terminal, numbers wrap to the next line; none is cut."""
    return [Column(heading, right=True, wraps=True) for heading in headings]


def _format_bar(share: float) -> str:
    """A share as a bar of `BAR` characters, to an eighth of one."""
    eighths = round(share * BAR * 8)
    return "█" * (eighths // 8) + " ▏▎▍▌▋▊▉"[eighths % 8].strip()


def _format_pair(one: float | None, two: float | None, between: str) -> str:
    """`12 → 30`; one number if both are equal, nothing if both are None."""
    if one is None and two is None:
        return ""
    first, second = ("none" if n is None else _format_number(n) for n in (one, two))
    return first if first == second else f"{first}{between}{second}"


def _format_number(value: float) -> str:
    return f"{value:,.4g}" if abs(value) < 1000 else f"{value:,.0f}"
