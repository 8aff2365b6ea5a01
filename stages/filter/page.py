"""What a filter's decisions contribute to a report."""

from __future__ import annotations

from collections import Counter

from stages.engine.excerpts import Row, excerpt
from stages.engine.figures import (
    Axis,
    BarFigure,
    Bars,
    Cell,
    Column,
    Figure,
    MatrixFigure,
    Sample,
    SamplesFigure,
    TableFigure,
    TextFigure,
    number,
)
from stages.engine.page import Artifact
from stages.engine.tally import log_histogram, ranked, sentences
from stages.filter.assess import check_names
from stages.filter.checks import CONTAMINATION, LANGUAGE, NEAR_DUPLICATE
from stages.filter.config import FilterConfig
from stages.filter.figures import KEPT, Decisions, overlap, read_decisions, texts_of
from stages.filter.preset_page import language_figures, preset_figures
from stages.filter.presets import Rule

MATRIX = 20
LANGUAGES = 15
SAMPLES = 40
_SHARE = ".1%"


def page(artifact: Artifact) -> list[Figure]:
    """What stays and goes: by rule, by pairs of rules, by source, language and length; samples."""
    found = read_decisions(artifact)
    order = _order(artifact, found)
    return [
        _account(artifact),
        *_dropped(artifact, order),
        _rules(artifact, found, order),
        *language_figures(_config(artifact), [name for name, _ in ranked(_languages(found))]),
        *preset_figures(artifact),
        *_overlap(found, order),
        *_by_source(found),
        *_by_language(found, order),
        *log_histogram("Characters of kept and dropped documents", "characters", found.lengths),
        *_samples(artifact, found, order),
    ]


def _config(artifact: Artifact) -> FilterConfig:
    return FilterConfig.model_validate(artifact.manifest.config)


def _languages(found: Decisions) -> dict[str, int]:
    return {label: count for (label,), count in found.by("language").items()}


def summary(artifact: Artifact) -> list[Figure]:
    """Documents kept by source."""
    return _by_source(read_decisions(artifact))


def _order(artifact: Artifact, found: Decisions) -> list[str]:
    """Rules that some document fails, in the order of decision."""
    failures = found.failures()
    names = check_names(_config(artifact))
    return [name for name in names if failures[name]]


def _account(artifact: Artifact) -> TableFigure:
    counts = artifact.manifest.counts
    rows = tuple(
        (what, counts[all_], counts[part], counts[part] / max(counts[all_], 1))
        for what, all_, part in (
            ("documents", "documents", "kept"),
            ("conversations", "conversations", "conversations_kept"),
            ("preferences", "preferences", "preferences_kept"),
            ("characters", "characters", "characters_kept"),
        )
        if artifact.manifest.inputs.get(all_) or all_ == "characters"
    )
    columns = (Column("what"), number("read"), number("kept"), number("share kept", _SHARE))
    note = f"{counts['edits']:,} spans were replaced in {counts['edited']:,} kept rows."
    return TableFigure("Documents and characters kept", columns, rows, note)


def _dropped(artifact: Artifact, order: list[str]) -> list[Figure]:
    account = artifact.manifest.conservation
    assert account is not None, "a filter always accounts for its documents"
    reasons = [name for name in order if account.dropped.get(name)]
    if not reasons:
        return [TextFigure("Dropped documents", "None: every document passed every rule.")]
    dropped = sum(account.dropped.values())
    return [
        BarFigure(
            "Documents dropped, by first failing rule",
            tuple(reasons),
            Axis("documents", format=","),
            (Bars("documents", tuple(account.dropped[name] for name in reasons)),),
            label="rule",
            note=f"Rules in the order of decision. {dropped:,} of {account.records_in:,} documents "
            f"({dropped / account.records_in:.1%}) were dropped.",
        )
    ]


def _rules(artifact: Artifact, found: Decisions, order: list[str]) -> TableFigure:
    """Every rule that was asked, with its bound and what it drops, alone and in its place."""
    config = _config(artifact)
    rules = {rule.name: rule for rule in config.rule_order()}
    failures = found.failures()
    first = found.by("reason")
    documents = left = sum(first.values())
    rows: list[tuple[Cell, ...]] = []
    for name in check_names(config):
        if name not in rules and name not in order:
            continue
        left -= first[name,]
        share = failures[name] / max(documents, 1)
        counts = (failures[name], share, found.failing[name,], first[name,], left)
        rows.append((name, *counts, _passes(name, rules.get(name), config)))
    columns = (
        Column("rule"),
        number("fail it"),
        number("share", _SHARE),
        number("it alone"),
        number("it first"),
        number("left after it"),
        Column("passes"),
    )
    return TableFigure(
        "Rules, thresholds and what they drop (documents)",
        columns,
        tuple(rows),
        "In the order of decision. Without a rule, the documents that fail it alone would stay.",
    )


def _passes(name: str, rule: Rule | None, config: FilterConfig) -> str | None:
    """What a document must be so that it does not fail."""
    if rule is not None:
        return rule.passes
    return {
        LANGUAGE: f"language is one of {', '.join(config.languages)}",
        CONTAMINATION: f"fewer than {config.contamination.min_ngrams_hit:,} n-grams of benchmarks",
        NEAR_DUPLICATE: f"{config.duplicates.measure} to a kept one "
        f"< {config.duplicates.threshold}",
    }.get(name)


