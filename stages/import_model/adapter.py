"""An adapter that was published in `peft`'s format: what it adds to the weights of its base.

Settings that would make another function of the same tensors are refused by name, as is an adapter
whose shapes, or whose record of its base, are not those of the checkpoint.

Shapes: O outputs, I inputs, R rank.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from torch import Tensor

from artifacts_schema.errors import InputError
from stages.engine.sources import SourceFile
from stages.engine.strict_json import parse_object
from stages.import_model.weights import SafetensorsFile
from stages.model.config import ModelConfig
from stages.model.huggingface.family import Weight
from stages.training.adapters import (
    BASE,
    CONFIG_FILE,
    WEIGHTS_FILE,
    base_digest,
    linear_weights,
    merge_matrix,
)

PARTS = {"lora_A.weight": "lora_A", "lora_B.weight": "lora_B"}
LENGTH = "lora_magnitude_vector"
_PREFIX = "base_model.model."
_CONFIG_LIMIT = 1_000_000
_REFUSED = (
    *("fan_in_fan_out", "lora_bias", "modules_to_save", "rank_pattern", "alpha_pattern"),
    *("target_parameters", "trainable_token_indices", "alora_invocation_tokens", "megatron_config"),
    *("layer_replication", "arrow_config", "velora_config", "monteclora_config"),
)
"""Fields of `peft`'s LoraConfig that must be empty."""


@dataclass(frozen=True)
class Adapter:
    """The tensors of an adapter, by the module of the decoder that each belongs to."""

    scale: float
    places: Mapping[str, Mapping[str, str]]
    """The tensor's name in the file, by module and part."""
    weights: Mapping[str, Weight]
    file: SafetensorsFile

    def merge(self, module: str, base_OI: Tensor) -> Tensor:
        """The module's matrix with the adapter merged, in the type of `base_OI`.

        InputError where a shape belongs to another matrix.
        """
        parts = {part: self.file.read(name) for part, name in self.places[module].items()}
        weight = self.weights[module]
        rank = parts["lora_A"].shape[0]
        outputs, inputs = base_OI.shape
        expected: dict[str, tuple[int, ...]] = {
            "lora_A": (rank, inputs),
            "lora_B": (outputs, rank),
            LENGTH: (outputs,),
        }
        for part, tensor in parts.items():
            if tuple(tensor.shape) != expected[part]:
                raise InputError(
                    f"'{self.places[module][part]}' has the shape {list(tensor.shape)}, its base "
                    f"needs {list(expected[part])}",
                    where=self.file.where,
                    hint="give the checkpoint that the adapter was trained beside",
                )
            if part != "lora_A":  # Rows in the decoder's order.
                parts[part] = weight.adopt({weight.published[0]: tensor}, where=self.file.where)
        return merge_matrix(base_OI, self.scale, parts)

    def check_base(self, read: Callable[[str], Tensor]) -> bool:
        """Whether the file says which base it belongs to; InputError if that is another one."""
        recorded = self.file.metadata.get(BASE)
        if recorded is None:
            return False
        base: dict[str, Tensor] = {}
        for module in self.places:
            base.update(self.weights[module].publish(read(f"{module}.weight")))
        if base_digest(base) != recorded:
            raise InputError(
                "the adapter was trained beside other weights",
                where=self.file.where,
                hint="give the checkpoint that its run started from",
            )
        return True


def find_adapter(sources: Sequence[SourceFile]) -> tuple[SourceFile, SourceFile]:
    """Config and weights of the one adapter of a snapshot; InputError without one, or with two."""
    paths = {PurePosixPath(source.name): source for source in sources}
    configs = [path for path in paths if path.name == CONFIG_FILE]
    if len(configs) != 1:
        raise InputError(
            f"holds {len(configs)} files named {CONFIG_FILE}",
            where="snapshot",
            hint=f"pin one adapter: its {CONFIG_FILE} and {WEIGHTS_FILE}",
        )
    weights = paths.get(configs[0].with_name(WEIGHTS_FILE))
    if weights is None:
        raise InputError(
            f"has no {WEIGHTS_FILE} beside {configs[0]}",
            where="snapshot",
            hint="save the adapter as safetensors: a pickle runs whatever it holds",
        )
    return paths[configs[0]], weights


def read_scale(config: SourceFile) -> float:
    """What B A is multiplied by; InputError for settings that are no LoRA or DoRA known here."""
    if config.bytes > _CONFIG_LIMIT:
        raise InputError(
            f"has {config.bytes:,} bytes, more than {_CONFIG_LIMIT:,}", where=config.name
        )
    with config.open() as file:
        values = parse_object(file.read(), where=config.name)
    if values.get("peft_type") != "LORA":
        raise _wrong(config, f"peft_type is {values.get('peft_type')!r}", "LoRA and DoRA are known")
    for name in _REFUSED:
        if values.get(name):
            raise _wrong(config, f"sets {name}", "merge it with peft, and import the model")
    if values.get("bias", "none") != "none":
        raise _wrong(config, "trains biases", "merge it with peft, and import the model")
    rank, alpha = values.get("r"), values.get("lora_alpha")
    if not isinstance(rank, int) or not _is_number(rank) or not _is_number(alpha):
        raise _wrong(config, "r and lora_alpha are no numbers above 0", "save it anew with peft")
    assert alpha is not None
    return float(alpha) / (rank**0.5 if values.get("use_rslora") else rank)


def open_adapter(config: SourceFile, file: SafetensorsFile, shape: ModelConfig) -> Adapter:
    """The adapter of a model of this shape; InputError names a tensor that fits none of it."""
    weights = linear_weights(shape)
    by_name = {one.published[0].removesuffix(".weight"): name for name, one in weights.items()}
    places: dict[str, dict[str, str]] = {}
    for name in sorted(file.specs):
        published, part = _split(name)
        module = by_name.get(published)
        if module is None or part is None:
            raise InputError(
                f"'{name[:120]}' belongs to no matrix of the checkpoint",
                where=file.where,
                hint="give the checkpoint that the adapter was trained beside",
            )
        places.setdefault(module, {})[part] = name
    for module, parts in places.items():
        if missing := {"lora_A", "lora_B"} - set(parts):
            raise InputError(
                f"{weights[module].published[0]} has no {min(missing)}", where=file.where
            )
    if not places:
        raise InputError("holds no tensors", where=file.where)
    return Adapter(read_scale(config), places, weights, file)


def _split(name: str) -> tuple[str, str | None]:
    """The published module and the part that a tensor of an adapter is named after."""
    plain = name.removeprefix(_PREFIX)
    for end, part in (*PARTS.items(), (LENGTH, LENGTH), (f"{LENGTH}.weight", LENGTH)):
        if plain.endswith(f".{end}"):
            return plain.removesuffix(f".{end}"), part
    return plain, None


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and value > 0


def _wrong(config: SourceFile, what: str, hint: str) -> InputError:
    return InputError(what, where=config.name, hint=hint)
