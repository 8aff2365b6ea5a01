"""FineWeb-2's rules on the words of each language: equal to datatrove's filters with its splitters.

The full tests run datatrove 0.10.1 with the libraries of its splitters, whose Python INGOT_PEERS
names (`setup.sh` makes it), and need the extra `splitters` here too. The small one holds frozen
tokens of datatrove's for a sentence a language (`LANGUAGE_TOKENS`), and needs the extra alone.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections import Counter
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from peers.corpus import DATA
from peers.passages import LABELS, passages
from peers.presets import first_rules

from stages.filter import presets
from stages.signals.config import SignalsConfig
from stages.signals.measure import RunInputs, measure_columns
from stages.text.language_splitters import find_language_tokens
from stages.text.splitters import LANGUAGE_LIBRARIES

MAIN = {"ar": 1000, "ja": 1000, "ko": 300, "th": 1000, "zh": 1000}
"""Passages of each language whose verdicts other words would change most."""
OTHERS = {language: 40 for language in LANGUAGE_LIBRARIES if language not in MAIN}
SEED = 1021

MODULES = ("jieba", "kiwipiepy", "pythainlp", "spacy", "sudachipy")
needs_extra = pytest.mark.skipif(
    not all(map(find_spec, MODULES)), reason="the extra `splitters` is not installed"
)
needs_data = pytest.mark.skipif(not DATA.is_dir(), reason="no ../shared/data")

_QUALITY = {
    "gopher_short_doc": "few_words@code",
    "gopher_long_doc": "many_words@code",
    "gopher_below_avg_threshold": "short_words@code",
    "gopher_above_avg_threshold": "long_words@code",
    "gopher_too_many_hashes": "hashes@code",
    "gopher_too_many_ellipsis": "ellipses@code",
    "gopher_too_many_bullets": "bullet_lines",
    "gopher_too_many_end_ellipsis": "ellipsis_lines",
    "gopher_below_alpha_threshold": "few_alphabetic_words@code",
    "gopher_enough_stop_words": "few_stop_words@code",
}
RULE_OF = {
    reason: f"fineweb_2_{rule}"
    for reason, rule in {
        "dup_line_frac": "duplicate_lines",
        **{f"top_{n}_gram": f"top_{n}_gram@code" for n in (2, 3, 4)},
        **{f"duplicated_{n}_n_grams": f"duplicate_{n}_grams@code" for n in range(5, 11)},
        "line_punct_ratio": "few_ended_lines",
        "char_dup_ratio": "duplicate_line_characters",
        "list_ratio": "newlines@code",
        **_QUALITY,
    }.items()
}
"""Our rule for each reason of datatrove's."""


def verdicts(texts: list[str], language: str, preset: str) -> list[str | None]:
    """The reason that the stage `filter` would write for each text."""
    split = (language,) if preset == "fineweb-2@code" else ()
    config = SignalsConfig(groups=(), line_rules=(), language_splitters=split)
    nothing = [None] * len(texts)
    columns, _ = measure_columns(texts, nothing, [language] * len(texts), config, RunInputs())
    wanted = {rule.signal for rule in presets.PRESETS[preset]} & columns.keys()
    signals = pa.table({name: columns[name] for name in sorted(wanted)})
    signals = signals.append_column("language", pa.repeat(pa.scalar(language), len(texts)))
    signals = signals.append_column("language_score", pa.repeat(pa.scalar(1.0), len(texts)))
    return first_rules(signals, preset)


@pytest.fixture(scope="module")
def datatrove(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """datatrove's answers about the passages of each language."""
    python = os.environ.get("INGOT_PEERS")
    if not python:
        pytest.skip("INGOT_PEERS names no Python that has datatrove (tests/peers/setup.sh)")
    folder = tmp_path_factory.mktemp("datatrove")
    given, out = folder / "passages", folder / "answers"
    bounds = json.loads(Path(presets.__file__).with_name("fineweb_2.json").read_text())["languages"]
    with given.open("w", encoding="utf-8") as file:
        for label, row in LABELS.items():
            language = row["lid.176"]
            asked = {
                "language": language,
                "label": label,
                "config": {**bounds[label], "stop_words": row["stop_words"]},
                "texts": passages(language, (MAIN | OTHERS)[language], SEED),
            }
            file.write(json.dumps(asked) + "\n")
    script = str(Path(__file__).with_name("datatrove_fineweb_2.py"))
    subprocess.run([python, script, str(given), str(out)], check=True)
    answers = map(json.loads, out.read_text().splitlines())
    return {answer["language"]: answer for answer in answers}


@pytest.mark.full
@pytest.mark.timeout(7200)
@needs_data
@needs_extra
def test_verdicts_and_reasons_of_every_language_are_datatroves(
    datatrove: dict[str, dict[str, Any]],
) -> None:
    differing = {}
    for language, count in (MAIN | OTHERS).items():
        own = verdicts(passages(language, count, SEED), language, "fineweb-2@code")
        theirs = [reason and RULE_OF[reason] for reason in datatrove[language]["reasons"]]
        pairs = enumerate(zip(own, theirs, strict=True))
        if places := [(place, *pair) for place, pair in pairs if pair[0] != pair[1]]:
            differing[language] = places[:5]
    assert differing == {}


@pytest.mark.full
@pytest.mark.timeout(7200)
@needs_data
@needs_extra
def test_words_of_every_language_are_datatroves(datatrove: dict[str, dict[str, Any]]) -> None:
    for language, count in (MAIN | OTHERS).items():
        for text, tokens in zip(
            passages(language, count, SEED), datatrove[language]["tokens"], strict=True
        ):
            own = [text[start:end] for start, end in find_language_tokens(text, language)]
            assert own == tokens, (language, text)


@pytest.mark.full
@pytest.mark.timeout(7200)
@needs_data
def test_other_words_would_change_verdicts(datatrove: dict[str, dict[str, Any]]) -> None:
    for language, count in MAIN.items():
        theirs = [reason is None for reason in datatrove[language]["reasons"]]
        texts = passages(language, count, SEED)
        own = [reason is None for reason in verdicts(texts, language, "fineweb-2")]
        assert sum(a != b for a, b in zip(own, theirs, strict=True)) > count / 100, language
        reasons = Counter(datatrove[language]["reasons"])
        assert len(reasons) >= 10, reasons
        assert count / 4 < reasons[None] < count * 3 / 4, reasons
