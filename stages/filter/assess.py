"""What each document of a shard fails by itself: rules, contamination, exclusions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from artifacts_schema.errors import InputError
from artifacts_schema.identity import short
from artifacts_schema.kinds import beside
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
    rule_checks,
)
from stages.filter.edits import apply, edits_by_row

if TYPE_CHECKING:
    from stages.engine import Input, Shard, ShardOutput, ShardResult
    from stages.filter.config import FilterConfig


@dataclass(frozen=True)
class Beside:
    """A shard of documents and the shards that describe it; `id` sorts in the order of decision."""

    id: str
    documents: Shard
    signals: Shard | None
    views: Shard | None
    contamination: Shard | None


def check_names(config: FilterConfig) -> list[str]:
    """Every reason that the ledger may name, in the order of decision."""
    rules = [rule.name for rule in config.rule_order()]
    first = [LANGUAGE] if config.languages else []
    edits = [*first, *rules, EMPTY_AFTER_EDITS]
    return [*edits, CONTAMINATION, EXCLUSION, EXACT_DUPLICATE, NEAR_DUPLICATE]


def line_up(
    documents: list[Input],
    signals: list[Input],
    views: list[Input],
    contamination: Input | None,
) -> list[Beside]:
    """The shards of all documents in priority order, each with what lies beside it.

    InputError unless signals and views are given for every documents input, in the same order, and
    contamination covers them.
    """
    for role, count in (("signals", len(signals)), ("views", len(views))):
        if count not in (0, len(documents)):
            raise InputError(
                f"{count} inputs of role '{role}' for {len(documents)} of role 'documents'",
                where="filter",
                hint=f"give none, or the {role} of each documents input, in the same order",
            )
    width = max(2, len(str(len(documents) - 1)))
    lined_up = []
    for index, given in enumerate(documents):
        for shard in given.shards():
            folder = f"{beside(given.digest)}/"
            lined_up.append(
                Beside(
                    id=f"{index:0{width}d}-{shard.id}",
                    documents=shard,
                    signals=_beside(shard, signals[index] if signals else None, ""),
                    views=_beside(shard, views[index] if views else None, ""),
                    contamination=_beside(shard, contamination, folder),
                )
            )
    return lined_up


def assess_shard(
    item: Beside, out: ShardOutput, *, config: FilterConfig, exclusions: list[Input]
) -> None:
    """Leave the table `assessed`: doc_id and, as `Findings` has it, what each document fails."""
    documents = item.documents.read(["doc_id", "source"])
    ids = documents["doc_id"]
    checks = _rules(item, documents, config)
    views = _read(item.views, ids)
    if views is not None:
        checks.append(plain_check(EMPTY_AFTER_EDITS, _emptied(item.documents, views, config)))
    contamination = _read(item.contamination, ids)
    if contamination is not None:
        checks.append(_contamination(contamination, config))
    excluded = [given.read_table(path) for given in exclusions for path in given.paths()]
    if excluded:
        among = pa.concat_tables(excluded)["doc_id"].combine_chunks()
        checks.append(plain_check(EXCLUSION, pc.is_in(ids, value_set=among).to_numpy()))
    found = findings(checks, check_names(config), len(ids))
    failing = pa.ListArray.from_arrays(pa.array(found.offsets), pa.array(found.codes))
    columns = {"doc_id": ids, "failing": failing, "value": found.value}
    out.write_scratch("assessed", pa.table({**columns, "threshold": found.threshold}))


def assessed(result: ShardResult) -> tuple[pa.StringArray, Findings]:
    """The doc_ids of a shard and its findings, as `assess_shard` left them."""
    table = result.read_scratch("assessed")
    lists = table["failing"].combine_chunks()
    lengths = pc.list_value_length(lists).to_numpy()
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    codes = lists.flatten().to_numpy().astype(np.int32)
    value, threshold = table["value"].to_numpy(), table["threshold"].to_numpy()
    return table["doc_id"].combine_chunks(), Findings(offsets, codes, value, threshold)


def gather(results: list[ShardResult]) -> tuple[pa.StringArray, NDArray[np.bool_]]:
    """All doc_ids in priority order, and which of them fail nothing so far.

    InputError if two documents bear one id.
    """
    ids: list[pa.Array] = [pa.array([], pa.string())]
    passes = [np.empty(0, dtype=bool)]
    for result in results:
        names, found = assessed(result)
        ids.append(names)
        passes.append(np.diff(found.offsets) == 0)
    doc_ids = pa.concat_arrays(ids)
    if pc.count_distinct(doc_ids).as_py() < len(doc_ids):
        raise InputError(
            "two documents bear the same doc_id",
            where="filter",
            hint="the same documents, or overlapping snapshots under one name, came in twice",
        )
    return doc_ids, np.concatenate(passes)


def _beside(shard: Shard, given: Input | None, folder: str) -> Shard | None:
    if given is None:
        return None
    path = f"{folder}{shard.path}"
    if not given.has(path):
        raise _not_beside(given.kind, given)
    return next(found for found in given.shards(path) if found.path == path)


def _rules(item: Beside, documents: pa.Table, config: FilterConfig) -> list[Check]:
    rules = config.rule_order()
    signals = None
    if item.signals is not None:
        wanted = {"doc_id", LANGUAGE, *(rule.signal for rule in rules)}
        with item.signals.input.open(item.signals.path) as file:
            present = [name for name in pq.read_schema(file).names if name in wanted]
        signals = _read(item.signals, documents["doc_id"], present)
    sources = documents["source"]
    rules_of_source = {
        source: {rule.name for rule in config.rules_for(source)}
        for source in pc.unique(sources).to_pylist()
    }
    checks = rule_checks(signals, sources, rules, rules_of_source)
    if config.languages:
        own = sorted(config.rules_by_source)
        checks.insert(0, language_check(signals, sources, sorted(config.languages), own))
    return checks


def _read(
    shard: Shard | None, ids: pa.ChunkedArray, columns: list[str] | None = None
) -> pa.Table | None:
    """The table of a shard, once its rows are known to be those of the documents."""
    if shard is None:
        return None
    table = shard.read(columns)
    if not table["doc_id"].equals(ids):
        raise _not_beside(shard.input.kind, shard.input)
    return table


def _not_beside(kind: str, given: Input) -> InputError:
    return InputError(
        f"{given.stage} {short(given.key)} describes other documents than those it is given with",
        where="filter",
        hint=f"give the {kind} that were made of these documents, in the order of the documents",
    )


def _contamination(table: pa.Table, config: FilterConfig) -> Check:
    policy = config.contamination
    return contamination_check(
        table["ngrams"].to_numpy(),
        table["ngrams_hit"].to_numpy(),
        policy.min_ngrams_hit,
        policy.min_share,
    )


def _emptied(shard: Shard, views: pa.Table, config: FilterConfig) -> NDArray[np.bool_]:
    """Documents of which the edits leave white space. Text is read only where spans are cut out."""
    emptied = np.zeros(len(views), dtype=bool)
    cut = {
        row: edits
        for row, edits in edits_by_row(views["spans"], config.redact).items()
        if not any(edit.replacement.strip() for edit in edits)
    }
    if not cut:
        return emptied
    row = 0
    for group in shard.row_groups(["text"]):
        for place in range(len(group)):
            if row in cut:
                emptied[row] = not apply(group["text"][place].as_py(), cut[row]).strip()
            row += 1
    return emptied
