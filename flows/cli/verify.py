"""`ingot verify`: whether bytes in the store are still what was committed."""

from __future__ import annotations

from typing import Any

import click

from flows.cli.options import json_option, store_option
from flows.cli.output import echo


@click.command("verify")
@click.argument("refs", nargs=-1, metavar="[REF]...")
@click.option("--quick", is_flag=True, help="Compare sizes only; read no file.")
@store_option
@json_option
def command(refs: tuple[str, ...], quick: bool, store: str, as_json: bool) -> None:
    """Check every file of the artifacts REF, or of all; exit 1 if one differs."""
    from artifacts_schema.errors import CorruptArtifact, IngotError
    from artifacts_schema.store.verify import verify
    from flows.cli.artifacts import open_store
    from flows.cli.output import print_json, size

    opened = open_store(store)
    checked, total = 0, 0
    found: list[dict[str, Any]] = []
    for stage, key in _artifacts(opened, refs):
        checked += 1
        try:
            manifest = opened.manifest(stage, key)
        except CorruptArtifact as error:
            found.append({"stage": stage, "key": key, "path": error.where, "what": error.what})
            continue
        if manifest is None:
            continue  # Collected since it was listed.
        total += sum(output.bytes for output in manifest.outputs.values())
        found += [
            {"stage": stage, "key": key, "path": problem.path, "what": problem.what}
            for problem in verify(opened, manifest, full=not quick)
        ]
    if as_json:
        print_json({"artifacts": checked, "bytes": total, "problems": found})
    else:
        for problem in found:
            echo(f"{problem['stage']} {problem['key'][:12]}: {problem['path']}: {problem['what']}")
        echo(f"{checked:,} artifacts, {size(total)} {'compared by size' if quick else 'read'}")
    if found:
        raise IngotError(
            f"{len(found)} of the files are not what was committed",
            where=opened.url,
            hint="restore them, or run their recipes again: damaged artifacts are made anew",
        )


def _artifacts(store: Any, refs: tuple[str, ...]) -> list[tuple[str, str]]:
    if not refs:
        return list(store.keys())
    manifests = [store.resolve(ref)[0] for ref in refs]
    return list(dict.fromkeys((m.stage, m.key) for m in manifests))
