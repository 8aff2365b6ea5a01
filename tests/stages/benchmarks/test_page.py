from __future__ import annotations

from typing import Any

from artifacts_schema.store import Store
from stages.engine.page import Artifact, make_page
from stages.examples.stage import Benchmarks

HOSTILE = "<script>alert(1)</script>"


def item(benchmark: str, number: int, choices: int, answer: int | None) -> dict[str, Any]:
    return {
        "benchmark": benchmark,
        "item_id": f"{number:02d}",
        "form": "multiple_choice" if choices else "text",
        "prompt": HOSTILE.ljust(50, "p"),
        "choices": [f"choice {place}" for place in range(choices)],
        "answer": answer,
        "metadata": "{}",
    }


def test_benchmarks_are_described_each_by_its_items(store: Store, given: Any) -> None:
    """Chance is the mean of 1 / choices: (1/2 + 1/2 + 1/2 + 1/4) / 4 = 0.4375."""
    items = [
        item("exam", 0, 2, 0),
        item("exam", 1, 2, 0),
        item("exam", 2, 2, 1),
        item("exam", 3, 4, 0),
        item("books", 0, 0, None),
    ]
    manifest, _ = given("benchmarks", {"00000.parquet": items[:2], "00001.parquet": items[2:]})
    found = make_page(Benchmarks, Artifact(store, manifest))
    page: dict[str, Any] = {figure.title: figure for figure in found}
    assert page["Items by benchmark"].rows == (
        ("exam", "multiple choice", 4, 50, 2.5, 0.4375),
        ("books", "text", 1, 50, None, None),
    )
    places = page["Place of the right answer (share of items)"]
    assert places.rows == ("exam",)
    assert places.values == ((0.75, 0.25),)
    exam, books = page["Benchmark items"].samples
    assert exam.text.splitlines()[1:] == ["→ choice 0", "  choice 1"]
    assert books.text == HOSTILE.ljust(50, "p")


def test_many_choices_and_benchmarks_stay_bounded(store: Store, given: Any) -> None:
    items = [item(f"b{n:02d}", n, 30, 29) for n in range(30)]
    manifest, _ = given("benchmarks", {"00000.parquet": items})
    found = make_page(Benchmarks, Artifact(store, manifest))
    page: dict[str, Any] = {figure.title: figure for figure in found}
    assert len(page["Items by benchmark"].rows) == 20
    assert "10" in page["Items by benchmark"].note
    assert len(page["Benchmark items"].samples) == 6
    assert page["Place of the right answer (share of items)"].columns[-1] == "11 and on"
