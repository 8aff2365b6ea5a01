from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from artifacts_schema.identity import document_id
from artifacts_schema.manifest import InputRef, Manifest
from artifacts_schema.store import Store
from artifacts_schema.store.gc import remove_artifact
from stages.dedup.figures import Clusters, count_between
from stages.dedup.stage import Dedup, MergeIndexes
from stages.engine.page import Artifact, make_page

TEXT = " ".join(f"word{chr(97 + n % 26)}{chr(97 + n // 26)}" for n in range(100))
HOSTILE = "<img src=x onerror=alert(1)> \x1b[2J "


def collect(store: Store, reference: InputRef) -> None:
    """As `ingot gc` does it."""
    manifest = store.manifest(reference.stage, reference.key)
    assert manifest is not None
    remove_artifact(store, manifest)


def ident(number: int, snapshot: str) -> str:
    return document_id(snapshot, "file", number)


def partner(doc_id: str, similarity: float | None = 0.9) -> dict[str, Any]:
    return {"doc_id": doc_id, "similarity": similarity, "containment": similarity, "band": 0}


def row(doc_id: str, exact: str, *partners: dict[str, Any]) -> dict[str, Any]:
    classes = {"exact_class": exact, "text_class": exact}
    return {"doc_id": doc_id, **classes, "partners": list(partners)}


def by_title(store: Store, manifest: Manifest) -> dict[str, Any]:
    found = make_page(Dedup, Artifact(store, manifest))
    assert len({figure.title for figure in found}) == len(found)
    return {figure.title: figure for figure in found}


@pytest.fixture
def deduplicated(run_stage: Any, make_documents: Any) -> Manifest:
    """Two crawls: a text three times (once in capitals), a near copy of it, another text twice.

    The near copy is in capitals, since in those the least id of the first crawl has the text.
    """

    def page(text: str, url: str) -> dict[str, Any]:
        return {"text": text, "url": url}

    near = TEXT.upper().replace("WORDXA", "ANOTHER")
    first = [
        [page(TEXT, "https://a.example/1"), page("quite alone here", "https://a.example/2")],
        [page(TEXT.upper(), "https://www.a.example/3")],
    ]
    second = [
        [page(HOSTILE + "short text", "https://b.example/1"), page(near, "https://b.example/2")],
        [page(TEXT, "https://c.example/1"), page(HOSTILE + "short text", "https://b.example/3")],
    ]
    inputs = [make_documents(first, snapshot="A"), make_documents(second, snapshot="B")]
    return run_stage(Dedup, {}, {"documents": inputs})


@pytest.fixture
def measured(given: Callable[..., Any], run_stage: Any, make_documents: Any, store: Store) -> Any:
    """`measured(recall=…, counts=…)` → duplicates of two texts that differ, other numbers told."""
    inputs = {"documents": [make_documents([["one text", "another one"]])]}
    duplicates = Artifact(store, run_stage(Dedup, {}, inputs)).output("duplicates")
    told = duplicates.read_json("statistics.json")

    def commit(recall: Any = None, counts: Any = None) -> Manifest:
        changed = {**told, "recall": recall, "counts": {**told["counts"], **(counts or {})}}
        return given("duplicates", {"statistics.json": changed})[0]

    return commit


def test_clusters_are_counted_by_size_and_sort(store: Store, deduplicated: Manifest) -> None:
    """Four documents with a near copy among them, and two equal ones."""
    page = by_title(store, deduplicated)
    sizes = page["Clusters of copies, by size"]
    assert sizes.labels == ("2", "3 to 4")
    assert [series.values for series in sizes.series] == [(1, 0), (0, 1)]
    assert re.findall(r"\d+", sizes.note)[:2] == ["6", "2"]

    largest = page["Largest clusters of copies"].rows
    assert [row[:3] for row in largest] == [
        (4, 2, "a.example, b.example, c.example"),
        (2, 1, "b.example"),
    ]

    account = dict(page["Documents compared and copies found"].rows)
    assert account["documents"] == 7
    assert account["… their further copies"] == 2
    assert account["… their further copies, once normalised"] == 3
    assert account["… at the floor or above"] == 1
    assert "earlier documents they are compared with" not in account


