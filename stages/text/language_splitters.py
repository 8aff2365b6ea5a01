"""Words of one language by the library that FineWeb-2 split it with, as places in the text.

datatrove's `utils/word_tokenizers.py` is the reference (0.10.1); tokens are equal to its own, white
space around them left out. The libraries take 150 to 4,500 times as long as the compiled splitters
(`tests/benchmarks/language_splitters.py`), so they run only for languages that a config names
(`language_splitters` of `signals`). Each is loaded once in a process, from files of its own
distributions; none downloads, and none writes outside them: jieba's cache in the temporary folder
is not used.

Tokens may overlap: Kiwi's are morphemes, and two that share syllables have the same place. Runs of
20 and more digits and commas are cut before Kiwi sees the text, while its places are taken in the
uncut text, as in datatrove: tokens after such a run are displaced. One text differs: spaCy fails on
"IS_ALPHA" but for the first time in a process, after which datatrove cuts it out; here it is left.
"""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from typing import Any

from artifacts_schema.errors import UsageError
from stages.text.splitters import LANGUAGE_LIBRARIES, SPACY_CODES

Span = tuple[int, int]

SUDACHI_BYTES = 40_000
"""Sudachi takes 49,149 bytes of UTF-8 at most; datatrove cuts texts at this many."""

_SURROGATE = re.compile("[\ud800-\udfff]")
_LONG_NUMBER = re.compile("[0-9,]{20,}")


def find_language_tokens(text: str, language: str) -> list[Span]:
    """The characters [start, end) of each token of `text`, in the order of the library.

    `language` is one of `LANGUAGE_LIBRARIES`. Lone surrogates are read as U+FFFD. UsageError if
    the library is not installed.
    """
    split = load_language_splitter(language)
    return list(_strip(text, split(_SURROGATE.sub("\ufffd", text))))


def _strip(text: str, spans: Iterable[Span]) -> Iterator[Span]:
    """The spans without white space at their ends; those of white space alone are left out."""
    for start, end in spans:
        token = text[start:end]
        if token and not (token[0].isspace() or token[-1].isspace()):
            yield start, min(end, len(text))
        elif stripped := token.strip():
            first = start + len(token) - len(token.lstrip())
            yield first, first + len(stripped)


@cache
def load_language_splitter(language: str) -> Callable[[str], Iterable[Span]]:
    """The splitter of a language. UsageError if its library is not installed."""
    load = _LOADERS.get(language, _load_spacy)
    try:
        with warnings.catch_warnings():  # jieba's escapes, Kiwi's notice about its older models.
            warnings.simplefilter("ignore")
            return load(language)
    except ImportError as error:
        raise UsageError(
            f"words of '{language}' are split by {LANGUAGE_LIBRARIES[language]}, which is not "
            f"installed ({error})",
            where="language_splitters",
            hint="pip install 'ingot[splitters]', or leave the language out",
        ) from error


def _load_spacy(language: str) -> Callable[[str], Iterable[Span]]:
    import spacy

    pipeline = spacy.blank(SPACY_CODES[language])
    tokenize: Any = pipeline.tokenizer  # Without the pipeline's limit on the length of a text.

    def split(text: str) -> Iterator[Span]:
        with pipeline.memory_zone():
            # A name inside spaCy: its second memory zone with it raises an AssertionError.
            for token in tokenize(text.replace("IS_ALPHA", "is_alpha")):
                yield token.idx, token.idx + len(token)

    return split


def _load_jieba(language: str) -> Callable[[str], Iterable[Span]]:
    import jieba

    tokenizer = jieba.Tokenizer()
    # What `initialize` does, without its cache: a file in the temporary folder that anyone may
    # have written.
    tokenizer.FREQ, tokenizer.total = tokenizer.gen_pfdict(tokenizer.get_dict_file())
    tokenizer.initialized = True

    def split(text: str) -> Iterator[Span]:
        return _add_up(tokenizer.cut(text))

    return split


def _add_up(tokens: Iterable[str]) -> Iterator[Span]:
    """Places of tokens that together are the text."""
    start = 0
    for token in tokens:
        yield start, start + len(token)
        start += len(token)


def _load_sudachi(language: str) -> Callable[[str], Iterable[Span]]:
    import sudachipy

    tokenizer = sudachipy.Dictionary(dict="core").tokenizer(mode=sudachipy.SplitMode.A)

    def split(text: str) -> Iterator[Span]:
        for start, end in cut_by_bytes(text, SUDACHI_BYTES):
            for morpheme in tokenizer.tokenize(text[start:end]):
                yield start + morpheme.begin(), start + morpheme.end()

    return split


def cut_by_bytes(text: str, limit: int) -> Iterator[Span]:
    """Pieces of at most `limit` bytes of UTF-8, cut where datatrove's `chunk_text_on_bytes` does:
    after a first guess from the mean width of a character, in steps of ten characters."""
    size = _size(text)
    guess = max(int(limit * len(text) / size - 10), 1) if size else 1
    start = 0
    while start < len(text):
        while _size(text[start : start + guess]) > limit:
            guess = max(guess - 10, 1)
        end = start + guess
        while _size(text[start:end]) < limit and end < len(text):
            end = min(len(text), end + 10)
        if _size(text[start:end]) > limit:
            end -= 10
        yield start, min(end, len(text))
        start = end


def _size(text: str) -> int:
    return len(text.encode("utf-8"))


def _load_kiwi(language: str) -> Callable[[str], Iterable[Span]]:
    import kiwipiepy

    tokenizer = kiwipiepy.Kiwi(model_type="sbg", num_workers=1)

    def split(text: str) -> Iterator[Span]:
        for token in tokenizer.tokenize(_LONG_NUMBER.sub("", text)):
            yield token.start, token.end

    return split


def _load_pythainlp(language: str) -> Callable[[str], Iterable[Span]]:
    # Or importing it makes a folder in the user's home.
    os.environ.setdefault("PYTHAINLP_READ_ONLY", "1")
    from pythainlp.tokenize import word_tokenize

    def split(text: str) -> Iterator[Span]:
        end = 0
        for token in word_tokenize(text, keep_whitespace=False, engine="newmm-safe"):
            start = text.index(token, end)
            end = start + len(token)
            yield start, end

    return split


_LOADERS: dict[str, Callable[[str], Callable[[str], Iterable[Span]]]] = {
    "ja": _load_sudachi,
    "ko": _load_kiwi,
    "th": _load_pythainlp,
    "zh": _load_jieba,
}
