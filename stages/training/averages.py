"""Averages of the weights over training steps: often better than the weights, at no training cost.

An exponential moving average (Polyak & Juditsky 1992; as used to judge a run on its plateau,
Marin 8B), and the mean of the last snapshots of a run (latest weight averaging, Kaddour 2022,
arXiv 2209.14981). Neither bears on any update.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from artifacts_schema.errors import CorruptArtifact
from stages.parallel.boxes import is_spread, local
from stages.parallel.shard_files import fill, shape_of
from stages.training.config import AveragesConfig

Weights = dict[str, Tensor]


class Averages:
    """What the settings ask for, for a run of `total` training steps.

    The mean is of snapshots every `every` training steps, the last of them that of step `total`;
    it is one tensor a parameter, however many snapshots. UsageError where the run has too few
    training steps for them.
    """

    def __init__(self, settings: AveragesConfig, total: int) -> None:
        self.settings, self.total = settings, total
        self.first = settings.first_snapshot(total)
        self._kept: dict[str, Weights] = {"ema": {}, "mean": {}}
        self._updates = {"ema": 0, "mean": 0}

    @torch.no_grad()
    def update(self, model: nn.Module, training_step: int) -> None:
        """Take in the weights after `training_step`; to be called after each, in their order."""
        stays = self.settings.ema
        if stays is not None:
            # Weights of a sum over all steps so far, so that the first ones do not linger.
            updates = self._updates["ema"] + 1
            self._take("ema", model, (1 - stays) / -math.expm1(updates * math.log(stays)))
        steps = training_step - self.first
        is_snapshot = 0 <= steps <= self.total - self.first and steps % self.settings.every == 0
        if self.settings.last and is_snapshot:
            self._take("mean", model, 1 / (self._updates["mean"] + 1))

    def tensors(self) -> Weights:
        """The live state: `{ema|mean}.{parameter}`, how many updates each had, and of which steps
        the mean is. Empty before the first update.
        """
        results = {
            f"{kind}.{name}": tensor
            for kind, kept in self._kept.items()
            for name, tensor in kept.items()
        }
        results |= {f"updates.{kind}": torch.tensor(n) for kind, n in self._updates.items() if n}
        return results | ({"first.mean": torch.tensor(self.first)} if self._kept["mean"] else {})

    def load(self, tensors: Mapping[str, Tensor], model: nn.Module, *, where: str) -> None:
        """Take over the state that `tensors` gave, of the averages that are kept; others are left.

        So is a mean whose snapshots are not of this run's last training steps, as that of a run
        which ended earlier. Raises CorruptArtifact where it is not of the parameters of `model`.
        """
        same_end = int(tensors.get("first.mean", torch.tensor(0))) == self.first
        wanted = {
            "ema": self.settings.ema is not None,
            "mean": self.settings.last > 0 and same_end,
        }
        for kind, kept in self._kept.items():
            kept.clear()
            self._updates[kind] = 0
            if wanted[kind] and f"updates.{kind}" in tensors:
                self._updates[kind] = int(tensors[f"updates.{kind}"])
                kept |= _loaded(tensors, kind, model, where)

    @contextmanager
    def applied(self, model: nn.Module) -> Iterator[None]:
        """Inside it, `model` has the average that the output takes; its own weights come back.

        Nothing is done where the output takes the weights, or there is no average yet.
        """
        kept = self._kept.get(self.settings.output, {})
        average = {name: p for name, p in model.named_parameters() if name in kept}
        own = {name: local(p).clone() if is_spread(p) else p.data for name, p in average.items()}
        try:
            for name, parameter in average.items():
                _set(parameter, local(kept[name]))
            yield
        finally:
            for name, parameter in average.items():
                _set(parameter, own[name])

    def _take(self, kind: str, model: nn.Module, weight: float) -> None:
        """Move an average by `weight` (the first time 1) towards the weights."""
        kept = self._kept[kind]
        if self._updates[kind] == 0:
            kept |= {name: p.detach().clone() for name, p in model.named_parameters()}
        else:
            now = {name: local(p) for name, p in model.named_parameters()}
            means = [local(mean) for mean in kept.values()]
            torch._foreach_lerp_(means, [now[name] for name in kept], weight)
        self._updates[kind] += 1


def _loaded(tensors: Mapping[str, Tensor], kind: str, model: nn.Module, where: str) -> Weights:
    """The average of one kind, in the order and on the device of the parameters of `model`."""
    prefix = f"{kind}."
    shapes = {n.removeprefix(prefix): shape_of(tensors, n) for n in tensors if n.startswith(prefix)}
    parameters = dict(model.named_parameters())
    names = getattr(model, "names", parameters.keys())  # Of the whole model, if it is a part.
    odd = sorted(parameters.keys() - shapes.keys() | shapes.keys() - names) or [
        name for name, parameter in parameters.items() if shapes[name] != tuple(parameter.shape)
    ]
    if odd:
        raise CorruptArtifact(
            f"the {kind} of the weights does not fit the model, first: {odd[0]}", where=where
        )
    loaded = {n: torch.empty_like(p, requires_grad=False) for n, p in parameters.items()}
    for name, average in loaded.items():
        fill(average, tensors, prefix + name)
    return loaded


def _set(parameter: Tensor, value: Tensor) -> None:
    """Exchange a weight's memory; of a spread one, whose memory torch holds on to, the content."""
    if is_spread(parameter):
        local(parameter).copy_(value)
    else:
        parameter.data = value
