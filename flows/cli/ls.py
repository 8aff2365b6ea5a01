"""`ingot ls`: artifacts and their names."""

from __future__ import annotations

from typing import Any

import click

from flows.cli.options import json_option, store_option


@click.command("ls")
@click.argument("what", required=False, metavar="[STAGE|REF]")
@store_option
@json_option
def command(what: str | None, store: str, as_json: bool) -> None:
    """List artifacts with their outputs, sizes and names, the oldest first.

    With STAGE only those of that stage; with the beginning of a REF only those so named.
    """
    from artifacts_schema.errors import CorruptArtifact, UsageError
    from artifacts_schema.identity import short
    from flows.cli.artifacts import names_of, open_store, warn_damaged
    from flows.cli.output import Column, print_json, print_table, size

    opened = open_store(store)
    names = names_of(opened)
    found = []
    damaged: list[CorruptArtifact] = []
    for manifest in opened.manifests(on_damage=damaged.append):
        own = names.get((manifest.stage, manifest.key), [])
        if what is None or manifest.stage == what or any(name.startswith(what) for name in own):
            found.append((manifest, own))
    for error in damaged:
        warn_damaged(error)
    if what is not None and not found:
        raise UsageError(f"no artifact of stage or name '{what}'", where=opened.url)
    found.sort(key=lambda pair: (str(pair[0].telemetry.get("finished", "")), pair[0].stage))
    if as_json:
        print_json([_json(manifest, own) for manifest, own in found])
        return
    rows = [
        (
            manifest.stage,
            short(manifest.key),
            ", ".join(_output(name, output) for name, output in manifest.outputs.items()),
            size(sum(output.bytes for output in manifest.outputs.values())),
            manifest.telemetry.get("finished", "")[:16].replace("T", " "),
            ", ".join(own),
        )
        for manifest, own in found
    ]
    outputs, total = Column("outputs", wraps=True), Column("size", right=True)
    print_table(["stage", "key", outputs, total, "made (UTC)", Column("names", wraps=True)], rows)


def _output(name: str, output: Any) -> str:
    kind = "" if name == output.kind else f" ({output.kind})"
    rows = f" {output.rows:,}" if output.rows else ""
    return f"{name}{kind}{rows}"


def _json(manifest: Any, names: list[str]) -> dict[str, Any]:
    return {
        "stage": manifest.stage,
        "version": manifest.version,
        "key": manifest.key,
        "names": names,
        "interim_of": manifest.interim_of.model_dump() if manifest.interim_of else None,
        "finished": manifest.telemetry.get("finished"),
        "outputs": {
            name: {
                "kind": output.kind,
                "digest": output.digest,
                "files": len(output.files),
                "bytes": output.bytes,
                "rows": output.rows,
            }
            for name, output in manifest.outputs.items()
        },
    }
