from __future__ import annotations

from typing import Any

import pytest

from artifacts_schema.manifest import InputRef, Manifest
from artifacts_schema.store import Store
from artifacts_schema.store.gc import remove_artifact
from stages.decontaminate.stage import Decontaminate
from stages.engine.page import Artifact, make_page, make_summary

LEAK = "Which of these seven planets is the largest one that orbits our own sun today?"
HOSTILE = "<script>alert(1)</script> "


def collect(store: Store, reference: InputRef) -> None:
    """As `ingot gc` does it."""
    manifest = store.manifest(reference.stage, reference.key)
    assert manifest is not None
    remove_artifact(store, manifest)


def by_title(store: Store, manifest: Manifest) -> dict[str, Any]:
    found = make_page(Decontaminate, Artifact(store, manifest))
    assert len({figure.title for figure in found}) == len(found)
    return {figure.title: figure for figure in found}


@pytest.fixture
def leaked(run_stage: Any, make_documents: Any, make_benchmarks: Any) -> Manifest:
    """One of three documents holds an item of 16 words as a whole; the other item is nowhere."""
    items = [
        ("planets", LEAK, ["Mars", "Jupiter"], 1),
        ("rivers", "A question on rivers that no document of this corpus has at all", [], None),
    ]
    documents = make_documents(
        [
            ["nothing of the sort", f"{HOSTILE}It is asked: {LEAK.upper()} Jupiter! And so on."],
            ["x"],
        ]
    )
    inputs = {"documents": [documents], "benchmarks": [make_benchmarks(items)]}
    return run_stage(Decontaminate, {"ngram": 5, "min_words": 5}, inputs)


def test_items_are_counted_by_benchmark(store: Store, leaked: Manifest) -> None:
    page = by_title(store, leaked)
    assert page["Benchmark items found in the documents"].rows == (("exam", 2, 1, 0.5, 1),)
    held = page["How much of a found item the documents hold"]
    assert held.series[0].values == (*[0] * 9, 1)
    (row,) = page["Documents with the most benchmark text"].rows
    assert row[1] == 12  # 16 words have twelve 5-grams.
    assert row[4] == "exam planets"


def test_the_leak_is_shown_and_what_stands_around_it_marked(store: Store, leaked: Manifest) -> None:
    (pair,) = by_title(store, leaked)["Hits side by side"].pairs
    assert pair.heading == "exam, planets: 12 n-grams shared"
    assert pair.right_heading == "exam, planets"
    document = [(part.text.strip(), part.differs) for part in pair.left]
    assert document == [
        (f"{HOSTILE}It is asked:", True),
        (f"{LEAK.upper()} Jupiter", False),
        ("! And so on.", True),
    ]
    assert [part.differs for part in pair.right] == [False]


def test_summary_is_there_only_with_hits(
    store: Store, leaked: Manifest, run_stage: Any, make_documents: Any, make_benchmarks: Any
) -> None:
    (figure,) = make_summary(Decontaminate, Artifact(store, leaked))
    assert figure.title == "Benchmark items found in the documents"
    inputs = {
        "documents": [make_documents([["one", "two"], []])],
        "benchmarks": [make_benchmarks([("planets", LEAK, [], None)])],
    }
    clean = run_stage(Decontaminate, {}, inputs)
    assert list(make_summary(Decontaminate, Artifact(store, clean))) == []
    assert "None" in by_title(store, clean)["Benchmark items found"].text


def test_a_late_place_in_a_long_item_is_found(
    store: Store, run_stage: Any, make_documents: Any, make_benchmarks: Any
) -> None:
    """A word before it that both sides have by chance is marked all the same."""
    passage = " ".join(f"p{chr(97 + n // 26)}{chr(97 + n % 26)}q" for n in range(600))
    items = [("passage", f"{passage} {LEAK}", [], None)]
    inputs = {
        "documents": [make_documents([[f"{passage.split()[-1]} it says {LEAK}"]])],
        "benchmarks": [make_benchmarks(items)],
    }
    config = {"ngram": 5, "min_words": 5, "min_prompt_share": 0}
    manifest = run_stage(Decontaminate, config, inputs)
    (pair,) = by_title(store, manifest)["Hits side by side"].pairs
    assert [part.text.strip() for part in pair.left if not part.differs] == [LEAK]
    assert [part.text.strip() for part in pair.right if not part.differs] == ["…", LEAK]


def test_collected_inputs_leave_the_counts(store: Store, leaked: Manifest) -> None:
    for reference in (*leaked.inputs["documents"], *leaked.inputs["benchmarks"]):
        collect(store, reference)
    page = by_title(store, leaked)
    assert page["Benchmark items found in the documents"].rows == (("exam", None, 1, None, 1),)
    assert "collected" in page["Hits side by side"].text
