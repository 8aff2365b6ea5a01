from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from stages.filter.config import DuplicatesPolicy
from stages.filter.decide import Copies, Links, decide_copies, least_linked

Pair = tuple[int, int, float]
NONE = np.empty(0, dtype=np.int64)


def links(
    nodes: int,
    pairs: list[Pair],
    classes: dict[int, int] | None = None,
    texts: dict[int, int] | None = None,
    kept_before: list[int] | None = None,
) -> Links:
    """Pairs between nodes, and classes as member → node that stands for it.

    Raw texts are equal where normalised ones are, unless told.
    """
    own, raw = np.arange(nodes), np.arange(nodes)
    for told, column in ((classes, own), (classes if texts is None else texts, raw)):
        for member, first in (told or {}).items():
            column[member] = first
    columns = list(zip(*pairs, strict=True)) or [(), (), ()]
    return Links(
        own,
        raw,
        np.array(columns[0], dtype=np.int64),
        np.array(columns[1], dtype=np.int64),
        np.array(columns[2], dtype=np.float32),
        np.array(kept_before or [], dtype=np.int64),
    )


def decide(
    given: Links, documents: int, order: list[int] | None = None, **policy: Any
) -> list[int]:
    passes = np.ones(documents, dtype=bool)
    places = None if order is None else np.array(order)
    return decide_copies(passes, given, DuplicatesPolicy(**policy), places).partner.tolist()


def test_a_chain_does_not_remove_its_far_end() -> None:
    assert decide(links(3, [(0, 1, 0.9), (1, 2, 0.9)]), 3) == [-1, 0, -1]


def test_the_partner_is_the_most_similar_kept_document_then_the_first() -> None:
    pairs = [(0, 3, 0.85), (1, 3, 0.95), (2, 3, 0.95)]
    assert decide(links(4, pairs), 4) == [-1, -1, -1, 1]
    assert decide(links(4, pairs), 4, order=[2, 1, 0, 3]) == [-1, -1, -1, 2]


def test_the_first_in_the_order_of_decision_stays() -> None:
    chain = links(3, [(0, 1, 0.9), (1, 2, 0.9)])
    assert decide(chain, 3, order=[1, 0, 2]) == [1, -1, 1]
    assert decide(links(3, [], {1: 0, 2: 0}), 3, order=[2, 0, 1]) == [2, 2, -1]


def test_a_pair_at_the_threshold_is_a_copy() -> None:
    # float32(0.7) lies below 0.7.
    assert decide(links(2, [(0, 1, 0.7)]), 2, threshold=0.7) == [-1, 0]
    assert decide(links(2, [(0, 1, 0.7)]), 2, threshold=0.7001) == [-1, -1]


def test_exact_copies_go_for_the_first_that_stays() -> None:
    equal = links(3, [], {1: 0, 2: 0})
    assert decide(equal, 3) == [-1, 0, 0]
    assert decide(equal, 3, threshold=None) == [-1, 0, 0]
    assert decide(equal, 3, threshold=None, exact=None) == [-1, -1, -1]
    copies = decide_copies(np.array([False, True, True]), equal, DuplicatesPolicy())
    assert copies.partner.tolist() == [-1, -1, 1]
    assert copies.exact.tolist() == [False, False, True]


def test_raw_equality_is_narrower_and_normalised_equality_is_a_similarity_of_one() -> None:
    # 0, 1 and 2 say the same; 1 and 2 to the byte.
    given_links = links(3, [], {1: 0, 2: 0}, {2: 1})
    assert decide(given_links, 3, threshold=None, exact="raw") == [-1, -1, 1]
    assert decide(given_links, 3, threshold=None, exact="normalised") == [-1, 0, 0]
    for exact, expected in (("raw", False), (None, False), ("normalised", True)):
        policy = DuplicatesPolicy.model_validate({"exact": exact})
        copies = decide_copies(np.ones(3, bool), given_links, policy)
        assert copies.partner.tolist() == [-1, 0, 0]
        assert copies.exact.tolist() == [False, expected, expected]
        assert copies.similarity.tolist() == [0, 1, 1]


def test_members_of_an_exact_class_have_the_pairs_of_its_first() -> None:
    # 0 and 2 are equal; 1 and 3 are near 0, hence near 2. Document 0 fails a rule.
    given_links = links(4, [(0, 1, 0.9), (0, 3, 0.9)], {2: 0})
    copies = decide_copies(np.array([False, True, True, True]), given_links, DuplicatesPolicy())
    assert copies.partner.tolist() == [-1, -1, 1, -1]
    assert decide(given_links, 4, exact=None) == [-1, 0, 0, 0]


