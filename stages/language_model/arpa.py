"""A strict reader of ARPA files, plain, gzip or zstd: an error names the line.

It reads about 200,000 n-grams a second, once for each process: a large published model
is better read by kenlm from its binary form (the extra `kenlm`).
"""

from __future__ import annotations

import gzip
import io
import re
import zlib
from array import array
from pathlib import Path
from typing import IO, cast

import numpy as np
from numpy.typing import NDArray

from artifacts_schema.errors import InputError
from stages.language_model.config import LEAST_ORDER, MOST_ORDER
from stages.language_model.tables import Table, build_table, hash_ngrams
from stages.language_model.vocabulary import SPECIAL, Vocabulary

_LONGEST_LINE = 1 << 20
_GREATEST = 3.4e38
_UNKNOWN_SCORE = -100.0
"""log10 p of <unk> where a model lists none, as in kenlm."""


Model = tuple[Vocabulary, NDArray[np.float32], list[Table]]
"""The words, [words, 2] weights of unigrams, tables of orders from 2."""


def read_arpa(path: Path) -> Model:
    """Read a model. Raises InputError, with the line, for whatever is not as the format has it.

    Required, as in kenlm, are <s> and </s>, and of each n-gram the n-grams without its first and
    without its last word. Memory grows with what the file holds, not with what its head says.
    """
    with _open(path) as file:
        reader = _Reader(path, file)
        try:
            reader.advance()
            return _read_sections(reader, _read_head(reader))
        except (OSError, EOFError, ValueError, zlib.error) as error:
            raise reader.error(f"cannot be read: {error}") from None


class _Reader:
    """The current line of a file, None at its end, and its number."""

    def __init__(self, path: Path, file: IO[bytes]) -> None:
        self._path, self._file = path, file
        self.line: bytes | None = None
        self.number = 0

    def error(self, what: str, hint: str | None = None, line: int | None = None) -> InputError:
        return InputError(what, where=f"{self._path}, line {line or self.number}", hint=hint)

    def advance(self) -> None:
        line = self._file.readline(_LONGEST_LINE)
        self.number += 1
        if len(line) == _LONGEST_LINE:
            raise self.error("a line is longer than a megabyte")
        self.line = line or None

    def filled(self) -> bytes:
        """The current line, or the next that is not blank, without white space at its ends."""
        while self.line is not None and not self.line.strip():
            self.advance()
        if self.line is None:
            raise self.error("the file ends early")
        return self.line.strip()


def _open(path: Path) -> IO[bytes]:
    try:
        with path.open("rb") as file:
            magic = file.read(4)
        if magic[:2] == b"\x1f\x8b":
            return cast(IO[bytes], gzip.open(path))
        if magic == b"\x28\xb5\x2f\xfd":
            import zstandard

            return io.BufferedReader(zstandard.open(path))
        return path.open("rb")
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", where=str(path)) from None


def _read_head(reader: _Reader) -> list[int]:
    """How many n-grams of each order the file says that it holds."""
    while reader.filled().startswith(b"#"):
        reader.advance()
    if reader.filled() != b"\\data\\":
        raise reader.error(
            "not an ARPA file: \\data\\ is missing", "a binary model of kenlm is named .bin"
        )
    counts: list[int] = []
    reader.advance()
    while line := (reader.line or b"").strip():
        match = re.fullmatch(rb"ngram +(\d{1,2})=\s*(\d{1,18})", line)
        if not match or int(match[1]) != len(counts) + 1:
            raise reader.error(f"expected 'ngram {len(counts) + 1}=…'")
        counts.append(int(match[2]))
        reader.advance()
    if not LEAST_ORDER <= len(counts) <= MOST_ORDER:
        raise reader.error(
            f"a model of order {len(counts)}; {LEAST_ORDER} to {MOST_ORDER} are read"
        )
    return counts


