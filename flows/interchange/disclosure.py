"""A draft of what laws ask a provider to publish about training data, from the manifests.

Two forms in one page: the summary that Article 53(1)(d) of the European AI Act asks for, in the
order of the Commission's template (Communication C(2025) 8311, Annex), and the points of California
Civil Code section 3111 (AB 2013). Facts come from manifests and from the documents themselves; what
no manifest knows stands as `TO_FILL`. The headings are in our words: they were compared with
summaries of the two texts, not with the texts. A draft is no legal advice.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

import pyarrow.compute as pc

from artifacts_schema.errors import UsageError
from artifacts_schema.identity import short
from artifacts_schema.manifest import InputRef, Manifest
from artifacts_schema.store import Store
from flows.analysis.artifacts import load_ancestry, refs_by_artifact
from flows.analysis.cost import Cost
from flows.interchange.publication import TO_FILL
from stages.engine.inputs import Input
from stages.export.provenance import Provenance, treatment_lines
from stages.signals.urls import find_registered_domain

FORMS = ("ai-act", "ab-2013")
DOMAINS = 1_000
"""Registered domains that are named, at most; of them a tenth of all, or a twentieth for a small
provider, is what the template asks for."""
LANGUAGES = 20
RECORDS = ("documents", "conversations", "preferences")
SIZES = ((10**9, "less than 1 billion tokens"), (10**13, "1 billion to 10 trillion tokens"))
"""The template's ranges for text."""
WATTS = (("GPU", 700.0), ("CPU core", 10.0))
"""What an hour is counted at: the board power of an H100 SXM (NVIDIA's data sheet), and a core's
share of a server processor of some 300 W and 32 cores."""
OVERHEAD = 1.56
"""Of a data centre: the average of the Uptime Institute's survey of 2024."""
_HUB, _CRAWL = "huggingface.co", "data.commoncrawl.org"


@dataclass
class Source:
    """What training read of one snapshot."""

    snapshot: str
    kind: str
    """`public data set`, `crawl of the web`, `files of the provider`."""
    rows: int = 0
    text_bytes: int = 0
    dates: tuple[str, str] | None = None
    """First and last ISO 8601 day that documents declare."""
    languages: Counter[str] = field(default_factory=Counter)
    domains: Counter[str] = field(default_factory=Counter)
    """Registered domain → bytes of text."""

    def note_dates(self, first: str | None, last: str | None) -> None:
        """Widen the period by days that some documents declare."""
        days = [day[:10] for day in (first, last, *(self.dates or ())) if day]
        self.dates = (min(days), max(days)) if days else None


@dataclass(frozen=True)
class Disclosure:
    """What is known, by the questions of both forms."""

    name: str
    sources: list[Source]
    tokens: int
    """Of text that training read, each counted once; 0 where none is known."""
    treatments: list[str]
    opted_out: int
    """Pages above the training data that are marked against use for AI, before any was dropped."""
    opt_outs_looked_for: bool
    cost: Cost

    @property
    def energy_kwh(self) -> float:
        """An estimate: hours of GPUs and processor cores at `WATTS`, times `OVERHEAD`."""
        hours = (self.cost.gpu_seconds / 3600, self.cost.cpu_seconds / 3600)
        watts = sum(h * power for h, (_, power) in zip(hours, WATTS, strict=True))
        return watts / 1000 * OVERHEAD


def describe_training_data(store: Store, ref: str) -> Disclosure:
    """Of a model or a data set; reads the documents that its training read.

    UsageError if the artifact was made of no documents, conversations or preferences.
    """
    manifest, _ = store.resolve(ref)
    ancestry = load_ancestry(store, manifest)
    read = list(_records_read(manifest, ancestry))
    if not read:
        raise UsageError(
            f"{manifest.stage} {short(manifest.key)} was made of no documents",
            where=ref,
            hint="take a release, a checkpoint or a data set",
        )
    sources: dict[str, Source] = {}
    kinds = _snapshot_kinds(store, ancestry.values())
    for reference in read:
        _add_records(Input.load(store, reference, full_check=False), kinds, sources)
    looked, opted_out = _opt_outs(store, ancestry.values())
    provenance = Provenance(read[0].digest, [manifest, *reversed(ancestry.values())])
    lines = [
        line
        for reference in read
        for line in treatment_lines(provenance.described(manifest.name, reference))
    ]
    names = refs_by_artifact(store).get(manifest.name)
    cost = Cost()
    for one in ancestry.values():
        cost.add(one)
    return Disclosure(
        names[0] if names else f"{manifest.stage} {short(manifest.key)}",
        sorted(sources.values(), key=lambda source: -source.text_bytes),
        sum(int(one.counts.get("train_tokens", 0)) for one in ancestry.values()),
        list(dict.fromkeys(lines)),
        opted_out,
        looked,
        cost,
    )