def test_copies_are_placed_by_snapshot_and_domain(store: Store, deduplicated: Manifest) -> None:
    """Of A: both copies of the text have one in A and one in B; of B: 2 have one in A, 4 in B."""
    page = by_title(store, deduplicated)
    matrix = page["Documents with a copy in another source or snapshot"]
    assert matrix.rows == ("web, B", "web, A")
    assert matrix.values == ((4, 2), (2, 2))
    domains = page["Documents with a copy on another domain"]
    assert domains.rows == ("b.example", "a.example", "c.example")
    assert domains.values == ((2, 1, 1), (2, 2, 2), (1, 1, None))


def test_pairs_are_shown_with_their_difference(store: Store, deduplicated: Manifest) -> None:
    """One word of 100 changed: 91 of 96 5-grams stay on each side: 91 / 101, 91 / 96."""
    page = by_title(store, deduplicated)
    near, exact = page["Pairs of copies side by side"].pairs
    assert near.heading.startswith("similarity 0.901, containment 0.948: https://")
    changed = [
        part.text.strip() for side in (near.left, near.right) for part in side if part.differs
    ]
    assert sorted(changed) == ["ANOTHER", "WORDXA"]
    assert exact.heading.startswith("equal once normalised: https://")
    assert page["Verified pairs by similarity"].series[0].values == (*[0] * 8, 1, 0)


def test_hostile_text_is_plain_data(store: Store, run_stage: Any, make_documents: Any) -> None:
    documents = make_documents([[HOSTILE + "some text", HOSTILE + "some text"]])
    page = by_title(store, run_stage(Dedup, {}, {"documents": [documents]}))
    (pair,) = page["Pairs of copies side by side"].pairs
    assert "".join(part.text for part in pair.left) == HOSTILE + "some text"


RECALL = "Pairs that are found, by similarity: in theory and measured"


def test_the_curve_is_that_of_the_parameters(store: Store, deduplicated: Manifest) -> None:
    """1 - (1 - 0.5^8)^14 = 0.0533."""
    curve = by_title(store, deduplicated)[RECALL]
    points = dict(zip(curve.series[0].x, curve.series[0].y, strict=True))
    assert points[0.5] == pytest.approx(0.0533, abs=1e-4)
    assert [(mark.x, mark.label) for mark in curve.marks] == [(0.5, "floor")]


def test_measured_recall_stands_beside_the_curve(
    store: Store, measured: Callable[..., Manifest]
) -> None:
    """In the middle of its step; a step of which the sample has no pair is a gap."""

    def step(begin: float, pairs: int, by_bands: int, found: int) -> dict[str, Any]:
        counts = {"pairs": pairs, "by_bands": by_bands, "found": found, "interval": [0.25, 0.75]}
        return {"from": begin, "to": begin + 0.05, **counts}

    documents = {"similarity": 0.8, "with_partner": 40, "found": 39, "interval": [0.871, 0.996]}
    recall = {
        "sampled": 512,
        "floor": 0.5,
        "similarity": [step(0.5, 8, 1, 4), step(0.6, 10, 5, 9)],
        "documents": documents,
    }
    curve = by_title(store, measured(recall=recall, counts={"capped_buckets": 3}))[RECALL]
    theory, by_bands, found, low, high = curve.series
    assert by_bands.x == found.x == pytest.approx((0.525, 0.575, 0.625))
    assert set(by_bands.x) < set(theory.x)
    assert by_bands.y == (0.125, None, 0.5)
    assert found.y == (0.5, None, 0.9)
    assert (low.y, high.y) == ((0.25, None, 0.25), (0.75, None, 0.75))
    assert re.findall(r"\d+", curve.note)[:2] == ["512", "18"]
    assert "97.5% (95 %: 87.1% to 99.6%)" in curve.note
    assert re.search(r"\b3 .* 128\b", curve.note)


def test_recall_that_was_not_measured_is_said(
    store: Store, run_stage: Any, make_documents: Any
) -> None:
    inputs = {"documents": [make_documents([[TEXT, TEXT + " and more"]])]}
    curve = by_title(store, run_stage(Dedup, {"recall_sample": 0}, inputs))[RECALL]
    assert len(curve.series) == 1


def test_pairs_that_were_not_verified_are_shown_as_such(
    store: Store, run_stage: Any, make_documents: Any
) -> None:
    """96 of 97 5-grams agree: proposed with a probability of 1 - (1 - .99^8)^14 > 1 - 1e-15."""
    inputs = {"documents": [make_documents([[TEXT, TEXT + " furthermore"]])]}
    page = by_title(store, run_stage(Dedup, {"verify": False}, inputs))
    (pair,) = page["Pairs of copies side by side"].pairs
    assert pair.heading.startswith("not verified: ")
    assert page["Clusters of copies, by size"].series[1].values == (1,)
    assert "not verified" in page["Documents compared and copies found"].note
    assert "Verified pairs by similarity" not in page


