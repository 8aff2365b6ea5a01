"""What a filter's decisions contribute to a report: its rules, its presets and its verdicts."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

from stages.engine.page import (
    Artifact,
    Cell,
    Column,
    Figure,
    MatrixFigure,
    Sample,
    SamplesFigure,
    TableFigure,
    TextFigure,
    make_bars,
    make_table,
    number,
)
from stages.engine.sampling import sample_note, sampled
from stages.engine.tally import Row, available_inputs, excerpt, log_histogram, ranked, sentences
from stages.filter.assess import reason_names
from stages.filter.checks import CONTAMINATION, LANGUAGE, NEAR_DUPLICATE
from stages.filter.config import FilterConfig
from stages.filter.figures import KEPT, Decisions, overlap, read_decisions, read_texts
from stages.filter.presets import PRESETS
from stages.filter.rules import Rule
from stages.filter.sidecars import describes_chat
from stages.filter.verdicts import Comparison, FilterInputs, compare_presets

BOUND_LANGUAGES = 8
PRESET_MATRIX = 20


def preset_figures(artifact: Artifact) -> list[Figure]:
    """What each preset alone would keep of these documents, and where two disagree.

    Nothing where no signals were given, or where some of them were collected since.
    """
    signals = available_inputs(artifact, "signals")
    references = artifact.manifest.inputs.get("signals", ())
    if not signals or len(signals) < len(references):
        return []
    signals = [input_ for input_ in signals if not describes_chat(input_)]
    parts = [sampled(source) for source in signals]
    comparison = compare_presets(FilterInputs([], parts, [], [], [], None, []), list(PRESETS))
    if not comparison.documents or not comparison.presets:
        return []
    read, total = (sum(source.rows for source in some) for some in (parts, signals))
    note = sample_note(read, total)
    return [_preset_kept(comparison, note), *_disagreement(comparison, note)]


def language_figures(config: FilterConfig, spoken: Sequence[str]) -> list[Figure]:
    """The bounds that differ by language; `spoken` are the corpus' languages, the largest first."""
    if not config.asks_language:
        return []
    named = {*config.thresholds_by_language, *config.rules_by_language}
    named |= {label for rule in config.rule_order() for label in rule.languages}
    varying = {label for rule in config.rule_order() for label in rule.by_language}
    labels = [label for label in spoken if label in named | varying]
    labels = [*labels, *sorted(named - set(labels))][:BOUND_LANGUAGES]
    rules = {label: {r.name: r for r in config.rules_for("", label)} for label in labels}
    rows: list[tuple[Cell, ...]] = []
    for rule in config.rule_order():
        own = tuple(_bound(rules[label].get(rule.name)) for label in labels)
        if len({_bound(rule), *own}) > 1:
            rows.append((rule.name, rule.signal, _bound(rule), *own))
    if not rows:
        return []
    columns = (Column("rule"), Column("signal"), number("others"), *map(number, labels))
    note = "An empty cell: documents of the language are not asked."
    return [TableFigure("Thresholds by language", columns, tuple(rows), note)]


def _bound(rule: Rule | None) -> float | None:
    return None if rule is None or math.isnan(rule.threshold) else rule.threshold


def _preset_kept(comparison: Comparison, sample: str) -> TableFigure:
    rows = tuple(
        (name, int(kept), kept / comparison.documents)
        for name, kept in zip(comparison.presets, comparison.kept.tolist(), strict=True)
    )
    missing = ", ".join(comparison.missing)
    left = f"Not asked, as their signals were not measured: {missing}." if missing else ""
    note = sentences("Each preset alone on every document, whatever its source.", left, sample)
    return make_table(
        "What each preset would keep (documents)", "preset | kept:, | share:.1%", rows, note
    )


def _disagreement(comparison: Comparison, sample: str) -> list[Figure]:
    order = sorted(range(len(comparison.presets)), key=lambda place: -comparison.dropped[place])
    most = {place for place in order[:PRESET_MATRIX] if comparison.dropped[place]}
    chosen = [place for place in range(len(comparison.presets)) if place in most]
    if len(chosen) < 2:
        return []
    labels = tuple(comparison.presets[place] for place in chosen)
    only = comparison.only
    values = tuple(tuple(int(only[a, b]) or None for b in chosen) for a in chosen)
    return [
        MatrixFigure(
            "Documents that one preset drops and another keeps",
            labels,
            labels,
            values,
            note=sentences(
                "The row's preset drops them, the column's keeps them; empty: none. Presets that "
                "drop nothing are left out.",
                sample,
            ),
        )
    ]


