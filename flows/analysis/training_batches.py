"""Which documents a training step read, and which training steps read a document.

Nothing is stored for this: the token shards and the sample clock of the run are opened again from
its manifest, and queried in either direction.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from artifacts_schema.errors import UsageError
from artifacts_schema.identity import short
from artifacts_schema.manifest import Manifest
from artifacts_schema.store import Store
from flows.analysis.artifacts import load_inputs
from flows.analysis.documents import find_all_rows
from stages.engine.inputs import Input
from stages.engine.protocol import stage_named

if TYPE_CHECKING:
    from stages.training.sample_clock import SampleClock
    from stages.training.token_shards import TokenShards

ORIGIN_COLUMNS = ("url", "snapshot", "origin_file", "origin_offset", "origin_length")

Sequences = Mapping[str, Mapping[str, Sequence[int]]]
"""Digest of token shards → file of a shard → sequences within it."""


@dataclass(frozen=True)
class RunData:
    """The token shards of a run, and the clock that says in which training step each was read."""

    shards: TokenShards
    clock: SampleClock


CLOCK_STAGES = ("pretrain", "sft", "packed_preference")
"""Those that read token shards by the sample clock."""


@dataclass(frozen=True)
class SequenceReading:
    """A sequence that holds a document, and the training steps that read it."""

    source: str
    sequence: int
    steps: list[int]


def open_run_data(store: Store, run: Manifest, *, where: str) -> RunData:
    """The token shards and the sample clock of a pretraining run.

    Raises UsageError (about `where`) if `run` is not one, InputError if its shards were collected.
    """
    if run.stage not in CLOCK_STAGES:
        raise UsageError(
            f"{run.stage} {short(run.key)} is not a pretraining run",
            where=where,
            hint="give the ref of a pretrain step",
        )
    from stages.pretrain.plan import clock_of_run
    from stages.training.sample_clock import SampleClock
    from stages.training.token_shards import TokenShards

    config: Any = stage_named(run.stage).Config.parse(run.config, where="the run's config")
    shards = TokenShards(load_inputs(store, {"train": run.inputs["train"]})["train"])
    clock = clock_of_run(config, shards.sequences, shards.lengths)
    if "training_run" in run.outputs:
        summary = Input.from_manifest(store, run, "training_run").read_json("run.json")
        if ranges := [tuple(one) for one in summary.get("left_out_training_steps", ())]:
            skipped = [*clock.skip, *ranges]  # By rollbacks.
            clock = SampleClock(shards.sequences, clock.phases, config.seed, skipped)
    return RunData(shards, clock)


def find_training_steps(store: Store, run: Manifest, sequences: Sequences) -> list[int]:
    """The training steps of a pretraining run, from 1, that read any of these sequences, sorted."""
    data = open_run_data(store, run, where="run")
    steps: set[int] = set()
    for source, rows in data.shards.sequences_in(sequences).items():
        steps.update(data.clock.steps_of(source, rows.tolist()))
    return sorted(steps)


def find_readings(store: Store, run: Manifest, doc_id: str) -> list[SequenceReading]:
    """Every sequence of a pretraining run's shards that holds a document, with its steps."""
    data = open_run_data(store, run, where="--document")
    lines: dict[str, dict[str, set[int]]] = {}
    for shards in load_inputs(store, {"train": run.inputs["train"]})["train"]:
        for path, _, values in find_all_rows(shards, "*.index.parquet", [doc_id], ["sequence"]):
            file = path.removesuffix(".index.parquet") + ".tokens"
            lines.setdefault(shards.digest, {}).setdefault(file, set()).add(values["sequence"])
    return [
        SequenceReading(source, sequence, data.clock.steps_of(source, [sequence]))
        for source, sequences in data.shards.sequences_in(lines).items()
        for sequence in sequences.tolist()
    ]


def read_batch_documents(store: Store, run: Manifest, step: int) -> list[dict[str, Any]]:
    """Every piece of a document that training step `step` (from 1) of `run` read, row by row.

    Source, sequence, position of the piece in row and document, language, content hash and origin
    of each; of a conversation, `doc_id` is its id, and it has no origin. Raises UsageError if `run`
    is not a pretraining run, or has no such step or skips it.
    """
    data = open_run_data(store, run, where="--training-step")
    shards, clock = data.shards, data.clock
    where = f"--training-step {step}"
    if step > clock.steps:
        raise UsageError(f"the run has {clock.steps} training steps", where=where)
    if clock.skipped(step):
        raise UsageError("the run skips this training step: it read nothing", where=where)
    draw = clock.batch(step)
    pieces = shards.documents_of(draw.sources, draw.sequences)
    origins = _read_origins(store, run, {piece.doc_id for row in pieces for piece in row})
    return [
        {
            "row": number,
            "source": shards.sources[int(draw.sources[number])],
            "sequence": int(draw.sequences[number]),
            "start": piece.start,
            "length": piece.length,
            "document_start": piece.document_start,
            "doc_id": piece.doc_id,
            "conversation": shards.sources[int(draw.sources[number])] in shards.marked_sources,
            "language": piece.language,
            "content_hash": piece.content_hash,
            **origins.get(piece.doc_id, dict.fromkeys(ORIGIN_COLUMNS)),
        }
        for number, row in enumerate(pieces)
        for piece in row
    ]


def _read_origins(store: Store, run: Manifest, doc_ids: set[str]) -> dict[str, dict[str, Any]]:
    """Records of documents, by the corpora that the token shards were packed from."""
    origins: dict[str, dict[str, Any]] = {}
    for shards in run.inputs["train"]:
        pack = store.manifest(shards.stage, shards.key)
        for reference in pack.inputs.get("documents", ()) if pack is not None else ():
            if store.manifest(reference.stage, reference.key) is None:
                continue
            documents = Input.load(store, reference, full_check=False)
            for _, _, row in find_all_rows(documents, "*.parquet", doc_ids, ORIGIN_COLUMNS):
                origins[row.pop("doc_id")] = row
    return origins
