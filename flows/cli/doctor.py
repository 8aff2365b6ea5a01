"""`ingot doctor`: checks of the store and of the pools of a profile, before a night is lost."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import click

from artifacts_schema.errors import EXIT_FAILED
from flows.cli.options import json_option, profile_option, store_option
from flows.cli.output import echo, print_json
from flows.recipe.dispatch import Check
from flows.recipe.doctor import diagnose
from flows.recipe.profile import load_profile

WORDS = {True: "ok", False: "failed", None: "unknown"}


@click.command("doctor")
@profile_option
@store_option
@click.option(
    "--wait",
    type=click.FloatRange(min=0),
    default=300.0,
    show_default=True,
    metavar="SECONDS",
    help="How long each probe job may take to answer, in the queue too; 0 sends none.",
)
@json_option
def doctor(profile: str | None, store: str, wait: float, as_json: bool) -> None:
    """Check that the store, this machine and the pools of a profile can run its steps.

    Each pool gets one short job, which tries the store on a node and compares clock, versions and
    code with this machine. Exit codes: 0 all is well, 1 a check failed, 2 wrong profile.
    """
    checks = []
    for check in diagnose(load_profile(profile, Path.cwd() / "recipe"), store, wait=wait):
        checks.append(check)
        if not as_json:
            echo(format_check(check))
    failed = [check for check in checks if check.ok is False]
    if as_json:
        print_json({"ok": not failed, "checks": [asdict(check) for check in checks]})
    else:
        unknown = sum(check.ok is None for check in checks)
        more = f", {unknown} could not be made" if unknown else ""
        echo(f"\n{len(checks)} checks: {len(failed)} failed{more}")
    if failed:
        click.get_current_context().exit(EXIT_FAILED)


def format_check(check: Check) -> str:
    """One line: whether it is well, its name, what was seen, and what to do about a failure."""
    hint = f" ({check.hint})" if check.hint and check.ok is not True else ""
    return f"{WORDS[check.ok]:<8} {check.name}: {check.text}{hint}".replace("\n", " ")
