"""A shard of documents in, its rows of signals and of views out."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from artifacts_schema.kinds import KINDS
from stages.signals.columns import signals_of
from stages.signals.language import languages
from stages.signals.measure import measure

if TYPE_CHECKING:
    from stages.engine import Shard, ShardOutput
    from stages.signals.personal_data import Span

VIEW = "personal_data"


def measure_shard(
    shard: Shard,
    out: ShardOutput,
    *,
    stop_words: Sequence[str],
    redact: Sequence[str],
    model: Path | None = None,
    language_characters: int = 0,
) -> dict[str, int]:
    """Write the signals and views of a shard beside it; return what it counted."""
    documents = shard.read(["doc_id", "text"])
    texts = documents["text"].to_pylist()
    columns, spans = measure(texts, stop_words)
    if model is not None:
        named = languages(texts, model, language_characters)
        columns["language"], columns["language_score"] = named
    wanted = [signal.column for signal in signals_of(with_language=model is not None)]
    schema = KINDS["signals"].tables["*.parquet"].arrow(wanted)
    out.write_table(
        "signals", shard.path, pa.table({"doc_id": documents["doc_id"], **columns}, schema=schema)
    )
    out.write_table("views", shard.path, view_table(documents["doc_id"], spans, redact))
    return {
        "documents": documents.num_rows,
        "characters": sum(map(int, columns["characters"])),
        "emails": sum(columns["email_count"]),
        "ip_addresses": sum(columns["ip_count"]),
    }


def view_table(
    doc_ids: pa.ChunkedArray, spans: Sequence[Sequence[Span]], redact: Sequence[str]
) -> pa.Table:
    """The rows of the views table: for each document, the spans whose label is in `redact`."""
    rows = [
        [{"view": VIEW, **span._asdict()} for span in found if span.label in redact]
        for found in spans
    ]
    return pa.table(
        {"doc_id": doc_ids, "spans": rows}, schema=KINDS["views"].tables["*.parquet"].arrow()
    )