def _records_read(manifest: Manifest, ancestry: Mapping[Any, Manifest]) -> Iterator[InputRef]:
    """The tables of records that were packed, tuned on, or exported; each content once."""
    seen: set[str] = set()
    for one in [*ancestry.values(), manifest]:
        makes = {output.kind for output in one.outputs.values()}
        if not makes & {"token_shards", "checkpoint", "dataset"}:
            continue
        for references in one.inputs.values():
            for reference in references:
                if reference.kind in RECORDS and reference.digest not in seen:
                    seen.add(reference.digest)
                    yield reference


def _snapshot_kinds(store: Store, manifests: Sequence[Manifest] | Any) -> dict[str, str]:
    """By snapshot: where its files came from, as far as their places say."""
    kinds: dict[str, str] = {}
    for manifest in manifests:
        for name, output in manifest.outputs.items():
            if output.kind != "snapshot":
                continue
            source = Input.from_manifest(store, manifest, name, full_check=False)
            snapshot = source.read_json("snapshot.json")["name"]
            hosts = {urlsplit(place).hostname for place in store.locations(output.digest).values()}
            if hosts & {_CRAWL}:
                kinds[snapshot] = "crawl of the web (Common Crawl, its crawler is CCBot)"
            elif hosts & {_HUB}:
                kinds[snapshot] = "public data set (Hugging Face Hub)"
            else:
                kinds[snapshot] = f"other: whether public, licensed or private is {TO_FILL}"
    return kinds


def _add_records(records: Input, kinds: Mapping[str, str], sources: dict[str, Source]) -> None:
    """Count the rows of a table set for their snapshots."""
    tables = records.paths("*.parquet")
    for path in tables:
        if records.kind != "documents":
            for group in records.row_groups(path, ["source"]):
                for value in group["source"].value_counts().to_pylist():
                    name = f"{records.kind} ({value['values']})"
                    _source(name, kinds, sources).rows += value["counts"]
            continue
        columns = ["snapshot", "url", "date", "language", "text"]
        for group in records.row_groups(path, columns):
            for name in pc.unique(group["snapshot"]).to_pylist():
                rows = group.filter(pc.equal(group["snapshot"], name))
                source, sizes = _source(name, kinds, sources), pc.binary_length(rows["text"])
                source.rows += len(rows)
                source.text_bytes += pc.sum(sizes).as_py() or 0
                bounds = pc.min_max(rows["date"]).as_py()
                source.note_dates(bounds["min"], bounds["max"])
                for value in rows["language"].value_counts().to_pylist():
                    source.languages[value["values"] or "not declared"] += value["counts"]
                for url, size in zip(rows["url"].to_pylist(), sizes.to_pylist(), strict=True):
                    host = _host(url)
                    if host is not None:
                        source.domains[find_registered_domain(host) or host] += size


def _host(url: str | None) -> str | None:
    try:
        parts = urlsplit(url or "")
        return parts.hostname if parts.scheme in ("http", "https") else None
    except ValueError:
        return None


def _source(snapshot: str, kinds: Mapping[str, str], sources: dict[str, Source]) -> Source:
    kind = kinds.get(snapshot, f"where it is from: {TO_FILL}")
    return sources.setdefault(snapshot, Source(snapshot, kind))


def _opt_outs(store: Store, manifests: Any) -> tuple[bool, int]:
    """Whether opt-outs of pages were read, and how many pages are marked against use for AI."""
    looked, count = False, 0
    for manifest in manifests:
        for name, output in manifest.outputs.items():
            if output.kind != "pages" or manifest.interim_of is not None:
                continue
            looked = True
            for shard in Input.from_manifest(store, manifest, name, full_check=False).shards():
                column = shard.read(["ai_opt_out"])["ai_opt_out"]
                count += len(column) - column.null_count
    return looked, count


# The page ----------------------------------------------------------------------------------------


def disclosure_page(facts: Disclosure, forms: Sequence[str] = FORMS) -> str:
    """Markdown; every gap is `TO_FILL`."""
    parts = [
        f"# Training data of {facts.name}",
        "A draft, filled from the records of the pipeline that made it. It is no legal advice, and "
        "its headings are in our words: check them against the texts that are named.",
    ]
    if "ai-act" in forms:
        parts += _ai_act(facts)
    if "ab-2013" in forms:
        parts += _ab_2013(facts)
    return "\n\n".join(parts) + "\n"


