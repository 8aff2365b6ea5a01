"""The free-form half of `score`: which written answers are right, and the metrics that follow.

How a task's answers are judged stands in `tasks.json`. Programs are run apart, in a sandbox
(`stages/sandbox`), in parts that other processes take; everything else is arithmetic on texts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import groupby
from typing import Any

import pyarrow as pa

from artifacts_schema.errors import InputError, Stopped
from artifacts_schema.kinds import KINDS
from stages.engine import ShardOutput
from stages.sandbox.check import Verdict, check_program
from stages.sandbox.sandbox import Isolation, Limits
from stages.scoring.answers import (
    NAMED,
    Answer,
    Judge,
    chrf,
    is_right,
    majority,
    names_in_sentence,
    pass_at_k,
    string_match_all,
    string_match_part,
)
from stages.scoring.instructions import judge_instructions, read_instructions
from stages.scoring.observations import Observation
from stages.scoring.refusals import ANSWERED, AS_WISHED, REFUSED, is_as_wished

JUDGEMENTS = "judgements.parquet"
PROGRAMS_OF_PART = 20
"""Programs that a run that is killed runs again."""
STRING_MATCH = {"string_match_all": string_match_all, "string_match_part": string_match_part}
"""RULER's metrics of the items of `long_context`."""
PASS = "pass"
"""Metric of programs: `pass@1`, `pass@10`."""


@dataclass(frozen=True)
class Judgement:
    """What one sample is worth under one metric: `value` of `weight`.

    `answer` is what was taken from it; of programs `outcome` says how the tests ended and `detail`
    more of a failure, which the program itself may have written.
    """

    benchmark: str
    item_id: str
    formulation: str | None
    shots: int | None
    sample: int
    metric: str
    value: float
    weight: float = 1.0
    answer: str | None = None
    outcome: str | None = None
    detail: str | None = None


def to_table(judgements: Iterable[Judgement]) -> pa.Table:
    """Rows of `judgements.parquet`."""
    schema = KINDS["evaluation"].tables[JUDGEMENTS].arrow()
    return pa.Table.from_pylist([asdict(one) for one in judgements], schema=schema)


def read_judges(tasks: Sequence[Mapping[str, Any]], answers: Sequence[Answer]) -> dict[str, Judge]:
    """How each benchmark with answers to free requests is judged; by exact match without a task."""
    by_name = {task["name"]: task for task in tasks}
    names = sorted({one.benchmark for one in answers if one.formulation is not None})
    return {
        name: Judge.from_task(by_name[name]) if name in by_name else Judge(name, "exact_match")
        for name in names
    }


# Programs


@dataclass(frozen=True)
class ProgramPart:
    """Solutions and their tests."""

    id: str
    programs: tuple[tuple[str, str], ...]


def program_parts(
    answers: Sequence[Answer], judges: Mapping[str, Judge]
) -> tuple[list[Answer], list[ProgramPart]]:
    """Answers that are code, and their programs in parts, in this order."""
    coded = [one for one in answers if one.formulation and judges[one.benchmark].metric == "code"]
    programs = [_program(one, judges[one.benchmark]) for one in coded]
    parts = [
        ProgramPart(f"{start // PROGRAMS_OF_PART:05d}", tuple(programs[start:][:PROGRAMS_OF_PART]))
        for start in range(0, len(programs), PROGRAMS_OF_PART)
    ]
    return coded, parts


def _program(answer: Answer, judge: Judge) -> tuple[str, str]:
    """Solution and tests. The solution is what an answer continues, if there is such, and it."""
    if not answer.references:
        raise InputError(
            "the item has no test program",
            where=f"{answer.benchmark}/{answer.item_id}",
            hint="`references` of a task with `metric: code` has the tests first",
        )
    tests, *begin = answer.references
    text: str | None = answer.text
    if judge.extraction:
        text = judge.extraction[0].extract(answer.text)
    return "".join(begin[:1]) + (text or ""), tests


def run_part(
    part: ProgramPart, out: ShardOutput, *, seconds: int, memory: int, isolation: Isolation
) -> dict[str, Any]:
    """Verdicts of the programs of a part."""
    limits = Limits(wall_seconds=3 * seconds + 5, cpu_seconds=seconds, memory_bytes=memory)
    verdicts = []
    for solution, tests in part.programs:
        if out.stopping:
            raise Stopped()
        verdict = check_program(solution, tests, limits=limits, isolation=isolation)
        verdicts.append([verdict.result, verdict.detail])
    return {"verdicts": verdicts}


# Judgements


