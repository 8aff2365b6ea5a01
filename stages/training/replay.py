"""Where a training step first went not finite: it is done again, and every module is looked at.

Nothing has changed since, for its update was not made: the same weights, the same batch, the same
random numbers. So the same value comes up again, this time under the eyes of hooks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import torch
from torch import Tensor, nn

from stages.training.compiled import uncompiled
from stages.training.undone import undone

if TYPE_CHECKING:
    from stages.training.task import Task

Where = Literal["weights", "forward", "loss", "backward"]


@dataclass(frozen=True)
class Fault:
    """The first value that was not finite.

    `module` is the name of the module whose weights, output or gradient it is (of the innermost, if
    one lies in another), `micro_batch` counts from 0 within the training step; None where the
    weights were not finite before it.
    """

    where: Where
    module: str
    micro_batch: int | None = None

    def __str__(self) -> str:
        part = f" of micro-batch {self.micro_batch}" if self.micro_batch is not None else ""
        what = {"weights": "the weights of", "loss": "the loss behind"}.get(
            self.where, f"the {self.where} pass of"
        )
        return f"{what} {self.module or 'the model'}{part}"


def find_fault(model: nn.Module, task: Task, batch: Any) -> Fault | None:
    """Do a training step again, without its update, up to the first value that is not finite.

    None where all are: then the sum over micro-batches overflowed, or the fault does not come
    again (a defective device). Blocks run as they are written, compiled or not. Gradients are gone
    afterwards; buffers, the random state and all else are as before.
    """
    for name, parameter in model.named_parameters():
        if not _finite(parameter):
            return Fault("weights", name)
    with undone(model), uncompiled():
        for number, (loss, seen) in enumerate(_passes(model, task, batch)):
            if seen.forward:
                return Fault("forward", seen.forward[0], number)
            if not _finite(loss):
                return Fault("loss", "", number)
            loss.backward()  # type: ignore[no-untyped-call]
            if (module := seen.first()) is not None:
                return Fault("backward", module, number)
    return None


@dataclass
class _Seen:
    """What the hooks saw in one micro-batch; modules in the order in which their forward ended."""

    forward: list[str] = field(default_factory=list)
    order: list[str] = field(default_factory=list)
    inputs: set[str] = field(default_factory=set)
    outputs: set[str] = field(default_factory=set)
    parameters: set[str] = field(default_factory=set)

    def first(self) -> str | None:
        """The innermost module whose gradients came in finite and went out not finite."""
        for name in reversed(self.order):
            bad = name in self.inputs or name in self.parameters
            if bad and name not in self.outputs and not self._within(name):
                return name
        return min(self.parameters | self.inputs | self.outputs, default=None)

    def _within(self, name: str) -> bool:
        """Whether a module inside `name` is one as well."""
        return any(
            one.startswith(f"{name}." if name else "")
            and one != name
            and (one in self.inputs or one in self.parameters)
            and one not in self.outputs
            for one in self.order
        )


def _passes(model: nn.Module, task: Task, batch: Any) -> Iterator[tuple[Tensor, _Seen]]:
    """The loss of each micro-batch, and what is seen of its forward and backward pass."""
    handles: list[Any] = []
    seen = _Seen()

    def entered(name: str) -> Callable[..., None]:
        def hook(module: nn.Module, given: tuple[Any, ...], named: Mapping[str, Any]) -> None:
            _on_gradient((*given, *named.values()), name, seen.inputs, handles)

        return hook

    def left(name: str) -> Callable[..., None]:
        def hook(module: nn.Module, given: Any, result: Any) -> None:
            seen.order.append(name)
            if not all(_finite(one) for one in _tensors(result)):
                seen.forward.append(name)
            _on_gradient(result, name, seen.outputs, handles)

        return hook

    for name, module in model.named_modules():
        handles.append(module.register_forward_pre_hook(entered(name), with_kwargs=True))
        handles.append(module.register_forward_hook(left(name)))
        for own in module.parameters(recurse=False):
            _on_gradient(own, name, seen.parameters, handles)
    try:
        for share in task.shares(model, batch):
            yield share.loss, seen
            for part in (seen.forward, seen.order):
                part.clear()
    finally:
        for handle in handles:
            handle.remove()


def _on_gradient(value: Any, name: str, found: set[str], handles: list[Any]) -> None:
    """Note `name` in `found` if the gradient of a tensor in `value` is not finite."""

    def look(gradient: Tensor) -> None:
        if not _finite(gradient):
            found.add(name)

    for tensor in _tensors(value):
        if tensor.requires_grad:
            handles.append(tensor.register_hook(look))


def _tensors(value: Any) -> Iterator[Tensor]:
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, tuple | list):
        for one in value:
            yield from _tensors(one)


def _finite(tensor: Tensor) -> bool:
    return bool(torch.isfinite(tensor.detach()).all()) if tensor.is_floating_point() else True
