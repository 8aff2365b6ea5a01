"""What a model makes of the choices of an item, and which choice that is under each normalisation.

Log-likelihoods are measured once; every way to rank choices by them is arithmetic.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import groupby
from typing import Any

import numpy as np
import pyarrow as pa

from artifacts_schema.errors import InputError
from artifacts_schema.kinds import KINDS
from stages.scoring.metrics import METRICS, NATS, RIGHT_SHARE, Normalisation
from stages.scoring.observations import ItemName, Observation

TABLE = "choices.parquet"


@dataclass(frozen=True)
class Choice:
    """A choice of an item, and its log-likelihood in nats after the item's prompt, by token."""

    benchmark: str
    item_id: str
    choice: int
    """Its place among the item's."""
    is_right: bool
    characters: int
    bytes: int
    scored_bytes: int
    """With the delimiter before it."""
    log_likelihoods: tuple[float, ...]
    unconditional: float | None = None
    """Log-likelihood of the choice after nothing, where it was measured."""
    is_greedy: bool = False
    """Whether each of its tokens is the likeliest after those before it."""
    prompt_digest: str = ""
    formulation: str | None = None
    shots: int | None = None

    @classmethod
    def from_plain(cls, values: Mapping[str, Any]) -> Choice:
        """The inverse of `asdict`, whose log-likelihoods may have come in a list."""
        return cls(**{**values, "log_likelihoods": tuple(values["log_likelihoods"])})

    @property
    def name(self) -> ItemName:
        """(benchmark, item_id)."""
        return self.benchmark, self.item_id

    @property
    def request(self) -> tuple[str, str, str | None, int | None]:
        """What it shares with the other choices of its item, put in the same way."""
        return self.benchmark, self.item_id, self.formulation, self.shots

    @property
    def log_likelihood(self) -> float:
        """The sum over its tokens."""
        return math.fsum(self.log_likelihoods)

    def rank_by(self, normalisation: Normalisation) -> float:
        """What decides between choices. InputError for `pmi` where that was not measured."""
        total = self.log_likelihood
        if normalisation == "sum":
            return total
        if normalisation == "pmi":
            if self.unconditional is None:
                raise InputError(
                    "log-likelihoods of choices after nothing were not measured",
                    where=f"{self.benchmark}/{self.item_id}",
                    hint="run evaluate with `unconditional: true`, or leave out `pmi`",
                )
            return total - self.unconditional
        sizes = {
            "characters": self.characters,
            "bytes": self.bytes,
            "tokens": len(self.log_likelihoods),
        }
        return total / sizes[normalisation]


def to_table(choices: Iterable[Choice]) -> pa.Table:
    """Rows of `choices.parquet`."""
    schema = KINDS["evaluation"].tables[TABLE].arrow()
    return pa.Table.from_pylist([asdict(one) for one in choices], schema=schema)


def from_table(table: pa.Table) -> list[Choice]:
    """The inverse of `to_table`."""
    return [Choice.from_plain(row) for row in table.to_pylist()]


def choice_observations(
    choices: Sequence[Choice],
    normalisations: Sequence[Normalisation],
    several: Collection[str] = (),
) -> list[Observation]:
    """Observations of items whose choices are adjacent, in the order of their places.

    Of each normalisation whether the right choice ranks first, the first of equal ones. Of one
    choice alone whether it is the text that the model would write (`greedy_match`, lm-eval's `acc`
    of LAMBADA) and what it costs (`answer_nats`). Then `answer_bits_per_byte`, how well the right
    choice is predicted: it moves long before accuracy leaves chance.

    Of benchmarks in `several` more than one choice may be right: each is for accuracy, the first
    for bits per byte, and `right_probability` is Σ p of the right ones over Σ p of all.
    """
    return [
        one
        for _, group in groupby(choices, key=lambda choice: choice.request)
        for one in _of_item(list(group), normalisations, several)
    ]


def _of_item(
    choices: Sequence[Choice], normalisations: Sequence[Normalisation], several: Collection[str]
) -> Iterator[Observation]:
    first, chance = choices[0], sum(one.is_right for one in choices) / len(choices)
    name = first.name
    put: dict[str, Any] = {"formulation": first.formulation, "shots": first.shots}
    for normalisation in normalisations if len(choices) > 1 else ():
        best = int(np.argmax([one.rank_by(normalisation) for one in choices]))
        is_right = float(choices[best].is_right)
        yield Observation(*name, METRICS[normalisation], is_right, baseline=chance, **put)
    if first.benchmark in several:
        yield Observation(*name, RIGHT_SHARE, _right_share(choices), baseline=chance, **put)
    answer = next(one for one in choices if one.is_right)
    if len(choices) == 1:
        yield Observation(*name, "greedy_match", float(answer.is_greedy), **put)
        yield Observation(*name, NATS, -answer.log_likelihood, **put)
    yield Observation(
        *name,
        "answer_bits_per_byte",
        numerator=-answer.log_likelihood / math.log(2),
        denominator=answer.scored_bytes,
        **put,
    )


def _right_share(choices: Sequence[Choice]) -> float:
    """Probability of the right choices over that of all, by sums of log-likelihoods."""
    greatest = max(one.log_likelihood for one in choices)
    weights = [math.exp(one.log_likelihood - greatest) for one in choices]
    right = (w for w, one in zip(weights, choices, strict=True) if one.is_right)
    return math.fsum(right) / math.fsum(weights)


def several_right(tasks: Iterable[Mapping[str, Any]]) -> frozenset[str]:
    """Benchmarks whose items may have several right choices, by the entries of `tasks.json`."""
    return frozenset(str(task["name"]) for task in tasks if task.get("right"))
