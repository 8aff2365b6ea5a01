"""`ingot gc` and `ingot verify`: remove what nothing refers to, and check what is kept."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any

import click

from artifacts_schema.config import parse_size
from artifacts_schema.errors import CorruptArtifact, IngotError, Stopped, StoreError, UsageError
from artifacts_schema.store import Store
from artifacts_schema.store.budget import BudgetPlan, drop_refs, plan_budget
from artifacts_schema.store.gc import Garbage, collect, plan_gc
from artifacts_schema.store.verify import record_damage, recorded_damage
from flows.analysis.artifacts import ArtifactName, open_store, warn_damaged
from flows.cli.options import json_option, store_option
from flows.cli.output import Column, echo, print_json, print_table, size
from flows.cli.progress import show_progress, stop_on_signals
from flows.recipe.repair import repair, sort_parents_first
from stages.engine.provenance import check_artifact


def _check_finite(context: click.Context, parameter: click.Parameter, value: float) -> float:
    """`nan` passes every range check, and nothing is younger than it."""
    if not math.isfinite(value):
        raise click.BadParameter(f"{value} is not a number of hours.")
    return value


@click.command("gc")
@click.option("--delete", is_flag=True, help="Remove it; otherwise only say what would go.")
@click.option(
    "--min-age",
    type=click.FloatRange(min=0),
    callback=_check_finite,
    default=24.0,
    show_default=True,
    metavar="HOURS",
    help="Keep unnamed artifacts younger than this.",
)
@click.option("--work", "idle_work", is_flag=True, help="Also resume state that no run holds.")
@click.option("--artifact", metavar="REF", help="This artifact alone, whatever refers to it.")
@click.option("--budget", metavar="SIZE", help="Propose refs to drop until the store takes this.")
@click.option("--keep", multiple=True, metavar="PATTERN", help="Refs that --budget never drops.")
@store_option
@json_option
def gc(
    delete: bool,
    min_age: float,
    idle_work: bool,
    artifact: str | None,
    budget: str | None,
    keep: tuple[str, ...],
    store: str,
    as_json: bool,
) -> None:
    """Say what nothing refers to any more, and remove it with --delete.

    Refs, running work and whatever is young keep an artifact and all that it was made of. What came
    into use since it was listed stays. With --budget 2TB the refs that were not written for longest
    are proposed as well, each with what it frees; --delete drops them.
    """  # fmt: skip
    opened = open_store(store)
    if budget is not None or keep:
        _check_budget_options(budget, artifact)
    if budget is not None:
        plan = plan_budget(
            opened,
            _parse_budget(budget),
            min_age_seconds=min_age * 3600,
            idle_work=idle_work,
            keep=lambda ref: any(fnmatchcase(ref, pattern) for pattern in keep),
        )
        if not delete:
            _print_budget(plan, as_json)
            return
        _check_reached(plan, opened)
        for ref in drop_refs(opened, plan):
            if not as_json:
                echo(f"ref       {ref}")
    if artifact is not None:
        manifest, _ = opened.resolve(artifact)
        garbage = Garbage(artifacts=[manifest], kept=len(opened.keys()) - 1, by_name=True)
    else:
        garbage = plan_gc(opened, min_age_seconds=min_age * 3600, idle_work=idle_work)
    for error in garbage.unreadable:
        warn_damaged(error)
    if garbage.unreadable:
        echo("warning: all artifacts are kept, since these may name any of them", err=True)
    if delete:
        garbage = collect(opened, garbage)
        if artifact is not None and not garbage.artifacts:
            raise StoreError("a run works on this artifact now", where=artifact, hint="stop it")
    _print_garbage(garbage, delete, as_json)


def _print_garbage(garbage: Garbage, deleted: bool, as_json: bool) -> None:
    """What was removed, or would be."""
    if as_json:
        print_json(
            {
                "deleted": deleted,
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
        echo(f"launch    {len(garbage.launch):,} files of finished runs")
    if not (garbage.artifacts or garbage.attempts or garbage.work or garbage.launch):
        echo(f"nothing to remove; {garbage.kept:,} artifacts are in use")
        return
    verb = "removed" if deleted else "would free"
    more = "" if deleted else "; --delete removes it"
    echo(f"{verb} {size(garbage.bytes)}, {garbage.kept:,} artifacts stay{more}")


def _check_budget_options(budget: str | None, artifact: str | None) -> None:
    if budget is None:
        raise click.UsageError("--keep goes with --budget")
    if artifact is not None:
        raise click.UsageError("--artifact and --budget exclude each other")


def _parse_budget(text: str) -> int:
    try:
        return parse_size(text)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--budget") from None


def _check_reached(plan: BudgetPlan, store: Store) -> None:
    """Refuse to drop every name for a budget that is out of reach all the same."""
    if not plan.is_reached:
        raise UsageError(
            f"the budget of {size(plan.budget)} cannot be reached: "
            f"{size(plan.bytes_after)} would stay",
            where=store.url,
            hint="nothing was changed; ingot gc --budget without --delete lists what holds the "
            "rest. Raise the budget, or lower --min-age",
        )


def _print_budget(plan: BudgetPlan, as_json: bool) -> None:
    if as_json:
        print_json(
            {
                "budget": plan.budget,
                "bytes": plan.bytes_now,
                "bytes_after": plan.bytes_after,
                "reached": plan.is_reached,
                "unnamed_bytes": plan.garbage_bytes,
                "drops": [
                    {"ref": d.ref, "stage": d.target.stage, "key": d.target.key,
                     "named": d.named, "artifacts": d.artifacts, "bytes": d.bytes}
                    for d in plan.drops
                ],
                "held": plan.held,
            }
        )  # fmt: skip
        return
    for error in plan.garbage.unreadable:
        warn_damaged(error)
    echo(f"store     {size(plan.bytes_now)}, budget {size(plan.budget)}")
    if plan.garbage_bytes:
        echo(f"unnamed   frees {size(plan.garbage_bytes)}; no ref needs to go for it")
    rows = [
        (drop.ref, time.strftime("%Y-%m-%d", time.gmtime(drop.named)), f"{drop.artifacts:,}",
         size(drop.bytes))
        for drop in plan.drops
    ]  # fmt: skip
    if rows:
        titles = (Column("artifacts", right=True), Column("frees", right=True))
        print_table(["ref to drop", "last written", *titles], rows)
    if plan.is_reached:
        echo(
            f"would leave {size(plan.bytes_after)}; --delete drops these refs and removes the rest"
        )
        return
    echo(f"the budget cannot be reached: {size(plan.bytes_after)} would stay, held by")
    for holder, held in sorted(plan.held.items(), key=lambda item: -item[1]):
        if held:
            echo(f"  {holder}: {size(held)}")


@click.command("verify")
@click.argument("refs", nargs=-1, metavar="[REF]...")
@click.option("--quick", is_flag=True, help="Compare sizes only; read no file.")
@click.option("--repair", "repairing", is_flag=True, help="Make what is damaged again.")
@store_option
@json_option
def verify(refs: tuple[str, ...], quick: bool, repairing: bool, store: str, as_json: bool) -> None:
    """Check every file of the artifacts REF, or of all; exit 1 if one differs.

    Damage is recorded, so that the next plan says corrupt and the run makes the artifact again.
    With --repair it is made again now. A damaged artifact stays until its replacement is committed.
    """
    opened = open_store(store)
    opened.check_mounted()
    checked = _Check(opened, full=not quick)
    for name in _select_artifacts(opened, refs):
        checked.check(name)
    unrepaired = _repair(opened, checked) if repairing else {}
    if as_json:
        reasons = {f"{stage} {key}": why for (stage, key), why in unrepaired.items()}
        counts = {"artifacts": checked.artifacts, "bytes": checked.bytes}
        print_json({**counts, "problems": checked.problems, "unrepaired": reasons})
    else:
        for problem in checked.problems:
            echo(f"{problem['stage']} {problem['key'][:12]}: {problem['path']}: {problem['what']}")
        for (stage, key), why in unrepaired.items():
            echo(f"{stage} {key[:12]}: not repaired: {why}")
        read = "compared by size" if quick else "read"
        echo(f"{checked.artifacts:,} artifacts, {size(checked.bytes)} {read}")
        if repairing and checked.problems:
            echo(f"{len(checked.names) - len(unrepaired):,} made again")
    if unrepaired:
        what = f"{len(unrepaired)} artifacts could not be repaired"
        raise IngotError(what, where=opened.url, hint="they are unchanged")
    if checked.problems and not repairing:
        raise IngotError(
            f"{len(checked.problems)} of the files are not what was committed",
            where=opened.url,
            hint="restore them and verify again, or make the artifacts again: "
            "ingot verify --repair, or ingot run with their recipes",
        )


@dataclass
class _Check:
    """The artifacts that were checked, and what is wrong with them."""

    store: Store
    full: bool
    artifacts: int = 0
    bytes: int = 0
    problems: list[dict[str, Any]] = field(default_factory=list)
    names: list[ArtifactName] = field(default_factory=list)
    """The damaged artifacts."""

    def check(self, name: ArtifactName) -> None:
        """Check one artifact, and record its problems."""
        self.artifacts += 1
        try:
            manifest = self.store.manifest(*name)
        except CorruptArtifact as error:
            self._add(name, str(error.where), error.what)
            return
        if manifest is None:
            return  # Collected since it was listed.
        self.bytes += sum(output.bytes for output in manifest.outputs.values())
        problems = check_artifact(self.store, manifest, full=self.full)
        for problem in problems:
            self._add(name, problem.path, problem.what)
        try:  # For the next plan.
            if self.full and (problems or recorded_damage(self.store, manifest)):
                record_damage(self.store, manifest, problems)
        except StoreError as error:  # It can be read only.
            echo(f"warning: the result is not recorded: {error}", err=True)

    def _add(self, name: ArtifactName, path: str, what: str) -> None:
        if name not in self.names:
            self.names.append(name)
        self.problems.append({"stage": name[0], "key": name[1], "path": path, "what": what})


def _repair(store: Store, checked: _Check) -> dict[ArtifactName, str]:
    """Make the damaged artifacts again; returns the reason for each that stays damaged."""
    unrepaired: dict[ArtifactName, str] = {}
    with show_progress() as observer, stop_on_signals() as stopping:
        for name in sort_parents_first(store, checked.names):
            try:
                repair(store, *name, observer=observer, stopping=stopping)
            except Stopped:
                raise
            except IngotError as error:
                unrepaired[name] = str(error)
    return unrepaired


def _select_artifacts(store: Store, refs: tuple[str, ...]) -> list[ArtifactName]:
    """The artifacts that REFs name, whether or not their manifests can be read."""
    keys = list(store.keys())
    if not refs:
        return keys
    names: list[ArtifactName] = []
    for ref in refs:
        target = store.ref(ref.removeprefix("@").partition(":")[0])
        if target is not None and (target.stage, target.key) in keys:
            names.append((target.stage, target.key))
            continue
        matching = [name for name in keys if len(ref) >= 6 and name[1].startswith(ref)]
        manifest = None if len(matching) == 1 else store.resolve(ref)[0]
        names.append((manifest.stage, manifest.key) if manifest is not None else matching[0])
    return list(dict.fromkeys(names))
