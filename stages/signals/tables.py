"""A shard of documents in, its rows of signals and of views out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from artifacts_schema.errors import InputError
from artifacts_schema.identity import short
from artifacts_schema.kinds import KINDS
from stages.language_model.classifier import scores
from stages.signals.bad_words import bad_words
from stages.signals.carried import page_signals
from stages.signals.code_marks import code_signals
from stages.signals.columns import Asked, signals_of
from stages.signals.config import SignalsConfig
from stages.signals.language import languages
from stages.signals.line_language import line_language_shares
from stages.signals.measure import Columns, Measured, Views, measure
from stages.signals.models import Models
from stages.signals.perplexity import perplexity_signals
from stages.signals.url_lists import load_lists
from stages.signals.url_matches import list_signals
from stages.signals.urls import url_signals
from stages.signals.view_table import view_table

if TYPE_CHECKING:
    from stages.engine import Input, Shard, ShardOutput


@dataclass(frozen=True)
class Given:
    """What a run was given beside its documents; None for what it was not."""

    language_model: Path | None = None
    models: Models = field(default_factory=Models)
    pages: Input | None = None
    page_views: Input | None = None
    url_lists: Path | None = None
    word_lists: Path | None = None

    def asked(self, config: SignalsConfig) -> Asked:
        """Which columns there are."""
        return Asked(
            config.groups,
            config.line_rules,
            language=self.language_model is not None,
            url_lists=self.url_lists is not None,
            word_lists=self.word_lists is not None,
            ngram_models=bool(self.models.ngram_models),
            classifiers=tuple(self.models.classifiers),
            pages=self.pages is not None,
        )


def measure_shard(
    shard: Shard, out: ShardOutput, *, config: SignalsConfig, given: Given = Given()
) -> dict[str, int]:
    """Write the signals and views of a shard beside it; return what it counted."""
    documents = shard.read(["doc_id", "url", "language", "text"])
    ids, urls = documents["doc_id"], documents["url"].to_pylist()
    texts, declared = documents["text"].to_pylist(), documents["language"].to_pylist()
    pages, page_views = beside(given.pages, shard, ids), beside(given.page_views, shard, ids)
    columns, measured = measured_columns(texts, urls, declared, config, given, pages)
    wanted = [signal.column for signal in signals_of(given.asked(config))]
    schema = KINDS["signals"].tables["*.parquet"].arrow(wanted)
    out.write_table("signals", shard.path, pa.table({"doc_id": ids, **columns}, schema=schema))
    further = None if page_views is None else page_views["spans"]
    views = view_table(ids, measured.views, measured.cuts, further)
    out.write_table("views", shard.path, views)
    return {"documents": documents.num_rows, **counted(columns)}


def measured_columns(
    texts: Sequence[str],
    urls: Sequence[str | None],
    declared: Sequence[str | None],
    config: SignalsConfig,
    given: Given,
    pages: pa.Table | None = None,
    views: Sequence[Views] | None = None,
) -> tuple[Columns, Measured]:
    """Every column of the run for some texts, and what was measured of the texts themselves.

    `declared` are their languages as the source names them; for `views` see `measure`.
    """
    measured = measure(texts, config, views=views)
    columns = measured.columns
    columns |= url_signals(urls)
    columns |= code_signals(
        texts, urls, None if pages is None else pages["programming_language"].to_pylist()
    )
    if given.url_lists is not None:
        columns |= list_signals(urls, columns["host"], load_lists(given.url_lists))
    columns |= _judged(texts, declared, columns, config, given)
    if pages is not None:
        columns |= page_signals(pages)
    # Arrow would leave out what the schema does not name, without a word.
    assert columns.keys() == {signal.name for signal in signals_of(given.asked(config))}
    return columns, measured


def counted(columns: Columns) -> dict[str, int]:
    """What the manifest counts of some columns."""
    return {
        "characters": int(sum(columns["characters"])),
        "emails": sum(columns["email_count"]),
        "ip_addresses": sum(columns["ip_count"]),
        "phones": sum(columns["phone_count"]),
        "ibans": sum(columns["iban_count"]),
        "cards": sum(columns["card_count"]),
        "secrets": sum(columns["secret_count"]),
        "mojibake_characters": sum(columns["mojibake_characters"]),
    }


def _judged(
    texts: Sequence[str],
    declared: Sequence[str | None],
    columns: Columns,
    config: SignalsConfig,
    given: Given,
) -> Columns:
    """What models and lists say; a text is in the language that was measured, else declared."""
    found: dict[str, Any] = {}
    spoken = declared
    if given.language_model is not None:
        first = config.language_characters
        spoken, found["language_score"] = languages(texts, given.language_model, first)
        found["language"] = spoken
        found["line_language_share"] = line_language_shares(
            texts, spoken, given.language_model, first
        )
    if given.word_lists is not None:
        found |= bad_words(texts, spoken, columns["words"], given.word_lists)
    if given.models.ngram_models:
        found |= perplexity_signals(texts, spoken, given.models.ngram_models)
    for name, classifier in given.models.classifiers.items():
        found[f"{name}_score"] = scores(classifier, texts)
    return found


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