def test_copies_of_earlier_snapshots_are_counted_and_named(
    store: Store, run_stage: Any, make_documents: Any, earlier_inputs: Any
) -> None:
    """Of B one is an exact and one a near copy of A's; two of B are near copies of each other.

    Of the five in A only the one that B names stands in a cluster; its text is not looked for.
    """
    near = TEXT.replace("wordxa", "another")
    old = [TEXT, "quite alone here", *(f"one more, number {n}, of no copy" for n in range(3))]
    fresh = " ".join(reversed(TEXT.split()))
    new = [TEXT.upper(), near, fresh, fresh + " furthermore"]
    first = run_stage(Dedup, {}, {"documents": [make_documents([old], snapshot="A")]})
    inputs = {
        "documents": [make_documents([new], snapshot="B")],
        **earlier_inputs(first),
    }
    page = by_title(store, run_stage(Dedup, {}, inputs))
    account = dict(page["Documents compared and copies found"].rows)
    assert account["earlier documents they are compared with"] == 5
    largest = page["Largest clusters of copies"]
    assert largest.columns[1].heading == "of earlier snapshots"
    assert [row[:3] for row in largest.rows] == [(3, 1, 2), (2, None, 2)]
    assert re.search(r"\b1 .* earlier snapshots", page["Clusters of copies, by size"].note)
    matrix = page["Documents with a copy in another source or snapshot"]
    assert matrix.rows == ("web, B", "earlier snapshots")
    assert matrix.values == ((4, 2), (1, None))
    pairs = page["Pairs of copies side by side"].pairs
    assert len(pairs) == 1
    assert pairs[0].heading.startswith("similarity 0.9")


def test_an_earlier_document_may_be_named_as_a_partner_alone(
    store: Store, run_stage: Any, make_documents: Any, earlier_inputs: Any
) -> None:
    first = run_stage(Dedup, {}, {"documents": [make_documents([[TEXT]], snapshot="A")]})
    inputs = {
        "documents": [make_documents([[TEXT + " furthermore"]], snapshot="B")],
        **earlier_inputs(first),
    }
    page = by_title(store, run_stage(Dedup, {}, inputs))
    assert [row[:3] for row in page["Largest clusters of copies"].rows] == [(2, 1, 2)]
    matrix = page["Documents with a copy in another source or snapshot"]
    assert matrix.values == ((None, 1), (1, None))
    assert "Pairs of copies side by side" not in page


def test_a_merged_index_lists_its_outputs(
    store: Store, run_stage: Any, make_documents: Any
) -> None:
    indexes = [
        run_stage(Dedup, {}, {"documents": [make_documents(shards, snapshot=name)]})
        for name, shards in (("A", [[TEXT], ["quite alone here"]]), ("B", [["one more"]]))
    ]
    inputs = {"dedup_index": [(one, "dedup_index") for one in indexes]}
    manifest = run_stage(MergeIndexes, {}, inputs)
    (figure,) = make_page(MergeIndexes, Artifact(store, manifest))
    assert figure.rows == (("A", 2, 1), ("B", 1, 1))
    assert "3 shards became 2" in figure.note


def test_repeated_passages_are_shown_with_the_most_frequent(
    store: Store, run_stage: Any, make_documents: Any
) -> None:
    """One line of 41 characters in three documents: two spans."""
    footer = HOSTILE + "all rights"
    texts = [f"Only the text number {name} says so\n{footer}" for name in ("one", "two", "three")]
    config = {"passages": {"lines": True}}
    manifest = run_stage(Dedup, config, {"documents": [make_documents([texts])]})
    page = by_title(store, manifest)
    (row,) = page["Repeated passages"].rows
    told = dict(zip([c.heading for c in page["Repeated passages"].columns], row, strict=False))
    assert (told["spans"], told["documents with one"]) == (2, 2)
    assert row[5] == pytest.approx(2 / 3)
    (most,) = page["Most frequent passages"].rows
    assert most[1] == 3
    assert HOSTILE.strip() in most[2]


@pytest.mark.parametrize("shards", [[["one text", "another one", "a third"]], [[]]])
def test_no_copies_are_said(
    store: Store, run_stage: Any, make_documents: Any, shards: list[list[str]]
) -> None:
    page = by_title(store, run_stage(Dedup, {}, {"documents": [make_documents(shards)]}))
    assert "None" in page["Clusters of copies"].text
    assert "Verified pairs by similarity" not in page


