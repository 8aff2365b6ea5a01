"""What line rules must know of a character: bits of its code point, as Python's `str` judges."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import numpy as np
from numpy.typing import NDArray

from stages.text.characters import CharacterTable, Table

SPACE, BREAK, CAPITAL, DIGIT, DECIMAL, ALPHANUMERIC, WORD = (1 << bit for bit in range(7))
"""`isspace`; a boundary of `splitlines`; `isupper`; `isdigit`; `isdecimal` (\\d of a pattern);
`isalnum`; \\w of a pattern."""

_BREAKS = frozenset("\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029")


def _flags(chars: str) -> Iterator[tuple[int, Iterable[int]]]:
    def places(test: Callable[[str], bool]) -> Iterable[int]:
        return (place for place, char in enumerate(chars) if test(char))

    yield SPACE, places(str.isspace)
    yield BREAK, places(_BREAKS.__contains__)
    yield CAPITAL, places(str.isupper)
    yield DIGIT, places(str.isdigit)
    yield DECIMAL, places(str.isdecimal)
    yield ALPHANUMERIC, places(str.isalnum)
    yield WORD, places(lambda char: char == "_" or char.isalnum())


_table = CharacterTable(_flags)


def classes_of(codes: NDArray[np.uint32]) -> Table:
    """[0x110000] bits, in which at least those of `codes` are set."""
    return _table.covering(codes)
