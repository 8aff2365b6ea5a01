"""Perplexities of texts by hand-made models: arithmetic, and which model scores which text."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from artifacts_schema.errors import InputError
from stages.signals import models
from stages.signals.models import PERPLEXITY_SIGNALS, NgramScorer, measure_perplexity

ARPA = """\\data\\
ngram 1=4
ngram 2=2

\\1-grams:
-2\t<unk>
-99\t<s>\t-0.5
-1\t</s>
-0.5\tword\t-0.25

\\2-grams:
-0.25\t<s> word
-0.75\tword </s>

\\end\\
"""
EXPECTED = {
    "word": (1.0 / 2, 1.0 / 2),  # 0.25 after <s>, then 0.75 for </s>.
    "Word!": (3.5 / 3, 3.5 / 3),  # 0.25; 0.25 back-off and 2 for <unk>; 1 for </s>.
    "word\nword word": ((1.0 + 1.75) / 5, 2.5 / 4),  # Between words 0.25 back-off and 0.5.
    "word\n\nword": ((1.0 + 1.5 + 1.0) / 5, 1.75 / 3),  # A blank line: 0.5 back-off, </s> 1.
    " ": (1.5, 1.5),
    "other": (3.5 / 2, 3.5 / 2),  # 0.5 back-off and 2 for <unk>; 1 for </s>.
}
"""log10 of the perplexities by line and as one line, by Katz's back-off in `ARPA`."""


@pytest.fixture(scope="module")
def arpa(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("models") / "toy.arpa"
    path.write_text(ARPA)
    return path


def scored(scorers: list[NgramScorer], by_language: list[str | None]) -> list[float | None]:
    """Perplexity of the text "word" in each of these languages."""
    return measure_perplexity(["word"] * len(by_language), by_language, scorers)["perplexity"]


def test_perplexities_are_those_of_the_arithmetic(arpa: Path) -> None:
    texts = list(EXPECTED)
    found = measure_perplexity(texts, ["en"] * len(texts), [NgramScorer(arpa, "en")])
    assert list(found) == [signal.name for signal in PERPLEXITY_SIGNALS]
    for row, (text, (by_line, as_one)) in enumerate(EXPECTED.items()):
        assert math.log10(found["line_perplexity"][row]) == pytest.approx(by_line), text
        assert math.log10(found["perplexity"][row]) == pytest.approx(as_one), text
    assert found["perplexity_bucket"] == [None] * len(texts)


def test_the_empty_text_has_none(arpa: Path) -> None:
    found = measure_perplexity(["", "word"], ["en", "en"], [NgramScorer(arpa, "en")])
    assert [values[0] for values in found.values()] == [None, None, None]
    assert found["perplexity"][1] == pytest.approx(10**0.5)


def test_buckets_part_the_perplexity_by_line(arpa: Path) -> None:
    """A cut-off belongs to what is above it; as one line the second text would be in the tail."""
    texts = ["word", "word\nword word", "other"]
    by_line = measure_perplexity(texts, ["en"] * 3, [NgramScorer(arpa, "en")])["line_perplexity"]
    for cutoffs, expected in [
        ((10**0.52, 10**0.6), ["head", "middle", "tail"]),
        ((by_line[0], by_line[1]), ["middle", "tail", "tail"]),
    ]:
        found = measure_perplexity(texts, ["en"] * 3, [NgramScorer(arpa, "en", cutoffs=cutoffs)])
        assert found["perplexity_bucket"] == expected


def test_a_text_is_scored_by_the_model_of_its_language_alone(arpa: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.arpa"
    other.write_text(ARPA.replace("-0.25\t<s> word", "-0.45\t<s> word"))
    en, de = pytest.approx(10**0.5), pytest.approx(10**0.6)
    asked = ["en", "de", "en-GB", "en_US", "fr", None, "DE"]
    named = [NgramScorer(arpa, "en"), NgramScorer(other, "de")]
    assert scored(named, asked) == [en, de, en, en, None, None, de]
    rest = [NgramScorer(arpa, None), NgramScorer(other, "de")]
    assert scored(rest, asked) == [en, de, en, en, en, en, de]
    exact = [NgramScorer(arpa, "pt-BR"), NgramScorer(other, "pt")]
    assert scored(exact, ["pt-BR", "pt-PT", "pt"]) == [en, de, de]


def test_a_model_that_no_text_asks_for_is_not_read(tmp_path: Path) -> None:
    assert scored([NgramScorer(tmp_path / "absent.arpa", "en")], ["de", None]) == [None, None]


def test_values_do_not_depend_on_what_is_scored_together(
    arpa: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = [*EXPECTED, "", *reversed(EXPECTED)]
    languages = ["en", "de", "en"] * len(texts)
    scorers = [NgramScorer(arpa, "en", cutoffs=(3.0, 4.0))]
    together = measure_perplexity(texts, languages[: len(texts)], scorers)
    for limit in (1, 12):
        monkeypatch.setattr(models, "BATCH_CHARACTERS", limit)
        assert measure_perplexity(texts, languages[: len(texts)], scorers) == together


@settings(max_examples=40, deadline=None)
@given(st.lists(st.text(st.sampled_from("word \n\0\ud800é١\u200f\r\x85，")), max_size=4))
def test_any_text_has_finite_perplexities_or_none(arpa: Path, texts: list[str]) -> None:
    found = measure_perplexity(texts, [None] * len(texts), [NgramScorer(arpa, None)])
    for text, by_line, as_one in zip(
        texts, found["line_perplexity"], found["perplexity"], strict=True
    ):
        assert (by_line is None) == (as_one is None) == (text == "")
        assert text == "" or (math.isfinite(by_line) and by_line >= 1 and as_one >= 1)


def test_equal_lines_have_the_perplexity_of_one(arpa: Path) -> None:
    found = measure_perplexity(["word\n" * 300_000 + "word"], ["en"], [NgramScorer(arpa, "en")])
    assert found["line_perplexity"] == [pytest.approx(10**0.5)]


def test_an_error_names_the_file_that_was_given(arpa: Path, tmp_path: Path) -> None:
    (tmp_path / "cut.arpa").write_text(ARPA[: ARPA.index("-0.75")])
    with pytest.raises(InputError, match=r"^signals\.published_models: cut\.arpa, line 13"):
        scored([NgramScorer(tmp_path / "cut.arpa", "en")], ["en"])
    (tmp_path / "pieces").write_text("no model")
    (tmp_path / "toy.arpa").write_text(ARPA)
    pieces = NgramScorer(tmp_path / "toy.arpa", "en", tmp_path / "pieces")
    with pytest.raises(InputError, match=r"^signals\.published_models: pieces"):
        scored([pieces], ["en"])
