from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from dedup_corpora import Maps, classes_of

from artifacts_schema.errors import InputError
from artifacts_schema.identity import document_id
from artifacts_schema.manifest import Manifest
from stages.dedup import signing
from stages.dedup.candidates import bucket_tasks, propose, proposed_pairs
from stages.dedup.index import Corpus
from stages.dedup.index_files import PARTS, SHINGLES, VERIFYING
from stages.dedup.index_files import TEXTS as TEXTS_TABLE
from stages.dedup.index_files import WORDS as WORDS_TABLE
from stages.dedup.index_record import build_corpus
from stages.dedup.minhash import MinHash, shingle_sets
from stages.dedup.presets import Settings
from stages.dedup.shingling import shingler
from stages.dedup.signing import document_shards, generations, id_halves, sign_shard
from stages.engine import Input, ShardResult
from stages.engine.arrays import rows_at_once, text_cuts

Make = Callable[..., Any]
SETTINGS = Settings("word", 3, "fold", "ingot", bands=4, rows=2, seed=1, most=40)
WORDS = ["lorem", "ipsum", "dolor", "sit", "amet", "consectetur", "elit", "sed", "do", "eiusmod"]


def texts(count: int, seed: int = 0) -> list[str]:
    """Texts of none to sixty words, some of them equal."""
    rng = np.random.default_rng(seed)
    made = [" ".join(rng.choice(WORDS, rng.integers(0, 60))) for _ in range(count)]
    return [made[place] for place in rng.integers(0, count, count)]


@pytest.fixture
def sign(
    tmp_path: Path, make_documents: Make, read_input: Callable[[Manifest, str], Input]
) -> Callable[..., tuple[list[ShardResult], Corpus]]:
    """`sign([[text, …], …], index=…, verify=…)` → what the shards gave, and the corpus."""

    def make(
        given: list[list[Any]], *, verify: bool = True, **options: Any
    ) -> tuple[list[ShardResult], Corpus]:
        documents = [read_input(*make_documents(given, "A"))]
        items = document_shards(documents)
        shared = {"settings": SETTINGS, "index": False, "verify": verify, **options}
        signed = Maps(tmp_path).map(sign_shard, items, **shared)
        return signed, build_corpus(
            (), generations(documents, items, signed, index=False), SETTINGS
        )

    return make


def test_what_is_signed_is_what_the_kernels_say_of_all_texts_at_once(sign: Make) -> None:
    given = texts(700)
    _, corpus = sign([given[:300], [], given[300:]], text_bytes=1_000)
    everything = np.arange(700)
    shingled = shingler(SETTINGS)(pa.array(given))
    sets, offsets, sizes = shingle_sets(shingled.hashes, shingled.offsets, SETTINGS.most)
    found, found_offsets = corpus.shingles(everything)
    assert found.tolist() == sets.tolist()
    assert found_offsets.tolist() == offsets.tolist()
    assert corpus.sizes(everything).tolist() == sizes.tolist()
    assert corpus.ids(everything).to_pylist() == [document_id("A", "file", n) for n in range(700)]
    keys = MinHash(SETTINGS).keys(shingled.hashes, shingled.offsets)
    some = np.flatnonzero(np.diff(shingled.offsets))
    assert len(some) < 700
    for band in range(SETTINGS.bands):
        mine, numbers = corpus.keys(band)
        order = np.argsort(numbers)
        assert numbers[order].tolist() == some.tolist()
        assert mine[order].tolist() == keys[some, band].tolist()
    for table, digests in ((WORDS_TABLE, shingled.words), (TEXTS_TABLE, shingled.texts)):
        for run in corpus.runs(table):
            upper, lower = run.values(0, run.count), run.extra(1, 0, run.count)
            numbers = run.numbers(0, run.count)
            assert np.array_equal(np.stack([upper, lower], axis=1), digests[numbers])
            assert (np.sort(upper) == upper).all()
            assert run.extra(2, 0, run.count).tolist() == corpus.rank_ids(numbers).tolist()


def files_of(signed: list[ShardResult]) -> dict[str, bytes]:
    return {
        path: one.path(output, path).read_bytes() for one in signed for output, path in one.files
    }


@pytest.mark.parametrize("verify", [True, False])
def test_how_much_text_is_signed_at_once_changes_no_byte(sign: Make, verify: bool) -> None:
    given = [texts(400)]
    whole = files_of(sign(given, verify=verify)[0])
    for text_bytes in (1, 500, 20_000):
        assert files_of(sign(given, verify=verify, text_bytes=text_bytes)[0]) == whole
    parts = {path.rsplit(".", 1)[1] for path in whole}
    assert parts == ({*PARTS, SHINGLES} if verify else set(PARTS) - set(VERIFYING))


def test_counts_of_a_shard(sign: Make) -> None:
    given = ["one two three four", "ONE two, three four!", "...", "one"]
    ((signed,), _) = sign([given])
    assert signed.value == {
        "documents": 4,
        "shingles": 2 + 2 + 0 + 1,
        "distinct": 2 + 2 + 0 + 1,
        "compared": [3],
        "run": 65_536,
        "snapshots": ["A"],
    }


