"""The share of a document's lines that are in its language."""

from __future__ import annotations

from pathlib import Path

from stages.signals.models import identify_languages, measure_line_languages

ENGLISH = "The committee will meet again on Thursday to settle the budget."
GERMAN = "Der Ausschuss trifft sich am Donnerstag wieder, um den Haushalt zu beraten."


def test_lines_in_another_language_lower_the_share(shared_data: Path) -> None:
    model = shared_data / "models/lid.176.ftz"
    texts = [
        f"{ENGLISH}\n{ENGLISH}\n{ENGLISH}\nMenü\n{GERMAN}",  # A short line is not judged.
        f"{GERMAN}\r\n{GERMAN}",
        "Short lines\nonly here",
        "\ud800 " + ENGLISH,
        "",
    ]
    names, _ = identify_languages(texts, model, 1000)
    assert names == ["en", "de", "en", "en", None]
    shares = measure_line_languages(texts, names, model, 1000)
    english, german = 3 * len(ENGLISH), len(GERMAN)
    assert shares == [english / (english + german), 1.0, None, 1.0, None]


def test_only_the_beginning_is_judged(shared_data: Path) -> None:
    model = shared_data / "models/lid.176.ftz"
    text = f"{ENGLISH}\n{GERMAN}"
    assert measure_line_languages([text], ["en"], model, len(ENGLISH)) == [1.0]
