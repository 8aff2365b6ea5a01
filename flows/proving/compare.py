"""Two runs of one key, in two stores, compared bit by bit: what they read, measured and became."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from artifacts_schema.manifest import Manifest
from artifacts_schema.store import Store
from stages.engine.inputs import Input

Batches = Mapping[int, set[str | None]]
"""Training step → checksums of what it was given, in all lives of a run."""


@dataclass(frozen=True)
class Run:
    """What a run left: its artifact, and what its training steps were given."""

    store: Store
    manifest: Manifest
    batches: Batches

    def output(self, name: str) -> Input:
        """One of its outputs."""
        return Input.of(self.store, self.manifest, name)


@dataclass(frozen=True)
class Difference:
    """Something that is not the same; `step` is the training step, None for the run as a whole."""

    step: int | None
    what: str


def taken(record: Path) -> list[tuple[int, str | None]]:
    """What `child` noted: training steps and the checksum of what each was given, as they came."""
    lines = record.read_text(encoding="utf-8").splitlines()
    return [(step, checksum) for step, checksum in map(json.loads, lines)]


def by_step(noted: Iterable[tuple[int, str | None]]) -> dict[int, set[str | None]]:
    """The checksums of each training step, in all lives of a run."""
    found: dict[int, set[str | None]] = {}
    for step, checksum in noted:
        found.setdefault(step, set()).add(checksum)
    return found


def differences(one: Run, two: Run) -> list[Difference]:
    """All that differs, by training step; what belongs to none comes last. Empty: bit-exact."""
    found = [
        *_in_batches(one.batches, two.batches),
        *_in_tables(one, two),
        *_in_interims(one, two),
        *_in_files(one, two),
    ]
    return sorted(found, key=lambda each: (each.step is None, each.step or 0))


def _in_batches(one: Batches, two: Batches) -> Iterator[Difference]:
    for step in sorted({*one, *two}):
        if len(one.get(step, set()) | two.get(step, set())) != 1 or step not in one:
            yield Difference(step, "its batch")
        elif step not in two:
            yield Difference(step, "never read")


def _in_tables(one: Run, two: Run) -> Iterator[Difference]:
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
            odd = [name for name in a if repr(a[name]) != repr(b.get(name))]
            if odd:
                name = odd[0]
                more = f" and {len(odd) - 1} columns more" if len(odd) > 1 else ""
                what = f"{path.removesuffix('.parquet')}: {name} {a[name]!r} → {b.get(name)!r}"
                yield Difference(a.get("training_step"), what + more)


def _in_interims(one: Run, two: Run) -> Iterator[Difference]:
    ours, theirs = ({i.at: i for i in run.manifest.interims} for run in (one, two))
    for at in sorted({*ours, *theirs}):
        if at not in ours or at not in theirs:
            yield Difference(at, "its permanent checkpoint is missing in one")
        elif ours[at].outputs != theirs[at].outputs:
            yield Difference(at, "the bytes of its permanent checkpoint")


def _in_files(one: Run, two: Run) -> Iterator[Difference]:
    """Files of all outputs; of weights and moments, the tensors."""
    for name, output in one.manifest.outputs.items():
        ours = {file.path: file.sha256 for file in output.files}
        theirs = {file.path: file.sha256 for file in two.manifest.outputs[name].files}
        for path in sorted({*ours, *theirs}):
            if ours.get(path) == theirs.get(path):
                continue
            told = ""
            if path.endswith(".safetensors") and path in ours and path in theirs:
                told = f": {_tensors(one.output(name), two.output(name), path)}"
            yield Difference(None, f"{name}/{path}{told}")


def _tensors(one: Input, two: Input, path: str) -> str:
    """How many tensors differ, and the first of them."""
    from safetensors.torch import load_file

    a, b = load_file(one.local_path(path)), load_file(two.local_path(path))
    odd = [
        name
        for name in sorted({*a, *b})
        if name not in a or name not in b or not _equal(a[name], b[name])
    ]
    if not odd:
        return "the file, though its tensors are equal"
    most = ""
    if odd[0] in a and odd[0] in b and a[odd[0]].shape == b[odd[0]].shape:
        most = f", by up to {float((a[odd[0]].double() - b[odd[0]].double()).abs().max()):.3g}"
    return f"{len(odd)} of {len(a)} tensors, first {odd[0]}{most}"


def _equal(one: Any, two: Any) -> bool:
    import torch

    return one.shape == two.shape and one.dtype == two.dtype and bool(torch.equal(one, two))
