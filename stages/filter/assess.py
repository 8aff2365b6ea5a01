"""What each document of a shard fails by itself: rules, contamination, exclusions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from stages.filter.bounds import rule_checks
from stages.filter.checks import (
    CONTAMINATION,
    EMPTY_AFTER_EDITS,
    EXACT_DUPLICATE,
    EXCLUSION,
    LANGUAGE,
    NEAR_DUPLICATE,
    Check,
    Findings,
    contamination_check,
    findings,
    language_check,
    plain_check,
)
from stages.filter.coverage import Beside, read_beside
from stages.filter.edits import Spans, edits_of, leaves_nothing
from stages.filter.passages import holders, other_views, passage_views
from stages.filter.priority import COLUMNS, priority_keys

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stages.engine import Input, Shard, ShardOutput, ShardResult
    from stages.filter.config import FilterConfig


@dataclass(frozen=True, eq=False)
class Assessed:
    """What the documents of a shard fail by themselves, and what `what-if` tells of them."""

    sources: pa.ChunkedArray
    characters: pa.ChunkedArray
    """Null where no signal counts them."""
    findings: Findings
    priority: NDArray[np.float64]
    """[criterion, document] See `priority_keys`."""
    holders: pa.StringArray
    """The documents that hold passages first which might be cut out of these."""


def check_names(config: FilterConfig) -> list[str]:
    """Every reason that the ledger may name, in the order of decision."""
    rules = [rule.name for rule in config.rule_order()]
    first = [LANGUAGE] if config.languages else []
    edits = [*first, *rules, EMPTY_AFTER_EDITS]
    return [*edits, CONTAMINATION, EXCLUSION, EXACT_DUPLICATE, NEAR_DUPLICATE]


def assess(item: Beside, config: FilterConfig, exclusions: Sequence[Input]) -> Assessed:
    """Hold the documents of a shard against everything but each other."""
    criteria = config.duplicates.priority
    columns = {"doc_id", "source", *(COLUMNS[one.by] for one in criteria if one.by in COLUMNS)}
    documents = item.documents.read(sorted(columns))
    ids, sources = documents["doc_id"], documents["source"]
    nobody = pa.array([], pa.string())
    if not len(ids):
        # A table without rows may lack the columns that were measured elsewhere.
        passing, keys = findings([], check_names(config), 0), np.empty((len(criteria), 0))
        return Assessed(sources, _characters(None, 0), passing, keys, nobody)
    signals = _signals(item, ids, config)
    checks = rule_checks(config, sources, signals)
    if config.languages:
        own = sorted(config.rules_by_source)
        checks.insert(0, language_check(signals, sources, sorted(config.languages), own))
    if item.views and config.views:
        spans = spans_of(item, ids)
        checks.append(plain_check(EMPTY_AFTER_EDITS, _emptied(item.documents, spans, config)))
        nobody = holders(spans, passage_views(config.views))
    if item.contamination is not None:
        checks.append(contamination_of(read_beside(item.contamination, ids), config))
    checks += exclusion_check(ids, exclusions)
    found = findings(checks, check_names(config), len(ids))
    characters = _characters(signals, len(ids))
    keys = priority_keys(criteria, documents, signals, lambda: _lengths(characters, item.documents))
    return Assessed(sources, characters, found, keys, nobody)


def assess_shard(
    item: Beside, out: ShardOutput, *, config: FilterConfig, exclusions: list[Input]
) -> None:
    """Leave what is assessed as tables: `findings`, `priority` and `holders`, where asked for."""
    found = assess(item, config, exclusions)
    fails = found.findings
    failing = pa.ListArray.from_arrays(pa.array(fails.offsets), pa.array(fails.codes))
    columns = {"failing": failing, "value": fails.value, "threshold": fails.threshold}
    out.write_scratch("findings", pa.table(columns))
    if len(found.priority):
        keys = {str(place): key for place, key in enumerate(found.priority)}
        out.write_scratch("priority", pa.table(keys))
    if passage_views(config.views):
        out.write_scratch("holders", pa.table({"doc_id": found.holders}))


def findings_of(result: ShardResult) -> Findings:
    """The findings of a shard, as `assess_shard` left them."""
    table = result.read_scratch("findings")
    lists = table["failing"].combine_chunks()
    lengths = pc.list_value_length(lists).to_numpy()
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    codes = lists.flatten().to_numpy().astype(np.int32)
    return Findings(offsets, codes, table["value"].to_numpy(), table["threshold"].to_numpy())


def priority_of(result: ShardResult) -> NDArray[np.float64]:
    """[criterion, document] The priority keys of a shard, as `assess_shard` left them."""
    return np.stack([column.to_numpy() for column in result.read_scratch("priority").columns])


def holders_of(result: ShardResult) -> pa.StringArray:
    """The holders of a shard's passages, as `assess_shard` left them."""
    return result.read_scratch("holders")["doc_id"].combine_chunks()


def spans_of(item: Beside, ids: pa.ChunkedArray) -> Spans:
    """The spans of all views of a shard."""
    return Spans.of(*(read_beside(views, ids)["spans"] for views in item.views))


def _signals(item: Beside, ids: pa.ChunkedArray, config: FilterConfig) -> pa.Table | None:
    """The columns that rules ask for, of those that were measured."""
    if item.signals is None:
        return None
    wanted = {"doc_id", "characters", LANGUAGE, *(rule.signal for rule in config.rule_order())}
    wanted |= {str(criterion.signal) for criterion in config.duplicates.priority}
    with item.signals.input.open(item.signals.path) as file:
        present = pq.read_schema(file).names
    return read_beside(item.signals, ids, [name for name in present if name in wanted])


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


def exclusion_check(ids: pa.ChunkedArray, exclusions: Sequence[Input]) -> list[Check]:
    """The rows that some list names; nothing where no list is given."""
    excluded = [given.read_table(path) for given in exclusions for path in given.paths()]
    if not excluded:
        return []
    among = pa.concat_tables(excluded)["doc_id"].combine_chunks()
    return [plain_check(EXCLUSION, pc.is_in(ids, value_set=among).to_numpy())]


def contamination_of(table: pa.Table, config: FilterConfig) -> Check:
    """The rows of a contamination table that hold too much of a benchmark."""
    policy = config.contamination
    return contamination_check(
        table["ngrams"].to_numpy(),
        table["ngrams_hit"].to_numpy(),
        policy.min_ngrams_hit,
        policy.min_share,
    )


def _emptied(shard: Shard, spans: Spans, config: FilterConfig) -> NDArray[np.bool_]:
    """Documents of which the edits leave white space. Text is read only where spans are cut out.

    Passages that another document holds are no such edits: they never empty a document.
    """
    emptied = np.zeros(spans.documents, dtype=bool)
    edits = edits_of(spans, other_views(config.views), config.personal_data.kept())
    cut = edits.only_cut()
    if not len(cut):
        return emptied
    stop = 0
    for group in shard.row_groups(["text"]):
        start, stop = stop, stop + len(group)
        rows = cut[np.searchsorted(cut, start) : np.searchsorted(cut, stop)]
        texts = group["text"].take(pa.array(rows - start)).to_pylist()
        emptied[rows] = [
            leaves_nothing(text, edits.of(row))
            for row, text in zip(rows.tolist(), texts, strict=True)
        ]
    return emptied
