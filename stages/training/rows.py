"""Rows of a micro-batch, their targets, and what is measured on them by source and language.

The measurements come from the same losses that train the model. B rows, L tokens.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.autograd import Function

from artifacts_schema.kinds import Column
from stages.parallel.ranks import Ranks
from stages.training.monitor import HeldOut
from stages.training.permutation import Indices
from stages.training.shard_index import languages_with_tokens
from stages.training.token_shards import IGNORED, PADDED, TokenShards


def on_device(array: NDArray[Any] | Tensor, device: torch.device) -> Tensor:
    """The array, or a tensor of the host, on `device`; on the CPU they share memory.

    Copies to a GPU start in pinned memory: otherwise the host would wait until the GPU is idle.
    """
    tensor = array if isinstance(array, Tensor) else torch.from_numpy(array)
    if device.type == "cpu":
        return tensor
    return tensor.pin_memory().to(device, non_blocking=True)


Integers = NDArray[np.int32] | NDArray[np.int64]


@dataclass(frozen=True)
class Rows:
    """What one forward pass sees: token ids, what each is to predict, and the document of each.

    Targets are int64, which is what cross entropy takes. A token sees those before it in its
    document, and all of the document's that `prefix_BL` marks; None marks none. `positions_BL` are
    given where they are not the distances from the first token of each document in the row,
    `weights_BL` (how much each target counts in training) where not all are 1.
    """

    tokens_BL: Integers
    targets_BL: NDArray[np.int64]
    documents_BL: Integers
    prefix_BL: NDArray[np.bool_] | None = None
    positions_BL: NDArray[np.int64] | None = None
    weights_BL: NDArray[np.float32] | None = None

    def __len__(self) -> int:
        return len(self.tokens_BL)

    @property
    def tokens(self) -> int:
        """Tokens that are not padding."""
        return int((self.documents_BL != PADDED).sum())

    @property
    def targets(self) -> int:
        """Targets that count."""
        return int((self.targets_BL != IGNORED).sum())

    @property
    def weight(self) -> float:
        """The sum of the weights of the targets."""
        if self.weights_BL is None:
            return self.targets
        return float(self.weights_BL[self.targets_BL != IGNORED].sum(dtype=np.float64))

    def offsets(self) -> NDArray[np.int32]:
        """[N + 1] Where the N pieces begin among the B · L tokens, then B · L.

        A row begins a piece, and so does another number in `documents_BL`; padding is one too.
        """
        first_BL = np.ones(self.documents_BL.shape, dtype=np.bool_)
        first_BL[:, 1:] = self.documents_BL[:, 1:] != self.documents_BL[:, :-1]
        return np.append(np.flatnonzero(first_BL), first_BL.size).astype(np.int32)

    def split(self, rows: int) -> list[Rows]:
        """Micro-batches of at most `rows` rows."""
        return [self.take(slice(start, start + rows)) for start in range(0, len(self), rows)]

    def padded(self, rows: int) -> Rows:
        """With so many rows more, all padding."""

        def more(array: NDArray[Any], value: int) -> NDArray[Any]:
            return np.pad(array, ((0, rows), (0, 0)), constant_values=value)

        return Rows(
            more(self.tokens_BL, 0),
            more(self.targets_BL, IGNORED),
            more(self.documents_BL, PADDED),
            None if self.prefix_BL is None else more(self.prefix_BL, 0),
            None if self.positions_BL is None else more(self.positions_BL, 0),
            None if self.weights_BL is None else more(self.weights_BL, 1),
        )

    def take(self, rows: slice | NDArray[np.bool_]) -> Rows:
        """Those of the rows."""
        return self._map(lambda array: array[rows])

    def of_context(self, ranks: Ranks) -> Rows:
        """The tokens of each row that this rank has, of those that share rows."""
        if ranks.layout.context == 1:
            return self
        whole = replace(self, positions_BL=_positions(self.documents_BL))
        return whole._map(lambda array: own_columns(array, ranks))

    def _map(self, function: Callable[[NDArray[Any]], NDArray[Any]]) -> Rows:
        arrays = (getattr(self, part.name) for part in fields(self))
        return Rows(*(None if array is None else function(array) for array in arrays))  # type: ignore[arg-type]


@dataclass(frozen=True)
class TargetTokens:
    """The M tokens of N that have a target, found before anything is on the device.

    `index_M` are their places among all, `inverse_N` leads back: M for a token without a target.
    """

    index_M: Tensor
    inverse_N: Tensor
    targets_M: Tensor
    weights_M: Tensor | None = None

    @classmethod
    def from_rows(cls, rows: Rows, device: torch.device) -> TargetTokens:
        targets_N = rows.targets_BL.ravel()
        index_M = np.flatnonzero(targets_N != IGNORED)
        inverse_N = np.full(targets_N.size, len(index_M), dtype=np.int64)
        inverse_N[index_M] = np.arange(len(index_M))
        arrays = (index_M, inverse_N, targets_N[index_M])
        weights_M = None
        if rows.weights_BL is not None:
            weights_M = on_device(rows.weights_BL.ravel()[index_M], device)
        index, inverse, targets = (on_device(array, device) for array in arrays)
        return cls(index, inverse, targets, weights_M)

    def select(self, x_ND: Tensor) -> Tensor:
        """[M, D] The rows that have a target."""
        x_MD: Tensor = _SelectRows.apply(x_ND, self)  # type: ignore[no-untyped-call]
        return x_MD

    def spread(self, values_M: Tensor) -> Tensor:
        """[N, …] The values at their places, 0 elsewhere."""
        nothing = values_M.new_zeros((1, *values_M.shape[1:]))
        return torch.cat((values_M, nothing)).index_select(0, self.inverse_N)


class _SelectRows(Function):
    """Rows of a matrix by number; backwards it reads by number too, where autograd would add."""

    @staticmethod
    def forward(ctx: Any, x_ND: Tensor, chosen: TargetTokens) -> Tensor:
        ctx.chosen = chosen
        return x_ND.index_select(0, chosen.index_M)

    @staticmethod
    def backward(ctx: Any, by_x_MD: Tensor) -> tuple[Tensor, None]:
        return ctx.chosen.spread(by_x_MD), None


def own_columns(array_BL: NDArray[Any], ranks: Ranks) -> NDArray[Any]:
    """Of what tokens have, that of this rank's tokens; `[B, 1]` is of all tokens."""
    length, parts = array_BL.shape[1], ranks.layout.context
    if parts == 1 or length == 1:
        return array_BL
    from stages.parallel.context_parallel import own_tokens

    return array_BL[:, own_tokens(length, ranks.context, parts)]


