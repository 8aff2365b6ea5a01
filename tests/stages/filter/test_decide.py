from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from stages.filter.decide import Copies, Links, components, decide_copies, least_members

Pair = tuple[int, int, float]


def links(documents: int, pairs: list[Pair], classes: dict[int, int] | None = None) -> Links:
    """Pairs between nodes, and exact classes as member → node that stands for it."""
    own = np.arange(documents)
    for member, first in (classes or {}).items():
        own[member] = first
    columns = list(zip(*pairs, strict=True)) or [(), (), ()]
    return Links(
        own,
        np.array(columns[0], dtype=np.int64),
        np.array(columns[1], dtype=np.int64),
        np.array(columns[2], dtype=np.float32),
    )


def decide(
    given: Links, documents: int, threshold: float | None = 0.8, exact: bool = True
) -> list[int]:
    passes = np.ones(documents, dtype=bool)
    return decide_copies(passes, given, threshold, exact).partner.tolist()


def test_a_chain_does_not_remove_its_far_end() -> None:
    assert decide(links(3, [(0, 1, 0.9), (1, 2, 0.9)]), 3) == [-1, 0, -1]


def test_the_partner_is_the_most_similar_kept_document_then_the_first() -> None:
    pairs = [(0, 3, 0.85), (1, 3, 0.95), (2, 3, 0.95)]
    assert decide(links(4, pairs), 4) == [-1, -1, -1, 1]


def test_a_pair_at_the_threshold_is_a_copy() -> None:
    # float32(0.7) lies below 0.7.
    assert decide(links(2, [(0, 1, 0.7)]), 2, threshold=0.7) == [-1, 0]
    assert decide(links(2, [(0, 1, 0.7)]), 2, threshold=0.7001) == [-1, -1]


def test_exact_copies_go_for_the_first_that_stays() -> None:
    equal = links(3, [], {1: 0, 2: 0})
    assert decide(equal, 3) == [-1, 0, 0]
    assert decide(equal, 3, threshold=None) == [-1, 0, 0]
    assert decide(equal, 3, exact=False) == [-1, -1, -1]
    copies = decide_copies(np.array([False, True, True]), equal, 0.8, True)
    assert copies.partner.tolist() == [-1, -1, 1]
    assert copies.exact.tolist() == [False, False, True]


def test_members_of_an_exact_class_have_the_pairs_of_its_first() -> None:
    # 0 and 2 are equal; 1 and 3 are near 0, hence near 2. Document 0 fails a rule.
    given_links = links(4, [(0, 1, 0.9), (0, 3, 0.9)], {2: 0})
    copies = decide_copies(np.array([False, True, True, True]), given_links, 0.8, True)
    assert copies.partner.tolist() == [-1, -1, 1, -1]
    assert decide(given_links, 4, exact=False) == [-1, 0, -1, 0]


def test_a_document_that_fails_otherwise_removes_nothing_but_gets_its_partner() -> None:
    pairs = [(0, 1, 0.9), (1, 2, 0.9)]
    copies = decide_copies(np.array([True, False, True]), links(3, pairs), 0.8, True)
    assert copies.partner.tolist() == [-1, 0, -1]


def test_nodes_that_are_not_at_hand_connect_but_remove_nothing() -> None:
    # Node 2 is a document of another corpus that stands for the class of 0 and 1.
    given_links = links(3, [(2, 1, 0.9)], {0: 2})
    assert decide(given_links, 2) == [-1, 0]
    assert len(set(components(given_links).tolist())) == 1


def test_no_links_keep_everything() -> None:
    assert decide(links(3, []), 3) == [-1, -1, -1]
    assert decide(links(0, []), 0) == []


def test_components_join_exact_classes_and_pairs_under_the_least_name() -> None:
    found = components(links(7, [(0, 2, 0.5), (4, 5, 0.9)], {3: 2, 6: 4}))
    groups = [sorted(np.flatnonzero(found == number).tolist()) for number in set(found.tolist())]
    assert sorted(groups) == [[0, 2, 3], [1], [4, 5, 6]]
    rank = np.array([6, 5, 4, 3, 2, 1, 0])
    assert least_members(found, rank).tolist() == [3, 1, 3, 3, 6, 6, 6]


