"""What public tools say of texts, run by the Python of an environment that has them.

    PYTHON tests/benchmarks/labelled_peers.py presidio|py3langid|lingua < texts > answers

Texts and answers are JSON, one a line. An answer of Presidio is a list of (start, end, type) by its
recognizers with patterns and check digits, no model and no context; one of a language
identifier is a language code. This file imports nothing of the project.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any


def presidio() -> Callable[[str], Any]:
    """Its e-mail, phone, IBAN, card and IP recognizers as they stand, each called by itself."""
    from presidio_analyzer import EntityRecognizer
    from presidio_analyzer import predefined_recognizers as known

    recognizers: list[EntityRecognizer] = [
        known.EmailRecognizer(),
        known.PhoneRecognizer(),
        known.IbanRecognizer(),
        known.CreditCardRecognizer(),
        known.IpRecognizer(),
    ]

    def analyze(text: str) -> list[tuple[int, int, str]]:
        found = {
            (result.start, result.end, result.entity_type)
            for recognizer in recognizers
            for result in recognizer.analyze(text, recognizer.supported_entities, None) or ()
        }
        return sorted(found)

    return analyze


def py3langid() -> Callable[[str], Any]:
    """Its 97 languages."""
    import py3langid

    return lambda text: py3langid.classify(text)[0]


def lingua() -> Callable[[str], Any]:
    """Its 75 languages, in the accurate mode."""
    from lingua import LanguageDetectorBuilder

    detector = LanguageDetectorBuilder.from_all_languages().build()

    def name(text: str) -> str | None:
        found = detector.detect_language_of(text)
        return None if found is None else found.iso_code_639_1.name.lower()

    return name


PEERS = {"presidio": presidio, "py3langid": py3langid, "lingua": lingua}


def main() -> None:
    """Answer each text."""
    ask = PEERS[sys.argv[1]]()
    for line in sys.stdin:
        print(json.dumps(ask(json.loads(line))))


if __name__ == "__main__":
    main()
