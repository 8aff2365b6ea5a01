"""The checks that each document fails on its own: rules, contamination, lists."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from stages.filter.checks import (
    CONTAMINATION,
    EMPTY_AFTER_EDITS,
    EXACT_DUPLICATE,
    EXCLUSION,
    LANGUAGE,
    NEAR_DUPLICATE,
    Check,
    Findings,
    collect_findings,
    contamination_check,
    language_check,
    mask_check,
    rule_checks,
)
from stages.filter.config import other_views, passage_views
from stages.filter.decide import COLUMNS, priority_keys
from stages.filter.edits import Spans, leaves_nothing, passage_holders, select_edits
from stages.filter.links import leave_links, sort_names
from stages.filter.ordered import write_ordered
from stages.filter.sidecars import AlignedShard, read_sidecar, read_signals

if TYPE_CHECKING:
    from stages.engine import Shard, ShardOutput, ShardResult
    from stages.filter.config import FilterConfig
    from stages.filter.exclusions import Exclusions


FINDINGS, PRIORITY, HOLDERS = "findings", "priority", "holders"
"""Scratch tables of a shard; the last as `links.NAMES`, of the documents that hold its passages."""


@dataclass(frozen=True, eq=False)
class Assessment:
    """The checks that the documents of a shard fail on their own, and what `what-if` reports."""

    sources: pa.ChunkedArray
    characters: pa.ChunkedArray
    """Null where no signal counts them."""
    findings: Findings
    priority: NDArray[np.float64]
    """[criterion, document] See `priority_keys`."""
    holders: pa.StringArray
    """The documents with the first occurrence of passages that might be cut out of these."""


def reason_names(config: FilterConfig) -> list[str]:
    """Every reason that the ledger may name, in the order of decision."""
    rules = [rule.name for rule in config.rule_order()]
    first = [LANGUAGE] if config.languages else []
    edits = [*first, *rules, EMPTY_AFTER_EDITS]
    return [*edits, CONTAMINATION, EXCLUSION, EXACT_DUPLICATE, NEAR_DUPLICATE]


def assess(item: AlignedShard, config: FilterConfig, exclusions: Exclusions) -> Assessment:
    """Check the documents of a shard for everything but copies."""
    criteria = config.duplicates.priority
    columns = {"doc_id", "source", *(COLUMNS[one.by] for one in criteria if one.by in COLUMNS)}
    documents = item.documents.read(sorted(columns))
    ids, sources = documents["doc_id"], documents["source"]
    nobody = pa.array([], pa.string())
    if not len(ids):
        # A table without rows may lack the columns that were measured elsewhere.
        passing, keys = collect_findings([], reason_names(config), 0), np.empty((len(criteria), 0))
        return Assessment(sources, _characters(None, 0), passing, keys, nobody)
    signals = _signals(item, ids, config)
    checks = rule_checks(config, sources, signals)
    if config.languages:
        own = sorted(config.rules_by_source)
        checks.insert(0, language_check(signals, sources, sorted(config.languages), own))
    if item.views and config.views:
        spans = read_spans(item, ids)
        checks.append(
            mask_check(EMPTY_AFTER_EDITS, _empty_after_edits(item.documents, spans, config))
        )
        nobody = passage_holders(spans, passage_views(config.views))
    if item.contamination is not None:
        checks.append(check_contamination(read_sidecar(item.contamination, ids), config))
    checks += check_exclusions(ids, exclusions)
    findings = collect_findings(checks, reason_names(config), len(ids))
    characters = _characters(signals, len(ids))
    keys = priority_keys(criteria, documents, signals, lambda: _lengths(characters, item.documents))
    return Assessment(sources, characters, findings, keys, nobody)


def assess_shard(
    item: AlignedShard, out: ShardOutput, *, config: FilterConfig, exclusions: Exclusions
) -> dict[str, Any]:
    """Leave the assessment as tables (`leave_assessment`), and links.

    Returns how many `names` these have, and how many `holders` of passages there are.
    """
    assessment = assess(item, config, exclusions)
    leave_assessment(assessment, out, config)
    names = leave_links(item, out, config.duplicates.measure)
    return {"names": names, "holders": len(assessment.holders)}


def leave_assessment(assessment: Assessment, out: ShardOutput, config: FilterConfig) -> None:
    """Leave an assessment: `FINDINGS`, and `PRIORITY` and `HOLDERS` where needed."""
    fails = assessment.findings
    failing = pa.ListArray.from_arrays(pa.array(fails.offsets), pa.array(fails.codes))
    columns = {"failing": failing, "value": fails.value, "threshold": fails.threshold}
    out.write_scratch(FINDINGS, pa.table(columns))
    if len(assessment.priority):
        keys = {str(place): key for place, key in enumerate(assessment.priority)}
        out.write_scratch(PRIORITY, pa.table(keys))
    if passage_views(config.views):
        with out.open_scratch(HOLDERS) as file:
            write_ordered(sort_names(assessment.holders)[0], file)


def read_findings(result: ShardResult) -> Findings:
    """The findings of a shard, as `assess_shard` left them."""
    table = result.read_scratch(FINDINGS)
    lists = table["failing"].combine_chunks()
    lengths = pc.list_value_length(lists).to_numpy()
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    codes = lists.flatten().to_numpy().astype(np.int32)
    return Findings(offsets, codes, table["value"].to_numpy(), table["threshold"].to_numpy())


def read_holders(result: ShardResult) -> pa.StringArray:
    """The holders of a shard's passages in the order of `HOLDERS`."""
    return result.read_scratch(HOLDERS, ["doc_id"])["doc_id"].combine_chunks()


