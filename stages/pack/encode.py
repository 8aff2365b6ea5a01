"""Documents to token ids: one flat array for a whole shard, and where each document starts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from tokenizers import Tokenizer

from stages.text.chat import BEGIN_OF_TEXT, END_OF_TEXT

BATCH_CHARACTERS = 1 << 20
"""Text encoded in one call: enough to share among threads, little enough to bound memory."""


@dataclass(frozen=True)
class Encoded:
    """Token ids of documents, one after the other; document i is ids[starts[i]:starts[i + 1]]."""

    ids: npt.NDArray[np.uint32]
    starts: npt.NDArray[np.int64]

    @property
    def lengths(self) -> npt.NDArray[np.int64]:
        """Tokens of each document."""
        return np.diff(self.starts)


def encode_documents(tokenizer: Tokenizer, texts: Sequence[str]) -> Encoded:
    """Each text as `begin_of_text`, its ids, `end_of_text`."""
    begin, end = tokenizer.token_to_id(BEGIN_OF_TEXT), tokenizer.token_to_id(END_OF_TEXT)
    parts: list[npt.NDArray[np.uint32]] = []
    lengths = np.zeros(len(texts) + 1, dtype=np.int64)
    done = 0
    for batch in _batches(texts):
        for encoding in tokenizer.encode_batch_fast(batch, add_special_tokens=False):
            parts.append(np.array([begin, *encoding.ids, end], dtype=np.uint32))
            done += 1
            lengths[done] = len(parts[-1])
    ids = np.concatenate(parts) if parts else np.empty(0, dtype=np.uint32)
    return Encoded(ids, np.cumsum(lengths))


def _batches(texts: Sequence[str]) -> Iterator[list[str]]:
    batch: list[str] = []
    characters = 0
    for text in texts:
        batch.append(text)
        characters += len(text)
        if characters >= BATCH_CHARACTERS:
            yield batch
            batch, characters = [], 0
    if batch:
        yield batch
