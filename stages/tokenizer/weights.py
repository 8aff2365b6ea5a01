"""Shares of the training text: what is asked of each source and language, and what that means."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from artifacts_schema.errors import InputError

Cell = tuple[str, str]
"""Source and language; the language of documents that declare none is UNKNOWN."""

UNKNOWN = "unknown"

_ROUNDS = 1000
_CLOSE = 1e-9


@dataclass(frozen=True)
class Asked:
    """Shares of bytes by source and by language; what is not named keeps its natural share.

    `alpha` smooths languages instead: their shares are proportional to p ** alpha, p being the
    natural share (Conneau & Lample 2019, section 3.1; alpha is 0.3 in XLM-R, Conneau et al. 2020,
    and in mT5, Xue et al. 2021).
    """

    sources: Mapping[str, float]
    languages: Mapping[str, float]
    alpha: float | None = None

    @property
    def axes(self) -> tuple[str, ...]:
        """What shares are asked of: `source`, `language`."""
        by_language = bool(self.languages) or self.alpha is not None
        return ("source",) * bool(self.sources) + ("language",) * by_language

    def shares(self, available: Mapping[Cell, int]) -> dict[Cell, float]:
        """The share of each cell of `available` bytes; they sum to one.

        Where sources and languages are both asked for, the natural table is scaled to both margins
        by turns (iterative proportional fitting, Deming & Stephan 1940), which keeps what it says
        of the two together. InputError where no table of these cells has the margins.
        """
        cells = sorted(cell for cell, size in available.items() if size)
        sources = sorted({source for source, _ in cells})
        languages = sorted({language for _, language in cells})
        table = np.zeros((len(sources), len(languages)))
        for source, language in cells:
            place = sources.index(source), languages.index(language)
            table[place] = available[source, language]
        table /= table.sum()
        margins = [
            _margin("weights", sources, table.sum(axis=1), self.sources),
            _margin("language_weights", languages, table.sum(axis=0), self.languages),
        ]
        if self.alpha is not None:
            smoothed = table.sum(axis=0) ** self.alpha
            margins[1] = _Margin(np.arange(len(languages)), smoothed / smoothed.sum())
        fitted = _fitted(table, margins)
        return {
            (source, language): float(fitted[row, column])
            for row, source in enumerate(sources)
            for column, language in enumerate(languages)
            if table[row, column]
        }


@dataclass(frozen=True)
class _Margin:
    """The group that each name is in, and the share of each group."""

    groups: NDArray[np.int64]
    shares: NDArray[np.float64]


def _margin(
    field: str, names: list[str], natural: NDArray[np.float64], asked: Mapping[str, float]
) -> _Margin:
    """Each name asked for is a group of its own; the rest are one, whose inside nobody holds."""
    missing = sorted(set(asked) - set(names))
    if missing:
        raise InputError(
            f"{field} names {missing[0]!r}, of which there is no text",
            where="tokenizer",
            hint=f"there is: {', '.join(names)}",
        )
    given = sum(asked.values())
    if asked and len(asked) == len(names) and abs(given - 1) > 1e-6:
        raise InputError(
            f"{field} name all that there is and sum to {given:g}",
            where="tokenizer",
            hint="let them sum to 1",
        )
    order = sorted(asked)
    groups = [order.index(name) if name in asked else len(order) for name in names]
    shares = np.array([*(asked[name] for name in order), max(0.0, 1 - given)])
    return _Margin(np.array(groups), shares)


def _fitted(table: NDArray[np.float64], margins: list[_Margin]) -> NDArray[np.float64]:
    fitted = table.copy()
    for _ in range(_ROUNDS):
        for axis, margin in enumerate(margins):
            have = _sums(fitted, axis, margin)
            factor = np.divide(margin.shares, have, out=np.zeros_like(have), where=have > 0)
            each = factor[margin.groups]
            fitted *= each[:, None] if axis == 0 else each
        if all(
            np.abs(_sums(fitted, axis, margin) - margin.shares).max() < _CLOSE
            for axis, margin in enumerate(margins)
        ):
            return fitted / fitted.sum()
    raise InputError(
        "no sample has the shares of `weights` and of `language_weights` both",
        where="tokenizer",
        hint="a source lacks the languages that its share would need; name shares of one of them",
    )


def _sums(table: NDArray[np.float64], axis: int, margin: _Margin) -> NDArray[np.float64]:
    """Sum of each group's rows (axis 0) or columns."""
    inside = table.sum(axis=1 - axis)
    sums: NDArray[np.float64] = np.zeros(len(margin.shares))
    np.add.at(sums, margin.groups, inside)
    return sums
