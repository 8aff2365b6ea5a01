"""`ingot trace REF`: from an artifact, or a batch of a training run, back to the records."""

from __future__ import annotations

from typing import Any

import click

from flows.cli.options import json_option, store_option

FILES_SHOWN = 20


@click.command("trace")
@click.argument("ref")
@store_option
@click.option(
    "--training-step",
    type=click.IntRange(min=1),
    metavar="N",
    help="Name the documents that a training step of this run read.",
)
@click.option(
    "--document",
    metavar="DOC_ID",
    help="Name the training steps of this run that read a document.",
)
@json_option
def command(
    ref: str, store: str, training_step: int | None, document: str | None, as_json: bool
) -> None:
    """Follow an artifact back to the records it came from.

    REF is a name in the store, or a key of 6 or more digits.
    """  # fmt: skip
    from artifacts_schema.errors import UsageError
    from flows.cli.artifacts import open_store

    opened = open_store(store)
    manifest, _ = opened.resolve(ref)
    if training_step is not None and document is not None:
        raise UsageError("give --training-step or --document, not both")
    if training_step is not None:
        _trace_batch(opened, manifest, training_step, as_json)
    elif document is not None:
        _trace_document(opened, manifest, document, as_json)
    else:
        _trace_artifact(opened, manifest, as_json)


def _trace_artifact(store: Any, manifest: Any, as_json: bool) -> None:
    from artifacts_schema.errors import UsageError
    from artifacts_schema.identity import short
    from flows.cli.artifacts import collected_parents, names_of, title, with_ancestors
    from flows.cli.output import print_json, print_table

    found = with_ancestors(store, manifest)
    gone = collected_parents(store, manifest)
    if as_json:
        used = _used(found.values())
        chain = [_artifact_json(store, one, used) for one in found.values()]
        print_json({"chain": chain, "collected": [{"stage": s, "key": k} for s, k in gone]})
        return
    names = names_of(store)
    rows = []
    used = _used(found.values())
    for one in found.values():
        rows.append((title(one, names), _account(one)))
        places = _places(store, one, used)
        rows += [("", place) for place in places[:FILES_SHOWN]]
        if len(places) > FILES_SHOWN:
            rows.append(("", f"and {len(places) - FILES_SHOWN} more files (--json lists all)"))
    print_table(["made", "account"], rows)
    if gone:
        listed = ", ".join(f"{stage} {short(key)}" for stage, key in gone)
        raise UsageError(f"the chain is broken: {listed} was collected", where=store.url)


def _used(manifests: Any) -> set[str]:
    """Digests of the outputs that some artifact of the chain reads."""
    return {r.digest for m in manifests for given in m.inputs.values() for r in given}


def _artifact_json(store: Any, manifest: Any, used: set[str]) -> dict[str, Any]:
    return {
        "stage": manifest.stage,
        "key": manifest.key,
        "outputs": {name: output.digest for name, output in manifest.outputs.items()},
        "inputs": {
            role: [{"stage": r.stage, "key": r.key, "output": r.output} for r in given]
            for role, given in manifest.inputs.items()
        },
        "conservation": manifest.conservation.model_dump() if manifest.conservation else None,
        "counts": manifest.counts,
        "files": _places(store, manifest, used),
    }


def _account(manifest: Any) -> str:
    """Records in and out, or the first counters, or the sizes."""
    from flows.cli.output import size

    account = manifest.conservation
    if account is not None:
        dropped = ", ".join(f"{reason} {n:,}" for reason, n in account.dropped.items())
        return f"{account.records_in:,} in, {account.out:,} out" + (
            f" ({dropped})" if dropped else ""
        )
    if manifest.counts:
        return ", ".join(f"{name} {n:,}" for name, n in list(manifest.counts.items())[:4])
    return size(sum(output.bytes for output in manifest.outputs.values()))


def _places(store: Any, manifest: Any, used: set[str]) -> list[str]:
    """The files of the snapshots that the chain reads: where they lie, or their own names."""
    from stages.engine.inputs import Input

    lines = []
    for name, output in manifest.outputs.items():
        if output.kind != "snapshot" or output.digest not in used:
            continue
        listing = Input.of(store, manifest, name, full_check=False).read_json("snapshot.json")
        locations = store.locations(output.digest)
        for file in listing["files"]:
            place = locations.get(file["name"]) or f"{name}/files/{file['name']}"
            lines.append(f"{listing['name']}: {place}, {file['bytes']:,} bytes")
    return lines


def _trace_batch(store: Any, manifest: Any, step: int, as_json: bool) -> None:
    from flows.cli.batch_documents import batch_documents
    from flows.cli.output import Column, print_json, print_table

    rows = batch_documents(store, manifest, step)
    if as_json:
        print_json({"training_step": step, "pieces": rows})
        return
    print_table(
        [
            Column("row", right=True),
            "source",
            "tokens",
            "language",
            "document",
            "content hash",
            "record",
        ],
        [
            (
                row["row"],
                row["source"],
                f"{row['start']}-{row['start'] + row['length']}",
                row["language"] or "",
                row["doc_id"],
                row["content_hash"],
                f"{row['snapshot']}: {row['origin_file']} at {row['origin_offset']:,}"
                if row["snapshot"]
                else "(collected)",
            )
            for row in rows
        ],
    )


def _trace_document(store: Any, manifest: Any, doc_id: str, as_json: bool) -> None:
    from dataclasses import asdict

    from artifacts_schema.errors import UsageError
    from flows.cli.output import Column, print_json, print_table
    from flows.cli.training_steps import readings_of

    readings = readings_of(store, manifest, doc_id)
    if as_json:
        print_json({"doc_id": doc_id, "readings": [asdict(reading) for reading in readings]})
        return
    if not readings:
        raise UsageError(
            f"the run's token shards hold no document '{doc_id}'",
            where="--document",
            hint="give its whole id; ingot why finds it by address",
        )
    print_table(
        ["source", Column("sequence", right=True), Column("training steps", wraps=True)],
        [
            (
                reading.source,
                f"{reading.sequence:,}",
                ", ".join(f"{step:,}" for step in reading.steps) or "none",
            )
            for reading in readings
        ],
    )
