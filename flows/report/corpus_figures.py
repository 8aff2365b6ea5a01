"""Figures of a corpus before and after: by snapshot, by cause, by step, and copies."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import reduce

from flows.analysis.corpus_change import CorpusChange
from flows.analysis.corpus_tables import (
    ADDED,
    KEPT,
    REMOVED,
    RETURNED,
    STAYED,
    Decision,
    Flow,
    Volume,
)
from flows.report.estimates import difference_interval
from stages.engine.page import (
    BarFigure,
    Cell,
    Estimate,
    Figure,
    MatrixFigure,
    TableFigure,
    make_bars,
    make_table,
)
from stages.engine.tally import ranked, sentences
from stages.filter.config import REASONS
from stages.scoring.uncertainty import wilson

DRAWN_SNAPSHOTS = 12
SERIES = 3
"""Snapshots whose shares are drawn beside each other; earlier ones beyond these are joined."""
EARLIER = "earlier, together"
COPIES = ("exact_duplicate", "near_duplicate")
NO_RULE = tuple(reason for reason in REASONS if reason != "empty_after_edits")
WILSON = "Intervals are Wilson's, of 95 %; they take documents as independent."


# By snapshot -------------------------------------------------------------------------------------


def movement(change: CorpusChange) -> BarFigure:
    """Documents that stayed, were added and removed, by snapshot; the oldest of many are joined."""
    names = list(change.snapshots)
    groups = {name: [name] for name in names[-DRAWN_SNAPSHOTS:]}
    if oldest := names[:-DRAWN_SNAPSHOTS]:
        groups = {f"{len(oldest):,} earlier ones": oldest, **groups}

    def count(group: Sequence[str], causes: Sequence[str], *, after: bool) -> int:
        return sum(
            (flow.after if after else flow.before).documents
            for flow in change.flows
            if flow.snapshot in group and flow.cause in causes
        )

    return make_bars(
        "Documents by snapshot",
        groups,
        "documents:,",
        {
            "stayed": [count(group, (STAYED,), after=True) for group in groups.values()],
            "added": [count(group, ADDED, after=True) for group in groups.values()],
            "removed": [count(group, REMOVED, after=False) for group in groups.values()],
        },
        stacked=True,
        label="snapshot",
        note="Stayed and added are the corpus after; stayed and removed were the one before.",
    )


def volume_table(change: CorpusChange, by: str, title: str) -> TableFigure:
    """Documents, text and tokens before and after by `snapshot` or `source`, and in all."""
    before, after = (change.volumes(after=side, by=by) for side in (False, True))
    known = change.snapshots if by == "snapshot" else sorted({*before, *after})
    rows = [(name, before.get(name, Volume()), after.get(name, Volume())) for name in known]
    rows = [row for row in rows if row[1].documents or row[2].documents]
    rows.append(("all", change.total(after=False), change.total(after=True)))
    unpacked = [name for name, _, now in rows if now.documents and now.tokens is None]
    note = sentences(
        "Text is counted before the filter's edits; tokens are those of the packed sequences, "
        "special ones included.",
        OTHER_TOKENS if change.other_tokenizer else "",
        f"Not packed, so without tokens: {', '.join(unpacked)}." if unpacked else "",
    )
    unit = size_unit(change)
    headings = (
        f"{by} | documents before:, | documents after:, | {unit} before:,.2f "
        f"| {unit} after:,.2f | tokens before:, | tokens after:,"
    )
    cells = (
        (
            name,
            *(was.documents, now.documents),
            *(text_size(was, unit), text_size(now, unit)),
            *(volume_tokens(was), volume_tokens(now)),
        )
        for name, was, now in rows
    )
    return make_table(title, headings, cells, note).without_empty()


OTHER_TOKENS = "Before and after were packed by different tokenizers: their tokens differ in size."
MEGABYTES, CHARACTERS = "MB", "million characters"


def size_unit(change: CorpusChange) -> str:
    """How the text is counted: in bytes, or in characters where not all bytes were measured."""
    volumes = [one for flow in change.flows for one in (flow.before, flow.after) if one.documents]
    return MEGABYTES if all(one.bytes is not None for one in volumes) else CHARACTERS


def text_size(volume: Volume, unit: str) -> float:
    """Millions of bytes or characters."""
    return (volume.characters if unit == CHARACTERS else volume.bytes or 0) / 1e6


def volume_tokens(volume: Volume) -> int | None:
    """Tokens; 0 of no documents, None of documents that were not packed."""
    return volume.tokens if volume.documents else 0


# The funnel --------------------------------------------------------------------------------------


def comparable(change: CorpusChange) -> tuple[list[str], list[str]]:
    """The new snapshots, and those earlier ones that hold documents of a source of theirs.

    All snapshots as earlier ones if none is new.
    """
    by_snapshot: dict[str, set[str]] = {}
    for one in change.decisions:
        by_snapshot.setdefault(one.snapshot, set()).add(one.source)
    sources = set().union(*(by_snapshot.get(name, set()) for name in change.new))
    earlier = [
        name
        for name in change.snapshots
        if name in by_snapshot and name not in change.new
        if not change.new or by_snapshot[name] & sources
    ]
    return [name for name in change.new if name in by_snapshot], earlier


def _columns(change: CorpusChange) -> dict[str, list[str]]:
    """Snapshots that are drawn as one series each, the earlier ones joined where they are many."""
    new, earlier = comparable(change)
    room = max(SERIES - len(new), 1)
    columns = {name: [name] for name in (*earlier, *new)}
    if len(earlier) > room:
        alone = earlier[len(earlier) - room + 1 :]
        columns = {EARLIER: earlier[: len(earlier) - len(alone)]}
        columns |= {name: [name] for name in (*alone, *new)}
    return columns


def funnel(change: CorpusChange) -> list[Figure]:
    """The share of records that is left after each step of the decision, by snapshot."""
    columns = _columns(change)
    if not columns:
        return []
    lefts = {label: dict(_left(change, group)) for label, group in columns.items()}
    first = (
        "records read" if all("records read" in left for left in lefts.values()) else "documents"
    )
    steps = [step for step in next(iter(lefts.values())) if step != "records read"]
    steps = [
        step
        for place, step in enumerate(steps)
        if step in ("documents", KEPT)
        or any(left[step] != left[steps[place - 1]] for left in lefts.values())
    ]
    if first == "documents":
        steps = steps[1:]
    shares = {
        label: [left[step] / left[first] if left[first] else None for step in steps]
        for label, left in lefts.items()
    }
    rows = [
        (label, left[first], *(left[step] for step in steps), left[KEPT] / left[first] or None)
        for label, left in lefts.items()
        if left[first]
    ]
    headings = " | ".join(
        ["snapshot", *(f"{step}:," for step in (first, *steps)), "share kept:.1%"]
    )
    return [
        make_bars(
            f"Share of {first} that is left after each step",
            steps,
            "share:.1%",
            shares,
            label="step",
            note="Steps are in the order of decision; a document counts at the first that drops "
            "it. Rules include edits that left nothing.",
        ),
        make_table("What is left after each step", headings, rows),
    ]


def _left(change: CorpusChange, group: Sequence[str]) -> Iterator[tuple[str, int]]:
    """What is left of some snapshots after each step."""
    dropped: dict[str, int] = {}
    for one in change.decisions:
        if one.snapshot in group:
            dropped[one.reason] = dropped.get(one.reason, 0) + one.documents
    if all(name in change.records for name in group):
        yield "records read", sum(change.records[name].records_in for name in group)
    left = sum(dropped.values())
    yield "documents", left
    rules = sum(n for reason, n in dropped.items() if reason not in (*NO_RULE, KEPT))
    for step, count in (
        ("in a wanted language", dropped.get("language", 0)),
        ("pass the rules", rules),
        ("without benchmark items", dropped.get("contamination", 0)),
        ("not excluded", dropped.get("exclusion", 0)),
        (KEPT, sum(dropped.get(reason, 0) for reason in COPIES)),
    ):
        left -= count
        yield step, left


def reasons(change: CorpusChange, most: int = 20) -> list[Figure]:
    """Share of documents dropped for each reason, in earlier snapshots and in new ones."""
    new, earlier = comparable(change)
    if not new or not earlier:
        return []
    sides = [_counted(change.decisions, group) for group in (earlier, new)]
    names = [name for name, _ in ranked(reduce(add_counts, sides)) if name != KEPT]
    totals = [sum(side.values()) for side in sides]
    rows = [_share_row(name, sides, totals) for name in (KEPT, *names[:most])]
    left = f"Not listed: {len(names) - most:,} more." if len(names) > most else ""
    headings = "verdict | earlier:.2% | new:.2% | new − earlier:+.2% | 95 %:"
    note = sentences(
        "Shares of the documents that were decided on. Intervals are of the difference "
        "(Newcombe's), for each row by itself; they take documents as independent.",
        left,
    )
    return [make_table("Why documents were dropped, earlier and new", headings, rows, note)]


def _counted(decisions: Iterable[Decision], group: Sequence[str]) -> dict[str, int]:
    counts: dict[str, int] = {}
    for one in decisions:
        if one.snapshot in group:
            counts[one.reason] = counts.get(one.reason, 0) + one.documents
    return counts


def add_counts(sums: Mapping[str, int], counts: Mapping[str, int]) -> Mapping[str, int]:
    """Both counts in one."""
    return {name: sums.get(name, 0) + counts.get(name, 0) for name in {**sums, **counts}}


def share_estimate(name: str, part: int, whole: int) -> Estimate:
    """A share, `part` of `whole`, with Wilson's interval."""
    low, high = wilson(part, whole)
    return Estimate(name, part / whole, low, high, count=whole)


