"""Pipeline parallelism: ranks share the layers, and micro-batches pass from one to the next.

A rank is a stage. In 1F1B (Narayanan et al. 2021a, arXiv 2006.09503, section 2.2) a stage first
computes as many micro-batches forward as there are stages behind it, then one backward for each one
forward, so it keeps the states of no more micro-batches than there are stages:

    stage 0   F0 F1 .. .. B0 F2 B1 F3 B2 .. B3
    stage 1      F0 B0 F1 B1 F2 B2 F3 B3

Interleaved (Narayanan et al. 2021b, arXiv 2104.04473, section 2.2), each stage has several groups
of layers, v of them, and micro-batches pass through all stages v times; a stage waits 1 / v as long
for v times as many messages.

`run` yields before each backward pass, which the caller does. What it yields has a loss: on the
last stage that of the micro-batch, on others one whose gradient is what the next stage sent. So a
training step need not know that there are stages. Why not `torch.distributed.pipelining`: its
schedules run the whole step, backward passes included, inside one call.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.autograd import Function

from stages.parallel.boxes import local
from stages.parallel.layout import Layout
from stages.parallel.mesh import meshes


class Unit(NamedTuple):
    """A forward or backward pass of one micro-batch through one group of layers of a stage."""

    forward: bool
    number: int
    group: int


def schedule(stage: int, stages: int, micro_batches: int, groups: int = 1) -> list[Unit]:
    """The passes of a stage in their order: 1F1B, or interleaved with several groups of layers.

    ValueError where micro-batches of an interleaved schedule do not come in whole rounds of stages.
    """
    if groups > 1 and micro_batches % stages:
        raise ValueError(f"{micro_batches} micro-batches are no multiple of {stages} stages")
    total, behind = micro_batches * groups, stages - 1 - stage
    ahead = min(behind if groups == 1 else 2 * behind + (groups - 1) * stages, total)

    def unit(forward: bool, n: int) -> Unit:
        """The n-th forward or backward pass: rounds of `stages` micro-batches, group by group."""
        cycle, rest = divmod(n, stages * groups)
        group, place = divmod(rest, stages)
        return Unit(forward, cycle * stages + place, group if forward else groups - 1 - group)

    units = [unit(True, n) for n in range(ahead)]
    for n in range(total - ahead):
        units += [unit(True, ahead + n), unit(False, n)]
    return units + [unit(False, n) for n in range(total - ahead, total)]


Forward = Callable[[int, range, Tensor | None], Any]
"""(number of a micro-batch, layers, states before them) → states after them; of the last layers,
whatever the caller makes of the micro-batch."""


@dataclass
class Pipeline:
    """This rank's stage. `layers` are those of the whole model."""

    layout: Layout
    stage: int
    layers: int
    device: torch.device
    _sent: deque[tuple[dist.Work, Tensor]] = field(default_factory=deque)

    @property
    def groups(self) -> list[range]:
        """The layers that this stage has, by group."""
        return stage_layers(self.layers, self.layout, self.stage)

    def run(
        self, forward: Forward, micro_batches: int, shape: tuple[int, ...]
    ) -> Iterator[tuple[Unit, Any]]:
        """Each backward pass that is due: what `forward` gave, or a loss of no value.

        The caller differentiates its loss before it asks for the next. `shape` is that of the
        states between stages, of float32.
        """
        kept: dict[tuple[int, int], tuple[Tensor | None, Any]] = {}
        for unit in schedule(self.stage, self.layout.pipeline, micro_batches, len(self.groups)):
            layers = self.groups[unit.group]
            if unit.forward:
                states = self._receive(layers.start, shape)
                made = forward(unit.number, layers, states)
                self._send(layers.stop, made)
                kept[unit[1:]] = states, made
                continue
            states, made = kept.pop(unit[1:])
            if layers.stop < self.layers:
                gradient = self._receive_gradient(shape)
                made = _Resume.apply(made, gradient)  # type: ignore[no-untyped-call]
            yield unit, made
            if states is not None:
                assert states.grad is not None, "the states have no gradient: no backward pass"
                self._post(states.grad, -1)
        self._finish()

    def run_forward(
        self, forward: Forward, micro_batches: int, shape: tuple[int, ...]
    ) -> list[Any]:
        """What `forward` makes of the last layers, by micro-batch; None on other stages.

        Without gradients. States follow each other through the stages.
        """
        results: list[Any] = [None] * micro_batches
        for layers in self.groups:
            for number in range(micro_batches):
                made = forward(number, layers, self._receive(layers.start, shape))
                self._send(layers.stop, made)
                if layers.stop == self.layers:
                    results[number] = made
        self._finish()
        return results

    def _receive(self, first_layer: int, shape: tuple[int, ...]) -> Tensor | None:
        """The states before a layer; None before the first."""
        if first_layer == 0:
            return None
        states = self._take(-1, meshes(self.layout, self.device.type).forwards, shape)
        return states.requires_grad_(torch.is_grad_enabled())

    def _send(self, next_layer: int, states: Any) -> None:
        if next_layer < self.layers:
            self._post(states.detach(), 1)

    def _receive_gradient(self, shape: tuple[int, ...]) -> Tensor:
        return self._take(1, meshes(self.layout, self.device.type).backwards, shape)

    def _take(self, step: int, group: dist.ProcessGroup, shape: tuple[int, ...]) -> Tensor:
        result = torch.empty(shape, device=self.device)
        dist.recv(result, group=group, group_src=(self.stage + step) % self.layout.pipeline)
        return result

    def _post(self, tensor: Tensor, step: int) -> None:
        """Send without waiting; the tensor is kept until it is sent."""
        all_groups = meshes(self.layout, self.device.type)
        group = all_groups.forwards if step > 0 else all_groups.backwards
        tensor = tensor.contiguous()
        work = dist.isend(tensor, group=group, group_dst=(self.stage + step) % self.layout.pipeline)
        assert work is not None
        self._sent.append((work, tensor))
        while self._sent and self._sent[0][0].is_completed():
            self._sent.popleft()[0].wait()

    def _finish(self) -> None:
        """Wait until all is sent."""
        while self._sent:
            self._sent.popleft()[0].wait()


