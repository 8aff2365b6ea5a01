"""The evaluation on several ranks: all measure each part together, with the model in parts.

Rank 0 keeps what was measured of each part, so a run that is stopped goes on with the next one.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict

from artifacts_schema.errors import Stopped
from artifacts_schema.files import write_whole
from stages.engine import Context
from stages.evaluate.benchmarks import BadItem
from stages.evaluate.parts import Evaluator, Part, PartResult
from stages.parallel.ranks import Ranks
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

    checkpoint, results = context.one("checkpoint"), []
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
        for number, part in enumerate(parts):
            context.progress(number, len(parts), "parts")
            check_stop()
            result = ranks.share(_read_finished(context, part) if ranks.first else None)
            if result is None:
                result = evaluator.measure(part)
                if ranks.first:
                    _keep_finished(context, part, result)
            results.append(result)
    return results


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
