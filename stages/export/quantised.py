"""Matrices of the layers in eight or four bits; the rest of a release keeps its type.

int8 is torchao's weight-only form: whole numbers, and a float32 scale for each row. int4 has the
layout of GPTQ: groups of inputs of a row share a float16 scale, and auto-round chose for each
number whether it is rounded up or down, so that each layer gives what it gave on calibration tokens
(Cheng et al. 2023, arXiv 2309.05516). Embeddings, the matrix that makes logits and norms are not
quantised.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from artifacts_schema.errors import InputError
from stages.export.config import Form
from stages.export.folder import ReleasedWeights
from stages.model.config import ModelConfig
from stages.model.decoder import Decoder
from stages.model.huggingface.families import family_of, published_weights
from stages.model.tensor_files import TensorSpec
from stages.parallel.shard_files import ShardFiles
from stages.training.float8 import quiet

INT4_PARTS = {"qweight": torch.int32, "qzeros": torch.int32, "scales": torch.float16}
BITS = torch.arange(0, 32, 4, dtype=torch.int32)
"""Where the eight numbers of an int32 begin."""


def objection(config: ModelConfig) -> str | None:
    """Why the matrices of a model are not quantised; None where they are."""
    family = family_of(config)
    if family.register is not None:
        return "no class of transformers expresses it"
    if any(len(one.published) > 1 or one.interleaved for one in published_weights(config)):
        return f"its matrices are published in parts ({family.model_type})"
    return None


def layer_matrices(config: ModelConfig) -> dict[str, str]:
    """Published name of each matrix of a layer, by the decoder's name; InputError without any."""
    if (problem := objection(config)) is not None:
        raise InputError(
            f"this model is not quantised: {problem}",
            where="export.quantise",
            hint="release it in bfloat16: set `dtype`",
        )
    with torch.device("meta"):
        state = Decoder(config).state_dict()
    return {
        one.name: one.published[0]
        for one in published_weights(config)
        if one.name.startswith("blocks.") and state[one.name].dim() == 2
    }


@dataclass(frozen=True, kw_only=True)
class QuantisedWeights(ReleasedWeights):
    """Every tensor of a quantised release; a matrix is several tensors."""

    plain: ReleasedWeights
    """The same weights before they are quantised."""
    form: Form
    config: Mapping[str, Any]
    """`quantization_config` of `config.json`."""
    matrices: Mapping[str, str]
    """Published name of each quantised matrix, by the decoder's name."""
    owners: Mapping[str, str]
    """Matrix by the name of a tensor that is part of it."""
    parts: Callable[[str], Mapping[str, Tensor]]
    """The tensors of a matrix, by its published name."""

    @property
    def description(self) -> Mapping[str, Any]:
        """`quantization_config` of `config.json`."""
        return self.config

    @property
    def dtype(self) -> str:
        """The type of what is not quantised, as `config.json` names it."""
        return self.plain.dtype

    @property
    def dtypes(self) -> str:
        """The form and the types beside it, in words."""
        return f"{self.form} (matrices of layers) and {self.plain.dtypes}"

    def tensor(self, name: str) -> Tensor:
        """One tensor of the files."""
        owner = self.owners.get(name)
        return self.plain.tensor(name) if owner is None else self.parts(owner)[name]

    def numbers(self) -> Mapping[str, Callable[[], Tensor]]:
        """Of each quantised matrix."""

        def reader(published: str) -> Callable[[], Tensor]:
            return lambda: dequantise(self.parts(published), published)

        return {name: reader(published) for name, published in self.matrices.items()}

    @property
    def outside_parameters(self) -> int:
        """All of int4, which lie in buffers."""
        if self.form == "int8":
            return 0
        shapes = (self.plain.specs[name].shape for name in self.matrices.values())
        return sum(torch.Size(shape).numel() for shape in shapes)


