"""Low-rank adapters: trained numbers beside the matrices of a model, which stay as they are.

LoRA (Hu et al. 2021, arXiv 2106.09685, section 4.1) adds α/r · B A to a matrix W, B zero at first.
DoRA (Liu et al. 2024, arXiv 2402.09353, equation 5) gives each row of that sum a trained length, at
first that of W's row. `peft` computes both. Here is where adapters go, what the model is with them
merged, and their files as `peft` reads them beside the released model.

There is no dropout: nothing is drawn in a training step, so that a resumed run has the same bytes.
Of a model with experts, attention alone has adapters: `peft` 0.21 takes every `gate_proj`,
`up_proj` and `down_proj` of it, of dense layers too, for the stacked weights of `transformers` 5.

Shapes: O outputs, I inputs, R rank.
"""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import torch
from safetensors.torch import save
from torch import Tensor, nn

from artifacts_schema.config import did_you_mean
from artifacts_schema.errors import UsageError
from stages.model.config import ModelConfig
from stages.model.decoder import Decoder
from stages.model.huggingface.families import published_weights
from stages.model.huggingface.family import Weight
from stages.training.config import AdapterConfig
from stages.training.quantised import count_numbers, quantise
from stages.training.start import StartModel

CONFIG_FILE, WEIGHTS_FILE = "adapter_config.json", "adapter_model.safetensors"
BASE = "ingot_base"
"""In the metadata of the weights: `base_digest` of the matrices that they belong to."""
_BASE_LAYER = ".base_layer.weight"
_PARTS = {
    "lora_A": ".lora_A.default.weight",
    "lora_B": ".lora_B.default.weight",
    "lora_magnitude_vector": ".lora_magnitude_vector.default.weight",
}


EXPERT_TARGETS = ("gate_proj", "up_proj", "down_proj", "gate_up_proj", "experts")
"""Names that the weights of experts have in releases, stacked or one by one, and in `peft`."""


def attach(model: Decoder, config: AdapterConfig, seed: int) -> None:
    """Put an adapter beside each matrix that `config` names, and let nothing else be trained.

    `seed` decides A. UsageError without `peft`, and for a name that no matrix has.
    """
    if find_spec("peft") is None:
        raise UsageError("adapters need peft", where="adapter", hint="pip install 'ingot[peft]'")
    with _quiet():
        from peft import inject_adapter_in_model

    names = sorted(_adapted(model, config))
    if config.quantised is not None:
        quantise(model, linear_weights(model.config), config.quantised)
    device = model.embedding.weight.device
    # A model on the meta device gets its memory when it is spread over ranks.
    with device if device.type == "meta" else nullcontext():
        inject_adapter_in_model(_peft_config(config, names), model)
    with torch.no_grad():
        for name, a_RI in _draw(model, names, seed).items():
            model.get_parameter(name).copy_(a_RI)


def attach_to_start(start: StartModel, config: AdapterConfig, seed: int) -> StartModel:
    """The model that a run starts from, with adapters.

    Of several ranks each reads, and draws, what it holds later: the same numbers as one process.
    """
    attach(start.model, config, seed)
    if start.weights is None:
        return start
    names = sorted(_adapted(start.model, config))
    drawn = _draw(start.model, names, seed)
    return StartModel(start.model, _AdaptedWeights(start.weights, drawn, start.model))


def _draw(model: Decoder, names: list[str], seed: int) -> dict[str, Tensor]:
    """A of each matrix, by the parameter's name; uniform with the variance 1/3I of `peft`'s."""
    draw, drawn = torch.Generator().manual_seed(seed), {}
    for name in names:
        a_name = name + _PARTS["lora_A"]
        shape = model.get_parameter(a_name).shape
        bound = shape[1] ** -0.5
        drawn[a_name] = torch.rand(shape, generator=draw).mul_(2 * bound).sub_(bound)
    return drawn


@dataclass(frozen=True)
class _AdaptedWeights(Mapping[str, Tensor]):
    """Weights of a model with new adapters, by its own names; nothing is kept but A."""

    base: Mapping[str, Tensor]
    drawn: Mapping[str, Tensor]
    model: Decoder

    def __getitem__(self, name: str) -> Tensor:
        if name in self.drawn:
            return self.drawn[name]
        if name.endswith(_PARTS["lora_B"]):
            return torch.zeros(self.model.get_parameter(name).shape)
        if name.endswith(_PARTS["lora_magnitude_vector"]):
            module = name.removesuffix(_PARTS["lora_magnitude_vector"])
            return torch.linalg.norm(self.base[f"{module}.weight"].float(), dim=1)
        return self.base[name.replace(_BASE_LAYER, ".weight")]

    def __iter__(self) -> Iterator[str]:
        return iter(self.model.state_dict())

    def __len__(self) -> int:
        return len(self.model.state_dict())


def describe_adapter(model: nn.Module) -> str:
    """How much of a model with adapters is trained, in a sentence."""
    counts = [(count_numbers(one), one.requires_grad) for one in model.parameters()]
    trained = sum(count for count, is_trained in counts if is_trained)
    return f"adapter: {trained:,} of {sum(count for count, _ in counts):,} numbers are trained"


def merged(weights: Mapping[str, Tensor], config: AdapterConfig) -> dict[str, Tensor]:
    """The weights of a model with adapters as those of a plain one, under the decoder's names."""
    plain = {}
    for name, weight in weights.items():
        if name.endswith(_BASE_LAYER):
            module = name.removesuffix(_BASE_LAYER)
            parts = {part: weights.get(module + end) for part, end in _PARTS.items()}
            plain[f"{module}.weight"] = merge_matrix(weight, config.scale, parts)
        elif not name.endswith(tuple(_PARTS.values())):
            plain[name] = weight
    return plain


