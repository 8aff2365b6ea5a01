"""Recall on planted items and false positives on clean texts, on a part of the test side.

`tests/benchmarks/decontamination.py` prints the whole table; docs/figures.md has its figures.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from stages.decontaminate.config import DecontaminateConfig
from tests.benchmarks.decontamination import (
    EDITS,
    build_index,
    held_items,
    measure_recall,
    read_items,
)
from tests.benchmarks.labelled import rows_of
from tests.benchmarks.splits import FIRST_TEST_SEED, select, side

NAMES = ("arc_easy", "commonsenseqa", "mmlu-test", "openbookqa", "piqa", "triviaqa", "winogrande")


def test_recall_by_length_and_edit_and_clean_texts(shared_data: Path) -> None:
    items = read_items(shared_data, NAMES)
    index = build_index(items, DecontaminateConfig())
    test = [item for item in items if side(f"{item.benchmark}:{item.row['item_id']}") == "test"]
    carriers = [row["text"] for row in rows_of(shared_data, "text/en-web-c4-demo")][1:60:2]
    counts = measure_recall(test[::18], index, carriers, FIRST_TEST_SEED + 1)
    by_edit = {edit: Counter[str]() for edit in EDITS}
    for (_, form, edit, words), one in counts.items():
        if (form, words) not in (("prompt", "1-4"), ("prompt", "5-7")) and words not in (
            "1-4",
            "numbers",
        ):
            by_edit[edit].update(one)
    for edit, one in by_edit.items():
        least = 0.99 if edit == "verbatim" else 0.97
        assert one["planted"] > 250
        assert one["found"] >= least * one["planted"], edit

    clean = [
        row["text"]
        for name in ("text/en-classics", "text/en-docs", "text/en-textbooks", "code/python-stdlib")
        for row in select(rows_of(shared_data, name), "test")
    ]
    assert sum(map(bool, held_items(clean[::4], index))) <= len(clean) / 1000
