"""The optimizer as the loop sees it: gradients in, an update out, the state as named tensors.

It wraps PyTorch's fused AdamW, or Muon for hidden matrices and AdamW for the rest.

Muon (Jordan et al. 2024) orthogonalises every momentum update: an update of a hidden matrix is
replaced by the nearest matrix with equal singular values, found by a few Newton-Schulz iterations:
https://kellerjordan.github.io/posts/muon/. Matrices of one shape are stacked, so that a whole model
takes a few batched products; a stack of experts is one of matrices already.

Float16 has a narrow exponent, so its loss is scaled up before the backward pass and gradients are
scaled down after it (Micikevicius et al. 2018, arXiv 1710.03740, section 3.2).

N matrices, R rows, C columns.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from fnmatch import fnmatchcase
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from artifacts_schema.errors import CorruptArtifact, UsageError
from stages.parallel.boxes import box_of, local, whole_like
from stages.parallel.shard_files import fill, shape_of
from stages.training.config import (
    MuonConfig,
    OptimizerConfig,
    OptimizerName,
    ParameterGroup,
    TrainingPrecision,
)


class LossScaler:
    """The factor of float16's loss, as dynamic as torch.amp.GradScaler, but decided on the host.

    A power of two, so that scaling rounds nothing. It depends on which updates overflowed alone,
    and travels with the checkpoint.
    """

    FIRST, LEAST, MOST = 2.0**16, 1.0, 2.0**24
    GROWS_AFTER = 2000

    def __init__(self) -> None:
        self.scale, self.clean = self.FIRST, 0

    def updated(self) -> None:
        """An update was made; after enough of them in a row the scale doubles."""
        self.clean += 1
        if self.clean == self.GROWS_AFTER:
            self.scale, self.clean = min(2 * self.scale, self.MOST), 0

    def overflowed(self) -> bool:
        """Gradients were not finite: halve the scale. False where it is at its least already."""
        if self.scale <= self.LEAST:
            return False
        self.scale, self.clean = self.scale / 2, 0
        return True

    def tensors(self) -> dict[str, Tensor]:
        """The state, for a checkpoint."""
        return {
            "scale": torch.tensor(self.scale, dtype=torch.float64),
            "clean": torch.tensor(self.clean, dtype=torch.int64),
        }

    def load(self, tensors: Mapping[str, Tensor]) -> None:
        """Take over the state that `tensors` gave."""
        self.scale, self.clean = float(tensors["scale"]), int(tensors["clean"])


class Treatment(NamedTuple):
    """What is done with a parameter; `rate` multiplies the learning rate."""

    optimizer: OptimizerName
    rate: float
    weight_decay: float


def treatments(model: nn.Module, settings: OptimizerConfig) -> dict[str, Treatment]:
    """The treatment of every trainable parameter, once and in the model's order.

    The first of `settings.groups` that matches a name decides what it says; for the rest, weight
    decay applies to matrices that are not embeddings (not to norms and biases, and not to an
    embedding that is the output layer as well), and Muon, where it is asked for, updates matrices
    that are neither embedding nor output layer.

    Raises UsageError for a group that decides for no parameter, or gives Muon what is no matrix.
    """
    names = dict(trainable(model))
    embeddings = {id(m.weight) for m in model.modules() if isinstance(m, nn.Embedding)}
    head = getattr(model, "head", None)
    edges = embeddings | {id(p) for p in (head.parameters() if head is not None else ())}
    group_of = _matched(list(names), settings.groups)
    results = {}
    for name, parameter in names.items():
        matrix = parameter.ndim >= 2
        decays = matrix and id(parameter) not in embeddings
        hidden = matrix and id(parameter) not in edges
        index = group_of.get(name)
        group = ParameterGroup(match="*") if index is None else settings.groups[index]
        if group.optimizer == "muon" and not matrix:
            raise UsageError(
                f"'{group.match}' gives {name} to muon, which updates matrices",
                where=f"optimizer.groups.{index}",
                hint="match fewer, or put a group for it before this one",
            )
        usual: OptimizerName = settings.name if hidden else "adamw"
        decay = settings.weight_decay if decays else 0.0
        results[name] = Treatment(
            optimizer=group.optimizer or usual,
            rate=group.rate,
            weight_decay=decay if group.weight_decay is None else group.weight_decay,
        )
    return results


def trainable(model: nn.Module) -> list[tuple[str, nn.Parameter]]:
    """The parameters that take gradients, each once; a tied one bears its first name."""
    return [(name, p) for name, p in model.named_parameters() if p.requires_grad]


def _matched(names: list[str], groups: tuple[ParameterGroup, ...]) -> dict[str, int]:
    """The index of the group that decides for each name that one matches."""
    results: dict[str, int] = {}
    examples = names[:: max(1, len(names) // 4)][:4]
    for index, group in enumerate(groups):
        matching = [name for name in names if fnmatchcase(name, group.match)]
        new = [name for name in matching if name not in results]
        if not new:
            raise UsageError(
                f"every parameter that '{group.match}' matches belongs to a group before it"
                if matching
                else f"'{group.match}' matches no parameter",
                where=f"optimizer.groups.{index}",
                hint="put it first" if matching else f"names look like {', '.join(examples)}",
            )
        results |= dict.fromkeys(new, index)
    return results


COEFFICIENTS = (3.4445, -4.7750, 2.0315)
"""Of the odd quintic whose iteration carries singular values fastest to the region of one."""

_EPSILON = 1e-7
_STACKED = 1 << 27
"""Elements that are orthogonalised at once: 512 MB in float32, so memory stays bounded."""


class Muon(torch.optim.Optimizer):
    """Momentum, orthogonalised, with decoupled weight decay.

    Parameters are matrices, or stacks of matrices in their last two dimensions. A group's `lr` is
    scaled by shape, see `shape_scale`. A matrix that is spread over ranks is gathered for its
    iteration, which every rank does; each updates its own part.
    """

    def __init__(self, groups: Iterable[Mapping[str, Any]], settings: MuonConfig) -> None:
        super().__init__([dict(group) for group in groups], {"lr": 0.0, "weight_decay": 0.0})
        self.settings = settings

    @torch.no_grad()
    def step(self, closure: None = None) -> None:  # type: ignore[override]
        """Update every parameter from its gradient."""
        for group in self.param_groups:
            for stack in _stacks(group["params"]):
                self._update(stack, group["lr"], group["weight_decay"])

    def _update(self, stack: list[Tensor], rate: float, weight_decay: float) -> None:
        settings, shape = self.settings, stack[0].shape[-2:]
        gradients = [local(parameter.grad) for parameter in stack if parameter.grad is not None]
        momenta = [local(self._momentum(parameter)) for parameter in stack]
        torch._foreach_lerp_(momenta, gradients, 1 - settings.momentum)
        ahead = (
            torch._foreach_lerp(gradients, momenta, settings.momentum)
            if settings.nesterov
            else momenta
        )
        pairs = list(zip(ahead, stack, strict=True))
        matrices = [whole_like(one, parameter).reshape(-1, *shape) for one, parameter in pairs]
        update_NRC = orthogonalise(torch.cat(matrices), settings.iterations).float()
        updates = [
            one.view(parameter.shape)[box_of(parameter).slices]
            for one, parameter in zip(
                update_NRC.split([len(one) for one in matrices]), stack, strict=True
            )
        ]
        weights = [local(parameter) for parameter in stack]
        torch._foreach_mul_(weights, 1 - rate * weight_decay)
        torch._foreach_add_(weights, updates, alpha=-rate * shape_scale(shape, settings.scale))

    def _momentum(self, parameter: Tensor) -> Tensor:
        state = self.state[parameter]
        if "momentum" not in state:
            state["momentum"] = torch.zeros_like(parameter)
        return state["momentum"]


def orthogonalise(matrices_NRC: Tensor, iterations: int) -> Tensor:
    """Each matrix with its singular values brought near one (about 0.7 to 1.2), in bfloat16.

    A matrix of zeros stays one.
    """
    tall = matrices_NRC.shape[-2] > matrices_NRC.shape[-1]
    x = matrices_NRC.bfloat16()
    x = x.mT if tall else x
    x = x / x.norm(dim=(-2, -1), keepdim=True).clamp(min=_EPSILON)
    first, third, fifth = COEFFICIENTS
    for _ in range(iterations):
        gram = x @ x.mT
        odd = torch.baddbmm(gram, gram, gram, beta=third, alpha=fifth)
        x = torch.baddbmm(x, odd, x, beta=first)
    return x.mT if tall else x


def shape_scale(shape: torch.Size | tuple[int, int], scale: str) -> float:
    """What the learning rate of a matrix with these (rows, columns) is multiplied by.

    `match_rms`: 0.2 √max(rows, columns), so that the root mean square of an update is that of
    AdamW (Liu et al. 2025, Moonlight, arXiv 2502.16982, section 2.2). `spectral`:
    √max(1, rows / columns), as in Jordan's own code.
    """
    rows, columns = shape
    if scale == "match_rms":
        return 0.2 * math.sqrt(max(rows, columns))
    return math.sqrt(max(1.0, rows / columns))


def _stacks(parameters: list[Tensor]) -> Iterator[list[Tensor]]:
    """Parameters whose matrices are alike, in stacks of bounded size."""
    alike: dict[tuple[int, ...], list[Tensor]] = defaultdict(list)
    for parameter in parameters:
        alike[tuple(parameter.shape[-2:])].append(parameter)
    for same in alike.values():
        stack: list[Tensor] = []
        for parameter in same:
            if stack and sum(p.numel() for p in (*stack, parameter)) > _STACKED:
                yield stack
                stack = []
            stack.append(parameter)
        yield stack


STATE: dict[OptimizerName, tuple[str, ...]] = {
    "adamw": ("exp_avg", "exp_avg_sq", "step"),
    "muon": ("momentum",),
}
"""What is kept for a parameter."""

_SCALER = "loss_scaler."

Clip = Callable[[list[Tensor], float], Tensor]


class Optimizer:
    """Updates of all trainable parameters of a model; under fp16 it scales losses.

    The order of a training step: `zero_grad`, `backward` for each micro-batch, `clip`, then
    `set_rate` and `step`; or `overflowed`, where the norm that `clip` gave is not finite. Raises
    UsageError for parameter groups that do not fit the model.

    Where `model` is a part of one, `of_all` are the treatments of all parameters. `clip` scales
    gradients down to a norm and gives that before.
    """

    def __init__(
        self,
        model: nn.Module,
        settings: OptimizerConfig,
        precision: TrainingPrecision = "fp32",
        *,
        of_all: Mapping[str, Treatment] | None = None,
        clip: Clip = nn.utils.clip_grad_norm_,
    ) -> None:
        self.parameters = dict(trainable(model))
        self.treatments = of_all or treatments(model, settings)
        self.limit, self._clip = settings.clip, clip
        self.scaler = LossScaler() if precision == "fp16" else None
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
            gradients = [local(p.grad) for p in self.parameters.values() if p.grad is not None]
            torch._foreach_div_(gradients, self.scaler.scale)
        return self._clip(list(self.parameters.values()), self.limit)

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
        """Called instead of `step` where gradients were not finite although the loss was.

        True if that is normal: fp16 goes on with a smaller scale. False where there is no scale, or
        none that is smaller.
        """
        return self.scaler is not None and self.scaler.overflowed()

    def tensors(self) -> dict[str, Tensor]:
        """The live state as `{parameter}.{part}`; none of a parameter before its first update.

        A dummy update would make it earlier, but it would count as a step of Adam's bias correction
        (pytorch/torchtitan#4382). Under fp16 the loss scaler's state is included.
        """
        results: dict[str, Tensor] = {}
        for name, parameter in self.parameters.items():
            optimizer = self.treatments[name].optimizer
            if state := self.parts[optimizer].state.get(parameter):
                results |= {f"{name}.{part}": state[part] for part in STATE[optimizer]}
        if self.scaler is not None:
            results |= {_SCALER + part: tensor for part, tensor in self.scaler.tensors().items()}
        return results

    def load(self, tensors: Mapping[str, Tensor], *, where: str) -> None:
        """Take over the state that `tensors` gave, of every parameter or of none.

        A loss scale is taken over where both runs have one. Raises CorruptArtifact when names or
        shapes are not those of the parameters.
        """
        scaler = {name: tensors[name] for name in tensors if name.startswith(_SCALER)}
        if self.scaler is not None and scaler:
            self.scaler.load({name.removeprefix(_SCALER): t for name, t in scaler.items()})
        for part in self.parts.values():
            part.state.clear()
        if len(tensors) == len(scaler):
            return
        self._check(tensors, scaler.keys(), where)
        for name, parameter in self.parameters.items():
            state = self.parts[self.treatments[name].optimizer].state[parameter]
            for kind in STATE[self.treatments[name].optimizer]:
                state[kind] = (
                    torch.empty((), dtype=torch.float32, device=parameter.device)
                    if kind == "step"
                    else torch.empty_like(parameter, requires_grad=False)
                )
                fill(state[kind], tensors, f"{name}.{kind}")

    def _check(self, tensors: Mapping[str, Tensor], more: Set[str], where: str) -> None:
        """CorruptArtifact unless `tensors` are `more` and the state of these parameters, whole."""
        expected = {
            f"{name}.{part}": torch.Size() if part == "step" else parameter.shape
            for name, parameter in self.parameters.items()
            for part in STATE[self.treatments[name].optimizer]
        }
        names = {
            f"{n}.{part}" for n, one in self.treatments.items() for part in STATE[one.optimizer]
        }
        names = {
            f"{n}.{part}" for n, one in self.treatments.items() for part in STATE[one.optimizer]
        }
        if odd := sorted(names ^ (tensors.keys() - more)):
            raise CorruptArtifact(
                f"{len(odd)} entries of the optimizer state do not fit the model, first: {odd[0]}",
                where=where,
                hint="it is of another model, or of another optimizer",
            )
        for name, shape in expected.items():
            actual = shape_of(tensors, name)
            if actual != tuple(shape):
                raise CorruptArtifact(
                    f"{name} has shape {list(actual)}, expected {list(shape)}",
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
