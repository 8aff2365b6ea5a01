from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
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

from stages.dedup import pipeline
from stages.dedup.pairs import BYTES_AT_WORK, VERIFIED, mirror_pairs, write_pairs
from stages.dedup.pipeline import DuplicatesShard, duplicates_shard
from stages.dedup.two_hop import VerifiedPairs
from stages.dedup.verification import pair_tasks, verify_pairs

FLOOR = 0.3


def documents(seed: int, count: int, families: int = 2) -> list[Document]:
    """Families of documents that share most shingles; some have the words, or the text, of another
    of any call (those are named for what they hold)."""
    rng = random.Random(seed)
    found = []
    for number in range(count):
        base = rng.randrange(families) * 1_000
        kept = {*rng.sample(range(base, base + 13), rng.randint(8, 13)), 50 + rng.randrange(4)}
        words = f"words {sorted(kept)}" if rng.random() < 0.5 else None
        found.append(document(f"{seed}-{number}", kept, words))
    return found


@pytest.mark.full
@settings(max_examples=25, deadline=None)
@given(
    st.integers(0, 10**6),
    st.lists(st.integers(0, 25), min_size=1, max_size=3),
    st.integers(1, 6),
    st.sampled_from(["jaccard", "containment"]),
)
def test_rows_list_the_nearest_partners_of_own_and_earlier_generations(
    tmp_path_factory: pytest.TempPathFactory,
    seed: int,
    counts: list[int],
    most: int,
    measure: Any,
) -> None:
    run = LocalMap(tmp_path_factory.mktemp("rows"))
    corpus = MemoryCorpus([documents(seed + i, count) for i, count in enumerate(counts)])
    found = pairs_of(run, corpus, measure=measure)
    tables = tables_of(run, corpus, found, max_partners=most, measure=measure)
    every = {row[:2]: row for of in found for row in of.pairs.between(0, 10**6).tolist()}
    for generation, table in enumerate(tables):
        start = int(corpus.starts[generation])
        for number, row in enumerate(table.to_pylist(), start):
            partners = []
            for (right, left), (*_, band, jaccard, containment) in every.items():
                if number in (right, left):
                    other = left if number == right else right
                    if corpus.rank(other)[0] <= generation:
                        partners.append((other, jaccard, containment, band))
            index = 1 if measure == "jaccard" else 2
            nearest = sorted(
                partners, key=lambda p: (-int(p[index] * 10 + 1e-6), corpus.rank(p[0]))
            )
            listed = sorted(nearest[:most], key=lambda p: (-p[1], corpus.all[p[0]].id))
            assert row == {
                "doc_id": corpus.all[number].id,
                "exact_class": corpus.all[int(corpus.first(number, number + 1)[0])].id,
                "text_class": corpus.all[int(corpus.text_first(number, number + 1)[0])].id,
                "partners": [
                    {
                        "doc_id": corpus.all[other].id,
                        "similarity": jaccard,
                        "containment": containment,
                        "band": band,
                    }
                    for other, jaccard, containment, band in listed
                ],
            }
            if not corpus.leads(number):
                assert row["partners"] == []


@pytest.mark.full
@pytest.mark.parametrize("seed", range(8))
def test_what_is_said_of_a_generation_stays_as_later_ones_come(seed: int, tmp_path: Path) -> None:
    run = LocalMap(tmp_path)
    a, b, c = documents(seed, 20), documents(seed + 50, 16), documents(seed + 99, 9)
    full = MemoryCorpus([a, b, c])
    of_full = pairs_of(run, full)
    told = tables_of(run, full, of_full)
    alone = MemoryCorpus([a])
    of_a = pairs_of(run, alone)
    assert tables_of(run, alone, of_a) == told[:1]
    after = MemoryCorpus([a, b, c], first_generation=1)
    after.earlier_pairs = [index_of(alone, of_a, [0])]
    of_bc = pairs_of(run, after)
    assert tables_of(run, after, of_bc) == told[1:]
    assert sum(len(partners) for table in told for partners in table["partners"].to_pylist()) > 60
    # One snapshot more, with the indexes of two runs.
    last = MemoryCorpus([a, b, c], first_generation=2)
    two = MemoryCorpus([a, b], first_generation=1)
    two.earlier_pairs = [index_of(alone, of_a, [0])]
    starts = [int(last.starts[0]), int(last.starts[1])]
    of_b = pairs_of(run, two)
    last.earlier_pairs = [index_of(alone, of_a, [0]), index_of(two, of_b[1:], starts)]
    assert tables_of(run, last, pairs_of(run, last)) == told[2:]


