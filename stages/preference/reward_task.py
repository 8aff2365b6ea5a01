"""Learning to score answers as a task of the training loop.

An answer is scored at the last token of its conversation. Both answers of a pair are packed
as two documents, 2p the chosen and 2p + 1 the rejected one of pair p.

B rows, L tokens, P pairs, A answers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from torch import Tensor, nn

from artifacts_schema.errors import InputError
from stages.pairs.losses import PreferenceLosses, bradley_terry
from stages.preference.pairs_task import PairsTask
from stages.training.examples import Example, ExampleClock, ExampleSet, pack_rows
from stages.training.losses import autocast
from stages.training.rows import Rows, on_device
from stages.training.runtime import Runtime
from stages.training.token_shards import IGNORED


def scored_answers(data: ExampleSet, padding: int) -> ExampleSet:
    """The same pairs so that a row holds all tokens of an answer, and its last has a target.

    A row has the tokens before the last target of an example, so that each gets one token more,
    which no model sees. InputError for an answer that ends with the token `padding`: who reads the
    released model takes the last token that is no padding.
    """
    padded = sum(int(one.ids[-1]) == padding for pair in data.rows for one in pair)
    if padded:
        raise InputError(
            f"{padded} answers end with the token that the tokenizer pads with ({padding}): "
            "transformers would score them one token earlier",
            where="checkpoint",
            hint="name another `pad_token`; import_tokenizer adds one",
        )
    return replace(data, rows=[tuple(_scored(one) for one in pair) for pair in data.rows])


def _scored(answer: Example) -> Example:
    trained = np.zeros(len(answer.ids) + 1, dtype=bool)
    trained[-1] = True
    return Example(np.append(answer.ids, answer.ids[-1]), trained)


def answer_scores(model: nn.Module, rows: Rows, answers: int, runtime: Runtime) -> Tensor:
    """[A] Scores of the answers in `rows`, each at its target, in float32; differentiable."""
    device = runtime.device
    tensors = {"documents_BL": on_device(rows.documents_BL, device)}
    if device.type != "cpu":
        tensors["offsets_N1"] = on_device(rows.offsets(), device)
    with autocast(device, runtime.precision):
        scores_BL: Tensor = model(on_device(rows.tokens_BL, device), **tensors)
    places = np.flatnonzero(rows.targets_BL != IGNORED)
    order = np.argsort(rows.documents_BL.ravel()[places])
    assert len(order) == answers, "each answer has one target"
    return scores_BL.flatten().index_select(0, on_device(places[order], device))


class RewardTask(PairsTask):
    """Mean Bradley-Terry loss over the pairs of a step."""

    def __init__(
        self,
        data: ExampleSet,
        clock: ExampleClock,
        runtime: Runtime,
        context: int,
        *,
        margins_N: NDArray[np.float32] | None = None,
        centring: float = 0.0,
    ) -> None:
        super().__init__(data, clock, runtime, context)
        self.margins_N, self.centring = margins_N, centring

    def losses(
        self,
        model: nn.Module,
        part: NDArray[np.int64],
        batch: NDArray[np.int64],
        prepared: None = None,
    ) -> tuple[PreferenceLosses, Tensor, int]:
        """See `PairsTask.losses`."""
        answers: Sequence[Example] = [
            answer for index in part.tolist() for answer in self.data.rows[index]
        ]
        rows = pack_rows(answers, self.context, self.runtime.parallel.pieces)
        scores_P2 = answer_scores(model, rows, len(answers), self.runtime).view(-1, 2)
        margins_P = None
        if self.margins_N is not None:
            margins_P = on_device(self.margins_N[part], scores_P2.device)
        losses = bradley_terry(scores_P2[:, 0], scores_P2[:, 1], margins_P, centring=self.centring)
        return losses, losses.loss_P.sum() / len(batch), rows.tokens
