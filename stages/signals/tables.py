"""A shard of documents in, its rows of signals and of views out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from artifacts_schema.errors import InputError
from artifacts_schema.identity import short
from artifacts_schema.kinds import KINDS
from stages.signals.carried import page_signals
from stages.signals.code_marks import code_signals
from stages.signals.columns import signals_of
from stages.signals.language import languages
from stages.signals.measure import VIEWS, Views, measure
from stages.signals.url_lists import load_lists
from stages.signals.url_matches import list_signals
from stages.signals.urls import url_signals

if TYPE_CHECKING:
    from stages.engine import Input, Shard, ShardOutput


@dataclass(frozen=True)
class Given:
    """What a run was given beside its documents; None for what it was not."""

    language_model: Path | None = None
    language_characters: int = 0
    pages: Input | None = None
    page_views: Input | None = None
    url_lists: Path | None = None

    @property
    def columns(self) -> dict[str, bool]:
        """Which groups of columns there are, as `signals_of` takes it."""
        return {
            "with_language": self.language_model is not None,
            "with_pages": self.pages is not None,
            "with_url_lists": self.url_lists is not None,
        }


def measure_shard(
    shard: Shard,
    out: ShardOutput,
    *,
    stop_words: Sequence[str],
    redact: Sequence[str],
    given: Given = Given(),
) -> dict[str, int]:
    """Write the signals and views of a shard beside it; return what it counted."""
    documents = shard.read(["doc_id", "url", "text"])
    ids, urls = documents["doc_id"], documents["url"].to_pylist()
    texts = documents["text"].to_pylist()
    pages, page_views = beside(given.pages, shard, ids), beside(given.page_views, shard, ids)
    columns, views = measure(texts, stop_words)
    columns |= url_signals(urls)
    columns |= code_signals(
        texts, urls, None if pages is None else pages["programming_language"].to_pylist()
    )
    if given.language_model is not None:
        named = languages(texts, given.language_model, given.language_characters)
        columns["language"], columns["language_score"] = named
    if given.url_lists is not None:
        columns |= list_signals(urls, columns["host"], load_lists(given.url_lists))
    if pages is not None:
        columns |= page_signals(pages)
    wanted = [signal.column for signal in signals_of(**given.columns)]
    schema = KINDS["signals"].tables["*.parquet"].arrow(wanted)
    out.write_table("signals", shard.path, pa.table({"doc_id": ids, **columns}, schema=schema))
    further = [] if page_views is None else page_views["spans"].to_pylist()
    out.write_table("views", shard.path, view_table(ids, views, redact, further))
    return {
        "documents": documents.num_rows,
        "characters": sum(map(int, columns["characters"])),
        "emails": sum(columns["email_count"]),
        "ip_addresses": sum(columns["ip_count"]),
        "secrets": sum(columns["secret_count"]),
        "mojibake_characters": sum(columns["mojibake_characters"]),
    }


def beside(given: Input | None, shard: Shard, ids: pa.ChunkedArray) -> pa.Table | None:
    """The table of `given` that lies beside a shard; None if nothing is given.

    InputError unless its rows are those of the documents with these ids.
    """
    if given is None:
        return None
    table = given.read_table(shard.path) if given.has(shard.path) else None
    if table is None or not table["doc_id"].equals(ids):
        raise InputError(
            f"{given.stage} {short(given.key)} describes other documents than those it is given "
            "with",
            where="signals",
            hint=f"give the {given.kind} that were made together with these documents",
        )
    return table


def view_table(
    doc_ids: pa.ChunkedArray,
    views: Sequence[Views],
    redact: Sequence[str],
    further: Sequence[Sequence[dict[str, Any]]] = (),
) -> pa.Table:
    """The rows of the views table: spans by view, then start.

    Of personal data, those whose label is in `redact`; `further` spans of each document come from
    another views table.
    """
    rows = [
        [
            {"view": view, **span._asdict()}
            for view in VIEWS
            for span in found[view]
            if view != "personal_data" or span.label in redact
        ]
        for found in views
    ]
    if further:
        rows = [
            _sorted([*own, *more]) if more else own for own, more in zip(rows, further, strict=True)
        ]
    return pa.table(
        {"doc_id": doc_ids, "spans": rows}, schema=KINDS["views"].tables["*.parquet"].arrow()
    )


def _sorted(spans: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(spans, key=lambda span: (span["view"], span["start"], span["end"]))