MATRIX = 20
LANGUAGES = 15
SAMPLES = 40
_SHARE = ".1%"


def page(artifact: Artifact) -> list[Figure]:
    """What stays and goes: by rule, by pairs of rules, by source, language and length; samples."""
    decisions = read_decisions(artifact)
    order = _order(artifact, decisions)
    return [
        _account(artifact),
        *_dropped(artifact, order),
        _rules(artifact, decisions, order),
        *language_figures(_config(artifact), [name for name, _ in ranked(_languages(decisions))]),
        *preset_figures(artifact),
        *_overlap(decisions, order),
        *_by_source(decisions),
        *_by_language(decisions, order),
        *log_histogram(
            "Characters of kept and dropped documents",
            "characters",
            decisions.lengths,
            note=decisions.note,
        ),
        *_samples(artifact, decisions, order),
    ]


def _config(artifact: Artifact) -> FilterConfig:
    return FilterConfig.model_validate(artifact.manifest.config)


def _languages(decisions: Decisions) -> dict[str, int]:
    return {label: count for (label,), count in decisions.by("language").items()}


def summary(artifact: Artifact) -> list[Figure]:
    """Documents kept by source."""
    return _by_source(read_decisions(artifact))


def _order(artifact: Artifact, decisions: Decisions) -> list[str]:
    """Rules that some document fails, in the order of decision."""
    failures, account = decisions.failures(), artifact.manifest.conservation
    dropped = account.dropped if account is not None else {}
    names = reason_names(_config(artifact))
    return [name for name in names if failures[name] or dropped.get(name)]


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
    note = f"{counts['edits']:,} spans were replaced in {counts['edited']:,} kept rows."
    return make_table(
        "Documents and characters kept", f"what | read:, | kept:, | share kept:{_SHARE}", rows, note
    )


def _dropped(artifact: Artifact, order: list[str]) -> list[Figure]:
    account = artifact.manifest.conservation
    assert account is not None, "a filter always accounts for its documents"
    reasons = [name for name in order if account.dropped.get(name)]
    if not reasons:
        return [TextFigure("Dropped documents", "None: every document passed every rule.")]
    dropped = sum(account.dropped.values())
    return [
        make_bars(
            "Documents dropped, by first failing rule",
            reasons,
            "documents:,",
            {"documents": map(account.dropped.get, reasons)},
            label="rule",
            note=f"Rules in the order of decision. {dropped:,} of {account.records_in:,} documents "
            f"({dropped / account.records_in:.1%}) were dropped.",
        )
    ]


