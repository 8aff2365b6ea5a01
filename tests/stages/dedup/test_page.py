from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from artifacts_schema.identity import document_id
from artifacts_schema.manifest import InputRef, Manifest
from artifacts_schema.store import Store
from artifacts_schema.store.gc import remove_artifact
from stages.dedup.figures import Clusters, between
from stages.dedup.stage import Dedup
from stages.engine.page import Artifact, page_of

TEXT = " ".join(f"word{chr(97 + n % 26)}{chr(97 + n // 26)}" for n in range(100))
HOSTILE = "<img src=x onerror=alert(1)> \x1b[2J "


def collect(store: Store, reference: InputRef) -> None:
    """As `ingot gc` does it."""
    manifest = store.manifest(reference.stage, reference.key)
    assert manifest is not None
    remove_artifact(store, manifest)


def ident(number: int, snapshot: str) -> str:
    return document_id(snapshot, "file", number)


def by_title(store: Store, manifest: Manifest) -> dict[str, Any]:
    found = page_of(Dedup, Artifact(store, manifest))
    assert len({figure.title for figure in found}) == len(found)
    return {figure.title: figure for figure in found}


@pytest.fixture
def deduplicated(run_stage: Any, make_documents: Any) -> Manifest:
    """Two crawls: a text three times (once in capitals), a near copy of it, another text twice."""

    def page(text: str, url: str) -> dict[str, Any]:
        return {"text": text, "url": url}

    near = TEXT.replace("wordxa", "another")
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


def test_clusters_are_counted_by_size_and_sort(store: Store, deduplicated: Manifest) -> None:
    """Four documents with a near copy among them, and two equal ones."""
    page = by_title(store, deduplicated)
    sizes = page["Clusters of copies, by size"]
    assert sizes.labels == ("2", "3 to 4")
    assert [series.values for series in sizes.series] == [(1, 0), (0, 1)]
    assert sizes.note.startswith("6 documents stand in 2 clusters")

    largest = page["Largest clusters of copies"].rows
    assert [row[:3] for row in largest] == [(4, 2, 3), (2, 1, 1)]
    assert largest[0][3] == "a.example, b.example, c.example"

    account = dict(page["Documents compared and copies found"].rows)
    assert account["documents compared"] == 7
    assert account["… their further copies"] == 3
    assert account["… at least as similar as the floor"] == 1


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
    """One word of 100 changed: 91 of 96 5-grams stay on each side, 91 / 101 = 0.901."""
    page = by_title(store, deduplicated)
    near, exact = page["Pairs of copies side by side"].pairs
    assert near.heading.startswith("similarity 0.901: https://")
    changed = [
        part.text.strip() for side in (near.left, near.right) for part in side if part.differs
    ]
    assert sorted(changed) == ["another", "wordxa"]
    assert exact.heading.startswith("equal once normalised: https://")
    assert page["Verified pairs by similarity"].series[0].values == (*[0] * 8, 1, 0)


def test_hostile_text_is_plain_data(store: Store, run_stage: Any, make_documents: Any) -> None:
    documents = make_documents([[HOSTILE + "some text", HOSTILE + "some text"]])
    page = by_title(store, run_stage(Dedup, {}, {"documents": [documents]}))
    (pair,) = page["Pairs of copies side by side"].pairs
    assert "".join(part.text for part in pair.left) == HOSTILE + "some text"


def test_the_curve_is_that_of_the_parameters(store: Store, deduplicated: Manifest) -> None:
    """1 - (1 - 0.5^8)^14 = 0.0533."""
    curve = by_title(store, deduplicated)["Chance that MinHash proposes a pair"]
    points = dict(zip(curve.series[0].x, curve.series[0].y, strict=True))
    assert points[0.5] == pytest.approx(0.0533, abs=1e-4)
    assert [(mark.x, mark.label) for mark in curve.marks] == [(0.5, "floor")]


