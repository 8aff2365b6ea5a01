"""The optimizer as the loop sees it: gradients in, an update out, the state as named tensors.

Behind it are PyTorch's fused AdamW, or Muon for hidden matrices and AdamW for the rest.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from artifacts_schema.errors import CorruptArtifact
from stages.training.config import OptimizerConfig, OptimizerName, Precision
from stages.training.muon import Muon
from stages.training.parameter_groups import Treatment, trainable, treatments
from stages.training.precision import LossScaler

STATE: dict[OptimizerName, tuple[str, ...]] = {
    "adamw": ("exp_avg", "exp_avg_sq", "step"),
    "muon": ("momentum",),
}
"""What is kept for a parameter."""

_SCALER = "loss_scaler."


def build_optimizer(
    model: nn.Module, settings: OptimizerConfig, precision: Precision = "fp32"
) -> Optimizer:
    """The optimizer of every trainable parameter of `model`; under fp16 it scales losses.

    Raises UsageError for parameter groups that do not fit the model.
    """
    return Optimizer(model, settings, LossScaler() if precision == "fp16" else None)


class Optimizer:
    """Updates of all trainable parameters of a model.

    The order of a training step: `zero_grad`, `backward` for each micro-batch, `clip`, then
    `set_rate` and `step`; or `overflowed`, where the norm that `clip` gave is not finite.
    """

    def __init__(
        self, model: nn.Module, settings: OptimizerConfig, scaler: LossScaler | None = None
    ) -> None:
        self.parameters = dict(trainable(model))
        self.treatments = treatments(model, settings)
        self.limit, self.scaler = settings.clip, scaler
        self.parts: dict[OptimizerName, torch.optim.Optimizer] = {}
        if groups := self._groups("adamw"):
            betas = settings.beta1, settings.beta2
            self.parts["adamw"] = torch.optim.AdamW(
                groups, lr=0.0, betas=betas, eps=settings.epsilon, fused=True
            )
        if groups := self._groups("muon"):
            self.parts["muon"] = Muon(groups, settings.muon)

    def zero_grad(self) -> None:
        """Forget all gradients, and free their memory."""
        for parameter in self.parameters.values():
            parameter.grad = None

    def backward(self, loss: Tensor) -> None:
        """Add the gradients of `loss`; under fp16 they are scaled until `clip`."""
        scaled = loss if self.scaler is None else loss * self.scaler.scale
        scaled.backward()  # type: ignore[no-untyped-call]

    def clip(self) -> Tensor:
        """Bring the global norm of all gradients down to the limit; returns the norm before that.

        Once in a training step: under fp16 it scales the gradients back as well.
        """
        if self.scaler is not None:
            gradients = [p.grad for p in self.parameters.values() if p.grad is not None]
            torch._foreach_div_(gradients, self.scaler.scale)
        return nn.utils.clip_grad_norm_(list(self.parameters.values()), self.limit)

    def set_rate(self, rate: float) -> None:
        """Use `rate` in the next update, times each group's own factor."""
        for part in self.parts.values():
            for group in part.param_groups:
                group["lr"] = rate * group["rate"]

    def step(self) -> None:
        """Update every parameter from its gradient.

        ValueError for one without: it would stay as it is, and its state incomplete, unseen.
        """
        for name, parameter in self.parameters.items():
            if parameter.grad is None:
                raise ValueError(f"{name} has no gradient: the loss does not depend on it")
        for part in self.parts.values():
            part.step()
        if self.scaler is not None:
            self.scaler.updated()

    def overflowed(self) -> bool:
        """Say, instead of `step`, that gradients were not finite although the loss was.

        True where that is in the nature of fp16, which goes on with a smaller scale: nothing to be
        alarmed at. False where there is no scale, or none that is smaller.
        """
        return self.scaler is not None and self.scaler.overflowed()

    def tensors(self) -> dict[str, Tensor]:
        """The live state as `{parameter}.{part}`; none of a parameter before its first update.

        Never had by a dummy update: that would count as a step, and Adam's bias correction with
        it (pytorch/torchtitan#4382). Under fp16 the loss scaler's state is there as well.
        """
        found = {
            f"{name}.{part}": state[part]
            for name in self.parameters
            if (state := self._state(name)) is not None
            for part in self._kept(name)
        }
        if self.scaler is not None:
            found |= {_SCALER + part: tensor for part, tensor in self.scaler.tensors().items()}
        return found

    def load(self, tensors: Mapping[str, Tensor], *, where: str) -> None:
        """Take over the state that `tensors` gave, of every parameter or of none.

        A loss scale is taken over where both runs have one. Raises CorruptArtifact when names or
        shapes are not those of the parameters.
        """
        scaler = {name: t for name, t in tensors.items() if name.startswith(_SCALER)}
        if self.scaler is not None and scaler:
            self.scaler.load({name.removeprefix(_SCALER): t for name, t in scaler.items()})
        moments = {name: t for name, t in tensors.items() if name not in scaler}
        for part in self.parts.values():
            part.state.clear()
        if moments:
            self._check(moments, where)
            for name in self.parameters:
                self._load(name, moments)

    def _load(self, name: str, tensors: Mapping[str, Tensor]) -> None:
        parameter = self.parameters[name]
        state = self.parts[self.treatments[name].optimizer].state[parameter]
        for part in self._kept(name):
            source = tensors[f"{name}.{part}"]
            # Copied into memory of torch's own: a mapped file is not aligned, and native kernels
            # may round differently on it.
            kept = torch.empty(source.shape, dtype=torch.float32, device=parameter.device)
            state[part] = kept.copy_(source)

    def _check(self, tensors: Mapping[str, Tensor], where: str) -> None:
        """CorruptArtifact unless `tensors` are the state of these parameters, whole."""
        expected = {
            f"{name}.{part}": torch.Size() if part == "step" else parameter.shape
            for name, parameter in self.parameters.items()
            for part in self._kept(name)
        }
        if odd := sorted(expected.keys() ^ tensors.keys()):
            raise CorruptArtifact(
                f"{len(odd)} entries of the optimizer state do not fit the model, first: {odd[0]}",
                where=where,
                hint="it is of another model, or of another optimizer",
            )
        for name, shape in expected.items():
            if tensors[name].shape != shape:
                raise CorruptArtifact(
                    f"{name} has shape {list(tensors[name].shape)}, expected {list(shape)}",
                    where=where,
                )

    def _groups(self, optimizer: OptimizerName) -> list[dict[str, Any]]:
        """The parameters of one of the optimizers, those that are treated alike together."""
        alike: dict[Treatment, list[tuple[str, nn.Parameter]]] = defaultdict(list)
        for name, parameter in self.parameters.items():
            if self.treatments[name].optimizer == optimizer:
                alike[self.treatments[name]].append((name, parameter))
        return [
            {"params": named, "weight_decay": one.weight_decay, "rate": one.rate}
            for one, named in alike.items()
        ]

    def _kept(self, name: str) -> tuple[str, ...]:
        return STATE[self.treatments[name].optimizer]

    def _state(self, name: str) -> dict[str, Tensor] | None:
        """What is kept for a parameter; None before its first update."""
        state = self.parts[self.treatments[name].optimizer].state
        return state.get(self.parameters[name])
