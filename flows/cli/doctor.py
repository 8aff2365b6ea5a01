"""`ingot doctor`: checks of this machine, the store and pools, before a night is lost."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import click

from artifacts_schema.errors import EXIT_FAILED
from flows.cli.options import json_option, profile_option, store_option
from flows.cli.output import Column, echo, print_json, print_table
from flows.recipe.dispatch import Check, Dispatcher
from flows.recipe.doctor import diagnose
from flows.recipe.machine_checks import check_machine
from flows.recipe.profile import load_profile

WORDS = {True: "ok", False: "failed", None: "note"}


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
    """Check that this machine, the store and the pools of a profile can run recipes.

    Without pools it is Python, packages, cores, memory, disks, GPU, compiler, Prefect server and
    store. Each pool gets one short job, which tries the store on a node and compares clock,
    versions and code with this machine. Exit codes: 0 all is well, 1 a check failed, 2 wrong
    profile.
    """
    loaded = load_profile(profile, Path.cwd() / "recipe")
    checks: list[Check] = []
    if loaded.pools:
        for check in diagnose(loaded, store, wait=wait):
            checks.append(check)
            if not as_json:
                echo(format_check(check))
    else:
        Dispatcher(loaded)
        checks = [*check_machine(store), _check_server()]
        if not as_json:
            rows = [
                (check.name, WORDS[check.ok], check.text, "" if check.ok else check.hint)
                for check in checks
            ]
            seen, what = Column("seen", wraps=True), Column("what to do", wraps=True)
            print_table(["check", "", seen, what], rows)
    failed = [check for check in checks if check.ok is False]
    if as_json:
        print_json({"ok": not failed, "checks": [asdict(check) for check in checks]})
    else:
        unknown = sum(check.ok is None for check in checks)
        more = f", {unknown} to know about" if unknown else ""
        echo(f"\n{len(checks)} checks: {len(failed)} failed{more}")
    if failed:
        click.get_current_context().exit(EXIT_FAILED)


def _check_server() -> Check:
    """The server that a run would use now."""
    from flows.orchestration.server import find_server, is_answering

    server = find_server()
    if server is None:
        return Check("Prefect", True, "no server yet: `ingot run` and `ingot up` start one")
    if not is_answering(server):
        hint = "start it, or unset PREFECT_API_URL; `ingot run --no-prefect` needs none"
        return Check("Prefect", False, f"{server.api} does not answer", hint)
    return Check("Prefect", True, f"{server.api} answers")


def format_check(check: Check) -> str:
    """One line: whether it is well, its name, what was seen, and what to do about a failure."""
    hint = f" ({check.hint})" if check.hint and check.ok is not True else ""
    return f"{WORDS[check.ok]:<8} {check.name}: {check.text}{hint}".replace("\n", " ")
