"""`ingot publish REF --to hub:ORG/NAME`: a release or data set for others, by a plan."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from artifacts_schema.config import format_bytes
from artifacts_schema.errors import IngotError, InputError
from artifacts_schema.identity import short
from flows.analysis.artifacts import open_store
from flows.cli.options import json_option, store_option
from flows.cli.output import Column, echo, print_json, print_table

if TYPE_CHECKING:
    from artifacts_schema.store import Store
    from flows.interchange.hub import Hub
    from flows.interchange.publication import PublicationPlan

MOST_FILES = 40
"""Lines of a plan."""


@click.command("publish")
@click.argument("ref")
@click.option("--to", "to", required=True, metavar="hub:ORG/NAME", help="The repository.")
@click.option("--yes", is_flag=True, help="Publish; without it the plan is printed.")
@click.option("--public", is_flag=True, help="Make a new repository for everybody to read.")
@click.option("--license", "licence", metavar="NAME", help="Where the artifact has no card.")
@click.option(
    "--card",
    metavar="FILE",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="Where the artifact has none.",
)
@click.option(
    "--add",
    "more",
    metavar="FILE",
    multiple=True,
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="A file of yours beside it, such as what `ingot disclose` drafted; may be repeated.",
)
@click.option(
    "--onto",
    metavar="COMMIT",
    help="Replace what the repository holds at this commit, which this store did not publish.",
)
@click.option(
    "--token-file",
    metavar="FILE",
    help="Holds the token, for its owner alone; by default HF_TOKEN or that of `hf auth login`.",
)
@json_option
@store_option
def publish(
    ref: str,
    to: str,
    yes: bool,
    public: bool,
    licence: str | None,
    card: Path | None,
    more: tuple[Path, ...],
    onto: str | None,
    token_file: str | None,
    as_json: bool,
    store: str,
) -> None:
    """Publish REF to a repository of the Hugging Face Hub, as one commit.

    REF is a release, a GGUF folder, a data set or tokens for another trainer. Without --yes the
    plan is printed and nothing is changed. A new repository is private unless it is to be --public.
    """
    from flows.interchange.hub import Hub, read_record
    from flows.interchange.publication import (
        REPO_TYPES,
        Target,
        Wishes,
        find_publishable,
        plan_publication,
    )

    target, opened = Target.parse(to), open_store(store)
    manifest, output = find_publishable(opened, ref)
    hub = Hub(token_file)
    remote = hub.look(target, REPO_TYPES[manifest.output(output).kind])
    text = None if card is None else card.read_bytes()
    wishes = Wishes(not public, onto, licence, text, more)
    record = read_record(opened, target)
    plan = plan_publication(opened, manifest, output, target, remote, record, wishes)
    if not as_json:
        _print_plan(plan)
    revision = _publish(opened, hub, plan) if yes else None
    if as_json:
        print_json({**plan.to_json(), "published": revision})
    elif revision is not None:
        echo(f"\npublished as {revision[:12]}; the store calls it {target.ref}")
    elif not plan.problems and not plan.is_done:
        echo("\nnothing was changed; --yes publishes it")


def _publish(store: Store, hub: Hub, plan: PublicationPlan) -> str:
    """Carry the plan out, and note it in the store; the repository's commit."""
    from flows.interchange.hub import write_record
    from flows.interchange.publication import missing_files

    repo, manifest = plan.target.repo, plan.manifest
    if plan.problems:
        raise InputError("it is not published: " + "; ".join(plan.problems), where=repo)
    if plan.is_done and plan.remote is not None:
        revision = plan.remote.head
    else:
        message = f"{manifest.stage} {short(manifest.key)}, digest {short(plan.digest)}"
        revision = hub.publish(plan, message)
    write_record(store, plan, revision)
    missing = missing_files(plan, hub.look(plan.target, plan.repo_type))
    if missing:
        raise IngotError(
            f"the Hub took the commit {revision[:12]} without {len(missing)} of its files: "
            + ", ".join(missing[:5]),
            where=repo,
            hint="its .gitignore may have named them, which this commit removed: the same command "
            "sends them",
        )
    return revision


def _print_plan(plan: PublicationPlan) -> None:
    remote = plan.remote
    if remote is None:
        where = f"a new {'private' if plan.private else 'PUBLIC'} repository"
    else:
        where = f"a {'private' if remote.private else 'public'} repository at {remote.head[:12]}"
    echo(f"{plan.manifest.stage} {short(plan.manifest.key)} → {plan.target.repo}, {where}")
    sent = plan.to_send
    size = format_bytes(sum(file.bytes for file in sent))
    echo(
        f"{len(sent)} of {len(plan.files)} files to send, {size}; "
        f"licence {plan.licence or 'not stated'}\n"
    )
    rows = [(file.path, format_bytes(file.bytes), str(file.state)) for file in plan.files]
    rows += [(path, "", "removed") for path in plan.removed]
    rest = len(rows) - MOST_FILES
    print_table([Column("file"), Column("size", right=True), Column("")], rows[:MOST_FILES])
    if rest > 0:
        echo(f"… and {rest} more")
    if plan.warnings or plan.problems:
        echo("")
    for warning in plan.warnings:
        echo(f"note: {warning}")
    for problem in plan.problems:
        echo(f"problem: {problem}")
    if plan.is_done:
        echo("the repository holds exactly this")
