"""The evaluation on several ranks: all measure each part together, with the model in parts.

Answers are shared out instead: each rank writes those of a part of its own, as one process would.
Rank 0 keeps what was measured of each part, so a run that is stopped goes on with the next one.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import groupby

import torch

from artifacts_schema.errors import Stopped
from artifacts_schema.files import write_whole
from stages.engine import Context
from stages.evaluate.benchmarks import BadItem
from stages.evaluate.parts import Evaluator, Part, PartResult
from stages.evaluate.writing import AnswerPart
from stages.model.decoder import Decoder
from stages.parallel.ranks import ALONE, Ranks
from stages.scoring.answers import Answer
from stages.scoring.choices import Choice
from stages.scoring.dtypes import arithmetic
from stages.scoring.observations import Observation
from stages.training.start import read_spread


@dataclass(frozen=True)
class Lockstep:
    """What each rank calls: `take` before every pass of its own, then `wait` until all are done.

    Where parameters are in parts, a pass gathers them from all ranks, so all must make as many.
    Ranks that write need different numbers: before a pass each says so, and one that has nothing to
    do makes a pass over one token whenever another makes one. Both raise Stopped on all ranks as
    soon as one is asked to stop (`is_stopping`).
    """

    ranks: Ranks
    model: Decoder
    is_stopping: Callable[[], bool]

    def take(self) -> None:
        """Before a forward pass."""
        self._tell(busy=True)

    def wait(self) -> None:
        """Until no rank makes a pass any more."""
        is_cut = self.ranks.layout.shard > 1
        while self._tell(busy=False):
            if is_cut:
                self._pass_over_one_token()

    def _tell(self, *, busy: bool) -> bool:
        """Whether any rank is about to make a pass."""
        flags = self.ranks.sum_all(torch.tensor([int(busy), int(self.is_stopping())]))
        any_busy, any_stopping = flags.tolist()
        if any_stopping:
            raise Stopped()
        return bool(any_busy)

    @torch.inference_mode()
    def _pass_over_one_token(self) -> None:
        token_BL = torch.zeros(1, 1, dtype=torch.int64, device=self.ranks.device)
        self.model(token_BL, token_BL)


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