def test_the_row_groups_and_pages_of_the_table_change_no_byte(
    sign: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = [texts(300)]
    whole = files_of(sign(given)[0])
    plain = signing._parquet

    def cut(file: Any, shard: Any) -> pq.ParquetFile:
        path = tmp_path / "cut.parquet"
        table = plain(file, shard).read()
        pq.write_table(table, path, row_group_size=7, use_dictionary=False)
        return pq.ParquetFile(path, read_dictionary=["snapshot"])

    monkeypatch.setattr(signing, "_parquet", cut)
    assert files_of(sign(given)[0]) == whole


def test_a_row_group_of_long_or_of_repeated_texts_is_read_in_pieces(tmp_path: Path) -> None:
    def rows(values: list[str], text_bytes: int) -> int:
        path = tmp_path / "table.parquet"
        pq.write_table(pa.table({"doc_id": ["x" * 999] * len(values), "text": values}), path)
        return rows_at_once(pq.ParquetFile(path).metadata.row_group(0), text_bytes)

    long = [f"{number}" * 5_000 for number in range(1_000)]
    assert rows(long, 1 << 20) == pytest.approx((1 << 20) / 14_500, rel=0.05)
    # A hundred thousand copies take no room in the table: how much the rows unpack to is not known.
    assert rows(["x" * 50_000] * 5_000, 1 << 20) == 64
    assert rows(["x", "y"], 1 << 20) == 2
    assert rows(long, 1) == 1


def test_texts_are_signed_together_up_to_a_limit_and_longer_ones_alone() -> None:
    given = pa.array(["x" * length for length in (5, 5, 1, 99, 0, 10, 10, 3)])
    cuts = [(0, 2), (2, 3), (3, 4), (4, 6), (6, 7), (7, 8)]
    assert list(text_cuts(given, 10)) == cuts
    assert list(text_cuts(given[:0], 10)) == []


@pytest.mark.parametrize("wrong", ["abc", "G" * 32, "0" * 31 + "é", ""])
def test_an_id_that_is_no_id_is_refused(sign: Make, wrong: str) -> None:
    with pytest.raises(InputError, match=f"'{wrong}'"):
        sign([["a text", {"doc_id": wrong, "text": "another"}]])


def test_ids_become_numbers_whatever_slice_of_an_array_they_are() -> None:
    names = [f"{number:032x}" for number in (0, 1, 1 << 64, (1 << 128) - 1)]
    for type_ in (pa.string(), pa.large_string()):
        halves = id_halves(pa.array(names, type_).slice(1), where="here")
        assert halves.tolist() == [[0, 1], [1, 0], [(1 << 64) - 1, (1 << 64) - 1]]
        assert id_halves(pa.array([], type_), where="here").shape == (0, 2)


def test_a_shard_longer_than_a_run_is_flushed_as_runs_fill(
    sign: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = [texts(150)]
    ((one,), whole) = sign(given)
    monkeypatch.setattr(signing, "run_documents", lambda bands: 64)
    ((cut,), corpus) = sign(given)
    assert len(one.value["compared"]) == 1
    assert len(cut.value["compared"]) == 3
    assert sum(cut.value["compared"]) == one.value["compared"][0]
    numbers = np.arange(150)
    assert corpus.shingles(numbers)[0].tolist() == whole.shingles(numbers)[0].tolist()
    for band in range(SETTINGS.bands):
        mine, theirs = corpus.keys(band), whole.keys(band)
        assert dict(zip(mine[1].tolist(), mine[0].tolist(), strict=True)) == dict(
            zip(theirs[1].tolist(), theirs[0].tolist(), strict=True)
        )


def test_from_texts_to_classes_and_candidates(sign: Make, tmp_path: Path) -> None:
    text = " ".join(f"{one} {two}" for one in WORDS for two in WORDS)
    near = text.replace("lorem ipsum lorem dolor", "LOREM dolor", 1)
    given = ["something else", text.upper(), near, "...", text, text, "..", "?!"]
    _, corpus = sign([given[:3], given[3:]])
    classes = classes_of(tmp_path, corpus)
    least = [min((document_id("A", "file", n), n) for n in some)[1] for some in ([1, 4, 5], [4, 5])]
    # Texts without words are copies of equal texts only.
    expected = [0, least[0], 2, 3, least[0], least[0], 6, 7]
    assert classes.first(0, 8).tolist() == expected
    assert classes.text_first(0, 8).tolist() == [0, 1, 2, 3, least[1], least[1], 6, 7]
    shared = {"max_bucket": 32, "rows": 100, "pairs_at_once": 100}
    results = Maps(tmp_path).map(
        propose, bucket_tasks(corpus, 100), corpus=corpus, classes=classes, **shared
    )
    found = proposed_pairs(results).between(0, 8)
    pairs = list(zip(found["right"].tolist(), found["left"].tolist(), strict=True))
    assert pairs == [(max(2, least[0]), min(2, least[0]))]
