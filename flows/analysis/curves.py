"""Scores over the permanent checkpoints of training runs, and which of them can be trusted.

Evaluations are grouped by the run whose checkpoint they measured. Runs that differ by their seed
alone are one model: their spread is the noise that a score has to rise above.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from artifacts_schema.errors import UsageError
from artifacts_schema.identity import canonical_sha256, short
from artifacts_schema.manifest import InputRef, Manifest
from artifacts_schema.store import Store
from artifacts_schema.store.store import descendants
from flows.analysis.artifacts import RefsByArtifact, refs_by_artifact
from flows.analysis.score_comparison import (
    KIND,
    OF_THE_DATA,
    EvaluationItems,
    Items,
    ScoreDifference,
    ScorePair,
    is_evaluation,
    judge_pairs,
    lower_is_better,
    pair_scores,
    read_items,
)
from stages.engine.inputs import Input
from stages.scoring.early_signal import (
    ItemScores,
    Signal,
    above_chance,
    mean_ordering,
    monotonicity,
    monotonicity_interval,
    signal_interval,
    signal_to_noise,
)
from stages.scoring.metrics import label
from stages.scoring.observations import ScoreName

_SUFFIX, _PLANTED = "_clean", "planted/"
Interval = tuple[float, float] | None


@dataclass(frozen=True)
class Measured:
    """An evaluation of a checkpoint, and what else it depends on."""

    manifest: Manifest
    checkpoint: Manifest
    settings: str
    """Digest of everything that decides its scores but the checkpoint."""

    @property
    def run(self) -> str:
        """Key of the training run."""
        interim = self.checkpoint.interim_of
        return interim.run if interim else self.checkpoint.key

    @property
    def step(self) -> int:
        """Training steps that the checkpoint had behind it."""
        return int(self.checkpoint.counts["training_steps"])

    @property
    def tokens(self) -> int:
        """The tokens of those."""
        return int(self.checkpoint.counts["tokens"])


@dataclass(frozen=True)
class Point:
    """A score at one checkpoint, with its 95 % interval."""

    step: int
    tokens: int
    value: float
    low: float | None
    high: float | None
    standard_error: float | None
    baseline: float | None
    count: int
    items: Items


@dataclass(frozen=True)
class Curve:
    """A score over the checkpoints of a run, first to last."""

    run: str
    """Its name, or stage and key."""
    model: str
    """The name of the first run that differs by its seed at most."""
    points: tuple[Point, ...]


@dataclass(frozen=True)
class Fall:
    """A score that fell between two checkpoints of a run, beyond chance among all such pairs."""

    run: str
    before: Point
    after: Point
    difference: ScoreDifference


@dataclass(frozen=True)
class ScoreCurves:
    """The curves of one score over all runs."""

    name: ScoreName
    curves: tuple[Curve, ...]

    @property
    def label(self) -> str:
        """The benchmark, and how its items were put to the models."""
        return label(*self.name[:3])

    @property
    def sign(self) -> float:
        """-1 where less is better."""
        return -1.0 if lower_is_better(self.name.metric) else 1.0

    @cached_property
    def models(self) -> dict[str, list[Curve]]:
        """Curves by model."""
        models: dict[str, list[Curve]] = {}
        for curve in self.curves:
            models.setdefault(curve.model, []).append(curve)
        return models

    @cached_property
    def items(self) -> list[ItemScores]:
        """The items that all checkpoints of all runs share, run by run; empty without any."""
        every = [point.items for curve in self.curves for point in curve.points]
        first = every[0]
        shared = [
            name
            for name, (_, weight, _) in first.items()
            if all(name in items and items[name][1] == weight for items in every)
        ]
        if not shared:
            return []
        units: dict[object, int] = {}
        places = [
            units.setdefault(name if first[name][2] is None else (first[name][2],), len(units))
            for name in shared
        ]
        weights = np.array([first[name][1] for name in shared])

        def by_unit(values: Iterable[float]) -> np.ndarray:
            return np.bincount(places, weights=np.array(list(values)) * weights)

        denominators = by_unit([1.0] * len(shared))
        runs = []
        for curve in self.curves:
            numerators = [by_unit(point.items[i][0] for i in shared) for point in curve.points]
            steps = tuple(point.step for point in curve.points)
            runs.append(
                ItemScores(
                    steps,
                    self.sign * np.stack(numerators, axis=1),
                    np.repeat(denominators[:, None], len(steps), axis=1),
                )
            )
        return runs

    @cached_property
    def last_values(self) -> list[list[float]]:
        """The last score of each run, by model."""
        return [[run.points[-1].value for run in runs] for runs in self.models.values()]

    @property
    def signal_interval(self) -> Interval:
        """Of signal over noise; None for several models, or one seed."""
        return signal_interval(self.last_values[0]) if len(self.last_values) == 1 else None

    @property
    def monotonicity_interval(self) -> Interval:
        """Over resampled items."""
        return monotonicity_interval(self.items) if self.items else None

    @cached_property
    def signal(self) -> Signal:
        """What they say about the score."""
        noise = _mean(signal_to_noise(values) for values in self.last_values)
        return Signal(
            checkpoints=min(len(curve.points) for curve in self.curves),
            monotonicity=monotonicity(self.items) if self.items else None,
            signal=noise,
            above_chance=_mean(self._above_chance(runs) for runs in self.models.values()),
            ordering=self._ordering(),
            free_form=self.name.formulation == "free",
        )

    def _above_chance(self, runs: Sequence[Curve]) -> float | None:
        ends = [run.points[-1] for run in runs]
        if ends[0].baseline is None:
            return None
        values = [self.sign * point.value for point in ends]
        return above_chance(values, self.sign * ends[0].baseline, ends[0].standard_error)

    def _ordering(self) -> float | None:
        """Over the token counts that every run has."""
        by_tokens = [{p.tokens: self.sign * p.value for p in c.points} for c in self.curves]
        shared = sorted(set.intersection(*(set(one) for one in by_tokens)))
        place = {id(curve): values for curve, values in zip(self.curves, by_tokens, strict=True)}
        scores = [
            [
                float(np.mean([place[id(run)][tokens] for run in runs]))
                for runs in self.models.values()
            ]
            for tokens in shared
        ]
        return mean_ordering(scores)

    def to_json(self) -> dict[str, Any]:
        """As plain values, without items."""
        curves = [
            {
                "run": curve.run,
                "model": curve.model,
                "points": [
                    {k: v for k, v in vars(point).items() if k != "items"} for point in curve.points
                ],
            }
            for curve in self.curves
        ]
        return {
            **self.name._asdict(),
            **asdict(self.signal),
            "monotonicity_interval": self.monotonicity_interval,
            "signal_interval": self.signal_interval,
            "verdict": self.signal.verdict,
            "curves": curves,
        }


def _mean(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


@dataclass(frozen=True)
class CurveReport:
    """All scores, the falls between checkpoints, and what was not used."""

    scores: tuple[ScoreCurves, ...]
    falls: tuple[Fall, ...]
    compared: int
    """Pairs of consecutive checkpoints among which falls were sought."""
    left_out: int
    """Evaluations with other settings than most."""

    @property
    def runs(self) -> list[str]:
        """Names of the runs."""
        return list(dict.fromkeys(curve.run for score in self.scores for curve in score.curves))

    def to_json(self) -> dict[str, Any]:
        """As plain values."""
        falls = [
            {
                "run": fall.run,
                "from_step": fall.before.step,
                "to_step": fall.after.step,
                **fall.difference.to_json(),
            }
            for fall in self.falls
        ]
        return {
            "scores": [one.to_json() for one in self.scores],
            "falls": falls,
            "compared": self.compared,
            "left_out": self.left_out,
        }


# Reading -----------------------------------------------------------------------------------------


def read_curves(store: Store, names: Sequence[str], metrics: Sequence[str] = ()) -> CurveReport:
    """The curves of training runs, recipes or evaluations by name; of `metrics` alone, if any.

    UsageError where no run has evaluations of two checkpoints.
    """
    manifests = {one.name: one for text in names for one in _find_evaluations(store, text)}.values()
    return build_curves(store, manifests, metrics, where=" ".join(names))


def build_curves(
    store: Store, manifests: Iterable[Manifest], metrics: Sequence[str] = (), where: str = ""
) -> CurveReport:
    """The curves of evaluations. UsageError where no run has two checkpoints that were measured."""
    measured = [one for manifest in manifests if (one := _measured(store, manifest)) is not None]
    steps: dict[str, set[int]] = {}
    for one in measured:
        steps.setdefault(one.run, set()).add(one.step)
    measured = [one for one in measured if len(steps[one.run]) > 1]
    if not measured:
        raise UsageError(
            "no training run has evaluations of two checkpoints",
            where=where,
            hint="let the evaluate step have `for_each: {checkpoints: pretrain}` and `inputs: "
            "{checkpoint: each}`",
        )
    scores, used = _group(store, measured, metrics)
    falls, compared = _find_falls(scores)
    return CurveReport(tuple(scores), tuple(falls), compared, len(measured) - used)


def _find_evaluations(store: Store, text: str) -> Iterator[Manifest]:
    """The evaluations that a name, a key or a recipe means."""
    if store.ref(text.partition(":")[0].removeprefix("@")) is None:
        named = store.refs(f"{text}/")
        if named:
            yield from _existing(store, {(ref.stage, ref.key) for ref in named.values()})
            return
    manifest, _ = store.resolve(text)
    if is_evaluation(manifest):
        yield manifest
        return
    edges = descendants(store, manifest)
    yield from _existing(store, {edge.child for edge in edges})


def _existing(store: Store, names: Iterable[tuple[str, str]]) -> Iterator[Manifest]:
    for name in sorted(names):
        manifest = store.manifest(*name)
        if manifest is not None and is_evaluation(manifest):
            yield manifest


def _measured(store: Store, manifest: Manifest) -> Measured | None:
    """None for what measured no checkpoint of a training run, or one that was collected since."""
    chain = [manifest]
    while "checkpoint" not in chain[-1].inputs:
        parent = _parent(store, chain[-1].inputs.get("evaluation", ()))
        if parent is None:
            return None
        chain.append(parent)
    checkpoint = _parent(store, chain[-1].inputs["checkpoint"])
    if checkpoint is None or "training_steps" not in checkpoint.counts:
        return None
    settings = [
        [one.stage, one.version, one.identity, _digests(one, ("checkpoint", "evaluation"))]
        for one in chain
    ]
    return Measured(manifest, checkpoint, canonical_sha256(settings))


def _parent(store: Store, references: Sequence[InputRef]) -> Manifest | None:
    return store.manifest(*references[0].name) if references else None


def _digests(manifest: Manifest, without: Sequence[str] = ()) -> dict[str, list[str]]:
    return {
        role: [one.digest for one in references]
        for role, references in manifest.inputs.items()
        if role not in without
    }


def _group(
    store: Store, measured: Sequence[Measured], metrics: Sequence[str]
) -> tuple[list[ScoreCurves], int]:
    """Curves by score, and the number of evaluations that are in them.

    Where a checkpoint was measured with several settings, those of most checkpoints count.
    """
    measurements: dict[ScoreName, dict[str, dict[tuple[str, int], Point]]] = {}
    sources: dict[tuple[ScoreName, str], set[tuple[str, str]]] = {}
    for one in measured:
        for name, point in _points(store, one, metrics).items():
            by_settings = measurements.setdefault(name, {})
            by_settings.setdefault(one.settings, {})[one.run, one.step] = point
            sources.setdefault((name, one.settings), set()).add(one.manifest.name)
    names = _name_runs(store, measured)
    scores, used = [], set()
    for name, by_settings in measurements.items():
        settings = max(by_settings, key=lambda one: len(by_settings[one]))
        runs: dict[str, list[Point]] = {}
        for (run, _), point in sorted(by_settings[settings].items()):
            runs.setdefault(run, []).append(point)
        curves = [Curve(*names[run], tuple(points)) for run, points in runs.items()]
        curves = sorted((c for c in curves if len(c.points) > 1), key=lambda c: (c.model, c.run))
        if curves:
            scores.append(ScoreCurves(name, tuple(curves)))
            used |= sources[name, settings]
    return scores, len(used)


def _points(store: Store, measured: Measured, metrics: Sequence[str]) -> dict[ScoreName, Point]:
    """The scores of an evaluation that depend on its model."""
    manifest = measured.manifest
    items: EvaluationItems = read_items(store, manifest)
    output = next(name for name, one in manifest.outputs.items() if one.kind == KIND)
    rows = Input.from_manifest(store, manifest, output).read_table("results.parquet").to_pylist()
    points = {}
    for row in rows:
        name = ScoreName(*(row[field] for field in ScoreName._fields))
        if name in items and _is_chosen(name, metrics):
            values = {key: row[key] for key in ("value", "low", "high", "standard_error")}
            points[name] = Point(
                measured.step,
                measured.tokens,
                **values,
                baseline=row["baseline"],
                count=len(items[name]),
                items=items[name],
            )
    return points


def _is_chosen(name: ScoreName, metrics: Sequence[str]) -> bool:
    if metrics:
        return name.metric in metrics
    return not (
        name.metric in OF_THE_DATA
        or name.metric.endswith(_SUFFIX)
        or name.benchmark.startswith(_PLANTED)
    )


def _name_runs(store: Store, measured: Sequence[Measured]) -> dict[str, tuple[str, str]]:
    """(name, name of its model) of each run. A model is all that bears identity but the seed."""
    refs = refs_by_artifact(store)
    models: dict[str, str] = {}
    names = {}
    for one in measured:
        if one.run in names:
            continue
        checkpoint = one.checkpoint
        name = _run_name(checkpoint.stage, one.run, refs)
        identity = {key: value for key, value in checkpoint.identity.items() if key != "seed"}
        model = canonical_sha256(
            [checkpoint.stage, checkpoint.version, identity, _digests(checkpoint)]
        )
        names[one.run] = (name, models.setdefault(model, name))
    return names


def _run_name(stage: str, key: str, refs: RefsByArtifact) -> str:
    own = refs.get((stage, key), [])
    return own[0] if own else f"{stage} {short(key)}"


def _find_falls(scores: Sequence[ScoreCurves]) -> tuple[list[Fall], int]:
    """Falls between consecutive checkpoints, and how many pairs were tested for them."""
    pairs: list[tuple[str, Point, Point, ScorePair]] = []
    for score in scores:
        for curve in score.curves:
            for before, after in pairwise(curve.points):
                paired = pair_scores(
                    {score.name: before.items}, {score.name: after.items}, [score.name.metric]
                )
                pairs += [(curve.run, before, after, one) for one in paired]
    judged = judge_pairs([pair for *_, pair in pairs])
    falls = [
        Fall(run, before, after, one)
        for (run, before, after, _), one in zip(pairs, judged, strict=True)
        if one.is_worse
    ]
    return falls, len(pairs)
