"""`ingot cost`: what the artifacts of a store cost to make, and what they take up."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import cast

import click

from flows.analysis.artifacts import open_store, warn_damaged
from flows.analysis.cost import GROUPS, Cost, Group, sum_cost, sum_costs, total_cost
from flows.cli.options import json_option, store_option
from flows.cli.output import Column, echo, print_json, print_table, size
from flows.recipe.profile import Prices, load_profile
from stages.engine.page import Figure, make_bars, make_table

_HOUR = 3600.0
_HOURS = ("CPU", "GPU", "lost CPU", "lost GPU", "clock")
"""What `_hours` counts."""


@click.command("cost")
@click.option(
    "--per",
    "group",
    type=click.Choice(GROUPS),
    default="stage",
    show_default=True,
    help="What costs are summed by.",
)
@click.option("--profile", metavar="NAME|FILE", help="A profile with prices: adds a column.")
@click.option(
    "--report", metavar="FILE", type=click.Path(path_type=Path, dir_okay=False),
    help="Write one HTML page with all four sums instead.",
)  # fmt: skip
@store_option
@json_option
def cost(group: str, profile: str | None, report: Path | None, store: str, as_json: bool) -> None:
    """Say what the artifacts of a store cost: hours of CPU and GPU, and bytes.

    Counted are all processes of the runs that made what is kept. Lost is what killed and failed
    attempts spent and nothing continued from. A person is the label that `ingot run --by NAME`
    gave, else the login name.
    """  # fmt: skip
    prices = load_profile(profile, Path.cwd() / "recipe.yaml").prices if profile else None
    if report is not None:
        _write_report(store, prices, report)
        return
    costs = sum_cost(open_store(store), cast(Group, group), warn_damaged)
    if as_json:
        print_json({name: _plain(one, prices) for name, one in costs.items()})
        return
    used = _used(costs.values())
    rows = [_row(name, one, used, prices) for name, one in costs.items()]
    if len(rows) > 1:
        rows.append(_row("all", total_cost(costs.values()), used, prices))
    titles = ["artifacts", *(f"{_HOURS[i]} h" for i in used), "bytes"]
    titles += [prices.currency] if prices else []
    print_table([group, *(Column(title, right=True) for title in titles)], rows)


def _money(one: Cost, prices: Prices) -> float:
    """Of what was spent, lost work included."""
    cpu, gpu = one.cpu_seconds + one.lost_cpu_seconds, one.gpu_seconds + one.lost_gpu_seconds
    return prices.money(cpu, gpu)


def _plain(one: Cost, prices: Prices | None) -> dict[str, float | str]:
    plain: dict[str, float | str] = {**one.to_json()}
    if prices is not None:
        plain |= {"money": round(_money(one, prices), 4), "currency": prices.currency}
    return plain


def _hours(one: Cost) -> tuple[float, ...]:
    seconds = (
        one.cpu_seconds,
        one.gpu_seconds,
        one.lost_cpu_seconds,
        one.lost_gpu_seconds,
        one.seconds,
    )
    return tuple(spent / _HOUR for spent in seconds)


def _used(costs: Iterable[Cost]) -> list[int]:
    """Which of `_HOURS` have a column: CPU, clock, and what is not 0 everywhere."""
    total = _hours(total_cost(costs))
    return [i for i, name in enumerate(_HOURS) if name in ("CPU", "clock") or total[i]]


def _row(name: str, one: Cost, used: Sequence[int], prices: Prices | None) -> tuple[str, ...]:
    spent = _hours(one)
    hours = (f"{spent[i]:.3f}" for i in used)
    money = (f"{_money(one, prices):,.2f}",) if prices else ()
    return name, f"{one.artifacts:,}", *hours, size(one.bytes), *money


def _write_report(place: str, prices: Prices | None, path: Path) -> None:
    from flows.report.html import write_figures  # Jinja and drawing, which a table needs not.

    opened = open_store(place)
    costs = sum_costs(opened, GROUPS, warn_damaged)
    total = total_cost(costs["stage"].values())
    cpu, gpu, lost_cpu, lost_gpu, _ = _hours(total)
    facts = {
        "store": opened.url,
        "artifacts": f"{total.artifacts:,}",
        "CPU": f"{cpu:,.2f} h, and {lost_cpu:,.2f} h lost",
        "GPU": f"{gpu:,.2f} h, and {lost_gpu:,.2f} h lost",
        "kept": size(total.bytes),
    }
    if prices is not None:
        facts["money"] = f"{_money(total, prices):,.2f} {prices.currency}"
    chapters = {f"By {group}": _figures(group, sums, prices) for group, sums in costs.items()}
    write_figures("What this store cost", facts, chapters, path)
    echo(f"{path}  {size(path.stat().st_size)}")


def _figures(group: Group, costs: Mapping[str, Cost], prices: Prices | None) -> list[Figure]:
    hours, used = {name: _hours(one) for name, one in costs.items()}, _used(costs.values())
    series = {_HOURS[i]: [row[i] for row in hours.values()] for i in used if _HOURS[i] != "clock"}
    bars = make_bars(f"Hours by {group}", costs, "hours:,.2f", series)
    headings = [group, "artifacts:,", *(f"{_HOURS[i]}, h:,.3f" for i in used), "kept, MB:,.2f"]
    headings += [f"{prices.currency}:,.2f"] if prices else []
    rows = [
        (name, one.artifacts, *(hours[name][i] for i in used), one.bytes / 1e6,
         *((_money(one, prices),) if prices else ()))
        for name, one in costs.items()
    ]  # fmt: skip
    note = (
        "Lost is what killed and failed attempts spent and nothing continued from; the clock is "
        "that of each run, added up."
    )
    return [bars, make_table(f"Cost by {group}", " | ".join(headings), rows, note)]
