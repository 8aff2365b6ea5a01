"""NEFTune: uniform noise on the embeddings while a model is fine-tuned (Jain et al. 2023).

Each channel of each token gets a draw from ±alpha / √(L · D), L the tokens of its document and D
the width (arXiv 2310.05914, algorithm 1); so the noise of a document has a length that depends on
alpha alone, and not on what it is packed with. Padding gets none.

A draw depends on seed, training step, and the number of the row in the step's batch: a resumed run,
other micro-batches and other ranks see the same noise on the same kind of device.

Shapes: B rows, L tokens, D width.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from stages.training.permutation import key_of
from stages.training.rows import Rows, on_device
from stages.training.token_shards import PADDED


@dataclass(frozen=True)
class EmbeddingNoise:
    """Noise of strength `alpha`; the authors use 5, 10 and 15."""

    alpha: float
    seed: int

    @contextmanager
    def applied(
        self, model: nn.Module, parts: Sequence[Rows], training_step: int, first_row: int
    ) -> Iterator[None]:
        """Until the block ends, each pass of `model` is of the next of `parts`, with its noise.

        `first_row` is the number of the first of their rows in the step's batch.
        """
        first_rows = np.cumsum([first_row, *(len(rows) for rows in parts)]).tolist()
        waiting = iter(zip(first_rows[:-1], parts, strict=True))

        def add(_: nn.Module, __: Any, states_BLD: Tensor) -> Tensor:
            first, rows = next(waiting)
            return states_BLD + self.draw(rows, states_BLD, training_step, first)

        embedding = model.embedding
        assert isinstance(embedding, nn.Module), "a decoder has embeddings"
        hook = embedding.register_forward_hook(add)
        try:
            yield
        finally:
            hook.remove()

    def draw(self, rows: Rows, states_BLD: Tensor, training_step: int, first_row: int) -> Tensor:
        """[B, L, D] The noise of `rows`, of the type and on the device of `states_BLD`."""
        noise_BLD = torch.empty_like(states_BLD, requires_grad=False)
        generator = torch.Generator(states_BLD.device)
        for number, noise_LD in enumerate(noise_BLD):
            key = key_of("embedding noise", self.seed, training_step, first_row + number)
            generator.manual_seed(int.from_bytes(key[:8], "little") >> 1)
            noise_LD.uniform_(-1, 1, generator=generator)
        lengths_BL = document_lengths(rows.documents_BL)
        scale_BL = self.alpha / np.sqrt(np.maximum(lengths_BL, 1) * states_BLD.shape[-1])
        scale_BL[lengths_BL == 0] = 0
        scale = on_device(scale_BL.astype(np.float32), states_BLD.device).to(states_BLD.dtype)
        return noise_BLD * scale[..., None]


def document_lengths(documents_BL: NDArray[Any]) -> NDArray[np.int64]:
    """[B, L] Of each token, the tokens of its document in the row; 0 for padding."""
    first_BL = np.ones(documents_BL.shape, dtype=np.bool_)
    first_BL[:, 1:] = documents_BL[:, 1:] != documents_BL[:, :-1]
    pieces = np.cumsum(first_BL.ravel()) - 1
    lengths_BL = np.bincount(pieces)[pieces].reshape(documents_BL.shape)
    lengths_BL[documents_BL == PADDED] = 0
    return lengths_BL