def _share_row(
    name: str, sides: Sequence[Mapping[str, int]], totals: Sequence[int]
) -> tuple[Cell, ...]:
    """A share on both sides, and its difference with the interval of that."""
    one, two = (
        share_estimate(name, side.get(name, 0), total)
        for side, total in zip(sides, totals, strict=True)
    )
    ends = difference_interval(one, two)
    assert ends is not None, "both shares have an interval"
    interval = f"{ends[0]:+.2%} to {ends[1]:+.2%}"
    return name, one.value, two.value, two.value - one.value, interval


# Copies ------------------------------------------------------------------------------------------


def copies(change: CorpusChange) -> list[Figure]:
    """Documents of each snapshot with a copy in each earlier one, and in itself."""
    measured = change.copies
    if measured is None or not measured.snapshots:
        return []
    names = measured.snapshots
    counts = [
        [measured.pairs.get((row, column), 0) if j <= i else None for j, column in enumerate(names)]
        for i, row in enumerate(names)
    ]
    least = f"a {measured.measure} of {measured.threshold or 0:g} or more"
    at = "" if measured.threshold is None else f", or {least}"
    note = (
        f"A copy has the same normalised text{at}, whatever the filter decided about either. A "
        "document with copies in several snapshots counts in each; on the diagonal are copies "
        "within a snapshot."
    )
    rows = []
    for i, name in enumerate(names):
        total, with_earlier = measured.documents[name], measured.with_earlier.get(name, 0)
        low, high = wilson(with_earlier, total)
        within = measured.pairs.get((name, name), 0)
        ends = f"{low:.2%} to {high:.2%}" if i else None
        rows.append((name, total, with_earlier, with_earlier / total, ends, within))
    headings = (
        "snapshot | documents:, | with a copy in any earlier one:, | share:.2% | 95 %: "
        "| with a copy within it:,"
    )
    return [
        *filter(None, [share_matrix(change)]),
        MatrixFigure(
            "Documents with a copy in an earlier snapshot",
            names,
            names,
            tuple(tuple(row) for row in counts),
            note=note,
        ),
        make_table("Copies by snapshot", headings, rows, WILSON),
    ]


