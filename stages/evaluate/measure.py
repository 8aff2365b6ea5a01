"""What a model makes of items: log-likelihoods of choices, and how well it predicts a text.

All formulations and numbers of shots of an item are measured in one pass: what they begin with
alike is computed once (`stages.scoring.prefixes`).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer

from artifacts_schema.errors import InputError
from stages.evaluate.benchmarks import BadItem, Item, ItemRequest
from stages.model.decoder import Decoder
from stages.parallel.ranks import ALONE, Ranks
from stages.scoring.choices import Choice
from stages.scoring.likelihood import (
    Request,
    Scored,
    continuation_request,
    continuation_requests,
    encode_text,
    rolling_requests,
    score_requests,
)
from stages.scoring.observations import Observation, prompt_digest


@dataclass(frozen=True)
class Scorer:
    """A model, its tokenizer and the token that a text is scored after (`prefix`).

    With the unigram baseline if there is one, the size of a batch, and the ranks that share it.
    """

    model: Decoder
    tokenizer: Tokenizer
    prefix: int
    unigram_nll: NDArray[np.float64] | None
    batch_tokens: int
    ranks: Ranks = ALONE
    check_stop: Callable[[], None] = lambda: None

    def score(self, groups: Sequence[Sequence[Request]]) -> list[list[Scored]]:
        """What the model makes of every request, group by group, from shared batches."""
        flat = [request for group in groups for request in group]
        scores = score_requests(
            self.model,
            flat,
            batch_tokens=self.batch_tokens,
            ranks=self.ranks,
            check_stop=self.check_stop,
        )
        edges = np.cumsum([0, *(len(group) for group in groups)])
        return [scores[start:stop] for start, stop in pairwise(edges)]


@dataclass(frozen=True)
class MeasuredChoices:
    """Choices of items in their order, items that cannot be scored, and what is worth a warning."""

    choices: list[Choice] = field(default_factory=list)
    bad: list[BadItem] = field(default_factory=list)
    notes: Counter[str] = field(default_factory=Counter)
    """`prompts_cut` to the context of the model, `equal_choices`, and `prefix_choices`: items with
    a choice whose tokens another begins with, which can never be less likely."""


def measure_choices(
    scorer: Scorer, items: Sequence[Item], delimiter: str, *, unconditional: bool = False
) -> MeasuredChoices:
    """Log-likelihoods of the choices of each item after its prompt, and alone if `unconditional`.

    An item with a choice that is longer than the model's context, or that no token is of, is a bad
    one. InputError names the item whose log-likelihood is not finite.
    """
    measured = MeasuredChoices()
    kept: list[tuple[Item, ItemRequest]] = []
    groups: list[list[Request]] = []
    context = scorer.model.config.context
    for item in items:
        puts = [(item, put) for put in item.ranked(delimiter)]
        wanted = [_requests(scorer, put, unconditional) for _, put in puts]
        reason = _fault([one.continuation for group in wanted for one in group], context)
        if reason is not None:
            measured.bad.append(BadItem(item.benchmark, item.item_id, reason))
            continue
        kept += puts
        groups += wanted
        for (_, put), group in zip(puts, wanted, strict=True):
            measured.notes.update(_notes(group[: len(put.choices)], context))
    for (item, put), scores in zip(kept, scorer.score(groups), strict=True):
        measured.choices.extend(_choices(item, put, scores))
    return measured


def _fault(continuations: Sequence[tuple[int, ...]], context: int) -> str | None:
    if any(len(one) > context for one in continuations):
        return "choice_longer_than_context"
    return None if all(continuations) else "choice_without_tokens"


def _notes(requests: Sequence[Request], context: int) -> list[str]:
    notes = []
    longest = max(len(one.context) + len(one.continuation) for one in requests)
    if longest > context + 1:
        notes.append("prompts_cut")
    pairs = [*pairwise(sorted((one.context, one.continuation) for one in requests))]
    alike = [(a, b) for (before, a), (before_b, b) in pairs if before == before_b]
    if any(a == b for a, b in alike):
        notes.append("equal_choices")
    if any(a != b and a == b[: len(a)] for a, b in alike):
        notes.append("prefix_choices")
    return notes


def _choices(item: Item, put: ItemRequest, scores: Sequence[Scored]) -> Iterator[Choice]:
    alone = scores[len(put.choices) :]
    for number, (text, scored) in enumerate(zip(put.choices, scores, strict=False)):
        bare = text.lstrip()
        digest = prompt_digest(put.before(number))
        for one in (scored, *alone[number : number + 1]):
            _check_finite(item, one.log_likelihoods, f"choice {number}")
        yield Choice(
            item.benchmark,
            item.item_id,
            number,
            number in item.all_right,
            len(bare),
            len(bare.encode()),
            len(text.encode()),
            tuple(map(float, scored.log_likelihoods)),
            math.fsum(alone[number].log_likelihoods) if alone else None,
            scored.is_greedy,
            digest,
            put.formulation,
            put.shots,
        )


def _check_finite(item: Item, values: NDArray[np.float64], what: str) -> None:
    if not np.isfinite(values).all():
        raise InputError(
            f"the log-likelihood of {what} is not finite",
            where=f"{item.benchmark}/{item.item_id}",
            hint="the weights are not finite, or too large for `dtype`: try float32",
        )


def _requests(scorer: Scorer, put: ItemRequest, unconditional: bool) -> list[Request]:
    """One for each choice after the prompt, then one for each after nothing."""
    tokenizer, prefix = scorer.tokenizer, scorer.prefix
    if put.contexts:
        after = [
            continuation_request(tokenizer, put.before(number), choice, prefix=prefix)
            for number, choice in enumerate(put.choices)
        ]
    else:
        after = continuation_requests(tokenizer, put.prompt, put.choices, prefix=prefix)
    alone = [one.lstrip() for one in put.choices] if unconditional else []
    return after + continuation_requests(tokenizer, "", alone, prefix=prefix)


def measure_texts(scorer: Scorer, items: Sequence[Item]) -> list[Observation]:
    """Bits per UTF-8 byte of each text, and that of the unigram model."""
    context = scorer.model.config.context
    texts = [encode_text(scorer.tokenizer, item.prompt) for item in items]
    groups = [rolling_requests([scorer.prefix, *ids], context) for ids in texts]
    observed = []
    for item, ids, scores in zip(items, texts, scorer.score(groups), strict=True):
        for one in scores:
            _check_finite(item, one.log_likelihoods, "the text")
        baseline = None
        if scorer.unigram_nll is not None:
            baseline = float(scorer.unigram_nll[ids].sum() / math.log(2))
        nll = -math.fsum(math.fsum(one.log_likelihoods) for one in scores)
        observed.append(
            Observation(
                item.benchmark,
                item.item_id,
                "bits_per_byte",
                numerator=nll / math.log(2),
                denominator=len(item.prompt.encode()),
                baseline=baseline,
            )
        )
    return observed
