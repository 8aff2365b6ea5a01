"""Held-out sequences, spread over all there are, and the unigram baseline on them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from artifacts_schema.errors import InputError
from stages.engine import Input
from stages.scoring.unigram import unigram_nll
from stages.training.data import IGNORED, TokenShards
from stages.training.rows import Rows


@dataclass(frozen=True)
class HeldOutSet:
    """Some sequences of held-out shards: source and number of each; empty without shards."""

    shards: TokenShards | None
    sources_B: NDArray[np.int64]
    sequences_B: NDArray[np.int64]

    @classmethod
    def of(cls, inputs: Sequence[Input], most: int) -> HeldOutSet:
        """At most `most` sequences, each source by its size (at least one), evenly spaced in it.

        `most` is exceeded where there are more sources than that. InputError where sequences have
        several lengths: their losses would not be of one kind.
        """
        if not inputs:
            empty = np.zeros(0, dtype=np.int64)
            return cls(None, empty, empty)
        shards = TokenShards(inputs)
        lengths = sorted(set(shards.lengths.values()))
        if len(lengths) > 1:
            raise InputError(
                f"held-out sequences have {', '.join(map(str, lengths))} tokens",
                where="held_out",
                hint="give those of one length, as the last phase has",
            )
        sizes = [shards.sequences[source] for source in shards.sources]
        chosen = [
            spread(size, quota) for size, quota in zip(sizes, quotas(sizes, most), strict=True)
        ]
        return cls(
            shards,
            np.repeat(np.arange(len(sizes), dtype=np.int64), [len(one) for one in chosen]),
            np.concatenate([np.zeros(0, dtype=np.int64), *chosen]),
        )

    @property
    def sources(self) -> tuple[str, ...]:
        """Names of the sources; `sources_B` are positions in it."""
        return self.shards.sources if self.shards else ()

    def token_bytes(self) -> NDArray[np.int64] | None:
        """UTF-8 bytes of each token, 0 for special ones."""
        return self.shards.token_bytes() if self.shards else None

    def batches(self, rows: int) -> Iterator[tuple[Rows, NDArray[np.int64]]]:
        """The sequences in order, at most `rows` at a time, with the source of each row."""
        if self.shards is None:
            return
        for start in range(0, len(self.sources_B), rows):
            part = slice(start, start + rows)
            batch = self.shards.batch(self.sources_B[part], self.sequences_B[part])
            yield Rows(batch.tokens_BL, batch.targets_BL, batch.documents_BL), batch.sources_B

    def unigram(self, counts: NDArray[np.int64]) -> dict[str, float]:
        """Bits per byte of the token-unigram model with these counts: of `all`, and by source.

        Add-one smoothed, p(token) = (count + 1) / (total + vocabulary); over the same targets as
        the model's bits per byte, those that are text.
        """
        sizes, nll = self.token_bytes(), unigram_nll(counts)
        nats, size = np.zeros((2, len(self.sources)))
        for rows, sources_B in self.batches(64):
            assert sizes is not None
            valid = rows.targets_BL != IGNORED
            targets = rows.targets_BL[valid]
            sources = np.broadcast_to(sources_B[:, None], valid.shape)[valid]
            nats += np.bincount(sources, nll[targets] * (sizes[targets] > 0), len(nats))
            size += np.bincount(sources, sizes[targets], len(size))
        parts = {"all": (nats.sum(), size.sum())}
        parts |= {name: (nats[i], size[i]) for i, name in enumerate(self.sources)}
        return {name: float(a / np.log(2) / b) for name, (a, b) in parts.items() if b}


def quotas(sizes: Sequence[int], most: int) -> list[int]:
    """How many of each to take: all if they are few, else about in proportion, one at the least."""
    total = sum(sizes)
    if total <= most:
        return list(sizes)
    return [min(size, max(1, size * most // total)) for size in sizes]


def spread(size: int, count: int) -> NDArray[np.int64]:
    """`count` indexes below `size`, evenly spaced."""
    return np.arange(count, dtype=np.int64) * size // max(count, 1)
