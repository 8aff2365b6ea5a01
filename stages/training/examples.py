"""Examples of post-training: token sequences of which a part is learnt, and their order."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from stages.text.chat import Segment, encode
from stages.training.config import TooLong
from stages.training.permutation import Permutation, key_of

if TYPE_CHECKING:
    from tokenizers import Tokenizer

    from stages.engine import Context


@dataclass(frozen=True)
class Example:
    """A token sequence, and which of its tokens are learnt (never the first, unpredicted)."""

    ids: NDArray[np.int64]
    trained: NDArray[np.bool_]

    def __len__(self) -> int:
        """Predictions, one less than tokens: what the example takes in a row."""
        return len(self.ids) - 1

    @property
    def targets(self) -> int:
        """Tokens that are learnt."""
        return int(self.trained[1:].sum())

    def cut(self, length: int) -> Example:
        """The first `length` predictions of the sequence."""
        return Example(self.ids[: length + 1], self.trained[: length + 1])


def encoded(tokenizer: Tokenizer, parts: Iterable[Segment]) -> Example:
    """The example that a rendered conversation makes."""
    ids, trained = encode(tokenizer, parts)
    return Example(np.array(ids, dtype=np.int64), np.array(trained, dtype=bool))


def fitted(example: Example, context: int, too_long: TooLong) -> tuple[Example | None, str | None]:
    """The example as a model of `context` can learn it, and why it is changed or (None) left out.

    Reasons: `truncated`, `too_long`, `nothing_to_learn` (no learnt token, maybe after the cut).
    """
    reason = None
    if len(example) > context:
        if too_long == "drop":
            return None, "too_long"
        example, reason = example.cut(context), "truncated"
    if not example.targets:
        return None, "nothing_to_learn"
    return example, reason


def held_out_split(
    ids: Sequence[str], share: float, seed: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Indexes to train on and to hold out, about `share` of them, decided by a hash of each id.

    So an example stays on its side whatever else joins the data.
    """
    limit = int(share * 2**64)
    held = np.array(
        [int.from_bytes(key_of("held out", seed, one)[:8], "big") < limit for one in ids],
        dtype=bool,
    )
    return np.flatnonzero(~held), np.flatnonzero(held)


def report_unused(context: Context, unused: Mapping[str, int]) -> None:
    """Warn of what the data has and the training does not use."""
    for name, count in sorted(unused.items()):
        what = name.removesuffix("_unused").replace("_", " ")
        context.log.warning("%s, which ChatML does not hold: %d", what, count)


def unused_rows(account: Mapping[str, Any]) -> tuple[tuple[str, int], ...]:
    """The same for a page, from what `run.json` says of the data."""
    return tuple(
        (name.replace("_", " "), count) for name, count in sorted(account["unused"].items())
    )


@dataclass(frozen=True)
class ExampleClock:
    """Which examples a training step sees: `epochs` times all of them, each time shuffled anew."""

    size: int
    per_batch: int
    epochs: int
    seed: int

    @property
    def steps(self) -> int:
        """Training steps; the last may be smaller."""
        return -(-self.size * self.epochs // self.per_batch)

    def batch(self, training_step: int) -> NDArray[np.int64]:
        """Indexes of the examples of `training_step` (from 1)."""
        start = (training_step - 1) * self.per_batch
        stop = min(start + self.per_batch, self.size * self.epochs)
        epochs, places = np.divmod(np.arange(start, stop, dtype=np.int64), self.size)
        chosen = np.empty_like(places)
        for epoch in np.unique(epochs).tolist():
            order = Permutation(self.size, key_of("examples", self.seed, epoch))
            chosen[epochs == epoch] = order(places[epochs == epoch])
        return chosen
