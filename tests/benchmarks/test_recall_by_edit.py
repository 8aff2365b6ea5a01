"""Recall and false positives by kind of edit, on a small corpus of the development side.

Floors are those of development runs with some room (`python -m tests.benchmarks.recall_by_edit`);
docs/figures.md has the figures of the test side.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from stages.decontaminate.stage import Decontaminate
from stages.dedup.stage import Dedup
from stages.filter.stage import Filter
from stages.signals.stage import Signals
from tests.benchmarks.edit_corpora import (
    LEVELS,
    Planted,
    plant_copies,
    plant_items,
    plant_values,
)
from tests.benchmarks.recall_by_edit import (
    UNDECIDED,
    Copies,
    Counts,
    figure,
    jaccard,
    rows_of_table,
    score_copies,
    score_items,
    score_values,
    total,
)
from tests.benchmarks.text_edits import EDITS

SEED = 2
BENCHMARKS = ("arc_challenge", "gsm8k-test", "mmlu-dev", "piqa")


class InProcess:
    """The stages in a store of the test."""

    def __init__(self, run_stage: Any, make_documents: Any, given: Any, read_table: Any) -> None:
        self._run, self._documents = run_stage, make_documents
        self._given, self._read = given, read_table

    def find_copies(self, texts: Sequence[str]) -> Copies:
        documents = self._documents([texts])
        made = self._run(Dedup, {"recall_sample": 0}, {"documents": [documents]})
        return Copies(self._read(made, "duplicates").to_pylist())

    def find_items(self, pages: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> list[set[str]]:
        whole = [{"choices": [], "answer": None, **row, "metadata": "{}"} for row in rows]
        benchmarks = self._given("benchmarks", {"00000.parquet": whole})
        inputs = {"documents": [self._documents([pages])], "benchmarks": [benchmarks]}
        made = self._run(Decontaminate, {}, inputs)
        paths = [file.path for file in made.output("contamination").files if "/" in file.path]
        (path,) = paths
        hits = self._read(made, "contamination", path)["hits"].to_pylist()
        return [{f"{hit['benchmark']}/{hit['item_id']}" for hit in row} for row in hits]

    def redact(self, texts: Sequence[str]) -> list[str]:
        documents = self._documents([texts])
        measured = self._run(Signals, {}, {"documents": [documents]})
        inputs = {
            "documents": [documents],
            "signals": [(measured, "signals")],
            "views": [(measured, "views")],
        }
        return self._read(self._run(Filter, UNDECIDED, inputs), "documents")["text"].to_pylist()


@pytest.fixture
def stages(run_stage: Any, make_documents: Any, given: Any, read_table: Any) -> InProcess:
    return InProcess(run_stage, make_documents, given, read_table)


def recall(counts: Counts, kind: str) -> float:
    return total(counts, kind, lambda one: one.found) / total(counts, kind, lambda c: c.planted)


def false(counts: Counts, kinds: Sequence[str]) -> int:
    return sum(total(counts, kind, lambda one: one.false) for kind in kinds)


COPIES = [kind for kind, edit in EDITS.items() if edit.meaning == "copy"]


def test_copies_at_08_are_found_by_kind_and_no_others(stages: InProcess, shared_data: Path) -> None:
    counts = score_copies(plant_copies(shared_data, SEED, 10), stages)
    similar = sum(total(counts, kind, lambda one: one.similar) for kind in EDITS)
    found = sum(total(counts, kind, lambda one: one.similar_found) for kind in EDITS)
    assert similar > 150
    assert found >= 0.96 * similar
    assert {kind: recall(counts, kind) for kind in ("digits translated", "casing")} == {
        "digits translated": 1.0,
        "casing": 1.0,
    }
    assert recall(counts, "paragraph moved") >= 0.9
    assert false(counts, COPIES) == 0
    for level in LEVELS[:2]:  # Of a frame of 0.3 and 0.6 of a page J is 0.2 and 0.4.
        assert counts["template page", level].false == 0


FLOORS_OF_ITEMS = {
    "paragraph moved": 0.9,
    "boilerplate": 1.0,
    "numbers changed": 1.0,
    "prefix cut": 0.7,
    "OCR noise": 0.6,
    "digits translated": 1.0,
    "sentences reordered": 0.9,
    "markup": 0.95,
    "casing": 1.0,
}


def test_items_are_found_by_kind_and_clean_pages_hold_none(
    stages: InProcess, shared_data: Path
) -> None:
    planted = plant_items(shared_data, SEED, 10, BENCHMARKS)
    counts = score_items(planted.pages, planted.rows, stages)
    reached = {kind: recall(counts, kind) for kind in FLOORS_OF_ITEMS}
    below = {k: share for k, share in reached.items() if share < FLOORS_OF_ITEMS[k]}
    assert below == {}
    assert false(counts, COPIES) == 0


def test_values_are_redacted_by_kind_and_look_alikes_are_left(
    stages: InProcess, shared_data: Path
) -> None:
    counts = score_values(plant_values(shared_data, SEED, 10), stages)
    below = {kind: recall(counts, kind) for kind in EDITS if recall(counts, kind) < 0.9}
    assert below == {}
    everywhere = sum(total(counts, kind, lambda one: one.found) for kind in EDITS)
    assert everywhere >= 0.97 * 30 * len(EDITS)
    assert false(counts, list(EDITS)) <= 3


class Told:
    """Stages whose answers the test gives."""

    def __init__(self, rows: Any = (), hits: Any = (), written: Any = ()) -> None:
        self._rows, self._hits, self._written = rows, hits, written

    def find_copies(self, texts: Sequence[str]) -> Copies:
        return Copies(self._rows)

    def find_items(self, pages: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> list[set[str]]:
        return list(self._hits)

    def redact(self, texts: Sequence[str]) -> list[str]:
        return list(self._written)


def made_by(kind: str, numbers: Callable[[], int], **fields: str) -> Planted:
    words = " ".join(f"w{numbers()}" for _ in range(30))
    return Planted(kind, "light", words, fields.get("text", words), item=fields.get("item", ""))


def row(name: str, exact: str, *partners: tuple[str, float]) -> dict[str, Any]:
    listed = [{"doc_id": other, "similarity": similarity} for other, similarity in partners]
    return {"doc_id": name, "exact_class": exact, "partners": listed}


def test_copies_are_scored_by_class_pair_and_threshold() -> None:
    """Four pairs: one class; listed at 0.8; listed below it; with a stranger's document."""
    numbers = count().__next__
    planted = [made_by("casing", numbers) for _ in range(4)]
    rows = [
        *(row("a", "a"), row("b", "a")),
        *(row("c", "c"), row("d", "d", ("c", 0.8))),
        *(row("e", "e"), row("f", "f", ("e", 0.79))),
        *(row("g", "g", ("a", 0.9)), row("h", "h")),
    ]
    count_of = score_copies(planted, Told(rows))["casing", "light"]
    assert (count_of.planted, count_of.found) == (4, 2)
    assert (count_of.similar, count_of.similar_found) == (4, 2)
    assert count_of.false == 2  # The fourth, and the first, which it is said to be a copy of.


