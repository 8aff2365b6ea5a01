from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from memory_corpus import (
    Document,
    Earlier,
    LocalMap,
    MemoryCorpus,
    band_candidates,
    candidate_files,
    document,
    found_pairs,
)

from stages.dedup import two_hop
from stages.dedup.pairs import CANDIDATE, NUMBER, VERIFIED, PairFiles, mirror_pairs, write_pairs
from stages.dedup.two_hop import (
    VerifiedPairs,
    count_partners,
    find_followed,
    list_nearest,
    propose_two_hop,
)
from stages.dedup.verification import PairTask, at_least

FLOOR = 0.3
Pair = tuple[int, int]


def generations(seed: int, counts: list[int], families: int = 3) -> list[list[Document]]:
    """Families of documents that share most shingles, over several generations, some copied."""
    rng = random.Random(seed)
    found = []
    for generation, count in enumerate(counts):
        documents = []
        for number in range(count):
            base = rng.randrange(families) * 1_000
            kept = rng.sample(range(base, base + 14), rng.randint(7, 14))
            extra = [base + 100 + rng.randrange(8) for _ in range(rng.randint(0, 3))]
            name = f"{seed}-{generation}-{number}"
            documents.append(document(name, {*kept, *extra}))
            if rng.random() < 0.2:
                documents.append(document(name + "b", {*kept, *extra}, words=name))
        found.append(documents)
    return found


def by_rule(corpus: MemoryCorpus, known: dict[Pair, np.float32], led_by: int) -> set[Pair]:
    """What closure must find: the rule in plain Python, with all pairs in one dictionary."""
    known = dict(known)
    closed: set[Pair] = set()
    for generation in range(corpus.first_generation, len(corpus.starts) - 1):
        end = int(corpus.starts[generation + 1])
        near: dict[int, list[tuple[np.float32, int]]] = {}
        for (right, left), similarity in known.items():
            if right < end:
                near.setdefault(right, []).append((similarity, left))
                near.setdefault(left, []).append((similarity, right))
        lists = {
            number: sorted(of, key=lambda p: (-p[0], corpus.rank(p[1])))[:led_by]
            for number, of in near.items()
        }
        new: set[Pair] = set()
        for x in range(int(corpus.starts[generation]), end):
            if len(near.get(x, [])) >= led_by:
                continue
            partners = {partner for _, partner in near.get(x, [])}
            best: dict[int, float] = {}
            for one, y in lists.get(x, []):
                for other, z in lists[y]:
                    if z != x and z not in partners:
                        best[z] = max(best.get(z, 0.0), float(one) * float(other))
            order = sorted(best, key=lambda z: (-best[z], corpus.rank(z)))
            new |= {(max(x, z), min(x, z)) for z in order[:led_by]}
        for pair in new:
            similarity = corpus.jaccard(*pair)
            if at_least(np.array([similarity]), FLOOR)[0]:
                known[pair] = similarity
                closed.add(pair)
    return closed


@settings(max_examples=40, deadline=None)
@given(
    st.integers(0, 10**6),
    st.lists(st.integers(0, 12), min_size=1, max_size=3),
    st.sampled_from([1, 2, 3, 64]),
    st.integers(1, 9),
    st.sampled_from([30, 3_000, 1_000_000]),
)
def test_closure_finds_what_the_rule_says_for_any_task_size_and_memory(
    tmp_path_factory: pytest.TempPathFactory,
    seed: int,
    counts: list[int],
    led_by: int,
    pairs_per_task: int,
    bytes_at_once: int,
) -> None:
    corpus = MemoryCorpus(generations(seed, counts))
    run = LocalMap(tmp_path_factory.mktemp("closure"))
    candidates = band_candidates(corpus, bands=2, rows=3, max_bucket=2)
    known = {p: corpus.jaccard(*p) for p in candidates}
    known = {p: s for p, s in known.items() if at_least(np.array([s]), FLOOR)[0]}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(two_hop, "MAX_HOPS", led_by)
        found = found_pairs(
            run,
            corpus,
            candidate_files(run, candidates),
            floor=FLOOR,
            pairs_per_task=pairs_per_task,
            bytes_at_once=bytes_at_once,
        )
    told = all_pairs(found)
    assert {p for p, band in told.items() if band >= 0} == set(known)
    assert {p for p, band in told.items() if band == -1} == by_rule(corpus, known, led_by)
    for of in found:
        # Each pair stands in one file alone, and on both sides.
        assert len(of.pairs) == len(of.pairs.between(0, corpus.documents)) == len(of.mirrored)


@pytest.mark.full
@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("seed", range(6))
def test_with_an_index_of_earlier_documents_the_new_pairs_are_those_of_a_full_run(
    seed: int, turned: bool, tmp_path: Path
) -> None:
    of = generations(seed, [14, 11, 12])
    # Where indexes are given in another order ranks change, so nothing may be capped.
    cap = 99 if turned else 2
    run = LocalMap(tmp_path)

    def pairs_of(corpus: MemoryCorpus, *earlier: Earlier) -> list[VerifiedPairs]:
        corpus.earlier_pairs = [*earlier]
        candidates = candidate_files(run, band_candidates(corpus, max_bucket=cap))
        return found_pairs(run, corpus, candidates, floor=FLOOR)

    full = MemoryCorpus(of)
    whole = pairs_of(full)
    one = MemoryCorpus(of[:1])
    of_a = pairs_of(one)
    two = MemoryCorpus(of[:2], first_generation=1)
    of_b = pairs_of(two, index_of(one, of_a, [0]))
    order = [1, 0] if turned else [0, 1]
    three = MemoryCorpus([of[order[0]], of[order[1]], of[2]], first_generation=2)
    later = [int(three.starts[place]) for place in order]
    earlier = index_of(one, of_a, later[:1]), index_of(two, of_b[1:], later)
    of_c = pairs_of(three, *earlier)

    told = {}
    for corpus, found in [(one, of_a), (two, of_b[1:]), (three, of_c[1:])]:
        told.update(by_id(corpus, found))
    assert told == by_id(full, whole)
    assert -1 in told.values()
    earlier = {**by_id(one, of_a), **by_id(two, of_b[1:])}
    led = by_id(three, of_c[:1])
    assert led.items() <= earlier.items()
    assert len(led) > 0


