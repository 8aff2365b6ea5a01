"""Two evaluations side by side: scores that differ beyond chance, and what could not be seen.

Scores are paired by item, so both must have been measured on the same items; those of one alone
are counted and left out. A score of which one side has no items (published results) is compared as
of independent samples. Many scores are compared at once, so p values are adjusted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from artifacts_schema.errors import UsageError
from artifacts_schema.identity import short
from artifacts_schema.kinds import KINDS
from artifacts_schema.manifest import Manifest
from artifacts_schema.store import Store
from flows.analysis.unpaired_scores import KIND, evaluation_of, independent_differences
from stages.engine.inputs import Input
from stages.scoring.contamination import read_overlaps
from stages.scoring.differences import LEVEL, PairedDifference, adjust, paired_difference
from stages.scoring.metrics import NATS, PERPLEXITY, SAVED, label
from stages.scoring.observations import TASKS, ItemName, ScoreName

if TYPE_CHECKING:
    import pyarrow as pa

OF_THE_DATA = (
    "accuracy_ngram", "accuracy_unigram", "accuracy_shortest", "accuracy_above_ngram", SAVED,
)  # fmt: skip
"""Metrics of simpler judges, which do not depend on the model, and those that repeat accuracy or
bits per byte."""


LOWER_IS_BETTER = frozenset(
    (NATS, PERPLEXITY, "word_perplexity", "byte_perplexity", "brier_score", "ter", "no_verdict",
     "changed_with_order")
)  # fmt: skip
"""Metrics, beside bits per byte, of which less is better."""

Items = dict[str, tuple[float, float, str | None]]
"""Value, weight and cluster by item."""
EvaluationItems = dict[ScoreName, Items]


def lower_is_better(metric: str) -> bool:
    """Of bits per byte, nats and perplexity, whatever stands after a slash; else more is better."""
    name = metric.partition("/")[0]
    return "bits_per_byte" in name or name in LOWER_IS_BETTER


@dataclass(frozen=True)
class ScoreDifference:
    """A score of both evaluations; `adjusted` is its p value among all that were compared."""

    name: ScoreName
    paired: PairedDifference
    adjusted: float | None
    alone: int
    """Items that only one of the two has."""
    detectable: float | None
    """Least difference that is seen with a chance of 80 %, at the adjusted level."""
    by_item: bool = True
    """Whether it is paired by item, or of two independent samples."""

    @property
    def label(self) -> str:
        """The benchmark, and how its items were put to the models."""
        return label(*self.name[:3])

    @property
    def metric(self) -> str:
        """Its metric."""
        return self.name.metric

    @property
    def differs(self) -> bool:
        """Whether the two differ beyond chance, after adjustment."""
        return self.adjusted is not None and self.adjusted < LEVEL

    @property
    def reading(self) -> str:
        """`B is better`, `B is worse`, `no difference seen`; `, not paired` where it is not."""
        note = "" if self.by_item else ", not paired"
        if self.paired.standard_error is None and not self.by_item:
            return f"no error known{note}"
        if not self.differs:
            return f"no difference seen{note}"
        return f"B is {'worse' if self.is_worse else 'better'}{note}"

    @property
    def is_worse(self) -> bool:
        """Whether B is worse than A beyond chance."""
        return self.differs and (self.paired.value > 0) == lower_is_better(self.metric)

    def to_json(self) -> dict[str, Any]:
        """As plain values."""
        values = asdict(self)
        del values["name"]
        return {**self.name._asdict(), **values, "differs": self.differs, "reading": self.reading}


@dataclass(frozen=True)
class ScorePair:
    """A score of both evaluations, before it is known how many are compared."""

    name: ScoreName
    paired: PairedDifference
    alone: int
    by_item: bool = True


def compare_evaluations(
    store: Store,
    a: Manifest,
    b: Manifest,
    metrics: Sequence[str] = (),
    max_overlap: float | None = None,
) -> list[ScoreDifference]:
    """Every score that both evaluations have, those with items first; of `metrics` alone, if any.

    With `max_overlap`, without items of whose n-grams the corpus holds more than this share, as
    what was searched for B says, or for A; then scores without items are left out. UsageError for
    what is no evaluation, for tasks of two versions, and where nothing can be compared.
    """
    before, after = read_items(store, a), read_items(store, b)
    check_tasks(store, a, b)
    if max_overlap is not None:
        overlaps = read_overlaps(_find_contamination(store, b, a))
        before, after = (_leave_out(one, overlaps, max_overlap) for one in (before, after))
    pairs = pair_scores(before, after, metrics)
    if max_overlap is None:
        shared = before.keys() & after.keys()
        pairs += [
            ScorePair(name, difference, 0, by_item=False)
            for name, difference in independent_differences(store, a, b, shared)
            if _is_chosen(name.metric, metrics)
        ]
    if not pairs:
        known = sorted({name.metric for name in before.keys() & after.keys()})
        raise UsageError(
            "the two evaluations have no items of a metric in common",
            where=f"{short(a.key)} and {short(b.key)}",
            hint=f"metrics of both: {', '.join(known) or 'none'}",
        )
    return judge_pairs(pairs)


def _find_contamination(store: Store, *manifests: Manifest) -> Input:
    """What was searched for the items of an evaluation, or of the one that it was scored from."""
    waiting = list(manifests)
    while waiting:
        manifest = waiting.pop(0)
        for reference in manifest.inputs.get("contamination", ()):
            return Input.load(store, reference, full_check=False)
        for reference in manifest.inputs.get("evaluation", ()):
            if (parent := store.manifest(*reference.name)) is not None:
                waiting.append(parent)
    raise UsageError(
        "neither evaluation knows what the corpus holds of its items",
        where=" and ".join(short(manifest.key) for manifest in manifests),
        hint="give the output of decontaminate to role `contamination` of an evaluate step",
    )


def _leave_out(
    scores: EvaluationItems, overlaps: Mapping[ItemName, float], most: float
) -> EvaluationItems:
    return {
        name: kept
        for name, items in scores.items()
        if (
            kept := {
                item: values
                for item, values in items.items()
                if overlaps.get((name.benchmark, item), 0.0) <= most
            }
        )
    }


def check_tasks(store: Store, a: Manifest, b: Manifest) -> None:
    """UsageError where the two were measured with different versions of a task."""
    before, after = (_task_versions(evaluation_of(store, one)) for one in (a, b))
    for name in sorted(before.keys() & after.keys()):
        if before[name] != after[name]:
            raise UsageError(
                f"task '{name}' is version {before[name]} in {short(a.key)} and {after[name]} in "
                f"{short(b.key)}: their prompts may differ",
                hint="measure both with one version",
            )


def _task_versions(evaluation: Input) -> dict[str, str]:
    """Evaluations before version 5 say nothing of tasks."""
    tasks = evaluation.read_json(TASKS) if evaluation.has(TASKS) else []
    return {task["name"]: str(task["version"]) for task in tasks}


def pair_scores(
    before: EvaluationItems, after: EvaluationItems, metrics: Sequence[str] = ()
) -> list[ScorePair]:
    """Differences of the scores that both have items of, in the order of `after`."""
    pairs = []
    for name, items in after.items():
        if name in before and _is_chosen(name.metric, metrics):
            paired, alone = pair_items(before[name], items)
            if paired is not None:
                pairs.append(ScorePair(name, paired, alone))
    return pairs


def judge_pairs(pairs: Sequence[ScorePair]) -> list[ScoreDifference]:
    """The same with p values that are adjusted for all of them."""
    tested = [pair.paired.p for pair in pairs if pair.paired.p is not None]
    adjusted = iter(adjust(tested))
    return [
        ScoreDifference(
            pair.name,
            pair.paired,
            None if pair.paired.p is None else next(adjusted),
            pair.alone,
            pair.paired.detectable(len(tested)) if tested else None,
            pair.by_item,
        )
        for pair in pairs
    ]


def _is_chosen(metric: str, metrics: Sequence[str]) -> bool:
    return metric in metrics if metrics else metric not in OF_THE_DATA


def is_evaluation(manifest: Manifest) -> bool:
    """Whether an artifact holds scores."""
    return any(output.kind == KIND for output in manifest.outputs.values())


def read_items(store: Store, manifest: Manifest) -> EvaluationItems:
    """Items by score. UsageError for what is no evaluation, or an earlier one."""
    outputs = [name for name, output in manifest.outputs.items() if output.kind == KIND]
    if not outputs:
        raise UsageError(
            f"{manifest.stage} {short(manifest.key)} is no evaluation",
            hint="a checkpoint is measured first: ingot stage evaluate --input checkpoint=REF …",
        )
    if manifest.output(outputs[0]).kind_version < KINDS[KIND].version:
        raise UsageError(
            f"{manifest.stage} {short(manifest.key)} was measured by an earlier version of Ingot, "
            "without weights of items",
            hint="measure again with this one",
        )
    return group_items(evaluation_of(store, manifest).read_table("items.parquet"))


def group_items(table: pa.Table) -> EvaluationItems:
    """Rows of `items.parquet` by score."""
    groups: EvaluationItems = {}
    for row in table.to_pylist():
        one = groups.setdefault(ScoreName(*(row[field] for field in ScoreName._fields)), {})
        one[row["item_id"]] = row["value"], row["weight"], row["cluster"]
    return groups


def pair_items(before: Items, after: Items) -> tuple[PairedDifference | None, int]:
    """The difference over items of both, in B's order, and how many have one side alone.

    Items whose weight differs (another text under one name) are alone on both sides.
    """
    shared = [name for name in after if name in before and before[name][1] == after[name][1]]
    alone = len(before) + len(after) - 2 * len(shared)
    if not shared:
        return None, alone
    difference = paired_difference(
        [before[name][0] for name in shared],
        [after[name][0] for name in shared],
        [after[name][1] for name in shared],
        [after[name][2] for name in shared],
    )
    return difference, alone