def share_matrix(change: CorpusChange, most: int | None = None) -> MatrixFigure | None:
    """The share of a snapshot's documents (rows) with a copy in an earlier one (columns).

    With `most`, of the last snapshots alone.
    """
    measured = change.copies
    if measured is None or not measured.snapshots:
        return None
    names = measured.snapshots[-(most or 0) :]
    values = tuple(
        tuple(
            measured.pairs.get((row, column), 0) / measured.documents[row] if j <= i else None
            for j, column in enumerate(names)
        )
        for i, row in enumerate(names)
    )
    note = "Rows are the snapshots, columns where their copies lie, the diagonal within itself."
    return MatrixFigure(
        "Share of documents with a copy, by snapshot", names, names, values, ".1%", note
    )


# Added and removed -------------------------------------------------------------------------------


def causes(change: CorpusChange) -> list[Figure]:
    """What was removed and what was added, by cause, then by snapshot and reason."""
    figures: list[Figure] = []
    unit = size_unit(change)
    sizes = f"documents:, | {unit}:,.2f | tokens:,"
    back = "A document came back where the kept document that it is a copy of was removed."
    for after, known, verb in ((False, REMOVED, "removed"), (True, ADDED, "added")):
        flows = [flow for flow in change.flows if flow.cause in known]
        if not flows:
            continue
        by_cause = _sum_flows(flows, lambda flow: (flow.cause,), after=after)
        by_reason = _sum_flows(
            flows, lambda flow: (flow.snapshot, flow.cause, flow.reason), after=after
        )
        note = back if after and any(flow.cause in RETURNED for flow in flows) else ""
        rows = [(one, *_sizes(by_cause[one,], unit)) for one in known if (one,) in by_cause]
        headings = f"why | {sizes}"
        if not after and any(change.forgotten):
            was, now = change.forgotten
            note = f"On the lists of forgotten documents: {was:,} before, {now:,} now."
        figures.append(
            make_table(f"What was {verb}, and why", headings, rows, note).without_empty()
        )
        if len(by_reason) > len(by_cause):
            order = {name: place for place, name in enumerate(change.snapshots)}
            ordered = sorted(by_reason, key=lambda name: (order[name[0]], *name[1:]))
            rows = [(*name, *_sizes(by_reason[name], unit)) for name in ordered]
            headings = f"snapshot | why | reason {'before' if after else 'now'} | {sizes}"
            figures.append(
                make_table(f"What was {verb}, by snapshot", headings, rows).without_empty()
            )
    return figures


def _sum_flows(
    flows: Iterable[Flow], name: Callable[[Flow], tuple[str, ...]], *, after: bool
) -> dict[tuple[str, ...], Volume]:
    sums: dict[tuple[str, ...], Volume] = {}
    for flow in flows:
        volume = flow.after if after else flow.before
        sums[name(flow)] = sums.get(name(flow), Volume()) + volume
    return sums


def _sizes(volume: Volume, unit: str) -> tuple[Cell, ...]:
    return volume.documents, text_size(volume, unit), volume.tokens
