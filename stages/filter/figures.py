"""The ledger as figures need it: counted in one pass, with a few documents of each verdict."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import combinations_with_replacement
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from artifacts_schema.kinds import sidecar_folder
from stages.engine.inputs import Input
from stages.engine.page import Artifact
from stages.engine.sampling import named_alike, sample_note, sampled
from stages.engine.tally import (
    LeastIds,
    LogHistogram,
    Row,
    align_tables,
    available_inputs,
    inputs_in_order,
    languages,
    rows_by_id,
)
from stages.filter.config import FilterConfig
from stages.filter.edits import apply_views, spans_by_id
from stages.filter.sidecars import describes_chat, signal_sets
from stages.text.chat_rows import FOLDER, ID_COLUMN

KEPT = "kept"
COLLECTED = "(collected)"
SAMPLES_BY_VERDICT = 3
_LEDGER = ("doc_id", "reason", "failing", "value", "threshold", "partner", "edits", "characters")


class LedgerGroup(NamedTuple):
    """Documents that are counted together; `reason` is `kept`, or the first failing rule."""

    source: str
    snapshot: str
    language: str
    reason: str


@dataclass
class Decisions:
    """What a filter decided."""

    groups: Counter[LedgerGroup] = field(default_factory=Counter)
    characters: Counter[LedgerGroup] = field(default_factory=Counter)
    failing: Counter[tuple[str, ...]] = field(default_factory=Counter)
    """Documents by all the rules that they fail."""
    lengths: dict[str, LogHistogram] = field(
        default_factory=lambda: {KEPT: LogHistogram(), "dropped": LogHistogram()}
    )
    samples: LeastIds = field(default_factory=lambda: LeastIds(SAMPLES_BY_VERDICT))
    with_documents: bool = False
    """Whether any of the documents inputs is in the store still."""
    note: str = ""
    """On how many rows these figures were measured; empty if on all."""
    tables: tuple[str, ...] = ()
    """Of the ledger, as far as it was read."""
    measured_language: bool = False
    """Whether a language model named the languages; else the sources declared them."""

    def by(self, *fields: str) -> Counter[tuple[str, ...]]:
        """Documents by some fields of their group."""
        counts: Counter[tuple[str, ...]] = Counter()
        for group, number in self.groups.items():
            counts[tuple(getattr(group, name) for name in fields)] += number
        return counts

    def failures(self) -> Counter[str]:
        """Documents by each rule that they fail."""
        counts: Counter[str] = Counter()
        for names, number in self.failing.items():
            counts.update(dict.fromkeys(names, number))
        return counts

    def add(self, rows: pa.Table) -> None:
        """Count rows of the ledger that were joined with the columns of `LedgerGroup`."""
        sums = rows.group_by(list(LedgerGroup._fields)).aggregate(
            [([], "count_all"), ("characters", "sum")]
        )
        for row in sums.to_pylist():
            group = LedgerGroup(*(row[name] for name in LedgerGroup._fields))
            self.groups[group] += row["count_all"]
            self.characters[group] += row["characters_sum"]
        named = pc.binary_join(rows["failing"].cast(pa.list_(pa.string())), "\n")
        for row in pc.value_counts(named).to_pylist():
            self.failing[tuple(filter(None, row["values"].split("\n")))] += row["counts"]
        kept = pc.equal(rows["reason"], KEPT).to_numpy()
        characters = rows["characters"].to_numpy()
        self.lengths[KEPT].add(characters[kept])
        self.lengths["dropped"].add(characters[~kept])
        for reason in pc.unique(rows["reason"]).to_pylist():
            self.samples.offer(reason, rows.filter(pc.equal(rows["reason"], reason)))


def read_decisions(artifact: Artifact) -> Decisions:
    """Count the ledger, or a sample of it, joined with what is still available of its documents."""
    whole = artifact.output("ledger")
    ledger = sampled(whole)
    note = sample_note(ledger.rows, whole.rows, "rows of the ledger")
    decisions = Decisions(note=note, tables=tuple(ledger.paths("*.parquet")))
    signals = inputs_in_order(artifact, "signals")
    signals = [input_ for input_ in signals if input_ is None or not describes_chat(input_)]
    signals = [input_ if input_ and _names_language(input_) else None for input_ in signals]
    sets = signal_sets(signals, len(artifact.manifest.inputs.get("documents", ())))
    decisions.measured_language = any(input_ is not None for input_ in signals)
    for role in ("documents", *ID_COLUMN):
        inputs = inputs_in_order(artifact, role)
        decisions.with_documents |= any(input_ is not None for input_ in inputs)
        is_chat = role != "documents"  # Conversations have no snapshot and no language.
        columns = ["source"] if is_chat else ["source", "snapshot", "language"]
        for place, reference in enumerate(artifact.manifest.inputs.get(role, ())):
            folder = f"{FOLDER}/" * is_chat + f"{sidecar_folder(reference.digest)}/"
            measured_by = [] if is_chat else [one[place] for one in sets if one[place] is not None]
            named = next(iter(measured_by), None)
            for path in ledger.paths(f"{folder}*.parquet"):
                own = path.removeprefix(folder)
                streams = [
                    ledger.row_groups(path, list(_LEDGER)),
                    _groups(inputs[place], own, columns),
                    _groups(named, own, ["language"]),
                ]
                for rows, origins, measured in align_tables(*streams):
                    if is_chat:  # Their kind takes the place of the snapshot.
                        kind = pa.array([role] * len(rows), pa.string())
                        origins = origins.append_column("snapshot", kind)
                        origins = origins.append_column("language", measured["language"])
                    decisions.add(_join_columns(rows, origins, measured))
    return decisions


def _names_language(signals: Input) -> bool:
    described = signals.read_json("signals.json")["columns"]
    return any(signal["name"] == "language" for signal in described)


def _groups(input_: Input | None, path: str, columns: list[str]) -> Iterator[pa.Table]:
    """Row groups of one table; endless groups of nulls if the input is not available."""
    if input_ is not None:
        yield from input_.row_groups(path, columns)
        return
    while True:
        yield pa.table({name: pa.nulls(_NULLS, pa.string()) for name in columns})


_NULLS = 8_192


def _join_columns(rows: pa.Table, origins: pa.Table, measured: pa.Table) -> pa.Table:
    """The ledger's rows with `kept` as a reason, source, snapshot and language."""
    rows = rows.set_column(1, "reason", pc.fill_null(rows["reason"], KEPT))
    for name in ("source", "snapshot"):
        rows = rows.append_column(name, pc.fill_null(origins[name], COLLECTED))
    language = languages(pc.coalesce(measured["language"], origins["language"]))
    return rows.append_column("language", language)