def read_spans(item: AlignedShard, ids: pa.ChunkedArray) -> Spans:
    """The spans of all views of a shard."""
    return Spans.from_columns(*(read_sidecar(views, ids)["spans"] for views in item.views))


def _signals(item: AlignedShard, ids: pa.ChunkedArray, config: FilterConfig) -> pa.Table | None:
    """The columns that rules need, of those that were measured."""
    wanted = {"characters", LANGUAGE, *(rule.signal for rule in config.rule_order())}
    wanted |= {str(criterion.signal) for criterion in config.duplicates.priority}
    return read_signals(item.signals, ids, wanted)


def _characters(signals: pa.Table | None, documents: int) -> pa.ChunkedArray:
    if signals is None or "characters" not in signals.column_names:
        return pa.chunked_array([pa.nulls(documents, pa.int64())])
    return signals["characters"].cast(pa.int64())


def _lengths(measured: pa.ChunkedArray, documents: Shard) -> NDArray[np.int64]:
    """Characters of each text, counted here where no signal counts them."""
    if not measured.null_count:
        return measured.to_numpy()
    groups = documents.row_groups(["text"])
    return np.concatenate([pc.utf8_length(group["text"]).to_numpy() for group in groups])


def check_exclusions(ids: pa.ChunkedArray, exclusions: Exclusions) -> list[Check]:
    """The rows that some list names; no check without lists."""
    return [mask_check(EXCLUSION, exclusions.include(ids))] if exclusions else []


def check_contamination(table: pa.Table, config: FilterConfig) -> Check:
    """The rows of a contamination table that hold too much of a benchmark."""
    policy = config.contamination
    return contamination_check(
        table["ngrams"].to_numpy(),
        table["ngrams_hit"].to_numpy(),
        policy.min_ngrams_hit,
        policy.min_share,
    )


def _empty_after_edits(shard: Shard, spans: Spans, config: FilterConfig) -> NDArray[np.bool_]:
    """Documents that edits leave only white space of. Text is read only if spans are cut out.

    Passages that another document holds are no such edits: they never empty a document.
    """
    emptied = np.zeros(spans.documents, dtype=bool)
    edits = select_edits(spans, other_views(config.views), config.personal_data.kept())
    cut = edits.only_cut()
    if not len(cut):
        return emptied
    stop = 0
    for group in shard.row_groups(["text"]):
        start, stop = stop, stop + len(group)
        rows = cut[np.searchsorted(cut, start) : np.searchsorted(cut, stop)]
        texts = group["text"].take(pa.array(rows - start)).to_pylist()
        emptied[rows] = [
            leaves_nothing(text, edits.for_row(row))
            for row, text in zip(rows.tolist(), texts, strict=True)
        ]
    return emptied
