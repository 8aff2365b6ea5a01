"""`ingot gaps`: an evaluation by parts of its items, and what separates them beyond chance."""

from __future__ import annotations

import click

from flows.analysis.artifacts import open_store
from flows.analysis.score_gaps import BENCHMARK, REST, ScorePart, score_parts
from flows.cli.options import json_option, store_option
from flows.cli.output import Column, echo, print_json, print_table


@click.command("gaps")
@click.argument("evaluation")
@click.option(
    "--by",
    "field",
    default=BENCHMARK,
    show_default=True,
    metavar="FIELD",
    help="Field of the items' metadata, as `functionality`; `benchmark`: what `*` stands for in "
    "--benchmark.",
)
@click.option(
    "--benchmark",
    "benchmarks",
    default="*",
    metavar="PATTERN",
    help="Benchmarks of these names alone, as 'belebele_*'.",
)
@click.option("--metric", default="accuracy", show_default=True, help="What is compared.")
@click.option(
    "--reference", metavar="PART", help="Compare with this part; by default with all others."
)
@store_option
@json_option
def gaps(
    evaluation: str,
    field: str,
    benchmarks: str,
    metric: str,
    reference: str | None,
    store: str,
    as_json: bool,
) -> None:
    """Say which languages, functional tests or other parts of EVALUATION lag beyond chance.

    Parts whose items have the same names (translations) are compared item by item, all others as
    independent samples. A gap is named if its p value, adjusted for all of them (Holm), is below
    0.05.
    """
    place = open_store(store)
    parts = score_parts(
        place,
        place.resolve(evaluation)[0],
        field,
        benchmarks=benchmarks,
        metric=metric,
        reference=reference,
    )
    if as_json:
        print_json([one.to_json() for one in parts])
        return
    titles = ("n", metric, "95 %", "gap", "95 %", "p")
    numbers = [Column(title, right=True) for title in titles]
    heads: list[Column | str] = ["benchmark", field, *numbers, "reading"]
    print_table(heads, [_row(one) for one in parts])
    clear = sum(one.adjusted is not None and one.adjusted < 0.05 for one in parts)
    echo(f"\n{clear} of {len(parts)} parts differ from {reference or REST} beyond chance")


def _row(one: ScorePart) -> tuple[str, ...]:
    interval = "" if one.low is None else f"{one.low:.3f} to {one.high:.3f}"
    cells = ("", "", "")
    if one.gap is not None:
        ends = "" if one.gap.low is None else f"{one.gap.low:+.3f} to {one.gap.high:+.3f}"
        p = one.adjusted
        chance = "" if p is None else f"{p:.3f}" if p >= 0.001 else "<0.001"
        cells = (f"{one.gap.value:+.3f}", ends, chance)
    return (
        one.score,
        one.part,
        f"{one.count:,}",
        f"{one.value:.3f}",
        interval,
        *cells,
        one.reading,
    )
