"""Perplexity of texts and lines under an n-gram model, and CCNet's buckets of it.

A model is one that we estimated, an ARPA file, or a binary of kenlm. Texts become lines of
tokens: words for our own models, SentencePiece pieces for published ones, after CCNet's
normalisation (Wenzek et al. 2020, cc_net/text_normalizer.py). In its order: lower case; accents
dropped (NFD without Mn); each digit becomes 0; typographic and full-width punctuation becomes
ASCII; control characters are removed, tabs among them. CCNet's table maps the full-width digit
one to a quotation mark, an error that datatrove and DCLM copied; it is left out, and makes no
difference: digits are zeros before the table is read.

PPL = 10^(-sum of log10 p / sum of lengths), a length being the tokens of a line and its end
(cc_net/perplexity.py). CCNet's function goes line by line, blank lines too; its pipeline gave it
whole texts as one line, as datatrove and DCLM do: the two differ, so both are here.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from artifacts_schema.errors import InputError, UsageError
from stages.language_model.arpa import read_arpa
from stages.language_model.config import NgramConfig, Normalisation
from stages.language_model.tables import (
    Table,
    line_sums,
    map_model,
    pad_tables,
    read_description,
    token_scores,
)
from stages.language_model.vocabulary import Lines, Vocabulary
from stages.text.batch import split_texts
from stages.text.splitters import Splitter

Scores = tuple[NDArray[np.float64], NDArray[np.int64]]
"""([lines] log10 probability with </s>, [lines] tokens with </s>)."""


@dataclass(frozen=True, eq=False)
class NgramModel:
    """A back-off n-gram model in hash tables; those of a folder are mapped and shared."""

    words: Vocabulary
    unigrams: NDArray[np.float32]
    tables: tuple[Table, ...]
    order: int
    config: NgramConfig | None = None

    @classmethod
    def load(cls, path: Path) -> NgramModel:
        """The model in a folder that `estimate` made, or in an ARPA file (.gz, .zst).

        Raises InputError where it is not whole.
        """
        config = None
        if path.is_dir():
            description, config = read_description(path)
            words, unigrams, tables = map_model(path, description)
        else:
            words, unigrams, tables = read_arpa(path)
        return cls(words, unigrams, pad_tables(tables), len(tables) + 1, config)

    def token_scores(self, lines: Lines) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """(log10 probabilities of all tokens and each line's </s>, [lines + 1] offsets in them)."""
        ids, offsets = self.words.ids(lines)
        scores = token_scores(ids, offsets, self.unigrams, self.tables, self.order)
        return scores, offsets + np.arange(len(offsets))

    def line_scores(self, lines: Lines) -> Scores:
        """log10 probability and length of each line, both with its </s>."""
        scores, offsets = self.token_scores(lines)
        return line_sums(scores, offsets), np.diff(offsets)


class KenlmModel:
    """A binary model of kenlm, read and scored by kenlm itself (the extra `kenlm`)."""

    config: NgramConfig | None = None

    def __init__(self, path: Path) -> None:
        try:
            import kenlm
        except ImportError:
            raise UsageError(
                "a binary model of kenlm needs kenlm",
                where=str(path),
                hint="pip install 'ingot[kenlm]', or give the model's .arpa file",
            ) from None
        try:
            self._model: Any = kenlm.Model(str(path))
        except OSError as error:
            raise InputError(f"kenlm cannot read it: {error}", where=str(path)) from None

    def line_scores(self, lines: Lines) -> Scores:
        """log10 probability and length of each line, both with its </s>."""
        data, ends = lines.data.tobytes(), lines.offsets.tolist()
        texts = [data[start:end].replace(b"\0", b" ") for start, end in pairwise(ends)]
        scores = [self._model.score(text.decode(errors="replace")) for text in texts]
        return np.array(scores, np.float64), np.array([len(t.split()) + 1 for t in texts], np.int64)


LanguageModel = NgramModel | KenlmModel


def load(path: Path) -> LanguageModel:
    """A model by its file's name: `.bin` by kenlm, a folder or another file by `NgramModel`."""
    return KenlmModel(path) if path.suffix == ".bin" else NgramModel.load(path)


_PUNCTUATION: dict[str, str] = {
    **dict.fromkeys("，、", ","), "。": ".", "．": ". ", "…": "...", **dict.fromkeys("：∶", ":"),
    "；": ";", "？": "?", "！": "!", "％": "%", "（": "(", "）": ")", "【": "[", "】": "]",
    "〈": "<", "〉": ">",
    **dict.fromkeys("„”“«»」「《》", '"'), **dict.fromkeys("´’", "'"),
    **dict.fromkeys("–━►", "-"), "—": " - ", "～": "~",
}  # fmt: skip

_ASCII: dict[int, str] = {
    **dict.fromkeys([*range(10), *range(11, 32), *range(127, 160)], ""),
    **dict.fromkeys(map(ord, "0123456789"), "0"),
}
_ANY = {**_ASCII, **{ord(char): plain for char, plain in _PUNCTUATION.items()}}
_DIGIT = re.compile(r"\d")
_SPACE, _FEED = np.uint32(ord(" ")), np.uint32(ord("\n"))


def normalise_lines(text: str) -> str:
    """Each line of `text` as CCNet normalises it; lines end at line feeds alone.

    Any string is fine. White space at the ends of lines, which CCNet strips, stays.
    """
    lowered = text.lower()
    if lowered.isascii():
        return lowered.translate(_ASCII)
    plain = unicodedata.normalize("NFD", lowered)
    accents = {ord(char): "" for char in set(plain) if unicodedata.category(char) == "Mn"}
    return _DIGIT.sub("0", plain).translate({**_ANY, **accents})


def normalise_text(text: str) -> str:
    """`text` as one line, as CCNet's own pipeline had it: line feeds go like other controls.

    So the last word of a line and the first of the next become one.
    """
    return normalise_lines(text.strip()).replace("\n", "")


TextLines = tuple[Lines, NDArray[np.int64]]
"""(lines of all texts, [texts + 1] offsets: text d has the lines [offsets[d], offsets[d + 1]))."""


class WordTokens:
    """Lines of words, as the splitter finds them in the normalised text. A line feed ends a word.

    The empty text has no line, a blank line no word.
    """

    def __init__(self, normalisation: Normalisation, splitter: Splitter) -> None:
        self._normalise = normalise_lines if normalisation == "ccnet" else str
        self._splitter: Splitter = splitter

    @classmethod
    def from_config(cls, config: NgramConfig) -> WordTokens:
        """Those that a model was estimated with."""
        return cls(config.normalisation, config.splitter)

    def lines(self, texts: Sequence[str]) -> TextLines:
        """Lines end at line feeds."""
        batch = split_texts([self._normalise(text) for text in texts], self._splitter)
        starts, ends = batch.tokens.starts, batch.tokens.ends
        borders = np.zeros(len(batch.codes) + 1, np.int8)
        borders[starts] += 1
        borders[ends] -= 1
        outside = np.cumsum(borders[:-1], dtype=np.int8) == 0
        codes = np.where(outside & (batch.codes != _FEED), _SPACE, batch.codes)
        codes[codes & ~np.uint32(0x7FF) == 0xD800] = 0xFFFD  # Lone surrogates have no UTF-8.
        # A space after each token, a line feed after each text that is not empty.
        filled = np.array([bool(text) for text in texts], np.bool_)
        text_ends = batch.offsets[1:][filled]
        separators = np.repeat((_SPACE, _FEED), (len(ends), len(text_ends)))
        codes = np.insert(codes, np.concatenate((ends, text_ends)), separators)
        data = np.frombuffer(codes.astype("<u4").tobytes().decode("utf-32-le").encode(), np.uint8)
        counts = filled + [text.count("\n") for text in batch.texts]
        return Lines(data, np.append(0, np.flatnonzero(data == _FEED) + 1)), _offsets(counts)

    def joined(self, by_line: TextLines, texts: Sequence[str]) -> TextLines:
        """Each text as one line: the same words, since a line feed only separates them."""
        lines, offsets = by_line
        filled = np.diff(offsets) > 0
        ends = np.concatenate(([0], lines.offsets[offsets[1:][filled]]))
        return Lines(lines.data, ends), _offsets(filled)


class PieceTokens:
    """Lines of pieces of a SentencePiece model, of the text as CCNet normalises it."""

    def __init__(self, path: Path) -> None:
        from sentencepiece import SentencePieceProcessor

        self._pieces: Any = SentencePieceProcessor()
        try:
            self._pieces.Load(str(path))
        except (OSError, RuntimeError) as error:
            raise InputError(f"not a SentencePiece model: {error}", where=str(path)) from None

    def lines(self, texts: Sequence[str]) -> TextLines:
        """Lines end at line feeds."""
        split = [normalise_lines(text).split("\n") if text else [] for text in texts]
        encoded = self._encode([line.strip() for lines in split for line in lines])
        return encoded, _offsets([len(lines) for lines in split])

    def joined(self, by_line: TextLines, texts: Sequence[str]) -> TextLines:
        """Each text as one line; pieces may span what was a line feed, so it is encoded again."""
        filled = [normalise_text(text) for text in texts if text]
        return self._encode(filled), _offsets([bool(text) for text in texts])

    def _encode(self, lines: list[str]) -> Lines:
        plain = [line.encode("utf-8", "replace").decode() for line in lines]
        return Lines.from_texts([" ".join(pieces) for pieces in self._pieces.EncodeAsPieces(plain)])


Tokens = WordTokens | PieceTokens
"""How texts become lines of tokens."""


def _offsets(counts: Sequence[int] | NDArray[Any]) -> NDArray[np.int64]:
    offsets = np.zeros(len(counts) + 1, np.int64)
    np.cumsum(counts, out=offsets[1:])
    return offsets


_MOST = 300.0
"""log10 of the greatest perplexity, so that every one is finite."""


@dataclass(frozen=True, eq=False)
class LineScores:
    """Scores of the lines of texts; text d has the lines [offsets[d], offsets[d + 1])."""

    log10: NDArray[np.float64]
    lengths: NDArray[np.int64]
    offsets: NDArray[np.int64]

    def perplexities(self) -> NDArray[np.float64]:
        """[texts]; NaN for the empty text."""
        return perplexities(_sums(self.log10, self.offsets), _sums(self.lengths, self.offsets))


def line_scores(model: LanguageModel, tokens: Tokens, texts: Sequence[str]) -> LineScores:
    """Scores of each line of each text."""
    return _scores(model, tokens.lines(texts))


def line_and_text_scores(
    model: LanguageModel, tokens: Tokens, texts: Sequence[str]
) -> tuple[LineScores, LineScores]:
    """Scores of each line of each text, and of each text as one line; both normalise it once."""
    by_line = tokens.lines(texts)
    return _scores(model, by_line), _scores(model, tokens.joined(by_line, texts))


def _scores(model: LanguageModel, text_lines: TextLines) -> LineScores:
    lines, offsets = text_lines
    return LineScores(*model.line_scores(lines), offsets)


def _sums(values: NDArray, offsets: NDArray[np.int64]) -> NDArray:
    """Sums of values[offsets[i]:offsets[i + 1]], each from its own values alone, in order."""
    filled = np.flatnonzero(np.diff(offsets))
    sums = np.zeros(len(offsets) - 1, values.dtype)
    if len(filled):
        sums[filled] = np.add.reduceat(values, offsets[filled])
    return sums


def perplexities(log10: NDArray[np.float64], lengths: NDArray[np.int64]) -> NDArray[np.float64]:
    """10^(-log10 / length); NaN where the length is 0."""
    means = np.divide(-log10, lengths, out=np.full(len(log10), np.nan), where=lengths > 0)
    return np.power(10.0, np.minimum(means, _MOST))


def bucket(perplexity: float, at: Sequence[float] | None) -> str:
    """`head` below the first cut-off, `middle` below the second, else `tail`.

    `all` without cut-offs or without a perplexity, as in CCNet.
    """
    if at is None or np.isnan(perplexity):
        return "all"
    return "head" if perplexity < at[0] else "middle" if perplexity < at[1] else "tail"
