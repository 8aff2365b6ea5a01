"""Learning from a teacher's distributions, which were written beside the token shards beforehand.

Of each token that is predicted the teacher's K likeliest tokens are on record (stage `teacher`).
What lies outside of them is one more class: its probability is what is left, of the teacher as of
the model. So a divergence is over K + 1 classes, is never above that over the whole vocabulary
(data processing inequality), and is that divergence where K is the vocabulary less one. Nothing is
renormalised.

    forward   KL(teacher, model): the model covers what the teacher finds likely
              (Hinton et al. 2015, arXiv 1503.02531)
    reverse   KL(model, teacher): the model stays with what the teacher finds likely
              (Gu et al. 2024, arXiv 2306.08543)
    mixed     the mean of both

Shapes: B rows, L tokens, M of them with a target; D width; V vocabulary; K classes of the teacher,
C = K + 1 with the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from artifacts_schema.errors import InputError
from stages.engine import Input
from stages.training.losses import OutputLayer, TrainedRows
from stages.training.permutation import Indices
from stages.training.rows import Rows, TargetTokens, on_device
from stages.training.runtime import Runtime
from stages.training.token_shards import IGNORED, TokenShards

Divergence = Literal["forward", "reverse", "mixed"]
ENDING = ".teacher"
FACTS = "teacher.json"


def record_type(top: int) -> np.dtype[Any]:
    """What is on record of a token: ids of the `top` likeliest, their log-probabilities, and that
    of all other tokens together."""
    return np.dtype([("ids", "<u4", (top,)), ("log_probs", "<f4", (top + 1,))])


def log_probs_of_classes(logits_MV: Tensor, ids_MK: Tensor) -> Tensor:
    """[M, C] Log-probabilities of these tokens, and of all others together, in float32."""
    logits_MV = logits_MV.float()
    log_z_M1 = logits_MV.logsumexp(-1, keepdim=True)
    others_M1 = logits_MV.scatter(-1, ids_MK, -torch.inf).logsumexp(-1, keepdim=True)
    return torch.cat((logits_MV.gather(-1, ids_MK), others_M1), dim=-1) - log_z_M1


def divergence(kind: Divergence, teacher_MC: Tensor, model_MC: Tensor) -> Tensor:
    """[M] Nats, of log-probabilities of classes."""
    if kind == "forward":
        return _kl(teacher_MC, model_MC)
    if kind == "reverse":
        return _kl(model_MC, teacher_MC)
    return (_kl(teacher_MC, model_MC) + _kl(model_MC, teacher_MC)) / 2


_LEAST = -80.0
"""Log-probabilities are compared from here on: a class that has none would make a KL infinite."""


def _kl(first_MC: Tensor, second_MC: Tensor) -> Tensor:
    first_MC, second_MC = first_MC.clamp(min=_LEAST), second_MC.clamp(min=_LEAST)
    return (first_MC.exp() * (first_MC - second_MC)).sum(-1)


@dataclass(frozen=True)
class DistilledRows(TrainedRows):
    """As `TrainedRows`; `loss` has the divergence by its weight."""

    divergence: Tensor
    """Sum over tokens over the step's count of targets, without a gradient."""


