"""Compare two runs of one key, in two stores, bit by bit: batches, metrics and files."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from artifacts_schema.manifest import Manifest
from artifacts_schema.store import Store
from stages.engine.inputs import Input

Batches = Mapping[int, set[str | None]]
"""Training step → checksums of its batch, in all processes of a run."""


@dataclass(frozen=True)
class RunRecord:
    """A finished run: its artifact, and the batches of its training steps."""

    store: Store
    manifest: Manifest
    batches: Batches

    def output(self, name: str) -> Input:
        """One of its outputs."""
        return Input.from_manifest(self.store, self.manifest, name)


@dataclass(frozen=True)
class Difference:
    """Something that differs; `step` is the training step, None for the run as a whole."""

    step: int | None
    what: str


def read_batch_hashes(record: Path) -> list[tuple[int, str | None]]:
    """Training steps and the checksums of their batches, as `watched_child` recorded them."""
    lines = record.read_text(encoding="utf-8").splitlines()
    return [(step, checksum) for step, checksum, _ in map(json.loads, lines)]


def read_row_hashes(record: Path) -> dict[int, set[str]]:
    """Training steps and the checksums of the rows of their batches, of all ranks."""
    rows: dict[int, set[str]] = {}
    for line in record.read_text(encoding="utf-8").splitlines():
        step, _, checksums = json.loads(line)
        rows.setdefault(step, set()).update(checksums)
    return rows


def group_by_step(batches: Iterable[tuple[int, str | None]]) -> dict[int, set[str | None]]:
    """The checksums of each training step, in all processes of a run."""
    checksums: dict[int, set[str | None]] = {}
    for step, checksum in batches:
        checksums.setdefault(step, set()).add(checksum)
    return checksums


def find_differences(one: RunRecord, two: RunRecord) -> list[Difference]:
    """Everything that differs, by training step, then of the run as a whole. Empty: bit-exact."""
    differences = [
        *_compare_batches(one.batches, two.batches),
        *_compare_tables(one, two),
        *_compare_interims(one, two),
        *_compare_files(one, two),
    ]
    return sorted(differences, key=lambda each: (each.step is None, each.step or 0))


def _compare_batches(one: Batches, two: Batches) -> Iterator[Difference]:
    for step in sorted({*one, *two}):
        if step not in two:
            yield Difference(step, "never read")
        elif one.get(step) != two[step]:  # A checksum for each rank.
            yield Difference(step, "its batch")


def _compare_tables(one: RunRecord, two: RunRecord) -> Iterator[Difference]:
    """Rows by training step: loss, gradient norm, held-out loss and every other column."""
    if "training_run" not in one.manifest.outputs:
        return
    for path in one.output("training_run").paths("*.parquet"):
        ours, theirs = (
            run.output("training_run").read_table(path).to_pylist() for run in (one, two)
        )
        if len(ours) != len(theirs):
            yield Difference(None, f"{path} has {len(ours)} rows, then {len(theirs)}")
        for a, b in zip(ours, theirs, strict=False):
            differing = [name for name in a if repr(a[name]) != repr(b.get(name))]
            if differing:
                name = differing[0]
                more = f" and {len(differing) - 1} columns more" if len(differing) > 1 else ""
                what = f"{path.removesuffix('.parquet')}: {name} {a[name]!r} → {b.get(name)!r}"
                yield Difference(a.get("training_step"), what + more)


def _compare_interims(one: RunRecord, two: RunRecord) -> Iterator[Difference]:
    ours, theirs = ({i.at: i for i in run.manifest.interims} for run in (one, two))
    for at in sorted({*ours, *theirs}):
        if at not in ours or at not in theirs:
            yield Difference(at, "its permanent checkpoint is missing in one")
        elif ours[at].outputs != theirs[at].outputs:
            yield Difference(at, "the bytes of its permanent checkpoint")


def _compare_files(one: RunRecord, two: RunRecord) -> Iterator[Difference]:
    """Files of all outputs; of weights and moments the tensors."""
    for name, output in one.manifest.outputs.items():
        ours = {file.path: file.sha256 for file in output.files}
        theirs = {file.path: file.sha256 for file in two.manifest.outputs[name].files}
        for path in sorted({*ours, *theirs}):
            if ours.get(path) == theirs.get(path):
                continue
            detail = ""
            if path.endswith(".safetensors") and path in ours and path in theirs:
                detail = f": {_describe_tensors(one.output(name), two.output(name), path)}"
            yield Difference(None, f"{name}/{path}{detail}")


def _describe_tensors(one: Input, two: Input, path: str) -> str:
    """How many tensors differ, and the first of them."""
    import torch
    from safetensors.torch import load_file

    a, b = load_file(one.local_path(path)), load_file(two.local_path(path))

    def are_equal(name: str) -> bool:
        if name not in a or name not in b or a[name].dtype != b[name].dtype:
            return False
        return bool(torch.equal(a[name], b[name]))

    differing = [name for name in sorted({*a, *b}) if not are_equal(name)]
    if not differing:
        return "the file, though its tensors are equal"
    extent = ""
    name = differing[0]
    if name in a and name in b and a[name].shape == b[name].shape:
        extent = f", by up to {float((a[name].double() - b[name].double()).abs().max()):.3g}"
    return f"{len(differing)} of {len(a)} tensors, first {name}{extent}"
