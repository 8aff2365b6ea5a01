"""Two runs by their evaluations, paired by item: the first table of a comparison."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from artifacts_schema.errors import IngotError
from flows.analysis.score_comparison import (
    ScoreDifference,
    ScorePair,
    judge_pairs,
    pair_scores,
    read_items,
)
from flows.report.estimates import HEADINGS
from flows.report.overview import kinds_out, manifest_of
from flows.report.subject import Step, Subject
from stages.engine.page import TableFigure, make_table


def pair_evaluations(a: Subject, b: Subject) -> list[tuple[str, ScoreDifference]] | None:
    """The scores of evaluations that both runs made, paired by item, with the step of each.

    None where an evaluation is of an earlier version, collected or damaged.
    """
    pairs: list[tuple[str, ScorePair]] = []
    for step, other in _evaluations(a, b):
        try:
            before = read_items(a.store, manifest_of(step))
            pairs += [
                (other.instance, one)
                for one in pair_scores(before, read_items(b.store, manifest_of(other)))
            ]
        except (IngotError, OSError):
            return None
    judged = judge_pairs([one for _, one in pairs])
    return [(name, one) for (name, _), one in zip(pairs, judged, strict=True)]


def _evaluations(a: Subject, b: Subject) -> Iterator[tuple[Step, Step]]:
    """Steps of one name that made an evaluation in both runs."""
    before = {step.instance: step for step in a.made if "evaluation" in kinds_out(step)}
    for step in b.made:
        if "evaluation" in kinds_out(step) and step.instance in before:
            yield before[step.instance], step


def paired_table(compared: Sequence[tuple[str, ScoreDifference]]) -> TableFigure:
    """The scores that differ beyond chance, and what the others could not have shown."""
    clear = sorted(
        ((step, one) for step, one in compared if one.differs),
        key=lambda pair: (pair[1].adjusted, pair[0]),
    )
    rows = [
        (
            f"{one.label} ({step})",
            one.metric,
            f"{one.paired.a:.3f}",
            f"{one.paired.b:.3f}",
            f"{one.paired.value:+.3f}",
            "" if one.paired.low is None else f"{one.paired.low:.3f} to {one.paired.high:.3f}",
            one.reading,
        )
        for step, one in clear
    ]
    unseen = sorted(one.detectable for _, one in compared if not one.differs and one.detectable)
    note = (
        f"{len(clear)} of {len(compared)} scores that both runs have differ beyond chance: paired "
        "by item, p below 0.05 after Holm's adjustment for all of them; the interval is that of "
        "B − A alone."
    )
    if unseen:
        note += f" Of the others, differences of {unseen[0]:.3f} to {unseen[-1]:.3f} or more would "
        note += "have been seen with a chance of 80 %; `ingot compare` says it of each."
    if not compared:
        note = "No evaluation is in both runs: nothing says what differs beyond chance."
    return make_table("Scores that differ beyond chance", HEADINGS, rows, note)
