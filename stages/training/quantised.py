"""Matrices in four bits, which adapters are trained beside (QLoRA: Dettmers et al. 2023, arXiv
2305.14314, section 3).

`bitsandbytes` quantises blocks of 64 numbers, and the scales of the blocks once more (double
quantisation). A matrix is dequantised for each product. The state of a model holds the packed
numbers under the matrix's own name, and what they are unpacked with behind it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from importlib.util import find_spec
from typing import Any

import torch
from torch import Tensor

from artifacts_schema.errors import UsageError

_SCALES = ".absmax"


def quantise(model: Any, modules: Iterable[str], kind: str) -> None:
    """Replace linear layers of `model` by ones whose matrix is packed as `kind` (`nf4`, `fp4`).

    `peft` reads on the model that they are. UsageError without `bitsandbytes`.
    """
    if find_spec("bitsandbytes") is None:
        raise UsageError(
            "matrices in four bits need bitsandbytes",
            where="adapter.quantised",
            hint="pip install 'ingot[qlora]'",
        )
    from bitsandbytes.nn.modules import Linear4bit, Params4bit

    for name in modules:
        parent, _, own = name.rpartition(".")
        plain = model.get_submodule(name)
        assert plain.bias is None
        packed = Linear4bit(plain.in_features, plain.out_features, bias=False, quant_type=kind)
        packed.weight = Params4bit(plain.weight.detach(), requires_grad=False, quant_type=kind)
        # Its product of packed matrices on CPUs rounds to bfloat16, whatever the precision.
        packed.support_avx512bf16_for_cpu = False
        setattr(model.get_submodule(parent), own, packed.to(plain.weight.device))
    model.is_loaded_in_4bit = True


def count_numbers(parameter: Tensor) -> int:
    """Numbers that a parameter stands for: two for each byte of a packed one."""
    return parameter.numel() * (2 if parameter.dtype == torch.uint8 else 1)


def dequantise(weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The state of a model with packed matrices as that of a plain one, in float32."""
    packed = {name.removesuffix(_SCALES) for name in weights if name.endswith(_SCALES)}
    packed -= {name for name in packed if name not in weights}
    if not packed:
        return dict(weights)
    from bitsandbytes.functional import QuantState, dequantize_4bit

    plain: dict[str, Tensor] = {}
    unpacking: defaultdict[str, dict[str, Tensor]] = defaultdict(dict)
    for name, tensor in weights.items():
        matrix, _, _ = name.partition(".weight.")
        if (own := f"{matrix}.weight") in packed and name != own:
            unpacking[own][name.removeprefix(f"{own}.")] = tensor
        else:
            plain[name] = tensor
    for name, parts in unpacking.items():
        state = QuantState.from_dict(parts, device=weights[name].device)
        plain[name] = dequantize_4bit(weights[name], state).float()
    return plain
