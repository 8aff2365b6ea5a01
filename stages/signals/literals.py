"""Which of many literals a text may hold, by its triples of bytes: one pass for all of them.

To search a text for each of 400 literals takes longer than all that follows where none is there. A
text of ten thousand characters has a few thousand triples of bytes, so nearly every literal has one
that it lacks, and is not searched.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

Triples: TypeAlias = npt.NDArray[np.bool_]

_SHORT = 40
"""Bytes of a text in which the searches themselves take less."""

_ALWAYS = 1 << 16
"""The place behind all triples, which is set for every text: what pads short literals."""


@lru_cache(maxsize=1)
def find_triples(encoded: bytes) -> Triples | None:
    """The triples of neighbouring bytes of a text, as 65,536 truths and one more.

    Triples share numbers, so of a literal that is not there all may be set. None for a short text.
    The last ones are kept: personal data and secrets are looked for in the same text.
    """
    if len(encoded) < _SHORT:
        return None
    triples = np.zeros(_ALWAYS + 1, np.bool_)
    triples[_ALWAYS] = True
    triples[_number_triples(encoded)] = True
    return triples


def _number_triples(encoded: bytes) -> npt.NDArray[np.uint16]:
    """The numbers of all triples: five bits apart, so that letters keep most of theirs."""
    codes = np.frombuffer(encoded, np.uint8).astype(np.uint16)
    numbers: npt.NDArray[np.uint16] = codes[2:] << np.uint16(10)
    numbers ^= codes[1:-1] << np.uint16(5)
    numbers ^= codes[:-2]
    return numbers


def find_all(text: str, literal: str) -> Iterator[int]:
    """Where a literal begins in a text, each time: a search by a literal is the fastest."""
    place = text.find(literal)
    while place >= 0:
        yield place
        place = text.find(literal, place + 1)


class Literals:
    """Literals, of which those are chosen that a text may hold."""

    def __init__(self, literals: Sequence[bytes]):
        numbers = [_number_triples(one) for one in literals]
        self._numbers = np.full((len(numbers), max(map(len, numbers), default=0)), _ALWAYS)
        self._all = range(len(numbers))
        for row, triples in zip(self._numbers, numbers, strict=True):
            row[: len(triples)] = triples
        self._last = np.array([one[-1] if len(one) else _ALWAYS for one in numbers], np.intp)

    def choose(self, triples: Triples | None) -> Sequence[int]:
        """The places of the literals whose every triple is there: all that the text holds."""
        if triples is None:
            return self._all
        rows = triples[self._last].nonzero()[0]  # One triple leaves few for the others.
        chosen: list[int] = rows[triples[self._numbers[rows]].all(axis=1)].tolist()
        return chosen
