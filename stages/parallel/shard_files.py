"""Tensors in safetensors files that several ranks wrote, each what it holds; any layout reads them.

A file of a rank states in its header where each of its tensors is in the whole one. A file without
that statement holds whole tensors. A reader takes the part that it needs, from as many files as
have some of it, and reads no other bytes.

Why not `torch.distributed.checkpoint`: its own format keeps its metadata as a pickle. Its writer of
safetensors has none, but no checksums either, no name under which a checkpoint appears whole, and
no way to say which of two half-written ones counts; all of that is in `training.atomic_dir`, which
one process uses too.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from safetensors.torch import save_file
from torch import Tensor

from stages.parallel.boxes import Box, box_of, is_spread, local, whole, whole_box
from stages.parallel.ranks import Ranks

_PARTS = "parts"
"""Header entry: name → [shape of the whole, offset of the part], as JSON."""


def held_parts(tensors: Mapping[str, Tensor], rank: int) -> dict[str, Tensor]:
    """Of these, what rank `rank` writes: its parts of spread ones; the others are rank 0's."""
    return {name: t for name, t in tensors.items() if is_spread(t) or rank == 0}


def describe_parts(tensors: Mapping[str, Tensor]) -> dict[str, str]:
    """The header that says where in the whole ones the local parts of `tensors` are."""
    parts = {
        name: [list(tensor.shape), list(box_of(tensor).offset)]
        for name, tensor in tensors.items()
        if is_spread(tensor)
    }
    return {_PARTS: json.dumps(parts)}


def save_parts(parts: Mapping[str, Tensor], header: Mapping[str, str], path: Path) -> None:
    """Write local parts; `header` is what `describe_parts` gave. A part without elements is left
    out."""
    contents = {n: t.contiguous() for n, t in parts.items() if t.numel()}
    save_file(contents, path, dict(header) or None)  # Files of {} and {} cannot be read back.


class ShardFiles(Mapping[str, Tensor]):
    """The tensors of several files; `shape` and `part` read no more than they are asked for.

    Use as a context manager, which closes the files. Raises ValueError from `part` where the files
    do not hold all of it.
    """

    def __init__(self, paths: Sequence[Path]) -> None:
        self._stack = ExitStack()
        self._parts: dict[str, list[tuple[Any, Box]]] = {}
        self._shapes: dict[str, tuple[int, ...]] = {}
        self._types: dict[str, str] = {}
        for path in paths:
            file = self._stack.enter_context(safe_open(path, "pt"))
            stated = json.loads((file.metadata() or {}).get(_PARTS, "{}"))
            for name in file.keys():  # noqa: SIM118  (not a mapping)
                described = file.get_slice(name)
                shape = tuple(described.get_shape())
                whole_shape, offset = stated.get(name, (shape, (0,) * len(shape)))
                self._shapes[name] = tuple(whole_shape)
                self._types[name] = described.get_dtype()
                self._parts.setdefault(name, []).append((file, Box(tuple(offset), shape)))

    def __enter__(self) -> ShardFiles:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def __iter__(self) -> Iterator[str]:
        return iter(self._shapes)

    def __len__(self) -> int:
        return len(self._shapes)

    def __contains__(self, name: object) -> bool:
        return name in self._shapes  # Mapping's own would read the tensor.

    def __getitem__(self, name: str) -> Tensor:
        return self.part(name, whole_box(self._shapes[name]))

    def shape(self, name: str) -> tuple[int, ...]:
        """Of the whole tensor."""
        return self._shapes[name]

    def dtype(self, name: str) -> str:
        """Its type, as safetensors names it: `F32`, `BF16`, …"""
        return self._types[name]

    def part(self, name: str, box: Box) -> Tensor:
        """A part of a tensor."""
        target: Tensor | None = None
        left = torch.Size(box.shape).numel()
        for file, held in self._parts[name]:
            common = box.overlap(held)
            if common is None:
                continue
            source = file.get_slice(name)
            read = source[common.within(held)] if held.shape else file.get_tensor(name)
            if common == box:
                return read  # type: ignore[no-any-return]
            if target is None:
                target = torch.empty(box.shape, dtype=read.dtype)
            target[common.within(box)] = read
            left -= read.numel()
        if left or target is None:
            raise ValueError(f"the files do not hold all of {name}")
        return target


def shape_of(tensors: Mapping[str, Tensor], name: str) -> tuple[int, ...]:
    """The shape of a tensor, without reading it where it is in files."""
    return tensors.shape(name) if isinstance(tensors, ShardFiles) else tuple(tensors[name].shape)


def fill(target: Tensor, tensors: Mapping[str, Tensor], name: str) -> None:
    """Copy into `target` what this rank holds of a tensor.

    Copied into memory of torch's own: a mapped file is not aligned, and native kernels may round
    differently on it.
    """
    box = box_of(target)
    if not torch.Size(box.shape).numel():
        return
    part = tensors.part(name, box) if isinstance(tensors, ShardFiles) else tensors[name][box.slices]
    local(target).copy_(part)


def gather_on_first(tensors: Mapping[str, Tensor], ranks: Ranks) -> dict[str, Tensor]:
    """Copies of all of each tensor in memory of the host, on rank 0; nothing on others.

    To be called on all ranks. One tensor at a time is whole on each.
    """
    results: dict[str, Tensor] = {}
    for name, tensor in tensors.items():
        one = whole(tensor)
        if ranks.first:
            results[name] = one.to("cpu", copy=True)  # Where nothing is cut, it is the live one.
    return results
