"""Text that no one meant to be read: measured whole, decided, written, and never an exception.

The same texts go through `measure` and through the stages `signals` and `filter` with every input
that a run may be given.
"""

from __future__ import annotations

import math
import random
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.compute as pc
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from artifacts_schema.errors import InputError
from artifacts_schema.manifest import Manifest
from stages.filter.edits import apply_edits
from stages.filter.presets import PRESETS
from stages.filter.stage import Filter
from stages.quality_models.config import ClassifierConfig
from stages.quality_models.models import train, write_lines
from stages.quality_models.stage import QualityModels
from stages.signals.columns import ColumnChoice, choose_signals
from stages.signals.config import SignalsConfig
from stages.signals.measure import Measured, measure
from stages.signals.outputs import Span
from stages.signals.stage import Signals

BAD = {
    "empty": "",
    "white space": " \t\u00a0\u3000\u2028\x85\v\f\r",
    "line feeds": "\n" * 10_000,
    "carriage returns": "\r\n" * 5_000,
    "one line": "the quick brown fox, 12 dogs. " * 10_000,
    "one word": "a" * 300_000,
    "equal lines": "The same line, once more.\n" * 10_000,
    "emoji": "😀👩\u200d👩\u200d👧🇩🇪" * 5_000,
    "mixed scripts": "aбγ漢ไあ한אش" * 5_000,
    "NUL": "\0" * 20_000,
    "NUL inside": "words\0and more\0words\n" * 500,
    "right to left": "\u202eשלום עולם مرحبا\u200f\u202b " * 2_000,
    "zero width": "\u200b\u200c\u200d\ufeff\u2060" * 5_000,
    "combining": "e" + "\u0301" * 20_000,
    "full-width digits": "１２３４ ５６７８９０" * 2_000,
    "Arabic digits": "٤١١١ ١١١١ ١١١١ ١١١١\n" * 1_000,
    "digits": "4" * 20_000,
    "noncharacters": "\ufffe\uffff\U0010ffff\ufdd0" * 1_000,
    "replacements": "\ufffd" * 20_000,
    "marks": "@#{}<>[]()…•-*_=:;\"'`\\/|" * 1_000,
    "almost an address": "a.b-" * 5_000 + "@",
    "almost a number": "+1 (415) " * 2_000,
    "almost a key": "-----BEGIN " * 2_000 + "AKIA" * 2_000 + "token='" * 2_000,
    "almost a citation": "[1" * 5_000 + "[[" * 5_000,
    "mojibake": "Ã©â€™Â " * 2_000,
    "mojibake about a secret": "Ã©jane@corp.com Ã© password='Ã©hunter2Ã©'\n" * 200,
    "tags": "</s> <s> <unk> __label__reference __label__contrast\n" * 500,
}
"""By what is odd about them; Arrow holds all of these."""

SURROGATES = ["\ud800", "\udfff\ud800", "words \udc80 and more words.\n" * 50, "\ud83d" * 5_000]
"""What Python takes and Arrow does not: halves of UTF-16 pairs."""


def _is_whole(texts: list[str], found: Measured) -> None:
    """Every number is finite, every span lies in its text, and no two of a view overlap."""
    for name, values in found.columns.items():
        assert len(values) == len(texts), name
        numbers = [v for v in values if v is not None and not isinstance(v, str)]
        assert all(math.isfinite(number) for number in numbers), name
    for text, views in zip(texts, _spans(texts, found), strict=True):
        for view, spans in views.items():
            assert all(0 <= span.start < span.end <= len(text) for span in spans), view
            assert all(one.end <= next_.start for one, next_ in pairwise(spans)), view


def _spans(texts: list[str], found: Measured) -> list[dict[str, list[Span]]]:
    """The spans of each text by view, those of line rules with the others."""
    views = [{view: list(spans) for view, spans in given.items()} for given in found.views]
    for cuts in found.cuts:
        for text in views:
            text.setdefault(cuts.view, [])
        columns = (cuts.text_of, cuts.starts, cuts.ends, cuts.labels, cuts.replacements)
        for text, start, end, label, put in zip(*(c.tolist() for c in columns), strict=True):
            name, instead = cuts.label_names[label], cuts.replacement_names[put]
            views[text][cuts.view].append(Span(start, end, name, instead))
    return views


