"""What is done with each parameter: which optimizer updates it, at what rate, and its decay."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import NamedTuple

from torch import nn

from artifacts_schema.errors import UsageError
from stages.training.config import OptimizerConfig, OptimizerName, ParameterGroup


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
    edges = embeddings | {id(p) for p in _output_layer(model)}
    group_of = _matched(list(names), settings.groups)
    found = {}
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
        found[name] = Treatment(
            optimizer=group.optimizer or usual,
            rate=group.rate,
            weight_decay=decay if group.weight_decay is None else group.weight_decay,
        )
    return found


def trainable(model: nn.Module) -> list[tuple[str, nn.Parameter]]:
    """The parameters that take gradients, each once; a tied one bears its first name."""
    return [(name, p) for name, p in model.named_parameters() if p.requires_grad]


def _matched(names: list[str], groups: tuple[ParameterGroup, ...]) -> dict[str, int]:
    """The index of the group that decides for each name that one matches."""
    found: dict[str, int] = {}
    for index, group in enumerate(groups):
        matching = [name for name in names if fnmatchcase(name, group.match)]
        new = [name for name in matching if name not in found]
        if not new:
            raise UsageError(
                f"every parameter that '{group.match}' matches belongs to a group before it"
                if matching
                else f"'{group.match}' matches no parameter",
                where=f"optimizer.groups.{index}",
                hint="put it first" if matching else f"names look like {', '.join(_some(names))}",
            )
        found |= dict.fromkeys(new, index)
    return found


def _output_layer(model: nn.Module) -> list[nn.Parameter]:
    """The decoder's own output matrix, where it has one."""
    head = getattr(model, "head", None)
    return list(head.parameters()) if isinstance(head, nn.Module) else []


def _some(names: list[str]) -> list[str]:
    """Up to four names, spread over all."""
    return names[:: max(1, len(names) // 4)][:4]
