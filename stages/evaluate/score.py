"""The stage that turns measured log-likelihoods and written answers into metrics."""

from __future__ import annotations

import platform
from collections import Counter
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

from artifacts_schema.errors import InputError, UsageError
from stages.engine import Context, Inputs, Maybe, One, Stage
from stages.evaluate.config import ScoreConfig
from stages.scoring.metrics import label

if TYPE_CHECKING:
    import pyarrow as pa

    from stages.engine import Input
    from stages.scoring.answers import Answer
    from stages.scoring.choices import Choice
    from stages.scoring.observations import ItemName, Observation


class Score(Stage):
    """Rank measured choices, and judge written answers, over chosen items, in seconds.

    `evaluate` measures the log-likelihood of every choice and writes the answers once; what follows
    from them is decided here, as often as wanted: no model is loaded. Errors and intervals are
    those of `evaluate`. Programs among the answers are run in a sandbox: how one ends may depend on
    the machine, so what is reproducible is `numerics`; all else has the same bytes everywhere.
    """

    name, version, reproducible = "score", 2, "numerics"
    inputs = {"evaluation": One("evaluation"), "contamination": Maybe("contamination")}
    outputs = {"evaluation": "evaluation"}
    libraries = ("numpy", "pyarrow", "regex", "scipy")
    Config = ScoreConfig

    @classmethod
    def check_plan(cls, config: Any, inputs: Inputs) -> None:
        """See `check_overlap`."""
        check_overlap(config, bool(inputs.get("contamination")))

    def run(self, context: Context) -> None:
        from stages.evaluate.judging import JUDGEMENTS
        from stages.scoring.answers import from_table as read_answers
        from stages.scoring.answers import to_table as answers_table
        from stages.scoring.choices import (
            TABLE,
            choice_observations,
            from_table,
            several_right,
            to_table,
        )
        from stages.scoring.contamination import read_overlaps
        from stages.scoring.observations import (
            ANSWERS,
            TASKS,
            empty_table,
            items_table,
            merge_tasks,
            results_table,
        )

        config: ScoreConfig = context.config
        check_overlap(config, context.maybe("contamination") is not None)
        evaluation = context.one("evaluation")
        overlaps = read_overlaps(context.maybe("contamination"))
        measured = from_table(evaluation.read_table(TABLE))
        written = read_answers(evaluation.read_table(ANSWERS))
        chosen, answers = choose_items(measured, written, config, overlaps)
        tasks = merge_tasks([evaluation])
        judgements, free = _judge(context, answers, tasks)
        observed = choice_observations(chosen, config.normalisations, several_right(tasks)) + free
        clusters = read_clusters(evaluation)
        flags = {name: share > 0 for name, share in overlaps.items()} if overlaps else None
        context.write_table(
            "evaluation", "results.parquet", results_table(observed, flags, clusters)
        )
        context.write_table("evaluation", "items.parquet", items_table(observed, flags, clusters))
        context.write_table("evaluation", TABLE, to_table(chosen))
        context.write_table("evaluation", ANSWERS, answers_table(answers))
        context.write_table("evaluation", JUDGEMENTS, judgements)
        context.write_table("evaluation", "generations.parquet", empty_table("generations.parquet"))
        context.write_json("evaluation", TASKS, tasks)
        before, after = (
            {one.name for group in some for one in group}
            for some in ((measured, written), (chosen, answers))
        )
        context.count(items=len(before), items_left_out=len(before - after))


def _judge(
    context: Context, answers: Sequence[Answer], tasks: Sequence[Mapping[str, Any]]
) -> tuple[pa.Table, list[Observation]]:
    """Judgements of written answers, and the observations that follow. Programs run here."""
    from stages.evaluate.judging import (
        judge_answers,
        judgement_observations,
        program_parts,
        read_judges,
        run_part,
        to_table,
    )
    from stages.sandbox.check import Verdict

    config: ScoreConfig = context.config
    judges = read_judges(tasks, answers)
    coded, parts = program_parts(answers, judges)
    verdicts: list[Verdict] = []
    if parts:
        results = context.map(
            run_part,
            parts,
            seconds=config.program_seconds,
            memory=config.program_memory,
            isolation=config.isolation,
        )
        verdicts = [Verdict(*one) for result in results for one in result.value["verdicts"]]
        context.layout(python=platform.python_version(), machine=platform.machine())
        for name, count in sorted(Counter(one.result for one in verdicts).items()):
            context.count(**{f"programs_{name}": count})
    judgements = judge_answers(answers, judges, dict(zip(coded, verdicts, strict=True)))
    figures = judgement_observations(judgements, judges, config.pass_at)
    context.count(answers=len(answers), tied_votes=figures.ties)
    return to_table(judgements), figures.observed


def check_overlap(config: ScoreConfig, is_known: bool) -> None:
    """UsageError for a bound on an overlap that nothing measures."""
    if config.max_overlap is not None and not is_known:
        raise UsageError(
            "max_overlap needs to know what the corpus holds of each item",
            where="score",
            hint="give the output of decontaminate to role `contamination`",
        )


def choose_items(
    choices: Sequence[Choice],
    answers: Sequence[Answer],
    config: ScoreConfig,
    overlaps: dict[ItemName, float],
) -> tuple[list[Choice], list[Answer]]:
    """Those of items that the config takes; InputError if there is none."""

    def is_chosen(one: Choice | Answer) -> bool:
        return (
            (not config.benchmarks or any(fnmatchcase(one.benchmark, p) for p in config.benchmarks))
            and (not config.formulations or one.formulation in config.formulations)
            and (not config.shots or one.shots in config.shots)
            and (config.max_overlap is None or overlaps.get(one.name, 0.0) <= config.max_overlap)
        )

    chosen = [one for one in choices if is_chosen(one)], [one for one in answers if is_chosen(one)]
    if not any(chosen):
        requests = [one.request for one in choices] + [one.request for one in answers]
        names = ", ".join(sorted({label(name, way, n) for name, _, way, n in requests})) or "none"
        raise InputError(
            "no item is left to score",
            where="score",
            hint=f"measured: {names}; loosen what chooses among them, or `max_overlap`",
        )
    return chosen


def read_clusters(evaluation: Input) -> dict[ItemName, str | None]:
    """The cluster of each item."""
    table = evaluation.read_table("items.parquet", ["benchmark", "item_id", "cluster"])
    return {(row["benchmark"], row["item_id"]): row["cluster"] for row in table.to_pylist()}