class _Resume(Function):
    """A loss of no value, whose gradient by `states` is `gradient`, however it is scaled."""

    @staticmethod
    def forward(ctx: Any, states: Tensor, gradient: Tensor) -> Tensor:
        ctx.gradient = gradient
        return states.new_zeros(())

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        return ctx.gradient, None


def stage_layers(layers: int, layout: Layout, stage: int) -> list[range]:
    """The layers of a stage, by group: group g of S stages is the (g · S + stage)-th part."""
    size = layers // (layout.pipeline * layout.interleave)
    starts = [(group * layout.pipeline + stage) * size for group in range(layout.interleave)]
    return [range(first, first + size) for first in starts]


class Elsewhere(nn.Module):
    """In place of a block that another rank has."""


def cut_layers(model: Any, layout: Layout, stage: int) -> None:
    """Leave only this stage's layers of a `Decoder`, in place, and what is before and after them.

    Names stay as they are. A tied embedding is on the first and on the last stage.
    """
    config = model.config
    held = {layer for group in stage_layers(config.layers, layout, stage) for layer in group}
    last = stage == layout.pipeline - 1
    for layer in range(config.layers):
        if layer not in held:
            model.blocks[layer] = Elsewhere()
    if stage > 0 and not (last and config.tied_embeddings):
        model.embedding = None
    if not last:
        model.norm = model.head = None


def sum_tied_embedding(model: Any, layout: Layout, stage: int) -> None:
    """Add up the gradients of an embedding that first and last stage have, on both.

    To be called on all ranks after the backward passes of a training step. Both then make the same
    update of it.
    """
    other = {0: layout.pipeline - 1, layout.pipeline - 1: 0}.get(stage)
    if other is None or other == stage or not model.config.tied_embeddings:
        return
    gradient = local(model.embedding.weight.grad)
    group, theirs = (
        meshes(layout, gradient.device.type).backwards,
        torch.empty_like(gradient),
    )
    work = dist.isend(gradient.clone(), group=group, group_dst=other)
    dist.recv(theirs, group=group, group_src=other)
    assert work is not None
    work.wait()
    gradient.add_(theirs)  # In either order the same bits.