def _read_sections(reader: _Reader, counts: list[int]) -> Model:
    texts: list[bytes] = []
    unigrams, tables = np.zeros((0, 2), np.float32), list[Table]()
    ids: dict[bytes, int] = {}
    for order, count in enumerate(counts, 1):
        expected = b"\\%d-grams:" % order
        if reader.filled() != expected:
            raise reader.error(f"expected {expected.decode()}")
        reader.advance()
        first = reader.number
        words, weights = _read_entries(reader, order, count, order == len(counts), ids, texts)
        if order == 1:
            ids, unigrams = _number_words(reader, texts, weights)
            continue
        if order > 2:
            _check_parts(reader, words, tables[-1], first)
        try:
            tables.append(build_table(words, weights[:, 0], weights[:, 1]))
        except InputError as error:
            raise reader.error(f"among the {order}-grams above {error.what}") from None
    if reader.filled() != b"\\end\\":
        raise reader.error("expected \\end\\")
    return Vocabulary.new(ids), unigrams, tables


def _read_entries(
    reader: _Reader,
    order: int,
    count: int,
    last: bool,
    ids: dict[bytes, int],
    texts: list[bytes],
) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
    """[rows, order] words of the n-grams, which for unigrams go to `texts`; [rows, 2] weights."""
    words, weights, rows = array("i"), array("f"), 0
    while reader.line is not None and (fields := reader.line.split()) and fields[0][:1] != b"\\":
        if rows == count:
            raise reader.error(f"more than {count:,} {order}-grams; the head says {count:,}")
        try:
            score = float(fields[0])
            backoff = float(fields[order + 1]) if len(fields) > order + 1 else 0.0
        except ValueError:
            raise reader.error("expected a number") from None
        if not (-_GREATEST <= score <= 0 and abs(backoff) <= _GREATEST) or b"_" in fields[0]:
            raise reader.error(_describe_number(score, backoff, fields[0]))
        if len(fields) <= order:
            raise reader.error("too few words")
        if order == 1:
            texts.append(fields[1])
        else:
            try:
                words.extend([ids[word] for word in fields[1 : order + 1]])
            except KeyError:
                raise reader.error("a word that the 1-grams do not list") from None
        if last and backoff:
            raise reader.error("a back-off for an n-gram of the highest order")
        if len(fields) > order + 2:
            raise reader.error("more fields than an n-gram has")
        weights.extend((score, backoff))
        rows += 1
        reader.advance()
    if rows != count:
        raise reader.error(f"{rows:,} {order}-grams; the head says {count:,}")
    grams = np.array(words, np.int32).reshape(-1, order)
    return grams, np.array(weights, np.float32).reshape(-1, 2)


def _describe_number(score: float, backoff: float, field: bytes) -> str:
    if score != score or backoff != backoff or b"_" in field:
        return "expected a number"
    if max(abs(score), abs(backoff)) > _GREATEST:
        return "a number that float32 does not hold"
    return "a log probability above zero"


def _number_words(
    reader: _Reader, texts: list[bytes], weights: NDArray[np.float32]
) -> tuple[dict[bytes, int], NDArray[np.float32]]:
    """Ids of the words, <unk>, <s> and </s> first, and their weights in that order."""
    places: dict[bytes, int] = {}
    for place, word in enumerate(texts):
        name = b"<unk>" if word == b"<UNK>" else word
        if places.setdefault(name, place) != place:
            raise reader.error(f"the word '{word.decode(errors='replace')}' is listed twice")
    special = [places.pop(word, -1) for word in SPECIAL]
    if min(special[1:]) < 0:
        raise reader.error("the 1-grams lack <s> or </s>")
    ordered = weights[[max(place, 0) for place in special] + list(places.values())]
    if special[0] < 0:
        ordered[0] = _UNKNOWN_SCORE, 0.0
    return {word: index for index, word in enumerate((*SPECIAL, *places))}, ordered


def _check_parts(reader: _Reader, words: NDArray[np.int32], shorter: Table, first: int) -> None:
    """InputError for the first n-gram whose beginning or end is not in `shorter`."""
    parts = (np.ascontiguousarray(part) for part in (words[:, :-1], words[:, 1:]))
    known = [np.isin(hash_ngrams(part), shorter.words[:, 0]) for part in parts]
    lacking = np.flatnonzero(~(known[0] & known[1]))
    if len(lacking):
        raise reader.error(
            "an n-gram without its shorter parts",
            "SRILM writes such files when it prunes; build_binary of kenlm mends them",
            first + int(lacking[0]),
        )
