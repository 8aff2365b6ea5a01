"""The word splitters by name, in a module of its own so that a config imports no NumPy.

Two are compiled and split any text. The others are libraries, one for each language, as FineWeb-2
(Penedo et al. 2025, arXiv 2506.20920) used them: the table is datatrove's
`assets/tokenizer_assignment.csv` for the languages of `stages/filter/fineweb_2.json`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

Splitter = Literal["unicode", "spacy_english"]

SPACY_CODES: Mapping[str, str] = {
    "af": "af",
    "am": "am",
    "ar": "ar",
    "az": "az",
    "bg": "bg",
    "bs": "sr",
    "ca": "ca",
    "cs": "cs",
    "da": "da",
    "de": "de",
    "el": "el",
    "eo": "xx",
    "es": "es",
    "et": "et",
    "eu": "eu",
    "fa": "fa",
    "fi": "fi",
    "fr": "fr",
    "fy": "en",
    "ga": "ga",
    "he": "he",
    "hr": "hr",
    "hu": "hu",
    "hy": "hy",
    "id": "id",
    "is": "is",
    "it": "it",
    "ka": "xx",
    "ky": "ky",
    "la": "la",
    "lb": "lb",
    "lt": "lt",
    "lv": "lv",
    "mg": "ms",
    "mk": "mk",
    "ms": "ms",
    "nl": "nl",
    "nn": "nb",
    "no": "nb",
    "oc": "es",
    "pl": "pl",
    "pt": "pt",
    "ro": "ro",
    "ru": "ru",
    "sk": "sk",
    "sl": "sl",
    "so": "xx",
    "sq": "sq",
    "sr": "sr",
    "su": "ms",
    "sv": "sv",
    "sw": "tn",
    "tg": "xx",
    "tk": "tr",
    "tl": "tl",
    "tr": "tr",
    "tt": "tt",
    "uk": "uk",
    "uz": "xx",
    "yi": "xx",
    "yo": "yo",
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
