"""What an ingested snapshot contributes to a report."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from stages.engine.inputs import Input
from stages.engine.page import (
    Artifact,
    Cell,
    Figure,
    TableFigure,
    make_bars,
    make_histogram,
    make_table,
)
from stages.engine.sampling import named_alike, sample_note, sampled, sampled_groups
from stages.engine.tally import (
    LABEL,
    NONE,
    LeastIds,
    LogHistogram,
    add_counts,
    bars,
    excerpt,
    hosts,
    languages,
    log_histogram,
    most_common,
    sentences,
)

FIELDS = {
    "record_type": "record type",
    "declared_type": "declared type",
    "sniffed_type": "type by first bytes",
    "encodings": "encodings undone",
    "truncated": "truncated",
    "charset": "character set",
    "charset_told_by": "source of the character set",
    "programming_language": "programming language",
    "extractor": "main text found by",
}
"""How a record was read."""

DECLARED = {
    "author": "author",
    "published": "date of publication",
    "canonical_url": "address of its own",
    "robots": "robots directives",
    "ai_opt_out": "marks against use for AI",
    "tdm_policy": "TDM policy",
    "licence": "licence",
}
"""What a page may declare."""

VALUED = ("robots", "ai_opt_out", "licence")
SEVERAL = frozenset({"robots", "ai_opt_out", "encodings"})
"""Columns of several words, each of which counts."""
COMMON_VALUES = 8
DOUBT_BINS = 20


@dataclass
class PageCounts:
    """What was counted of the pages."""

    rows: int = 0
    values: dict[str, Counter[str]] = field(default_factory=dict)
    declared: Counter[str] = field(default_factory=Counter)
    repeated: int = 0
    doubts: np.ndarray = field(default_factory=lambda: np.zeros(DOUBT_BINS, dtype=np.int64))

    def add(self, group: pa.Table) -> None:
        """Count a row group."""
        self.rows += len(group)
        for name in (*FIELDS, *VALUED):
            counted = self.values.setdefault(name, Counter())
            for row in pc.value_counts(group[name].drop_null()).to_pylist():
                for value in row["values"].split() if name in SEVERAL else (row["values"],):
                    counted[value[:LABEL]] += row["counts"]
        for name in DECLARED:
            self.declared[name] += len(group) - group[name].null_count
        self.repeated += pc.sum(pc.greater(group["url_repeats"], 0)).as_py() or 0
        doubts = group["doubt"].drop_null().to_numpy()
        self.doubts += np.histogram(doubts, DOUBT_BINS, (0, 1))[0]


def page_figures(pages: Input) -> list[Figure]:
    """How records were read, what pages declare, and the extractor's doubt."""
    columns = [*FIELDS, *DECLARED, "url_repeats", "doubt"]
    counted = PageCounts()
    for group in sampled_groups([pages], columns):
        counted.add(group)
    sample = sample_note(counted.rows, pages.rows)
    return [
        *_value_table("How records were read", {n: counted.values[n] for n in FIELDS}, sample),
        *_declared(counted, sample),
        *_value_table("What pages ask and allow", {n: counted.values[n] for n in VALUED}, sample),
        *_doubt(counted, sample),
    ]


def _value_table(title: str, values: dict[str, Counter[str]], note: str) -> list[Figure]:
    """The most common values of each field."""
    rows: list[tuple[Cell, ...]] = [
        (FIELDS.get(name) or DECLARED[name], *row)
        for name, counts in values.items()
        for row in most_common(counts, COMMON_VALUES)
    ]
    return [make_table(title, "field | value | documents:,", rows, note)] if rows else []


def _declared(counted: PageCounts, note: str) -> list[Figure]:
    """How many pages declare what; nothing where none does."""
    if not counted.declared.total() and not counted.repeated:
        return []
    rows: list[tuple[Cell, ...]] = [
        (label, counted.declared[name], counted.declared[name] / counted.rows)
        for name, label in DECLARED.items()
    ]
    rows.append(("the URL of an earlier one", counted.repeated, counted.repeated / counted.rows))
    return [make_table("What pages declare", "documents with | number:, | share:.1%", rows, note)]


def _doubt(counted: PageCounts, sample: str) -> list[Figure]:
    if not counted.doubts.any():
        return []
    edges = (bin / DOUBT_BINS for bin in range(DOUBT_BINS + 1))
    series = {"documents": counted.doubts.tolist()}
    note = sentences("Of the block classifier in its own result, from 0 to 1.", sample)
    return [make_histogram("Doubt in the main text", "doubt:,.4g", edges, series, note=note)]


VALUES = 8
SAMPLES_BY_REASON = 3
MONTHS = 24
_MONTH = re.compile(r"\d{4}-(0[1-9]|1[0-2])")


@dataclass
class DocumentCounts:
    """What was counted of the documents."""

    rows: int = 0
    characters: LogHistogram = field(default_factory=LogHistogram)
    languages: dict[str, int] = field(default_factory=dict)
    hosts: dict[str, int] = field(default_factory=dict)
    months: Counter[str] = field(default_factory=Counter)

    def add(self, group: pa.Table) -> None:
        """Count a row group."""
        self.rows += len(group)
        self.characters.add(pc.utf8_length(group["text"]).to_numpy())
        add_counts(self.languages, languages(group["language"]))
        add_counts(self.hosts, hosts(group["url"]).drop_null())
        for row in pc.value_counts(pc.utf8_slice_codeunits(group["date"], 0, 7)).to_pylist():
            if row["values"] is not None and _MONTH.fullmatch(row["values"]):
                self.months[row["values"]] += row["counts"]


