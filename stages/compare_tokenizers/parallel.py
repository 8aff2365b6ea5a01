"""Parallel documents: which passages are there in all languages of their source.

A translation is known by a field of its document (`passage`): `ingest` keeps an `id` of a row in
the document's metadata, so rows of several languages that share one are one passage.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from artifacts_schema.errors import InputError
from stages.compare_tokenizers.parts import Part, drawn

if TYPE_CHECKING:
    from stages.compare_tokenizers.stage import CompareTokenizersConfig
    from stages.engine import ShardOutput, ShardResult

_WHERE = "compare_tokenizers: parallel"
_SHOWN = 8
_COLUMNS = ("url", "title")
"""Columns of a document that may name its passage."""

Key = tuple[str, str]
"""Source and passage."""


@dataclass(frozen=True)
class Translation:
    """One parallel document: a passage in a language."""

    source: str
    passage: str | None
    language: str | None
    bytes: int


@dataclass
class Passages:
    """The passages that are measured, as rows of the parts."""

    parts: list[Part] = field(default_factory=list)
    passages: int = 0
    left_out: Counter[str] = field(default_factory=Counter)
    """Documents that are not measured, by reason."""


def read_passages(part: Part, out: ShardOutput, *, passage: str) -> dict[str, Any]:
    """What identifies the translations of a shard, to scratch; some fields of their metadata."""
    columns = ["source", "language", "metadata", "text", *_COLUMNS]
    seen: dict[str, None] = {}
    rows = []
    for table in part.shard.row_groups(columns):
        sizes = pc.binary_length(table["text"])
        for row, size in zip(table.drop(["text"]).to_pylist(), sizes.to_pylist(), strict=True):
            metadata = json.loads(row["metadata"])
            seen.update(dict.fromkeys(sorted(metadata)))
            told = row[passage] if passage in _COLUMNS else metadata.get(passage)
            named = None if told is None else str(told)
            rows.append(
                {
                    "source": row["source"],
                    "passage": named,
                    "language": row["language"],
                    "bytes": size,
                }
            )
    out.write_scratch("translations", pa.Table.from_pylist(rows, schema=_SCHEMA))
    return {"fields": list(seen)[:_SHOWN]}


_SCHEMA = pa.schema(
    [
        ("source", pa.string()),
        ("passage", pa.string()),
        ("language", pa.string()),
        ("bytes", pa.int64()),
    ]
)


def choose_passages(
    parts: Sequence[Part], found: Sequence[ShardResult], config: CompareTokenizersConfig
) -> Passages:
    """Of each part the rows that are measured: passages that are whole, about `max_bytes` of them.

    InputError if no document names a passage, none is there in all languages, or none in the
    reference.
    """
    tables = [result.read_scratch("translations") for result in found]
    translations = [Translation(**row) for table in tables for row in table.to_pylist()]
    if not translations:
        return Passages()
    if all(one.passage is None for one in translations):
        fields = sorted({name for result in found for name in result.value["fields"]})
        raise InputError(
            f"no document has '{config.passage}' in its metadata, so translations are not known",
            where=_WHERE,
            hint=f"set `passage` to a field that translations share: {', '.join(fields) or 'none'}"
            f", {' or '.join(_COLUMNS)}",
        )
    keep, reasons = whole_passages(translations)
    _check(translations, keep, config.reference)
    share = min(1.0, config.max_bytes / max(1, sum(translations[row].bytes for row in keep)))
    rows = [row for row in keep if drawn("\n".join(_key(translations[row])), share)]
    reasons["not_drawn"] += len(keep) - len(rows)
    edges = np.cumsum([0, *(table.num_rows for table in tables)])
    all_rows = np.array(rows, dtype=np.int64)
    chosen = [
        replace(part, rows=all_rows[(all_rows >= first) & (all_rows < last)] - first)
        for part, first, last in zip(parts, edges[:-1], edges[1:], strict=True)
    ]
    return Passages(chosen, len({_key(translations[row]) for row in rows}), reasons)


def whole_passages(translations: Sequence[Translation]) -> tuple[list[int], Counter[str]]:
    """Rows of passages that are there once in every language of their source; others by reason."""
    reasons: Counter[str] = Counter()
    groups: dict[Key, dict[str, list[int]]] = {}
    languages: dict[str, set[str]] = {}
    for row, one in enumerate(translations):
        if one.passage is None or one.language is None:
            reasons["no_passage" if one.passage is None else "no_language"] += 1
            continue
        groups.setdefault(_key(one), {}).setdefault(one.language, []).append(row)
        languages.setdefault(one.source, set()).add(one.language)
    keep = []
    for (source, _), by_language in groups.items():
        rows = [row for here in by_language.values() for row in here]
        if by_language.keys() != languages[source]:
            reasons["incomplete_passage"] += len(rows)
        elif len(rows) > len(by_language):
            reasons["repeated_passage"] += len(rows)
        else:
            keep += rows
    return sorted(keep), reasons


def _key(one: Translation) -> Key:
    assert one.passage is not None
    return one.source, one.passage


def _check(translations: Sequence[Translation], keep: Sequence[int], reference: str) -> None:
    counts = Counter(one.language for one in translations if one.language and one.passage)
    if not keep:
        rarest = sorted(counts.items(), key=lambda item: (item[1], item[0]))[:3]
        raise InputError(
            f"no passage is there once in each of the {len(counts)} languages",
            where=_WHERE,
            hint="leave out languages with few documents: "
            + ", ".join(f"{name} ({count:,})" for name, count in rarest),
        )
    whole = {translations[row].language for row in keep}
    if reference not in whole:
        names = sorted(name for name in whole if name)
        raise InputError(
            f"no passage is in the reference language '{reference}'",
            where=_WHERE,
            hint=f"set `reference` to one of {', '.join(names)}",
        )
