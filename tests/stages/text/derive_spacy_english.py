"""Writes `stages/text/spacy_english.json` from an installed spaCy: run it with that Python.

The character classes are asked of spaCy's own patterns, character by character; exceptions with
white space in them are left out, since no chunk has any.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable
from pathlib import Path

TARGET = Path(__file__).parents[3] / "stages" / "text" / "spacy_english.json"


def derived() -> dict[str, object]:
    """The contents of the file."""
    import spacy
    from spacy.lang import char_classes as given
    from spacy.tokenizer import Tokenizer

    nlp = spacy.blank("en")
    full = nlp.tokenizer
    searches = (full.prefix_search, full.suffix_search, full.infix_finditer)
    bare = Tokenizer(nlp.vocab, {}, *searches, url_match=full.url_match)
    rules = {
        rule: [piece[spacy.symbols.ORTH] for piece in pieces]
        for rule, pieces in full.rules.items()
        if not re.search(r"\s", rule)
    }
    again = [
        rule
        for rule in rules
        if full.find_prefix(rule) or full.find_infix(rule) or full.find_suffix(rule)
    ]
    before_stop = given.ALPHA_LOWER + r"0-9%²\-\+" + given.PUNCT + f"(?:{given.CONCAT_QUOTES})"
    tails = "|".join([given.UNITS, given.CURRENCY]).replace("\\", "").split("|")
    return {
        "source": "spaCy: spacy/lang/{char_classes,punctuation,tokenizer_exceptions}.py and en/",
        "version": spacy.__version__,
        "licence": "MIT, Copyright (C) 2016-2024 ExplosionAI GmbH",
        "classes": {
            "prefix": _ranges(lambda char: char != "+" and full.find_prefix(char) == 1),
            "suffix": _ranges(lambda char: full.find_suffix(char) == 1),
            "infix": _ranges(lambda char: bool(full.find_infix(char))),
            "alpha": _ranges(_in_class(given.ALPHA)),
            "lower": _ranges(_in_class(given.ALPHA_LOWER)),
            "upper": _ranges(_in_class(given.ALPHA_UPPER)),
            "quote": _ranges(_in_class(given.CONCAT_QUOTES)),
            "before_stop": _ranges(_in_class(before_stop)),
        },
        "after_digit": sorted(set(tails)),
        "exceptions": sorted(" ".join(pieces) for pieces in rules.values()),
        "found_again": sorted(
            " ".join(pieces) for rule in again if len(pieces := [t.text for t in bare(rule)]) > 1
        ),
    }


def _in_class(members: str) -> Callable[[str], bool]:
    search = re.compile(f"[{members}]").match
    return lambda char: search(char) is not None


def _ranges(test: Callable[[str], bool]) -> str:
    """The code points that pass, in hexadecimal: `21 2e-2f`."""
    codes = [code for code in range(sys.maxunicode + 1) if test(chr(code))]
    parts: list[list[int]] = []
    for code in codes:
        if parts and parts[-1][1] == code - 1:
            parts[-1][1] = code
        else:
            parts.append([code, code])
    return " ".join(f"{a:x}" if a == b else f"{a:x}-{b:x}" for a, b in parts)


if __name__ == "__main__":
    text = json.dumps(derived(), ensure_ascii=False, indent=1)
    TARGET.write_text(text + "\n", encoding="utf-8")
