"""Decisions about conversations and preference pairs, each as a whole, and the kept rows redacted.

What applies to them: the config's policies for personal data, contamination, exclusions and
languages, and the rules of sources that `rules_by_source` names; not `rules`, made for prose.
Copies are not searched for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from artifacts_schema.errors import InputError
from artifacts_schema.kinds import KINDS
from stages.filter.assess import check_contamination, check_exclusions, reason_names
from stages.filter.checks import Findings, collect_findings, language_check, rule_checks
from stages.filter.config import FilterConfig
from stages.filter.document_ids import all_differ
from stages.filter.edits import Edits, Spans, apply_edits, select_edits
from stages.filter.ledger import count_ledger, ledger_table
from stages.filter.sidecars import Sidecars, input_label, read_sidecar, read_signals
from stages.text.chat_rows import (
    ID_COLUMN,
    ChatShard,
    Row,
    list_chat_shards,
    list_texts,
    replace_text,
)

if TYPE_CHECKING:
    from stages.engine import Input, Shard, ShardOutput
    from stages.filter.exclusions import Exclusions

_ROWS_AT_ONCE = 1_000
"""In a row group; one that holds 2 GiB of text or more cannot be read."""


@dataclass(frozen=True)
class AlignedChatShard(Sidecars):
    """A shard of conversations or preferences and the tables that describe it."""

    chat: ChatShard


def align_chat_tables(
    chat: Mapping[str, Sequence[Input]],
    signals: Sequence[Input],
    views: Sequence[Input],
    contamination: Input | None,
    config: FilterConfig,
) -> list[AlignedChatShard]:
    """The shards of all inputs by role, each with its sidecar tables.

    InputError if two signals describe one shard, if contamination does not cover it, or if nothing
    marks what the config would redact.
    """
    redacts = any(config.personal_data.redacted().values())
    overlap = [] if contamination is None else [contamination]
    return [
        AlignedChatShard(
            id=one.id,
            chat=one,
            signals=tuple(_matching_shards(signals, one, most=1)),
            views=tuple(_matching_shards(views, one, least=int(redacts))),
            contamination=next(iter(_matching_shards(overlap, one, least=len(overlap))), None),
        )
        for one in list_chat_shards(chat, where="filter")
    ]


def _matching_shards(
    side: Sequence[Input], one: ChatShard, least: int = 0, most: int | None = None
) -> list[Shard]:
    """The tables of `side` that describe a shard."""
    matches = [shard for input_ in side for shard in input_.shards() if shard.path == one.path]
    if len(matches) < least or (most is not None and len(matches) > most):
        what = side[0].kind if side else "views"
        described = "twice" if matches else "by none"
        raise InputError(
            f"{one.role} {input_label(one.shard.input)} are described {described} "
            f"of the {what} given",
            where="filter",
            hint=f"give the {what} that were made of these {one.role}, once",
        )
    return matches


def check_ids(shards: Sequence[ChatShard]) -> None:
    """InputError if two rows have one id."""
    for role, column in ID_COLUMN.items():
        tables = [one.shard.read([column])[column] for one in shards if one.role == role]
        if not all_differ([chunk for ids in tables for chunk in ids.chunks]):
            raise InputError(
                f"two {role} have the same id",
                where="filter",
                hint=f"the same {role}, or overlapping snapshots under one name, came in twice",
            )


def assess_chat(
    item: AlignedChatShard, ids: pa.ChunkedArray, sources: pa.ChunkedArray, config: FilterConfig,
    exclusions: Exclusions,
) -> Findings:  # fmt: skip
    """What each row fails."""
    names = reason_names(config)
    if not len(ids):
        return collect_findings([], names, 0)
    signals = read_signals(item.signals, ids)
    checks = rule_checks(config.for_chat(), sources, signals)
    if config.languages:
        own = sorted(config.rules_by_source)
        checks.insert(0, language_check(signals, sources, sorted(config.languages), own))
    if item.contamination is not None:
        checks.append(check_contamination(read_sidecar(item.contamination, ids), config))
    checks += check_exclusions(ids, exclusions)
    return collect_findings(checks, names, len(ids))


@dataclass(frozen=True, eq=False)
class ChatAssessment:
    """What the rows of a shard fail, and what `what-if` reports of them."""

    ids: pa.ChunkedArray
    sources: pa.ChunkedArray
    characters: pa.ChunkedArray
    """Null where no signal counts them."""
    findings: Findings


def decide_chat(
    item: AlignedChatShard, config: FilterConfig, exclusions: Exclusions
) -> ChatAssessment:
    """The decision about a shard, without a run."""
    table = item.chat.shard.read([ID_COLUMN[item.chat.role], "source"])
    ids, sources = table.columns
    characters = pa.chunked_array([pa.nulls(len(ids), pa.int64())])
    for shard in item.signals:
        characters = read_sidecar(shard, ids, ["doc_id", "characters"])["characters"]
    return ChatAssessment(
        ids, sources, characters, assess_chat(item, ids, sources, config, exclusions)
    )


def write_chat(
    item: AlignedChatShard, out: ShardOutput, *, config: FilterConfig, exclusions: Exclusions
) -> dict[str, Any]:
    """Write the kept rows of a shard and its ledger; return what was counted."""
    role, rows = item.chat.role, item.chat.rows()
    schema = KINDS[role].tables["*.parquet"].arrow()
    ids, sources = (
        pa.chunked_array([pa.array([row[name] for row in rows], pa.string())])
        for name in (ID_COLUMN[role], "source")
    )
    final = assess_chat(item, ids, sources, config, exclusions)
    characters = [sum(len(text.text) for text in list_texts(row, role)) for row in rows]
    edits = _redact_rows(item, ids, rows, final.passes, config)
    kept = [row for row, stays in zip(rows, final.passes.tolist(), strict=True) if stays]
    with out.table_writer(role, f"{item.id}.parquet", schema) as writer:
        for first in range(0, len(kept), _ROWS_AT_ONCE):
            batch = kept[first : first + _ROWS_AT_ONCE]
            writer.write(pa.Table.from_pylist(batch, schema=schema))
    partners = pa.nulls(len(rows), pa.string())
    ledger = ledger_table(
        ids, reason_names(config), final, partners, edits, pa.array(characters, pa.int64())
    )
    out.write_table("ledger", item.chat.path, ledger)
    counts = count_ledger(ledger)
    return {role: counts.pop("documents"), f"{role}_kept": counts.pop("kept"), **counts}


def _redact_rows(
    item: AlignedChatShard,
    ids: pa.ChunkedArray,
    rows: Sequence[Row],
    kept: NDArray[np.bool_],
    config: FilterConfig,
) -> NDArray[np.int32]:
    """Make the edits of kept rows, in the rows themselves; how many there are in each."""
    made = np.zeros(len(rows), dtype=np.int32)
    places, edits = _chat_edits(item, ids, config)
    counts = edits.counts.tolist()
    for number, (row, place) in enumerate(places):
        if counts[number] and kept[row]:
            replace_text(rows[row], place, partial(apply_edits, edits=edits.for_row(number)))
            made[row] += counts[number]
    return made


def _chat_edits(
    item: AlignedChatShard, ids: pa.ChunkedArray, config: FilterConfig
) -> tuple[list[tuple[int, str]], Edits]:
    """The texts that have spans, as rows and places, and the edits of each."""
    lists = [read_sidecar(one, ids)["spans"].combine_chunks() for one in item.views]
    lengths = [pc.list_value_length(rows).to_numpy(False) for rows in lists]
    owners = [np.repeat(np.arange(len(counts)), counts) for counts in lengths]
    spans = KINDS["views"].tables["chat/*.parquet"].arrow().field("spans").type.value_type
    flat = pa.concat_arrays([pa.array([], spans), *(rows.flatten() for rows in lists)])
    numbers: dict[tuple[int, str], int] = {}
    held = np.concatenate([np.empty(0, np.int64), *owners]).tolist()
    keys = zip(held, flat.field("place").to_pylist(), strict=True)
    text_numbers = np.array([numbers.setdefault(key, len(numbers)) for key in keys], dtype=np.int64)
    edits = select_edits(
        Spans(text_numbers, flat, len(numbers)), config.views, config.personal_data.kept()
    )
    return list(numbers), edits