def test_collected_documents_leave_the_clusters(store: Store, deduplicated: Manifest) -> None:
    for reference in deduplicated.inputs["documents"]:
        collect(store, reference)
    page = by_title(store, deduplicated)
    assert "collected" in page["Sources, domains and texts of copies"].text
    assert [row[:2] for row in page["Largest clusters of copies"].rows] == [
        (4, 2),
        (2, 1),
    ]
    assert "Pairs of copies side by side" not in page


def test_one_collected_input_of_two_leaves_what_is_known(
    store: Store, deduplicated: Manifest
) -> None:
    reference = deduplicated.inputs["documents"][1]
    collect(store, reference)
    page = by_title(store, deduplicated)
    assert page["Documents with a copy, by web domain"].labels == ("a.example",)
    (pair,) = page["Pairs of copies side by side"].pairs
    assert pair.heading.startswith("equal once normalised")


def test_pairs_are_spread_over_the_similarities(store: Store, given: Callable[..., Any]) -> None:
    """50 pairs at 0.51, one at 0.7 and at 0.99: each step is seen before one is repeated."""
    from stages.dedup.figures import read_duplicates
    from stages.engine import Input

    pairs = [(n, 100 + n, 0.51) for n in range(50)] + [(60, 160, 0.7), (61, 161, 0.99)]
    partners: dict[int, list[dict[str, Any]]] = {}
    for one, two, similarity in pairs:
        for a, b in ((one, two), (two, one)):
            partners.setdefault(a, []).append(partner(f"{b:032x}", similarity))
    rows = [row(f"{n:032x}", f"{n:032x}", *found) for n, found in sorted(partners.items())]
    manifest, output = given("duplicates", {"0" * 12 + "/00000.parquet": rows})
    duplicates = Input.from_manifest(store, manifest, output)
    clusters, chosen = read_duplicates(duplicates, 0.5, 8)
    assert [round(pair["similarity"], 2) for pair in chosen] == [*[0.51] * 6, 0.7, 0.99]
    assert chosen[0]["one"] == f"{0:032x}"
    assert clusters.sizes.tolist() == [2] * 52


def test_a_chain_of_links_is_one_cluster(store: Store, given: Callable[..., Any]) -> None:
    """a~b, b~c over two tables, d equal to c."""
    from stages.dedup.figures import read_duplicates
    from stages.engine import Input

    tables = {
        "0" * 12 + "/00000.parquet": [
            row("a", "a", partner("b")),
            row("b", "b", partner("a"), partner("c")),
        ],
        "1" * 12 + "/00000.parquet": [row("c", "c", partner("b")), row("d", "c"), row("e", "e")],
    }
    clusters, _ = read_duplicates(Input.from_manifest(store, *given("duplicates", tables)), 0.5, 8)
    assert sorted(clusters.ids.to_pylist()) == ["a", "b", "c", "d"]
    assert clusters.sizes.tolist() == [4]
    assert clusters.classes.tolist() == [3]


def test_between_counts_each_document_once() -> None:
    """Cluster 0: x x y; cluster 1: x x x; cluster 2: y z. One label is not known."""
    clusters = Clusters(
        pa.array(list("abcdefghi")),
        np.array([0, 0, 0, 1, 1, 1, 2, 2, 2]),
        np.arange(9),
        np.zeros(9, dtype=bool),
    )
    labels = pa.chunked_array([["x", "x", "y", "x", "x", "x", "y", "z", None]])
    assert count_between(clusters, labels, ["x", "y", "z"]).tolist() == [
        [5, 2, 0],
        [1, 0, 1],
        [0, 1, 0],
    ]


def test_clusters_of_three_and_four_stand_together() -> None:
    """Sizes 2, 3, 4, 5; that of 3 holds two different texts."""
    from stages.dedup.page import _sizes

    cluster = np.repeat([0, 1, 2, 3], [2, 3, 4, 5])
    exact_class = np.array([0, 0, 2, 2, 4, *[5] * 4, *[9] * 5])
    ids = pa.array([str(n) for n in range(14)])
    figure = _sizes(Clusters(ids, cluster, exact_class, np.zeros(14, dtype=bool)))
    assert figure.labels == ("2", "3 to 4", "5 to 8")
    assert [series.values for series in figure.series] == [(1, 1, 1), (0, 1, 0)]
