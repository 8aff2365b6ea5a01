"""Snapshot by snapshot with passage indexes: the same spans as one search over everything."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest

from artifacts_schema.errors import IngotError
from stages.dedup import passage_files, passage_occurrences

Make = Callable[..., Any]
Row = dict[str, Any]
ALL: dict[str, Any] = {"lines": True, "sentences": True, "substrings": 8}
CASES = [
    (ALL, 1),
    (ALL, 2),
    *(pytest.param({name: value}, 2, marks=pytest.mark.full) for name, value in ALL.items()),
]


def snapshots(seed: int, rows: Make) -> list[list[list[Row]]]:
    """Three snapshots of one to three shards whose texts share lines, sentences and runs of words,
    within themselves and with each other; the ids of each lie among those of the others."""
    rng = random.Random(seed)
    sentences = [
        " ".join(f"w{rng.randrange(300)}" for _ in range(rng.randint(2, 9))) + "."
        for _ in range(60)
    ]
    texts = []
    for number in range(48):
        start = rng.randrange(50)
        own = [f"Own words {number} here.", *sentences[start : start + rng.randint(1, 9)]]
        words = " ".join(own).split()
        place = rng.randrange(len(words))
        if rng.random() < 0.4:  # A run that keeps to no bounds of sentences.
            own.append(" ".join(words[place : place + rng.randint(3, 30)]))
        texts.append("".join(s + rng.choice([" ", "\n", "\n\n"]) for s in own))
    documents = rows(texts)
    rng.shuffle(documents)
    made = []
    for place in range(0, 48, 16):
        ours = documents[place : place + 16]
        cuts = sorted(rng.sample(range(17), rng.randint(0, 2)))
        made.append([ours[a:b] for a, b in zip([0, *cuts], [*cuts, 16], strict=True)])
    return made


@pytest.mark.parametrize(("kind", "seed"), CASES)
def test_three_snapshots_one_by_one_have_the_spans_of_one_search(
    find: Make, rows: Make, kind: dict[str, Any], seed: int
) -> None:
    inputs = snapshots(seed, rows)
    whole = find(inputs, **kind)
    found: list[Any] = []
    for snapshot in inputs:
        found.append(find([snapshot], earlier=list(found), index=True, **kind))
    spans: dict[str, Any] = {}
    for one in found:
        spans |= one.spans
    assert spans == whole.spans
    for view in whole.told:
        for name in ("passages", "repeated", "spans", "repeated_characters"):
            assert sum(one.told[view][name] for one in found) == whole.told[view][name]
    # There is something to be equal: of every view, passages that earlier snapshots hold.
    earlier = {row["doc_id"] for snapshot in inputs[:2] for shard in snapshot for row in shard}
    across = {
        v for listed in found[2].spans.values() for v, _, _, label in listed if label in earlier
    }
    assert across == whole.told.keys()


def test_an_index_of_two_snapshots_and_one_of_the_third(find: Make, rows: Make) -> None:
    inputs = snapshots(3, rows)
    whole = find(inputs, **ALL)
    both = find(inputs[:2], index=True, **ALL)
    last = find(inputs[2:], earlier=[both], **ALL)
    assert both.spans | last.spans == whole.spans


def test_retiring_the_first_leaves_what_a_search_without_it_finds(find: Make, rows: Make) -> None:
    inputs = snapshots(4, rows)
    first = find(inputs[:1], index=True, **ALL)
    second = find(inputs[1:2], earlier=[first], index=True, **ALL)
    last = find(inputs[2:], earlier=[second], **ALL)
    whole = find(inputs[1:], **ALL)
    assert last.spans == {ident: whole.spans[ident] for ident in last.spans}


@pytest.mark.full
def test_index_and_spans_are_the_same_for_any_workers(find: Make, rows: Make) -> None:
    inputs = snapshots(6, rows)
    first = find(inputs[:1], index=True, **ALL)
    second = find(inputs[1:], earlier=[first], index=True, **ALL)
    again = find(inputs[:1], index=True, workers=2, **ALL)
    assert again.manifest.outputs == first.manifest.outputs
    repeated = find(inputs[1:], earlier=[first], index=True, workers=2, **ALL)
    assert repeated.manifest.outputs == second.manifest.outputs


def test_index_and_spans_are_the_same_for_any_memory(
    find: Make, rows: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    inputs = snapshots(5, rows)
    # Several groups, parts and batches, which are not the tasks.
    monkeypatch.setattr(passage_files, "ROWS_OF_A_GROUP", 64)
    monkeypatch.setattr(passage_files, "DOCUMENTS_OF_A_GROUP", 5)
    monkeypatch.setattr("stages.dedup.passage_repeats.ROWS_OF_A_PART", 100)
    monkeypatch.setattr(passage_occurrences, "BATCH_TOKENS", 30)
    first = find(inputs[:1], index=True, **ALL)
    paths = {file.path for file in first.manifest.outputs["passage_index"].files}
    assert {"index.json", "lines/00001.parquet", "anchors/00001.parquet"} <= paths
    second = find(inputs[1:], earlier=[first], index=True, **ALL)
    again = find(inputs[:1], index=True, rows_per_task=60, **ALL)
    assert again.manifest.outputs == first.manifest.outputs
    repeated = find(inputs[1:], earlier=[first], index=True, rows_per_task=60, **ALL)
    assert repeated.manifest.outputs == second.manifest.outputs


def test_a_window_is_found_where_only_a_later_place_of_its_anchor_agrees(
    find: Make, rows: Make
) -> None:
    middle = [f"m{number}" for number in range(30)]
    longer = [*(f"l{number}" for number in range(15)), *middle, *(f"r{n}" for n in range(15))]
    texts = [" ".join(["a", *middle, "b"]), " ".join(["c", *longer, "d"]), " ".join(longer)]
    documents = rows(texts)
    first = find([[documents[:2]]], index=True, substrings=50)
    last = find([[documents[2:]]], earlier=[first], substrings=50)
    assert last.spans[documents[2]["doc_id"]] == [
        ("duplicate_substrings", 0, len(texts[2]), documents[1]["doc_id"])
    ]


def test_without_index_nothing_is_written(find: Make, rows: Make) -> None:
    found = find(snapshots(1, rows)[:1], **ALL)
    assert found.manifest.outputs["passage_index"].files == ()


@pytest.mark.parametrize(
    ("made", "asked", "message"),
    [
        ({"lines": True}, {"lines": True}, "no passage index was written"),
        ({"lines": True, "index": True}, {"sentences": True}, "holds no sentences"),
        ({"substrings": 8, "index": True}, {"substrings": 9}, "substrings of 8 tokens"),
        ({"lines": True, "index": True}, {}, "no passages are asked for"),
    ],
)
def test_an_index_that_does_not_fit_is_refused(
    find: Make, rows: Make, made: dict[str, Any], asked: dict[str, Any], message: str
) -> None:
    inputs = snapshots(1, rows)
    first = find(inputs[:1], **made)
    with pytest.raises(IngotError, match=message):
        find(inputs[1:], earlier=[first], **asked)


def test_documents_that_an_index_describes_are_refused(find: Make, rows: Make) -> None:
    inputs = snapshots(1, rows)
    first = find(inputs[:1], lines=True, index=True)
    with pytest.raises(IngotError, match="come twice"):
        find(inputs[:1], earlier=[first], lines=True)
    with pytest.raises(IngotError, match="come twice"):
        find(inputs[1:], earlier=[first, first], lines=True)