def _positions(documents_BL: Integers) -> NDArray[np.int64]:
    """[B, L] Distance of each token from the first of its document in the row."""
    places_L = np.arange(documents_BL.shape[1])
    first_BL = np.ones(documents_BL.shape, dtype=np.bool_)
    first_BL[:, 1:] = documents_BL[:, 1:] != documents_BL[:, :-1]
    return places_L - np.maximum.accumulate(np.where(first_BL, places_L, 0), axis=1)


def measured_batches(count: int, ranks: Ranks) -> Iterator[tuple[int, bool]]:
    """Numbers of the batches of `count` that this rank measures, and whether each counts.

    Every rank gets as many, since ranks wait for each other in a forward pass; one that has none
    left repeats the last, which does not count.
    """
    world = ranks.layout.rows
    for number in range(ranks.row, -(-count // world) * world, world):
        yield min(number, count - 1), number < count


@dataclass(frozen=True)
class Groups:
    """Groups of tokens: one for each language of each source.

    `pairs` has the source (a position in `sources`) and the language of each group, sorted; the
    language is empty where documents declare none, None where languages are not measured or there
    are no tokens. Sums over groups give sources and languages.
    """

    sources: tuple[str, ...]
    pairs: tuple[tuple[int, str | None], ...]

    @classmethod
    def from_tokens(cls, sources: Sequence[str], tokens: Mapping[str, Mapping[str, int]]) -> Groups:
        """The groups of sources, by the `tokens` of each language in them."""
        return cls(
            tuple(sources),
            tuple(
                (number, language)
                for number, name in enumerate(sources)
                for language in languages_with_tokens(tokens[name]) or (None,)
            ),
        )

    @classmethod
    def by_source(cls, sources: Sequence[str]) -> Groups:
        """One group a source, without languages."""
        return cls.from_tokens(sources, {name: {} for name in sources})

    def __len__(self) -> int:
        return len(self.pairs)

    @cached_property
    def by_language(self) -> Mapping[str, Sequence[int]]:
        """The groups of each language; empty where there is only one language."""
        results: dict[str, list[int]] = {}
        for group, (_, language) in enumerate(self.pairs):
            if language is not None:
                results.setdefault(language, []).append(group)
        return dict(sorted(results.items())) if len(results) > 1 else {}

    def of_source(self, source: int) -> Sequence[int]:
        """The groups of a source."""
        return [group for group, (one, _) in enumerate(self.pairs) if one == source]

    @cached_property
    def _first(self) -> NDArray[np.int64]:
        """[sources] The first group of each."""
        starts = np.searchsorted([one for one, _ in self.pairs], np.arange(len(self.sources)))
        return starts.astype(np.int64)

    def numbers(
        self,
        shards: TokenShards,
        sources_B: Indices,
        sequences_B: Indices,
        documents_BL: NDArray[np.integer],
    ) -> NDArray[np.int64]:
        """[B, L] or [B, 1] The group of each token of these sequences; any in padding.

        `shards` has the sources of the groups; `documents_BL` has the number of each token's piece
        within its sequence.
        """
        first_B = self._first[np.asarray(sources_B)]
        if len(self) == len(self.sources):
            return first_B[:, None]
        return first_B[:, None] + shards.languages_within(sources_B, sequences_B, documents_BL)


_BITS = "Loss in bits over UTF-8 bytes of the targets"


@dataclass(frozen=True)
class SourceMetrics:
    """What is measured of a training step: by source, and by language if there are several.

    With `token_bytes` (UTF-8 bytes of each token, 0 for special ones), bits per byte too: over
    targets that are text, sum of nats / ln 2 / bytes.
    """

    groups: Groups
    token_bytes: NDArray[np.int64] | None = None

    def columns(self) -> tuple[Column, ...]:
        """The columns of `metrics.parquet` that `measures` fills."""
        results = [Column("targets", "int64", "Tokens that the step learnt to predict.")]
        if self.token_bytes is not None:
            results.append(Column("bits_per_byte", "float64?", _BITS + "."))
        for prefix, name, text, _ in self._parts():
            loss = f"Mean loss over targets {text}, nats."
            results += [
                Column(f"{prefix}loss/{name}", "float64?", loss),
                Column(f"{prefix}targets/{name}", "int64", f"Targets {text}."),
                Column(f"{prefix}tokens/{name}", "int64", f"Tokens {text}, padding not counted."),
            ]
            if self.token_bytes is not None:
                column = f"{prefix}bits_per_byte/{name}"
                results.append(Column(column, "float64?", f"{_BITS} {text}."))
        return tuple(results)

    def sums(
        self, losses_BL: Tensor, rows: Rows, groups_BL: NDArray[np.int64]
    ) -> dict[str, Tensor]:
        """The input of `measures`, `[groups]` each, to be added up over a step.

        `groups_BL` may be `[B, 1]`; its values for padding do not matter. Sums of losses are on
        the device of the losses; what is counted from rows alone stays on the host.
        """
        groups_BL, count = np.broadcast_to(groups_BL, rows.tokens_BL.shape), len(self.groups)
        losses_BL = losses_BL.detach().double()
        valid_BL = rows.targets_BL != IGNORED
        sums = {
            "losses": _sum_by_group(losses_BL, groups_BL, count),
            "targets": _count_by_group(valid_BL, groups_BL, count),
            "tokens": _count_by_group(rows.documents_BL != PADDED, groups_BL, count),
        }
        if self.token_bytes is not None:
            sizes_BL = np.where(valid_BL, self.token_bytes[rows.targets_BL * valid_BL], 0)
            text_BL = on_device(sizes_BL > 0, losses_BL.device)
            sums["text_losses"] = _sum_by_group(losses_BL * text_BL, groups_BL, count)
            sums["bytes"] = _count_by_group(sizes_BL, groups_BL, count)
        return sums

    def measures(self, summed: Mapping[str, list[float]]) -> dict[str, Any]:
        """The values of `columns` from sums over a whole step."""
        values: dict[str, Any] = {"targets": round(sum(summed["targets"]))}
        if self.token_bytes is not None:
            values["bits_per_byte"] = _bits_per_byte(summed, range(len(self.groups)))
        for prefix, name, _, groups in self._parts():
            losses, targets, tokens = (
                sum(summed[quantity][group] for group in groups)
                for quantity in ("losses", "targets", "tokens")
            )
            values[f"{prefix}loss/{name}"] = losses / round(targets) if targets else None
            values[f"{prefix}targets/{name}"] = round(targets)
            values[f"{prefix}tokens/{name}"] = round(tokens)
            if self.token_bytes is not None:
                values[f"{prefix}bits_per_byte/{name}"] = _bits_per_byte(summed, groups)
        return values

    def _parts(self) -> Iterator[tuple[str, str, str, Sequence[int]]]:
        """Each source and language: prefix and name of its columns, in words, its groups."""
        for number, source in enumerate(self.groups.sources):
            yield "", source, f"of {source}", self.groups.of_source(number)
        for language, groups in self.groups.by_language.items():
            text = f"in {language}" if language else "of documents that declare no language"
            yield "language_", language, text, groups


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

    def sum_over(self, ranks: Ranks) -> None:
        """Add what other ranks have added; to be called on all of them."""
        parts = np.stack((self.losses, self.targets, self.text_losses, self.bytes))
        summed = ranks.sum(torch.from_numpy(parts).to(ranks.device)).cpu().numpy()
        self.losses, self.targets, self.text_losses, self.bytes = summed

    def measured(self) -> list[HeldOut]:
        """Loss and bits per byte of `all`, of each source, and of each language of several.

        Without those that have no targets. Bits per byte count targets that are text, not special
        tokens: sum of nats / ln 2 / bytes.
        """
        results = [self._one("all", range(len(self.groups)))]
        for number, source in enumerate(self.groups.sources):
            results.append(self._one(source, self.groups.of_source(number)))
        for language, groups in self.groups.by_language.items():
            results.append(self._one("all", groups, language))
        return [one for one in results if one is not None]

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


def _sum_by_group(values_BL: Tensor, groups_BL: NDArray[np.int64], count: int) -> Tensor:
    index = on_device(groups_BL.flatten(), values_BL.device)
    zeros = torch.zeros(count, dtype=torch.float64, device=values_BL.device)
    return zeros.index_add(0, index, values_BL.flatten())


def _count_by_group(values_BL: NDArray[Any], groups_BL: NDArray[np.int64], count: int) -> Tensor:
    """[count] Sums of whole numbers by group, on the host."""
    chosen = values_BL != 0
    results = np.bincount(groups_BL[chosen], values_BL[chosen], minlength=count)
    return torch.from_numpy(results.astype(np.float64))


def _bits_per_byte(summed: Mapping[str, list[float]], groups: Sequence[int]) -> float | None:
    size = sum(summed["bytes"][i] for i in groups)
    nats = sum(summed["text_losses"][i] for i in groups)
    return nats / math.log(2) / size if size else None
