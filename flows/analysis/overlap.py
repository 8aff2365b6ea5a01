"""How much of one corpus lies in another, before a run compares them: read once, kept as sketches.

A corpus is an output of documents, conversations or preferences, or a snapshot that a step has read
into one of these. Shards go to processes; nothing is written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, Literal

import pyarrow as pa
import pyarrow.compute as pc

from artifacts_schema.errors import IngotError, UsageError
from artifacts_schema.identity import short
from artifacts_schema.manifest import Manifest
from artifacts_schema.store import Store
from flows.analysis.artifacts import list_manifests
from flows.analysis.corpus_sketch import (
    UNITS,
    Comparison,
    CorpusSketch,
    Estimate,
    TextUnits,
    compare,
    share_held,
)
from stages.dedup.signing import document_batches
from stages.engine.inputs import Input, Shard
from stages.engine.workers import Workers
from stages.text.chat_rows import ID_COLUMN, list_texts

KINDS = ("documents", *ID_COLUMN)
"""Kinds of outputs whose rows are texts."""
GroupBy = Literal["source", "language"]
Progress = Callable[[int, int], None]
"""Called with rows that were read, and all rows."""


@dataclass(frozen=True)
class ComparedCorpus:
    """An output, and the snapshot whose rows alone are read of it (None: all rows)."""

    manifest: Manifest
    source: Input
    snapshot: str | None = None

    @classmethod
    def open(cls, store: Store, text: str) -> ComparedCorpus:
        """The corpus that a ref or key names, with or without an output.

        UsageError for what holds no texts, or does not say which of several outputs is meant.
        """
        manifest, output = store.resolve(text)
        outputs = [output] if output else list(manifest.outputs)
        snapshot = None
        if [manifest.output(name).kind for name in outputs] == ["snapshot"]:
            listing = Input.from_manifest(store, manifest, outputs[0], full_check=False)
            snapshot = str(listing.read_json("snapshot.json")["name"])
            manifest = _find_reader(store, listing.digest, text)
            outputs = [n for n in manifest.outputs if manifest.output(n).kind == "documents"]
        chosen = _choose_output(manifest, outputs, text)
        source = Input.from_manifest(store, manifest, chosen, full_check=False)
        return cls(manifest, source, snapshot)


def _find_reader(store: Store, digest: str, text: str) -> Manifest:
    """The artifact whose documents were read from the snapshot of this digest."""
    readers = [
        one
        for one in list_manifests(store)
        if any(reference.digest == digest for reference in chain(*one.inputs.values()))
        and any(entry.kind == "documents" for entry in one.outputs.values())
    ]
    if not readers:
        raise UsageError(
            "no step of this store has made documents of this snapshot",
            where=text,
            hint=f"read it first: ingot stage ingest --input snapshot={text}",
        )
    if len(readers) > 1:
        names = ", ".join(f"{one.stage} {short(one.key)}" for one in readers)
        raise UsageError(f"read more than once: {names}", where=text, hint="name one of these keys")
    return readers[0]


def _choose_output(manifest: Manifest, outputs: Sequence[str], text: str) -> str:
    """The output of texts among these that has any rows; the first one if none has."""
    known = [name for name in outputs if manifest.output(name).kind in KINDS]
    if not known:
        raise UsageError(
            f"{manifest.stage} {short(manifest.key)} holds no texts",
            where=text,
            hint=f"give an output of kind {', '.join(KINDS)}, or a snapshot that `ingest` has read",
        )
    filled = [name for name in known if manifest.output(name).rows]
    if len(filled) > 1:
        raise UsageError(
            f"{manifest.stage} {short(manifest.key)} has several outputs of texts",
            where=text,
            hint=f"name one: {', '.join(f'{text}:{name}' for name in filled)}",
        )
    return (filled or known)[0]


@dataclass(frozen=True)
class _Task:
    """A shard of a corpus, for a worker."""

    id: str
    corpus: int
    shard: Shard
    snapshot: str | None
    group_by: GroupBy | None


def sketch_shard(task: _Task) -> CorpusSketch:
    """Read a shard, a megabyte of text at a time."""
    # Arrow's own allocator keeps some 40 MB more of what batches took.
    pa.set_memory_pool(pa.system_memory_pool())
    make_units, sketch = TextUnits(), CorpusSketch()
    columns = ["snapshot", *([task.group_by] if task.group_by else [])]
    for batch in _read(task.shard, columns):
        if task.snapshot is not None:
            batch = batch.filter(pc.equal(batch["snapshot"], task.snapshot))
        groups = batch[task.group_by] if task.group_by else None
        sketch.add(make_units(batch["text"]), groups)
    return sketch


def _read(shard: Shard, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """Texts with other columns; of a conversation or pair all its texts, a line feed between."""
    if shard.input.kind == "documents":
        for batch in document_batches(shard, ["text", *columns]):
            yield pa.RecordBatch.from_pydict(batch)
        return
    for group in shard.row_groups():
        rows = group.to_pylist()
        values = {name: pa.array([row.get(name) for row in rows], pa.string()) for name in columns}
        texts = ["\n".join(one.text for one in list_texts(row, shard.input.kind)) for row in rows]
        yield pa.RecordBatch.from_pydict({"text": pa.array(texts, pa.string()), **values})


def sketch_corpora(
    corpora: Sequence[ComparedCorpus], *, workers: int, group_by: GroupBy | None, progress: Progress
) -> list[CorpusSketch]:
    """The sketch of each corpus, by `workers` processes at most (one: this one).

    Sketches of shards are merged as they come: neither their order nor the workers change a bit.
    """
    tasks = {
        (task := _Task(f"{place}-{shard.id}", place, shard, corpus.snapshot, group_by)).id: task
        for place, corpus in enumerate(corpora)
        for shard in corpus.source.shards()
    }
    sketches = [CorpusSketch() for _ in corpora]
    rows, total = 0, sum(task.shard.rows for task in tasks.values())
    progress(rows, total)
    for name, sketch in _sketch_all(tasks, min(workers, len(tasks))):
        sketches[tasks[name].corpus].merge(sketch)
        rows += tasks[name].shard.rows
        progress(rows, total)
    return sketches


def _sketch_all(tasks: dict[str, _Task], workers: int) -> Iterator[tuple[str, CorpusSketch]]:
    """The sketch of every task by its id, in the order in which they are finished."""
    if workers <= 1:
        yield from ((name, sketch_shard(task)) for name, task in tasks.items())
        return
    pool, waiting = Workers(modules=[__name__]), list(reversed(tasks))
    try:
        pool.lend(workers)
        while waiting or pool.busy:
            while waiting and pool.idle:
                name = waiting.pop()
                pool.start(name, sketch_shard, tasks[name])
            finished, crashes = pool.wait(0.5)
            if crashes:
                raise IngotError(
                    f"a worker process died ({crashes[0].how})",
                    where=f"shard {crashes[0].item}",
                    hint="with fewer --workers, if memory was short",
                )
            yield from finished
    finally:
        pool.close()


@dataclass(frozen=True)
class GroupOverlap:
    """How much of the documents of one source or language of A lies in B."""

    name: str
    documents: int
    shares: dict[str, Estimate | None]
    """By unit."""


@dataclass(frozen=True)
class Overlap:
    """Two corpora compared."""

    documents: tuple[int, int]
    """In A and in B, repeats included."""
    units: dict[str, Comparison]
    groups: list[GroupOverlap]
    """Of A, the largest first."""

    def to_json(self) -> dict[str, Any]:
        """As plain values."""
        return {
            "documents": {"a": self.documents[0], "b": self.documents[1]},
            "units": {unit: one.to_json() for unit, one in self.units.items()},
            "groups": [
                {
                    "name": group.name,
                    "documents": group.documents,
                    "a_in_b": {u: share and share.to_json() for u, share in group.shares.items()},
                }
                for group in self.groups
            ],
        }


def compare_sketches(a: CorpusSketch, b: CorpusSketch) -> Overlap:
    """The overlap of two corpora, and that of each group of A with all of B."""
    groups = [
        GroupOverlap(
            name,
            group.documents,
            {unit: share_held(group.samples[unit], b.units[unit].sample) for unit in UNITS},
        )
        for name, group in sorted(a.groups.items(), key=lambda item: (-item[1].documents, item[0]))
    ]
    units = {unit: compare(a.units[unit], b.units[unit]) for unit in UNITS}
    return Overlap((a.documents, b.documents), units, groups)
