"""Which encoder a run takes; a fast one is trusted once its ids are those of `tokenizers`.

They are compared on texts that have parted tokenizers before, on the first documents of the run,
and in each process on the first documents of each shard.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from artifacts_schema.errors import UsageError
from stages.pack.encode import Encoder, GigatokenEncoder, TokenizersEncoder
from stages.pack.hostile import HOSTILE
from stages.pack.plan import Plan
from stages.pack.texts import batches

if TYPE_CHECKING:
    from stages.pack.documents import DocumentShard

RUN_BYTES, SHARD_BYTES = 1 << 16, 1 << 14
"""Of the first documents of a run, and of each shard."""
_SHOWN = 40


@lru_cache(maxsize=1)
def encoder_of(plan: Plan) -> Encoder:
    """The encoder that the plan names: one for all shards of a process, as loading takes a while
    and some remember words."""
    if plan.encoder == "gigatoken":
        return GigatokenEncoder(plan.description)
    return TokenizersEncoder(plan.tokenizer())


@lru_cache(maxsize=1)
def _reference(plan: Plan) -> TokenizersEncoder:
    return TokenizersEncoder(plan.tokenizer())


def chosen_encoder(
    wanted: str, plan: Plan, shards: Sequence[DocumentShard], log: logging.Logger
) -> str:
    """`tokenizers` or `gigatoken`: what `wanted` stands for, once it has been tried.

    UsageError if gigatoken is asked for but not installed, has no such tokenizer, or gives other
    ids: the first difference is named.
    """
    if wanted == "tokenizers":
        return wanted
    try:
        fast = GigatokenEncoder(plan.description)
        check_ids(fast, plan, pa.array(HOSTILE, pa.string()), "a probe text")
        for shard in shards[:1]:
            for batch in batches(shard.shard, ["text"], RUN_BYTES):
                check_ids(fast, plan, batch["text"], "one of the first documents")
                break
    except UsageError as problem:
        if wanted == "gigatoken":
            raise
        log.info("encoded by tokenizers: %s", problem.what)
        return "tokenizers"
    return "gigatoken"


def check_ids(encoder: Encoder, plan: Plan, texts: pa.StringArray, what: str) -> None:
    """UsageError that names the first of `texts` of which `tokenizers` gives other ids."""
    reference = _reference(plan)(texts)
    found = encoder(texts)
    if np.array_equal(found.starts, reference.starts) and np.array_equal(found.ids, reference.ids):
        return
    for row in range(len(texts)):
        theirs, ours = (
            one.ids[one.starts[row] : one.starts[row + 1]].tolist() for one in (found, reference)
        )
        if theirs != ours:
            raise _differs(texts[row].as_py(), what, theirs, ours)


def _differs(text: str, what: str, theirs: list[int], ours: list[int]) -> UsageError:
    place = next(
        (n for n, (one, two) in enumerate(zip(theirs, ours, strict=False)) if one != two),
        min(len(theirs), len(ours)),
    )
    shown = text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
    return UsageError(
        f"gigatoken gives other ids than tokenizers for {what}, {shown!r}: token {place} is "
        f"{_id(theirs, place)}, not {_id(ours, place)}",
        where="execution.encoder",
        hint="set encoder: tokenizers",
    )


def _id(ids: list[int], place: int) -> int | str:
    return ids[place] if place < len(ids) else "missing"
