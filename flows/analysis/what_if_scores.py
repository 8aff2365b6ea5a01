"""Other metrics of what an evaluation measured, in memory: no model is loaded, nothing written.

The stage `score` itself is run, on a context that keeps its tables: so the answer is that of a run.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, cast

from artifacts_schema.errors import UsageError
from artifacts_schema.identity import short
from artifacts_schema.manifest import Manifest
from artifacts_schema.store import Store
from flows.analysis.artifacts import load_inputs
from flows.analysis.score_comparison import (
    EvaluationItems,
    Items,
    group_items,
    lower_is_better,
    pair_items,
)
from flows.analysis.what_if import parse_sweep
from flows.recipe.notation import set_value
from stages.engine.inputs import Input
from stages.evaluate.config import ScoreConfig
from stages.evaluate.score import Score, check_overlap
from stages.scoring.contamination import Side, Split, read_overlaps, split_items, with_overlap
from stages.scoring.differences import PairedDifference, newcombe_interval
from stages.scoring.metrics import Normalisation, label
from stages.scoring.observations import ScoreName

if TYPE_CHECKING:
    import pyarrow as pa

    from stages.engine import Context

OVERLAP = "max_overlap"
"""The setting that can be swept."""
Ends = tuple[float, float | None, float | None]
"""A difference and the ends of its 95 % interval."""
SAME = "the same items"
UNCHANGED, DROPPED = "unchanged", "not scored any more"
OF_EVALUATE: tuple[Normalisation, ...] = ("sum", "bytes")
"""What `evaluate` itself shows."""


@dataclass(frozen=True)
class _Done:
    """What came of a part, as `ShardResult` has it."""

    value: Any


class _Going:
    """What a part asks of its `ShardOutput`."""

    stopping = False


class _Memory:
    """What `Score.run` needs of a context."""

    def __init__(self, config: ScoreConfig, evaluation: Input, contamination: Input | None) -> None:
        self.config = config
        self._inputs = {"evaluation": evaluation, "contamination": contamination}
        self.tables: dict[str, pa.Table] = {}

    def one(self, role: str) -> Input:
        """See `Context.one`."""
        return cast(Input, self._inputs[role])

    def maybe(self, role: str) -> Input | None:
        """See `Context.maybe`."""
        return self._inputs[role]

    def map(self, work: Callable[..., Any], parts: Sequence[Any], **settings: Any) -> list[_Done]:
        """Programs among the answers, run again one after another, in the sandbox."""
        return [_Done(work(part, _Going(), **settings)) for part in parts]

    def write_table(self, output: str, path: str, table: pa.Table) -> None:
        """Keep a table."""
        self.tables[path] = table

    def layout(self, **values: Any) -> None:
        """Nothing is recorded."""

    def write_json(self, output: str, path: str, value: Any) -> None:
        """Nothing is written."""

    def count(self, **counts: int) -> None:
        """Nothing is recorded."""


@dataclass(frozen=True)
class MeasuredScores:
    """What was measured, and the config that it was scored by."""

    store: Store
    manifest: Manifest
    evaluation: Input
    contamination: Input | None
    config: ScoreConfig

    @classmethod
    def open(cls, store: Store, text: str) -> MeasuredScores:
        """What a `score` or `evaluate` step made. InputError if its input was collected."""
        manifest, _ = store.resolve(text)
        config = ScoreConfig(normalisations=OF_EVALUATE)
        inputs = load_inputs(store, manifest.inputs)
        if manifest.stage == Score.name:
            config = ScoreConfig.parse(manifest.config, where=text)
            evaluation = inputs["evaluation"][0]
        else:
            evaluation = Input.from_manifest(store, manifest, "evaluation", full_check=False)
        contamination = next(iter(inputs.get("contamination", [])), None)
        return cls(store, manifest, evaluation, contamination, config)

    def configure(self, settings: Sequence[str]) -> ScoreConfig:
        """The config with every `path=value` set; UsageError for an invalid one."""
        values: dict[str, Any] = self.config.plain()
        for text in settings:
            set_value(values, text.strip().removeprefix("score."))
        where = " ".join(f"--set {text}" for text in settings) or "config"
        config = ScoreConfig.parse(values, where=where)
        check_overlap(config, self.contamination is not None)
        return config

    def score(self, config: ScoreConfig) -> dict[str, pa.Table]:
        """The tables that the stage would write under another config."""
        memory = _Memory(config, self.evaluation, self.contamination)
        Score().run(cast("Context", memory))
        return memory.tables


@dataclass(frozen=True)
class ScoreChange:
    """A score before and after; either is None where it was not, or is not, scored."""

    name: ScoreName
    before: Side | None
    after: Side | None
    difference: Ends | None
    """After − before with its 95 % interval; None where there is nothing to compare."""
    basis: str
    """What the difference is of: `the same items`, `accuracy on the same items`, …"""

    @property
    def label(self) -> str:
        """The benchmark, and how its items were put to the model."""
        return label(*self.name[:3])

    @property
    def reading(self) -> str:
        """What it says if the interval of the difference leaves out zero."""
        value, low, high = self.difference or (0.0, None, None)
        if low is None or high is None:
            return ""
        if low <= 0 <= high:
            return "no difference seen"
        if not self.basis.endswith(SAME):
            return "these items differ"
        return "better" if (value < 0) == lower_is_better(self.name.metric) else "worse"

    def to_json(self) -> dict[str, Any]:
        """As plain values."""
        values = asdict(self)
        del values["name"]
        return {**self.name._asdict(), **values, "reading": self.reading}


class ScoresReport:
    """What other settings of `score` change, score by score."""

    def __init__(self, measured: MeasuredScores, settings: Sequence[str]) -> None:
        self.measured, self.settings = measured, tuple(settings)
        tables = [measured.score(c) for c in (measured.config, measured.configure(settings))]
        before, after = (group_items(table["items.parquet"]) for table in tables)
        names = list(dict.fromkeys([*after, *before]))
        self.changes = [_change(name, before, after) for name in names]

    def to_json(self) -> dict[str, Any]:
        """As plain values."""
        return {
            "evaluation": self.measured.manifest.key,
            "set": list(self.settings),
            "scores": [one.to_json() for one in self.changes],
        }


class OverlapSweep:
    """Scores of clean and contaminated items at each bound of `max_overlap`; A:B:N."""

    def __init__(self, measured: MeasuredScores, settings: Sequence[str], sweep: str) -> None:
        self.measured, self.settings = measured, tuple(settings)
        name, thresholds = parse_sweep(sweep)
        if name.removeprefix("score.") != OVERLAP:
            raise UsageError(
                f"'{name}' has no range to sweep over",
                where=f"--sweep {sweep}",
                hint=f"sweep {OVERLAP}=0:1:11, or try values with --set",
            )
        if measured.contamination is None:
            raise UsageError(
                f"{measured.manifest.stage} {short(measured.manifest.key)} does not know what the "
                "corpus holds of its items",
                where=f"--sweep {sweep}",
                hint="give the output of decontaminate to role `contamination` of its step",
            )
        everything = measured.configure([*settings, f"{OVERLAP}=null"])
        overlaps = read_overlaps(measured.contamination)
        items = group_items(measured.score(everything)["items.parquet"])
        self.splits: dict[ScoreName, list[Split]] = {
            score: split_items(with_overlap(group, score.benchmark, overlaps), thresholds)
            for score, group in items.items()
        }

    def to_json(self) -> dict[str, Any]:
        """As plain values."""
        return {
            "evaluation": self.measured.manifest.key,
            "set": list(self.settings),
            "scores": [
                {
                    **name._asdict(),
                    "splits": [{**asdict(one), "difference": one.difference} for one in splits],
                }
                for name, splits in self.splits.items()
            ],
        }


ScoreWhatIf = ScoresReport | OverlapSweep


def _change(name: ScoreName, before: EvaluationItems, after: EvaluationItems) -> ScoreChange:
    """A metric of fewer items is compared with the items that it lost, a new one with the first."""
    old, new = before.get(name, {}), after.get(name, {})
    sides = _side(old), _side(new)
    if not new:
        return ScoreChange(name, *sides, None, DROPPED)
    if not old:
        usual = _usual(name, before)
        if usual is None:
            return ScoreChange(name, *sides, None, "new")
        paired, _ = pair_items(before[usual], new)
        basis = f"against {usual.metric}, {SAME}"
        return ScoreChange(name, *sides, _ends(paired), basis)
    if old == new:
        return ScoreChange(name, *sides, None, UNCHANGED)
    excluded, added = old.keys() - new.keys(), new.keys() - old.keys()
    others = _side({key: old[key] for key in excluded} or {key: new[key] for key in added})
    mine = sides[1] if excluded else sides[0]
    basis = f"against {len(excluded):,} left out" if excluded else f"{len(added):,} added"
    return ScoreChange(name, *sides, _apart(mine, others, added=not excluded), basis)


def _apart(mine: Side | None, others: Side | None, *, added: bool) -> Ends | None:
    """The items that stay minus those left out, or those added minus the others."""
    here = mine.estimate if mine else None
    there = others.estimate if others else None
    if here is None or there is None:
        return None
    here, there = (there, here) if added else (here, there)
    return here[0] - there[0], *newcombe_interval(there, here)


def _usual(name: ScoreName, before: EvaluationItems) -> ScoreName | None:
    """The first accuracy before, of the same items, that another one can be compared with."""
    if not name.metric.startswith("accuracy"):
        return None
    return next(
        (one for one in before if one[:3] == name[:3] and one.metric.startswith("accuracy")), None
    )


def _side(items: Items) -> Side | None:
    return Side.of_items(with_overlap(items, "", {}))


def _ends(paired: PairedDifference | None) -> Ends | None:
    return None if paired is None else (paired.value, paired.low, paired.high)
