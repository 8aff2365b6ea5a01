"""Benchmarks made of a few words."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from artifacts_schema.manifest import Manifest

Make = Callable[..., tuple[Manifest, str]]


@pytest.fixture
def make_benchmarks(given: Make) -> Make:
    """`make_benchmarks([(item_id, prompt, choices, answer), …])` → a benchmarks artifact."""

    def make(items: Sequence[tuple[str, str, list[str], int | None]]) -> tuple[Manifest, str]:
        rows = [
            {
                "benchmark": "exam",
                "item_id": item_id,
                "form": "multiple_choice" if choices else "text",
                "prompt": prompt,
                "choices": choices,
                "answer": answer,
                "metadata": "{}",
            }
            for item_id, prompt, choices, answer in items
        ]
        return given("benchmarks", {"00000.parquet": rows})

    return make
