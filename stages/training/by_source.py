"""Loss, targets and tokens of a training step by source, from the losses that train the model."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from artifacts_schema.kinds import Column
from stages.training.monitor import HeldOut
from stages.training.on_device import on_device
from stages.training.pieces import IGNORED, PADDED
from stages.training.rows import Rows

_BITS = "Loss in bits over UTF-8 bytes of the targets"


@dataclass(frozen=True)
class BySource:
    """What is measured of a training step, for each of `sources`.

    With `token_bytes` (UTF-8 bytes of each token, 0 for special ones), bits per byte too: over
    targets that are text, sum of nats / ln 2 / bytes. With `languages` (which sources hold each,
    by number), both for each language.
    """

    sources: Sequence[str]
    token_bytes: NDArray[np.int64] | None = None
    languages: Mapping[str, Sequence[int]] = field(default_factory=dict)

    def columns(self) -> tuple[Column, ...]:
        """The columns of `metrics.parquet` that `measures` fills."""
        found = [Column("targets", "int64", "Tokens that the step learnt to predict.")]
        if self.token_bytes is not None:
            found.append(Column("bits_per_byte", "float64?", _BITS + "."))
        for source in self.sources:
            found += [
                Column(f"loss/{source}", "float64?", f"Mean loss over targets of {source}, nats."),
                Column(f"targets/{source}", "int64", f"Targets of {source}."),
                Column(f"tokens/{source}", "int64", f"Tokens of {source}, padding not counted."),
            ]
            if self.token_bytes is not None:
                found.append(Column(f"bits_per_byte/{source}", "float64?", f"{_BITS} of {source}."))
        for language in self.languages:
            name = f"language_loss/{language}"
            found.append(Column(name, "float64?", f"Mean loss over targets in {language}, nats."))
            if self.token_bytes is not None:
                name = f"language_bits_per_byte/{language}"
                found.append(Column(name, "float64?", f"{_BITS} in {language}."))
        return tuple(found)

    def sums(
        self, losses_BL: Tensor, rows: Rows, sources_BL: NDArray[np.int64]
    ) -> dict[str, Tensor]:
        """What `measures` takes, `[sources]` each, to be added up over a step.

        `sources_BL` may be `[B, 1]`; what it says of padding does not matter.
        """
        sources_BL, count = np.broadcast_to(sources_BL, rows.tokens_BL.shape), len(self.sources)
        losses_BL = losses_BL.detach().double()
        valid_BL = rows.targets_BL != IGNORED
        sums = {
            "losses": _by_source(losses_BL, sources_BL, count),
            "targets": _counted(valid_BL, sources_BL, count),
            "tokens": _counted(rows.documents_BL != PADDED, sources_BL, count),
        }
        if self.token_bytes is not None:
            sizes_BL = np.where(valid_BL, self.token_bytes[rows.targets_BL * valid_BL], 0)
            text_BL = on_device(sizes_BL > 0, losses_BL.device)
            sums["text_losses"] = _by_source(losses_BL * text_BL, sources_BL, count)
            sums["bytes"] = _counted(sizes_BL, sources_BL, count)
        return sums

    def measures(self, summed: Mapping[str, list[float]]) -> dict[str, Any]:
        """The values of `columns` from sums over a whole step."""
        every = range(len(self.sources))
        values: dict[str, Any] = {"targets": round(sum(summed["targets"]))}
        if self.token_bytes is not None:
            values["bits_per_byte"] = _bits_per_byte(summed, every)
        for index, source in enumerate(self.sources):
            values[f"loss/{source}"] = _mean(summed, [index])
            values[f"targets/{source}"] = round(summed["targets"][index])
            values[f"tokens/{source}"] = round(summed["tokens"][index])
            if self.token_bytes is not None:
                values[f"bits_per_byte/{source}"] = _bits_per_byte(summed, [index])
        for language, sources in self.languages.items():
            values[f"language_loss/{language}"] = _mean(summed, sources)
            if self.token_bytes is not None:
                values[f"language_bits_per_byte/{language}"] = _bits_per_byte(summed, sources)
        return values


def languages_of(
    sources: Sequence[str], tokens: Mapping[str, Mapping[str, int]]
) -> dict[str, list[int]]:
    """The sources of each language, by number, where each source is in one; else nothing.

    `tokens` has the tokens of each language by source. Which language a sequence of a mixed source
    is in stands in its index table alone: to read that for the rows of a batch costs a table each.
    Nothing either where all are in the same.
    """
    found: dict[str, list[int]] = {}
    for number, source in enumerate(sources):
        own = [name for name, count in tokens[source].items() if count]
        if len(own) > 1 or "" in own:
            return {}
        for language in own:
            found.setdefault(language, []).append(number)
    return dict(sorted(found.items())) if len(found) > 1 else {}


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
    index = on_device(sources_BL.flatten(), values_BL.device)
    zeros = torch.zeros(count, dtype=torch.float64, device=values_BL.device)
    return zeros.index_add(0, index, values_BL.flatten())


def _counted(values_BL: NDArray[Any], sources_BL: NDArray[np.int64], count: int) -> Tensor:
    """[count] Sums of whole numbers by source."""
    chosen = values_BL != 0
    found = np.bincount(sources_BL[chosen], values_BL[chosen], minlength=count)
    return torch.from_numpy(found.astype(np.float64))


def _mean(summed: Mapping[str, list[float]], sources: Sequence[int]) -> float | None:
    targets = round(sum(summed["targets"][i] for i in sources))
    return sum(summed["losses"][i] for i in sources) / targets if targets else None


def _bits_per_byte(summed: Mapping[str, list[float]], sources: Sequence[int]) -> float | None:
    size = sum(summed["bytes"][i] for i in sources)
    nats = sum(summed["text_losses"][i] for i in sources)
    return nats / math.log(2) / size if size else None
