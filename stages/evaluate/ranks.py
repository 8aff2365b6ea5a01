"""The evaluation on several ranks: all measure each part together, with the model in parts.

Answers are shared out instead: each rank writes those of a part of its own, as one process would.
Rank 0 keeps what was measured of each part, so a run that is stopped goes on with the next one.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from itertools import groupby

from artifacts_schema.errors import Stopped
from artifacts_schema.files import write_whole
from stages.engine import Context
from stages.evaluate.benchmarks import BadItem
from stages.evaluate.parts import Evaluator, Part, PartResult
from stages.evaluate.writing import AnswerPart
from stages.parallel.lockstep import Lockstep
from stages.parallel.ranks import ALONE, Ranks
from stages.scoring.answers import Answer
from stages.scoring.choices import Choice
from stages.scoring.dtypes import arithmetic
from stages.scoring.observations import Observation
from stages.training.start import read_spread


def measure_on_ranks(context: Context, parts: Sequence[Part], ranks: Ranks) -> list[PartResult]:
    """What all ranks measured of each part, in order; to be called on all of them."""

    def check_stop() -> None:
        """Raise Stopped on all ranks if any was asked to stop."""
        if ranks.any(context.stopping):
            raise Stopped()

    checkpoint = context.one("checkpoint")
    results: list[PartResult] = []
    dtype = context.config.dtype
    with arithmetic(ranks.device, dtype, context.execution.threads):
        evaluator = Evaluator.open(
            read_spread(checkpoint, ranks),
            checkpoint,
            context.many("held_out"),
            context.config,
            context.execution,
            ranks=ranks,
            check_stop=check_stop,
        )
        lockstep = Lockstep(ranks, evaluator.model, lambda: context.stopping)
        for group in _groups(parts, ranks.world):
            context.progress(len(results), len(parts), "parts")
            check_stop()
            finished = [
                ranks.share(_read_finished(context, part) if ranks.first else None)
                for part in group
            ]
            rest = [part for part, one in zip(group, finished, strict=True) if one is None]
            if len(rest) > 1:
                measured = iter(_measure_apart(evaluator, rest, lockstep))
            else:
                measured = iter([evaluator.measure(part) for part in rest])
            for part, one in zip(group, finished, strict=True):
                result = next(measured) if one is None else one
                if one is None and ranks.first:
                    _keep_finished(context, part, result)
                results.append(result)
    return results


def _groups(parts: Sequence[Part], ranks: int) -> Iterator[list[Part]]:
    """Consecutive parts of answers as many at once as there are ranks, all others alone."""
    for is_written, members in groupby(parts, key=lambda part: isinstance(part, AnswerPart)):
        group, size = list(members), ranks if is_written else 1
        yield from (group[start : start + size] for start in range(0, len(group), size))


def _measure_apart(
    evaluator: Evaluator, parts: Sequence[Part], lockstep: Lockstep
) -> list[PartResult]:
    """Each rank measures the part of its number, if there is one, and all have all results."""
    ranks = lockstep.ranks
    own: PartResult | None = None
    if ranks.rank < len(parts):
        alone = replace(evaluator, ranks=ALONE, check_stop=lockstep.take)
        own = alone.measure(parts[ranks.rank])
    lockstep.wait()
    return [one for one in ranks.gather(own) if one is not None]


def _keep_finished(context: Context, part: Part, result: PartResult) -> None:
    path = context.work / f"{part.id}.json"
    context.state.check()
    write_whole(path, lambda written: written.write_text(json.dumps(asdict(result))))
    context.state.publish(part.id, path)


def _read_finished(context: Context, part: Part) -> PartResult | None:
    """What an earlier process of the run measured of a part; None if it did not."""
    path = context.work / f"{part.id}.json"
    if not path.exists() and not context.state.fetch(part.id):
        return None
    value = json.loads(path.read_bytes())
    return PartResult(
        [Observation(**one) for one in value["observed"]],
        [BadItem(**one) for one in value["bad"]],
        value["generations"],
        [Choice.from_plain(one) for one in value["choices"]],
        value["notes"],
        [Answer.from_plain(one) for one in value["answers"]],
    )
