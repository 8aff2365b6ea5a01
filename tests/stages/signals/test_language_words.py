"""FineWeb-2's signals on the words of a language: by hand, with a splitter of the test."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from artifacts_schema.errors import IngotError
from artifacts_schema.manifest import Manifest
from stages.filter.presets import PRESETS
from stages.signals import language_words
from stages.signals.config import SignalsConfig
from stages.signals.language_words import LANGUAGE_WORD_SIGNALS, find_split_language
from stages.signals.measure import RunInputs, measure_columns
from stages.signals.stage import Signals
from stages.text.splitters import LANGUAGE_LIBRARIES


@pytest.fixture
def pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every language is split into pieces of two characters, white space left out."""

    def split(text: str, language: str) -> list[tuple[int, int]]:
        places = range(0, len(text) - 1, 2)
        return [(start, start + 2) for start in places if not text[start : start + 2].isspace()]

    monkeypatch.setattr(language_words, "find_language_tokens", split)


def measured(texts: list[str], languages: list[str | None], *split: str) -> dict[str, list[Any]]:
    """The columns of the texts, the languages as declared by their sources."""
    config = SignalsConfig(groups=(), line_rules=(), language_splitters=split)
    columns, _ = measure_columns(texts, [None] * len(texts), languages, config, RunInputs())
    return {name: list(values) for name, values in columns.items()}


@pytest.mark.usefixtures("pairs")
def test_signals_are_those_of_the_languages_own_words() -> None:
    # Tokens: 的年 在月 ## .. \n的, of which "##" and ".." are symbols; none is a stop word.
    columns = measured(["的年在月##..\n的"], ["zh"], "zh")
    assert columns["words@fineweb-2"] == [3]
    assert columns["mean_word_length@fineweb-2"] == [2.0]
    assert columns["hash_to_word_ratio@fineweb-2"] == [2 / 5]
    assert columns["alphabetic_word_share@fineweb-2"] == [3 / 5]
    assert columns["newline_to_word_ratio@fineweb-2"] == [1 / 5]
    assert columns["stop_words@fineweb-2"] == [0]
    # Six times 好好: the pair of tokens "好好 好好" of 5 characters five times, over 12 characters.
    repeated = measured(["好" * 12], ["zh"], "zh")
    assert repeated["top_2_gram_character_share@fineweb-2"] == [5 * 5 / 12]
    # Of the two runs of five tokens the second repeats the first.
    assert repeated["duplicate_5_gram_character_share@fineweb-2"] == [10 / 12]


@pytest.mark.usefixtures("pairs")
def test_stop_words_are_those_of_the_language_and_counted_once_each() -> None:
    texts = ["في من في عن"]  # Pairs: two letters and a space by turns, so في, " م", "ن ", …
    assert measured(["فيعنمنفي"], ["ar"], "ar")["stop_words@fineweb-2"] == [3]
    assert measured(["فيعنمنفي"], ["fa"], "fa")["stop_words@fineweb-2"] == [0]
    assert measured(texts, ["ar"], "ar")["stop_words@fineweb-2"] == [1]


@pytest.mark.usefixtures("pairs")
def test_other_languages_have_the_values_of_the_runs_own_splitter() -> None:
    texts = ["年年年年 x", "年年年年 x", "年年年年 x", ""]
    columns = measured(texts, ["zh", "ja", None, "zh"], "zh")
    assert columns["words"] == [5, 5, 5, 0]
    assert columns["words@fineweb-2"] == [3, 5, 5, 0]
    assert columns["stop_words@fineweb-2"] == [0, None, None, 0]
    names = [one.name for one in LANGUAGE_WORD_SIGNALS if not one.name.startswith("stop_words")]
    assert len(names) == 15
    for name in names:
        own = columns[name.removesuffix("@fineweb-2")]
        assert columns[name][1:] == own[1:], name


@pytest.mark.usefixtures("pairs")
def test_a_batch_changes_no_value(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = ["年在" * size + "的" for size in (0, 3, 50, 7, 50)]
    languages = ["zh", "ja", "zh", "ko", "ja"]
    whole = measured(texts, languages, "zh", "ja")
    monkeypatch.setattr(language_words, "_BATCH_CHARACTERS", 1)
    assert measured(texts, languages, "zh", "ja") == whole


@pytest.mark.parametrize(
    ("label", "language"),
    [("zh", "zh"), ("cmn_Hani", "zh"), ("zh-TW", "zh"), ("arb_Arab", "ar"), ("no", "no"),
     ("nob_Latn", "no"), ("en", None), ("hi", None), ("", None), (None, None)],
)  # fmt: skip
def test_a_language_is_known_by_both_of_its_labels(label: str | None, language: str) -> None:
    assert find_split_language(label) == language


def test_every_language_with_a_library_has_a_stop_list() -> None:
    path = Path(language_words.__file__).with_name("fineweb_2_stop_words.json")
    table = json.loads(path.read_text(encoding="utf-8"))
    lists = {row["lid.176"]: row["stop_words"] for row in table["languages"].values()}
    assert lists.keys() == LANGUAGE_LIBRARIES.keys()
    assert all(len(set(words)) >= 8 for words in lists.values())
    assert lists["th"] == ["ใน", "ที่", "และ", "ของ", "เป็น", "มี", "การ", "ได้"]  # tha_Thai.yml


def test_the_config_names_each_language_once_and_refuses_others() -> None:
    assert SignalsConfig(language_splitters=("zh", "ar", "zh")).language_splitters == ("ar", "zh")
    for language, reason in (("hi", "Indic NLP"), ("kk", "Stanza"), ("en", "no splitter")):
        with pytest.raises(ValueError, match=reason):
            SignalsConfig(language_splitters=(language,))


def test_the_preset_asks_for_signals_that_there_are() -> None:
    names = {one.name for one in LANGUAGE_WORD_SIGNALS}
    asked = {rule.signal for rule in PRESETS["fineweb-2@code"] if "@" in rule.signal}
    assert asked == names
    plain = [rule.name for rule in PRESETS["fineweb-2"]]
    code = [rule.name.removesuffix("@code") for rule in PRESETS["fineweb-2@code"]]
    assert code == [*plain, "fineweb_2_few_stop_words"]
    thai = {rule.name: rule.for_language("th") for rule in PRESETS["fineweb-2@code"]}
    # configs/tha_Thai.yml: max_avg_word_length, top_n_grams, and min_stop_words of the pipeline.
    assert thai["fineweb_2_long_words@code"].threshold == 10
    assert thai["fineweb_2_top_4_gram@code"].threshold == 0.162
    assert thai["fineweb_2_few_stop_words@code"].threshold == 2


def test_a_run_without_the_library_ends_before_any_shard(
    make_documents: Callable[..., tuple[Manifest, str]],
    run_stage: Callable[..., Manifest],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    import sys

    from stages.text.language_splitters import load_language_splitter

    monkeypatch.setitem(sys.modules, "jieba", None)
    load_language_splitter.cache_clear()
    inputs = {"documents": [make_documents([["一"]])]}
    with pytest.raises(IngotError, match="jieba"):
        run_stage(Signals, {"language_splitters": ["zh"]}, inputs)
    load_language_splitter.cache_clear()