def _overlap(found: Decisions, order: list[str]) -> list[Figure]:
    failures = found.failures()
    most = {name for name, _ in ranked(failures)[: MATRIX if len(order) <= MATRIX else MATRIX - 1]}
    shown = [name for name in order if name in most]
    if len(shown) < 2:
        return []
    rest = f"{len(order) - len(shown):,} others"
    labels = shown if len(shown) == len(order) else [*shown, rest]
    counts = overlap(found.failing, shown, rest)
    values = tuple(tuple(counts.get((a, b), counts.get((b, a))) for b in labels) for a in labels)
    return [
        MatrixFigure(
            "Documents that fail two rules",
            tuple(labels),
            tuple(labels),
            values,
            note="The diagonal is all that fail the rule; an empty cell is a pair that no document "
            "fails together.",
        )
    ]


def _by_source(found: Decisions) -> list[Figure]:
    if not found.with_documents:
        return [
            TextFigure(
                "Sources, languages and dropped texts",
                "Not shown: the documents that were read have been collected since.",
            )
        ]
    characters: Counter[tuple[str, str, bool]] = Counter()
    for group, count in found.characters.items():
        characters[group.source, group.snapshot, group.reason == KEPT] += count
    kept = found.by("source", "snapshot", "reason")
    rows: list[tuple[Cell, ...]] = []
    totals = {"\n".join(key): count for key, count in found.by("source", "snapshot").items()}
    for label, count in ranked(totals)[:MATRIX]:
        source, snapshot = label.split("\n")
        stay = kept[source, snapshot, KEPT]
        size = characters[source, snapshot, True]
        share = size / max(size + characters[source, snapshot, False], 1)
        rows.append((source, snapshot, count, stay, stay / count, share))
    columns = (
        Column("source"),
        Column("snapshot"),
        number("documents"),
        number("kept"),
        number("share kept", _SHARE),
        number("of characters", _SHARE),
    )
    left = len(totals) - len(rows)
    note = f"{left:,} smaller ones are not shown." if left else ""
    return [TableFigure("Documents kept, by source and snapshot", columns, tuple(rows), note)]


def _by_language(found: Decisions, order: list[str]) -> list[Figure]:
    totals = _languages(found)
    if len(totals) < 2 or not found.with_documents:
        return []
    most = [label for label, _ in ranked(totals)[:LANGUAGES]]
    by_reason = found.by("language", "reason")
    kept = tuple(by_reason[label, KEPT] for label in most)
    dropped = tuple(totals[label] - stay for label, stay in zip(most, kept, strict=True))
    reasons = [name for name in order if any(by_reason[label, name] for label in most)]
    shares = tuple(
        tuple(by_reason[label, name] / totals[label] or None for name in [KEPT, *reasons[:MATRIX]])
        for label in most
    )
    told = "Named by the language model." if found.measured_language else "As the source declares."
    rest = [count for _, count in ranked(totals)[LANGUAGES:]]
    left = f"Not drawn: {len(rest):,} more, with {sum(rest):,} documents together." if rest else ""
    return [
        BarFigure(
            "Documents kept and dropped, by language",
            tuple(most),
            Axis("documents", format=","),
            (Bars("kept", kept), Bars("dropped", dropped)),
            stacked=True,
            label="language",
            note=sentences(told, left),
        ),
        MatrixFigure(
            "What becomes of a language's documents (share)",
            tuple(most),
            (KEPT, *reasons[:MATRIX]),
            shares,
            _SHARE,
            "Rows are languages, columns the first rule that a document fails.",
        ),
    ]


def _samples(artifact: Artifact, found: Decisions, order: list[str]) -> list[Figure]:
    groups = found.samples.groups
    verdicts = [name for name in (KEPT, *order) if name in groups][:SAMPLES]
    each = max(1, SAMPLES // max(len(verdicts), 1))
    rows = [row for name in verdicts for row in groups[name][:each]]
    texts = texts_of(artifact, rows)
    samples = tuple(_sample(row, texts[row["doc_id"]]) for row in rows if row["doc_id"] in texts)
    if not samples:
        return []
    note = "Of each verdict the documents with the least ids, with the filter's edits made."
    return [SamplesFigure("Documents by verdict", samples, note)]


def _sample(row: Row, document: Row) -> Sample:
    also = [name for name in row["failing"] if name != row["reason"]]
    facts: tuple[tuple[str, Cell], ...] = (
        ("value", row["value"]),
        ("threshold", row["threshold"]),
        ("copy of", row["partner"]),
        ("fails too", ", ".join(also) or None),
        ("source", document["source"]),
        ("characters", row["characters"]),
        ("spans replaced", row["edits"] or None),
        ("document", row["doc_id"]),
    )
    return Sample(
        row["reason"],
        document["url"] or row["doc_id"],
        excerpt(document["text"]),
        tuple((name, value) for name, value in facts if value is not None),
    )