def test_pairs_of_an_index_that_is_not_at_hand_are_left_out(tmp_path: Path) -> None:
    of = generations(5, [10, 10])
    run = LocalMap(tmp_path)
    both = MemoryCorpus(of)
    found = found_pairs(run, both, candidate_files(run, band_candidates(both)), floor=FLOOR)
    only = MemoryCorpus(of[1:], first_generation=1)
    only.earlier_pairs = [index_of(both, found, [-1, 0])]
    own = np.arange(only.documents)
    kept = found_pairs(run, only, candidate_files(run, {}), floor=FLOOR, proposed=own)
    old, new = (by_id(corpus, pairs) for corpus, pairs in [(both, found), (only, kept)])
    assert new == {pair: band for pair, band in old.items() if pair <= ids(of[1])}
    assert 0 < len(new) < len(old)


def test_a_pair_that_no_band_proposed_is_found_through_a_third_document(tmp_path: Path) -> None:
    sets = [set(range(20)), set(range(2, 22)), set(range(4, 24)), set(range(40, 60))]
    corpus = MemoryCorpus([[document(str(i), s) for i, s in enumerate(sets)]])
    run = LocalMap(tmp_path)
    bands = candidate_files(run, {(1, 0): 3, (2, 1): 5}, 1)
    told = all_pairs(found_pairs(run, corpus, bands, floor=0.5))
    assert told == {(1, 0): 3, (2, 1): 5, (2, 0): -1}
    # 16 of 24 shared: at a floor above that the chain leads to nothing.
    told = all_pairs(found_pairs(run, corpus, bands, floor=0.67))
    assert told == {(1, 0): 3, (2, 1): 5}


def test_a_document_is_led_to_by_the_best_of_several_ways(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(two_hop, "MAX_HOPS", 3)
    corpus = MemoryCorpus([[document(str(i), {i}) for i in range(7)]])
    x, y1, y2, z1, z2, z3, z4 = range(7)
    rows = {(x, y1): 0.9, (x, y2): 0.6, (y1, z1): 0.7, (y1, z2): 0.65}
    rows |= {(y2, z1): 0.62, (y2, z3): 0.98, (y2, z4): 0.97}
    run = LocalMap(tmp_path)
    (given,) = run(write_verified, [Given()], rows=rows)
    options = {"corpus": corpus, "records": 100}
    everything = PairTask("all", 0, 7, 0)
    verified = VerifiedPairs.from_results(0, [given])
    of_x = run(find_followed, [PairTask("x", 0, 1, 0)], verified=verified, records=100)
    followed = PairFiles.from_results(of_x, "followed", NUMBER)
    assert [n for piece in followed.slices(0, 7, 100) for (n,) in piece.tolist()] == [x, y1, y2]
    listed = run(list_nearest, [everything], followed=followed, verified=[verified], **options)
    lists = PairFiles.from_results(listed, "nearest", VERIFIED)
    (led,) = run(propose_two_hop, [PairTask("x", 0, 1, 0)], lists=lists, **options)
    # z1 by .9 * .7 = .63 (and by .6 * .62), z3 .588, z2 .585, z4 .582: the first three.
    found = PairFiles.from_results([led], "pairs", CANDIDATE).between(0, 7)
    assert found.tolist() == [(z1, x, -1), (z2, x, -1), (z3, x, -1)]


@pytest.mark.parametrize("at_once", [0, 3, 100])
def test_partners_are_counted_over_pieces(at_once: int) -> None:
    pieces = [np.array(piece, np.int64) for piece in ([5, 2, 5], [], [2, 9], [5])]
    documents, counts = count_partners(pieces, at_once)
    assert dict(zip(documents.tolist(), counts.tolist(), strict=True)) == {2: 2, 5: 3, 9: 1}
    assert [len(column) for column in count_partners([], at_once)] == [0, 0]


class Given:
    id = "given"


def write_verified(item: Given, out: Any, *, rows: dict[Pair, float]) -> None:
    pairs = np.array([(b, a, 0, s, s) for (a, b), s in rows.items()], dtype=VERIFIED)
    write_pairs(out, "pairs", pairs)
    write_pairs(out, "mirrored", mirror_pairs(pairs))


def all_pairs(found: list[VerifiedPairs]) -> dict[Pair, int]:
    rows = [row for of in found for row in of.pairs.between(0, 10**9).tolist()]
    assert len(rows) == len({row[:2] for row in rows})
    return {row[:2]: row[2] for row in rows}


def index_of(corpus: MemoryCorpus, found: list[VerifiedPairs], here: list[int]) -> Earlier:
    """The files of pairs as a later run takes them, which gives its generations these numbers."""
    files = [file for of in found for file in of.pairs.files]
    return Earlier(files, corpus.starts, np.array(here))


def by_id(corpus: MemoryCorpus, found: list[VerifiedPairs]) -> dict[frozenset[str], int]:
    return {
        frozenset(corpus.all[number].id for number in pair): band
        for pair, band in all_pairs(found).items()
    }


def ids(documents: list[Document]) -> set[str]:
    return {document.id for document in documents}
