"""A language model that scores lines of tokens: our own, any ARPA file, or a binary of kenlm."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from artifacts_schema.errors import InputError, UsageError
from stages.language_model.arpa_read import read_arpa
from stages.language_model.config import NgramConfig
from stages.language_model.files import map_model, read_description
from stages.language_model.score import line_sums, token_scores
from stages.language_model.tables import Table, tables_of
from stages.language_model.vocabulary import Lines, Vocabulary

Scores = tuple[NDArray[np.float64], NDArray[np.int64]]
"""([lines] log10 probability with </s>, [lines] tokens with </s>)."""


class LanguageModel(Protocol):
    """What scores lines of tokens."""

    @property
    def config(self) -> NgramConfig | None:
        """What the model was estimated with, where it says so."""

    def line_scores(self, lines: Lines) -> Scores:
        """log10 probability and length of each line, both with its </s>."""


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
        if path.is_dir():
            described, config = read_description(path)
            words, unigrams, tables = map_model(path, described)
            return cls(words, unigrams, tables_of(tables), config.order, config)
        arpa = read_arpa(path)
        return cls(arpa.words, arpa.unigrams, tables_of(arpa.tables), len(arpa.tables) + 1)

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


def load(path: Path) -> LanguageModel:
    """A model by its file's name: `.bin` by kenlm, a folder or another file by `NgramModel`."""
    return KenlmModel(path) if path.suffix == ".bin" else NgramModel.load(path)
