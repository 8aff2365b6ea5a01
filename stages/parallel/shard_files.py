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
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from safetensors import safe_open
from safetensors.torch import save_file
from torch import Tensor

from stages.parallel.boxes import Box, box_of, is_spread, local, whole, whole_box
from stages.parallel.ranks import Ranks

_PARTS = "parts"
"""Header entry: name → [shape of the whole, offset of the part], as JSON."""


def held_parts(tensors: Mapping[str, Tensor], ranks: Ranks) -> dict[str, Tensor]:
    """Of these, what this rank writes: what no rank before it with the same layers has."""
    return {name: t for name, t in tensors.items() if _is_first(t, ranks)}


def _is_first(tensor: Tensor, ranks: Ranks) -> bool:
    """Whether this is the first rank with its part of a tensor; of what is whole, of its stage."""
    if not is_spread(tensor):
        return ranks.first_of_stage
    places = tensor.device_mesh.get_coordinate()  # type: ignore[attr-defined]
    pairs = zip(places, tensor.placements, strict=True)  # type: ignore[attr-defined]
    return all(place == 0 for place, placement in pairs if placement.is_replicate())


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
                held = self._parts.setdefault(name, [])
                box = Box(tuple(offset), shape)
                if all(box != other for _, other in held):  # First and last stage: tied weights.
                    held.append((file, box))

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


@dataclass(frozen=True)
class GatheredTensors:
    """Tensors that are spread over ranks, whole on rank 0, one at a time.

    `kinds` has them by name: the first rank that has any of it, its shape and type. Each stage of
    a pipeline has tensors of its own.
    """

    tensors: Mapping[str, Tensor]
    ranks: Ranks
    kinds: Mapping[str, tuple[int, tuple[int, ...], torch.dtype]]

    @classmethod
    def of_ranks(cls, tensors: Mapping[str, Tensor], ranks: Ranks) -> GatheredTensors:
        """Of the `tensors` of all ranks; to be called on all of them."""
        own = {name: (tuple(one.shape), one.dtype) for name, one in tensors.items()}
        kinds: dict[str, tuple[int, tuple[int, ...], torch.dtype]] = {}
        for rank, some in enumerate(ranks.gather(own) if ranks.layout.pipeline > 1 else [own]):
            for name, (shape, dtype) in some.items():
                kinds.setdefault(name, (rank, shape, dtype))
        return cls(tensors, ranks, kinds)

    def one(self, name: str) -> Tensor | None:
        """A tensor in memory of the host, on rank 0; it may be the live one. None on others.

        To be called on all ranks, in one order: those that have a part of it make it whole.
        """
        source, shape, dtype = self.kinds[name]
        made = whole(self.tensors[name]) if name in self.tensors else None
        if self.ranks.first:
            if made is not None:
                return made.cpu()
            received = torch.empty(shape, dtype=dtype)
            dist.recv(received, source)
            return received
        if made is not None and source == self.ranks.rank:
            dist.send(made.cpu().contiguous(), 0)
        return None


def gather_on_first(tensors: Mapping[str, Tensor], ranks: Ranks) -> dict[str, Tensor]:
    """Copies of all of each tensor in memory of the host, on rank 0; nothing on others.

    To be called on all ranks. One tensor at a time is whole on each.
    """
    gathered = GatheredTensors.of_ranks(tensors, ranks)
    results: dict[str, Tensor] = {}
    for name in gathered.kinds:
        one = gathered.one(name)
        if one is not None:
            results[name] = one.clone()  # Where nothing is cut, it is the live one.
    return results
