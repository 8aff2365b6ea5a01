"""Two runs by their evaluations: the first table of a comparison, and scores that fell.

Scores whose items both runs measured are paired by item. The others (other items, an evaluation of
an earlier version) are compared by their intervals, as if the runs were independent.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice

from artifacts_schema.errors import IngotError
from artifacts_schema.store import Store
from artifacts_schema.store.runs import Run, load_runs
from flows.analysis.curve_reading import build_curves
from flows.analysis.score_comparison import (
    ScoreDifference,
    ScorePair,
    judge_pairs,
    pair_scores,
    read_items,
)
from flows.report.estimates import (
    VARIANT,
    Difference,
    Score,
    compare_scores,
    list_scores,
    measured,
)
from flows.report.overview import kinds_out, manifest_of
from flows.report.subject import Step, Subject, find_subject, load_pages
from stages.engine.page import TableFigure, make_table
from stages.scoring.uncertainty import show_estimate

HEADINGS = "score | measure | A, 95 %: | B, 95 %: | B − A, 95 %: | reading"
LOOK_BACK = 20
"""Most runs of a recipe that are looked at for the one before that was evaluated."""

Compared = tuple[list[tuple[str, ScoreDifference]], list[Difference]]
"""What was paired, with the step of each, and what was not."""


def compare_runs(a: Subject, b: Subject, scores_a: list[Score], scores_b: list[Score]) -> Compared:
    """Every score of evaluations that both runs made; `scores` are those of their pages."""
    paired = _pair_evaluations(a, b)
    done = {(step, one.label) for step, one in paired}
    rest = [
        score
        for score in scores_b
        if (score.step, score.estimate.name.partition(VARIANT)[0]) not in done
    ]
    return paired, compare_scores(scores_a, rest)


def _pair_evaluations(a: Subject, b: Subject) -> list[tuple[str, ScoreDifference]]:
    """Without evaluations of an earlier version, and collected or damaged ones."""
    pairs: list[tuple[str, ScorePair]] = []
    for step, other in _evaluations(a, b):
        try:
            before = read_items(a.store, manifest_of(step))
            after = read_items(b.store, manifest_of(other))
        except (IngotError, OSError):
            continue
        pairs += [(other.instance, one) for one in pair_scores(before, after)]
    judged = judge_pairs([one for _, one in pairs])
    return [(name, one) for (name, _), one in zip(pairs, judged, strict=True)]


def _evaluations(a: Subject, b: Subject) -> Iterator[tuple[Step, Step]]:
    """Steps of one name that made an evaluation in both runs."""
    before = {step.instance: step for step in a.made if "evaluation" in kinds_out(step)}
    for step in b.made:
        if "evaluation" in kinds_out(step) and step.instance in before:
            yield before[step.instance], step


# The table ---------------------------------------------------------------------------------------


def differences_table(compared: Compared) -> TableFigure:
    """The scores that differ beyond chance, and what the others could not have shown."""
    paired, unpaired = compared
    rows = [*_paired_rows(paired), *_unpaired_rows(unpaired)]
    notes = []
    if paired:
        clear = sum(one.differs for _, one in paired)
        notes.append(
            f"{clear} of {len(paired)} scores that both runs have differ beyond chance: paired by "
            "item, p below 0.05 after Holm's adjustment for all of them; the interval is that of "
            "B − A alone."
        )
        notes.append(_unseen(one for _, one in paired))
    if unpaired:
        clear = sum(one.outcome != "no different" for one in unpaired)
        notes.append(
            f"{clear} of {len(unpaired)} scores whose items are not the same in both differ: the "
            "95 % interval of B − A (Newcombe's, the runs taken as independent) leaves out zero. "
            "One in twenty such intervals does by chance."
        )
    if not notes:
        notes = ["No score is in both runs: nothing says what differs beyond chance."]
    note = " ".join(filter(None, notes))
    return make_table("Scores that differ beyond chance", HEADINGS, rows, note)


def _paired_rows(compared: Sequence[tuple[str, ScoreDifference]]) -> Iterator[tuple[str, ...]]:
    clear = [(step, one) for step, one in compared if one.differs]
    for step, one in sorted(clear, key=lambda pair: (pair[1].adjusted, pair[0])):
        paired = one.paired
        yield (
            f"{one.label} ({step})",
            one.metric,
            show_estimate(paired.a, paired.a_ends),
            show_estimate(paired.b, paired.b_ends),
            show_estimate(paired.value, paired.ends, "+.3f"),
            one.reading,
        )


def _unpaired_rows(compared: Sequence[Difference]) -> Iterator[tuple[str, ...]]:
    for one in compared:
        if one.outcome != "no different":
            yield (
                f"{one.b.estimate.name} ({one.b.step})",
                one.b.axis.label,
                show_estimate(one.a.estimate.value, one.a.ends, one.a.axis.format),
                show_estimate(one.b.estimate.value, one.b.ends, one.b.axis.format),
                show_estimate(one.value, (one.low, one.high), f"+{one.b.axis.format}"),
                f"B is {one.outcome} (other items)",
            )


def _unseen(compared: Iterable[ScoreDifference]) -> str:
    unseen = sorted(one.detectable for one in compared if not one.differs and one.detectable)
    if not unseen:
        return ""
    return (
        f"Of the others, differences of {unseen[0]:.3f} to {unseen[-1]:.3f} or more would have "
        "been seen with a chance of 80 %; `ingot compare` says it of each."
    )


# Regressions -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Regression:
    """A score that fell between two runs; the ends are those of the difference, 95 %."""

    name: str
    """`docstrings of dpo`."""
    metric: str
    before: float
    after: float
    low: float
    high: float
    paired: bool

    def __str__(self) -> str:
        how = "paired by item" if self.paired else "other items"
        return (
            f"{self.name}, {self.metric}: {self.before:.3f} → {self.after:.3f} (95 % interval of "
            f"the difference {self.low:+.3f} to {self.high:+.3f}, {how})"
        )


def find_regressions(store: Store, run: Run) -> list[Regression]:
    """Scores of a run that are worse, beyond chance, than in the recipe's last done run before it.

    Runs without scores in common with it are passed over. Then scores that fell between two
    permanent checkpoints, of which this run measured the later one.
    """
    subject = _only_evaluations(store, run)
    return [*_since_run_before(store, run, subject), *_between_checkpoints(subject)]


def _since_run_before(store: Store, run: Run, subject: Subject) -> list[Regression]:
    earlier = (one for one in load_runs(store, run.recipe) if one.id < run.id)
    for before in islice(earlier, LOOK_BACK if subject.steps else 0):
        if before.state == "done":
            other = _only_evaluations(store, before)
            scores = [list_scores(one, load_pages(one)) for one in (other, subject)]
            compared = compare_runs(other, subject, *scores)
            if any(compared):
                return list(_fallen(subject, compared))
    return []


def _fallen(subject: Subject, compared: Compared) -> Iterator[Regression]:
    paired, unpaired = compared
    steps = {step.instance: step for step in subject.steps}
    for step, one in paired:
        low, high = one.paired.low, one.paired.high
        if one.is_worse and low is not None and high is not None:
            name = f"{one.label} of {measured(subject, steps[step])[0] or step}"
            yield Regression(name, one.metric, one.paired.a, one.paired.b, low, high, paired=True)
    for difference in unpaired:
        if difference.outcome == "worse":
            a, b = difference.a.estimate.value, difference.b.estimate.value
            ends = difference.low, difference.high
            yield Regression(difference.b.name, difference.b.axis.label, a, b, *ends, paired=False)


def _between_checkpoints(subject: Subject) -> Iterator[Regression]:
    made = {step.name for step in subject.steps if step.state == "made"}
    try:
        falls = build_curves(subject.store, [manifest_of(step) for step in subject.steps]).falls
    except (IngotError, OSError):  # No two checkpoints, or an evaluation of an earlier version.
        return
    for fall in falls:
        paired = fall.difference.paired
        if fall.after.evaluation in made and paired.low is not None and paired.high is not None:
            name = (
                f"{fall.difference.label} of {fall.run}, training step {fall.before.step:,} to "
                f"{fall.after.step:,}"
            )
            values = paired.a, paired.b, paired.low, paired.high
            yield Regression(name, fall.difference.metric, *values, paired=True)


def _only_evaluations(store: Store, run: Run) -> Subject:
    """A run without its other steps, whose pages are then not made."""
    subject = find_subject(store, run.name)
    steps = tuple(step for step in subject.made if "evaluation" in kinds_out(step))
    return replace(subject, steps=steps)
