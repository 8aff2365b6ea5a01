"""Evaluations of permanent checkpoints, read as curves: by run, by settings, by score."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from artifacts_schema.errors import UsageError
from artifacts_schema.identity import canonical_sha256, short
from artifacts_schema.manifest import InputRef, Manifest
from artifacts_schema.store import Store
from artifacts_schema.store.store import descendants
from flows.analysis.artifacts import RefsByArtifact, refs_by_artifact
from flows.analysis.curves import Curve, CurveReport, Fall, Point, ScoreCurves
from flows.analysis.score_comparison import (
    OF_THE_DATA,
    EvaluationItems,
    ScorePair,
    is_evaluation,
    judge_pairs,
    pair_scores,
    read_items,
)
from flows.analysis.unpaired_scores import evaluation_of
from stages.scoring.observations import ScoreName

_SUFFIX, _PLANTED = "_clean", "planted/"


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
    rows = evaluation_of(store, manifest).read_table("results.parquet").to_pylist()
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
                evaluation=manifest.name,
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
