"""What the forms of a release cost: each against its checkpoint, on the same text and items.

Differences are paired by document and by item, as `compare` pairs two evaluations; p values are
adjusted for all scores of a form.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from artifacts_schema.errors import UsageError
from artifacts_schema.store import Store
from flows.analysis.model_forms import ModelForm, open_checkpoint, open_form
from flows.analysis.score_comparison import (
    EvaluationItems,
    ScoreDifference,
    group_items,
    judge_pairs,
    pair_scores,
)
from stages.engine.inputs import Input
from stages.evaluate.benchmarks import FREE, QUESTION, Item, draw, read_items
from stages.evaluate.config import EvaluateConfig, EvaluateExecution
from stages.evaluate.parts import BenchmarkPart, Evaluator, HeldOutPart, benchmark_parts
from stages.scoring.dtypes import arithmetic
from stages.scoring.observations import ItemName, Observation, ScoreName, items_table
from stages.training.token_shards import TokenShards

HELD_OUT = "held_out"
Part = BenchmarkPart | HeldOutPart


@dataclass(frozen=True)
class FormCost:
    """A form, and how each score of it differs from the checkpoint's (A)."""

    form: ModelForm
    differences: list[ScoreDifference]

    def to_json(self) -> dict[str, Any]:
        """As plain values."""
        return {
            "ref": self.form.ref,
            "form": self.form.form,
            "bytes": self.form.bytes,
            "differences": [one.to_json() for one in self.differences],
        }


def compare_forms(
    store: Store,
    checkpoint: str,
    forms: Sequence[str],
    *,
    held_out: str | None,
    benchmarks: Sequence[str] = (),
    metrics: Sequence[str] = (),
    config: EvaluateConfig,
    progress: Callable[[str], None] = lambda _: None,
) -> tuple[ModelForm, list[FormCost]]:
    """The checkpoint's own size, and of each form what it costs; of `metrics` alone, if any.

    UsageError for a form of another checkpoint, and where there is nothing to measure.
    `progress(ref)` is called before a form is measured.
    """
    source, base = open_checkpoint(store, checkpoint)
    opened = [open_form(store, ref, source) for ref in forms]
    if held_out is None and not benchmarks:
        raise UsageError(
            "nothing to measure the forms on", hint="give --held-out, or --benchmarks, or both"
        )
    shards = [] if held_out is None else [_input(store, held_out, "token_shards")]
    tables = [_input(store, ref, "benchmarks") for ref in benchmarks]
    parts, clusters = _plan_parts(shards, tables, config)

    def measure(form: ModelForm) -> EvaluationItems:
        progress(form.ref)
        return _measure(form, source, shards, parts, clusters, config)

    before = measure(base)
    costs = []
    for form in opened:
        pairs = pair_scores(before, measure(form), metrics)
        if not pairs:
            raise UsageError(
                "no such metric was measured",
                where="--metric",
                hint=f"there are {', '.join(sorted({name.metric for name in before}))}",
            )
        costs.append(FormCost(form, judge_pairs(pairs)))
    return base, costs


def _input(store: Store, ref: str, kind: str) -> Input:
    manifest, output = store.resolve(ref)
    if output is None:
        fitting = [name for name, one in manifest.outputs.items() if one.kind == kind]
        output = fitting[0] if len(fitting) == 1 else None
    if output is None or manifest.output(output).kind != kind:
        raise UsageError(f"is no {kind}", where=ref)
    return Input.from_manifest(store, manifest, output)


def _plan_parts(
    shards: Sequence[Input], tables: Sequence[Input], config: EvaluateConfig
) -> tuple[list[Part], dict[ItemName, str | None]]:
    """Sources of held-out text and ranked items, drawn as `evaluate` draws them; their clusters."""
    rows = (row for one in tables for shard in one.shards() for row in shard.read().to_pylist())
    items, _ = read_items(rows, config.cluster_by)
    ranked: dict[str, list[Item]] = {}
    for item in items:
        if item.form not in (QUESTION, FREE):
            ranked.setdefault(item.benchmark, []).append(item)
    parts: list[Part] = []
    for name, group in sorted(ranked.items()):
        parts += benchmark_parts(name, draw(group, config.max_items, config.seed))
    if shards:
        parts += [HeldOutPart(name, name) for name in TokenShards(shards).sources]
    return parts, {(item.benchmark, item.item_id): item.cluster for item in items}


def _measure(
    form: ModelForm,
    checkpoint: Input,
    shards: Sequence[Input],
    parts: Sequence[Part],
    clusters: dict[ItemName, str | None],
    config: EvaluateConfig,
) -> EvaluationItems:
    """Items of every score, those of all held-out text together too."""
    execution = EvaluateExecution(device="cpu")
    observed: list[Observation] = []
    with arithmetic(torch.device("cpu"), config.dtype, execution.threads):
        evaluator = Evaluator.open(
            form.read(), checkpoint, shards, config, execution, check_stop=lambda: None
        )
        for part in parts:
            observed += evaluator.measure(part).observed
    scores = group_items(items_table(observed, None, clusters))
    texts = [name for name in scores if name.benchmark.startswith(f"{HELD_OUT}/")]
    if len(texts) > 1:
        every = {
            f"{name.benchmark}/{item}": values
            for name in texts
            for item, values in scores[name].items()
        }
        scores = {ScoreName(HELD_OUT, None, None, texts[0].metric): every, **scores}
    return scores
