"""The training steps that read given sequences or documents: the clock is asked backwards."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from artifacts_schema.manifest import Manifest
from artifacts_schema.store import Store
from flows.cli.run_data import run_data

Sequences = Mapping[str, Mapping[str, Sequence[int]]]
"""Digest of token shards → file of a shard → sequences within it."""


@dataclass(frozen=True)
class Reading:
    """A sequence that holds a document, and the training steps that read it."""

    source: str
    sequence: int
    steps: list[int]


def steps_that_read(store: Store, run: Manifest, wanted: Sequences) -> list[int]:
    """The training steps of a pretraining run, from 1, that read any of these sequences, sorted."""
    data = run_data(store, run, where="run")
    steps: set[int] = set()
    for source, sequences in data.shards.sequences_in(wanted).items():
        steps.update(data.clock.steps_of(source, sequences.tolist()))
    return sorted(steps)


def readings_of(store: Store, run: Manifest, doc_id: str) -> list[Reading]:
    """Every sequence of a pretraining run's shards that holds a document, with its steps."""
    data = run_data(store, run, where="--document")
    return [
        Reading(source, sequence, data.clock.steps_of(source, [sequence]))
        for source, sequences in data.shards.sequences_of([doc_id]).items()
        for sequence in sequences.tolist()
    ]