@pytest.mark.full
@pytest.mark.parametrize("seed", range(4))
def test_the_order_of_rows_changes_nothing_but_their_order(seed: int, tmp_path: Path) -> None:
    run = LocalMap(tmp_path)
    a, b = documents(seed, 30), documents(seed + 50, 25)

    def rows(of: list[list[Document]]) -> dict[str, Any]:
        corpus = MemoryCorpus(of)
        tables = tables_of(run, corpus, pairs_of(run, corpus), max_partners=3)
        return {row["doc_id"]: row for table in tables for row in table.to_pylist()}

    straight = rows([a, b])
    shuffled = [random.Random(seed).sample(of, len(of)) for of in (a, b)]
    assert rows(shuffled) == straight
    assert len(straight) == 55


@pytest.mark.full
def test_any_task_size_and_memory_give_the_same_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = LocalMap(tmp_path)
    corpus = MemoryCorpus([documents(1, 30), documents(2, 31)])
    monkeypatch.setattr(pipeline, "ROW_GROUP", 8)
    made = set()
    for pairs_per_task, bytes_at_once, records in [(1, 8, 1), (7, 300, 5), (10**6, 10**8, 10**6)]:
        candidates = candidate_files(run, band_candidates(corpus), files=pairs_per_task % 5 + 1)
        found = found_pairs(
            run,
            corpus,
            candidates,
            floor=FLOOR,
            pairs_per_task=pairs_per_task,
            bytes_at_once=bytes_at_once,
        )
        results = listed(run, corpus, found, records=records, max_partners=4)
        made.add(
            tuple(
                result.path(*name).read_bytes()
                for result in results
                for name in sorted(result.files)
            )
        )
    assert len(made) == 1


def test_a_capped_list_keeps_the_first_by_rank_of_the_most_similar(tmp_path: Path) -> None:
    corpus = MemoryCorpus([[document(str(i), {i}) for i in range(10)]])
    similarity = {0: 0.55, 1: 0.91, 2: 0.7, 3: 0.99, 4: 0.95, 5: 0.79}
    found = given_pairs(LocalMap(tmp_path), [(9, left, s) for left, s in similarity.items()])
    by_id = sorted([1, 3, 4], key=corpus.rank)

    def partners(most: int) -> list[int]:
        (table,) = tables_of(LocalMap(tmp_path / str(most)), corpus, found, max_partners=most)
        names = {document.id: number for number, document in enumerate(corpus.all)}
        return [names[p["doc_id"]] for p in table["partners"][9].as_py()]

    # .91, .99 and .95 are one step of similarity, .7 and .79 the next.
    assert partners(2) == sorted(by_id[:2], key=lambda n: -similarity[n])
    assert partners(3) == [3, 4, 1]
    assert partners(4) == [3, 4, 1, min(2, 5, key=corpus.rank)]
    assert partners(64) == [3, 4, 1, 5, 2, 0]


def test_counts_tell_of_all_partners_and_of_capped_lists(tmp_path: Path) -> None:
    corpus = MemoryCorpus([[document(str(i), {i}) for i in range(10)]])
    found = given_pairs(LocalMap(tmp_path), [(9, left, 0.7) for left in range(5)] + [(8, 0, 0.6)])
    (result,) = listed(LocalMap(tmp_path / "m"), corpus, found, max_partners=4, records=2)
    assert result.value == {"documents_with_pairs": 7, "capped_documents": 1, "pairs": 6}


