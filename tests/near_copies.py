"""Texts that are nearly alike, and what there is to find among them, by brute force."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np
from reference_shingles import folded_words, shingle_numbers, word_number

from artifacts_schema.identity import document_id
from stages.dedup.presets import candidate_probability


def letters(number: int) -> str:
    """A number as a word of five letters."""
    return "".join(chr(97 + number // 26**place % 26) for place in range(5))


def prose(seed: int, length: int) -> list[str]:
    """Random words, so that two seeds share no shingle."""
    rng = random.Random(seed)
    return [letters(rng.randrange(26**5)) for _ in range(length)]


def edited(text: Sequence[str], edits: int, seed: int) -> list[str]:
    """`text` with some words replaced."""
    rng, copy = random.Random(seed), list(text)
    for place in rng.sample(range(len(copy)), edits):
        copy[place] = letters(rng.randrange(26**5))
    return copy


def family(seed: int, size: int, length: int = 60) -> list[str]:
    """An original and copies of it: equal ones, folded alike, and from nearly equal to unlike."""
    rng, text = random.Random(seed), prose(seed, length)
    found = [" ".join(text)]
    for member in range(1, size):
        copy = edited(text, rng.choice([0, 1, 1, 2, 3, 4, 6]), seed * 1_000 + member)
        written = " ".join(copy)
        found.append(rng.choice([written, written.upper(), f"“{written}” …"]))
    return found


def families(number: int, size: int, seed: int = 0, length: int = 60) -> list[str]:
    """Several families in a shuffled order."""
    texts = [text for one in range(number) for text in family(seed * 100 + one, size, length)]
    random.Random(seed).shuffle(texts)
    return texts


def ident(number: int, snapshot: str = "given") -> str:
    """The id that the fixture `make_documents` gives document `number`."""
    return document_id(snapshot, "file", number)


def row(snapshot: str, number: int, text: str) -> dict[str, Any]:
    """A row that keeps its id wherever it comes."""
    return {"doc_id": ident(number, snapshot), "snapshot": snapshot, "text": text}


def rows(snapshot: str, texts: Iterable[str]) -> list[dict[str, Any]]:
    """Rows that keep their ids in any order."""
    return [row(snapshot, number, text) for number, text in enumerate(texts)]


def by_id(table: Any) -> dict[str, dict[str, Any]]:
    """Rows of a table by doc_id, of which each occurs once."""
    listed = table.to_pylist()
    found = {one["doc_id"]: one for one in listed}
    assert len(found) == len(listed)
    return found


@dataclass(frozen=True)
class Known:
    """A document, and its generation."""

    doc_id: str
    text: str
    generation: int = 0

    @property
    def rank(self) -> tuple[int, str]:
        """The first of a class is of the least one."""
        return self.generation, self.doc_id

    @cached_property
    def words(self) -> list[str]:
        """The words of the fold."""
        return folded_words(self.text)

    @cached_property
    def shingles(self) -> frozenset[int]:
        """Word 5-grams; all words where there are fewer."""
        return frozenset(shingle_numbers(list(map(word_number, self.words)), 5))


class Truth:
    """Exact classes and all pairs of documents, from the definitions."""

    def __init__(self, generations: Sequence[Sequence[Mapping[str, Any]]]) -> None:
        """Generations of rows with doc_id and text."""
        self.documents = [
            Known(one["doc_id"], one["text"], generation)
            for generation, listed in enumerate(generations)
            for one in listed
        ]
        ranked = sorted(self.documents, key=lambda one: one.rank)
        words: dict[Any, str] = {}
        texts: dict[str, str] = {}
        self.exact_class: dict[str, str] = {}
        self.text_class: dict[str, str] = {}
        for one in ranked:
            same = tuple(one.words) or one.text
            self.exact_class[one.doc_id] = words.setdefault(same, one.doc_id)
            self.text_class[one.doc_id] = texts.setdefault(one.text, one.doc_id)
        self.of = {one.doc_id: one for one in ranked}
        self.firsts = [one for one in ranked if self.exact_class[one.doc_id] == one.doc_id]

    def jaccard(self, one: str, two: str) -> float:
        """Shared shingles by all."""
        a, b = self.of[one].shingles, self.of[two].shingles
        return len(a & b) / len(a | b) if a | b else 0.0

    def containment(self, one: str, two: str) -> float:
        """Shared shingles by the smaller set's."""
        a, b = self.of[one].shingles, self.of[two].shingles
        return len(a & b) / min(len(a), len(b)) if a and b else 0.0

    def pairs(self, floor: float) -> dict[tuple[str, str], float]:
        """Pairs of firsts at the floor or above: in the order of rank, with their Jaccard."""
        found = ((one.doc_id, two.doc_id) for one, two in combinations(self.firsts, 2))
        told = {pair: self.jaccard(*pair) for pair in found}
        return {pair: alike for pair, alike in told.items() if np.float32(alike) >= floor}

    def found_by_bands(self, floor: float, bands: int, rows: int) -> tuple[float, float]:
        """How many pairs bands are to find, and the deviation of that number."""
        chance = [candidate_probability(s, bands, rows) for s in self.pairs(floor).values()]
        return sum(chance), sum(p * (1 - p) for p in chance) ** 0.5


def pairs_of(table: Any) -> dict[tuple[str, str], dict[str, Any]]:
    """Pairs by (document, partner), both ways as rows list them."""
    return {
        (one["doc_id"], partner["doc_id"]): partner
        for one in table.to_pylist()
        for partner in one["partners"]
    }
