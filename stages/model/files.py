"""A decoder as files and back: JSON for its config, safetensors for its weights, nothing else.

Equal weights give equal bytes: sorted JSON, tensors in the order that safetensors fixes by type
and name, and no metadata (several entries would be written in random order). `write_safetensors`
writes weights one after the other, so that memory holds one tensor and not the model; its bytes
are those of `safetensors.torch.save`: a header padded to eight bytes, then the tensors, larger
types first, those of one type by name.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save
from tokenizers import Tokenizer
from torch import Tensor

from artifacts_schema.errors import CorruptArtifact, UsageError
from stages.engine import Input
from stages.model.config import ModelConfig
from stages.model.decoder import Decoder

STORED_TYPES = {"F32": torch.float32, "BF16": torch.bfloat16, "F16": torch.float16}
"""By safetensors' names, in the order in which it sorts them."""
_NAMES = {dtype: name for name, dtype in STORED_TYPES.items()}


class Writer(Protocol):
    """What bytes go to."""

    def write(self, data: Any) -> int:
        """Append."""


@dataclass(frozen=True)
class TensorSpec:
    """Type and shape of a tensor that is still to be made."""

    dtype: torch.dtype
    shape: tuple[int, ...]

    @property
    def bytes(self) -> int:
        """Size of its data."""
        return self.dtype.itemsize * math.prod(self.shape)


def write_safetensors(
    file: Writer,
    specs: Mapping[str, TensorSpec],
    tensor: Callable[[str], Tensor],
    metadata: Mapping[str, str] | None = None,
) -> None:
    """Write a tensor for each name of `specs`, in float32, bfloat16 or float16.

    `tensor(name)` is called once for each, in the order of the file. Give at most one entry of
    `metadata`: safetensors itself would write several in random order.
    """
    header: dict[str, Any] = {"__metadata__": dict(metadata)} if metadata else {}
    order = sorted(specs, key=lambda name: (list(_NAMES).index(specs[name].dtype), name))
    end = 0
    for name in order:
        spec = specs[name]
        start, end = end, end + spec.bytes
        header[name] = {
            "dtype": _NAMES[spec.dtype],
            "shape": list(spec.shape),
            "data_offsets": [start, end],
        }
    written = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    written += b" " * (-len(written) % 8)
    file.write(len(written).to_bytes(8, "little"))
    file.write(written)
    for name in order:
        weight = tensor(name)
        assert (weight.dtype, tuple(weight.shape)) == (specs[name].dtype, specs[name].shape), name
        # NumPy has no bfloat16, so the bytes are viewed before it sees them.
        file.write(weight.contiguous().reshape(-1).view(torch.uint8).numpy())


CONFIG_FILE, WEIGHTS_FILE, TOKENIZER_FILE = "model.json", "model.safetensors", "tokenizer.json"


def model_files(model: Decoder) -> dict[str, bytes]:
    """The files of `model` by name: `model.json` and `model.safetensors`."""
    state = model.state_dict()
    weights = {name: weight.detach().cpu().contiguous() for name, weight in state.items()}
    config = json.dumps(model.config.plain(), indent=2, sort_keys=True) + "\n"
    return {CONFIG_FILE: config.encode("utf-8"), WEIGHTS_FILE: save(weights)}


def read_model(checkpoint: Input, *, attention: str = "sdpa") -> Decoder:
    """The decoder of a checkpoint, on CPU, in float32.

    CorruptArtifact names the config field or the tensors that do not fit.
    """
    where = f"checkpoint {checkpoint.key[:12]}"
    values = checkpoint.read_json(CONFIG_FILE)
    try:
        if not isinstance(values, dict):
            raise UsageError(f"expected an object, found {type(values).__name__}")
        config = ModelConfig.parse(values, where=where)
    except UsageError as error:
        raise CorruptArtifact(error.what, where=f"{where}/{CONFIG_FILE}") from None
    where = f"{where}/{WEIGHTS_FILE}"
    try:
        weights = load_file(checkpoint.local_path(WEIGHTS_FILE))
    except SafetensorError as error:
        raise CorruptArtifact(f"not a safetensors file: {error}", where=where) from None
    return build(config, weights, attention=attention, where=where)


def read_tokenizer(checkpoint: Input) -> Tokenizer:
    """The tokenizer that a checkpoint (or a tokenizer artifact) carries."""
    raw = checkpoint.read_bytes(TOKENIZER_FILE)
    try:
        return Tokenizer.from_str(raw.decode("utf-8"))
    except Exception as error:  # `tokenizers` raises bare Exception for anything it cannot parse
        where = f"{checkpoint.kind} {checkpoint.key[:12]}/{TOKENIZER_FILE}"
        raise CorruptArtifact(f"not a tokenizer: {error}", where=where) from None


def build(
    config: ModelConfig, weights: Mapping[str, Tensor], *, where: str, attention: str = "sdpa"
) -> Decoder:
    """A decoder with exactly these weights; CorruptArtifact names those that do not fit."""
    with torch.device("meta"):
        model = Decoder(config, attention=attention)
    expected = model.state_dict()
    problems = [f"'{name}' is missing" for name in expected if name not in weights]
    for name, weight in sorted(weights.items()):
        if name not in expected:
            problems.append(f"'{name}' is unknown")
        elif weight.shape != expected[name].shape:
            problems.append(
                f"'{name}' is {list(weight.shape)}, expected {list(expected[name].shape)}"
            )
        elif not weight.is_floating_point():
            problems.append(f"'{name}' holds {weight.dtype}")
    if problems:
        more = f" and {len(problems) - 3} more" if len(problems) > 3 else ""
        raise CorruptArtifact(
            "weights do not fit the architecture: " + "; ".join(problems[:3]) + more, where=where
        )
    own = {name: weights[name].to(torch.float32, copy=True) for name in expected}
    model.load_state_dict(own, assign=True)
    return model
