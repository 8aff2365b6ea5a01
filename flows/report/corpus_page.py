"""The page of a corpus before and after: what `ingot report --corpus` writes.

Its figures come from the artifacts of one run, or of two; its first page says in a few sentences
what was added, what was removed and what moved.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from artifacts_schema.store import Store
from flows.analysis.corpus_change import CorpusChange, compare_corpora
from flows.analysis.corpus_tables import ADDED, FORGOTTEN, KEPT, REMOVED, RETIRED, RETURNED, Volume
from flows.analysis.run_corpus import COLLECTED, RunCorpus, made_since
from flows.report.corpus_drift import distances, drift, share_intervals, shares
from flows.report.corpus_figures import (
    OTHER_TOKENS,
    causes,
    comparable,
    copies,
    funnel,
    movement,
    reasons,
    share_matrix,
    volume_table,
)
from flows.report.front import Command
from flows.report.html import HtmlWriter, write_page
from flows.report.overview import Fact, cost, effort, figures_to_json, manifest_of
from flows.report.subject import Subject, find_subject
from stages.engine.page import Figure, TableFigure, make_table

NAMES = 3
"""Names listed in a sentence."""
TILE_DISTANCES, TILE_SHARES, TILE_SNAPSHOTS = 6, 4, 6
"""Signals, languages and snapshots with copies that the first page draws."""


@dataclass(frozen=True)
class Chapter:
    """Figures under one title; `about` stands beside it while it is folded."""

    anchor: str
    title: str
    about: str
    figures: tuple[Figure, ...]


@dataclass(frozen=True)
class CorpusPage:
    """All that the page shows."""

    subject: Subject
    change: CorpusChange
    banner: tuple[str, ...]
    verdict: tuple[str, ...]
    facts: tuple[Fact, ...]
    chapters: tuple[Chapter, ...]
    commands: tuple[Command, ...]


def write_corpus(
    store: Store, ref: str, path: Path, *, against: str | None = None, full: bool = False
) -> Path:
    """Write the page of the corpus of `ref` to `path`; with `full`, every chapter is open.

    Before is the corpus of `against`, or else the same one without its newest snapshot. UsageError
    if there is nothing to compare. Equal stores give equal bytes.
    """
    page = corpus_page(store, ref, against)
    writer = HtmlWriter(full)
    drawn = (
        movement(page.change),
        *funnel(page.change)[:1],
        share_matrix(page.change, TILE_SNAPSHOTS),
        distances(page.change, TILE_DISTANCES),
        share_intervals(page.change, "language", TILE_SHARES),
    )
    chapters = [(one, writer.blocks(one.figures, level=3)) for one in page.chapters]
    values: dict[str, Any] = {
        "title": f"{page.subject.title}: the corpus before and after",
        "page": page,
        "change": page.change,
        "plots": writer.tiles(drawn),
        "chapters": chapters,
    }
    return write_page(writer.render("corpus.html.jinja", values), path)


def plain_corpus(store: Store, ref: str, against: str | None = None) -> dict[str, Any]:
    """The content of the page as JSON-ready values."""
    page = corpus_page(store, ref, against)
    change = page.change
    return {
        "before": change.before,
        "after": change.after,
        "new": list(change.new),
        "retired": list(change.retired),
        "verdict": list(page.verdict),
        "facts": [{"label": f.label, "value": f.value, "detail": f.detail} for f in page.facts],
        "chapters": {one.anchor: figures_to_json(one.figures) for one in page.chapters},
    }


def corpus_page(store: Store, ref: str, against: str | None = None) -> CorpusPage:
    """Compare the corpora and draw the figures."""
    subject = find_subject(store, ref)
    after = run_corpus(subject)
    before = run_corpus(find_subject(store, against)) if against is not None else None
    change = compare_corpora(before, after)
    since = made_since(before, after, change.new)
    steps = tuple(step for step in subject.made if step.instance in since)
    spent = replace(subject, steps=steps)
    chapters = tuple(_chapters(change, cost(spent)[:2] if steps else [], after))
    return CorpusPage(
        subject=subject,
        change=change,
        banner=tuple(_banner(change)),
        verdict=tuple(_verdict(change)),
        facts=(*_facts(change), *effort(steps)[1:]),
        chapters=tuple(one for one in chapters if one.figures),
        commands=tuple(_commands(subject, ref, against, after)),
    )


def run_corpus(subject: Subject) -> RunCorpus:
    """The corpus of the steps that are made; UsageError if it has none, or two."""
    made = {step.instance: manifest_of(step) for step in subject.made}
    return RunCorpus.find(subject.store, subject.name, made)


def _chapters(change: CorpusChange, spent: Sequence[Figure], after: RunCorpus) -> Iterator[Chapter]:
    def chapter(anchor: str, title: str, about: str, figures: Iterable[Figure]) -> Chapter:
        return Chapter(anchor, title, about, tuple(figures))

    by_snapshot = volume_table(change, "snapshot", "Documents, bytes and tokens by snapshot")
    yield chapter(
        "snapshots", "By snapshot", "documents, bytes and tokens before and after",
        [movement(change), by_snapshot],
    )  # fmt: skip
    yield chapter(
        "causes", "Added and removed", "by cause: a retired snapshot, a forgotten page, a copy",
        causes(change),
    )  # fmt: skip
    yield chapter(
        "funnel", "Funnel", "what is left of each snapshot's records, step by step",
        [*funnel(change), *reasons(change)],
    )  # fmt: skip
    yield chapter(
        "copies", "Copies between snapshots", "documents that an earlier snapshot holds too",
        copies(change),
    )  # fmt: skip
    yield chapter(
        "drift", "Drift of signals", "values in the new snapshots against the earlier ones",
        drift(change),
    )  # fmt: skip
    yield chapter(
        "languages", "Languages and sources", "their shares before and after, with intervals",
        [*shares(change, "language"), *shares(change, "source")],
    )  # fmt: skip
    yield chapter("cost", "Cost of the change", "time, memory and bytes by step", spent)
    yield chapter(
        "numbers", "Where the numbers are from", "what was read, and the command that shows it",
        [_sources(after)],
    )  # fmt: skip


def _sources(after: RunCorpus) -> TableFigure:
    """What each number was read from, and how to ask for it."""
    last = [*after.filters.values()][-1]

    def command(keys: Iterable[str]) -> str:
        return "".join(f"ingot report {key[:12]} --json" for key in [*keys][-1:])

    def inputs(role: str) -> str:
        return command(one.key for one in last.inputs.get(role, ())[:1])

    show_lists = "ingot show exclusions" if after.exclusions() else ""
    rows = [
        ("documents kept and dropped, and why", "ledgers", command([last.key])),
        ("why one document was added or removed", "ledgers", "ingot why DOCUMENT"),
        ("records read", "accounts of the reading steps", f"ingot trace {last.key[:12]}"),
        ("tokens", "indexes of token shards", command(one.key for one in after.packs.values())),
        ("copies", "duplicates", inputs("duplicates")),
        ("values of signals, languages", "signals", inputs("signals")),
        ("forgotten documents", "lists of them", show_lists),
        ("time and bytes", "telemetry of manifests", "ingot cost"),
        ("all of this page", "", f"ingot report {after.name} --corpus --json"),
    ]
    rows = [row for row in rows if row[2]]
    return make_table("Where the numbers are from", "number | read from | shown by", rows)


# The first page ----------------------------------------------------------------------------------


def _sum(change: CorpusChange, causes: Sequence[str], *, after: bool) -> Volume:
    by_cause = change.volumes(after=after, by="cause")
    return sum((by_cause[one] for one in causes if one in by_cause), Volume())


def _banner(change: CorpusChange) -> Iterator[str]:
    """What limits the numbers below."""
    if change.other_tokenizer:
        yield OTHER_TOKENS
    if change.displaced:
        yield (
            f"{change.displaced:,} documents of other snapshots are dropped as copies of kept ones "
            f"in {change.new[0]}. Without it they would stay, but they are not counted before."
        )
    if COLLECTED in change.snapshots:
        yield "Documents whose table was collected since have no snapshot any more."


def _verdict(change: CorpusChange) -> Iterator[str]:
    """Sentences that follow from the numbers of the page."""
    yield _on_size(change)
    if change.new:
        yield from _on_new(change)
    retired, forgotten = (_sum(change, (one,), after=False) for one in (RETIRED, FORGOTTEN))
    back = _sum(change, RETURNED, after=True).documents
    if change.retired:
        names = _join_names(change.retired)
        yield f"Retired: {names}, with {retired.documents:,} documents{_tokens(retired)}."
    if forgotten.documents:
        yield f"{forgotten.documents:,} documents{_tokens(forgotten)} were forgotten."
    if back:
        yield f"{back:,} documents came back, since the copy that was kept before was removed."


def _on_size(change: CorpusChange) -> str:
    before, after = (change.total(after=side) for side in (False, True))
    added, removed = _sum(change, ADDED, after=True), _sum(change, REMOVED, after=False)
    verb = "grew" if after.documents > before.documents else "shrank"
    if after.documents == before.documents:
        verb = "kept its size, going"
    text = f"The corpus {verb} from {before.documents:,} to {after.documents:,} documents"
    if before.tokens is not None and after.tokens is not None:
        text += f" and from {before.tokens:,} to {after.tokens:,} tokens"
    counts = [f"{n:,}" if n else "none" for n in (added.documents, removed.documents)]
    return f"{text}: {counts[0]} added, {counts[1]} removed."


def _tokens(volume: Volume) -> str:
    return f" ({volume.tokens:,} tokens)" if volume.tokens is not None else ""


def _on_new(change: CorpusChange) -> Iterator[str]:
    new, earlier = comparable(change)
    shares = [_kept_share(change, group) for group in (new, earlier)]
    if shares[0] is not None:
        rest = f", of earlier snapshots {shares[1]:.1%}." if shares[1] is not None else "."
        yield f"Of the documents of {_join_names(change.new)}, {shares[0]:.1%} were kept{rest}"
    if change.copies is not None:
        with_copy = sum(change.copies.with_earlier.get(name, 0) for name in new)
        total = sum(change.copies.documents.get(name, 0) for name in new)
        if total:
            share = f"{with_copy / total:.1%}" if with_copy else "None"
            yield f"{share} of the new documents have a copy in an earlier snapshot."
    if change.drift is not None and change.drift.kept:
        rows = change.drift.kept
        clear = [one for one in rows if one.beyond_chance]
        most = f", most {clear[0].name} (distance {clear[0].distance:.3f})" if clear else ""
        count = f"{len(clear):,} of {len(rows):,} signals and labels"
        yield f"Between kept documents, {count} differ beyond chance{most}."


def _kept_share(change: CorpusChange, group: Sequence[str]) -> float | None:
    counts = {KEPT: 0, "all": 0}
    for one in change.decisions:
        if one.snapshot in group:
            counts["all"] += one.documents
            counts[KEPT] += one.documents * (one.reason == KEPT)
    return counts[KEPT] / counts["all"] if counts["all"] else None


def _join_names(names: Sequence[str]) -> str:
    rest = f" and {len(names) - NAMES:,} more" if len(names) > NAMES else ""
    return ", ".join(names[:NAMES]) + rest


def _facts(change: CorpusChange) -> Iterator[Fact]:
    before, after = (change.total(after=side) for side in (False, True))
    for label, was, now, form in (
        ("documents", before.documents, after.documents, ","),
        ("tokens", before.tokens, after.tokens, ","),
        ("MB of text", _mega(before.bytes), _mega(after.bytes), ",.1f"),
    ):
        if was is not None and now is not None:
            share = f" ({now / was - 1:+.1%})" if was else ""
            yield Fact(label, now, form, f"{now - was:+{form}}{share}")
    added, removed = _sum(change, ADDED, after=True), _sum(change, REMOVED, after=False)
    back = _sum(change, RETURNED, after=True).documents
    yield Fact(
        "added", added.documents, ",", f"{back:,} of them came back" if back else "documents"
    )
    forgotten = _sum(change, (FORGOTTEN,), after=False).documents
    detail = f"{forgotten:,} of them forgotten" if forgotten else "documents"
    yield Fact("removed", removed.documents, ",", detail)


def _mega(count: int | None) -> float | None:
    return None if count is None else count / 1e6


def _commands(
    subject: Subject, ref: str, against: str | None, after: RunCorpus
) -> Iterator[Command]:
    key = [*after.filters.values()][-1].key[:12]
    yield Command(f"ingot report {ref}", "every step of this run")
    if against is not None:
        yield Command(f"ingot report {ref} --against {against}", "both runs, step by step")
    yield Command("ingot why DOCUMENT", "why one document was added or removed")
    yield Command(f"ingot what-if {key}", "other thresholds, without running anything")
    if subject.run is not None and against is None:
        yield Command(
            f"ingot report {ref} --corpus --against {subject.run.recipe}@RUN",
            "against an earlier run: what was retired or forgotten",
        )
