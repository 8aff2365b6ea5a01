from __future__ import annotations

import json

import pytest

from stages.dedup.pipeline import make_statistics
from stages.dedup.presets import Settings
from stages.dedup.verification import STEPS

SETTINGS = Settings("word", 5, "fold", "ingot", 14, 8, 1, 8192)


def value(pairs: int, **steps: int) -> dict[str, object]:
    similarity = [0] * STEPS
    for step, count in steps.items():
        similarity[int(step[1:])] = count
    counts = {"candidates": 10, "unequal": 1, "estimated": 2, "pairs": pairs}
    return {**counts, "similarity": similarity}


def test_counts_of_tasks_add_up_and_closure_is_told_apart() -> None:
    told = make_statistics(
        {"floor": 0.5},
        SETTINGS,
        {"documents": 9},
        [value(3, s10=1, s19=2), value(4, s19=4)],
        [value(1, s12=1)],
        [{"documents_with_pairs": 5, "capped_documents": 1, "pairs": 8}] * 2,
        None,
    )
    assert told["counts"] == {
        "documents": 9,
        "candidate_pairs": 20,
        "verified_pairs": 7,
        "closed_candidates": 10,
        "closed_pairs": 1,
        "unequal_candidates": 3,
        "estimated_pairs": 6,
        "documents_with_pairs": 10,
        "capped_documents": 2,
    }
    assert told["similarity"] == [
        {"from": 0.5, "to": 0.55, "pairs": 1},
        {"from": 0.6, "to": 0.65, "pairs": 1},
        {"from": 0.95, "to": 1.0, "pairs": 6},
    ]
    assert told["parameters"]["settings"]["bands"] == 14
    assert json.loads(json.dumps(told)) == told


def test_the_curve_is_that_of_the_bands() -> None:
    told = make_statistics({}, SETTINGS, {}, [], [], [], {"sampled": 3})
    at = {point["similarity"]: point["probability"] for point in told["curve"]}
    # Penedo et al. 2024 (FineWeb), 14 bands of 8: 77 % at .75, 92.4 % at .8, 98.8 % at .85.
    assert [at[s] for s in (0.75, 0.8, 0.85)] == pytest.approx([0.77, 0.924, 0.988], abs=3e-3)
    assert told["similarity"] == []
    assert told["recall"] == {"sampled": 3}


def test_pairs_that_were_not_measured_have_no_histogram() -> None:
    told = make_statistics({}, SETTINGS, {}, [{**value(3), "similarity": []}], [], [], None)
    assert (told["counts"]["verified_pairs"], told["similarity"]) == (3, [])
