"""`ingot overlap A B`: how much of one corpus lies in another, by sketches; nothing is written."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import click

from flows.analysis.artifacts import format_title, open_store, refs_by_artifact
from flows.cli.options import json_option, store_option
from flows.cli.output import Column, echo, print_json, print_table
from flows.cli.progress import show_count

if TYPE_CHECKING:
    from flows.analysis.corpus_sketch import Estimate
    from flows.analysis.overlap import ComparedCorpus, GroupBy, Overlap


@click.command("overlap")
@click.argument("a")
@click.argument("b")
@click.option(
    "--by",
    "group_by",
    type=click.Choice(["source", "language"]),
    help="Say how much of each source or language of A lies in B, too.",
)
@click.option(
    "--workers",
    metavar="N",
    type=click.IntRange(min=1),
    help="Processes that read shards.  [default: one a core]",
)
@store_option
@json_option
def overlap(
    a: str, b: str, group_by: str | None, workers: int | None, store: str, as_json: bool
) -> None:
    """Say how much of corpus A lies in corpus B: documents, lines and shingles.

    A and B are names or keys of documents, conversations or preferences, or of a snapshot that an
    ingest step has read. Both are read once; nothing is run or written. Up to 262,144 distinct
    values all numbers are exact; above, they are estimates with intervals at 95 %.

    \b
    ingot overlap snapshots/crawl-B snapshots/crawl-A
    ingot overlap quickstart/web quickstart/code --by language
    """  # fmt: skip
    from flows.analysis.overlap import ComparedCorpus, compare_sketches, sketch_corpora
    from stages.engine.allotment import available_cores

    opened = open_store(store)
    corpora = [ComparedCorpus.open(opened, text) for text in (a, b)]
    with show_count("reading", "documents") as progress:
        sketches = sketch_corpora(
            corpora,
            workers=workers or available_cores(),
            group_by=cast("GroupBy | None", group_by),
            progress=progress,
        )
    report = compare_sketches(*sketches)
    if as_json:
        named = {name: _corpus_json(one) for name, one in zip("ab", corpora, strict=True)}
        print_json({**named, **report.to_json()})
        return
    refs = refs_by_artifact(opened)
    for name, one, count in zip("AB", corpora, report.documents, strict=True):
        part = f", snapshot {one.snapshot}" if one.snapshot else ""
        echo(f"{name}  {format_title(one.manifest, refs)}{part}: {count:,} documents")
    _print_units(report)
    if group_by is not None:
        _print_groups(report, group_by)


def _corpus_json(corpus: ComparedCorpus) -> dict[str, str | None]:
    manifest = corpus.manifest
    return {
        "stage": manifest.stage,
        "key": manifest.key,
        "output": corpus.source.output,
        "snapshot": corpus.snapshot,
    }


def _print_units(report: Overlap) -> None:
    from flows.analysis.corpus_sketch import UNITS

    rows = [
        (
            UNITS[unit],
            _format_count(one.distinct_a),
            _format_count(one.distinct_b),
            _format_interval(one.shared),
            _format_share(one.a_in_b),
            _format_share(one.b_in_a),
            "-" if one.jaccard is None else f"{one.jaccard.value:.3f}",
        )
        for unit, one in report.units.items()
    ]
    titles = ("in A", "in B", "in both", "of A in B", "of B in A", "Jaccard")
    echo()
    print_table(["distinct", *(Column(title, right=True, wraps=True) for title in titles)], rows)
    estimated = not all(one.union.exact for one in report.units.values())
    echo("\n≈ is an estimate; in brackets the interval at 95 %" if estimated else "\nall exact")


def _print_groups(report: Overlap, group_by: str) -> None:
    from flows.analysis.corpus_sketch import UNITS

    rows = [
        (group.name, f"{group.documents:,}", *map(_format_share, group.shares.values()))
        for group in report.groups
    ]
    titles = ["in A", *(f"{unit} in B" for unit in UNITS.values())]
    echo()
    print_table([group_by, *(Column(title, right=True, wraps=True) for title in titles)], rows)


def _format_count(count: Estimate) -> str:
    return f"{'' if count.exact else '≈ '}{count.value:,.0f}"


def _format_interval(count: Estimate) -> str:
    ends = "" if count.exact else f" ({count.low:,.0f} to {count.high:,.0f})"
    return _format_count(count) + ends


def _format_share(share: Estimate | None) -> str:
    if share is None:
        return "-"
    ends = "" if share.exact else f" ({share.low:.2%} to {share.high:.2%})"
    return f"{share.value:.2%}{ends}"
