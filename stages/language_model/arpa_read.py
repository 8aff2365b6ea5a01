"""A strict reader of ARPA files, plain, gzip or zstd: what is wrong, with its line."""

from __future__ import annotations

import gzip
import re
from dataclasses import dataclass
from pathlib import Path
from typing import IO, cast

import numpy as np
from numpy.typing import NDArray

from artifacts_schema.errors import InputError
from stages.language_model.arpa_entries import PROBLEMS, parse_entries
from stages.language_model.config import LEAST_ORDER, MOST_ORDER
from stages.language_model.tables import Table, extended, find, table_of
from stages.language_model.vocabulary import SPECIAL, Vocabulary
from stages.text.native import compiled

_BLOCK, _LONGEST_LINE = 1 << 20, 1 << 20
_UNKNOWN_SCORE = -100.0
"""log10 p of <unk> where a model lists none, as in kenlm."""


@dataclass(frozen=True, eq=False)
class Arpa:
    """A model as read: its words, [words, 2] weights of unigrams, tables of orders from 2."""

    words: Vocabulary
    unigrams: NDArray[np.float32]
    tables: list[Table]


def read_arpa(path: Path) -> Arpa:
    """Read a model. Raises InputError, with the line, for whatever is not as the format has it.

    Required, as in kenlm, are <s> and </s>, and of each n-gram the n-grams without its first and
    without its last word. Memory grows with what the file holds, not with what its head says.
    """
    reader = _Reader(path)
    try:
        counts = _read_head(reader)
        return _read_sections(reader, counts)
    except (OSError, EOFError, ValueError) as error:
        raise reader.error(f"cannot be read: {error}") from None
    finally:
        reader.file.close()


class _Reader:
    """Whole lines of a file, and the number of the next."""

    def __init__(self, path: Path) -> None:
        self.path, self.line = path, 1
        self.file = _open(path)
        self.data = b""
        self.at = 0

    def error(self, what: str, line: int | None = None, hint: str | None = None) -> InputError:
        return InputError(what, where=f"{self.path}, line {line or self.line}", hint=hint)

    def more(self) -> bool:
        """Read on; what is left stays. False at the end."""
        block = self.file.read(_BLOCK)
        left = self.data[self.at :]
        if len(left) > _LONGEST_LINE:
            raise self.error("a line is longer than a megabyte")
        if block or (left and not left.endswith(b"\n")):
            self.data, self.at = left + (block or b"\n"), 0
            return True
        return False

    def peek(self) -> bytes | None:
        """The next line, without its end; None at the end of the file."""
        while (end := self.data.find(b"\n", self.at)) < 0:
            if not self.more():
                return None
        return self.data[self.at : end].rstrip(b"\r")

    def take(self) -> bytes:
        """The next line that is not blank."""
        while (line := self.peek()) is not None:
            self.skip(1, self.data.index(b"\n", self.at) + 1)
            if line.strip():
                return line
        raise self.error("the file ends early")

    def skip(self, lines: int, to: int) -> None:
        self.line += lines
        self.at = to


def _open(path: Path) -> IO[bytes]:
    try:
        with path.open("rb") as file:
            magic = file.read(4)
        if magic[:2] == b"\x1f\x8b":
            return cast(IO[bytes], gzip.open(path))
        if magic == b"\x28\xb5\x2f\xfd":
            import zstandard

            return cast(IO[bytes], zstandard.open(path))
        return path.open("rb")
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", where=str(path)) from None


def _read_head(reader: _Reader) -> list[int]:
    """How many n-grams of each order the file says that it holds."""
    while (line := reader.take()).startswith(b"#"):
        pass
    if line.strip() != b"\\data\\":
        raise reader.error(
            "not an ARPA file: \\data\\ is missing",
            reader.line - 1,
            "a binary model of kenlm is named .bin",
        )
    counts: list[int] = []
    while (line := reader.peek() or b"").strip():
        found = re.fullmatch(rb"ngram +(\d{1,2})=\s*(\d{1,18})\s*", line)
        if not found or int(found[1]) != len(counts) + 1:
            raise reader.error(f"expected 'ngram {len(counts) + 1}=…'")
        counts.append(int(found[2]))
        reader.take()
    if not LEAST_ORDER <= len(counts) <= MOST_ORDER:
        raise reader.error(
            f"a model of order {len(counts)}; {LEAST_ORDER} to {MOST_ORDER} are read"
        )
    return counts


