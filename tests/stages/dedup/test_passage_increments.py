"""Passages of earlier snapshots, by `dedup` and `filter`: the corpus of one run over everything."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from near_copies import rows

from artifacts_schema.manifest import Manifest
from stages.dedup.stage import Dedup
from stages.filter.stage import Filter

Make = Callable[..., Any]
MARKED = {"lines": True, "sentences": True, "substrings": 50}
VIEWS = ["duplicate_lines@ccnet", "duplicate_sentences@c4", "duplicate_substrings"]


def words(seed: int, count: int) -> str:
    """So many words that no other seed has."""
    rng = random.Random(seed)
    return " ".join("".join(rng.choices("abcdefghijklmnop", k=7)) for _ in range(count))


LOST, KEPT, LATE = words(1, 60), words(2, 60), words(3, 60)
COPIED = f"{words(4, 90)} {LOST}"
SNAPSHOTS = {
    "A": [COPIED, COPIED, f"{words(5, 90)} {KEPT}"],
    "B": [f"{words(6, 90)} {LOST}", f"{KEPT} {words(7, 90)}", f"{words(8, 90)} {LATE}"],
    "C": [f"{words(9, 90)} {LATE} {words(10, 90)}\n{KEPT}", f"{words(11, 90)} {LOST}"],
}
"""Two documents of A are copies; the second of them has the least id, so it is the holder of LOST,
and goes: then LOST stays in B and C. KEPT and LATE are cut wherever they come again."""


def snapshot(name: str) -> list[dict[str, Any]]:
    """The rows of a snapshot."""
    listed = rows(name, SNAPSHOTS[name])
    ids = sorted((row["doc_id"] for row in listed), reverse=True)
    return [
        {**row, "doc_id": doc_id, "snapshot": name} for row, doc_id in zip(listed, ids, strict=True)
    ]


def test_filters_one_by_one_cut_what_one_filter_cuts(
    run_stage: Make, make_documents: Make, earlier_inputs: Make, read_table: Make
) -> None:
    documents = {name: make_documents([snapshot(name)]) for name in SNAPSHOTS}

    def dedup(names: str, earlier: list[Manifest]) -> Manifest:
        inputs = {
            "documents": [documents[name] for name in names],
            **earlier_inputs(*earlier),
            "passage_index": [(one, "passage_index") for one in earlier],
        }
        manifest: Manifest = run_stage(Dedup, {"passages": {**MARKED, "index": True}}, inputs)
        return manifest

    def kept(names: str, measured: list[Manifest], ledgers: list[Manifest]) -> Manifest:
        inputs = {
            "documents": [documents[name] for name in names],
            "duplicates": [(one, "duplicates") for one in measured],
            "views": [(measured[-1], "views")],
            "ledger": [(one, "ledger") for one in ledgers],
        }
        config = {"rules": [], "personal_data": "keep", "views": VIEWS}
        manifest: Manifest = run_stage(Filter, config, inputs)
        return manifest

    whole = dedup("ABC", [])
    corpus = read_table(kept("ABC", [whole], []), "documents")
    measured: list[Manifest] = []
    ledgers: list[Manifest] = []
    alone: list[dict[str, Any]] = []
    for name in SNAPSHOTS:
        measured.append(dedup(name, list(measured)))
        ledgers.append(kept(name, measured, list(ledgers)))
        alone += read_table(ledgers[-1], "documents").to_pylist()
    assert alone == corpus.to_pylist()

    texts = [row["text"] for row in alone]
    assert [LOST in text for text in texts] == [True, False, True, False, False, False, True]
    assert [KEPT in text for text in texts] == [False, True, *[False] * 5]
    assert [LATE in text for text in texts] == [*[False] * 4, True, False, False]
    views = {file.path: file.sha256 for one in measured for file in one.outputs["views"].files}
    assert views == {file.path: file.sha256 for file in whole.outputs["views"].files}