@dataclass(frozen=True)
class Distillation:
    """Teachers beside token shards, and how much of the loss the divergence from them is."""

    kind: Divergence
    weight: float
    read: Callable[[Indices, Indices], NDArray[Any]]
    """Records [B, L] of the named sequences; see `TokenShards.batch`."""

    @classmethod
    def from_inputs(
        cls,
        teachers: Sequence[Input],
        train: Sequence[Input],
        shards: TokenShards,
        *,
        kind: Divergence,
        weight: float,
    ) -> Distillation:
        """`teachers` are those of `train`, in its order, which `shards` reads.

        InputError names one that belongs to other shards, and one that has another number of tokens
        on record.
        """
        if len(teachers) != len(train):
            raise InputError(
                f"{len(train)} token shards have {len(teachers)} teachers",
                where="teacher",
                hint="give one for each of train, in the same order",
            )
        facts = [one.read_json(FACTS) for one in teachers]
        for own, packed, fact in zip(teachers, train, facts, strict=True):
            if fact["token_shards"] != packed.digest:
                raise InputError(
                    f"was made of token shards {fact['token_shards'][:12]}, "
                    f"these are {packed.digest[:12]}",
                    where=f"teacher {own.key[:12]}",
                    hint="make it of the train input at the same place",
                )
        tops = sorted({fact["top"] for fact in facts})
        if len(tops) > 1:
            raise InputError(
                f"teachers have the {' and the '.join(map(str, tops))} likeliest tokens on record",
                where="teacher",
                hint="make all with one `top`",
            )
        files, dtype = shards.sidecar(teachers, ENDING), record_type(tops[0])

        def read(sources_B: Indices, sequences_B: Indices) -> NDArray[Any]:
            return files.read(*shards.locate(sources_B, sequences_B), dtype)

        return cls(kind, weight, read)

    def passes(
        self,
        runtime: Runtime,
        model: nn.Module,
        parts: Sequence[Rows],
        records: Sequence[NDArray[Any]],
        *,
        targets: int,
    ) -> Iterator[tuple[int, DistilledRows]]:
        """What is to be differentiated for the micro-batches `parts`, as `Runtime.passes` gives it.

        `records` [B, L] are the teacher's of each.
        """
        for number, (rows, record_BL) in enumerate(zip(parts, records, strict=True)):
            runtime.prepare_backward(model, last=number == len(parts) - 1)
            yield number, self._train(runtime, model, rows, record_BL, max(targets, 1))

    def _train(
        self, runtime: Runtime, model: nn.Module, rows: Rows, record_BL: NDArray[Any], divisor: int
    ) -> DistilledRows:
        tokens = TargetTokens.from_rows(rows, runtime.device)
        record_M = record_BL.ravel()[np.flatnonzero(rows.targets_BL.ravel() != IGNORED)]
        ids_MK = on_device(record_M["ids"].astype(np.int64), runtime.device)
        teacher_MC = on_device(np.ascontiguousarray(record_M["log_probs"]), runtime.device)

        def losses(x_ND: Tensor, layer: OutputLayer) -> tuple[Tensor, Tensor]:
            x_MD = tokens.select(x_ND)
            # Logits of a chunk live while it is computed, forwards and backwards.
            parts = [
                checkpoint(
                    _losses_of_chunk,
                    self.kind,
                    layer,
                    x_MD[part],
                    layer.weight_VD,
                    tokens.targets_M[part],
                    ids_MK[part],
                    teacher_MC[part],
                    use_reentrant=False,
                    preserve_rng_state=False,
                )
                for part in layer.chunks(len(x_MD))
            ]
            if not parts:
                nothing = x_MD.float().sum(-1)
                return nothing, nothing
            return torch.cat([one[0] for one in parts]), torch.cat([one[1] for one in parts])

        losses_M, divergences_M = runtime.forward(model, rows, losses)
        sums = (losses_M.sum() / divisor, divergences_M.sum() / divisor)
        loss = (1 - self.weight) * sums[0] + self.weight * sums[1]
        return DistilledRows(
            loss,
            tokens.spread(losses_M.detach()).view(rows.targets_BL.shape),
            sums[0].detach(),
            torch.zeros_like(sums[0].detach()),
            sums[1].detach(),
        )


def _losses_of_chunk(
    kind: Divergence,
    layer: OutputLayer,
    x_MD: Tensor,
    weight_VD: Tensor,
    targets_M: Tensor,
    ids_MK: Tensor,
    teacher_MC: Tensor,
) -> tuple[Tensor, Tensor]:
    """Cross-entropy and divergence of each token."""
    logits_MV = F.linear(x_MD.to(layer.dtype), weight_VD.to(layer.dtype)).float()
    if layer.softcap is not None:
        logits_MV = layer.softcap * torch.tanh(logits_MV / layer.softcap)
    model_MC = log_probs_of_classes(logits_MV, ids_MK)
    losses_M = F.cross_entropy(logits_MV, targets_M, reduction="none")
    return losses_M, divergence(kind, teacher_MC, model_MC)
