"""`ingot cost`: what the artifacts of a store cost to make, and what they take up."""

from __future__ import annotations

from typing import cast

import click

from flows.analysis.artifacts import open_store, warn_damaged
from flows.analysis.cost import Cost, Group, sum_cost, total_cost
from flows.cli.options import json_option, store_option
from flows.cli.output import Column, print_json, print_table, size

_HOUR = 3600.0


@click.command("cost")
@click.option(
    "--per",
    "group",
    type=click.Choice(["stage", "recipe", "person"]),
    default="stage",
    show_default=True,
    help="What costs are summed by.",
)
@store_option
@json_option
def cost(group: str, store: str, as_json: bool) -> None:
    """Say what the artifacts of a store cost: hours of CPU and GPU, and bytes.

    Counted are all processes of the runs that made what is kept. A person is the label that
    `ingot run --by NAME` gave, else the login name.
    """  # fmt: skip
    costs = sum_cost(open_store(store), cast(Group, group), warn_damaged)
    if as_json:
        print_json({name: one.to_json() for name, one in costs.items()})
        return
    rows = [_row(name, one) for name, one in costs.items()]
    if len(rows) > 1:
        rows.append(_row("all", total_cost(costs.values())))
    titles = ("artifacts", "CPU h", "GPU h", "clock h", "bytes")
    print_table([group, *(Column(title, right=True) for title in titles)], rows)


def _row(name: str, one: Cost) -> tuple[str, ...]:
    hours = (one.cpu_seconds, one.gpu_seconds, one.seconds)
    return name, f"{one.artifacts:,}", *(f"{spent / _HOUR:.3f}" for spent in hours), size(one.bytes)
