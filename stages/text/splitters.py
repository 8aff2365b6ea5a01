"""The word splitters by name, in a module of its own so that a config imports no NumPy.

Two are compiled and split any text. The others are libraries, one for each language, as FineWeb-2
(Penedo et al. 2025, arXiv 2506.20920) used them: the table is datatrove's
`assets/tokenizer_assignment.csv` for the languages of `stages/filter/fineweb_2.json`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

Splitter = Literal["unicode", "spacy_english"]

_OWN_RULES = (
    *("af", "am", "ar", "az", "bg", "ca", "cs", "da", "de", "el", "es", "et", "eu"),
    *("fa", "fi", "fr", "ga", "he", "hr", "hu", "hy", "id", "is", "it", "ky", "la"),
    *("lb", "lt", "lv", "mk", "ms", "nl", "pl", "pt", "ro", "ru", "sk", "sl", "sq"),
    *("sr", "sv", "tl", "tr", "tt", "uk", "yo"),
)
_NEAR_RULES = {
    "sr": ("bs",),
    "xx": ("eo", "ka", "so", "tg", "uz", "yi"),
    "en": ("fy",),
    "ms": ("mg", "su"),
    "nb": ("nn", "no"),
    "es": ("oc",),
    "tn": ("sw",),
    "tr": ("tk",),
}
SPACY_CODES: Mapping[str, str] = {
    **{language: language for language in _OWN_RULES},
    **{language: code for code, near in _NEAR_RULES.items() for language in near},
}
"""Language, as lid.176 names it → the blank language of spaCy whose rules split it."""

LANGUAGE_LIBRARIES: Mapping[str, str] = {
    **dict.fromkeys(SPACY_CODES, "spaCy"),
    "ja": "SudachiPy",
    "ko": "Kiwi",
    "th": "PyThaiNLP",
    "zh": "jieba",
}
"""Language → the library of the extra `splitters` that splits it."""

_INDIC = ("as", "bn", "gu", "hi", "kn", "ml", "mr", "ne", "or", "pa", "ps", "sd", "si", "ta")
_STANZA = ("be", "br", "cy", "gd", "gl", "kk", "mn", "mt", "ug")
UNSUPPORTED: Mapping[str, str] = {
    **dict.fromkeys((*_INDIC, "te", "ur"), "the Indic NLP library"),
    **dict.fromkeys(_STANZA, "Stanza, whose models are downloads"),
    "bo": "botok",
    "km": "khmer-nltk",
    "lo": "LaoNLP",
    "my": "pyidaungsu",
    "vi": "pyvi",
}
"""Language → the library that split it for FineWeb-2 and that Ingot does not use."""