# Random corpora ----------------------------------------------------------------------------------


@st.composite
def corpora(draw: st.DrawFn) -> tuple[NDArray[np.bool_], Links, dict[tuple[int, int], float]]:
    """Documents, which of them pass, their links, and the similarity of every linked pair."""
    documents = draw(st.integers(1, 14))
    first = [draw(st.integers(0, i)) for i in range(documents)]
    first = [i if draw(st.booleans()) else first[f] for i, f in enumerate(first)]
    classes = [f if first[f] == f else i for i, f in enumerate(first)]
    heads = sorted(set(classes))
    grades = st.sampled_from([0.5, 0.6, 0.7, 0.8, 0.9, 0.95])
    pairs = {(a, b): draw(grades) for a in heads for b in heads if a < b and draw(st.booleans())}
    linked: dict[tuple[int, int], float] = {}
    for i in range(documents):
        for j in range(documents):
            key = (min(classes[i], classes[j]), max(classes[i], classes[j]))
            if i != j and (key in pairs or key[0] == key[1]):
                linked[i, j] = pairs.get(key, 1.0)
    passes = np.array([draw(st.integers(0, 4)) > 0 for _ in range(documents)])
    rows = [(a, b, s) for (a, b), s in pairs.items()]
    return passes, links(documents, rows, dict(enumerate(classes))), linked


THRESHOLDS = st.sampled_from([0.5, 0.65, 0.7, 0.8, 0.9, 1.0])


@settings(max_examples=150, deadline=None)
@given(corpora(), THRESHOLDS)
def test_every_removed_copy_names_a_kept_partner_and_no_kept_pair_is_left(
    corpus: tuple[NDArray[np.bool_], Links, dict[tuple[int, int], float]], threshold: float
) -> None:
    passes, given_links, linked = corpus
    copies = decide_copies(passes, given_links, threshold, True)
    kept = passes & (copies.partner < 0)
    for document, partner in enumerate(copies.partner.tolist()):
        if partner >= 0:
            assert kept[partner]
            assert partner < document
            assert linked[document, partner] >= threshold
            assert copies.similarity[document] == np.float32(linked[document, partner])
    for (one, two), similarity in linked.items():
        assert not (kept[one] and kept[two] and similarity >= threshold)


@settings(max_examples=80, deadline=None)
@given(corpora(), THRESHOLDS, st.randoms(use_true_random=False))
def test_the_order_and_direction_of_pairs_changes_nothing(
    corpus: tuple[NDArray[np.bool_], Links, object], threshold: float, random: object
) -> None:
    passes, given_links, _ = corpus
    rows = list(zip(given_links.one, given_links.two, given_links.similarity, strict=True))
    random.shuffle(rows)  # type: ignore[attr-defined]
    told = [(b, a, s) if random.random() < 0.5 else (a, b, s) for a, b, s in rows]  # type: ignore[attr-defined]
    told += [(b, a, s) for a, b, s in told[: len(told) // 2]]
    again = links(len(passes), told, dict(enumerate(given_links.classes.tolist())))
    one, two = (decide_copies(passes, g, threshold, True) for g in (given_links, again))
    assert one.partner.tolist() == two.partner.tolist()
    assert one.similarity.tolist() == two.similarity.tolist()


@settings(max_examples=100, deadline=None)
@given(corpora(), THRESHOLDS, THRESHOLDS)
def test_another_threshold_changes_only_groups_with_a_pair_between_the_two(
    corpus: tuple[NDArray[np.bool_], Links, object], one: float, two: float
) -> None:
    passes, given_links, _ = corpus
    low, high = sorted((one, two))

    def copies(threshold: float) -> Copies:
        return decide_copies(passes, given_links, threshold, True)

    between = (given_links.similarity >= np.float32(low)) & (
        given_links.similarity < np.float32(high)
    )
    group = components(given_links)
    touched = np.isin(group, group[given_links.one[between]])
    assert (copies(low).partner == copies(high).partner)[~touched].all()
