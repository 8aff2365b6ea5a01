"""Recall and false positives of dedup, decontamination and redaction by kind of edit.

    python -m tests.benchmarks.recall_by_edit --work FOLDER [--seed 1] [--count 100] [--images DIR]

Ten kinds of edits (`text_edits`) in three strengths, in planted corpora of real texts
(`edit_corpora`), which go through the stages as the command line runs them, with their defaults.
Seeds below 1000 are for development (splits.py). Intervals are Wilson's at 95 %.

dedup            found: original and copy are one exact class, or a listed pair at 0.8, the
                 threshold of `filter`. J is their exact Jaccard similarity, by the plain definition
                 (`reference_shingles`); of pairs from 0.8 on all should be found. False: a template
                 page found to be a copy of the page that shares its frame; of the other kinds, a
                 document found to be a copy of one that it was not made of, though their exact J is
                 below 0.8.
decontamination  found: the page's hits name the planted item. False: the page's prose without the
                 item, edited likewise, has a hit; of template pages, the frame of an item around
                 other words is taken for the item.
redaction        found: the value is not in what `filter` wrote. False: of the same page with a hard
                 negative in place of the value anything was redacted.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import pyarrow.parquet as pq

from flows.report.draw import draw_svg
from stages.engine.page import MatrixFigure
from stages.scoring.uncertainty import wilson
from tests.benchmarks.dedup_runs import Corpora, Ingot
from tests.benchmarks.edit_corpora import (
    LEVELS,
    Planted,
    plant_copies,
    plant_items,
    plant_values,
)
from tests.benchmarks.extraction import table
from tests.benchmarks.splits import seed_side
from tests.benchmarks.text_edits import EDITS
from tests.reference_shingles import folded_words

THRESHOLD = 0.8
NGRAM = 5
UNDECIDED: dict[str, Any] = {
    "rules": [],
    "duplicates": {"threshold": None, "exact": None},
}
"""`filter` that drops nothing: what is left of values is looked for in every text."""


class Stages(Protocol):
    """The three stages, with their defaults."""

    def find_copies(self, texts: Sequence[str]) -> Copies:
        """What `dedup` says of documents."""

    def find_items(self, pages: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> list[set[str]]:
        """`benchmark/item` of each hit that `decontaminate` finds in a page."""

    def redact(self, texts: Sequence[str]) -> list[str]:
        """The texts that `filter` writes by what `signals` found."""


class Copies:
    """Exact classes and listed pairs of documents by their places."""

    def __init__(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """`rows` are those of `duplicates`, in the order of the documents."""
        self.exact = [row["exact_class"] for row in rows]
        self._listed = {
            frozenset((row["doc_id"], partner["doc_id"])): partner["similarity"]
            for row in rows
            for partner in row["partners"] or ()
        }
        self._places: dict[str, list[int]] = {}
        for place, name in enumerate(self.exact):
            self._places.setdefault(name, []).append(place)

    def similarity(self, one: int, other: int) -> float:
        """1 within an exact class; of a listed pair as measured; else 0."""
        pair = frozenset((self.exact[one], self.exact[other]))
        return 1.0 if len(pair) == 1 else self._listed.get(pair, 0.0)

    def pairs(self, threshold: float) -> set[tuple[int, int]]:
        """All pairs of documents from a similarity on, the lower place first."""
        groups = [(places, places) for places in self._places.values()]
        for names, similarity in self._listed.items():
            if similarity >= threshold:
                one, other = sorted(names)
                groups.append((self._places[one], self._places[other]))
        return {
            (min(a, b), max(a, b)) for one, other in groups for a in one for b in other if a != b
        }


@dataclass
class Count:
    """Of one kind and strength: planted and found, clean and falsely found; `similar` for dedup.

    `similar` and `similar_found` are pairs from THRESHOLD on; `similarity` is the sum of all J.
    """

    planted: int = 0
    found: int = 0
    clean: int = 0
    false: int = 0
    similar: int = 0
    similar_found: int = 0
    similarity: float = 0.0
    missed: list[str] = field(default_factory=list)


Counts = dict[tuple[str, str], Count]


def jaccard(one: str, other: str) -> float:
    """Exact similarity of two texts' word 5-grams, by `dedup`'s definition in plain Python."""
    left, right = (_shingles(folded_words(text)) for text in (one, other))
    return len(left & right) / len(left | right)


def _shingles(words: list[str]) -> set[tuple[str, ...]]:
    width = min(NGRAM, len(words))
    return {tuple(words[i : i + width]) for i in range(len(words) - width + 1)}


def score_copies(planted: Sequence[Planted], stages: Stages) -> Counts:
    """Documents and copies through `dedup`."""
    texts = [text for one in planted for text in (one.original, one.text)]
    copies = stages.find_copies(texts)
    counts: Counts = {}
    for number, one in enumerate(planted):
        count = counts.setdefault((one.kind, one.level), Count())
        exact = jaccard(one.original, one.text)
        found = copies.similarity(2 * number, 2 * number + 1) >= THRESHOLD
        count.similarity += exact
        count.similar += exact >= THRESHOLD
        count.similar_found += exact >= THRESHOLD and found
        count.planted += 1
        count.found += found
        count.clean += 1
        if EDITS[one.kind].meaning == "template":
            count.false += found
        elif not found:
            count.missed.append(f"J {exact:.3f} {one.text[:80]!r}")
    strangers = {
        number
        for pair in copies.pairs(THRESHOLD)
        if pair[0] // 2 != pair[1] // 2 and jaccard(*(texts[p] for p in pair)) < THRESHOLD
        for number in {place // 2 for place in pair}
    }
    for number in strangers:
        counts[planted[number].kind, planted[number].level].false += 1
    return counts


def score_items(
    planted: Sequence[Planted], rows: Sequence[Mapping[str, Any]], stages: Stages
) -> Counts:
    """Pages with an item, and the same without, through `decontaminate`."""
    pages = [*(one.text for one in planted), *(one.clean for one in planted)]
    hits = stages.find_items(pages, rows)
    counts: Counts = {}
    for one, held, held_by_clean in zip(
        planted, hits[: len(planted)], hits[len(planted) :], strict=True
    ):
        found = one.item in held
        count = counts.setdefault((one.kind, one.level), Count())
        _add(count, one, found, found if EDITS[one.kind].meaning == "template" else held_by_clean)
    return counts


def score_values(planted: Sequence[Planted], stages: Stages) -> Counts:
    """Pages with a value, and the same with a hard negative, through `signals` and `filter`."""
    texts = [*(one.text for one in planted), *(one.clean for one in planted)]
    written = stages.redact(texts)
    counts: Counts = {}
    for one, text, clean in zip(
        planted, written[: len(planted)], written[len(planted) :], strict=True
    ):
        count = counts.setdefault((one.kind, one.level), Count())
        _add(count, one, one.original not in text, clean != one.clean)
    return counts


def _add(count: Count, one: Planted, found: bool, false: object) -> None:
    count.planted += 1
    count.found += found
    count.clean += 1
    count.false += bool(false)
    if not found:
        count.missed.append(f"{one.item} {one.original[:120]!r}")


def total(counts: Counts, kind: str, of: Callable[[Count], int]) -> int:
    """Sum over the strengths of a kind."""
    return sum(of(counts[kind, level]) for level in LEVELS)


def share(hits: int, trials: int) -> str:
    """A share with its interval; nothing without trials."""
    if not trials:
        return ""
    low, high = wilson(hits, trials)
    return f"{hits / trials:.3f} [{low:.3f}, {high:.3f}]"


def rows_of_table(counts: Counts, *, similarity: bool = False) -> list[list[str]]:
    """A row for each kind: found by strength, false; for dedup with J, and pairs from 0.8 on."""
    rows = []
    for kind, edit in EDITS.items():
        row = [f"{kind} ({', '.join(f'{level:.3g}' for level in edit.levels)} of {edit.strength})"]
        for level in LEVELS:
            one = counts[kind, level]
            mean = f" (J {one.similarity / one.planted:.2f})" if similarity else ""
            row.append(share(one.found, one.planted) + mean)
        if similarity:
            similar = total(counts, kind, lambda one: one.similar)
            row.append(share(total(counts, kind, lambda one: one.similar_found), similar))
        false = total(counts, kind, lambda one: one.false)
        row.append(share(false, total(counts, kind, lambda one: one.clean)))
        rows.append(row)
    return rows


def figure(counts: Counts, title: str, note: str, *, template_is_found: bool) -> MatrixFigure:
    """Kinds by strengths, and false positives in the last column."""
    values = []
    for kind, edit in EDITS.items():
        recall: list[float | None] = [
            None
            if edit.meaning == "template" and not template_is_found
            else counts[kind, level].found / counts[kind, level].planted
            for level in LEVELS
        ]
        false = total(counts, kind, lambda one: one.false)
        values.append((*recall, false / total(counts, kind, lambda one: one.clean)))
    columns = (*LEVELS, "false")
    return MatrixFigure(title, tuple(EDITS), columns, tuple(values), format=".1%", note=note)


class CommandLine:
    """The stages as `ingot stage` runs them, in a store below a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._ingot = Ingot(folder, Corpora(folder))

    def find_copies(self, texts: Sequence[str]) -> Copies:
        documents = self._documents("copies", texts)
        self._ingot.stage("dedup", {"documents": [documents]}, "dedup")
        return Copies(self._rows("dedup", "duplicates"))

    def find_items(self, pages: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> list[set[str]]:
        documents = self._documents("pages", pages)
        items = self._ingot.read("items", [self._file("items", rows)], "benchmarks")
        inputs = {"documents": [documents], "benchmarks": [items]}
        self._ingot.stage("decontaminate", inputs, "decontaminate", profile=False)
        return [
            {f"{hit['benchmark']}/{hit['item_id']}" for hit in row["hits"] or ()}
            for row in self._rows("decontaminate", "contamination")
        ]

    def redact(self, texts: Sequence[str]) -> list[str]:
        documents = self._documents("values", texts)
        self._ingot.stage("signals", {"documents": [documents]}, "signals", profile=False)
        inputs = {
            "documents": [documents],
            "signals": ["signals:signals"],
            "views": ["signals:views"],
        }
        settings = [f"{name}={json.dumps(value)}" for name, value in UNDECIDED.items()]
        self._ingot.stage("filter", inputs, "filter", settings)
        written = {row["doc_id"]: row["text"] for row in self._rows("filter", "documents")}
        return [written[row["doc_id"]] for row in self._rows(documents, "documents")]

    def _documents(self, name: str, texts: Sequence[str]) -> str:
        rows = [{"id": f"{n:08d}", "text": text} for n, text in enumerate(texts)]
        ref = self._ingot.read(name, [self._file(name, rows)])
        if [row["text"] for row in self._rows(ref, "documents")] != list(texts):
            raise SystemExit(f"{name}: ingest changed the texts or their order")
        return ref

    def _file(self, name: str, rows: Sequence[Mapping[str, Any]]) -> Path:
        path = self._folder / f"{name}.jsonl"
        path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))
        return path

    def _rows(self, ref: str, output: str) -> list[dict[str, Any]]:
        """The rows of the documents' tables, in order."""
        files = self._ingot.outputs(ref)[output].files()
        return [
            row
            for path in files
            if path.name != "items.parquet"
            for row in pq.read_table(path).to_pylist()
        ]