def _read_sections(reader: _Reader, counts: list[int]) -> Arpa:
    words, unigrams, tables = Vocabulary.new(), np.zeros((0, 2), np.float32), list[Table]()
    for order, count in enumerate(counts, 1):
        expected = b"\\%d-grams:" % order
        if reader.take().strip() != expected:
            raise reader.error(f"expected {expected.decode()}", reader.line - 1)
        first = reader.line
        section = _read_entries(reader, order, count, order == len(counts), words)
        if order == 1:
            words, unigrams = _vocabulary(reader, section)
            continue
        wrong = _lacks_parts(section.words, tables[-1]) if order > 2 else -1
        if wrong >= 0:
            raise reader.error(
                "an n-gram without its shorter parts",
                first + wrong,
                "SRILM writes such files when it prunes; build_binary of kenlm mends them",
            )
        try:
            tables.append(table_of(section.words, section.weights[:, 0], section.weights[:, 1]))
        except InputError as error:
            raise reader.error(f"among the {order}-grams above {error.what}") from None
    if reader.take().strip() != b"\\end\\":
        raise reader.error("expected \\end\\", reader.line - 1)
    return Arpa(words, unigrams, tables)


@dataclass(frozen=True, eq=False)
class _Section:
    words: NDArray[np.int32]
    """[rows, order]; of unigrams zeros."""
    weights: NDArray[np.float32]
    """[rows, 2]"""
    texts: list[bytes]
    """Words of unigrams."""


def _read_entries(
    reader: _Reader, order: int, count: int, last: bool, known: Vocabulary
) -> _Section:
    grams, weights, texts, total = [], [], list[bytes](), 0
    while (line := reader.peek()) is not None and line.strip() and line[:1] != b"\\":
        whole = np.frombuffer(reader.data, np.uint8)[: reader.data.rindex(b"\n") + 1]
        rows = np.empty((len(whole) // 4 + 1, order), np.int32)
        spans, numbers = np.empty((len(rows), 2), np.int64), np.empty((len(rows), 2), np.float32)
        found, at, problem = parse_entries(
            whole, reader.at, last, known.slots, rows, spans, numbers
        )
        if problem:
            raise reader.error(PROBLEMS[problem], reader.line + found)
        if order == 1:
            texts += [reader.data[start:end] for start, end in spans[:found].tolist()]
        grams.append(rows[:found].copy())
        weights.append(numbers[:found].copy())
        total += found
        reader.skip(found, at)
        if total > count:
            break
    if total != count:
        found_text = f"more than {count:,}" if total > count else f"{total:,}"
        raise reader.error(f"{found_text} {order}-grams; the head says {count:,}")
    return _Section(
        np.concatenate(grams) if grams else np.empty((0, order), np.int32),
        np.concatenate(weights) if weights else np.empty((0, 2), np.float32),
        texts,
    )


def _vocabulary(reader: _Reader, section: _Section) -> tuple[Vocabulary, NDArray[np.float32]]:
    """The words, <unk>, <s> and </s> first, and their weights in that order."""
    places: dict[bytes, int] = {}
    for place, word in enumerate(section.texts):
        name = b"<unk>" if word == b"<UNK>" else word
        if places.setdefault(name, place) != place:
            raise reader.error(f"the word '{word.decode(errors='replace')}' is listed twice")
    special = [places.pop(word, -1) for word in SPECIAL]
    if min(special[1:]) < 0:
        raise reader.error("the 1-grams lack <s> or </s>")
    names = [*SPECIAL, *places]
    weights = section.weights[[max(place, 0) for place in special] + list(places.values())]
    if special[0] < 0:
        weights[0] = _UNKNOWN_SCORE, 0.0
    return Vocabulary.new(names), weights


@compiled
def _lacks_parts(words: NDArray[np.int32], shorter: Table) -> int:
    """The first of the n-grams [rows, order] whose beginning or end is not in `shorter`, or -1."""
    order = words.shape[1]
    for row in range(len(words)):
        for start in range(2):
            value = np.uint64(0)
            for place in range(start + order - 2, start - 1, -1):
                value = extended(value, words[row, place])
            if find(shorter, value) < 0:
                return row
    return -1
