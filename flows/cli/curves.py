"""`ingot curves`: scores over the checkpoints of training runs."""

from __future__ import annotations

from pathlib import Path

import click

from flows.analysis.artifacts import open_store
from flows.analysis.curve_reading import read_curves
from flows.cli.options import json_option, store_option
from flows.cli.output import Column, echo, print_json, print_table, size


@click.command("curves")
@click.argument("names", metavar="NAME...", nargs=-1, required=True)
@click.option(
    "--metric",
    "metrics",
    metavar="NAME",
    multiple=True,
    help="This metric alone; may be repeated.",
)
@click.option(
    "--output",
    metavar="FILE",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write a page with the curves as pictures.",
)
@store_option
@json_option
def curves(
    names: tuple[str, ...], metrics: tuple[str, ...], output: Path | None, store: str, as_json: bool
) -> None:
    """Say which scores follow training, and which fell between checkpoints.

    NAME is a training run (its evaluations are found in the store), a recipe or an evaluation. Runs
    that differ by their seed alone count as one model, and give the noise between seeds.

    \b
    ingot curves signal/pretrain
    ingot curves seed-0 seed-1 seed-2 --output curves.html
    """
    report = read_curves(open_store(store), names, metrics)
    if output is not None:
        from flows.report.curves_page import write_curves

        write_curves(report, output)
    if as_json:
        print_json(report.to_json())
        return
    from flows.report.curves_page import falls_table, trust_table

    for table in (trust_table(report), falls_table(report)):
        if table.rows:
            columns = [
                Column(c.heading, right=c.align == "right", wraps=True) for c in table.columns
            ]
            rows = [
                [c.show(v) for c, v in zip(table.columns, row, strict=True)] for row in table.rows
            ]
            print_table(columns, rows)
            echo()
    trusted = sum(not one.signal.doubts for one in report.scores)
    echo(f"{trusted} of {len(report.scores)} scores can be trusted at this scale")
    fell = f"{len(report.falls)} of {report.compared} pairs of checkpoints fell beyond chance"
    echo(fell)
    if report.left_out:
        echo(f"{report.left_out} evaluations with other settings are left out")
    if output is not None:
        echo(f"{output}  {size(output.stat().st_size)}")
