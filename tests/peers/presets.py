"""What Ingot's presets say of the documents, in terms of datatrove's filters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from stages.filter.checks import collect_findings, rule_checks
from stages.filter.config import FilterConfig
from stages.filter.edits import Edit, apply_edits
from stages.filter.ledger import first_failures
from stages.filter.presets import PRESETS
from stages.filter.rules import Rule
from stages.signals.config import SignalsConfig
from stages.signals.measure import measure
from stages.signals.outputs import Cuts
from stages.text.splitters import Splitter

PRESET_OF = {
    "gopher_repetition": "gopher_repetition@datatrove",
    "gopher_quality": "gopher_quality@datatrove",
    "c4": "c4@datatrove",
    "c4_fineweb": "c4@fineweb",
    "fineweb": "fineweb@code",
    "chain": "fineweb_chain@datatrove",
}
"""The preset that says what a filter says."""

VIEW_OF = {"c4": "c4@datatrove", "c4_fineweb": "c4@fineweb"}
"""The view that edits text as a filter does."""

_REPETITION = {
    "dup_para_frac": "gopher_duplicate_paragraphs",
    "dup_para_char_frac": "gopher_duplicate_paragraph_characters",
    "dup_line_frac": "gopher_duplicate_lines",
    "dup_line_char_frac": "gopher_duplicate_line_characters",
    **{f"top_{n}_gram": f"gopher_top_{n}_gram" for n in (2, 3, 4)},
    **{f"duplicated_{n}_n_grams": f"gopher_duplicate_{n}_grams" for n in range(5, 11)},
}
_QUALITY = {
    "gopher_short_doc": "gopher_few_words",
    "gopher_long_doc": "gopher_many_words",
    "gopher_below_avg_threshold": "gopher_short_words",
    "gopher_above_avg_threshold": "gopher_long_words",
    "gopher_too_many_hashes": "gopher_hashes",
    "gopher_too_many_ellipsis": "gopher_ellipses",
    "gopher_too_many_bullets": "gopher_bullet_lines",
    "gopher_too_many_end_ellipsis": "gopher_ellipsis_lines",
    "gopher_below_alpha_threshold": "gopher_few_alphabetic_words",
    "gopher_enough_stop_words": "gopher_few_stop_words",
}
_C4 = {
    "lorem_ipsum": "c4_lorem_ipsum",
    "curly_bracket": "c4_curly_braces",
    "too_few_sentences": "c4_few_sentences",
}
_FINEWEB = {
    "line_punct_ratio": "fineweb_few_ended_lines",
    "short_line_ratio": "fineweb_short_lines",
    "char_dup_ratio": "fineweb_duplicate_line_characters",
    "list_ratio": "fineweb_newlines",
}
RULE_OF: dict[str, dict[str, str]] = {
    "gopher_repetition": _REPETITION,
    "gopher_quality": _QUALITY,
    "c4": {reason: f"{rule}@datatrove" for reason, rule in _C4.items()},
    "c4_fineweb": {reason: f"{rule}@fineweb" for reason, rule in _C4.items()},
    "fineweb": _FINEWEB,
    "chain": {
        **{f"gopher_repetition: {reason}": rule for reason, rule in _REPETITION.items()},
        **{f"gopher_quality: {reason}": rule for reason, rule in _QUALITY.items()},
        **{f"c4_fineweb: {reason}": f"{rule}@fineweb" for reason, rule in _C4.items()},
        **{f"fineweb: {reason}": f"{rule}@chain" for reason, rule in _FINEWEB.items()},
    },
}
"""Our rule for each reason that a filter gives."""

CONFIG = SignalsConfig(groups=(), line_rules=("c4@datatrove", "c4@fineweb"))


def answers(texts: Sequence[str], splitter: Splitter) -> tuple[dict[str, list[Any]], pa.Table]:
    """First failing rule by filter, and the edited text as `FILTER text`; and the signals."""
    measured = measure(texts, CONFIG.model_copy(update={"splitter": splitter}))
    signals = pa.table(measured.columns)
    said: dict[str, list[Any]] = {
        name: first_rules(signals, preset) for name, preset in PRESET_OF.items()
    }
    for name, view in VIEW_OF.items():
        cuts = [cut for cut in measured.cuts if cut.view == view]
        said[f"{name} text"] = edited(texts, cuts)
    return said, signals


def first_rules(signals: pa.Table, preset: str) -> list[str | None]:
    """The reason that the stage `filter` would write for each document."""
    config = FilterConfig.parse(
        {"rules": (preset,), "views": (), "personal_data": "keep"}, where="peers"
    )
    names = [rule.name for rule in PRESETS[preset]]
    sources = pa.chunked_array([pa.repeat(pa.scalar("web"), len(signals))])
    found = collect_findings(rule_checks(config, sources, signals), names, len(signals))
    first = first_failures(found)
    reasons: list[str | None] = pa.array(names).take(pa.array(first, mask=first < 0)).to_pylist()
    return reasons


def edited(texts: Sequence[str], cuts: Sequence[Cuts]) -> list[str]:
    """The texts that a view leaves."""
    edits: dict[int, list[Edit]] = {}
    for cut in cuts:
        replacements = [cut.replacement_names[code] for code in cut.replacements.tolist()]
        spans = zip(cut.starts.tolist(), cut.ends.tolist(), replacements, strict=True)
        for text, span in zip(cut.text_of.tolist(), spans, strict=True):
            edits.setdefault(text, []).append(Edit(*span))
    return [apply_edits(text, edits.get(number, [])) for number, text in enumerate(texts)]


def fails(signals: pa.Table, rule: Rule) -> NDArray[np.bool_]:
    """Which documents a rule drops, whatever drops them before."""
    values = signals[rule.signal].to_numpy()
    failing: NDArray[np.bool_] = (
        values > rule.threshold if rule.minimum is None else values < rule.threshold
    )
    return failing


def near_a_bound(
    signals: pa.Table, rules: Sequence[Rule], within: float = 0.1
) -> NDArray[np.bool_]:
    """Which documents have a signal within a tenth of the bound of a rule on it."""
    near = np.zeros(len(signals), dtype=bool)
    for rule in rules:
        distance = np.abs(signals[rule.signal].to_numpy() - rule.threshold)
        near |= (distance <= within * rule.threshold) & (rule.threshold > 0)
    return near