def test_a_pair_with_a_member_of_a_class_is_one_with_all_of_it() -> None:
    assert decide(links(4, [(1, 2, 0.9)], {1: 0, 3: 2}), 4) == [-1, 0, 0, 0]


def test_a_document_that_fails_otherwise_removes_nothing_but_gets_its_partner() -> None:
    pairs = [(0, 1, 0.9), (1, 2, 0.9)]
    copies = decide_copies(np.array([True, False, True]), links(3, pairs), DuplicatesPolicy())
    assert copies.partner.tolist() == [-1, 0, -1]


def test_pairs_that_were_not_verified_count_as_at_the_threshold_and_tell_no_similarity() -> None:
    given_links = links(4, [(0, 2, np.nan), (1, 2, 0.85), (0, 3, np.nan)])
    policy = DuplicatesPolicy(unverified="accept")
    copies = decide_copies(np.ones(4, bool), given_links, policy)
    assert copies.partner.tolist() == [-1, -1, 1, 0]
    np.testing.assert_array_equal(copies.similarity, np.float32([0, 0, 0.85, np.nan]))


def test_nodes_that_are_not_at_hand_connect_but_remove_nothing() -> None:
    # Node 2 is a document of another corpus that stands for the class of 0 and 1.
    given_links = links(3, [(2, 1, 0.9)], {0: 2})
    assert decide(given_links, 2) == [-1, 0]
    assert least_linked(given_links, np.arange(3), verified=True).tolist() == [0, 0, 0]


def test_documents_that_an_earlier_run_kept_come_before_all_others() -> None:
    # Of the earlier nodes 3 to 6, 4 and 6 were kept; 6 and 2 are of the class of 5.
    given_links = links(
        7, [(0, 3, 0.9), (1, 4, 0.9), (1, 0, 0.95)], {6: 5, 2: 5}, kept_before=[4, 6]
    )
    assert decide(given_links, 3) == [-1, 0, 6]
    assert decide(given_links, 3, order=[1, 0, 2]) == [-1, 4, 6]
    # Of two equally near, the one that was decided first.
    assert decide(links(4, [(0, 2, 0.9), (0, 3, 0.9)], kept_before=[3, 2]), 2) == [3, -1]


def test_no_links_keep_everything() -> None:
    assert decide(links(3, []), 3) == [-1, -1, -1]
    assert decide(links(0, []), 0) == []


def test_a_million_equal_documents_are_one() -> None:
    copies = decide(links(10**6, [], dict.fromkeys(range(1, 10**6), 0)), 10**6)
    assert copies[0] == -1
    assert set(copies[1:]) == {0}


def test_what_is_connected_is_named_by_the_least_rank() -> None:
    given_links = links(7, [(0, 2, 0.5), (4, 5, 0.9)], {3: 2, 6: 4})
    found = least_linked(given_links, np.arange(7), verified=True)
    assert found.tolist() == [0, 1, 0, 0, 4, 4, 4]
    rank = np.array([6, 5, 4, 3, 2, 1, 0])
    assert least_linked(given_links, rank, True).tolist() == [3, 1, 3, 3, 6, 6, 6]
    unverified = links(3, [(0, 1, np.nan), (1, 2, 0.9)])
    assert least_linked(unverified, np.arange(3), verified=True).tolist() == [0, 1, 1]
    assert least_linked(unverified, np.arange(3), verified=False).tolist() == [0, 0, 0]


# Random corpora ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Corpus:
    """Documents, which of them pass, an order of decision, and what is known of them."""

    passes: NDArray[np.bool_]
    order: NDArray[np.int64]
    links: Links
    pairs: dict[tuple[int, int], float]
    """Between the first of two classes, in both directions."""

    def similarity(self, one: int, two: int, policy: DuplicatesPolicy) -> tuple[bool, float]:
        """Whether two documents are equal as the policy says, and how similar they are (NaN: this
        was not verified)."""
        classes, texts = self.links.classes, self.links.texts
        equal = {
            "normalised": classes[one] == classes[two],
            "raw": texts[one] == texts[two],
            None: False,
        }
        near = self.pairs.get((classes[one], classes[two]), 0.0)
        return bool(equal[policy.exact]), 1.0 if classes[one] == classes[two] else near


