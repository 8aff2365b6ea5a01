"""Showing documents on a page: which ones, how much of their text, and where two texts differ."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from difflib import SequenceMatcher
from os.path import commonprefix
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from stages.engine.figures import Part
from stages.engine.inputs import Input
from stages.text.words import word_spans

EXCERPT = 800
"""Characters of a sample."""

SIDE = 1_200
"""Characters of one side of a pair."""

CONTEXT = 200
"""Characters shown before the first difference."""

_WORDS_COMPARED = 400
"""Bound on what `SequenceMatcher`, quadratic in it, is given."""

Row = dict[str, Any]


class LeastIds:
    """The rows with the least ids of each group.

    Ids are hashes, so this is an even choice among all rows, and the same each time.
    """

    def __init__(self, most: int, by: str = "doc_id") -> None:
        self.most, self.by = most, by
        self.groups: dict[str, list[Row]] = {}

    def offer(self, group: str, rows: pa.Table) -> None:
        """Consider rows for a group; the column `by` holds their ids."""
        if not len(rows):
            return
        least = pc.select_k_unstable(rows, k=self.most, sort_keys=[(self.by, "ascending")])
        held = [*self.groups.get(group, []), *rows.take(least).to_pylist()]
        self.groups[group] = sorted(held, key=lambda row: row[self.by])[: self.most]


def rows_of(inputs: Sequence[Input], ids: Iterable[str], columns: Sequence[str]) -> dict[str, Row]:
    """The rows of these doc_ids, as far as the tables hold them; only their row groups are read."""
    wanted = pa.array(sorted(set(ids)), pa.string())
    found: dict[str, Row] = {}
    for given in inputs:
        for path in given.paths("*.parquet"):
            if len(found) == len(wanted):
                return found
            with given.open(path) as file:
                found |= _rows_of(pq.ParquetFile(file), wanted, columns)
    return found


def _rows_of(parquet: pq.ParquetFile, wanted: pa.Array, columns: Sequence[str]) -> dict[str, Row]:
    found: dict[str, Row] = {}
    for group in range(parquet.num_row_groups):
        ids = parquet.read_row_group(group, columns=["doc_id"], use_threads=False)["doc_id"]
        places = pc.indices_nonzero(pc.is_in(ids, value_set=wanted))
        if len(places):
            names = ["doc_id", *columns]
            rows = parquet.read_row_group(group, columns=names, use_threads=False).take(places)
            found |= {row["doc_id"]: row for row in rows.to_pylist()}
    return found


def excerpt(text: str, most: int = EXCERPT) -> str:
    """The beginning of a text, with an ellipsis if it goes on."""
    return text if len(text) <= most else text[: most - 2] + " …"


def differences(left: str, right: str) -> tuple[tuple[Part, ...], tuple[Part, ...]]:
    """Both texts around their first difference, at most `SIDE` characters each, compared by words.

    The whole beginning of both where they do not differ.
    """
    same = len(commonprefix([left, right]))  # noqa: RUF071 - characters are meant, not paths.
    start = 0 if same == len(left) == len(right) else max(0, same - CONTEXT)
    return compared(left, right, start, start)


def compared(
    left: str,
    right: str,
    left_start: int,
    right_start: int,
    key: Callable[[str], str] = str,
    run: int = 1,
) -> tuple[tuple[Part, ...], tuple[Part, ...]]:
    """Two texts from given places on, at most `SIDE` characters each, what differs marked.

    Words agree where their `key` is equal in at least `run` of them in a row.
    """
    left_words, right_words = _words(left, left_start), _words(right, right_start)
    keys = [[key(word.strip()) for word in words] for words in (left_words, right_words)]
    matcher = SequenceMatcher(None, keys[0], keys[1], autojunk=False)
    sides: tuple[list[Part], list[Part]] = ([], [])
    for operation, a, b, c, d in matcher.get_opcodes():
        differs = operation != "equal" or b - a < run
        _append(sides[0], left_words[a:b], differs)
        _append(sides[1], right_words[c:d], differs)
    return (
        _shown(sides[0], left_start, len(left)),
        _shown(sides[1], right_start, len(right)),
    )


def _words(text: str, start: int) -> list[str]:
    """The words of the text from `start`, each with what stands before it; together the text."""
    window = text[start : start + 2 * SIDE]
    ends = [end for _, end in word_spans(window)][:_WORDS_COMPARED]
    return [window[begin:end] for begin, end in zip([0, *ends], ends, strict=False)]


def _append(parts: list[Part], words: Sequence[str], differs: bool) -> None:
    """Add words to the last part, or a part of them if the last one is of the other sort."""
    if words and parts and parts[-1].differs == differs:
        parts[-1] = Part(parts[-1].text + "".join(words), differs)
    elif words:
        parts.append(Part("".join(words), differs))


def _shown(parts: Sequence[Part], start: int, length: int) -> tuple[Part, ...]:
    """As many characters of the parts as a side may have, with ellipses where the text goes on."""
    shown, left = [Part("… ")] if start else [], SIDE
    for part in parts:
        text = part.text[:left]
        left -= len(text)
        if text:
            shown.append(Part(text, part.differs))
    if start + SIDE - left < length:
        shown.append(Part(" …"))
    return tuple(shown)