def _rules(artifact: Artifact, decisions: Decisions, order: list[str]) -> TableFigure:
    """Every rule with its bound and what it drops, alone and in its place."""
    config = _config(artifact)
    rules = {rule.name: rule for rule in config.rule_order()}
    failures = decisions.failures()
    first = decisions.by("reason")
    documents = left = sum(first.values())
    rows: list[tuple[Cell, ...]] = []
    for name in reason_names(config):
        if name not in rules and name not in order:
            continue
        left -= first[name,]
        share = failures[name] / max(documents, 1)
        counts = (failures[name], share, decisions.failing[name,], first[name,], left)
        rows.append((name, *counts, _passes(name, rules.get(name), config)))
    return make_table(
        "Rules, thresholds and what they drop (documents)",
        f"rule | fail it:, | share:{_SHARE} | it alone:, | it first:, | left after it:, | passes",
        rows,
        sentences(
            "In the order of decision. Without a rule, the documents that fail it alone would "
            "stay.",
            decisions.note,
        ),
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


def _overlap(decisions: Decisions, order: list[str]) -> list[Figure]:
    failures = decisions.failures()
    most = {name for name, _ in ranked(failures)[: MATRIX if len(order) <= MATRIX else MATRIX - 1]}
    chosen = [name for name in order if name in most]
    if len(chosen) < 2:
        return []
    rest = f"{len(order) - len(chosen):,} others"
    labels = chosen if len(chosen) == len(order) else [*chosen, rest]
    counts = overlap(decisions.failing, chosen, rest)
    values = tuple(tuple(counts.get((a, b), counts.get((b, a))) for b in labels) for a in labels)
    return [
        MatrixFigure(
            "Documents that fail two rules",
            tuple(labels),
            tuple(labels),
            values,
            note=sentences(
                "The diagonal is all that fail the rule; an empty cell is a pair that no document "
                "fails together.",
                decisions.note,
            ),
        )
    ]


def _by_source(decisions: Decisions) -> list[Figure]:
    if not decisions.with_documents:
        return [
            TextFigure(
                "Sources, languages and dropped texts",
                "Not shown: the documents that were read have been collected since.",
            )
        ]
    characters: Counter[tuple[str, str, bool]] = Counter()
    for group, count in decisions.characters.items():
        characters[group.source, group.snapshot, group.reason == KEPT] += count
    kept = decisions.by("source", "snapshot", "reason")
    rows: list[tuple[Cell, ...]] = []
    totals = {"\n".join(key): count for key, count in decisions.by("source", "snapshot").items()}
    for label, count in ranked(totals)[:MATRIX]:
        source, snapshot = label.split("\n")
        stay = kept[source, snapshot, KEPT]
        size = characters[source, snapshot, True]
        share = size / max(size + characters[source, snapshot, False], 1)
        rows.append((source, snapshot, count, stay, stay / count, share))
    left = len(totals) - len(rows)
    note = sentences(f"{left:,} smaller ones are not shown." if left else "", decisions.note)
    return [
        make_table(
            "Documents kept, by source and snapshot",
            f"source | snapshot | documents:, | kept:, | share kept:{_SHARE}"
            f" | of characters:{_SHARE}",
            rows,
            note,
        )
    ]


def _by_language(decisions: Decisions, order: list[str]) -> list[Figure]:
    totals = _languages(decisions)
    if len(totals) < 2 or not decisions.with_documents:
        return []
    most = [label for label, _ in ranked(totals)[:LANGUAGES]]
    by_reason = decisions.by("language", "reason")
    kept = tuple(by_reason[label, KEPT] for label in most)
    dropped = tuple(totals[label] - stay for label, stay in zip(most, kept, strict=True))
    reasons = [name for name in order if any(by_reason[label, name] for label in most)]
    shares = tuple(
        tuple(by_reason[label, name] / totals[label] or None for name in [KEPT, *reasons[:MATRIX]])
        for label in most
    )
    origin = (
        "Named by the language model." if decisions.measured_language else "As the source declares."
    )
    rest = [count for _, count in ranked(totals)[LANGUAGES:]]
    left = f"Not drawn: {len(rest):,} more, with {sum(rest):,} documents together." if rest else ""
    return [
        make_bars(
            "Documents kept and dropped, by language",
            most,
            "documents:,",
            {"kept": kept, "dropped": dropped},
            stacked=True,
            label="language",
            note=sentences(origin, left, decisions.note),
        ),
        MatrixFigure(
            "What becomes of a language's documents (share)",
            tuple(most),
            (KEPT, *reasons[:MATRIX]),
            shares,
            _SHARE,
            sentences(
                "Rows are languages, columns the first rule that a document fails.", decisions.note
            ),
        ),
    ]


def _samples(artifact: Artifact, decisions: Decisions, order: list[str]) -> list[Figure]:
    groups = decisions.samples.groups
    verdicts = [name for name in (KEPT, *order) if name in groups][:SAMPLES]
    each = max(1, SAMPLES // max(len(verdicts), 1))
    rows = [row for name in verdicts for row in groups[name][:each]]
    texts = read_texts(artifact, decisions.tables, rows)
    samples = tuple(_sample(row, texts[row["doc_id"]]) for row in rows if row["doc_id"] in texts)
    if not samples:
        return []
    note = sentences(
        "Of each verdict the documents with the least ids, with the filter's edits made.",
        decisions.note,
    )
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