def merge_matrix(weight_OI: Tensor, scale: float, parts: Mapping[str, Tensor | None]) -> Tensor:
    """W + scale · B A; its rows of the length `lora_magnitude_vector`, where there is one.

    `parts` are tensors by `peft`'s names. In float32; `peft`'s `merge_and_unload` is the oracle.
    """
    a_RI, b_OR = parts["lora_A"], parts["lora_B"]
    assert a_RI is not None
    assert b_OR is not None
    sum_OI = weight_OI.detach().float() + (b_OR.detach().float() @ a_RI.detach().float()) * scale
    length_O = parts.get("lora_magnitude_vector")
    if length_O is not None:
        norm_O1 = torch.linalg.vector_norm(sum_OI, dim=1, keepdim=True)
        sum_OI = sum_OI * (length_O.detach().float()[:, None] / norm_O1)
    return sum_OI.to(weight_OI.dtype)


def adapter_files(
    shape: ModelConfig, weights: Mapping[str, Tensor], config: AdapterConfig
) -> dict[str, bytes]:
    """The adapter of a model as `peft` reads it beside the released base, by file name."""
    tensors, base = {}, {}
    for module, weight in linear_weights(shape).items():
        if (base_OI := weights.get(module + _BASE_LAYER)) is None:
            continue
        (name,) = weight.published
        base.update(weight.publish(base_OI.detach().cpu()))
        published = f"base_model.model.{name.removesuffix('.weight')}"
        for part, end in _PARTS.items():
            if (tensor := weights.get(module + end)) is None:
                continue
            whole = tensor.detach().cpu().float()
            # A has the matrix's columns; the others have its rows, in the order of the release.
            rows = whole if part == "lora_A" else weight.publish(whole)[name]
            end = "" if part == "lora_magnitude_vector" else ".weight"
            tensors[f"{published}.{part}{end}"] = rows.contiguous()
    names = sorted(name.removesuffix(".weight") for name in base)
    with _quiet():
        plain = _peft_config(config, names).to_dict()
    plain |= {"inference_mode": True, "target_modules": names, "task_type": "CAUSAL_LM"}
    text = json.dumps(plain, indent=2, sort_keys=True, default=sorted) + "\n"
    metadata = {"format": "pt", BASE: base_digest(base)}
    weights_file = _with_sorted_metadata(save(tensors, metadata))
    return {CONFIG_FILE: text.encode("utf-8"), WEIGHTS_FILE: weights_file}


def _with_sorted_metadata(raw: bytes) -> bytes:
    """The same safetensors file; the library writes several entries of metadata in random order."""
    end = 8 + int.from_bytes(raw[:8], "little")
    header = json.loads(raw[8:end])
    header["__metadata__"] = dict(sorted(header["__metadata__"].items()))
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode("utf-8")
    text += b" " * (-len(text) % 8)  # Tensors begin at a multiple of eight.
    return len(text).to_bytes(8, "little") + text + raw[end:]


def base_digest(matrices: Mapping[str, Tensor]) -> str:
    """The sha256 of published matrices, by name, in float32: those that an adapter belongs to."""
    digest = hashlib.sha256()
    for name, matrix in sorted(matrices.items()):
        digest.update(f"{name}\0{list(matrix.shape)}\0".encode())
        digest.update(matrix.float().contiguous().numpy().tobytes())
    return digest.hexdigest()


def linear_weights(shape: ModelConfig) -> dict[str, Weight]:
    """The matrices of layers that can have an adapter, by the name of the decoder's module."""
    with torch.device("meta"):
        modules = Decoder(shape).named_modules()
    names = {f"{name}.weight" for name, one in modules if isinstance(one, nn.Linear)}
    return {
        weight.name.removesuffix(".weight"): weight
        for weight in published_weights(shape)
        if weight.name.startswith("blocks.") and weight.name in names
        if shape.experts is None or ".attention." in weight.name
    }


def _adapted(model: Decoder, config: AdapterConfig) -> list[str]:
    """The modules that `config` names, by the last part of the name that a release gives them."""
    known = {
        module: weight.published[0].removesuffix(".weight").rpartition(".")[2]
        for module, weight in linear_weights(model.config).items()
    }
    choices = sorted(set(known.values()))
    for index, target in enumerate(config.targets):
        if model.config.experts is not None and target in EXPERT_TARGETS:
            raise UsageError(
                f"'{target}' is of experts, whose stacked weights have no adapter",
                where=f"adapter.targets.{index}",
                hint=f"known here: {', '.join(choices)}",
            )
        if target not in choices:
            raise UsageError(
                f"no matrix of a layer is named '{target}'{did_you_mean(target, choices)}",
                where=f"adapter.targets.{index}",
                hint=f"known here: {', '.join(choices)}",
            )
    return [
        module for module, name in known.items() if not config.targets or name in config.targets
    ]


def _peft_config(config: AdapterConfig, modules: list[str]) -> Any:
    from peft import LoraConfig

    return LoraConfig(
        r=config.rank,
        lora_alpha=config.alpha,
        lora_dropout=0.0,
        use_dora=config.method == "dora",
        target_modules=list(modules),
        bias="none",
    )


@contextmanager
def _quiet() -> Iterator[None]:
    """Without what libraries that `peft` imports say of kernels that do not fit this machine."""
    before = logging.root.manager.disable
    logging.disable(logging.ERROR)
    try:
        yield
    finally:
        logging.disable(before)
