"""Names that follow from content: canonical JSON, artifact keys and output digests.

A key says what an artifact *is* (stage, version, config, inputs); a digest says what its bytes
*are*. No path, host, time, worker count or device enters either.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

SCHEMA_VERSION = 2
"""Of the store's layout and of the key's payload. It changes every key."""

SHORT = 12
"""Hex digits shown to people."""


def canonical_json(value: Any) -> bytes:
    """UTF-8 JSON with sorted keys and no spaces; equal values give equal bytes on every machine.

    Raises TypeError for anything without one stable form: NaN and infinities, keys that are not
    strings, sets, bytes and objects.
    """
    return json.dumps(
        _checked(value, "$"), sort_keys=True, separators=(",", ":"), ensure_ascii=False
    ).encode("utf-8")


def _checked(value: Any, path: str) -> Any:
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, float):
        if not math.isfinite(value):
            raise TypeError(f"{path}: {value!r} has no canonical form")
        # 1.0 and 1 are one value in YAML and on the command line, so they are one value here.
        return int(value) if value.is_integer() and abs(value) < 2**53 else value
    if isinstance(value, Mapping):
        for key in value:
            if not isinstance(key, str):
                raise TypeError(f"{path}: key {key!r} is not a string")
        return {key: _checked(item, f"{path}.{key}") for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_checked(item, f"{path}[{i}]") for i, item in enumerate(value)]
    raise TypeError(f"{path}: {type(value).__name__} has no canonical form")


def canonical_sha256(value: Any) -> str:
    """sha256 of the canonical JSON of `value`, 64 hex digits."""
    return hashlib.sha256(canonical_json(value)).hexdigest()


def artifact_key(
    stage: str, version: int, config: Mapping[str, Any], inputs: Mapping[str, Sequence[str]]
) -> str:
    """The key of what `stage` makes of `inputs` under `config`, 64 hex digits.

    `config` holds only the fields that differ from their default (`Config.identity()`); `inputs`
    maps each role to the digests given to it, in order. An empty role is the same as an absent one.
    """
    return canonical_sha256(
        {
            "schema": SCHEMA_VERSION,
            "stage": stage,
            "version": version,
            "config": config,
            "inputs": {role: list(digests) for role, digests in inputs.items() if digests},
        }
    )


def interim_key(run: str, at: int, history: Iterable[object] = ()) -> str:
    """The key of what the run with key `run` commits at `at` of its own count, 64 hex digits.

    `history` is what was decided while it ran and bears on the bytes: a run that went back and left
    data out makes other artifacts from there on. Without any it does not enter the key.
    """
    decided = list(history)
    return canonical_sha256({"run": run, "at": at, **({"history": decided} if decided else {})})


def files_digest(files: Iterable[tuple[str, int, str]]) -> str:
    """The digest of an output: sha256 over the sorted (path, bytes, sha256) of its files."""
    rows = sorted(files)
    # Canonical already: strings and integers alone. An artifact may have a million of them.
    text = json.dumps(rows, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode("utf-8")).hexdigest()


def short(name: str) -> str:
    """The first digits of a key or digest, for people."""
    return name[:SHORT]


def document_id(snapshot: str, file: str, record: int | str) -> str:
    """The id of a document, 32 hex digits: derived from where it came from, not from its text.

    `record` is the byte offset of the record in `file` (for a gzip archive, of its member), 0 for a
    file that is one document, or the record's own id.
    """
    return hashlib.blake2b(canonical_json([snapshot, file, record]), digest_size=16).hexdigest()
