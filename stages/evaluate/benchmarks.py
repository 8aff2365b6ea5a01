"""Benchmark items, read, checked and capped by a seeded draw, and how a model scores on them.

Scores: which choice the model finds likeliest, and how well it predicts a text.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer

from artifacts_schema.identity import canonical_json
from stages.model.decoder import Decoder
from stages.parallel.ranks import ALONE, Ranks
from stages.scoring.choices import Choice
from stages.scoring.likelihood import (
    Request,
    continuation_request,
    encode_text,
    rolling_requests,
    token_log_likelihoods,
)
from stages.scoring.observations import Observation

MULTIPLE_CHOICE, TEXT, QUESTION = "multiple_choice", "text", "question"


@dataclass(frozen=True)
class Item:
    """A usable item. `choices` is empty and `answer` 0 for the form `text`.

    Items of one `cluster`, such as questions on one passage, are not independent.
    """

    benchmark: str
    item_id: str
    form: str
    prompt: str
    choices: tuple[str, ...]
    answer: int
    cluster: str | None = None


@dataclass(frozen=True)
class BadItem:
    """An item that cannot be scored, and why."""

    benchmark: str
    item_id: str
    reason: str


def read_items(
    rows: Iterable[Mapping[str, Any]], cluster_by: str | None = None
) -> tuple[list[Item], list[BadItem]]:
    """Rows of `benchmarks` tables as items; unusable ones apart.

    `cluster_by` is the field of an item's metadata that items of one cluster share.
    """
    items, bad = [], []
    for row in rows:
        reason = _fault(row)
        if reason:
            bad.append(BadItem(row["benchmark"], row["item_id"], reason))
            continue
        items.append(
            Item(
                benchmark=row["benchmark"],
                item_id=row["item_id"],
                form=row["form"],
                prompt=row["prompt"],
                choices=tuple(row["choices"]),
                answer=row["answer"] or 0,
                cluster=_cluster(row, cluster_by),
            )
        )
    return items, bad


def _cluster(row: Mapping[str, Any], field: str | None) -> str | None:
    if field is None:
        return None
    value = json.loads(row["metadata"]).get(field)
    return None if value is None else json.dumps(value, sort_keys=True)


def draw(items: Sequence[Item], limit: int, seed: int) -> list[Item]:
    """At most `limit` items in their order: those whose keyed hash is least.

    So a larger limit keeps what a smaller one had, and all checkpoints get the same items.
    """
    if len(items) <= limit:
        return list(items)
    chosen = {item.item_id for item in rank(items, seed)[:limit]}
    return [item for item in items if item.item_id in chosen]


def rank(items: Sequence[Item], seed: int) -> list[Item]:
    """Items in the order of their keyed hashes: a shuffle that other items do not change."""
    return sorted(items, key=lambda item: (_rank(item, seed), item.item_id))


def _rank(item: Item, seed: int) -> bytes:
    named = canonical_json([seed, item.benchmark, item.item_id])
    return hashlib.blake2b(named, digest_size=16).digest()


def _fault(row: Mapping[str, Any]) -> str | None:
    if row["form"] == TEXT:
        return None if row["prompt"].strip() else "empty_text"
    if row["form"] not in (MULTIPLE_CHOICE, QUESTION):
        return "unknown_form"
    if row["form"] == MULTIPLE_CHOICE and len(row["choices"]) < 2:
        return "fewer_than_two_choices"
    if not all(choice.strip() for choice in row["choices"]):
        return "empty_choice"
    if row["answer"] is None or not 0 <= row["answer"] < len(row["choices"]):
        return "answer_is_no_choice"
    return None


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

    def score(self, groups: Sequence[Sequence[Request]]) -> list[list[NDArray[np.float64]]]:
        """Log-likelihoods of the tokens of every request, group by group, from shared batches."""
        flat = [request for group in groups for request in group]
        scores = token_log_likelihoods(
            self.model,
            flat,
            batch_tokens=self.batch_tokens,
            ranks=self.ranks,
            check_stop=self.check_stop,
        )
        edges = np.cumsum([0, *(len(group) for group in groups)])
        return [scores[start:stop] for start, stop in pairwise(edges)]


def measure_choices(
    scorer: Scorer, items: Sequence[Item], delimiter: str, *, unconditional: bool = False
) -> tuple[list[Choice], list[BadItem]]:
    """Log-likelihoods of the choices of each item after its prompt, and alone if `unconditional`.

    An item with a choice that is longer than the model's context is a bad one.
    """
    requests = {item: _requests(scorer, item, delimiter, unconditional) for item in items}
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
    measured: list[Choice] = []
    for item, scores in zip(kept, scorer.score([requests[item] for item in kept]), strict=True):
        alone = [math.fsum(one) for one in scores[len(item.choices) :]]
        for number, text in enumerate(item.choices):
            measured.append(
                Choice(
                    item.benchmark,
                    item.item_id,
                    number,
                    number == item.answer,
                    len(text),
                    len(text.encode()),
                    len(delimited(item.prompt, text, delimiter).encode()),
                    tuple(map(float, scores[number])),
                    alone[number] if alone else None,
                )
            )
    return measured, bad


def _requests(scorer: Scorer, item: Item, delimiter: str, unconditional: bool) -> list[Request]:
    """One for each choice after the prompt, then one for each after nothing."""
    tokenizer, prefix = scorer.tokenizer, scorer.prefix
    after = [
        continuation_request(
            tokenizer, item.prompt, delimited(item.prompt, choice, delimiter), prefix=prefix
        )
        for choice in item.choices
    ]
    alone = item.choices if unconditional else ()
    return after + [continuation_request(tokenizer, "", one, prefix=prefix) for one in alone]


def measure_texts(scorer: Scorer, items: Sequence[Item]) -> list[Observation]:
    """Bits per UTF-8 byte of each text, and that of the unigram model."""
    context = scorer.model.config.context
    groups = [
        rolling_requests([scorer.prefix, *encode_text(scorer.tokenizer, item.prompt)], context)
        for item in items
    ]
    observed = []
    for item, scores in zip(items, scorer.score(groups), strict=True):
        baseline = None
        if scorer.unigram_nll is not None:
            ids = encode_text(scorer.tokenizer, item.prompt)
            baseline = float(scorer.unigram_nll[ids].sum() / math.log(2))
        observed.append(
            Observation(
                item.benchmark,
                item.item_id,
                "bits_per_byte",
                numerator=-math.fsum(map(math.fsum, scores)) / math.log(2),
                denominator=len(item.prompt.encode()),
                baseline=baseline,
            )
        )
    return observed


def delimited(prompt: str, choice: str, delimiter: str) -> str:
    """`choice` as it follows `prompt`: after `delimiter`, unless white space parts them already."""
    parted = not prompt or prompt[-1].isspace() or choice[0].isspace()
    return choice if parted else delimiter + choice
