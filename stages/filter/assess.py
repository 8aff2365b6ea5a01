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
from stages.filter.edits import edits_of, leaves_nothing

if TYPE_CHECKING:
    from collections.abc import Sequence

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


@dataclass(frozen=True, eq=False)
class Assessed:
    """What the documents of a shard fail by themselves, and what `why` and `what-if` tell of them.

    `characters` is null where no signal counts them.
    """

    sources: pa.ChunkedArray
    characters: pa.ChunkedArray
    findings: Findings


def check_names(config: FilterConfig) -> list[str]:
    """Every reason that the ledger may name, in the order of decision."""
    rules = [rule.name for rule in config.rule_order()]
    first = [LANGUAGE] if config.languages else []
    edits = [*first, *rules, EMPTY_AFTER_EDITS]
    return [*edits, CONTAMINATION, EXCLUSION, EXACT_DUPLICATE, NEAR_DUPLICATE]


def line_up(
    documents: Sequence[Input],
    signals: Sequence[Input],
    views: Sequence[Input],
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
        folder = f"{beside(given.digest)}/"
        for shard in given.shards():
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


def assess(item: Beside, config: FilterConfig, exclusions: Sequence[Input]) -> Assessed:
    """Hold the documents of a shard against everything but each other."""
    documents = item.documents.read(["doc_id", "source"])
    ids, sources = documents["doc_id"], documents["source"]
    if not len(ids):
        # A table without rows may lack the columns that were measured elsewhere.
        return Assessed(sources, _characters(None, 0), findings([], check_names(config), 0))
    signals = _signals(item, ids, config)
    checks = rule_checks(config, sources, signals)
    if config.languages:
        own = sorted(config.rules_by_source)
        checks.insert(0, language_check(signals, sources, sorted(config.languages), own))
    if item.views is not None and config.views:
        views = _read(item.views, ids)
        checks.append(plain_check(EMPTY_AFTER_EDITS, _emptied(item.documents, views, config)))
    if item.contamination is not None:
        checks.append(_contamination(_read(item.contamination, ids), config))
    excluded = [given.read_table(path) for given in exclusions for path in given.paths()]
    if excluded:
        among = pa.concat_tables(excluded)["doc_id"].combine_chunks()
        checks.append(plain_check(EXCLUSION, pc.is_in(ids, value_set=among).to_numpy()))
    found = findings(checks, check_names(config), len(ids))
    return Assessed(sources, _characters(signals, len(ids)), found)


def assess_shard(
    item: Beside, out: ShardOutput, *, config: FilterConfig, exclusions: list[Input]
) -> None:
    """Leave the table `assessed`: what each document fails, as `Findings` has it."""
    found = assess(item, config, exclusions).findings
    failing = pa.ListArray.from_arrays(pa.array(found.offsets), pa.array(found.codes))
    columns = {"failing": failing, "value": found.value, "threshold": found.threshold}
    out.write_scratch("assessed", pa.table(columns))


def assessed(result: ShardResult) -> Findings:
    """The findings of a shard, as `assess_shard` left them."""
    table = result.read_scratch("assessed")
    lists = table["failing"].combine_chunks()
    lengths = pc.list_value_length(lists).to_numpy()
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    codes = lists.flatten().to_numpy().astype(np.int32)
    return Findings(offsets, codes, table["value"].to_numpy(), table["threshold"].to_numpy())


def _beside(shard: Shard, given: Input | None, folder: str) -> Shard | None:
    if given is None:
        return None
    path = f"{folder}{shard.path}"
    if not given.has(path):
        raise _not_beside(given.kind, given)
    return next(found for found in given.shards(path) if found.path == path)


def _signals(item: Beside, ids: pa.ChunkedArray, config: FilterConfig) -> pa.Table | None:
    """The columns that rules ask for, of those that were measured."""
    if item.signals is None:
        return None
    wanted = {"doc_id", "characters", LANGUAGE, *(rule.signal for rule in config.rule_order())}
    with item.signals.input.open(item.signals.path) as file:
        present = pq.read_schema(file).names
    return _read(item.signals, ids, [name for name in present if name in wanted])


def _read(shard: Shard, ids: pa.ChunkedArray, columns: list[str] | None = None) -> pa.Table:
    """The table of a shard, once its rows are known to be those of the documents."""
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


def _characters(signals: pa.Table | None, documents: int) -> pa.ChunkedArray:
    if signals is None or "characters" not in signals.column_names:
        return pa.chunked_array([pa.nulls(documents, pa.int64())])
    return signals["characters"].cast(pa.int64())


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
    edits = edits_of(views["spans"], config.views, config.personal_data.kept())
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
