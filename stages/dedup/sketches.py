"""Signatures of a `dedup_index` as datasketch's `LeanMinHash`: for its LSH, ensembles and forests.

An index keeps the shingles of each document, not its signature, which is computed again with the
index's own hash functions. datasketch compares sketches of equal seed and length by the share of
equal values, whatever functions made them: so two sketches from here agree exactly as Ingot's
signatures do. Compared with a sketch that datasketch made itself they mean nothing, and `update`
must not be called. (`scheme` names datasketch's own functions: "legacy" keeps ours from being
compared with those of its present ones.) A document with more shingles than the index keeps (8,192
by default) is sketched from those that are kept, the least ones.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from artifacts_schema.errors import InputError
from stages.dedup.index_files import BLOCK_OF_SIZES, ID_BYTES
from stages.dedup.index_record import RECORD
from stages.dedup.minhash import MinHash
from stages.dedup.presets import Settings

if TYPE_CHECKING:
    from datasketch import LeanMinHash

    from stages.engine.inputs import Input

_TOGETHER = 1_024
"""Documents whose signatures are computed at once."""


def read_sketches(index: Input) -> Iterator[tuple[str, LeanMinHash]]:
    """Id and sketch of each document with shingles, in the order of the index.

    A sketch has bands * rows values. Raises InputError for an index without shingles.
    """
    record = index.read_json(RECORD)
    if not record.get("kept") or not record["verified"]:
        raise InputError(
            "the index holds no shingles",
            where=f"{index.output} of {index.stage}",
            hint="make it with index: true and verify: true",
        )
    settings = Settings(**record["settings"])
    for generation in record["generations"]:
        for shard in generation["shards"]:
            yield from _read_shard(index, shard, settings)


def _read_shard(
    index: Input, shard: dict[str, Any], settings: Settings
) -> Iterator[tuple[str, LeanMinHash]]:
    from datasketch import LeanMinHash

    documents, stem = shard["documents"], shard["stem"]
    ids = index.local_path(f"{stem}.ids").read_bytes()
    blocks = np.fromfile(index.local_path(f"{stem}.sizes"), BLOCK_OF_SIZES)
    sizes = np.minimum(blocks["sizes"].reshape(-1)[:documents], settings.most).astype(np.int64)
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    path = index.local_path(f"{stem}.shingles")
    shingles = np.memmap(path, "<u8", "r") if offsets[-1] else np.empty(0, np.uint64)
    minhash = MinHash(settings)
    for first in range(0, documents, _TOGETHER):
        part = offsets[first : first + _TOGETHER + 1]
        values = np.array(shingles[part[0] : part[-1]], dtype=np.uint64)
        signatures = minhash.signatures(values, part - part[0]).astype(np.uint64)
        for place, signature in enumerate(signatures):
            if part[place + 1] > part[place]:
                name = ids[(first + place) * ID_BYTES : (first + place + 1) * ID_BYTES].hex()
                yield (
                    name,
                    LeanMinHash(seed=settings.seed, hashvalues=signature, scheme="legacy"),
                )
