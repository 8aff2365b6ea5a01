"""`ingot gc`: what nothing refers to, and how to be rid of it."""

from __future__ import annotations

import math
from typing import Any

import click

from flows.cli.options import json_option, store_option
from flows.cli.output import echo


def _finite(context: click.Context, parameter: click.Parameter, value: float) -> float:
    """`nan` passes every range check, and nothing is younger than it."""
    if not math.isfinite(value):
        raise click.BadParameter(f"{value} is not a number of hours.")
    return value


@click.command("gc")
@click.option("--delete", is_flag=True, help="Remove it; otherwise only say what would go.")
@click.option(
    "--min-age",
    type=click.FloatRange(min=0),
    callback=_finite,
    default=24.0,
    show_default=True,
    metavar="HOURS",
    help="Keep unnamed artifacts younger than this.",
)
@click.option("--work", "idle_work", is_flag=True, help="Also resume state that no run holds.")
@click.option("--artifact", metavar="REF", help="This artifact alone, whatever refers to it.")
@store_option
@json_option
def command(
    delete: bool, min_age: float, idle_work: bool, artifact: str | None, store: str, as_json: bool
) -> None:
    """Say what nothing refers to any more, and remove it with --delete.

    Refs, running work and whatever is young keep an artifact and all that it was made of. What came
    into use since it was listed stays.
    """  # fmt: skip
    from artifacts_schema.errors import StoreError
    from artifacts_schema.store.gc import Garbage, collect, plan_gc
    from flows.cli.artifacts import open_store, warn_damaged

    opened = open_store(store)
    if artifact is not None:
        manifest, _ = opened.resolve(artifact)
        garbage = Garbage(artifacts=[manifest], kept=len(opened.keys()) - 1, by_name=True)
    else:
        garbage = plan_gc(opened, min_age_seconds=min_age * 3600, idle_work=idle_work)
    for error in garbage.unreadable:
        warn_damaged(error)
    if garbage.unreadable:
        echo("warning: so all artifacts are kept, for these may name any of them", err=True)
    if delete:
        garbage = collect(opened, garbage)
        if artifact is not None and not garbage.artifacts:
            raise StoreError("a run works on this artifact now", where=artifact, hint="stop it")
    _tell(garbage, delete=delete, as_json=as_json)


def _tell(garbage: Any, *, delete: bool, as_json: bool) -> None:
    from flows.cli.output import print_json, size

    if as_json:
        print_json(
            {
                "deleted": delete,
                "artifacts": [{"stage": m.stage, "key": m.key} for m in garbage.artifacts],
                "attempts": garbage.attempts,
                "work": garbage.work,
                "launch": garbage.launch,
                "unreadable": [error.where for error in garbage.unreadable],
                "bytes": garbage.bytes,
                "kept": garbage.kept,
            }
        )
        return
    for manifest in garbage.artifacts:
        total = sum(output.bytes for output in manifest.outputs.values())
        echo(f"artifact  {manifest.stage} {manifest.key[:12]}  {size(total)}")
    for path in garbage.attempts:
        echo(f"payload   {path}")
    for key in garbage.work:
        echo(f"work      {key[:12]}")
    if garbage.launch:
        echo(f"launch    {len(garbage.launch):,} files of runs that are over")
    if not (garbage.artifacts or garbage.attempts or garbage.work or garbage.launch):
        echo(f"nothing to remove; {garbage.kept:,} artifacts are in use")
        return
    verb = "removed" if delete else "would free"
    more = "" if delete else "; --delete removes it"
    echo(f"{verb} {size(garbage.bytes)}, {garbage.kept:,} artifacts stay{more}")
