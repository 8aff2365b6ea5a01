"""The released weights: from the checkpoint's file to shards of `transformers`, a tensor at a time.

The layout is that of `save_pretrained`: `model.safetensors` where everything fits into one file,
else `model-00001-of-0000N.safetensors` and an index that says which file holds which tensor.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from artifacts_schema.errors import CorruptArtifact, InputError
from stages.model.config import ModelConfig
from stages.model.files import WEIGHTS_FILE
from stages.model.huggingface import published_weights
from stages.model.safetensors_writer import TensorSpec, write_safetensors

if TYPE_CHECKING:
    from stages.engine import Input
    from stages.model.decoder import Decoder
    from stages.model.huggingface.weights import Weight

INDEX_FILE = "model.safetensors.index.json"
DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}
_NAMES = {dtype: name for name, dtype in DTYPES.items()}
_STORED = {"F32": torch.float32, "BF16": torch.bfloat16, "F16": torch.float16}


@dataclass(frozen=True)
class StoredWeights:
    """The weights in a checkpoint's file: type and shape of each, and each on demand, mapped."""

    specs: Mapping[str, TensorSpec]
    read: Callable[[str], Tensor]

    @classmethod
    @contextmanager
    def opened(cls, checkpoint: Input) -> Iterator[StoredWeights]:
        """Of a checkpoint, until the block ends; CorruptArtifact if the file is none of weights."""
        from safetensors import SafetensorError, safe_open

        where = f"checkpoint {checkpoint.key[:12]}/{WEIGHTS_FILE}"
        try:
            file = safe_open(checkpoint.local_path(WEIGHTS_FILE), framework="pt")
        except SafetensorError as error:
            raise CorruptArtifact(f"not a safetensors file: {error}", where=where) from None
        with file:
            specs = {}
            for name in file.keys():  # noqa: SIM118 - the handle is no mapping
                described = file.get_slice(name)
                dtype = described.get_dtype()
                if dtype not in _STORED:
                    raise CorruptArtifact(f"'{name}' holds {dtype}", where=where)
                specs[name] = TensorSpec(_STORED[dtype], tuple(described.get_shape()))
            yield cls(specs, file.get_tensor)


@dataclass(frozen=True)
class ReleasedWeights:
    """Every tensor of a release by its published name, in the type that it is released in."""

    specs: Mapping[str, TensorSpec]
    _weights: Mapping[str, Weight]
    _stored: StoredWeights

    @classmethod
    def of(cls, config: ModelConfig, stored: StoredWeights, dtype: str) -> ReleasedWeights:
        """`dtype` is a name of `DTYPES`, or `keep` for the type that each is stored in.

        The file must hold exactly the weights of `config`, as `read_model` checks.
        """
        specs: dict[str, TensorSpec] = {}
        weights: dict[str, Weight] = {}
        for weight in published_weights(config):
            spec = stored.specs[weight.name]
            chosen = spec.dtype if dtype == "keep" else DTYPES[dtype]
            empty = torch.empty(spec.shape, dtype=chosen, device="meta")
            for name, tensor in weight.publish(empty).items():
                specs[name] = TensorSpec(chosen, tuple(tensor.shape))
                weights[name] = weight
        return cls(specs, weights, stored)

    @property
    def dtype(self) -> str:
        """The type of most bytes, as `config.json` names it."""
        sizes: Counter[torch.dtype] = Counter()
        for spec in self.specs.values():
            sizes[spec.dtype] += spec.bytes
        return _NAMES[sizes.most_common(1)[0][0]]

    @property
    def dtypes(self) -> str:
        """All types that occur, in words."""
        found = {spec.dtype for spec in self.specs.values()}
        return " and ".join(name for name, dtype in DTYPES.items() if dtype in found)

    def tensor(self, name: str) -> Tensor:
        """One tensor; InputError if a finite number of it is too large for the type."""
        weight = self._weights[name]
        stored = weight.publish(self._stored.read(weight.name))[name]
        return converted(stored, self.specs[name].dtype, name)

    def write(self, folder: Path, max_shard_bytes: int, check: Callable[[int], None]) -> list[str]:
        """Write the files of weights into `folder`, and the index where there are several.

        `check(done)` is called before each tensor with how many were written.
        """
        from huggingface_hub import split_state_dict_into_shards_factory

        from stages.export.folder import to_json

        plan = split_state_dict_into_shards_factory(
            dict(self.specs),
            get_storage_size=lambda spec: spec.bytes,
            filename_pattern="model{suffix}.safetensors",
            max_shard_size=max_shard_bytes,
        )
        done = 0

        def tensor(name: str) -> Tensor:
            nonlocal done
            check(done)
            done += 1
            return self.tensor(name)

        for file, names in plan.filename_to_tensors.items():
            with (folder / file).open("wb") as writer:
                chosen = {name: self.specs[name] for name in names}
                write_safetensors(writer, chosen, tensor, metadata={"format": "pt"})
        files = list(plan.filename_to_tensors)
        if plan.is_sharded:
            index = {"metadata": plan.metadata, "weight_map": plan.tensor_to_filename}
            (folder / INDEX_FILE).write_bytes(to_json(index))
            files.append(INDEX_FILE)
        return files


def converted(weight: Tensor, dtype: torch.dtype, name: str) -> Tensor:
    """`weight` in `dtype`, rounded to nearest; InputError where that makes a number infinite."""
    found = weight.to(dtype)
    if found.dtype != weight.dtype and bool((found.isinf() & weight.isfinite()).any()):
        largest = float(weight.abs().max())
        raise InputError(
            f"'{name}' holds {largest:.3g}, {_NAMES[dtype]} ends at {torch.finfo(dtype).max:.3g}",
            where="export",
            hint="release in bfloat16 or float32: set `dtype`",
        )
    return found


def round_weights(model: Decoder, stored: StoredWeights, dtype: str) -> bool:
    """Give `model`, in float32, the numbers that the release will hold; whether any is another."""
    changed = False
    for name, weight in model.state_dict().items():
        chosen = stored.specs[name].dtype if dtype == "keep" else DTYPES[dtype]
        released = converted(weight, chosen, name).to(weight.dtype)
        changed = changed or not torch.equal(released, weight)
        weight.copy_(released)
    return changed
