"""Signatures of a `dedup_index` as datasketch's `LeanMinHash`: for its LSH, ensembles and forests.

An index keeps neither the shingles of a document nor its signature, which is computed again from
its text with the index's own hash functions. datasketch compares sketches of equal seed and length
by the share of equal values, whatever functions made them: so two sketches from here agree exactly
as Ingot's signatures do. Compared with a sketch that datasketch made itself they mean nothing, and
`update` must not be called. (`scheme` names datasketch's own functions: "legacy" keeps ours from
being compared with those of its present ones.)
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from artifacts_schema.errors import InputError
from artifacts_schema.identity import short
from stages.dedup.index_record import read_record
from stages.dedup.minhash import MinHash
from stages.dedup.presets import Settings
from stages.dedup.shingling import shingler
from stages.dedup.signing import document_batches

if TYPE_CHECKING:
    from datasketch import LeanMinHash

    from stages.engine.inputs import Input


def read_sketches(index: Input, documents: Sequence[Input]) -> Iterator[tuple[str, LeanMinHash]]:
    """Id and sketch of each document with shingles, in the order of the index.

    `documents` are the documents outputs that the index describes. A sketch has bands * rows
    values. Raises InputError for an index that was not kept, or where documents are missing.
    """
    from datasketch import LeanMinHash

    record = read_record(index)
    settings = Settings(**record["settings"])
    shingle, minhash = shingler(settings), MinHash(settings)
    by_digest = {one.digest: one for one in documents}
    for digest in (generation["documents"] for generation in record["generations"]):
        if digest not in by_digest:
            raise InputError(
                f"the documents {short(digest)} of the index are missing",
                where=f"{index.output} of {index.stage}",
                hint="pass the documents outputs that the index was made from",
            )
        for shard in by_digest[digest].shards():
            for batch in document_batches(shard, ["doc_id", "text"]):
                shingled = shingle(batch["text"])
                signatures = minhash.signatures(shingled.hashes, shingled.offsets).astype("uint64")
                compared = shingled.offsets[1:] > shingled.offsets[:-1]
                ids = batch["doc_id"].to_pylist()
                for name, signature, has_shingles in zip(ids, signatures, compared, strict=True):
                    if has_shingles:
                        sketch = LeanMinHash(
                            seed=settings.seed, hashvalues=signature, scheme="legacy"
                        )
                        yield name, sketch
