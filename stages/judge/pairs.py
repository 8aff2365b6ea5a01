"""Pairs of answers: of two evaluations to the same questions, and of people's preferences."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from artifacts_schema.identity import canonical_json
from stages.judge.verdicts import Pair
from stages.scoring.observations import prompt_digest

if TYPE_CHECKING:
    from stages.engine import Input

JUDGED, HUMAN = "judged/", "human/"
"""Before the names of benchmarks, and of data sets of preferences."""


def evaluation_pairs(a: Input, b: Input, benchmarks: Sequence[Input]) -> tuple[list[Pair], int]:
    """Pairs that both evaluations answered, in A's order, and how many answers have no partner.

    Answers to items are paired by item and sample, and need the question from `benchmarks`: an
    evaluation keeps the digest of a prompt alone. Sample texts are paired by their prompt.
    """
    questions = {
        (row["benchmark"], row["item_id"]): row["prompt"]
        for one in benchmarks
        for shard in one.shards()
        for row in shard.read().to_pylist()
    }
    before, after = (dict(_answers(one, questions)) for one in (a, b))
    pairs = [
        Pair(JUDGED + name[0], name[1], name[4], before[name][0], before[name][1], after[name][1])
        for name in before
        if name in after
    ]
    return pairs, len(before) + len(after) - 2 * len(pairs)


def _answers(
    evaluation: Input, questions: Mapping[tuple[str, str], str]
) -> Iterator[tuple[tuple[Any, ...], tuple[str, str]]]:
    """(benchmark, item, formulation, shots, sample) → question and answer."""
    for row in evaluation.read_table("answers.parquet").to_pylist():
        question = questions.get((row["benchmark"], row["item_id"]))
        if question is not None:
            name = tuple(
                row[field] for field in ("benchmark", "item_id", "formulation", "shots", "sample")
            )
            yield name, (question, row["text"])
    for row in evaluation.read_table("generations.parquet").to_pylist():
        digest = prompt_digest(row["prompt"])
        name = (row["benchmark"] or "prompts", digest, row["form"], None, 0)
        yield name, (row["prompt"], row["completion"])


def human_pairs(preferences: Iterable[Input], seed: int) -> tuple[list[Pair], int]:
    """Preference pairs, and how many rows hold one answer alone; which is A is a seeded draw."""
    shards = [shard for one in preferences for shard in one.shards()]
    rows = [row for shard in shards for row in shard.read().to_pylist()]
    pairs = [_human_pair(row, seed) for row in rows if row["chosen"] and row["rejected"]]
    return pairs, len(rows) - len(pairs)


def _human_pair(row: Mapping[str, Any], seed: int) -> Pair:
    chosen, rejected = (_text(row[name], roles=False) for name in ("chosen", "rejected"))
    name = HUMAN + row["source"]
    drawn = hashlib.blake2b(canonical_json([seed, row["preference_id"]]), digest_size=1).digest()
    prompt = _text(row["prompt"], roles=len(row["prompt"]) > 1)
    if drawn[0] % 2:
        return Pair(name, row["preference_id"], 0, prompt, rejected, chosen, "b")
    return Pair(name, row["preference_id"], 0, prompt, chosen, rejected, "a")


def _text(messages: Sequence[Mapping[str, Any]], *, roles: bool) -> str:
    """Messages as a judge reads them."""
    return "\n\n".join(
        f"{one['role']}: {one['content']}" if roles else one["content"] for one in messages
    )
