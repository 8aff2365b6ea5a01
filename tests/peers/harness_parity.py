"""Log-likelihoods of real items beside lm-evaluation-harness's, item by item.

Both sides have the same prompts and choices: the harness by task files that read local JSON. Where
a token spans the border of prompt and choice the two differ by design: the harness scores what is
left of it, `evaluate` encodes the two apart. Such items are counted, not compared.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer

from stages.evaluate.benchmarks import Item
from stages.evaluate.measure import Scorer, measure_choices
from stages.scoring.choices import Choice, choice_observations
from stages.scoring.likelihood import encode_text
from stages.scoring.observations import results_table
from tests.peers.harness_tasks import (
    CHOICES,
    ask_harness,
    put,
    read_choices,
    read_lambada,
    write_task,
)

PUT = {"cloze": (["cloze"], 0), "listed": (["multiple_choice"], 0), "shots": (["cloze"], 2)}
"""Formulations and shots, beside items as their rows came."""
METRICS = {
    "accuracy": "acc",
    "accuracy_by_characters": "acc_norm",
    "accuracy_by_bytes": "acc_bytes",
}
"""Ours and the harness's."""

Tasks = dict[str, tuple[list[Item], str | None]]
"""By task of the harness: items, and the formulation that it has them in."""


@dataclass(frozen=True)
class Comparison:
    """What the two sides make of one task."""

    task: str
    choices: int
    """Log-likelihoods that were compared."""
    apart: int
    """Items with a token across the border, left out."""
    too_long: int
    """Items with a choice beyond the context, which neither side scores."""
    nats: float
    """The greatest difference."""
    greedy: int
    """Choices of which one side alone says that greedy decoding writes them."""
    metrics: tuple[tuple[str, float, float], ...]
    """(name, ours, the harness's), where no item is left out."""


def read_tasks(shared: Path, items: int) -> Tasks:
    """Every data set of multiple choice as its rows came and in three other ways, and LAMBADA."""
    tasks: Tasks = {}
    for name in CHOICES:
        read = read_choices(shared, name, items + 2)
        tasks[f"{name}-row"] = read[:items], None
        for way, (formulations, shots) in PUT.items():
            tasks[f"{name}-{way}"] = put(read, formulations, shots), formulations[0]
    tasks["lambada"] = read_lambada(shared, 3 * items), "cloze"
    return tasks


def compare(
    scorer: Scorer, folder: Path, python: str, tasks: Tasks, **settings: Any
) -> Iterator[Comparison]:
    """Each task of a model whose released form is `folder/model`. `python` has lm_eval."""
    fitting = {
        name: [one for one in items if _fits(scorer, one)] for name, (items, _) in tasks.items()
    }
    names = [write_task(folder, name, fitting[name], form) for name, (_, form) in tasks.items()]
    (answer,) = ask_harness(python, folder, names, **settings)
    for name, (items, formulation) in tasks.items():
        too_long = len(items) - len(fitting[name])
        yield _compare(scorer, name, fitting[name], formulation, answer, too_long)


def _fits(scorer: Scorer, item: Item) -> bool:
    choices = (choice for way in item.ranked(" ") for choice in way.choices)
    longest = max(len(encode_text(scorer.tokenizer, choice)) for choice in choices)
    return longest <= scorer.model.config.context


def _compare(
    scorer: Scorer,
    name: str,
    items: Sequence[Item],
    formulation: str | None,
    answer: Mapping[str, Any],
    too_long: int,
) -> Comparison:
    measured = measure_choices(scorer, items, " ")
    assert measured.bad == []
    ours = [list(group) for _, group in groupby(measured.choices, key=lambda one: one.item_id)]
    compared, apart, nats, greedy = 0, 0, 0.0, 0
    for item, choices, document in zip(items, ours, answer["scores"][name], strict=True):
        if _spans_border(scorer.tokenizer, item, formulation):
            apart += 1
            continue
        for choice, ((score, is_greedy),) in zip(choices, document, strict=True):
            compared += 1
            nats = max(nats, abs(choice.log_likelihood - float(score)))
            greedy += choice.is_greedy != (str(is_greedy) == "True")
    metrics = () if apart else tuple(_metrics(measured.choices, answer["metrics"][name]))
    return Comparison(name, compared, apart, too_long, nats, greedy, metrics)


def _spans_border(tokenizer: Tokenizer, item: Item, formulation: str | None) -> bool:
    """Whether a token begins in the prompt and ends in a choice."""
    (way,) = (one for one in item.ranked(" ") if one.formulation == formulation)
    context = encode_text(tokenizer, way.prompt.rstrip())
    return any(
        encode_text(tokenizer, way.prompt + choice)[: len(context)] != context
        for choice in way.choices
    )


def _metrics(
    choices: Sequence[Choice], theirs: Mapping[str, float]
) -> Iterator[tuple[str, float, float]]:
    observed = choice_observations(choices, ["sum", "characters", "bytes"])
    ours = {row["metric"]: row["value"] for row in results_table(observed).to_pylist()}
    known = {"perplexity": "perplexity", "greedy_match": "acc"} if "perplexity" in ours else METRICS
    for name, other in known.items():
        yield name, ours[name], theirs[f"{other},none"]