@pytest.mark.parametrize("shards", [[["one text", "another one", "a third"]], [[]]])
def test_no_copies_are_said(
    store: Store, run_stage: Any, make_documents: Any, shards: list[list[str]]
) -> None:
    page = by_title(store, run_stage(Dedup, {}, {"documents": [make_documents(shards)]}))
    assert page["Clusters of copies"].text == "None: no two documents are alike."
    assert "Verified pairs by similarity" not in page


def test_collected_documents_leave_the_clusters(store: Store, deduplicated: Manifest) -> None:
    for reference in deduplicated.inputs["documents"]:
        collect(store, reference)
    page = by_title(store, deduplicated)
    assert "collected" in page["Sources, domains and texts of copies"].text
    assert [row[:3] for row in page["Largest clusters of copies"].rows] == [
        (4, 2, None),
        (2, 1, None),
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
            partner = {"doc_id": f"{b:032x}", "similarity": similarity, "band": 0}
            partners.setdefault(a, []).append(partner)
    rows = [
        {"doc_id": f"{n:032x}", "exact_class": f"{n:032x}", "partners": found}
        for n, found in sorted(partners.items())
    ]
    manifest, output = given("duplicates", {"0" * 12 + "/00000.parquet": rows})
    duplicates = Input.of(store, manifest, output)
    clusters, chosen = read_duplicates(duplicates, 0.5, 8)
    assert [round(pair["similarity"], 2) for pair in chosen] == [*[0.51] * 6, 0.7, 0.99]
    assert chosen[0]["one"] == f"{0:032x}"
    assert clusters.sizes.tolist() == [2] * 52


def test_a_chain_of_links_is_one_cluster(store: Store, given: Callable[..., Any]) -> None:
    """a~b, b~c over two tables, d equal to c."""
    from stages.dedup.figures import read_duplicates
    from stages.engine import Input

    def row(doc_id: str, exact: str, *partners: str) -> dict[str, Any]:
        made = [{"doc_id": p, "similarity": 0.9, "band": 0} for p in partners]
        return {"doc_id": doc_id, "exact_class": exact, "partners": made}

    tables = {
        "0" * 12 + "/00000.parquet": [row("a", "a", "b"), row("b", "b", "a", "c")],
        "1" * 12 + "/00000.parquet": [row("c", "c", "b"), row("d", "c"), row("e", "e")],
    }
    clusters, _ = read_duplicates(Input.of(store, *given("duplicates", tables)), 0.5, 8)
    assert sorted(clusters.ids.to_pylist()) == ["a", "b", "c", "d"]
    assert clusters.sizes.tolist() == [4]
    assert clusters.classes.tolist() == [3]


def test_between_counts_each_document_once() -> None:
    """Cluster 0: x x y; cluster 1: x x x; cluster 2: y z. One label is not known."""
    clusters = Clusters(
        pa.array(list("abcdefghi")),
        np.array([0, 0, 0, 1, 1, 1, 2, 2, 2]),
        np.arange(9),
    )
    labels = pa.chunked_array([["x", "x", "y", "x", "x", "x", "y", "z", None]])
    assert between(clusters, labels, ["x", "y", "z"]).tolist() == [[5, 2, 0], [1, 0, 1], [0, 1, 0]]


def test_clusters_of_three_and_four_stand_together() -> None:
    """Sizes 2, 3, 4, 5; that of 3 holds two different texts."""
    from stages.dedup.page import _sizes

    cluster = np.repeat([0, 1, 2, 3], [2, 3, 4, 5])
    exact_class = np.array([0, 0, 2, 2, 4, *[5] * 4, *[9] * 5])
    figure = _sizes(Clusters(pa.array([str(n) for n in range(14)]), cluster, exact_class))
    assert figure.labels == ("2", "3 to 4", "5 to 8")
    assert [series.values for series in figure.series] == [(1, 1, 1), (0, 1, 0)]
