from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from artifacts_schema.errors import UsageError
from stages.dedup.config import FIXED, LEAST, MIB, PARENT, SHINGLES, budget, workers_within

DOCUMENTS = 300_000
ROOT = Path(__file__).parents[3]


def test_a_budget_is_what_is_left_of_the_memory_of_all_processes() -> None:
    assert budget(2048 * MIB, 1).bytes == 2048 * MIB - FIXED
    assert budget(2048 * MIB, 2).bytes == (2048 * MIB - PARENT) // 2 - FIXED
    one = budget(FIXED + 160 * MIB, 1)
    assert one.rows == one.pairs == MIB
    assert one.pair_bytes == 80 * MIB
    assert one.shingle_bytes == SHINGLES == 8 * MIB
    assert budget(FIXED + 32 * MIB, 1).shingle_bytes == 8 * MIB


@pytest.mark.parametrize("workers", [1, 2, 16])
def test_too_little_memory_is_refused_with_the_least_that_does(workers: int) -> None:
    least = (PARENT if workers > 1 else 0) + workers * (FIXED + LEAST)
    assert budget(least, workers).rows > 100_000
    with pytest.raises(UsageError) as caught:
        budget(least - 1, workers)
    assert f"memory: {least // MIB}MiB" in str(caught.value)
    assert (" or fewer workers" in str(caught.value)) == (workers > 1)


@pytest.mark.parametrize("memory", [400, 1024, 2048, 100_000])
def test_one_worker_more_than_memory_does_for_is_refused(memory: int) -> None:
    most = workers_within(memory * MIB)
    assert budget(memory * MIB, most).bytes >= LEAST
    with pytest.raises(UsageError):
        budget(memory * MIB, most + 1)


@pytest.mark.slow
def test_many_documents_are_signed_and_bucketed_within_the_least_memory(tmp_path: Path) -> None:
    script, rows = Path(__file__).with_name("little_memory.py"), budget(FIXED + LEAST, 1).rows
    made = subprocess.run(
        [sys.executable, str(script), str(tmp_path), str(DOCUMENTS), str(rows)],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": f"{ROOT}:{ROOT / 'tests'}"},
    )
    peak, documents, tasks, pairs = map(int, made.stdout.split())
    assert documents == DOCUMENTS
    assert tasks > 14
    # Every third document shares every key with the one before it.
    assert pairs == DOCUMENTS // 3
    assert peak < FIXED + LEAST