@pytest.mark.parametrize("splitter", ["unicode", "spacy_english"])
@pytest.mark.parametrize("name", [*BAD, *SURROGATES])
def test_every_signal_of_a_bad_text_is_finite(name: str, splitter: Any) -> None:
    texts = [BAD.get(name, name)]
    found = measure(texts, SignalsConfig(splitter=splitter))
    assert found.columns["characters"].tolist() == [len(texts[0])]
    _is_whole(texts, found)


@pytest.mark.full
def test_a_million_equal_lines() -> None:
    """Their counts by arithmetic: each of them repeats the first, but for the first."""
    lines = 1_000_000
    found = measure(["x\n" * lines])
    row = {name: values[0] for name, values in found.columns.items()}
    assert (row["characters"], row["words"]) == (2 * lines, lines)
    assert row["equal_lines_in_a_row"] == lines
    # Gopher's lines are parted by line feeds, and the last one is empty.
    assert row["duplicate_line_share"] == (lines - 1) / (lines + 1)
    _is_whole(["x\n" * lines], found)


PIECES = st.sampled_from(
    [
        *("A line of text that ends well.", "Short", "the same", "{", "lorem ipsum", "javascript"),
        *("word" * 30, "read [1] more [citation needed].", "5 likes", "Sign up", "\x1c", "\x85"),
        *("jane@corp.com", "7.7.7.7", "Ã©", "漢字。", "…", "...", "\ud800", "\0", "😀", " ", "\t"),
    ]
)
TEXT = st.lists(st.tuples(PIECES, st.sampled_from(["\n", "\n\n", " ", "\r\n", ""])), max_size=14)
TEXTS = st.lists(TEXT.map(lambda parts: "".join(piece + end for piece, end in parts)), max_size=4)

ON_EDITED = ("terminal_punctuation_line_share", "short_line_share", "newline_to_word_ratio",
             "duplicate_filled_line_character_share", "filled_lines")  # fmt: skip
"""FineWeb's signals on what C4 leaves; here they are measured on that text itself."""


@given(TEXTS)
@example(["read [1] this.\n\n\nA line of text that ends well.\r\n  the same [2] line.  \n" * 3])
@settings(deadline=None, max_examples=60)
def test_cuts_lie_in_their_text_and_leave_the_text_whose_signals_were_measured(
    texts: list[str],
) -> None:
    found = measure(texts)
    _is_whole(texts, found)
    left = [
        apply_edits(text, views["c4@fineweb"])
        for text, views in zip(texts, _spans(texts, found), strict=True)
    ]
    for name in ON_EDITED:
        again = measure(left).columns[name]
        assert np.array_equal(again, found.columns[f"c4@fineweb/{name}"]), name


# Through the stages -------------------------------------------------------------------------------


@pytest.fixture
def judged_by(run_stage: Any, make_documents: Any, snapshot: Any, tmp_path: Path) -> Any:
    """What `signals` may be given beside the documents: models, lists of words, of addresses."""
    draw = random.Random(1)

    def texts(words: str) -> list[str]:
        return [" ".join(draw.choices(words.split(), k=20)) + ".\n" for _ in range(60)]

    config = {
        "held_share": 0.4,
        "ngram": {"order": 3},
        "classifier": {"buckets": 1000, "dim": 4, "learning_rate": 0.5},
    }
    made = run_stage(
        QualityModels,
        config,
        {
            "reference": [make_documents([texts("the of and theory shows because")], "good")],
            "contrast": [make_documents([texts("buy now the and cheap click")], "bad")],
        },
    )
    lines, model = tmp_path / "lines.txt", tmp_path / "model.bin"
    write_lines([("en", "the quick brown fox"), ("de", "der")] * 9, lines, lower_case=False)
    train(lines, model, ClassifierConfig(buckets=10, dim=4), lambda: None)
    return {
        "language_model": snapshot({"model.bin": model.read_bytes()}, name="lid"),
        "word_lists": snapshot({"en": b"fox\nmore words\n"}, name="words"),
        "classifier": [(made, "classifier")],
        "ngram_model": [(made, "ngram_model")],
        "cutoffs": [(made, "cutoffs")],
    }


