"""Held-out sequences, spread over all there are, and the unigram baseline on them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray

from artifacts_schema.errors import InputError
from stages.engine import Input
from stages.scoring.unigram import unigram_nll
from stages.training.by_source import HeldOutSums
from stages.training.data import TokenShards
from stages.training.groups import Groups
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

    @cached_property
    def groups(self) -> Groups:
        """What is measured apart: sources, and languages in them."""
        return Groups.of(self.sources, self.shards.languages if self.shards else {})

    def batches(self, rows: int) -> Iterator[Rows]:
        """The sequences in order, at most `rows` at a time."""
        if self.shards is None:
            return
        for start in range(0, len(self.sources_B), rows):
            part = slice(start, start + rows)
            batch = self.shards.batch(self.sources_B[part], self.sequences_B[part])
            yield Rows(batch.tokens_BL, batch.targets_BL, batch.documents_BL)

    def groups_of(self, first: int, rows: Rows) -> NDArray[np.int64]:
        """[B, L] or [B, 1] The group of each token of the sequences from `first` on.

        `rows` are these sequences, as the data has them or as an objective shows them.
        """
        assert self.shards is not None, "without shards there are no sequences"
        part = slice(first, first + len(rows))
        return self.groups.numbers(
            self.shards, self.sources_B[part], self.sequences_B[part], rows.documents_BL
        )

    def unigram(self, counts: NDArray[np.int64]) -> dict[str, dict[str, float]]:
        """Bits per byte of the token-unigram model with these counts: by source and by language.

        `unigram_bits_per_byte` of `all` and of each source, `unigram_bits_per_byte_by_language` of
        each language, where there are several. Add-one smoothed, p(token) = (count + 1) / (total +
        vocabulary); over the same targets as the model's bits per byte, those that are text.
        """
        nll = torch.from_numpy(unigram_nll(counts))
        total, first = HeldOutSums(self.groups, self.token_bytes()), 0
        for rows in self.batches(64):
            total.add(nll[np.maximum(rows.targets_BL, 0)], rows, self.groups_of(first, rows))
            first += len(rows)
        by_source: dict[str, float] = {}
        by_language: dict[str, float] = {}
        for one in total.measured():
            if one.bits_per_byte is not None and one.language is None:
                by_source[one.source] = one.bits_per_byte
            elif one.bits_per_byte is not None and one.language is not None:
                by_language[one.language] = one.bits_per_byte
        return {
            "unigram_bits_per_byte": by_source,
            "unigram_bits_per_byte_by_language": by_language,
        }


def quotas(sizes: Sequence[int], most: int) -> list[int]:
    """How many of each to take: all if they are few, else about in proportion, one at the least."""
    total = sum(sizes)
    if total <= most:
        return list(sizes)
    return [min(size, max(1, size * most // total)) for size in sizes]


def spread(size: int, count: int) -> NDArray[np.int64]:
    """`count` indexes below `size`, evenly spaced."""
    return np.arange(count, dtype=np.int64) * size // max(count, 1)
