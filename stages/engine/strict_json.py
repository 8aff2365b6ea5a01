"""JSON from outside: bounded in depth; objects so that two readers can not read two things."""

from __future__ import annotations

import json
from typing import Any, NoReturn

from artifacts_schema.errors import InputError

MAX_DEPTH = 200
"""Deepest nesting that is read, so that what recurses over a value never meets Python's limit.

How deep that is depends on the caller's own stack, so the same row could be good in one place and
end the stage in another.
"""


def parse_json(data: str | bytes | bytearray, **options: Any) -> Any:
    """`json.loads`; ValueError for all that it cannot take, and for more than MAX_DEPTH levels."""
    try:
        value = json.loads(data, **options)
    except RecursionError:
        raise ValueError(_TOO_DEEP) from None
    opening = ("[", "{") if isinstance(data, str) else (b"[", b"{")
    if sum(map(data.count, opening)) > MAX_DEPTH and is_too_deep(value):  # type: ignore[arg-type]
        raise ValueError(_TOO_DEEP)
    return value


def is_too_deep(value: Any) -> bool:
    """Whether lists and objects are nested in more than MAX_DEPTH levels."""
    level = [value] if isinstance(value, dict | list) else []
    for _ in range(MAX_DEPTH):
        level = [
            item
            for one in level
            for item in (one.values() if isinstance(one, dict) else one)
            if isinstance(item, dict | list)
        ]
        if not level:
            return False
    return True


_TOO_DEEP = f"nested more than {MAX_DEPTH} levels deep"


def parse_object(data: bytes | bytearray, *, where: str) -> dict[str, Any]:
    """A JSON object of which no key comes twice.

    InputError for anything else: broken UTF-8, NaN and infinities, numbers of thousands of digits,
    nesting of more than MAX_DEPTH levels.
    """
    try:
        value = parse_json(
            data.decode("utf-8"), object_pairs_hook=_object, parse_constant=_no_constant
        )
    except UnicodeDecodeError:
        raise InputError("is not UTF-8", where=where) from None
    except ValueError as error:
        raise InputError(f"is not JSON: {error}", where=where) from None
    if not isinstance(value, dict):
        raise InputError(f"is not a JSON object but {type(value).__name__}", where=where)
    return value


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members: dict[str, Any] = {}
    for key, value in pairs:
        if key in members:
            raise ValueError(f"key {key[:80]!r} comes twice")
        members[key] = value
    return members


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number of JSON")
