"""The stage that turns measured log-likelihoods into metrics."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

from artifacts_schema.errors import InputError, UsageError
from stages.engine import Context, Inputs, Maybe, One, Stage
from stages.evaluate.config import ScoreConfig
from stages.scoring.metrics import label

if TYPE_CHECKING:
    from stages.engine import Input
    from stages.scoring.choices import Choice
    from stages.scoring.observations import ItemName


class Score(Stage):
    """Rank measured choices by other normalisations, over chosen items, in seconds.

    `evaluate` measures the log-likelihood of every choice once; what follows from it is decided
    here, as often as wanted: no model is loaded. Errors and intervals are those of `evaluate`.
    """

    name, version, reproducible = "score", 2, "bytes"
    inputs = {"evaluation": One("evaluation"), "contamination": Maybe("contamination")}
    outputs = {"evaluation": "evaluation"}
    libraries = ("numpy", "pyarrow", "scipy")
    Config = ScoreConfig

    @classmethod
    def check_plan(cls, config: Any, inputs: Inputs) -> None:
        """See `check_overlap`."""
        check_overlap(config, bool(inputs.get("contamination")))

    def run(self, context: Context) -> None:
        from stages.scoring.choices import TABLE, choice_observations, from_table, to_table
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
        measured = from_table(evaluation.read_table(TABLE))
        overlaps = read_overlaps(context.maybe("contamination"))
        chosen = choose_items(measured, config, overlaps)
        observed = choice_observations(chosen, config.normalisations)
        clusters = read_clusters(evaluation)
        flags = {name: share > 0 for name, share in overlaps.items()} if overlaps else None
        context.write_table(
            "evaluation", "results.parquet", results_table(observed, flags, clusters)
        )
        context.write_table("evaluation", "items.parquet", items_table(observed, flags, clusters))
        context.write_table("evaluation", TABLE, to_table(chosen))
        for path in (ANSWERS, "generations.parquet"):
            context.write_table("evaluation", path, empty_table(path))
        context.write_json("evaluation", TASKS, merge_tasks([evaluation]))
        before, after = ({one.name for one in some} for some in (measured, chosen))
        context.count(items=len(before), items_left_out=len(before - after))


def check_overlap(config: ScoreConfig, is_known: bool) -> None:
    """UsageError for a bound on an overlap that nothing measures."""
    if config.max_overlap is not None and not is_known:
        raise UsageError(
            "max_overlap needs to know what the corpus holds of each item",
            where="score",
            hint="give the output of decontaminate to role `contamination`",
        )


def choose_items(
    choices: Sequence[Choice], config: ScoreConfig, overlaps: dict[ItemName, float]
) -> list[Choice]:
    """The choices of items that the config takes; InputError if there is none."""
    chosen = [
        one
        for one in choices
        if (not config.benchmarks or any(fnmatchcase(one.benchmark, p) for p in config.benchmarks))
        and (not config.formulations or one.formulation in config.formulations)
        and (not config.shots or one.shots in config.shots)
        and (config.max_overlap is None or overlaps.get(one.name, 0.0) <= config.max_overlap)
    ]
    if not chosen:
        measured = {label(one.benchmark, one.formulation, one.shots) for one in choices}
        names = ", ".join(sorted(measured)) or "none"
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
