"""Texts in, signal columns and spans out; a shard of documents in, its rows of both tables out.

Texts are split once, and all signals share that.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from artifacts_schema.errors import InputError
from artifacts_schema.identity import short
from artifacts_schema.kinds import KINDS
from stages.language_model.classifier import score_texts
from stages.signals.bad_words import measure_bad_words
from stages.signals.code_files import measure_code
from stages.signals.columns import (
    ColumnChoice,
    choose_signals,
    choose_text_signals,
    copy_page_columns,
)
from stages.signals.config import SignalsConfig
from stages.signals.credentials import find_secrets
from stages.signals.groups import measure_dclm, measure_guide, measure_phrases
from stages.signals.language_words import measure_language_words
from stages.signals.line_views import make_line_views
from stages.signals.models import (
    Models,
    identify_languages,
    measure_line_languages,
    measure_perplexity,
)
from stages.signals.mojibake import find_mojibake
from stages.signals.outputs import Cuts, Span, make_view_table
from stages.signals.personal_data import count_personal_data, find_personal_data
from stages.signals.quality import measure_lines, measure_quality
from stages.signals.redpajama import measure_redpajama
from stages.signals.repetition import measure_periodic, measure_repetition
from stages.signals.urls import load_lists, measure_url_lists, measure_urls
from stages.text.batch import Batch, batches, count_sentences, split_texts
from stages.text.characters import find_main_script

if TYPE_CHECKING:
    from stages.engine import Input, Shard, ShardOutput


BATCH_CHARACTERS = 1 << 19
"""Texts measured together; it bounds memory and changes no value."""

DEFAULTS = SignalsConfig()

Columns = dict[str, Any]

VIEWS = ("mojibake", "personal_data", "secrets")
"""Views of the unedited text, in alphabetical order."""

Views = dict[str, list[Span]]
"""The spans of one text, by view."""

_GROUPS: Mapping[str, Callable[[Batch], Mapping[str, Any]]] = {
    "dclm": measure_dclm,
    "guide": measure_guide,
    "periodic": measure_periodic,
    "redpajama-v2": measure_redpajama,
}
"""Groups of signals that are computed from a batch alone."""


@dataclass(frozen=True)
class Measured:
    """The measurements of several texts.

    `columns` has a sequence of values for each signal, one a text; `views` the spans in each text;
    `cuts` those of line rules, whose texts count from the first one.
    """

    columns: Columns
    views: list[Views]
    cuts: list[Cuts]


def measure(
    texts: Sequence[str],
    config: SignalsConfig = DEFAULTS,
    *,
    views: Sequence[Views] | None = None,
    batch_characters: int = BATCH_CHARACTERS,
) -> Measured:
    """All signals of the texts themselves that `config` asks for.

    `views` are the spans of each text if they are known already (`find_views`). Any text will do:
    an empty one has 0 in every number and a null script.
    """
    parts, cuts = list[Measured](), list[Cuts]()
    for batch in batches(list(map(len, texts)), batch_characters):
        part = _measure_batch(list(texts[batch]), config, views[batch] if views else None)
        parts.append(part)
        cuts += [cut.moved(batch.start) for cut in part.cuts]
    columns = {
        signal.name: _join_values([part.columns[signal.name] for part in parts])
        for signal in choose_text_signals(config.groups, config.line_rules)
    }
    return Measured(columns, [views for part in parts for views in part.views], cuts)


def _join_values(parts: Sequence[Any]) -> Any:
    """The values of all batches in one array or list."""
    if parts and isinstance(parts[0], np.ndarray):
        return np.concatenate(parts)
    return [value for part in parts for value in part]


def _measure_batch(
    texts: list[str], config: SignalsConfig, known_views: Sequence[Views] | None
) -> Measured:
    split = partial(split_texts, splitter=config.splitter)
    batch = split(texts)
    columns: Columns = {"characters": np.diff(batch.offsets)}
    columns |= measure_quality(batch, config.stop_words, config.splitter)
    columns |= measure_lines(texts, columns["word_tokens"])
    columns |= measure_repetition(batch) | {"sentences": count_sentences(batch)}
    for group in config.groups:
        if group in _GROUPS:
            columns |= _GROUPS[group](batch)
    cuts = []
    for view in make_line_views(batch, config.line_rules, split):
        columns |= view.signals
        cuts.append(view.cuts)
    lowered = [text.lower() for text in texts]
    if "phrases" in config.groups:
        columns |= measure_phrases(lowered)
    by_text = list(map(_text_signals, texts, lowered))
    columns |= {name: [row[name] for row in by_text] for name in by_text[0]}
    views = find_views(texts, config) if known_views is None else list(known_views)
    columns |= count_personal_data([spans["personal_data"] for spans in views])
    columns["secret_count"] = [len(spans["secrets"]) for spans in views]
    columns["mojibake_characters"] = [
        sum(span.end - span.start for span in spans["mojibake"]) for spans in views
    ]
    return Measured(columns, views, cuts)


def find_views(texts: Sequence[str], config: SignalsConfig) -> list[Views]:
    """The spans of each text by view.

    Where a repair would overlap what may have to be hidden, it is left undone: of two spans that
    overlap a filter makes one edit, and the repair would bring the hidden text back.
    """
    regions, form = config.personal_data.phone_regions, config.personal_data.replacement
    views = []
    for text, repairs in zip(texts, find_mojibake(texts), strict=True):
        personal, keys = find_personal_data(text, regions, form), find_secrets(text)
        if repairs and (personal or keys):
            hidden = [*personal, *keys]
            repairs = [
                repair
                for repair in repairs
                if not any(s.start < repair.end and repair.start < s.end for s in hidden)
            ]
        views.append({"mojibake": repairs, "personal_data": personal, "secrets": keys})
    return views


def _text_signals(text: str, lowered: str) -> dict[str, Any]:
    """What is computed from the characters of one text, without its words."""
    script, script_share = find_main_script(text)
    return {
        "bytes": len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass")),
        "lorem_ipsum_count": lowered.count("lorem ipsum"),
        "curly_brace_count": text.count("{"),
        "javascript_count": lowered.count("javascript"),
        "script": script,
        "script_share": script_share,
        "replacement_character_share": text.count("\ufffd") / len(text) if text else 0.0,
    }


@dataclass(frozen=True)
class RunInputs:
    """The inputs of a run besides its documents; None for those that are missing."""

    language_model: Path | None = None
    models: Models = field(default_factory=Models)
    pages: Input | None = None
    page_views: Input | None = None
    url_lists: Path | None = None
    word_lists: Path | None = None

    def choose_columns(self, config: SignalsConfig) -> ColumnChoice:
        """Which columns there are."""
        return ColumnChoice(
            config.groups,
            config.line_rules,
            language=self.language_model is not None,
            url_lists=self.url_lists is not None,
            word_lists=self.word_lists is not None,
            ngram_models=bool(self.models.ngram_models),
            classifiers=tuple(self.models.classifiers),
            pages=self.pages is not None,
            language_splitters=bool(config.language_splitters),
        )


def measure_shard(
    shard: Shard, out: ShardOutput, *, config: SignalsConfig, inputs: RunInputs = RunInputs()
) -> dict[str, int]:
    """Write the signals and views of a shard; return its counts."""
    documents = shard.read(["doc_id", "url", "language", "text"])
    ids, urls = documents["doc_id"], documents["url"].to_pylist()
    texts, declared = documents["text"].to_pylist(), documents["language"].to_pylist()
    pages, page_views = (
        read_sidecar(inputs.pages, shard, ids),
        read_sidecar(inputs.page_views, shard, ids),
    )
    columns, measured = measure_columns(texts, urls, declared, config, inputs, pages)
    wanted = [signal.column for signal in choose_signals(inputs.choose_columns(config))]
    schema = KINDS["signals"].tables["*.parquet"].arrow(wanted)
    out.write_table("signals", shard.path, pa.table({"doc_id": ids, **columns}, schema=schema))
    further = None if page_views is None else page_views["spans"]
    views = make_view_table(ids, measured.views, measured.cuts, further)
    out.write_table("views", shard.path, views)
    return {"documents": documents.num_rows, **count_totals(columns)}


def measure_columns(
    texts: Sequence[str],
    urls: Sequence[str | None],
    declared: Sequence[str | None],
    config: SignalsConfig,
    inputs: RunInputs,
    pages: pa.Table | None = None,
    views: Sequence[Views] | None = None,
) -> tuple[Columns, Measured]:
    """Every column of the run for some texts, and what was measured of the texts themselves.

    `declared` are their languages as the source names them; for `views` see `measure`.
    """
    measured = measure(texts, config, views=views)
    columns = measured.columns
    columns |= measure_urls(urls)
    columns |= measure_code(
        texts, urls, None if pages is None else pages["programming_language"].to_pylist()
    )
    if inputs.url_lists is not None:
        columns |= measure_url_lists(urls, columns["host"], load_lists(inputs.url_lists))
    columns |= _measure_by_language(texts, declared, columns, config, inputs)
    if pages is not None:
        columns |= copy_page_columns(pages)
    # Arrow would leave out what the schema does not name, without a word.
    signals = choose_signals(inputs.choose_columns(config))
    assert columns.keys() == {signal.name for signal in signals}
    return columns, measured


def count_totals(columns: Columns) -> dict[str, int]:
    """The counters of the manifest."""
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


def _measure_by_language(
    texts: Sequence[str],
    declared: Sequence[str | None],
    columns: Columns,
    config: SignalsConfig,
    inputs: RunInputs,
) -> Columns:
    """Scores of models and lists, words of languages' own splitters.

    A text has the measured language, else the declared one.
    """
    judged: dict[str, Any] = {}
    spoken = declared
    if inputs.language_model is not None:
        first = config.language_characters
        spoken, judged["language_score"] = identify_languages(texts, inputs.language_model, first)
        judged["language"] = spoken
        judged["line_language_share"] = measure_line_languages(
            texts, spoken, inputs.language_model, first
        )
    if config.language_splitters:
        judged |= measure_language_words(texts, spoken, columns, config.language_splitters)
    if inputs.word_lists is not None:
        judged |= measure_bad_words(texts, spoken, columns["words"], inputs.word_lists)
    if inputs.models.ngram_models:
        judged |= measure_perplexity(texts, spoken, inputs.models.ngram_models)
    for name, classifier in inputs.models.classifiers.items():
        judged[f"{name}_score"] = score_texts(classifier, texts)
    return judged


def read_sidecar(sidecar: Input | None, shard: Shard, ids: pa.ChunkedArray) -> pa.Table | None:
    """The table of `sidecar` about a shard; None without a sidecar.

    InputError unless its rows are those of the documents with these ids.
    """
    if sidecar is None:
        return None
    table = sidecar.read_table(shard.path) if sidecar.has(shard.path) else None
    if table is None or not table["doc_id"].equals(ids):
        raise InputError(
            f"{sidecar.stage} {short(sidecar.key)} describes other documents than those in this "
            "step",
            where="signals",
            hint=f"give the {sidecar.kind} that were made together with these documents",
        )
    return table
