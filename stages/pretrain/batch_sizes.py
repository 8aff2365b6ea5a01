"""Batch sizes as a person writes them: one number, or a schedule such as `0: 256, 1e9: 512`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import Decimal, InvalidOperation
from itertools import pairwise
from typing import Any

from stages.training.phases import Sizes

_PAIR = re.compile(r"([^\s:,]+)\s*:\s*([^\s:,]+)")
_BETWEEN = re.compile(r"[\s,]*")


def read_sizes(value: Any) -> int | Sizes:
    """What `value` means: a number, a text of pairs TOKEN: SEQUENCES, or a mapping of them.

    A schedule begins at token 0, and its tokens rise. ValueError for anything else.
    """
    if isinstance(value, str) and ":" in value:
        pairs = _PAIR.findall(value)
        if not _BETWEEN.fullmatch(_PAIR.sub("", value)):
            raise ValueError(f"'{value}' is no schedule like 0: 256, 1e9: 512")
    elif isinstance(value, Mapping):
        pairs = list(value.items())
    else:
        return _number(value, "sequences", 1)
    sizes = tuple((_number(a, "tokens", 0), _number(b, "sequences", 1)) for a, b in pairs)
    if not sizes or sizes[0][0] != 0:
        raise ValueError("a schedule of batch sizes begins at token 0")
    for (before, _), (after, _) in pairwise(sizes):
        if after <= before:
            raise ValueError(f"the tokens of a schedule rise, but {after:,} follows {before:,}")
    return sizes[0][1] if len(sizes) == 1 else sizes


def written(sizes: int | Sizes) -> int | str:
    """The one form in which equal schedules are equal."""
    if isinstance(sizes, int):
        return sizes
    return ", ".join(f"{token}: {size}" for token, size in sizes)


def _number(value: Any, what: str, least: int) -> int:
    """A whole number of tokens or sequences; 1e9 is one, 1.5 is none."""
    try:
        number = Decimal(str(value))
        whole = int(number)
    except (InvalidOperation, ValueError, OverflowError):
        raise ValueError(f"'{value}' is no number of {what}") from None
    if isinstance(value, bool) or whole != number or whole < least:
        raise ValueError(f"'{value}' is no number of {what} from {least}")
    return whole
