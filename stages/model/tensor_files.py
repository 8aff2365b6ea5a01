"""Named tensors in safetensors files: one file where they fit, else several with an index.

Files and index are those of Hugging Face: `model.safetensors`, or `model-00001-of-0000N` and so on
and `model.safetensors.index.json`, which says which file holds which tensor. Tensors are written
one after the other, so that memory holds one tensor and not the model. The bytes of a file are
those of `safetensors.torch.save`: a header padded to eight bytes, then the tensors, larger types
first, those of one type by name.

The plan of files is that of `huggingface_hub.split_state_dict_into_shards_factory`, written here
because the bytes of a checkpoint must not depend on the version of another package.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

import torch
from safetensors import SafetensorError
from torch import Tensor

from artifacts_schema.errors import CorruptArtifact, IngotError, StoreError
from artifacts_schema.store.storage_errors import translate_errors
from stages.engine import Input
from stages.parallel.ranks import ALONE, Ranks
from stages.parallel.shard_files import ShardFiles

MAX_FILE_BYTES = 5 * 10**9
"""Most bytes of tensors in one file of a checkpoint; a larger tensor has a file of its own."""

STORED_TYPES = {"F32": torch.float32, "BF16": torch.bfloat16, "F16": torch.float16}
"""Types of weights by safetensors' names."""
_ORDER = {
    torch.int64: "I64",
    torch.float64: "F64",
    torch.float32: "F32",
    torch.int32: "I32",
    torch.bfloat16: "BF16",
    torch.float16: "F16",
    torch.int8: "I8",
}
"""Types that are written, in the order in which safetensors sorts them."""


class Writer(Protocol):
    """What bytes go to."""

    def write(self, data: Any) -> int:
        """Append."""


OpenFile = Callable[[str], AbstractContextManager[Writer]]
"""Opens a file of an output for writing, by its name."""


@dataclass(frozen=True)
class TensorSpec:
    """Type and shape of a tensor that is still to be made."""

    dtype: torch.dtype
    shape: tuple[int, ...]

    @property
    def bytes(self) -> int:
        """Size of its data."""
        return self.dtype.itemsize * math.prod(self.shape)


def specs_of(tensors: Mapping[str, Tensor]) -> dict[str, TensorSpec]:
    """Types and shapes; of tensors that are spread over ranks, those of the whole ones."""
    return {name: TensorSpec(one.dtype, tuple(one.shape)) for name, one in tensors.items()}


def file_order(specs: Mapping[str, TensorSpec]) -> list[str]:
    """Names in the order in which a file has the tensors."""
    return sorted(specs, key=lambda name: (list(_ORDER).index(specs[name].dtype), name))


def write_safetensors(
    file: Writer,
    specs: Mapping[str, TensorSpec],
    tensor: Callable[[str], Tensor | None],
    metadata: Mapping[str, str] | None = None,
) -> None:
    """Write a tensor for each name of `specs`, of a type in `_ORDER`.

    `tensor(name)` is called once for each, in `file_order`, and gives a tensor on the CPU. Entries
    of `metadata` keep their order; safetensors itself would write several in random order.
    """
    header: dict[str, Any] = {"__metadata__": dict(metadata)} if metadata else {}
    order, end = file_order(specs), 0
    for name in order:
        spec = specs[name]
        start, end = end, end + spec.bytes
        header[name] = {
            "dtype": _ORDER[spec.dtype],
            "shape": list(spec.shape),
            "data_offsets": [start, end],
        }
    written = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    written += b" " * (-len(written) % 8)
    file.write(len(written).to_bytes(8, "little"))
    file.write(written)
    for name in order:
        one = tensor(name)
        assert one is not None, name
        assert (one.dtype, tuple(one.shape)) == (specs[name].dtype, specs[name].shape), name
        # NumPy has no bfloat16, so the bytes are viewed before it sees them.
        file.write(one.contiguous().reshape(-1).view(torch.uint8).numpy())


def index_of(name: str) -> str:
    """Name of the index of the file `name`, where that is several."""
    return f"{name}.index.json"


