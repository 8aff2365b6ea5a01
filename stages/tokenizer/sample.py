"""Which documents a tokenizer is trained on, and which are held out to measure it.

Shares of the training text are requested by source and by language, and fitted to what there is.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from artifacts_schema.errors import InputError

Cell = tuple[str, str]
"""Source and language; the language of documents that declare none is UNKNOWN."""

UNKNOWN = "unknown"

_ROUNDS = 1000
_CLOSE = 1e-9


@dataclass(frozen=True)
class RequestedShares:
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
        """What shares are requested by: `source`, `language`."""
        by_language = bool(self.languages) or self.alpha is not None
        return ("source",) * bool(self.sources) + ("language",) * by_language

    def shares(self, available: Mapping[Cell, int]) -> dict[Cell, float]:
        """The share of each cell of `available` bytes; they sum to one.

        If both sources and languages are requested, the natural table is scaled to its margins in
        turn (iterative proportional fitting, Deming & Stephan 1940), which keeps the association
        of the two. InputError if no table of these cells has the margins.
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
        fitted = _fit_margins(table, margins)
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
    field: str, names: list[str], natural: NDArray[np.float64], shares_by_name: Mapping[str, float]
) -> _Margin:
    """Each requested name is a group of its own; the others are one group."""
    missing = sorted(set(shares_by_name) - set(names))
    if missing:
        raise InputError(
            f"{field} names {missing[0]!r}, of which there is no text",
            where="tokenizer",
            hint=f"there is: {', '.join(names)}",
        )
    requested = sum(shares_by_name.values())
    if shares_by_name and len(shares_by_name) == len(names) and abs(requested - 1) > 1e-6:
        raise InputError(
            f"{field} name all that there is and sum to {requested:g}",
            where="tokenizer",
            hint="let them sum to 1",
        )
    order = sorted(shares_by_name)
    groups = [order.index(name) if name in shares_by_name else len(order) for name in names]
    shares = np.array([*(shares_by_name[name] for name in order), max(0.0, 1 - requested)])
    return _Margin(np.array(groups), shares)


def _fit_margins(table: NDArray[np.float64], margins: list[_Margin]) -> NDArray[np.float64]:
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


PER_OCTAVE = 256
BINS = 54 * PER_OCTAVE


AXES = ("source", "language")
"""What a cell holds, in its order."""


class Sample:
    """About `max_bytes` of a corpus, drawn by a hash of each duplicate class.

    The hash is a document's depth in (0, 1]; `bins` are the bytes of each source and language by
    depth. The lowest `held_share` of the draw is held (depths up to `held`); above it each source
    and language is trained on from the lowest depth up (to that of `limits`), until it has the
    bytes that its share of the whole requests. So copies of a text are never both held and trained
    on, and a larger sample holds a smaller one. `documents` and `bytes` count by cell what was
    trained on; `shortages` names what there is too little of: all of it is taken, and of the rest
    as much as was requested.
    """

    def __init__(
        self,
        bins: Mapping[Cell, NDArray[np.int64]],
        max_bytes: int,
        held_share: float,
        requested: RequestedShares,
    ) -> None:
        self._axes = requested.axes
        self.documents, self.bytes = Counter[Cell](), Counter[Cell]()
        total = int(sum(sizes.sum() for sizes in bins.values()))
        self.drawn_share = min(1.0, max_bytes / max(1, total))
        self.held = self.drawn_share * held_share
        first = int(depth_bins(np.array([self.held]))[0]) if self.held else BINS
        free = {cell: sizes[: first + 1] for cell, sizes in bins.items()}
        self.available = {cell: int(sizes.sum()) for cell, sizes in free.items()}
        self.target = min(max_bytes * (1.0 - held_share), float(sum(self.available.values())))
        self.shares = requested.shares(self.available) if self.target else {}
        self.limits = {
            cell: _depth(free[cell], share * self.target) for cell, share in self.shares.items()
        }

    def count(self, texts: Iterable[tuple[Cell, str]]) -> Iterator[str]:
        """The texts to train on, each counted for its cell."""
        for cell, text in texts:
            self.documents[cell] += 1
            self.bytes[cell] += len(text.encode())
            yield text

    def account(self) -> dict[str, Any]:
        """What was trained on, for training.json: bytes by source and language, had and requested.

        `short` lists the requested sources and languages that lack over 1 % of their bytes.
        """
        account: dict[str, Any] = {
            "documents": self.documents.total(),
            "bytes": self.bytes.total(),
            "drawn_share": self.drawn_share,
        }
        for position, key in enumerate(("sources", "languages")):
            documents, sizes, shares = (
                _sum_by_name(values, position)
                for values in (self.documents, self.bytes, self.shares)
            )
            account[key] = {
                name: {
                    "documents": documents[name],
                    "bytes": sizes[name],
                    "share": round(sizes[name] / max(1, account["bytes"]), 6),
                    "asked_share": round(shares[name], 6),
                }
                for name in sorted(documents)
            }
        return {**account, "short": self.shortages()}

    def shortages(self) -> list[dict[str, Any]]:
        """Sources and languages that lack over 1 % of the bytes requested; `asked` is in bytes."""
        goals = {cell: share * self.target for cell, share in self.shares.items()}
        reached = {cell: min(self.available[cell], goal) for cell, goal in goals.items()}
        shortages = []
        for by in self._axes:
            wanted, available = (_sum_by_name(one, AXES.index(by)) for one in (goals, reached))
            shortages += [
                {
                    "by": by,
                    "name": name,
                    "asked": round(wanted[name]),
                    "available": round(available[name]),
                }
                for name in sorted(wanted)
                if available[name] < 0.99 * wanted[name]
            ]
        return shortages

    def largest(self) -> int:
        """Bytes to train on at which nothing would be short, about."""
        fits = [self.available[cell] / share for cell, share in self.shares.items() if share]
        return int(min(fits, default=0.0))


def depth_bins(depths: NDArray[np.float64]) -> NDArray[np.int64]:
    """Which of BINS bins each depth in (0, 1] lies in: 0 is the deepest.

    Each octave has 256 of them, so a bin is 1/256 of what lies below it, at most: a share is met
    as well where one in a million documents is drawn as where all are.
    """
    mantissa, exponent = np.frexp(depths)
    within = ((1.0 - mantissa) * 2 * PER_OCTAVE).astype(np.int64)
    return -exponent.astype(np.int64) * PER_OCTAVE + within


def bin_depth(number: int) -> float:
    """The greatest depth in a bin; 0 past the last one."""
    octave, place = divmod(number, PER_OCTAVE)
    return float(np.ldexp(1.0 - place / (2 * PER_OCTAVE), -octave)) if number < BINS else 0.0


def _depth(sizes: NDArray[np.int64], target: float) -> float:
    """Down from which depth the bins hold the sum nearest to `target`."""
    sums = np.append(np.cumsum(sizes[::-1])[::-1], 0)
    number = int(np.abs(sums - target).argmin())
    return bin_depth(number) if number < len(sizes) else 0.0


def _sum_by_name(values: Mapping[Cell, float], position: int) -> dict[str, float]:
    """Sums over the cells of each source (position 0) or language (1)."""
    sums: dict[str, float] = {}
    for cell, value in values.items():
        sums[cell[position]] = sums.get(cell[position], 0) + value
    return sums
