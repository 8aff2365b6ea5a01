"""What judgements amount to: how far people agree, and pairs of a better and a worse answer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Literal

from flows.collecting.collection import Question, Settings
from flows.collecting.judgements import Judgement, Judgements
from flows.collecting.prompts import plain_messages

Choice = Literal["best", "all"]
"""Pairs of a ranking: the best answer with the worst, or all that are not tied."""


@dataclass(frozen=True)
class Agreement:
    """How often two people put two answers into the same order; chance is one half.

    Counted are pairs of answers of which both people call one better. The interval is of 95 %, with
    prompts as the units that were drawn (`stages.scoring.uncertainty.share_interval`).
    """

    prompts: int
    """That two people ranked."""
    pairs: int
    same: int
    tied: int
    """Pairs of answers that one of the two, or both, called equal: not counted above."""
    interval: tuple[float, float] | None
    doubt: str | None
    """Why the interval may be too narrow: there are few prompts."""

    @property
    def share(self) -> float | None:
        """Pairs in the same order, of all."""
        return self.same / self.pairs if self.pairs else None

    def as_json(self) -> dict[str, Any]:
        """For the page and for `--json`."""
        return {**vars(self), "share": self.share}


def measure_agreement(questions: Mapping[str, Question], judgements: Judgements) -> Agreement:
    """Over all prompts that two people or more have ranked."""
    from stages.scoring.uncertainty import doubt_of_interval, share_interval

    outcomes, clusters, tied, prompts = list[int](), list[str](), 0, 0
    for prompt in questions:
        ranked = [one for one in judgements.on(prompt) if one.verdict == "ranked"]
        prompts += len(ranked) > 1
        for one, other in combinations(ranked, 2):
            theirs = set(other.better())
            same = sum(pair in theirs for pair in one.better())
            opposite = sum((worse, better) in theirs for better, worse in one.better())
            answers = len(one.ranks)
            tied += answers * (answers - 1) // 2 - same - opposite
            outcomes += [1] * same + [0] * opposite
            clusters += [prompt] * (same + opposite)
    interval = share_interval(outcomes, clusters) if outcomes else None
    doubt = doubt_of_interval(outcomes, clusters) if outcomes else None
    return Agreement(prompts, len(outcomes), sum(outcomes), tied, interval, doubt)


def make_pairs(
    questions: Mapping[str, Question], judgements: Judgements, settings: Settings, choice: Choice
) -> tuple[list[dict[str, Any]], Counter[str]]:
    """Rows that `preferences` reads, in the order of the prompts; and what gave no pair.

    A pair that several people made is one row, with all of them. One that somebody ranked the other
    way round is left out (`disagreed`, counted once).
    """
    rows, counts = list[dict[str, Any]](), Counter[str]()
    for prompt, question in questions.items():
        people = judgements.on(prompt)
        counts["neither"] += sum(one.verdict == "neither" for one in people)
        ranked = [one for one in people if one.verdict == "ranked"]
        counts["all_tied"] += sum(len(set(one.ranks)) == 1 for one in ranked)
        opposed = {(worse, better) for one in ranked for better, worse in one.better()}
        wanted = dict.fromkeys(pair for one in ranked for pair in _choose(one, choice))
        agreed = [pair for pair in wanted if pair not in opposed]
        counts["disagreed"] += len({frozenset(pair) for pair in wanted if pair in opposed})
        for better, worse in agreed:
            makers = [one for one in ranked if (better, worse) in set(one.better())]
            rows.append(_row(question, better, worse, makers, settings))
    return rows, +counts


def _choose(judgement: Judgement, choice: Choice) -> Iterator[tuple[int, int]]:
    if choice == "all":
        yield from judgement.better()
    elif len(set(judgement.ranks)) > 1:
        ranks = judgement.ranks
        yield ranks.index(min(ranks)), ranks.index(max(ranks))


def _row(
    question: Question, better: int, worse: int, makers: list[Judgement], settings: Settings
) -> dict[str, Any]:
    row = {
        "prompt": plain_messages(question.messages),
        "chosen": question.texts[better],
        "rejected": question.texts[worse],
        "prompt_id": question.id,
        "who": [one.who for one in makers],
        "when": [one.when for one in makers],
        "model": settings.model,
        "checkpoint": settings.checkpoint,
        "seed": settings.seed,
        "temperature": settings.temperature,
        "top_p": settings.top_p,
        "chosen_sample": question.samples[better],
        "rejected_sample": question.samples[worse],
    }
    return row if question.tools is None else {**row, "tools": question.tools}
