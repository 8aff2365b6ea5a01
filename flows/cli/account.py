"""`ingot account RECIPE|REF`: the tokens that a pretraining run plans to read, or did read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from flows.cli.options import json_option, pretraining_options, store_option
from flows.cli.output import echo


@click.command("account")
@click.argument("target", metavar="RECIPE|REF")
@store_option
@pretraining_options
@json_option
def command(target: str, store: str, step: str | None, as_json: bool, **flags: Any) -> None:
    """Show the tokens that pretraining plans to read, how often, and what is left.

    RECIPE is a path, or the name of a recipe that comes with Ingot: what its pretraining steps plan
    to read of the token shards that stand in the store, before anything is launched. REF is a
    pretraining run in the store, by name or key: what it planned and what it read.
    """  # fmt: skip
    from flows.cli.output import print_json
    from flows.cli.token_accounts import of_recipe, of_run

    if _is_recipe(target):
        found = of_recipe(target, store, step=step, **flags)
    else:
        found = [of_run(target, store)]
    if as_json:
        print_json({"accounts": [one.to_json() for one in found]})
    else:
        for one in found:
            _show(one)
    for one in found:
        one.raise_refusals()


def _is_recipe(target: str) -> bool:
    """Whether a text means a file, or a recipe that comes with Ingot."""
    from flows.recipe.recipe import BUNDLED

    path = Path(target)
    return (
        path.suffix in (".yaml", ".yml") or path.is_file() or (BUNDLED / f"{target}.yaml").exists()
    )


def _show(one: Any) -> None:
    """The headline and tables of one account."""
    if one.missing:
        made_by = " and ".join(one.missing)
        echo(
            f"{one.name}: the token shards are not there yet; {made_by} makes them "
            f"(`ingot run {one.recipe} --through {one.missing[0]}`)"
        )
        return
    phases = one.account["phases"]
    steps, tokens = (sum(phase[n] for phase in phases) for n in ("training_steps", "tokens"))
    length = phases[0]["sequence_length"]
    echo(
        f"{one.name}: {steps:,} training steps in {len(phases)} "
        f"phase{'s' if len(phases) > 1 else ''}, {tokens:,} token positions in sequences of "
        f"{length:,}\n"
    )
    _entries("source", one.account["sources"])
    _entries("language", one.account["languages"])
    if len(phases) > 1:
        _by_phase(one.account)
    for first, last in one.account["skipped_training_steps"]:
        echo(f"left out: training steps {first:,} to {last:,}")


def _entries(what: str, entries: dict[str, dict[str, Any]]) -> None:
    """One row for each source or language, and one for all."""
    from flows.cli.output import Column, print_table

    fields = ["available_tokens", "planned_tokens", "repeated_tokens", "left_tokens"]
    heads = ["available", "planned", "repeated", "left"]
    if any(one["realised_tokens"] is not None for one in entries.values()):
        fields, heads = [*fields, "realised_tokens"], [*heads, "read"]
    rows = []
    for name, one in sorted(entries.items()):
        cap = one.get("max_epochs")
        epochs = f"{one['epochs']:.2f}" + (f" of {cap:g}" if cap is not None else "")
        rows.append((name or "(none)", epochs, *(f"{one[field]:,}" for field in fields)))
    if len(rows) > 1:
        sums = (sum(one[field] for one in entries.values()) for field in fields)
        rows.append(("all", "", *(f"{value:,}" for value in sums)))
    print_table([what, *(Column(head, right=True) for head in ["epochs", *heads])], rows)
    echo()


def _by_phase(account: dict[str, Any]) -> None:
    """Planned tokens and their share, a column for each phase."""
    from flows.cli.output import Column, print_table

    planned = {n: one["planned_tokens_by_phase"] for n, one in sorted(account["sources"].items())}
    totals = [sum(column) for column in zip(*planned.values(), strict=True)]
    rows = [
        (name, *(_share(value, total) for value, total in zip(values, totals, strict=True)))
        for name, values in planned.items()
    ]
    heads = [Column(f"phase {number}", right=True) for number in range(1, len(totals) + 1)]
    print_table(["planned in", *heads], rows)
    echo()


def _share(value: int, total: int) -> str:
    return f"{value:,} ({value / total:.1%})" if total else "0"
