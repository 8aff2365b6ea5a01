"""Phrases of machine translation and of spam for search engines."""

from __future__ import annotations

import itertools

from stages.signals.groups import PHRASE_SIGNALS, load_phrases, measure_phrases


def test_different_phrases_are_counted_once_each() -> None:
    texts = [
        "select language▼ this page was automatically translated, automatically translated.",
        "buy cheap shoes at our online casino; free spins! click here to win. free spins!",
        "die seite ist maschinell übersetzt",
        "he bought a cheap ticket to the casino and lost his shoes",
        "",
    ]
    assert measure_phrases(texts) == {
        "machine_translation_marks": [2, 0, 1, 0, 0],
        "seo_spam_marks": [0, 4, 0, 0, 0],
    }


def test_no_phrase_holds_another_and_all_are_in_lower_case() -> None:
    """Else one phrase in a text would count as two, or could never be found."""
    for signal in PHRASE_SIGNALS:
        known = load_phrases(signal.name)
        assert all(phrase == phrase.lower() for phrase in known)
        assert not any(one in other for one, other in itertools.permutations(known, 2))
