"""Benchmarks under a model: which choice it finds likeliest, how well it predicts a text."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from stages.evaluate.items import TEXT, BadItem, Item
from stages.evaluate.observations import Observation
from stages.scoring.likelihood import log_likelihoods
from stages.scoring.requests import Request, continuation_request, encode_text, text_requests

if TYPE_CHECKING:
    from tokenizers import Tokenizer

    from stages.model.decoder import Decoder


@dataclass(frozen=True)
class Scorer:
    """A model, its tokenizer and the token that a text is scored after (`prefix`).

    With the unigram baseline if there is one, and the size of a batch.
    """

    model: Decoder
    tokenizer: Tokenizer
    prefix: int
    unigram_nll: NDArray[np.float64] | None
    batch_tokens: int

    def sums(self, groups: Sequence[Sequence[Request]]) -> list[NDArray[np.float64]]:
        """Log-likelihood of every request, group by group, from shared batches."""
        flat = [request for group in groups for request in group]
        scores = log_likelihoods(self.model, flat, batch_tokens=self.batch_tokens)
        edges = np.cumsum([0, *(len(group) for group in groups)])
        return [scores[start:stop] for start, stop in pairwise(edges)]


def measure_items(
    scorer: Scorer, items: Sequence[Item], delimiter: str
) -> tuple[list[Observation], list[BadItem]]:
    """Observations of the items of one benchmark, and the items that do not fit the model."""
    texts = [item for item in items if item.form == TEXT]
    asked = [item for item in items if item.form != TEXT]
    observed, bad = measure_choices(scorer, asked, delimiter)
    return [*observed, *measure_texts(scorer, texts)], bad


def measure_choices(
    scorer: Scorer, items: Sequence[Item], delimiter: str
) -> tuple[list[Observation], list[BadItem]]:
    """Cloze scoring: each choice by its log-probability after the prompt.

    accuracy takes the choice with the greatest sum, accuracy_by_bytes the greatest sum by UTF-8
    byte of the choice (lm-eval's acc and acc_bytes); the first of equal ones. answer_bits_per_byte
    is how well the right choice is predicted: it moves long before accuracy leaves chance.
    """
    texts = {
        item: [delimited(item.prompt, choice, delimiter) for choice in item.choices]
        for item in items
    }
    requests = {
        item: [
            continuation_request(scorer.tokenizer, item.prompt, text, prefix=scorer.prefix)
            for text in given
        ]
        for item, given in texts.items()
    }
    context = scorer.model.config.context
    fits = {
        item: max(len(request.continuation) for request in group) <= context
        for item, group in requests.items()
    }
    kept = [item for item in items if fits[item]]
    bad = [
        BadItem(item.benchmark, item.item_id, "choice_longer_than_context")
        for item in items
        if not fits[item]
    ]
    observed = []
    for item, scores in zip(kept, scorer.sums([requests[item] for item in kept]), strict=True):
        observed += _choice_observations(item, texts[item], scores)
    return observed, bad


def measure_texts(scorer: Scorer, items: Sequence[Item]) -> list[Observation]:
    """Bits per UTF-8 byte of each text, beside the unigram model's."""
    context = scorer.model.config.context
    groups = [
        text_requests(scorer.tokenizer, item.prompt, context, prefix=scorer.prefix)
        for item in items
    ]
    observed = []
    for item, scores in zip(items, scorer.sums(groups), strict=True):
        baseline = None
        if scorer.unigram_nll is not None:
            ids = encode_text(scorer.tokenizer, item.prompt)
            baseline = float(scorer.unigram_nll[ids].sum() / math.log(2))
        observed.append(
            Observation(
                item.benchmark,
                item.item_id,
                "bits_per_byte",
                numerator=-float(scores.sum()) / math.log(2),
                denominator=len(item.prompt.encode()),
                baseline=baseline,
            )
        )
    return observed


def delimited(prompt: str, choice: str, delimiter: str) -> str:
    """`choice` as it follows `prompt`: after `delimiter`, unless white space parts them already."""
    parted = not prompt or prompt[-1].isspace() or choice[0].isspace()
    return choice if parted else delimiter + choice


def _choice_observations(
    item: Item, texts: Sequence[str], scores: NDArray[np.float64]
) -> list[Observation]:
    by_bytes = scores / [len(choice.encode()) for choice in item.choices]
    chance = 1 / len(item.choices)
    name = item.benchmark, item.item_id
    return [
        Observation(*name, "accuracy", float(scores.argmax() == item.answer), baseline=chance),
        Observation(
            *name, "accuracy_by_bytes", float(by_bytes.argmax() == item.answer), baseline=chance
        ),
        Observation(
            *name,
            "answer_bits_per_byte",
            numerator=-float(scores[item.answer]) / math.log(2),
            denominator=len(texts[item.answer].encode()),
        ),
    ]
