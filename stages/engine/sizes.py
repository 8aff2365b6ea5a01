"""Amounts of memory as a person writes and reads them."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import AfterValidator

_SIZE = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*([KMGT])(i?)B")


def bytes_of(size: str) -> int:
    """The bytes of a size such as "2GiB" (of 1,024) or "1.5 GB" (of 1,000), rounded down.

    Raises ValueError, worded for the person who wrote it, for anything else and for nothing.
    """
    found = _SIZE.fullmatch(size.strip())
    if found is None:
        raise ValueError(f"'{size}' is no size: a number and KB, MB, GB, TB or KiB to TiB, as 2GiB")
    number, unit, binary = found.groups()
    amount = int(float(number) * (1024 if binary else 1000) ** ("KMGT".index(unit) + 1))
    if amount == 0:
        raise ValueError(f"'{size}' is no memory at all")
    return amount


def _checked(size: str) -> str:
    bytes_of(size)
    return size


MemorySize = Annotated[str, AfterValidator(_checked)]
"""A field whose value `bytes_of` takes."""


def amount(count: float) -> str:
    """Bytes for a person to read: `512 B`, `38.2 MB`, `1.5 GB`, in steps of 1,000."""
    for unit in ("B", "kB", "MB", "GB"):
        if abs(count) < 1000:
            return f"{count:,.0f} {unit}" if unit == "B" else f"{count:,.1f} {unit}"
        count /= 1000
    return f"{count:,.1f} TB"
