"""`ingot gc`: what nothing refers to, and how to be rid of it."""

from __future__ import annotations

from typing import Any

import click

from flows.cli.options import json_option, store_option
from flows.cli.output import echo


@click.command("gc")
@click.option("--delete", is_flag=True, help="Remove it; otherwise only say what would go.")
@click.option(
    "--min-age",
    type=click.FloatRange(min=0),
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

    Refs, running work and whatever is young keep an artifact and all that it was made of.
    """  # fmt: skip
    from artifacts_schema.store.gc import Garbage, collect, plan_gc
    from flows.cli.artifacts import open_store

    opened = open_store(store)
    if artifact is not None:
        manifest, _ = opened.resolve(artifact)
        total = sum(output.bytes for output in manifest.outputs.values())
        garbage = Garbage(artifacts=[manifest], bytes=total, kept=len(opened.keys()) - 1)
    else:
        garbage = plan_gc(opened, min_age_seconds=min_age * 3600, idle_work=idle_work)
    if delete:
        collect(opened, garbage)
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
    if not (garbage.artifacts or garbage.attempts or garbage.work):
        echo(f"nothing to remove; {garbage.kept:,} artifacts are in use")
        return
    verb = "removed" if delete else "would free"
    more = "" if delete else "; --delete removes it"
    echo(f"{verb} {size(garbage.bytes)}, {garbage.kept:,} artifacts stay{more}")
