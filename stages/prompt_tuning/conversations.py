"""Packed conversations one by one, each after the virtual tokens.

B rows, L tokens.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from artifacts_schema.errors import InputError, UsageError
from stages.training.config import TooLong
from stages.training.examples import Example, fit_example
from stages.training.rows import Groups
from stages.training.token_marks import LEARNT
from stages.training.token_shards import PADDED, TokenShards

_AT_ONCE = 64


@dataclass(frozen=True)
class Conversations:
    """Conversations as examples, in the order of the shards.

    `ids` names each, `sources_N` is the position of its source in `groups.sources`; `reasons`
    counts those that were cut or left out, `total` all that the shards hold.
    """

    examples: list[Example]
    ids: list[str]
    sources_N: NDArray[np.int64]
    groups: Groups
    token_bytes: NDArray[np.int64] | None
    reasons: Counter[str]
    total: int

    def __len__(self) -> int:
        return len(self.examples)

    def groups_of(
        self, part: NDArray[np.int64], documents_BL: NDArray[np.integer]
    ) -> NDArray[np.int64]:
        """[B, L] The source of each token in rows of the conversations `part`; any in padding."""
        if not len(part):
            return np.zeros(documents_BL.shape, dtype=np.int64)
        return self.sources_N[part][np.where(documents_BL == PADDED, 0, documents_BL)]


NOTHING = Conversations([], [], np.zeros(0, np.int64), Groups.by_source(()), None, Counter(), 0)


def read_conversations(
    shards: TokenShards, virtual_N: NDArray[np.int64], longest: int, too_long: TooLong
) -> Conversations:
    """All conversations in `shards`, each after the ids `virtual_N`, `longest` predictions at most.

    InputError for shards of text, UsageError for messages with weights of their own.
    """
    text = [name for name in shards.sources if name not in shards.marked_sources]
    if text:
        raise InputError(
            f"source '{text[0]}' holds text, and a prompt is trained on conversations",
            where="token shards",
            hint="give what pack_chat packed",
        )
    if shards.is_weighted:
        raise UsageError(
            "messages have weights other than 0 and 1, which prompt tuning does not read",
            where="token shards",
            hint="pack them without weights, or train by sft",
        )
    examples, ids, sources, reasons, total = (
        list[Example](),
        list[str](),
        list[int](),
        Counter[str](),
        0,
    )
    for source, doc_id, own in _cut(shards):
        total += 1
        trained = np.concatenate([np.zeros(len(virtual_N), dtype=bool), own.trained])
        whole = Example(np.concatenate([virtual_N, own.ids]), trained)
        example, reason = fit_example(whole, longest, too_long)
        if reason is not None:
            reasons[reason] += 1
        if example is not None:
            examples.append(example)
            ids.append(doc_id)
            sources.append(source)
    return Conversations(
        examples,
        ids,
        np.array(sources, dtype=np.int64),
        Groups.by_source(shards.sources),
        shards.token_bytes(),
        reasons,
        total,
    )


def _cut(shards: TokenShards) -> Iterator[tuple[int, str, Example]]:
    """Source, id and tokens of each conversation."""
    for source, name in enumerate(shards.sources):
        for start in range(0, shards.sequences[name], _AT_ONCE):
            sequences = np.arange(start, min(start + _AT_ONCE, shards.sequences[name]))
            sources = np.full(len(sequences), source)
            ids_BL = shards.batch(sources, sequences).tokens_BL
            marks_BL = shards.marks(sources, sequences)
            for row, pieces in enumerate(shards.documents_of(sources, sequences)):
                for piece in pieces:
                    place = slice(piece.start, piece.start + piece.length)
                    learnt = (marks_BL[row, place] & LEARNT) > 0
                    yield source, piece.doc_id, Example(ids_BL[row, place].astype(np.int64), learnt)
