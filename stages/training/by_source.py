"""Loss, targets and tokens of a training step by source, from the losses that train the model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from artifacts_schema.kinds import Column
from stages.training.monitor import HeldOut
from stages.training.pieces import IGNORED, PADDED
from stages.training.rows import Rows


def columns(sources: Sequence[str]) -> tuple[Column, ...]:
    """The columns of `metrics.parquet` that `measures` fills."""
    return (
        Column("targets", "int64", "Tokens that the step learnt to predict."),
        *(
            column
            for source in sources
            for column in (
                Column(f"loss/{source}", "float64?", f"Mean loss over targets of {source}, nats."),
                Column(f"targets/{source}", "int64", f"Targets of {source}."),
                Column(f"tokens/{source}", "int64", f"Tokens of {source}, padding not counted."),
            )
        ),
    )


def sums(
    losses_BL: Tensor, rows: Rows, sources_BL: NDArray[np.int64], count: int
) -> dict[str, Tensor]:
    """Loss, targets and tokens of each of `count` sources, `[count]`, to be added up over a step.

    `sources_BL` may be `[B, 1]`; what it says of padding does not matter.
    """
    sources_BL = np.broadcast_to(sources_BL, rows.tokens_BL.shape)
    return {
        "losses": _by_source(losses_BL.detach().double(), sources_BL, count),
        "targets": _counted(rows.targets_BL != IGNORED, sources_BL, count),
        "tokens": _counted(rows.documents_BL != PADDED, sources_BL, count),
    }


def measures(sources: Sequence[str], summed: Mapping[str, list[float]]) -> dict[str, Any]:
    """The values of `columns` from sums over a whole step."""
    values: dict[str, Any] = {"targets": round(sum(summed["targets"]))}
    for index, source in enumerate(sources):
        targets = round(summed["targets"][index])
        values[f"loss/{source}"] = summed["losses"][index] / targets if targets else None
        values[f"targets/{source}"] = targets
        values[f"tokens/{source}"] = round(summed["tokens"][index])
    return values


class HeldOutSums:
    """Held-out losses by source, added up batch by batch."""

    def __init__(
        self, sources: Sequence[str], token_bytes: NDArray[np.int64] | None = None
    ) -> None:
        self.sources, self.token_bytes = sources, token_bytes
        self.losses, self.targets, self.text_losses, self.bytes = np.zeros((4, len(sources)))

    def add(self, losses_BL: Tensor, rows: Rows, sources_BL: NDArray[np.int64]) -> None:
        """Add the losses of a batch."""
        count = len(self.sources)
        valid = rows.targets_BL != IGNORED
        losses = losses_BL.detach().double().cpu().numpy()[valid]
        sources = np.broadcast_to(sources_BL, valid.shape)[valid]
        self.losses += np.bincount(sources, losses, count)
        self.targets += np.bincount(sources, minlength=count)
        if self.token_bytes is not None:
            sizes = self.token_bytes[rows.targets_BL[valid]]
            self.text_losses += np.bincount(sources, losses * (sizes > 0), count)
            self.bytes += np.bincount(sources, sizes, count)

    def measured(self) -> list[HeldOut]:
        """Loss and bits per byte of `all`, then of each source that has targets.

        Bits per byte count targets that are text, not special tokens: sum of nats / ln 2 / bytes.
        """
        if not self.targets.sum():
            return []
        present = np.flatnonzero(self.targets)
        return [
            self._one("all", present),
            *(self._one(self.sources[i], np.array([i])) for i in present.tolist()),
        ]

    def _one(self, name: str, chosen: NDArray[np.int64]) -> HeldOut:
        size = float(self.bytes[chosen].sum())
        bits = float(self.text_losses[chosen].sum()) / np.log(2) / size if size else None
        return HeldOut(
            name,
            float(self.losses[chosen].sum() / self.targets[chosen].sum()),
            None if bits is None else float(bits),
        )


def _by_source(values_BL: Tensor, sources_BL: NDArray[np.int64], count: int) -> Tensor:
    index = torch.from_numpy(sources_BL.flatten()).to(values_BL.device)
    zeros = torch.zeros(count, dtype=torch.float64, device=values_BL.device)
    return zeros.index_add(0, index, values_BL.flatten())


def _counted(chosen_BL: NDArray[np.bool_], sources_BL: NDArray[np.int64], count: int) -> Tensor:
    return torch.from_numpy(np.bincount(sources_BL[chosen_BL], minlength=count).astype(np.float64))
