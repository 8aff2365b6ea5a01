"""What is measured apart in training: the sources, and the languages in them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from stages.training.data import TokenShards
    from stages.training.permutation import Indices


@dataclass(frozen=True)
class Groups:
    """A group of tokens for each language of each source, by number.

    `pairs` are the source (a position in `sources`) and the language of each, sorted; the language
    is empty where documents declare none, None where it is not asked for or there are no tokens.
    Sums over groups give both, sources and languages.
    """

    sources: tuple[str, ...]
    pairs: tuple[tuple[int, str | None], ...]

    @classmethod
    def of(cls, sources: Sequence[str], tokens: Mapping[str, Mapping[str, int]]) -> Groups:
        """Those of sources with so many `tokens` of each language."""
        return cls(
            tuple(sources),
            tuple(
                (number, language)
                for number, name in enumerate(sources)
                for language in spoken(tokens[name]) or (None,)
            ),
        )

    @classmethod
    def by_source(cls, sources: Sequence[str]) -> Groups:
        """One for each source, whatever its languages."""
        return cls.of(sources, {name: {} for name in sources})

    def __len__(self) -> int:
        return len(self.pairs)

    @cached_property
    def by_language(self) -> Mapping[str, Sequence[int]]:
        """The groups of each language, where there are several; else nothing."""
        found: dict[str, list[int]] = {}
        for group, (_, language) in enumerate(self.pairs):
            if language is not None:
                found.setdefault(language, []).append(group)
        return dict(sorted(found.items())) if len(found) > 1 else {}

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


def spoken(tokens: Mapping[str, int]) -> tuple[str, ...]:
    """The languages of a source with so many tokens of each, sorted."""
    return tuple(sorted(name for name, count in tokens.items() if count))