def _shards(sizes: list[int]) -> list[list[dict[str, Any]]]:
    """The bad texts as documents, in shards of so many; a shard may have none."""
    rows = [
        {"text": text, "source": "web", "language": "en", "url": f"http://a.org/{n}"}
        for n, text in enumerate(BAD.values())
    ]
    assert sum(sizes) == len(rows)
    ends = np.cumsum(sizes).tolist()
    return [rows[end - size : end] for size, end in zip(sizes, ends, strict=True)]


def _chain(run_stage: Any, documents: Any, beside: dict[str, Any]) -> tuple[Manifest, Manifest]:
    """`signals` and `filter` with every preset for which a column was measured."""
    signals = run_stage(Signals, {}, {"documents": [documents], **beside})
    asked = ColumnChoice(
        language=True, word_lists=True, ngram_models=True, classifiers=("quality",)
    )
    names = {signal.name for signal in choose_signals(asked)}
    rules = [name for name, of in PRESETS.items() if {rule.signal for rule in of} <= names]
    assert len(rules) > 12
    config = {"rules": rules, "views": ["mojibake", "personal_data", "secrets", "c4@fineweb"]}
    inputs = {
        "documents": [documents],
        "signals": [(signals, "signals")],
        "views": [(signals, "views")],
    }
    return signals, run_stage(Filter, config, inputs)


@pytest.mark.full
def test_bad_texts_are_measured_judged_and_decided_in_any_shards(
    run_stage: Any, make_documents: Any, read_table: Any, judged_by: Any
) -> None:
    told = []
    for sizes in ([len(BAD)], [1] * len(BAD), [9, 0, len(BAD) - 9]):
        documents = make_documents(_shards(sizes))
        signals, decided = _chain(run_stage, documents, judged_by)
        for made in (signals, decided):
            assert made.conservation.records_in == len(BAD)
            assert made.conservation.out + sum(made.conservation.dropped.values()) == len(BAD)
        tables = [
            read_table(made, output)
            for made, output in (
                (signals, "signals"), (signals, "views"), (decided, "ledger"),
                (decided, "documents"),
            )
        ]  # fmt: skip
        told.append(tables)
    for table in told[0]:
        floats = [c for c in table.columns if str(c.type) == "double"]
        assert all(pc.all(pc.is_finite(column)).as_py() is not False for column in floats)
    assert any(told[0][0]["perplexity_bucket"].to_pylist())
    for other in told[1:]:
        assert [table.to_pylist() for table in other] == [table.to_pylist() for table in told[0]]
    ledger = told[0][2].to_pylist()
    assert [row["characters"] for row in ledger] == [len(text) for text in BAD.values()]
    assert ledger[0]["verdict"] == "dropped"


def test_half_a_pair_never_becomes_a_document(make_documents: Any) -> None:
    """Tables are UTF-8, which has no surrogates: Arrow refuses before anything is committed."""
    for text in SURROGATES:
        with pytest.raises(UnicodeEncodeError):
            make_documents([[text]])


def test_a_model_of_another_kind_is_refused_by_name(
    run_stage: Any, make_documents: Any, snapshot: Any, judged_by: Any
) -> None:
    documents = [make_documents([["text"]])]
    not_a_model = snapshot({"words.bin": b"the\nof\n", "words.arpa": b"the\nof\n"}, name="models")
    for config, message in (
        (
            {"published_classifiers": [{"name": "q", "file": "words.bin", "label": "hq"}]},
            r"words\.bin",
        ),
        (
            {"published_ngram_models": [{"file": "words.arpa"}]},
            r"words\.arpa, line \d+: ",
        ),
        ({"published_ngram_models": [{"file": "other.arpa"}]}, "'other.arpa'"),
    ):
        with pytest.raises(InputError, match=message):
            run_stage(Signals, config, {"documents": documents, "published_models": not_a_model})