def test_an_exact_similarity_by_hand() -> None:
    """Six 5-grams of ten words; the last word is in one of them. Digits of all scripts are one."""
    words = list("abcdefghij")
    assert jaccard(" ".join(words), " ".join([*words[:-1], "z"])) == 5 / 7
    assert jaccard("a b c d 12", "A, b; c d ١٢!") == 1


def test_hits_and_what_is_left_are_scored_for_pages_and_their_twins() -> None:
    numbers = count().__next__
    planted = [made_by("casing", numbers, item=f"b/{n}") for n in range(3)]
    planted.append(made_by("template page", numbers, item="b/3"))
    hits = [{"b/0"}, {"b/9"}, set(), {"b/3"}, set(), {"b/9"}, set(), set()]
    counts = score_items(planted, [], Told(hits=hits))
    assert (counts["casing", "light"].found, counts["casing", "light"].false) == (1, 1)
    assert (counts["template page", "light"].found, counts["template page", "light"].false) == (
        1,
        1,
    )
    values = [Planted("casing", "light", "me@x.org", "to me@x.org", "to us") for _ in range(2)]
    written = ["to <EMAIL>", "to me@x.org", "to us", "to <EMAIL>"]
    one = score_values(values, Told(written=written))["casing", "light"]
    assert (one.planted, one.found, one.clean, one.false) == (2, 1, 2, 1)


def test_table_and_figure_have_every_kind_and_no_recall_of_templates() -> None:
    numbers = count().__next__
    planted = [
        Planted(kind, level, *(made_by(kind, numbers).original,) * 2, item="b/1")
        for kind in EDITS
        for level in LEVELS
    ]
    hits = [{"b/1"} for _ in planted] + [set() for _ in planted]
    counts = score_items(planted, [], Told(hits=hits))
    rows = rows_of_table(counts)
    assert [text.split(" (")[0] for text, *_ in rows] == list(EDITS)
    assert rows[0][1] == "1.000 [0.207, 1.000]"  # One of one: n / (n + 1.96^2).
    drawn = figure(counts, "title", "note", template_is_found=False)
    assert drawn.values[0] == (1, 1, 1, 0)
    assert drawn.values[-1] == (None, None, None, 1)
