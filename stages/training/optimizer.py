"""AdamW over named parameters: which decay, and the state as a flat dict of tensors."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import torch
from torch import Tensor, nn

from artifacts_schema.errors import CorruptArtifact
from stages.training.config import AdamWConfig

STATE = ("exp_avg", "exp_avg_sq", "step")
"""What AdamW keeps for a parameter."""


def decays(model: nn.Module) -> dict[str, bool]:
    """For every parameter, once and in the model's order, whether weight decay applies to it.

    It applies to matrices that are not embeddings: not to norms and biases, and not to an embedding
    that also serves as the output layer.
    """
    embeddings = {id(m.weight) for m in model.modules() if isinstance(m, nn.Embedding)}
    return {
        name: parameter.ndim >= 2 and id(parameter) not in embeddings
        for name, parameter in model.named_parameters()
    }


def adamw(model: nn.Module, config: AdamWConfig) -> torch.optim.AdamW:
    """AdamW in PyTorch's fused kernel; the learning rate is set before each update."""
    chosen = decays(model)
    groups = [
        {
            "params": [one for one in model.named_parameters() if chosen[one[0]] == decay],
            "weight_decay": config.weight_decay if decay else 0.0,
        }
        for decay in (True, False)
    ]
    return torch.optim.AdamW(
        [group for group in groups if group["params"]],
        lr=0.0,
        betas=(config.beta1, config.beta2),
        eps=config.epsilon,
        fused=True,
    )


def set_learning_rate(optimizer: torch.optim.Optimizer, rate: float) -> None:
    """Use `rate` in the next update."""
    for group in optimizer.param_groups:
        group["lr"] = rate


def optimizer_tensors(optimizer: torch.optim.Optimizer) -> dict[str, Tensor]:
    """The state as `{parameter}.{exp_avg|exp_avg_sq|step}`; empty before the first update.

    Read from the live state, never through a dummy update: that would count as a step, and Adam's
    bias correction with it (pytorch/torchtitan#4382).
    """
    return {
        f"{name}.{part}": optimizer.state[parameter][part]
        for name, parameter in _named(optimizer)
        if parameter in optimizer.state
        for part in STATE
    }


def load_optimizer(
    optimizer: torch.optim.Optimizer, tensors: Mapping[str, Tensor], *, where: str
) -> None:
    """Take over the state that `optimizer_tensors` gave, of every parameter or (empty) of none.

    Raises CorruptArtifact when names or shapes are not those of the parameters.
    """
    optimizer.state.clear()
    if not tensors:
        return
    named = dict(_named(optimizer))
    expected = {f"{name}.{part}" for name in named for part in STATE}
    odd = sorted(expected ^ set(tensors))
    if odd:
        raise CorruptArtifact(
            f"{len(odd)} entries of the optimizer state do not fit the model, first: {odd[0]}",
            where=where,
        )
    for name, parameter in named.items():
        for part in STATE:
            source = tensors[f"{name}.{part}"]
            shape = torch.Size() if part == "step" else parameter.shape
            if source.shape != shape:
                raise CorruptArtifact(
                    f"{name}.{part} has shape {list(source.shape)}, expected {list(shape)}",
                    where=where,
                )
            # Copied into memory of torch's own: a mapped file is not aligned, and native kernels
            # may round differently on it.
            kept = torch.empty(shape, dtype=torch.float32, device=parameter.device)
            optimizer.state[parameter][part] = kept.copy_(source)


def _named(optimizer: torch.optim.Optimizer) -> Iterator[tuple[str, nn.Parameter]]:
    for group in optimizer.param_groups:
        yield from zip(group["param_names"], group["params"], strict=True)