def dequantise(parts: Mapping[str, Tensor], name: str) -> Tensor:
    """[out, in] in float32: the numbers of the published matrix `name`, from the tensors of it.

    GPTQ has eight numbers of a column in an int32, the first in the lowest bits, and zero points
    less one.
    """
    stem = name.removesuffix(".weight")
    if f"{stem}._weight_qdata" in parts:
        return parts[f"{stem}._weight_qdata"].float() * parts[f"{stem}._weight_scale"].float()
    packed_PO, zeros_GP = parts[f"{stem}.qweight"], parts[f"{stem}.qzeros"]
    scales_GO = parts[f"{stem}.scales"].float()
    numbers_IO = (packed_PO[:, None] >> BITS[:, None] & 15).flatten(0, 1)
    zeros_GO = (zeros_GP[:, :, None] >> BITS & 15).flatten(1) + 1
    group = len(numbers_IO) // len(scales_GO)
    centred_IO = (numbers_IO - zeros_GO.repeat_interleave(group, 0)).float()
    return (centred_IO * scales_GO.repeat_interleave(group, 0)).T.contiguous()


def to_int8(plain: ReleasedWeights, config: ModelConfig) -> QuantisedWeights:
    """Quantised when they are read, a matrix at a time.

    Each number is its row's scale, largest magnitude / 127.5, times a whole number.
    """
    with quiet():
        from torchao.prototype.safetensors.safetensors_support import flatten_tensor_state_dict
        from torchao.quantization import Int8Tensor, Int8WeightOnlyConfig, PerRow
        from transformers import TorchAoConfig

        described = TorchAoConfig(Int8WeightOnlyConfig()).to_dict()

    def flatten(name: str, weight: Tensor) -> tuple[dict[str, Tensor], dict[str, str]]:
        made: tuple[dict[str, Tensor], dict[str, str]] = flatten_tensor_state_dict(
            {name: Int8Tensor.from_hp(weight, PerRow())}
        )
        return made

    matrices = layer_matrices(config)
    quantised = set(matrices.values())
    specs: dict[str, TensorSpec] = {}
    owners: dict[str, str] = {}
    metadata = dict(plain.metadata)
    for name, spec in plain.specs.items():
        if name not in quantised:
            specs[name] = spec
            metadata[name] = json.dumps({"_type": "Tensor"})
            continue
        rows, inputs = spec.shape
        # The entry of a matrix, and the shapes of its parts, depend on its shape alone.
        tensors, entries = flatten(name, torch.zeros(1, inputs, dtype=spec.dtype))
        metadata[name] = entries[name]
        for part, tensor in tensors.items():
            specs[part] = TensorSpec(tensor.dtype, (rows, *tensor.shape[1:]))
            owners[part] = name
    metadata["tensor_names"] = json.dumps(list(plain.specs))
    return QuantisedWeights(
        specs,
        plain.weights,
        plain.stored,
        metadata,
        plain=plain,
        form="int8",
        config=described,
        matrices=matrices,
        owners=owners,
        parts=lambda name: flatten(name, plain.tensor(name))[0],
    )


@contextmanager
def read_int4(
    plain: ReleasedWeights, config: ModelConfig, tuned: Path
) -> Iterator[QuantisedWeights]:
    """The matrices that `tune_int4` wrote into the folder `tuned`, until the block ends."""
    described = json.loads((tuned / "config.json").read_bytes())["quantization_config"]
    matrices = layer_matrices(config)
    with ShardFiles(sorted(tuned.glob("*.safetensors"))) as files:
        specs: dict[str, TensorSpec] = {}
        owners: dict[str, str] = {}
        quantised = set(matrices.values())
        for name, spec in plain.specs.items():
            if name not in quantised:
                specs[name] = spec
                continue
            for part, dtype in INT4_PARTS.items():
                part_name = f"{name.removesuffix('.weight')}.{part}"
                specs[part_name] = TensorSpec(dtype, files.shape(part_name))
                owners[part_name] = name
        yield QuantisedWeights(
            specs,
            plain.weights,
            plain.stored,
            plain.metadata,
            plain=plain,
            form="int4",
            config=described,
            matrices=matrices,
            owners=owners,
            parts=lambda name: {one: files[one] for one, owner in owners.items() if owner == name},
        )
