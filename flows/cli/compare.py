"""`ingot compare`: what separates two evaluations beyond chance."""

from __future__ import annotations

import click

from flows.analysis.artifacts import open_store
from flows.analysis.score_comparison import ScoreDifference, compare_evaluations
from flows.cli.options import json_option, store_option
from flows.cli.output import Column, echo, print_json, print_table
from stages.scoring.uncertainty import LEAST_UNITS, show_estimate


@click.command("compare")
@click.argument("a")
@click.argument("b")
@click.option(
    "--metric",
    "metrics",
    metavar="NAME",
    multiple=True,
    help="Compare this metric alone; may be repeated. Fewer comparisons see smaller differences.",
)
@click.option(
    "--max-overlap",
    metavar="SHARE",
    type=click.FloatRange(0, 1),
    help="Leave out items of whose n-grams the corpus holds more than this share.",
)
@store_option
@json_option
def compare(
    a: str, b: str, metrics: tuple[str, ...], max_overlap: float | None, store: str, as_json: bool
) -> None:
    """Say which scores of evaluations A and B differ beyond chance.

    Scores are paired by item. A difference is named if its p value, adjusted for all that are
    compared (Holm), is below 0.05. `seen from` is the size that would have been seen with a chance
    of 80 %: a smaller one may be there.
    """
    place = open_store(store)
    manifests = place.resolve(a)[0], place.resolve(b)[0]
    differences = compare_evaluations(place, *manifests, metrics, max_overlap)
    if as_json:
        print_json([one.to_json() for one in differences])
        return
    titles = ("items", "A, 95 %", "B, 95 %", "B − A, 95 %", "p", "seen from")
    rows = [_row(one) for one in differences]
    print_table(
        ["benchmark", "metric", *(Column(title, right=True) for title in titles), "reading"], rows
    )
    clear = sum(one.differs for one in differences)
    echo(f"\n{clear} of {len(differences)} scores differ beyond chance")
    if alone := sum(one.alone for one in differences):
        echo(f"{alone:,} items that only one of the two has, or has otherwise, are left out")
    if few := [one.label for one in differences if one.paired.units < LEAST_UNITS]:
        echo(f"fewer than {LEAST_UNITS} independent items: {', '.join(dict.fromkeys(few))}")


def _row(one: ScoreDifference) -> tuple[str, ...]:
    paired = one.paired
    return (
        one.label,
        one.metric,
        f"{paired.items:,}",
        show_estimate(paired.a, paired.a_ends),
        show_estimate(paired.b, paired.b_ends),
        show_estimate(paired.value, paired.ends, "+.3f"),
        "" if one.adjusted is None else _chance(one.adjusted),
        "" if one.detectable is None else f"±{one.detectable:.3f}",
        one.reading,
    )


def _chance(p: float) -> str:
    return f"{p:.3f}" if p >= 0.001 else "<0.001"
