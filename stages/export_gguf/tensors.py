"""The weights of a GGUF file: the type of each, and its bytes, a tensor at a time.

Blocks of 32 numbers share a scale in Q8_0 and Q4_0. Which tensors are kept in another type than
the file's is as llama.cpp does it: vectors are F32 (`conversion/base.py`, `prepare_tensors`);
rows that blocks do not divide are F16; the matrix that makes logits is Q8_0 in a Q4_0 file, where
`llama-quantize` would take Q6_K, which the `gguf` package reads and does not write.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import gguf
import numpy as np

from artifacts_schema.errors import InputError
from stages.export_gguf.architecture import (
    GgufTensor,
    add_fields,
    require,
    rope_divisors,
    tensors_of,
)
from stages.export_gguf.config import GgufType
from stages.export_gguf.vocabulary import Vocabulary
from stages.model.config import ModelConfig

if TYPE_CHECKING:
    import numpy.typing as npt
    from torch import Tensor

FILE_TYPES = {
    "F32": gguf.LlamaFileType.ALL_F32,
    "F16": gguf.LlamaFileType.MOSTLY_F16,
    "BF16": gguf.LlamaFileType.MOSTLY_BF16,
    "Q8_0": gguf.LlamaFileType.MOSTLY_Q8_0,
    "Q4_0": gguf.LlamaFileType.MOSTLY_Q4_0,
}
LARGEST = {
    "F32": float(np.finfo(np.float32).max),
    "F16": 65504.0,
    "BF16": 3.3895313892515355e38,
    "Q8_0": 127 * 65504.0,
    "Q4_0": 8 * 65504.0,
}
"""The largest number that a type holds; the scales of blocks are float16."""

ROPE_DIVISORS = "rope_freqs.weight"


@dataclass(frozen=True)
class Planned:
    """A tensor of the file with its type and shape."""

    tensor: GgufTensor
    type: gguf.GGMLQuantizationType
    shape: tuple[int, ...]

    @property
    def stored_shape(self) -> tuple[int, ...]:
        """Shape of the array that is written: of bytes, unless the type is F32 or F16."""
        if self.type in (gguf.GGMLQuantizationType.F32, gguf.GGMLQuantizationType.F16):
            return self.shape
        return tuple(gguf.quant_shape_to_byte_shape(self.shape, self.type))

    @property
    def stored_type(self) -> Any:
        """NumPy's type of that array."""
        kinds = {"F32": np.dtype(np.float32), "F16": np.dtype(np.float16)}
        return kinds.get(self.type.name, np.dtype(np.uint8))

    @property
    def bytes(self) -> int:
        """Bytes of its data."""
        return int(np.prod(self.stored_shape)) * int(self.stored_type.itemsize)


def choose_type(
    name: str, shape: Sequence[int], wanted: GgufType, logits_of: str
) -> gguf.GGMLQuantizationType:
    """The type of the tensor `name`; `logits_of` names the one that makes logits."""
    if len(shape) == 1:
        return gguf.GGMLQuantizationType.F32
    chosen = "Q8_0" if wanted == "Q4_0" and name == logits_of else wanted
    block = gguf.GGML_QUANT_SIZES[gguf.GGMLQuantizationType[chosen]][0]
    return gguf.GGMLQuantizationType["F16" if shape[-1] % block else chosen]


def plan_tensors(
    config: ModelConfig, weight: Callable[[str], Tensor], wanted: GgufType
) -> list[Planned]:
    """Every tensor of the file but that of Llama 3.1's positions; no weight is read."""
    tensors = tensors_of(config)
    names = {one.name for one in tensors}
    logits_of = "output.weight" if "output.weight" in names else "token_embd.weight"
    planned = []
    for one in tensors:
        shape = tuple(weight(one.published).shape)
        planned.append(Planned(one, choose_type(one.name, shape, wanted, logits_of), shape))
    return planned


def encode(planned: Planned, weight: Tensor) -> npt.NDArray[Any]:
    """The array that is written of a published weight; InputError where the type cannot hold it."""
    values = weight.float().numpy()
    heads = planned.tensor.rows_of_heads
    if heads is not None:
        values = pair_rotary_rows(values, heads)
    largest = max(float(values.max()), -float(values.min()))
    limit = LARGEST[planned.type.name]
    if not largest <= limit:  # NaN is no number that a block can scale
        raise InputError(
            f"'{planned.tensor.published}' holds {largest:.3g}, {planned.type.name} ends at "
            f"{limit:.3g}",
            where="export_gguf",
            hint="write F32 or BF16: set `type`",
        )
    encoded: npt.NDArray[Any] = gguf.quantize(np.ascontiguousarray(values), planned.type)
    return encoded


def pair_rotary_rows(values_RD: npt.NDArray[Any], heads: int) -> npt.NDArray[Any]:
    """Each head's rows, in two halves before, as neighbouring pairs (i, i + half)."""
    halves = values_RD.reshape(heads, 2, values_RD.shape[0] // heads // 2, *values_RD.shape[1:])
    return halves.swapaxes(1, 2).reshape(values_RD.shape)


def unpair_rotary_rows(values_RD: npt.NDArray[Any], heads: int) -> npt.NDArray[Any]:
    """The inverse of `pair_rotary_rows`."""
    pairs = values_RD.reshape(heads, values_RD.shape[0] // heads // 2, 2, *values_RD.shape[1:])
    return pairs.swapaxes(1, 2).reshape(values_RD.shape)


def write_file(
    path: Path,
    name: str,
    config: ModelConfig,
    vocabulary: Vocabulary,
    weight: Callable[[str], Tensor],
    wanted: GgufType,
    check: Callable[[int, int], None],
) -> list[Planned]:
    """Write the file `path` and return its plan; memory holds one tensor in float32 and its bytes.

    `check(done, total)` is called before each tensor.
    """
    writer = gguf.GGUFWriter(path, require(config, where="export_gguf"))
    writer.add_type(gguf.GGUFType.MODEL)
    writer.add_name(name)
    writer.add_file_type(FILE_TYPES[wanted])
    writer.add_quantization_version(gguf.GGML_QUANT_VERSION)
    add_fields(writer, config)
    vocabulary.add_to(writer)
    planned = plan_tensors(config, weight, wanted)
    divisors = rope_divisors(config)
    if divisors is not None:
        writer.add_tensor_info(ROPE_DIVISORS, divisors.shape, divisors.dtype, divisors.nbytes)
    for one in planned:
        writer.add_tensor_info(
            one.tensor.name, one.stored_shape, one.stored_type, one.bytes, raw_dtype=one.type
        )
    try:
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_ti_data_to_file()
        if divisors is not None:
            writer.write_tensor_data(divisors)
        for done, one in enumerate(planned):
            check(done, len(planned))
            writer.write_tensor_data(encode(one, weight(one.tensor.published)))
    finally:
        writer.close()
    return planned
