"""Texts as lines of tokens: words for models of our own, SentencePiece for published ones."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from artifacts_schema.errors import InputError
from stages.language_model.ccnet import normalise_lines, normalise_text
from stages.language_model.config import NgramConfig, Normalisation
from stages.language_model.vocabulary import Lines
from stages.text.native import compiled
from stages.text.split import Splitter, batch_of

TextLines = tuple[Lines, NDArray[np.int64]]
"""(lines of all texts, [texts + 1] offsets: text d has the lines [offsets[d], offsets[d + 1]))."""


class Tokens(Protocol):
    """How texts become lines of tokens. The empty text has no line, blank lines no token."""

    def lines(self, texts: Sequence[str]) -> TextLines:
        """Lines end at line feeds, as CCNet's."""

    def whole(self, texts: Sequence[str]) -> TextLines:
        """Each text as one line, as CCNet's pipeline, datatrove and DCLM score it."""

    def joined(self, by_line: TextLines, texts: Sequence[str]) -> TextLines:
        """What `whole` gives for texts of which `lines` gave `by_line`."""


class WordTokens:
    """Words of the normalised text, as the splitter has them. A line feed ends a word."""

    def __init__(self, normalisation: Normalisation, splitter: Splitter) -> None:
        self._normalise = normalise_lines if normalisation == "ccnet" else str
        self._splitter: Splitter = splitter

    @classmethod
    def of(cls, config: NgramConfig) -> WordTokens:
        """Those that a model was estimated with."""
        return cls(config.normalisation, config.splitter)

    def lines(self, texts: Sequence[str]) -> TextLines:
        """Lines end at line feeds."""
        return self._split(texts, at_line_feeds=True)

    def whole(self, texts: Sequence[str]) -> TextLines:
        """Each text as one line."""
        return self._split(texts, at_line_feeds=False)

    def joined(self, by_line: TextLines, texts: Sequence[str]) -> TextLines:
        """What `whole` gives: the same words, for a line feed only parts them."""
        lines, offsets = by_line
        filled = np.diff(offsets) > 0
        ends = np.concatenate(([0], lines.offsets[offsets[1:][filled]]))
        return Lines(lines.data, ends), _offsets(filled)

    def _split(self, texts: Sequence[str], at_line_feeds: bool) -> TextLines:
        batch = batch_of([self._normalise(text) for text in texts], self._splitter)
        counts = [
            (1 + plain.count("\n") * at_line_feeds) if text else 0
            for text, plain in zip(texts, batch.texts, strict=True)
        ]
        offsets = _offsets(counts)
        tokens, codes = batch.tokens, batch.codes
        data = np.empty(4 * int(tokens.lengths.sum()) + len(tokens.starts), np.uint8)
        ends = np.zeros(int(offsets[-1]) + 1, np.int64)
        used = _write_lines(
            codes, batch.offsets, offsets, tokens.offsets, tokens.starts, tokens.ends,
            at_line_feeds,
            data, ends,
        )  # fmt: skip
        return Lines(data[:used], ends), offsets


class PieceTokens:
    """Pieces of a SentencePiece model of the text as CCNet normalises it."""

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
        return self._encoded([line.strip() for lines in split for line in lines]), _offsets(
            [len(lines) for lines in split]
        )

    def whole(self, texts: Sequence[str]) -> TextLines:
        """Each text as one line, without its line feeds."""
        filled = [normalise_text(text) for text in texts if text]
        return self._encoded(filled), _offsets([bool(text) for text in texts])

    def joined(self, by_line: TextLines, texts: Sequence[str]) -> TextLines:
        """What `whole` gives: pieces go over what was a line feed, so they are made anew."""
        return self.whole(texts)

    def _encoded(self, lines: list[str]) -> Lines:
        plain = [line.encode("utf-8", "replace").decode() for line in lines]
        return Lines.of([" ".join(pieces) for pieces in self._pieces.EncodeAsPieces(plain)])


def _offsets(counts: Sequence[int] | NDArray[np.bool_]) -> NDArray[np.int64]:
    offsets = np.zeros(len(counts) + 1, np.int64)
    np.cumsum(counts, out=offsets[1:])
    return offsets


@compiled
def _write_lines(
    codes: NDArray[np.uint32],
    texts: NDArray[np.int64],
    lines: NDArray[np.int64],
    offsets: NDArray[np.int64],
    starts: NDArray[np.int64],
    ends: NDArray[np.int64],
    at_line_feeds: bool,
    data: NDArray[np.uint8],
    line_ends: NDArray[np.int64],
) -> int:
    """The tokens in UTF-8, a space after each, into `data`; where lines end into `line_ends`."""
    at, line = 0, 0
    for text in range(len(texts) - 1):
        if lines[text] == lines[text + 1]:
            continue
        place = texts[text]
        for token in range(offsets[text], offsets[text + 1]):
            line = _end_lines(codes, place, starts[token], at_line_feeds, at, line, line_ends)
            for i in range(starts[token], ends[token]):
                at = _write_utf8(codes[i], data, at)
            data[at] = 32
            at += 1
            place = ends[token]
        line = 1 + _end_lines(codes, place, texts[text + 1], at_line_feeds, at, line, line_ends)
        line_ends[line] = at
    return at


@compiled
def _end_lines(
    codes: NDArray[np.uint32],
    place: int,
    to: int,
    at_line_feeds: bool,
    at: int,
    line: int,
    line_ends: NDArray[np.int64],
) -> int:
    if at_line_feeds:
        for i in range(place, to):
            if codes[i] == 10:
                line += 1
                line_ends[line] = at
    return line


@compiled
def _write_utf8(code: np.uint32, data: NDArray[np.uint8], at: int) -> int:
    """A code point in UTF-8, a lone surrogate as U+FFFD. Where it ends."""
    value = int(np.int64(code))
    if 0xD800 <= value < 0xE000:
        value = 0xFFFD
    if value < 0x80:
        data[at] = value
        return at + 1
    if value < 0x800:
        data[at], data[at + 1] = 0xC0 | value >> 6, 0x80 | value & 63
        return at + 2
    if value < 0x10000:
        data[at], data[at + 1] = 0xE0 | value >> 12, 0x80 | value >> 6 & 63
        data[at + 2] = 0x80 | value & 63
        return at + 3
    data[at], data[at + 1] = 0xF0 | value >> 18, 0x80 | value >> 12 & 63
    data[at + 2], data[at + 3] = 0x80 | value >> 6 & 63, 0x80 | value & 63
    return at + 4
