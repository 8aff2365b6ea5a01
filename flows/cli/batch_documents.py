"""The documents of one training step: the clock is asked again, nothing was stored for it."""

from __future__ import annotations

from typing import Any

from artifacts_schema.errors import UsageError
from artifacts_schema.manifest import Manifest
from artifacts_schema.store import Store
from flows.cli.run_data import run_data
from stages.engine.inputs import Input

ORIGIN = ["doc_id", "url", "snapshot", "origin_file", "origin_offset", "origin_length"]


def batch_documents(store: Store, run: Manifest, step: int) -> list[dict[str, Any]]:
    """Every piece of a document that training step `step` (from 1) of `run` read, row by row.

    Source, sequence, place of the piece in row and document, language, content hash and origin of
    each. Raises UsageError if `run` is no pretraining run, or has no such step or skips it.
    """
    data = run_data(store, run, where="--training-step")
    shards, clock = data.shards, data.clock
    where = f"--training-step {step}"
    if step > clock.steps:
        raise UsageError(f"the run has {clock.steps} training steps", where=where)
    if clock.skipped(step):
        raise UsageError("the run skips this training step: it read nothing", where=where)
    draw = clock.batch(step)
    pieces = shards.documents_of(draw.sources, draw.sequences)
    origins = _origins(store, run, {piece.doc_id for row in pieces for piece in row})
    return [
        {
            "row": number,
            "source": shards.sources[int(draw.sources[number])],
            "sequence": int(draw.sequences[number]),
            "start": piece.start,
            "length": piece.length,
            "document_start": piece.document_start,
            "doc_id": piece.doc_id,
            "language": piece.language,
            "content_hash": piece.content_hash,
            **origins.get(piece.doc_id, dict.fromkeys(ORIGIN[1:])),
        }
        for number, row in enumerate(pieces)
        for piece in row
    ]


def _origins(store: Store, run: Manifest, doc_ids: set[str]) -> dict[str, dict[str, Any]]:
    """Where documents came from, as the corpora tell that the token shards were packed of."""
    import pyarrow as pa
    import pyarrow.compute as pc

    wanted = pa.array(sorted(doc_ids), pa.string())
    found: dict[str, dict[str, Any]] = {}
    for packed in run.inputs["train"]:
        pack = store.manifest(packed.stage, packed.key)
        for reference in pack.inputs.get("documents", ()) if pack is not None else ():
            if store.manifest(reference.stage, reference.key) is None:
                continue
            documents = Input.load(store, reference, full_check=False)
            for path in documents.paths("*.parquet"):
                table = documents.read_table(path, ORIGIN)
                for row in table.filter(pc.is_in(table["doc_id"], value_set=wanted)).to_pylist():
                    found[row.pop("doc_id")] = row
    return found
