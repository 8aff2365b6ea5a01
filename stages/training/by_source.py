"""Loss, targets and tokens by source and language, from the very losses that train the model."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from artifacts_schema.kinds import Column
from stages.training.groups import Groups
from stages.training.monitor import HeldOut
from stages.training.on_device import on_device
from stages.training.pieces import IGNORED, PADDED
from stages.training.rows import Rows

_BITS = "Loss in bits over UTF-8 bytes of the targets"


@dataclass(frozen=True)
class BySource:
    """What is measured of a training step: for each source, and for each language of several.

    With `token_bytes` (UTF-8 bytes of each token, 0 for special ones), bits per byte too: over
    targets that are text, sum of nats / ln 2 / bytes.
    """

    groups: Groups
    token_bytes: NDArray[np.int64] | None = None

    def columns(self) -> tuple[Column, ...]:
        """The columns of `metrics.parquet` that `measures` fills."""
        found = [Column("targets", "int64", "Tokens that the step learnt to predict.")]
        if self.token_bytes is not None:
            found.append(Column("bits_per_byte", "float64?", _BITS + "."))
        for source in self.groups.sources:
            found += self._columns("", source, f"of {source}")
        for language in self.groups.by_language:
            said = f"in {language}" if language else "of documents that declare no language"
            found += self._columns("language_", language, said)
        return tuple(found)

    def sums(
        self, losses_BL: Tensor, rows: Rows, groups_BL: NDArray[np.int64]
    ) -> dict[str, Tensor]:
        """What `measures` takes, `[groups]` each, to be added up over a step.

        `groups_BL` may be `[B, 1]`; what it says of padding does not matter.
        """
        groups_BL, count = np.broadcast_to(groups_BL, rows.tokens_BL.shape), len(self.groups)
        losses_BL = losses_BL.detach().double()
        valid_BL = rows.targets_BL != IGNORED
        sums = {
            "losses": _by_group(losses_BL, groups_BL, count),
            "targets": _counted(valid_BL, groups_BL, count),
            "tokens": _counted(rows.documents_BL != PADDED, groups_BL, count),
        }
        if self.token_bytes is not None:
            sizes_BL = np.where(valid_BL, self.token_bytes[rows.targets_BL * valid_BL], 0)
            text_BL = on_device(sizes_BL > 0, losses_BL.device)
            sums["text_losses"] = _by_group(losses_BL * text_BL, groups_BL, count)
            sums["bytes"] = _counted(sizes_BL, groups_BL, count)
        return sums

    def measures(self, summed: Mapping[str, list[float]]) -> dict[str, Any]:
        """The values of `columns` from sums over a whole step."""
        values: dict[str, Any] = {"targets": round(sum(summed["targets"]))}
        if self.token_bytes is not None:
            values["bits_per_byte"] = _bits_per_byte(summed, range(len(self.groups)))
        for number, source in enumerate(self.groups.sources):
            values |= self._values("", source, summed, self.groups.of_source(number))
        for language, groups in self.groups.by_language.items():
            values |= self._values("language_", language, summed, groups)
        return values

    def _columns(self, prefix: str, name: str, said: str) -> list[Column]:
        loss = f"Mean loss over targets {said}, nats."
        found = [
            Column(f"{prefix}loss/{name}", "float64?", loss),
            Column(f"{prefix}targets/{name}", "int64", f"Targets {said}."),
            Column(f"{prefix}tokens/{name}", "int64", f"Tokens {said}, padding not counted."),
        ]
        if self.token_bytes is not None:
            bits = f"{prefix}bits_per_byte/{name}"
            found.append(Column(bits, "float64?", f"{_BITS} {said}."))
        return found

    def _values(
        self, prefix: str, name: str, summed: Mapping[str, list[float]], groups: Sequence[int]
    ) -> dict[str, Any]:
        targets, tokens = (
            round(sum(summed[what][group] for group in groups)) for what in ("targets", "tokens")
        )
        losses = sum(summed["losses"][group] for group in groups)
        values = {
            f"{prefix}loss/{name}": losses / targets if targets else None,
            f"{prefix}targets/{name}": targets,
            f"{prefix}tokens/{name}": tokens,
        }
        if self.token_bytes is not None:
            values[f"{prefix}bits_per_byte/{name}"] = _bits_per_byte(summed, groups)
        return values


class HeldOutSums:
    """Held-out losses by source and language, added up batch by batch."""

    def __init__(self, groups: Groups, token_bytes: NDArray[np.int64] | None = None) -> None:
        self.groups, self.token_bytes = groups, token_bytes
        self.losses, self.targets, self.text_losses, self.bytes = np.zeros((4, len(groups)))

    def add(self, losses_BL: Tensor, rows: Rows, groups_BL: NDArray[np.int64]) -> None:
        """Add the losses of a batch."""
        count = len(self.groups)
        valid = rows.targets_BL != IGNORED
        losses = losses_BL.detach().double().cpu().numpy()[valid]
        groups = np.broadcast_to(groups_BL, valid.shape)[valid]
        self.losses += np.bincount(groups, losses, count)
        self.targets += np.bincount(groups, minlength=count)
        if self.token_bytes is not None:
            sizes = self.token_bytes[rows.targets_BL[valid]]
            self.text_losses += np.bincount(groups, losses * (sizes > 0), count)
            self.bytes += np.bincount(groups, sizes, count)

    def measured(self) -> list[HeldOut]:
        """Loss and bits per byte of `all`, of each source, and of each language of several.

        Of those that have targets. Bits per byte count targets that are text, not special tokens:
        sum of nats / ln 2 / bytes.
        """
        found = [self._one("all", range(len(self.groups)))]
        for number, source in enumerate(self.groups.sources):
            found.append(self._one(source, self.groups.of_source(number)))
        for language, groups in self.groups.by_language.items():
            found.append(self._one("all", groups, language))
        return [one for one in found if one is not None]

    def _one(
        self, source: str, groups: Sequence[int], language: str | None = None
    ) -> HeldOut | None:
        chosen = np.array(groups, dtype=np.int64)
        chosen = chosen[self.targets[chosen] > 0]
        if not len(chosen):
            return None
        size = float(self.bytes[chosen].sum())
        bits = float(self.text_losses[chosen].sum()) / np.log(2) / size if size else None
        return HeldOut(
            source,
            float(self.losses[chosen].sum() / self.targets[chosen].sum()),
            None if bits is None else float(bits),
            language,
        )


def _by_group(values_BL: Tensor, groups_BL: NDArray[np.int64], count: int) -> Tensor:
    index = on_device(groups_BL.flatten(), values_BL.device)
    zeros = torch.zeros(count, dtype=torch.float64, device=values_BL.device)
    return zeros.index_add(0, index, values_BL.flatten())


def _counted(values_BL: NDArray[Any], groups_BL: NDArray[np.int64], count: int) -> Tensor:
    """[count] Sums of whole numbers by group."""
    chosen = values_BL != 0
    found = np.bincount(groups_BL[chosen], values_BL[chosen], minlength=count)
    return torch.from_numpy(found.astype(np.float64))


def _bits_per_byte(summed: Mapping[str, list[float]], groups: Sequence[int]) -> float | None:
    size = sum(summed["bytes"][i] for i in groups)
    nats = sum(summed["text_losses"][i] for i in groups)
    return nats / math.log(2) / size if size else None