def _ai_act(facts: Disclosure) -> Iterator[str]:
    """The three sections of the template."""
    languages = sum((source.languages for source in facts.sources), Counter[str]())
    known = [(name, count) for name, count in languages.most_common() if name != "not declared"]
    latest = max((source.dates[1] for source in facts.sources if source.dates), default=TO_FILL)
    yield (
        "## European AI Act, Article 53(1)(d): summary of training content\n\n"
        "Form: Commission Communication C(2025) 8311 final, 5 December 2025, Annex."
    )
    yield "### 1. General information"
    yield "\n".join(
        [
            f"- Provider, contact, authorised representative: {TO_FILL}",
            f"- Model and versions: {facts.name}",
            f"- Placed on the Union market on: {TO_FILL}",
            "- Modalities: text",
            f"- Size of the text: {_size(facts.tokens)}",
            "- Languages, by documents: "
            + (", ".join(f"{name} {count:,}" for name, count in known[:LANGUAGES]) or TO_FILL),
            f"- Latest date that a document declares: {latest}; whether the model goes on learning "
            f"after that: {TO_FILL}",
        ]
    )
    yield "### 2. Data sources"
    yield _source_table(facts.sources)
    yield _domains(facts.sources)
    yield "\n".join(
        [
            f"- Data that is licensed or bought, and from whom: {TO_FILL}",
            f"- Data of users of the provider's services: {TO_FILL}",
            f"- Synthetic data, and the models that wrote it: {TO_FILL}",
        ]
    )
    yield "### 3. Processing"
    yield "\n".join(
        [
            f"- Reservations of rights: {_opt_out_line(facts)}",
            f"- Illegal content, and how it was found and removed: {TO_FILL}",
            *facts.treatments,
            _energy_line(facts),
        ]
    )


def _ab_2013(facts: Disclosure) -> Iterator[str]:
    """The points of section 3111, in their order."""
    periods = [f"{s.snapshot}: {s.dates[0]} to {s.dates[1]}" for s in facts.sources if s.dates]
    rows = sum(source.rows for source in facts.sources)
    personal = [one for one in facts.treatments if "ersonal data" in one]
    yield "## California Civil Code section 3111 (AB 2013)"
    yield "\n".join(
        [
            "1. Sources or owners of the data sets: "
            + ", ".join(source.snapshot for source in facts.sources)
            + f"; owners: {TO_FILL}",
            f"2. How they further the purpose of the system: {TO_FILL}",
            f"3. Number of data points: {rows:,} documents, conversations and preference pairs",
            "4. Types of data points: text without labels"
            + ("" if all(s.text_bytes for s in facts.sources) else ", conversations, preferences"),
            f"5. Copyright, trademark, patent, or public domain: {TO_FILL}",
            f"6. Bought or licensed: {TO_FILL}",
            "7. Personal information: "
            + (" ".join(one.removeprefix("- ") for one in personal) or TO_FILL),
            f"8. Aggregate consumer information: {TO_FILL}",
            "9. Cleaning and processing: filtered, copies removed; see the model's or data set's "
            "card for each step and its counts",
            "10. Period in which the data was collected, by the dates that documents declare: "
            + ("; ".join(periods) or TO_FILL)
            + f"; whether collection goes on: {TO_FILL}",
            f"11. First used in development on: {TO_FILL}",
            f"12. Synthetic data: {TO_FILL}",
        ]
    )


def _size(tokens: int) -> str:
    if not tokens:
        return TO_FILL
    name = next((name for most, name in SIZES if tokens < most), "more than 10 trillion tokens")
    return f"{name} ({tokens:,} different ones)"


def _source_table(sources: Sequence[Source]) -> str:
    lines = ["| snapshot | rows | bytes of text | dates | kind |", "|---|---|---|---|---|"]
    for source in sources:
        dates = " to ".join(source.dates) if source.dates else "none declared"
        size = f"{source.text_bytes:,}" if source.text_bytes else "not counted"
        name = source.snapshot.replace("|", "\\|")
        lines.append(f"| {name} | {source.rows:,} | {size} | {dates} | {source.kind} |")
    return "\n".join(lines)


def _domains(sources: Sequence[Source]) -> str:
    """The largest registered domains of all crawled text, a tenth of them, up to `DOMAINS`."""
    total = sum((source.domains for source in sources), Counter[str]())
    if not total:
        return "No document has an address on the web."
    most = min(DOMAINS, max(1, -(-len(total) // 10)))
    named = ", ".join(f"{name} {size:,}" for name, size in total.most_common(most))
    return f"Largest {most:,} of {len(total):,} registered domains, by bytes of text: {named}."


def _opt_out_line(facts: Disclosure) -> str:
    if not facts.opt_outs_looked_for:
        return f"no pages were read for opt-outs; {TO_FILL}"
    return (
        f"{facts.opted_out:,} pages of the sources are marked against use for AI; whether they "
        f"were left out, and what robots.txt said: {TO_FILL}"
    )


def _energy_line(facts: Disclosure) -> str:
    cost = facts.cost
    gpu, core = cost.gpu_seconds / 3600, cost.cpu_seconds / 3600
    return (
        f"- Energy, estimated: {facts.energy_kwh:,.3g} kWh ({gpu:,.3g} GPU hours at "
        f"{WATTS[0][1]:g} W, {core:,.3g} core hours at {WATTS[1][1]:g} W, times {OVERHEAD} for "
        "the data centre)"
    )
