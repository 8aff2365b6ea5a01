"""`ingot show REF`: everything an artifact says about itself."""

from __future__ import annotations

import json
from typing import Any

import click

from flows.cli.options import json_option, store_option
from flows.cli.output import echo

FILES_SHOWN = 8


@click.command("show")
@click.argument("ref")
@store_option
@json_option
def command(ref: str, store: str, as_json: bool) -> None:
    """Show what REF is: config, inputs, outputs and files, counts, samples, how it was made.

    REF is a name in the store, or a key of 6 or more digits; --json prints the whole manifest.
    """
    from flows.cli.artifacts import names_of, open_store, title
    from flows.cli.output import print_fields, print_json

    opened = open_store(store)
    manifest, only = opened.resolve(ref)
    if as_json:
        print_json(manifest.model_dump(mode="json"))
        return
    echo(f"{title(manifest, names_of(opened))}\n")
    account = manifest.conservation
    print_fields(
        [
            ("key", manifest.key),
            ("version", manifest.version),
            ("reproducible", manifest.reproducible),
            ("committed by", _run_of(manifest)),
            ("on its way", "\n".join(f"{i.label}: {i.key[:12]}" for i in manifest.interims)),
            ("config", _lines(manifest.identity) or "all defaults"),
            ("inputs", _inputs(manifest)),
            ("records", account and f"{account.records_in:,} in, {account.out:,} out"),
            ("dropped", _lines(account.dropped) if account else ""),
            ("counts", _lines(manifest.counts)),
            (
                "samples",
                "\n".join(f"{why}: {s}" for why, ss in manifest.samples.items() for s in ss),
            ),
            ("code", manifest.code.digest[:12]),
            ("libraries", ", ".join(f"{n} {v}" for n, v in manifest.code.libraries.items())),
            ("layout", _lines(manifest.layout)),
            ("telemetry", _lines(manifest.telemetry)),
        ]
    )
    for name in [only] if only else manifest.outputs:
        _show_output(opened, manifest, name)


def _show_output(store: Any, manifest: Any, name: str) -> None:
    from flows.cli.output import Column, print_table, size

    output = manifest.outputs[name]
    rows = f", {output.rows:,} rows" if output.rows else ""
    echo(f"\n{name}: {output.kind}, {size(output.bytes)}{rows}")
    echo(f"  digest {output.digest}")
    echo(f"  {store.backend.full(store.payload(manifest, name))}")
    listed = [
        (
            f"  {file.path}",
            f"{file.bytes:,}",
            "" if file.rows is None else f"{file.rows:,}",
            file.sha256[:12],
        )
        for file in output.files[:FILES_SHOWN]
    ]
    if listed:
        numbers = [Column("bytes", right=True), Column("rows", right=True)]
        print_table(["  file", *numbers, "sha256"], listed)
    if len(output.files) > FILES_SHOWN:
        echo(f"  and {len(output.files) - FILES_SHOWN} more (--json lists all)")


def _run_of(manifest: Any) -> str:
    """The run that committed it before its end."""
    of = manifest.interim_of
    return f"{manifest.stage} {of.run[:12]} on its way, at {of.label} ({of.at:,})" if of else ""


def _inputs(manifest: Any) -> str:
    return "\n".join(
        f"{role}: {r.stage} {r.key[:12]}:{r.output} ({r.digest[:12]})"
        for role, given in manifest.inputs.items()
        for r in given
    )


def _lines(values: dict[str, Any]) -> str:
    return "\n".join(f"{name}: {_shown(value)}" for name, value in values.items())


def _shown(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, int | float) and not isinstance(value, bool):
        return f"{value:,}"
    return json.dumps(value, ensure_ascii=False)
