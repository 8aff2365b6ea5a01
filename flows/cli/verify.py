"""`ingot verify`: whether bytes in the store are still what was committed."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import click

from flows.cli.options import json_option, store_option
from flows.cli.output import echo

Name = tuple[str, str]


@click.command("verify")
@click.argument("refs", nargs=-1, metavar="[REF]...")
@click.option("--quick", is_flag=True, help="Compare sizes only; read no file.")
@click.option("--repair", "repairing", is_flag=True, help="Make what is damaged again.")
@store_option
@json_option
def command(refs: tuple[str, ...], quick: bool, repairing: bool, store: str, as_json: bool) -> None:
    """Check every file of the artifacts REF, or of all; exit 1 if one differs.

    What is found is written down, so that the next plan says corrupt and the run makes it again.
    With --repair it is made again now. A damaged artifact stays until its replacement is committed.
    """
    from artifacts_schema.errors import IngotError
    from flows.cli.artifacts import open_store
    from flows.cli.output import print_json, size

    opened = open_store(store)
    opened.check_mounted()
    checked = _Checked(opened, full=not quick)
    for name in _artifacts(opened, refs):
        checked.check(name)
    unrepaired = _repair(opened, checked) if repairing else {}
    if as_json:
        print_json(
            {
                "artifacts": checked.artifacts,
                "bytes": checked.bytes,
                "problems": checked.problems,
                "unrepaired": {f"{s} {k}": why for (s, k), why in unrepaired.items()},
            }
        )
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
        raise IngotError(
            f"{len(unrepaired)} artifacts could not be repaired",
            where=opened.url,
            hint="they stay as they are",
        )
    if checked.problems and not repairing:
        raise IngotError(
            f"{len(checked.problems)} of the files are not what was committed",
            where=opened.url,
            hint="restore them and verify again, or make the artifacts again: "
            "ingot verify --repair, or ingot run with their recipes",
        )


@dataclass
class _Checked:
    """What was read, and what is wrong with it."""

    store: Any
    full: bool
    artifacts: int = 0
    bytes: int = 0
    problems: list[dict[str, Any]] = field(default_factory=list)
    names: list[Name] = field(default_factory=list)
    """The damaged artifacts."""

    def check(self, name: Name) -> None:
        """Check one artifact, and write down what is wrong with it."""
        from artifacts_schema.errors import CorruptArtifact
        from stages.engine.checking import check_artifact

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
        if self.full:
            self._record(manifest, problems)
        for problem in problems:
            self._add(name, problem.path, problem.what)

    def _add(self, name: Name, path: str, what: str) -> None:
        if name not in self.names:
            self.names.append(name)
        self.problems.append({"stage": name[0], "key": name[1], "path": path, "what": what})

    def _record(self, manifest: Any, problems: Any) -> None:
        """A store that cannot be written is checked all the same; the plan learns nothing then."""
        from artifacts_schema.errors import StoreError
        from artifacts_schema.store.damage import record_damage, recorded_damage

        try:
            if problems or recorded_damage(self.store, manifest):
                record_damage(self.store, manifest, problems)
        except StoreError as error:
            echo(f"warning: the result is not written down: {error}", err=True)


def _repair(store: Any, checked: _Checked) -> dict[Name, str]:
    """Make the damaged artifacts again; why not, for each that stays damaged."""
    from artifacts_schema.errors import IngotError, Stopped
    from flows.cli.progress import shown, stop_on_signals
    from flows.recipe.repair import repair, sort_parents_first

    unrepaired: dict[Name, str] = {}
    with shown() as observer, stop_on_signals() as stopping:
        for name in sort_parents_first(store, checked.names):
            try:
                repair(store, *name, observer=observer, stopping=stopping)
            except Stopped:
                raise
            except IngotError as error:
                unrepaired[name] = str(error)
    return unrepaired


def _artifacts(store: Any, refs: tuple[str, ...]) -> list[Name]:
    """(stage, key) of what REFs name, whether or not their manifests can be read."""
    keys = list(store.keys())
    if not refs:
        return keys
    named: list[Name] = []
    for ref in refs:
        target = store.ref(ref.removeprefix("@").partition(":")[0])
        if target is not None and (target.stage, target.key) in keys:
            named.append((target.stage, target.key))
            continue
        matching = [name for name in keys if len(ref) >= 6 and name[1].startswith(ref)]
        manifest = None if len(matching) == 1 else store.resolve(ref)[0]
        named.append((manifest.stage, manifest.key) if manifest is not None else matching[0])
    return list(dict.fromkeys(named))