def page(artifact: Artifact) -> list[Figure]:
    """Records in and out, what was rejected, and what the documents are."""
    columns = ["url", "date", "language", "text"]
    counted = DocumentCounts()
    for group in sampled_groups([artifact.output("documents")], columns):
        counted.add(group)
    return [
        _records(artifact),
        *_rejected(artifact),
        *_documents(counted, artifact.output("documents").rows),
        *page_figures(artifact.output("pages")),
        *_files(artifact),
    ]


def _records(artifact: Artifact) -> TableFigure:
    counts = artifact.manifest.counts
    ignored = {n.removeprefix("ignored_"): c for n, c in counts.items() if n.startswith("ignored_")}
    rows: list[tuple[Cell, ...]] = [
        ("files", counts["files"]),
        ("records read", counts["records_in"]),
        ("… became documents", counts["documents"]),
        ("… were rejected", counts["records_in"] - counts["documents"]),
        *((f"of type {name}, not counted", count) for name, count in sorted(ignored.items())),
        ("characters of text", counts["characters"]),
        ("characters repaired in decoding", counts["characters_repaired"]),
    ]
    return make_table("Records read and documents made", "what | number:,", rows)


def _rejected(artifact: Artifact) -> list[Figure]:
    conservation = artifact.manifest.conservation
    assert conservation is not None, "ingest always accounts for its records"
    share = 1 - conservation.out / conservation.records_in
    figures = bars(
        "Records rejected, by reason",
        conservation.dropped,
        value="records",
        label="reason",
        note=f"{share:.1%} of {conservation.records_in:,} records did not become documents.",
    )
    rejected = artifact.output("rejected")
    values: Counter[tuple[str, str]] = Counter()
    least, counted = LeastIds(SAMPLES_BY_REASON), 0
    names = ["doc_id", "reason", "detail", "url", "origin_file", "origin_offset"]
    for group in sampled_groups([rejected], names):
        counted += len(group)
        for reason in pc.unique(group["reason"]).to_pylist():
            rows = group.filter(pc.equal(group["reason"], reason))
            least.offer(reason, rows)
            if reason in ("http_status", "content_type"):
                for row in pc.value_counts(rows["detail"]).to_pylist():
                    values[reason, (row["values"] or NONE)[:LABEL]] += row["counts"]
    if values:
        note = sample_note(counted, rejected.rows, "records")
        figures.append(_rejected_values(values, note))
    if least.groups:
        figures.append(_rejected_samples(least))
    return figures


def _rejected_values(values: Counter[tuple[str, str]], note: str) -> TableFigure:
    """The most common values of reasons that have few."""
    labels = {"content_type": "declared type", "http_status": "HTTP status"}
    rows: list[tuple[Cell, ...]] = []
    for name in sorted({name for name, _ in values}):
        own = {value: count for (reason, value), count in values.items() if reason == name}
        rows += [(labels[name], *row) for row in most_common(own, VALUES)]
    title = "Records rejected, by status and type"
    return make_table(title, "field | value | records:,", rows, note)


def _rejected_samples(least: LeastIds) -> TableFigure:
    rows = tuple(
        (
            reason,
            excerpt(row["url"] or "", LABEL),
            excerpt(row["detail"] or "", LABEL),
            row["origin_file"],
            row["origin_offset"],
        )
        for reason, rows in sorted(least.groups.items())
        for row in rows
    )
    return make_table(
        "Samples of rejected records", "reason | address | value | file | at byte:,", rows
    )


def _documents(counted: DocumentCounts, total: int) -> list[Figure]:
    sample = sample_note(counted.rows, total)
    by = counted.months
    if len(by) > MONTHS:
        by = Counter()
        for month, count in counted.months.items():
            by[month[:4]] += count
    dates = dict(sorted(by.items()))
    figures = log_histogram(
        "Characters a document", "characters", {"documents": counted.characters}, note=sample
    )
    if counted.languages.keys() != {NONE}:
        figures += bars(
            "Documents by declared language",
            counted.languages,
            label="language",
            note=sentences("As the source declares it, without region.", sample),
        )
    if len(counted.hosts) > 1:
        figures += bars(
            "Documents by web domain",
            counted.hosts,
            label="domain",
            note=sentences(f"{len(counted.hosts):,} domains.", sample),
        )
    if len(dates) > 1:
        note = sentences("Of capture or publication, as declared.", sample)
        series = {"documents": dates.values()}
        figures.append(
            make_bars("Documents by date", dates, "documents:,", series, label="date", note=note)
        )
    return figures


def _files(artifact: Artifact) -> list[Figure]:
    """Documents and rejected records of each file, where files hold many records."""
    if 2 * artifact.manifest.counts["files"] > artifact.manifest.counts["records_in"]:
        return []
    output, others = artifact.output("documents"), artifact.output("rejected")
    part = sampled(output)
    documents, rejected = _by_file(part), _by_file(named_alike(others, part.paths()))
    records = {n: documents.get(n, 0) + rejected.get(n, 0) for n in documents | rejected}
    rows: list[tuple[Cell, ...]] = []
    for name, count in most_common(records):
        if name in records:
            rows.append((name, documents.get(name, 0), rejected.get(name, 0)))
        else:
            left = sum(documents.values()) - sum(int(row[1] or 0) for row in rows)
            rows.append((name, left, count - left))
    note = sample_note(part.rows, output.rows)
    return [make_table("Records by file", "file | documents:, | rejected:,", rows, note)]


def _by_file(output: Input) -> dict[str, int]:
    counts: dict[str, int] = {}
    for shard in output.shards():
        for group in shard.row_groups(["origin_file"]):
            add_counts(counts, group["origin_file"])
    return counts