@st.composite
def corpora(draw: st.DrawFn) -> Corpus:
    documents = draw(st.integers(1, 14))
    classes = _grouped(draw, list(range(documents)))
    texts = list(range(documents))
    for first in set(classes):
        members = [d for d in range(documents) if classes[d] == first]
        for place, head in enumerate(_grouped(draw, members)):
            texts[members[place]] = head
    heads = sorted(set(classes))
    grades = st.sampled_from([0.5, 0.6, 0.7, 0.8, 0.9, 0.95, np.nan])
    pairs = {(a, b): draw(grades) for a in heads for b in heads if a < b and draw(st.booleans())}
    passes = np.array([draw(st.integers(0, 4)) > 0 for _ in range(documents)])
    order = np.array(draw(st.permutations(range(documents))))
    rows = [(a, b, s) for (a, b), s in pairs.items()]
    told = links(documents, rows, dict(enumerate(classes)), dict(enumerate(texts)))
    return Corpus(passes, order, told, {**pairs, **{(b, a): s for (a, b), s in pairs.items()}})


def _grouped(draw: st.DrawFn, members: list[int]) -> list[int]:
    """For each member the first of its group."""
    firsts: list[int] = []
    for place, member in enumerate(members):
        joins = place and draw(st.booleans())
        firsts.append(draw(st.sampled_from(firsts)) if joins else member)
    return firsts


POLICIES = st.builds(
    DuplicatesPolicy,
    threshold=st.sampled_from([None, 0.5, 0.65, 0.7, 0.8, 0.9, 1.0]),
    exact=st.sampled_from([None, "raw", "normalised"]),
)


@settings(max_examples=300, deadline=None)
@given(corpora(), POLICIES)
def test_what_goes_is_a_copy_of_a_kept_document_and_what_stays_is_of_none(
    corpus: Corpus, policy: DuplicatesPolicy
) -> None:
    """The definition, document by document."""
    found = decide_copies(corpus.passes, corpus.links, policy, corpus.order)
    kept: list[int] = []
    for document in corpus.order.tolist():
        mates = []
        for other in kept:
            equal, told = corpus.similarity(document, other, policy)
            counted = policy.threshold or 0.0 if np.isnan(told) else told
            near = policy.threshold is not None and np.float32(counted) >= np.float32(
                policy.threshold
            )
            if equal or near:
                mates.append((-counted, kept.index(other), other, equal, told))
        assert (found.partner[document] >= 0) == bool(mates)
        if mates:
            _, _, partner, equal, told = min(mates)
            assert found.partner[document] == partner
            np.testing.assert_equal(found.similarity[document], np.float32(told))
            assert found.exact[document] == equal
        elif corpus.passes[document]:
            kept.append(document)


@settings(max_examples=80, deadline=None)
@given(corpora(), POLICIES, st.randoms(use_true_random=False))
def test_the_order_and_direction_of_pairs_changes_nothing(
    corpus: Corpus, policy: DuplicatesPolicy, random: Any
) -> None:
    given_links = corpus.links
    rows = list(zip(given_links.one, given_links.two, given_links.similarity, strict=True))
    random.shuffle(rows)
    told = [(b, a, s) if random.random() < 0.5 else (a, b, s) for a, b, s in rows]
    told += [(b, a, s) for a, b, s in told[: len(told) // 2]]
    classes, texts = (dict(enumerate(c.tolist())) for c in (given_links.classes, given_links.texts))
    again = links(len(corpus.passes), told, classes, texts)
    one, two = (decide_copies(corpus.passes, g, policy, corpus.order) for g in (given_links, again))
    assert one.partner.tolist() == two.partner.tolist()
    np.testing.assert_array_equal(one.similarity, two.similarity)


@settings(max_examples=100, deadline=None)
@given(corpora(), *[st.sampled_from([0.5, 0.65, 0.7, 0.8, 0.9, 1.0])] * 2)
def test_another_threshold_changes_only_groups_with_a_pair_between_the_two(
    corpus: Corpus, one: float, two: float
) -> None:
    low, high = sorted((one, two))
    given_links = corpus.links

    def copies(threshold: float) -> Copies:
        policy = DuplicatesPolicy(threshold=threshold)
        return decide_copies(corpus.passes, given_links, policy, corpus.order)

    between = (given_links.similarity >= np.float32(low)) & (
        given_links.similarity < np.float32(high)
    )
    between |= np.isnan(given_links.similarity)
    group = least_linked(given_links, np.arange(len(corpus.passes)), verified=False)
    touched = np.isin(group, group[given_links.one[between]])
    assert (copies(low).partner == copies(high).partner)[~touched].all()
