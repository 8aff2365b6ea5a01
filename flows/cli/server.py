"""`ingot up`, `deploy`, `down` and `schedule`: what a Prefect server knows of Ingot, and ours."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path
from typing import Any

import click

from artifacts_schema.errors import UsageError
from flows.cli.options import (
    debug_option,
    json_option,
    profile_option,
    set_option,
    store_option,
    through_option,
)
from flows.cli.output import Column, echo, print_fields, print_json, print_table
from flows.cli.progress import print_line
from flows.recipe.pipeline import Request
from flows.recipe.recipe import find_recipe, load_recipe


@click.command("up")
@store_option
@click.option("--port", type=click.IntRange(1, 65534), help="Port of the UI.  [default: 4200]")
@click.option("--pool", metavar="NAME", default="ingot", show_default=True, help="Work pool.")
@click.option(
    "--recipe",
    "recipes",
    metavar="FILE",
    multiple=True,
    type=click.Path(path_type=Path),
    help="A recipe of your own to make a form for; may be repeated.",
)
@click.option("--limit", type=click.IntRange(1), help="Runs of the pool at the same time.")
@click.option(
    "--database",
    metavar="URL",
    help="PostgreSQL of the server, postgresql://USER@HOST/NAME, or sqlite.  [default: sqlite]",
)
@click.option(
    "--password-file",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="File (mode 0600) with the database's password.  [default: PGPASSFILE]",
)
@click.option(
    "--keep-days",
    metavar="DAYS",
    type=click.IntRange(0),
    help="Days for which the UI keeps runs that ended; 0 keeps all.  [default: 90]",
)
@click.option(
    "--address", metavar="URL", help="https://HOST of a reverse proxy in front of it; or none."
)
def up(
    store: str,
    port: int | None,
    pool: str,
    recipes: tuple[Path, ...],
    limit: int | None,
    database: str | None,
    password_file: Path | None,
    keep_days: int | None,
    address: str | None,
) -> None:
    """Start the Prefect server, a worker and the server of reports, all on loopback, and keep them.

    Every recipe and every stage becomes a form in the UI, filled in for --store. Run again, it
    brings the forms up to date and restarts no running process. Where PREFECT_API_URL, or Prefect's
    own profile, names a server, the forms are made there and no server is started. The local server
    and the reports ask for the password in ~/.ingot/password, which only you can read. Database,
    days and address are kept for the next start.
    """
    from flows.orchestration import local_state
    from flows.orchestration.control import WORKER, bring_up
    from flows.orchestration.local_state import log_path
    from flows.orchestration.service_settings import load_settings

    place = store if "://" in store else os.path.abspath(store)
    settings = load_settings().changed(database, password_file, keep_days, address)
    status = bring_up(place, recipes, pool, port, print_line, settings=settings, limit=limit)
    server = status.server
    if server.process is None:
        print_line(f"using the Prefect server at {server.api}; none is started here")
    pipelines = [name for name in status.forms if name.startswith("pipeline/")]
    print_fields(
        [
            ("Prefect UI", server.ui),
            ("behind", settings.address if server.process is not None else None),
            ("sign in", f"with the line in {local_state.password_file()}"),
            ("recipes", "\n".join(pipelines)),
            ("stages", f"{len(status.forms) - len(pipelines)} forms, stage/NAME"),
            ("store", status.store),
            ("database", settings.place if server.process is not None else ""),
            ("reports", status.reports),
            ("work pool", status.pool),
            ("worker log", log_path(WORKER)),
            ("server log", log_path("prefect") if server.process is not None else ""),
        ]
    )


@click.command("deploy")
@store_option
@click.option("--profile", metavar="NAME", required=True, help="Where and how the runs run.")
@click.option(
    "--recipe",
    "recipes",
    metavar="FILE",
    multiple=True,
    type=click.Path(path_type=Path),
    help="A recipe of your own to make a form for; may be repeated.",
)
@click.option(
    "--pool", metavar="NAME", help="Work pool.  [default: ingot-PROFILE; ingot for processes]"
)
@click.option("--limit", type=click.IntRange(1), help="Runs of the pool at the same time.")
@json_option
def deploy(
    store: str,
    profile: str,
    recipes: tuple[Path, ...],
    pool: str | None,
    limit: int | None,
    as_json: bool,
) -> None:
    """Register forms on the Prefect server whose runs have a profile, and their work pool.

    The profile's `resources: {flow: …}` says where a run itself goes: a job of a Slurm pool, or a
    process of a worker if it names none. The steps go where the profile sends them. Every form is
    called NAME@PROFILE. Run again, it updates what differs and nothing else.
    """
    from flows.orchestration.control import deploy as register

    place = store if "://" in store else os.path.abspath(store)
    result = register(profile, place, recipes, pool, limit)
    if as_json:
        print_json(dict(result.outcomes))
        return
    counts = Counter(result.outcomes.values())
    forms = [name for name in result.outcomes if name.startswith("pipeline/")]
    print_fields(
        [
            ("Prefect UI", result.server.ui),
            ("recipes", "\n".join(forms)),
            ("stages", f"{sum(name.startswith('stage/') for name in result.outcomes)} forms"),
            ("work pool", f"{result.pool} ({result.type})"),
            ("store", place),
            ("registered", ", ".join(f"{count} {word}" for word, count in counts.items())),
            ("worker", f"prefect worker start --type {result.type} --pool {result.pool}"),
        ]
    )


@click.command("down")
@debug_option
def down() -> None:
    """Stop the local worker, reports and Prefect server.

    Runs that the worker started are stopped too: their stages save what they have, and the next run
    continues there. Runs of `ingot run` go on without the server. The server's history is kept.
    """
    from flows.orchestration.control import bring_down

    stopped = bring_down()
    echo(f"stopped {', '.join(stopped)}" if stopped else "nothing was running")


@click.command("schedule")
@click.argument("recipe", required=False)
@store_option
@click.option("--cron", metavar="CRON", help="When: minute hour day month weekday.")
@click.option(
    "--on-snapshot",
    "series",
    metavar="PATTERN",
    help="When `ingot snapshot watch` took a snapshot of such a name, as 'crawl-*'.",
)
@click.option("--timezone", metavar="ZONE", default="UTC", show_default=True, help="Whose clock.")
@profile_option
@through_option
@set_option
@click.option("--list", "is_list", is_flag=True, help="List all schedules.")
@click.option("--remove", "is_remove", is_flag=True, help="Remove RECIPE's (of --cron, if given).")
@click.option("--pool", metavar="NAME", default="ingot", show_default=True, help="Work pool.")
@json_option
def schedule(
    recipe: str | None,
    cron: str | None,
    series: str | None,
    is_list: bool,
    is_remove: bool,
    as_json: bool,
    **flags: Any,
) -> None:
    """Run RECIPE at the times of --cron, or at new snapshots, in the worker that `ingot up` keeps.

    The recipe is checked now, and again at every run. A run reuses what is unchanged, so it
    costs only what is new. Runs that were missed while a machine was off are not made up for.
    """  # fmt: skip
    if is_list:
        _list_schedules(as_json)
    elif recipe is None:
        raise click.UsageError("name a recipe, or use --list")
    elif is_remove:
        _remove_schedules(recipe, cron, series)
    elif cron is None and series is None:
        raise click.UsageError("say when: --cron '0 3 * * *', or --on-snapshot 'crawl-*'")
    else:
        _add_schedule(recipe, cron, series, as_json, **flags)


def _add_schedule(
    recipe: str,
    cron: str | None,
    series: str | None,
    as_json: bool,
    *,
    timezone: str,
    pool: str,
    **flags: Any,
) -> None:
    from flows.orchestration.control import absolute_parameters, connect_server, worker_pool
    from flows.orchestration.forms import check_recipe

    parameters = absolute_parameters(Request(recipe, **flags))
    check_recipe(parameters)
    connect_server()
    from flows.orchestration.deployments import add_schedule, check_cron
    from flows.orchestration.snapshot_events import start_on_snapshots

    chosen = {
        name: parameters[name] for name in ("profile", "through", "overrides") if parameters[name]
    }
    loaded, store = load_recipe(find_recipe(recipe)), parameters["store"]
    made: dict[str, Any] = {"recipe": loaded.name, "parameters": {**chosen, "store": store}}
    if cron is not None:
        made |= add_schedule(loaded, check_cron(cron, timezone), chosen, store, pool).to_json()
    if series is not None:
        start_on_snapshots(loaded, series, chosen, store, pool)
        made["on_snapshot"] = series
    if as_json:
        print_json(made)
    if not as_json and cron is not None:
        echo(f"{loaded.name} runs at '{cron}' ({timezone}) in {store}")
    if not as_json and series is not None:
        echo(f"{loaded.name} runs at each snapshot '{series}' in {store}")
    if worker_pool() != pool:
        print_line(
            f"no worker takes runs of pool '{pool}' on this machine: start one with `ingot up`"
        )


def _remove_schedules(recipe: str, cron: str | None, series: str | None) -> None:
    from flows.orchestration.control import connect_server

    name = load_recipe(find_recipe(recipe)).name
    connect_server()
    from flows.orchestration.deployments import remove_schedules
    from flows.orchestration.snapshot_events import stop_on_snapshots

    times = remove_schedules(name, cron) if series is None or cron is not None else []
    patterns = stop_on_snapshots(name, series) if cron is None or series is not None else []
    if not times and not patterns:
        raise UsageError(f"{name} has no such schedule", hint="see `ingot schedule --list`")
    for one in times:
        echo(f"removed {one.recipe} at '{one.cron}' ({one.timezone})")
    for pattern in patterns:
        echo(f"removed {name} at snapshots '{pattern}'")


def _list_schedules(as_json: bool) -> None:
    from flows.orchestration.control import connect_server

    connect_server()
    from flows.orchestration.deployments import list_schedules
    from flows.orchestration.snapshot_events import list_on_snapshots

    schedules = list_schedules()
    triggers = list_on_snapshots()
    if as_json:
        values = [one.to_json() for one in schedules]
        print_json([*values, *({"recipe": one, "on_snapshot": name} for one, name in triggers)])
        return
    rows = [
        (
            one.recipe,
            f"{one.cron} ({one.timezone})",
            one.parameters.get("through"),
            one.parameters.get("store"),
        )
        for one in schedules
    ]
    rows += [(one, f"snapshot {name}", None, None) for one, name in triggers]
    print_table(["recipe", "when", "through", Column("store", wraps=True)], rows)