def test_unverified_partners_follow_by_rank_and_have_no_measures(tmp_path: Path) -> None:
    run = LocalMap(tmp_path)
    corpus = MemoryCorpus(
        [[document(f"a{i}", {i}) for i in range(4)], [document(f"b{i}", {i}) for i in range(5)]]
    )
    candidates = candidate_files(run, {(8, left): left for left in range(8)}, 1)
    tasks = pair_tasks(candidates, corpus, 100)  # type: ignore[arg-type]
    results = run(
        verify_pairs,
        tasks,
        corpus=corpus,
        candidates=candidates,
        measure="jaccard",
        floor=0.5,
        verify=False,
        bytes_at_once=100,
    )
    found = [VerifiedPairs.from_results(0, []), VerifiedPairs.from_results(1, results)]
    table = tables_of(run, corpus, found, max_partners=6)[1]
    partners = table["partners"][4].as_py()
    by_rank = sorted(range(8), key=corpus.rank)[:6]
    assert [p["doc_id"] for p in partners] == [corpus.all[n].id for n in by_rank]
    assert [p["band"] for p in partners] == by_rank
    assert {(p["similarity"], p["containment"]) for p in partners} == {(None, None)}


@pytest.mark.full
def test_a_crowd_is_listed_in_bounded_memory(tmp_path: Path) -> None:
    class Counting(MemoryCorpus):
        most_ranked = 0

        def rank_ids(self, numbers: Any) -> Any:
            self.most_ranked = max(self.most_ranked, len(numbers))
            return super().rank_ids(numbers)

    corpus = Counting([[document(str(i), {i}) for i in range(600)]])
    found = given_pairs(LocalMap(tmp_path), [(n, 0, 0.9) for n in range(1, 600)])
    (table,) = tables_of(
        LocalMap(tmp_path / "m"), corpus, found, max_partners=16, records=100, rows=1
    )
    first = [p["doc_id"] for p in table["partners"][0].as_py()]
    assert first == sorted(document.id for document in corpus.all[1:])[:16]
    assert corpus.most_ranked <= 16 + 2 * 100


def pairs_of(run: LocalMap, corpus: MemoryCorpus, measure: Any = "jaccard") -> list[VerifiedPairs]:
    candidates = candidate_files(run, band_candidates(corpus, max_bucket=2))
    return found_pairs(run, corpus, candidates, floor=FLOOR, measure=measure)


def listed(
    run: LocalMap,
    corpus: Any,
    found: Sequence[VerifiedPairs],
    *,
    max_partners: int = 4,
    measure: Any = "jaccard",
    records: int = 10**6,
) -> list[Any]:
    items = [
        DuplicatesShard(
            str(generation),
            generation,
            int(corpus.starts[generation]),
            int(corpus.starts[generation + 1] - corpus.starts[generation]),
            f"{generation:012d}/00000.parquet",
            f"pairs/{generation:05d}.pairs",
        )
        for generation in range(corpus.first_generation, len(corpus.starts) - 1)
    ]
    return run(
        duplicates_shard,
        items,
        corpus=corpus,
        classes=corpus,
        pairs=found,
        measure=measure,
        max_partners=max_partners,
        bytes_at_once=records * BYTES_AT_WORK,
    )


def tables_of(
    run: LocalMap, corpus: Any, found: Sequence[VerifiedPairs], rows: int = 8, **options: Any
) -> list[pa.Table]:
    """The table of each new generation, made `rows` rows at a time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pipeline, "ROW_GROUP", rows)
        results = listed(run, corpus, found, **options)
    tables = []
    for result in results:
        (name,) = [name for name in result.files if name[0] == "duplicates"]
        tables.append(pq.read_table(result.path(*name)))
        stored = result.path("dedup_index", f"pairs/{int(result.id):05d}.pairs")
        own = next(of for of in found if of.generation == int(result.id))
        assert stored.read_bytes() == own.pairs.between(0, 10**9).tobytes()
    return tables


def index_of(corpus: MemoryCorpus, found: list[VerifiedPairs], here: list[int]) -> Earlier:
    files = [file for of in found for file in of.pairs.files]
    return Earlier(files, corpus.starts, np.array(here))


class Item:
    id = "given"


def given_pairs(run: LocalMap, rows: list[tuple[int, int, float]]) -> list[VerifiedPairs]:
    pairs = np.array([(right, left, 0, s, s) for right, left, s in rows], dtype=VERIFIED)
    return [VerifiedPairs.from_results(0, run(write, [Item()], pairs=pairs))]


def write(item: Item, out: Any, *, pairs: Any) -> None:
    write_pairs(out, "pairs", pairs)
    write_pairs(out, "mirrored", mirror_pairs(pairs))
