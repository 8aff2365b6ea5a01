"""Bits per byte of held-out documents under a model and under the unigram model."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray

from artifacts_schema.errors import InputError
from stages.evaluate.observations import Observation
from stages.scoring.likelihood import target_nll

if TYPE_CHECKING:
    from tokenizers import Tokenizer

    from stages.model.decoder import Decoder
    from stages.training.data import Piece, TokenShards


def check_shards(shards: TokenShards, model: Decoder, tokenizer: Tokenizer) -> None:
    """InputError unless the shards hold this tokenizer's ids, in rows that the model can see."""
    if shards.vocabulary_size != tokenizer.get_vocab_size():
        raise InputError(
            f"held-out shards have a vocabulary of {shards.vocabulary_size}, "
            f"the checkpoint's tokenizer has {tokenizer.get_vocab_size()}",
            hint="evaluate on shards packed with the tokenizer of the checkpoint",
        )
    if shards.sequence_length > model.config.context:
        raise InputError(
            f"held-out sequences have {shards.sequence_length} tokens, "
            f"the model's context has {model.config.context}",
            hint="pack held-out text at the model's context",
        )


def measure_source(
    model: Decoder,
    shards: TokenShards,
    source: str,
    unigram_nll: NDArray[np.float64],
    *,
    max_tokens: int,
    batch_tokens: int,
    check_stop: Callable[[], None] = lambda: None,
) -> list[Observation]:
    """An observation for each held-out document of `source`, in the order of first appearance.

    bits per byte = Σ nll / ln 2 / Σ bytes over targets that stand for bytes: special tokens count
    on neither side, and the first token of a piece cut from a longer document has no target.
    """
    token_bytes = shards.token_bytes()
    sequences = evenly(shards.sequences[source], max(1, max_tokens // shards.sequence_length))
    rows = max(1, batch_tokens // shards.sequence_length)
    sums: dict[str, NDArray[np.float64]] = {}
    for start in range(0, len(sequences), rows):
        check_stop()
        chosen_B = sequences[start : start + rows]
        sources_B = np.full(len(chosen_B), shards.sources.index(source), dtype=np.int64)
        batch = shards.batch(sources_B, chosen_B)
        nll_BL = target_nll(
            model, *map(torch.from_numpy, (batch.tokens_BL, batch.targets_BL, batch.documents_BL))
        )
        targets_BL = np.maximum(batch.targets_BL, 0)
        bytes_BL = np.where(batch.targets_BL >= 0, token_bytes[targets_BL], 0)
        counted_BL = bytes_BL > 0
        measured_3BL = np.stack(
            [nll_BL * counted_BL, bytes_BL, unigram_nll[targets_BL] * counted_BL]
        )
        _add(sums, measured_3BL, shards.documents_of(sources_B, chosen_B))
    return [
        Observation(
            f"held_out/{source}",
            doc_id,
            "bits_per_byte",
            numerator=float(nll / math.log(2)),
            denominator=float(size),
            baseline=float(unigram / math.log(2)),
        )
        for doc_id, (nll, size, unigram) in sums.items()
        if size
    ]


def evenly(count: int, limit: int) -> NDArray[np.int64]:
    """At most `limit` of the numbers 0 … count - 1, at even distances."""
    taken = min(count, limit)
    return np.arange(taken, dtype=np.int64) * count // max(taken, 1)


def _add(
    sums: dict[str, NDArray[np.float64]],
    measured_3BL: NDArray[np.float64],
    documents: Sequence[Sequence[Piece]],
) -> None:
    """Add nll, bytes and unigram nll of every piece to its document's."""
    for row, pieces in enumerate(documents):
        for piece in pieces:
            span = slice(piece.start, piece.start + piece.length)
            total = sums.setdefault(piece.doc_id, np.zeros(3))
            total += measured_3BL[:, row, span].sum(axis=1)
