"""What models and lists say of a document goes by the language that was measured, not declared."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from stages.quality_models.config import ClassifierConfig
from stages.quality_models.models import train, write_lines
from stages.signals.config import SignalsConfig
from stages.signals.measure import measure
from stages.signals.stage import Signals

ENGLISH = "the cat sat on the mat of this house"
GERMAN = "die katze lag auf der matte im haus"
ARPA = b"""\\data\\
ngram 1=4
ngram 2=1

\\1-grams:
-1\t<unk>
-99\t<s>\t0
-1\t</s>
-1\tthe\t0

\\2-grams:
-0.5\t<s> the

\\end\\
"""


@pytest.fixture
def language_model(tmp_path: Path) -> bytes:
    """Tells the two texts apart by their words."""
    lines, model = tmp_path / "lines.txt", tmp_path / "model.bin"
    write_lines([("en", ENGLISH), ("de", GERMAN)] * 50, lines, lower_case=False)
    config = ClassifierConfig(buckets=10, dim=4, word_ngrams=1, learning_rate=0.5, epochs=20)
    train(lines, model, config, lambda: None)
    return model.read_bytes()


def test_the_measured_language_decides_which_lists_and_models_judge(
    run_stage: Any, make_documents: Any, snapshot: Any, read_table: Any, language_model: bytes
) -> None:
    """The third text is English by its beginning, the only part that is looked at."""
    rows = [
        {"text": ENGLISH, "language": "de"},
        {"text": GERMAN, "language": "en"},
        {"text": f"{ENGLISH}\n" + f"{GERMAN}\n" * 9, "language": "de"},
    ]
    config = {
        "language_characters": len(ENGLISH),
        "published_ngram_models": [{"file": "the.arpa", "language": "en"}],
        "published_classifiers": [{"name": "english", "file": "en.bin", "label": "en"}],
    }
    inputs = {
        "documents": [make_documents([rows])],
        "language_model": snapshot({"model.bin": language_model}, name="lid"),
        "word_lists": snapshot({"en": b"house\n", "de": b"haus\n"}, name="words"),
        "published_models": snapshot({"the.arpa": ARPA, "en.bin": language_model}, name="models"),
    }
    found = read_table(run_stage(Signals, config, inputs), "signals").to_pydict()
    assert found["language"] == ["en", "de", "en"]
    assert found["bad_words"] == [1, 1, 1]
    assert found["line_language_share"] == [1, 1, 1]
    assert [value is None for value in found["perplexity"]] == [False, True, False]
    english, german, mostly_german = found["english_score"]  # Of the whole text, in any language.
    assert english > mostly_german > german


def test_the_splitter_of_the_config_splits() -> None:
    """spaCy parts "can't" and "cannot" and keeps "U.S." whole; Unicode's rules do the reverse."""
    text = "They can't leave the U.S. cannot you?"
    tokens = {
        splitter: measure([text], SignalsConfig(splitter=splitter)).columns["word_tokens"].tolist()
        for splitter in ("unicode", "spacy_english")
    }
    assert tokens == {"unicode": [9], "spacy_english": [10]}


def test_a_repair_gives_way_to_a_key() -> None:
    """A space is part of the mojibake, so its one span would cover the key."""
    (found,) = measure(["When I firstÂ saw AKIAQYLPMN5HHHFPZAM2 at the cafÃ©"]).views
    assert [span.label for span in found["secrets"]] == ["aws_access_key"]
    assert found["mojibake"] == []
