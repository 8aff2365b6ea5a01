"""What is measured: shards of documents with the rows of them that are drawn.

Of parallel documents, those passages that exist in all languages of their source. A translation
is identified by a field of its document (`passage`): `ingest` keeps an `id` of a row in the
document's metadata, so rows of several languages that share one are one passage.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from artifacts_schema.errors import InputError
from stages.text.draw import draw

if TYPE_CHECKING:
    from stages.compare_tokenizers.config import CompareTokenizersConfig
    from stages.engine import Input, Shard, ShardOutput, ShardResult


SALT = "tokenizer comparison"
_COLUMNS = ["doc_id", "duplicate_class", "source", "language", "text"]


@dataclass(frozen=True)
class Part:
    """A shard of documents, and which of its rows are measured."""

    id: str
    text: str
    """`documents` or `parallel`."""
    shard: Shard
    share: float = 1.0
    """Duplicate classes that are drawn."""
    rows: NDArray[np.int64] | None = None
    """Rows that are measured, rising; None: those that are drawn."""

    def documents(self) -> Iterator[dict[str, Any]]:
        """Source, language and text of each row that is measured; row groups are read in turn."""
        first = 0
        for table in self.shard.row_groups(_COLUMNS):
            here = pa.array(self._chosen(table, first), pa.int64())
            yield from table.select(["source", "language", "text"]).take(here).to_pylist()
            first += table.num_rows

    def _chosen(self, table: pa.Table, first: int) -> list[int]:
        """Rows of a row group that are measured; it begins with row `first` of the shard."""
        if self.rows is not None:
            inside = (self.rows >= first) & (self.rows < first + table.num_rows)
            return (self.rows[inside] - first).tolist()  # type: ignore[no-any-return]
        classes = table["duplicate_class"].to_pylist()
        ids = table["doc_id"].to_pylist()
        return [
            row
            for row, (doc_id, duplicate_class) in enumerate(zip(ids, classes, strict=True))
            if is_drawn(duplicate_class or doc_id, self.share)
        ]


def is_drawn(name: str, share: float) -> bool:
    """Whether a duplicate class or passage is in the sample; a larger share holds a smaller one."""
    return draw(name, SALT) < share


def list_parts(inputs: Sequence[Input], text: str) -> list[Part]:
    """All shards of the inputs of a role, in order."""
    width = max(2, len(str(len(inputs) - 1)))
    return [
        Part(f"{text}-{place:0{width}d}-{shard.id}", text, shard)
        for place, one in enumerate(inputs)
        for shard in one.shards()
    ]


def sample_parts(parts: Sequence[Part], max_bytes: int) -> list[Part]:
    """The parts with the share that gives about `max_bytes` of text in all."""
    total = sum(_text_bytes(part.shard) for part in parts)
    share = min(1.0, max_bytes / max(1, total))
    return [replace(part, share=share) for part in parts]


def _text_bytes(shard: Shard) -> int:
    """Bytes of a shard's texts before compression, from the file's footer, which is approximate."""
    with shard.input.open(shard.path) as file:
        footer = pq.ParquetFile(file).metadata
        place = footer.schema.to_arrow_schema().get_field_index("text")
        groups = range(footer.num_row_groups)
        return sum(footer.row_group(n).column(place).total_uncompressed_size for n in groups)


_PARALLEL = "compare_tokenizers: parallel"
_MOST_FIELDS = 8
_PARALLEL_COLUMNS = ("url", "title")
"""Columns of a document that may name its passage."""

Translation = dict[str, Any]
"""One parallel document: source, passage, language (None where unknown), bytes."""

_TRANSLATIONS = pa.schema(
    [
        ("source", pa.string()),
        ("passage", pa.string()),
        ("language", pa.string()),
        ("bytes", pa.int64()),
    ]
)


@dataclass
class Passages:
    """The passages that are measured, as rows of the parts."""

    parts: list[Part] = field(default_factory=list)
    passages: int = 0
    excluded: Counter[str] = field(default_factory=Counter)
    """Documents that are not measured, by reason."""


def read_passages(part: Part, out: ShardOutput, *, passage: str) -> dict[str, Any]:
    """What identifies the translations of a shard, to scratch; some fields of their metadata."""
    columns = ["source", "language", "metadata", "text", *_PARALLEL_COLUMNS]
    seen: dict[str, None] = {}
    rows = []
    for table in part.shard.row_groups(columns):
        sizes = pc.binary_length(table["text"])
        for row, size in zip(table.drop(["text"]).to_pylist(), sizes.to_pylist(), strict=True):
            metadata = json.loads(row["metadata"])
            seen.update(dict.fromkeys(sorted(metadata)))
            value = row[passage] if passage in _PARALLEL_COLUMNS else metadata.get(passage)
            name = None if value is None else str(value)
            rows.append({**row, "passage": name, "bytes": size})  # The schema selects columns.
    out.write_scratch("translations", pa.Table.from_pylist(rows, schema=_TRANSLATIONS))
    return {"fields": list(seen)[:_MOST_FIELDS]}


def choose_passages(
    parts: Sequence[Part], results: Sequence[ShardResult], config: CompareTokenizersConfig
) -> Passages:
    """Of each part the rows that are measured: passages that are whole, about `max_bytes` of them.

    InputError if no document names a passage, none is there in all languages, or none in the
    reference.
    """
    tables = [result.read_scratch("translations") for result in results]
    translations: list[Translation] = [row for table in tables for row in table.to_pylist()]
    if not translations:
        return Passages()
    if all(one["passage"] is None for one in translations):
        fields = sorted({name for result in results for name in result.value["fields"]})
        raise InputError(
            f"no document has '{config.passage}' in its metadata, so translations are not known",
            where=_PARALLEL,
            hint=f"set `passage` to a field that translations share: {', '.join(fields) or 'none'}"
            f", {' or '.join(_PARALLEL_COLUMNS)}",
        )
    keep, reasons = whole_passages(translations)
    _check_passages(translations, keep, config.reference)
    share = min(1.0, config.max_bytes / max(1, sum(translations[row]["bytes"] for row in keep)))
    rows = [row for row in keep if is_drawn("\n".join(_key(translations[row])), share)]
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
    groups: dict[tuple[str, str], dict[str, list[int]]] = {}
    languages: dict[str, set[str]] = {}
    for row, one in enumerate(translations):
        if one["passage"] is None or one["language"] is None:
            reasons["no_passage" if one["passage"] is None else "no_language"] += 1
            continue
        groups.setdefault(_key(one), {}).setdefault(one["language"], []).append(row)
        languages.setdefault(one["source"], set()).add(one["language"])
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


def _key(translation: Translation) -> tuple[str, str]:
    return translation["source"], translation["passage"]


def _check_passages(
    translations: Sequence[Translation], keep: Sequence[int], reference: str
) -> None:
    counts = Counter(one["language"] for one in translations if one["language"] and one["passage"])
    if not keep:
        rarest = sorted(counts.items(), key=lambda item: (item[1], item[0]))[:3]
        raise InputError(
            f"no passage is there once in each of the {len(counts)} languages",
            where=_PARALLEL,
            hint="leave out languages with few documents: "
            + ", ".join(f"{name} ({count:,})" for name, count in rarest),
        )
    whole = {translations[row]["language"] for row in keep}
    if reference not in whole:
        names = sorted(name for name in whole if name)
        raise InputError(
            f"no passage is in the reference language '{reference}'",
            where=_PARALLEL,
            hint=f"set `reference` to one of {', '.join(names)}",
        )