def plan_files(name: str, specs: Mapping[str, TensorSpec], most: int) -> dict[str, list[str]]:
    """The tensors of each file, in the order of `specs`: one file, or several of `most` bytes.

    `name` is that of the one file, `NAME.safetensors`.
    """
    files: list[list[str]] = []
    current: list[str] = []
    size = 0
    for tensor, spec in specs.items():
        if spec.bytes > most:
            files.append([tensor])
            continue
        if size + spec.bytes > most:
            files.append(current)
            current, size = [], 0
        current.append(tensor)
        size += spec.bytes
    if current or not files:
        files.append(current)
    if len(files) == 1:
        return {name: files[0]}
    stem, count = name.removesuffix(".safetensors"), len(files)
    return {
        f"{stem}-{number:05d}-of-{count:05d}.safetensors": tensors
        for number, tensors in enumerate(files, start=1)
    }


def write_tensors(
    open_file: OpenFile | None,
    name: str,
    specs: Mapping[str, TensorSpec],
    tensor: Callable[[str], Tensor | None],
    *,
    most: int | None = None,
    metadata: Mapping[str, str] | None = None,
) -> list[str]:
    """Write the file `name`, or several of at most `most` bytes and their index; names of them.

    `most` is MAX_FILE_BYTES by default. `tensor(name)` is called once for each tensor, in the same
    order on every rank; a rank that writes nothing gives None as `open_file`, and its tensors
    are not looked at.
    """
    files = plan_files(name, specs, MAX_FILE_BYTES if most is None else most)
    for file, names in files.items():
        chosen = {one: specs[one] for one in names}
        if open_file is None:
            for one in file_order(chosen):
                tensor(one)
        else:
            with open_file(file) as writer:
                write_safetensors(writer, chosen, tensor, metadata)
    if len(files) == 1:
        return list(files)
    index = {
        "metadata": {"total_size": sum(spec.bytes for spec in specs.values())},
        "weight_map": {one: file for file, names in files.items() for one in names},
    }
    if open_file is not None:
        with open_file(index_of(name)) as writer:
            text = json.dumps(index, indent=2, sort_keys=True, ensure_ascii=False)
            writer.write(text.encode() + b"\n")
    return [*files, index_of(name)]


def has_tensors(source: Input, name: str) -> bool:
    """Whether an output has the file `name`, or several of it with their index."""
    return source.has(name) or source.has(index_of(name))


def _refusal(paths: Sequence[Path], where: str) -> IngotError:
    """Why a file could not be opened, which safetensors calls missing whatever it was."""
    try:
        for path in paths:
            with translate_errors(str(path)), path.open("rb"):
                pass
    except FileNotFoundError as error:
        return CorruptArtifact(
            "a file of it is gone", where=f"{where}: {error.filename}", hint="ingot verify"
        )
    except IngotError as error:
        return error
    return StoreError(
        "a file of it could not be opened for a moment", where=where, hint="run again"
    )


def open_tensors(source: Input, name: str, ranks: Ranks = ALONE) -> ShardFiles:
    """The tensors of the file `name` of an output, or of the several that it is; none is read yet.

    To be closed by the caller, or used as a context manager. Of several ranks each checks the bytes
    of some files, and no rank reads a tensor before all are checked. Raises CorruptArtifact for
    what is no safetensors file, and where index and files disagree.
    """
    where = f"{source.kind} {source.key[:12]}/{name}"
    names, placed = [name], None
    if not source.has(name):
        where = f"{source.kind} {source.key[:12]}/{index_of(name)}"
        placed = _read_index(source, index_of(name), where)
        names = sorted(set(placed.values()))
    unchecked = replace(source, full_check=False) if ranks.world > 1 else source
    paths = [
        (source if number % ranks.world == ranks.rank else unchecked).local_path(one)
        for number, one in enumerate(names)
    ]
    ranks.share(None)
    try:
        tensors = ShardFiles(paths)
    except SafetensorError as error:
        raise CorruptArtifact(f"not a safetensors file: {error}", where=where) from None
    except FileNotFoundError:
        raise _refusal(paths, where) from None
    if placed is not None and (odd := sorted(placed.keys() ^ set(tensors))):
        raise CorruptArtifact(
            f"index and files do not have the same tensors, first: '{odd[0]}'", where=where
        )
    return tensors


def _read_index(source: Input, path: str, where: str) -> dict[str, str]:
    """File of each tensor."""
    try:
        placed: Any = source.read_json(path)["weight_map"]
        files: Sequence[Any] = list(placed.values())
    except (ValueError, KeyError, TypeError, AttributeError):
        raise CorruptArtifact("is no index: it has no weight_map", where=where) from None
    lacking = [file for file in files if not isinstance(file, str) or not source.has(file)]
    if lacking:
        raise CorruptArtifact(f"names {lacking[0]!r}, which is not there", where=where)
    return dict(placed)
