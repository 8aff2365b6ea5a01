"""JSON from outside, read so that two readers can not take it for two things."""

from __future__ import annotations

import json
from typing import Any, NoReturn

from artifacts_schema.errors import InputError


def parse_object(data: bytes | bytearray, *, where: str) -> dict[str, Any]:
    """A JSON object of which no key comes twice.

    InputError for anything else: broken UTF-8, NaN and infinities, numbers of thousands of digits,
    nesting too deep for Python.
    """
    try:
        value = json.loads(
            data.decode("utf-8"), object_pairs_hook=_object, parse_constant=_no_constant
        )
    except UnicodeDecodeError:
        raise InputError("is not UTF-8", where=where) from None
    except RecursionError:
        raise InputError("is nested too deeply", where=where) from None
    except ValueError as error:
        raise InputError(f"is not JSON: {error}", where=where) from None
    if not isinstance(value, dict):
        raise InputError(f"is not a JSON object but {type(value).__name__}", where=where)
    return value


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise ValueError(f"key {key[:80]!r} comes twice")
        found[key] = value
    return found


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number of JSON")