def overlap(
    failing: Counter[tuple[str, ...]], rules: Sequence[str], rest: str
) -> dict[tuple[str, str], int]:
    """Documents that fail both of two rules, by the rules in the order of `rules`.

    Rules that are not named there count together as `rest`.
    """
    place = {rule: number for number, rule in enumerate(rules)}
    counts: Counter[tuple[str, str]] = Counter()
    for names, number in failing.items():
        known = sorted({place.get(name, len(rules)) for name in names})
        labels = [rules[at] if at < len(rules) else rest for at in known]
        counts.update(dict.fromkeys(combinations_with_replacement(labels, 2), number))
    return dict(counts)


def read_texts(artifact: Artifact, tables: Sequence[str], rows: Sequence[Row]) -> dict[str, Row]:
    """Text and address of rows in these tables of the ledger by doc_id, with the edits made.

    Kept documents are in the output, dropped ones in the inputs, if these are still available.
    """
    kept = [row["doc_id"] for row in rows if row["reason"] == KEPT]
    dropped = [row["doc_id"] for row in rows if row["reason"] != KEPT]
    columns = ["text", "url", "source"]
    texts = rows_by_id([named_alike(artifact.output("documents"), tables)], kept, columns)
    documents, views = (
        [named_alike(source, tables) for source in available_inputs(artifact, role)]
        for role in ("documents", "views")
    )
    read = rows_by_id(documents, dropped, columns)
    spans = spans_by_id(views, dropped)
    config = FilterConfig.model_validate(artifact.manifest.config)
    stays = config.personal_data.kept()
    for doc_id, row in read.items():
        text = apply_views(row["text"], spans.get(doc_id, ()), config.views, stays)
        texts[doc_id] = {**row, "text": text}
    return texts