TITLES = {
    "dedup": "Edited copies that dedup finds at similarity 0.8, and false ones",
    "decontaminate": "Edited benchmark items that decontaminate finds, and false hits",
    "signals": "Values in edited text that redaction removes, and false ones",
}


def measure(stages: Stages, data: Path, seed: int, count: int) -> dict[str, Counts]:
    """Counts by the name of the page that shows them."""
    items = plant_items(data, seed, count)
    return {
        "dedup": score_copies(plant_copies(data, seed, count), stages),
        "decontaminate": score_items(items.pages, items.rows, stages),
        "signals": score_values(plant_values(data, seed, count), stages),
    }


def main() -> None:
    """Print the tables; draw the pictures where that is asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--work", type=Path, required=True, help="folder for corpora and the store")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=100, help="texts of each kind and strength")
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--images", type=Path, help="folder for a picture of each stage")
    parser.add_argument("--missed", type=int, default=0, help="missed texts to print for each kind")
    chosen = parser.parse_args()
    if not chosen.data.exists():
        print(f"skipped: the texts are those of {chosen.data}, which is not here")
        return
    print(f"{seed_side(chosen.seed)} side, seed {chosen.seed}, {chosen.count} of each strength")
    measured = measure(CommandLine(chosen.work), chosen.data, chosen.seed, chosen.count)
    for name, counts in measured.items():
        is_dedup = name == "dedup"
        head = ("edit", *LEVELS, *(["of pairs at J 0.8 and more"] if is_dedup else []), "false")
        print(f"\n{name}\n{table(head, rows_of_table(counts, similarity=is_dedup))}")
        for (kind, level), one in counts.items():
            for text in one.missed[: chosen.missed]:
                print(f"  {kind}, {level}: {text}")
        if chosen.images:
            note = f"Seed {chosen.seed}, {chosen.count} texts of each kind and strength."
            drawn = figure(counts, TITLES[name], note, template_is_found=name == "signals")
            for dark in (False, True):
                path = chosen.images / f"recall-{name}{'-dark' if dark else ''}.svg"
                path.write_text(draw_svg(drawn, dark=dark))


if __name__ == "__main__":
    main()
