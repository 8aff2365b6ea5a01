from __future__ import annotations

import numpy as np
import pyarrow as pa

from stages.dedup.neighbours import duplicates_table, nearest
from stages.dedup.verify import Pairs


def pairs(*rows: tuple[int, int, float]) -> Pairs:
    left, right, similarity = zip(*rows, strict=True)
    bands = np.arange(len(rows), dtype=np.int32)
    return Pairs(np.array(left), np.array(right), np.array(similarity, np.float32), bands)


def test_both_sides_list_each_other_by_similarity_falling() -> None:
    found = nearest(pairs((0, 1, 0.6), (0, 2, 0.9), (1, 2, 0.7)), documents=4, most=10)
    assert found.offsets.tolist() == [0, 2, 4, 6, 6]
    assert found.partner.tolist() == [2, 1, 2, 0, 0, 1]
    assert found.similarity.tolist() == [np.float32(s) for s in (0.9, 0.6, 0.7, 0.6, 0.9, 0.7)]
    assert found.band.tolist() == [1, 0, 2, 0, 1, 2]


def test_a_capped_list_keeps_the_earliest_of_the_most_similar() -> None:
    rows = [(0, 9, 0.55), (1, 9, 0.91), (2, 9, 0.7), (3, 9, 0.99), (4, 9, 0.95), (5, 9, 0.79)]
    found = nearest(pairs(*rows), documents=10, most=3)
    # .91, .99 and .95 are one step of similarity, .7 and .79 the next.
    assert found.partner[found.offsets[9] :].tolist() == [3, 4, 1]
    assert found.capped == 1
    found = nearest(pairs(*rows), documents=10, most=4)
    assert found.partner[found.offsets[9] :].tolist() == [3, 4, 1, 2]


def test_rows_are_written_shard_by_shard_with_partners_of_any_shard() -> None:
    ids = pa.array(["a", "b", "c", "d"])
    found = nearest(pairs((0, 2, 0.75), (2, 3, 0.5)), documents=4, most=10)
    first = np.array([0, 0, 2, 3])
    table = duplicates_table(ids, first, found, 1, 3)
    assert table.to_pylist() == [
        {"doc_id": "b", "exact_class": "a", "partners": []},
        {
            "doc_id": "c",
            "exact_class": "c",
            "partners": [
                {"doc_id": "a", "similarity": 0.75, "band": 0},
                {"doc_id": "d", "similarity": 0.5, "band": 1},
            ],
        },
    ]