def judge_answers(
    answers: Sequence[Answer],
    judges: Mapping[str, Judge],
    verdicts: Mapping[Answer, Verdict],
) -> list[Judgement]:
    """Judgements of all answers, in their order, those of one answer by rule or score."""
    return [
        Judgement(*one.request, one.sample, **values)
        for one in answers
        for values in _judge(one, judges.get(one.benchmark), verdicts)
    ]


def _judge(
    answer: Answer, judge: Judge | None, verdicts: Mapping[Answer, Verdict]
) -> Iterable[dict[str, Any]]:
    if answer.formulation is None or judge is None:
        named = any(names_in_sentence(answer.text, one) for one in answer.references)
        yield {"metric": NAMED, "value": float(named)}
    elif judge.metric == "exact_match":
        for rule in judge.rules:
            taken = rule.extract(answer.text)
            value = float(is_right(taken, answer.references, judge.normalise))
            yield {"metric": judge.name_of(rule), "value": value, "answer": taken}
    elif judge.metric == "chrf":
        yield {"metric": "chrf", "value": chrf(answer.text, answer.references)}
    elif judge.metric in STRING_MATCH:
        value = STRING_MATCH[judge.metric](answer.text, answer.references)
        yield {"metric": judge.metric, "value": value}
    elif judge.metric == "code":
        verdict = verdicts[answer]
        yield {
            "metric": PASS,
            "value": float(verdict.result == "passed"),
            "outcome": verdict.result,
            "detail": verdict.detail or None,
        }
    elif judge.metric == "instructions":
        where = f"{answer.benchmark}/{answer.item_id}"
        instructions = [i for one in answer.references for i in read_instructions(one, where)]
        for metric, (value, weight) in judge_instructions(answer.text, instructions).items():
            yield {"metric": metric, "value": value, "weight": weight}
    elif judge.metric == "refusal":
        wish = answer.references[0] if answer.references else ""
        value = float(is_as_wished(answer.text, wish))
        yield {"metric": AS_WISHED, "value": value}
        yield {"metric": REFUSED if wish == "refuse" else ANSWERED, "value": value}
    else:
        raise InputError(
            f"metric '{judge.metric}' is not known here", where=f"task {judge.benchmark}"
        )


@dataclass(frozen=True)
class Figures:
    """Observations of written answers, and in how many votes the first of equal answers won."""

    observed: list[Observation]
    ties: int


def judgement_observations(
    judgements: Sequence[Judgement], judges: Mapping[str, Judge], pass_at: Sequence[int]
) -> Figures:
    """Scores of requests, whose samples are adjacent.

    Of each metric the mean over the samples, which is pass@1; `@k` for each `k` of `pass_at` above
    1 for which there are samples; for exact match with several samples the majority's answer.
    """
    observed, ties = [], 0
    for name, members in _by_request(judgements):
        group = list(members)
        metric, n = group[0].metric, len(group)
        put = {"formulation": group[0].formulation, "shots": group[0].shots}
        value = sum(one.value for one in group) / n
        weight = sum(one.weight for one in group) / n
        first = f"{metric}@1" if metric == PASS else metric
        observed.append(_observe(name, first, value, weight, put))
        judge = judges.get(group[0].benchmark)
        if judge is None or judge.metric not in ("exact_match", "code") or metric == NAMED:
            continue
        right = sum(one.value == 1.0 for one in group)
        for k in pass_at:
            if 1 < k <= n:
                named = f"{metric}@{k}" if metric == PASS else f"{metric}_pass@{k}"
                observed.append(_observe(name, named, pass_at_k(n, right, k), 1.0, put))
        if judge.metric == "exact_match" and n > 1:
            vote = majority([one.answer for one in group], judge.normalise)
            ties += vote.is_tied
            winner = next((one for one in group if _votes(one, vote.answer, judge)), None)
            won = 0.0 if winner is None else winner.value
            observed.append(_observe(name, f"{metric}_majority@{n}", won, 1.0, put))
    return Figures(observed, ties)


def _votes(one: Judgement, answer: str | None, judge: Judge) -> bool:
    return one.answer is not None and judge.normalise.apply(one.answer) == answer


def _observe(
    name: tuple[str, str], metric: str, value: float, weight: float, put: Mapping[str, Any]
) -> Observation:
    return Observation(*name, metric, value, weight, **put)


def _by_request(
    judgements: Sequence[Judgement],
) -> Iterable[tuple[tuple[str, str], list[Judgement]]]:
    """Judgements of one request and metric, requests in their order."""

    def request(one: Judgement) -> tuple[Any, ...]:
        return one.benchmark, one.item_id, one.formulation, one.shots

    for _, members in groupby(judgements, key=request):
        group = list(members)
        for metric in dict.fromkeys(one.metric for one in group):
            chosen = [one for one in group if one.metric == metric]
            yield (chosen[0].benchmark, chosen[0].item_id), chosen
