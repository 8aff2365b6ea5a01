"""`ingot trace REF`: from an artifact, or a batch of a training run, back to the records."""

from __future__ import annotations

from dataclasses import asdict

import click

from artifacts_schema.errors import UsageError
from artifacts_schema.identity import short
from artifacts_schema.manifest import Manifest
from artifacts_schema.store import Store
from flows.analysis.artifacts import (
    format_title,
    open_store,
    refs_by_artifact,
    trace_artifact,
)
from flows.analysis.training_batches import find_readings, read_batch_documents
from flows.cli.options import json_option, store_option
from flows.cli.output import Column, print_json, print_table, size

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
def trace(
    ref: str, store: str, training_step: int | None, document: str | None, as_json: bool
) -> None:
    """Follow an artifact back to the records it came from.

    REF is a name in the store, or a key of 6 or more digits.
    """  # fmt: skip
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


def _trace_artifact(store: Store, manifest: Manifest, as_json: bool) -> None:
    trace = trace_artifact(store, manifest)
    if as_json:
        print_json(trace.to_json())
        return
    refs = refs_by_artifact(store)
    rows = []
    for one in trace.chain:
        rows.append((format_title(one, refs), _format_account(one)))
        files = trace.files[one.stage, one.key]
        rows += [("", file) for file in files[:FILES_SHOWN]]
        if len(files) > FILES_SHOWN:
            rows.append(("", f"and {len(files) - FILES_SHOWN} more files (--json lists all)"))
    print_table(["made", "account"], rows)
    if trace.collected:
        names = ", ".join(f"{stage} {short(key)}" for stage, key in trace.collected)
        raise UsageError(f"the chain is broken: {names} was collected", where=store.url)


def _format_account(manifest: Manifest) -> str:
    """Records in and out, or the first counters, or the sizes."""
    account = manifest.conservation
    if account is not None:
        dropped = ", ".join(f"{reason} {n:,}" for reason, n in account.dropped.items())
        reasons = f" ({dropped})" if dropped else ""
        return f"{account.records_in:,} in, {account.out:,} out{reasons}"
    if manifest.counts:
        return ", ".join(f"{name} {n:,}" for name, n in list(manifest.counts.items())[:4])
    return size(sum(output.bytes for output in manifest.outputs.values()))


def _trace_batch(store: Store, manifest: Manifest, step: int, as_json: bool) -> None:
    rows = read_batch_documents(store, manifest, step)
    if as_json:
        print_json({"training_step": step, "pieces": rows})
        return
    cells = []
    for row in rows:
        tokens = f"{row['start']}-{row['start'] + row['length']}"
        record = "(conversation)" if row["conversation"] else "(collected)"
        if row["snapshot"]:
            record = f"{row['snapshot']}: {row['origin_file']} at {row['origin_offset']:,}"
        names = ("language", "doc_id", "content_hash")
        cells.append((row["row"], row["source"], tokens, *map(row.get, names), record))
    columns = ("source", "tokens", "language", "document", "content hash", "record")
    print_table([Column("row", right=True), *columns], cells)


def _trace_document(store: Store, manifest: Manifest, doc_id: str, as_json: bool) -> None:
    readings = find_readings(store, manifest, doc_id)
    if as_json:
        print_json({"doc_id": doc_id, "readings": [asdict(reading) for reading in readings]})
        return
    if not readings:
        raise UsageError(
            f"the run's token shards hold no document '{doc_id}'",
            where="--document",
            hint="give its whole id; ingot why finds it by address",
        )
    rows = [
        (one.source, f"{one.sequence:,}", ", ".join(f"{step:,}" for step in one.steps) or "none")
        for one in readings
    ]
    sequence, steps = Column("sequence", right=True), Column("training steps", wraps=True)
    print_table(["source", sequence, steps], rows)
