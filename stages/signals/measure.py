"""Texts in, signal columns and spans out: texts are split once, and all signals share that."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from stages.signals.columns import text_signals_of
from stages.signals.config import SignalsConfig
from stages.signals.credentials import secrets
from stages.signals.dclm import dclm_signals
from stages.signals.guide import guide_signals
from stages.signals.line_rules.marks import Cuts
from stages.signals.line_rules.views import line_views
from stages.signals.line_signals import line_signals
from stages.signals.mojibake import mojibake
from stages.signals.periodic import periodic_signals
from stages.signals.personal_data import personal_counts, personal_data
from stages.signals.phrase_marks import phrase_signals
from stages.signals.quality import quality_signals
from stages.signals.redpajama import redpajama_signals
from stages.signals.repetition import repetition_signals
from stages.signals.sentence_signals import sentence_signals
from stages.signals.spans import Span
from stages.text.batch import Batch, batches
from stages.text.scripts import main_script
from stages.text.split import batch_of

BATCH_CHARACTERS = 1 << 19
"""Texts measured together; it bounds memory and changes no value."""

DEFAULTS = SignalsConfig()

Columns = dict[str, Any]

VIEWS = ("mojibake", "personal_data", "secrets")
"""Views of a text that are found in it as it stands, in alphabetical order."""

Views = dict[str, list[Span]]
"""The spans of one text, by view."""

_GROUPS: Mapping[str, Callable[[Batch], Mapping[str, Any]]] = {
    "dclm": dclm_signals,
    "guide": guide_signals,
    "periodic": periodic_signals,
    "redpajama-v2": redpajama_signals,
}
"""Groups of signals that a batch alone tells."""


@dataclass(frozen=True)
class Measured:
    """What is measured of several texts.

    `columns` has a sequence of values for each signal, one a text; `views` the spans that were
    found in each text; `cuts` those of line rules, whose texts count from the first one.
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

    `views` are the spans of each text where they were found before (`found_views`). No text is too
    odd: an empty one has 0 in every number and a null script.
    """
    parts, cuts = list[Measured](), list[Cuts]()
    for batch in batches(list(map(len, texts)), batch_characters):
        part = _measure_batch(list(texts[batch]), config, views[batch] if views else None)
        parts.append(part)
        cuts += [cut.moved(batch.start) for cut in part.cuts]
    columns = {
        signal.name: _joined([part.columns[signal.name] for part in parts])
        for signal in text_signals_of(config.groups, config.line_rules)
    }
    return Measured(columns, [views for part in parts for views in part.views], cuts)


def _joined(parts: Sequence[Any]) -> Any:
    """The values of all batches in one array or list."""
    if parts and isinstance(parts[0], np.ndarray):
        return np.concatenate(parts)
    return [value for part in parts for value in part]


def _measure_batch(
    texts: list[str], config: SignalsConfig, found: Sequence[Views] | None
) -> Measured:
    split = partial(batch_of, splitter=config.splitter)
    batch = split(texts)
    columns: Columns = {"characters": np.diff(batch.offsets)}
    columns |= quality_signals(batch, config.stop_words, config.splitter)
    columns |= line_signals(batch) | repetition_signals(batch) | sentence_signals(batch)
    for group in config.groups:
        if group in _GROUPS:
            columns |= _GROUPS[group](batch)
    cuts = []
    for view in line_views(batch, config.line_rules, split):
        columns |= view.signals
        cuts.append(view.cuts)
    lowered = [text.lower() for text in texts]
    if "phrases" in config.groups:
        columns |= phrase_signals(lowered)
    by_text = list(map(_text_signals, texts, lowered))
    columns |= {name: [row[name] for row in by_text] for name in by_text[0]}
    views = found_views(texts, config) if found is None else list(found)
    columns |= personal_counts([found["personal_data"] for found in views])
    columns["secret_count"] = [len(found["secrets"]) for found in views]
    columns["mojibake_characters"] = [
        sum(span.end - span.start for span in found["mojibake"]) for found in views
    ]
    return Measured(columns, views, cuts)


def found_views(texts: Sequence[str], config: SignalsConfig) -> list[Views]:
    """The spans of each text by view.

    Where a repair would overlap what may have to be hidden, it is left undone: of two spans that
    overlap a filter makes one edit, and the repair would bring the hidden text back.
    """
    regions, form = config.personal_data.phone_regions, config.personal_data.replacement
    views = []
    for text, repairs in zip(texts, mojibake(texts), strict=True):
        personal, keys = personal_data(text, regions, form), secrets(text)
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
    script, script_share = main_script(text)
    return {
        "bytes": len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass")),
        "lorem_ipsum_count": lowered.count("lorem ipsum"),
        "curly_brace_count": text.count("{"),
        "javascript_count": lowered.count("javascript"),
        "script": script,
        "script_share": script_share,
        "replacement_character_share": text.count("\ufffd") / len(text) if text else 0.0,
    }
