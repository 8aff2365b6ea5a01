from __future__ import annotations

import pickle
import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, ClassVar

import numpy as np
import pytest
from dedup_corpora import Doc, corpus_of, result
from hypothesis import given as drawn
from hypothesis import settings as trials
from hypothesis import strategies as st

from artifacts_schema.config import Config, Execution
from artifacts_schema.errors import CorruptArtifact, InputError
from artifacts_schema.identity import short
from artifacts_schema.kinds import sidecar_folder
from artifacts_schema.manifest import Manifest
from artifacts_schema.store import Store
from artifacts_schema.store.remote import backend_at
from stages.dedup.index import Corpus
from stages.dedup.index_files import (
    BLOCK,
    PARTS,
    VERIFYING,
    ascending,
    band_table,
    run_documents,
)
from stages.dedup.index_record import RECORD, index_record, read_indexes
from stages.dedup.index_record import build_corpus as joined
from stages.dedup.presets import Settings
from stages.dedup.signing import document_shards, generations, sign_shard
from stages.dedup.sorted_runs import OPEN_FILES
from stages.engine import Context, Input, Many, ShardOutput, Stage

Make = Callable[..., Any]
KIND = "dedup_index"
SETTINGS = Settings("word", 2, "fold", "ingot", bands=2, rows=2, seed=1, most=1_000)


def made(count: int, seed: int, *, bands: int = 2) -> list[Doc]:
    rng = random.Random(seed)
    return [
        Doc(
            rng.getrandbits(128),
            rng.getrandbits(128),
            rng.getrandbits(128),
            tuple(rng.getrandbits(64) for _ in range(bands)) if rng.random() < 0.8 else None,
            tuple(rng.getrandbits(64) for _ in range(rng.randrange(12))),
        )
        for _ in range(count)
    ]


# Files -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("run", [1, 7, 1_500, 1 << 16])
def test_what_is_written_of_a_document_is_read_by_its_number(tmp_path: Path, run: int) -> None:
    docs = made(3_000, seed=run)
    shards = [docs[:2_500], [], docs[2_500:2_501], docs[2_501:]]
    corpus = corpus_of(tmp_path, [shards[:3], [], shards[3:]], bands=2, run=run, most=6)
    numbers = np.random.default_rng(0).integers(0, len(docs), 500)
    asked = [docs[number] for number in numbers]
    assert corpus.starts.tolist() == [0, 2_501, 2_501, 3_000]
    assert corpus.generations(np.array([0, 2_500, 2_501])).tolist() == [0, 0, 2]
    assert corpus.ids(numbers).to_pylist() == [f"{doc.id:032x}" for doc in asked]
    assert corpus.rank_ids(numbers).tolist() == [doc.id >> 64 for doc in asked]
    assert corpus.sizes(numbers).tolist() == [len(doc.shingles) for doc in asked]
    flat, offsets = corpus.shingles(numbers)
    assert offsets[-1] == len(flat)
    # Of more than `most` shingles the least are kept.
    for place, doc in enumerate(asked):
        kept = flat[offsets[place] : offsets[place + 1]].tolist()
        assert kept == sorted(doc.shingles)[:6]
    with pytest.raises(ValueError, match="0 to 2999"):
        corpus.ids(np.array([3_000]))


@pytest.mark.parametrize("run", [50, 1 << 16])
def test_keys_of_a_range_are_those_of_all_generations_and_none_without_shingles(
    tmp_path: Path, run: int
) -> None:
    docs = made(4_000, seed=5)
    corpus = corpus_of(tmp_path, [[docs[:1_000]], [docs[1_000:]]], bands=2, old=1, run=run)
    for band, low, high in [
        (0, 0, 1 << 64),
        (1, 1 << 62, 3 << 62),
        (1, 1 << 63, 1 << 64),
        (0, 5, 6),
    ]:
        keys, numbers = corpus.keys(band, low, high)
        expected = {
            number: doc.keys[band]
            for number, doc in enumerate(docs)
            if doc.keys and low <= doc.keys[band] < high
        }
        assert dict(zip(numbers.tolist(), keys.tolist(), strict=True)) == expected
        assert len(numbers) == len(expected)
    assert corpus.compared(new=False) == sum(doc.keys is not None for doc in docs[:1_000])
    assert corpus.compared(new=True) == sum(doc.keys is not None for doc in docs[1_000:])


@trials(max_examples=25, deadline=None)
@drawn(
    st.sampled_from(["even", "equal", "low", "ends"]),
    st.integers(1, 5_000),
    st.lists(st.integers(0, 1 << 64), min_size=1, max_size=8),
    st.randoms(use_true_random=False),
)
def test_a_value_is_found_in_a_run_however_values_are_spread(
    spread: str, count: int, asked: list[int], rng: random.Random
) -> None:
    draw = {
        "even": lambda: rng.getrandbits(64),
        "equal": lambda: 1 << 63,
        "low": lambda: rng.randrange(100),
        "ends": lambda: rng.choice([0, 1, (1 << 64) - 1]),
    }[spread]
    values = sorted(draw() for _ in range(count))
    docs = [Doc(number, keys=(key,)) for number, key in enumerate(values)]
    with TemporaryDirectory() as folder:
        corpus = corpus_of(Path(folder), [[docs]], bands=1)
        (run,) = corpus.runs(band_table(0))
        near = [0, 1, values[0] + 1, values[-1], values[count // 2], (1 << 64) - 1]
        for value in [*asked, *near]:
            assert run.below(value) == sum(one < value for one in values)
        assert run.below(1 << 64) == count


def test_the_order_of_values_is_that_of_a_stable_sort() -> None:
    rng = np.random.default_rng(1)
    for most in (1, 3, 1_000, 1 << 63):
        values = rng.integers(0, most, 5_000, dtype=np.uint64)
        assert (ascending(values) == np.argsort(values, kind="stable")).all()


def test_runs_of_many_bands_hold_fewer_documents_in_whole_blocks() -> None:
    assert [run_documents(bands) for bands in (1, 14, 32, 33, 450, 512)] == [
        65_536,
        65_536,
        65_536,
        63_488,
        4_096,
        4_096,
    ]
    assert all(run_documents(bands) % BLOCK == 0 for bands in range(1, 513))


def test_another_process_opens_its_own_files_and_few_are_open_at_once(tmp_path: Path) -> None:
    docs = made(2 * OPEN_FILES, seed=2)
    corpus = corpus_of(tmp_path, [[[doc] for doc in docs]], bands=2)
    everything = np.arange(len(docs))
    ids = corpus.ids(everything).to_pylist()
    assert len(corpus.files._open) == OPEN_FILES
    packed = pickle.dumps(corpus)
    other = pickle.loads(packed)
    assert other is pickle.loads(packed)
    assert not other.files._open
    assert other.ids(everything).to_pylist() == ids
    corpus.files.close()


# Indexes of earlier runs -------------------------------------------------------------------------


class IndexConfig(Config):
    """Which settings, and whether sizes of shingle sets are kept."""

    seed: int = 1
    verify: bool = True
    pairs: int = 0


class MakesIndex(Stage):
    """The part of `dedup` that makes an index."""

    name, version, reproducible = "makes_index", 1, "bytes"
    inputs: ClassVar[dict[str, Any]] = {
        "documents": Many("documents"),
        "dedup_index": Many("dedup_index"),
    }
    outputs: ClassVar[dict[str, str]] = {"dedup_index": "dedup_index"}
    Config, Execution = IndexConfig, Execution

    def run(self, context: Context) -> None:
        settings = replace(SETTINGS, seed=context.config.seed)
        verify = context.config.verify
        documents = context.many("documents")
        items = document_shards(documents)
        earlier = read_indexes(
            context.many("dedup_index"),
            settings,
            verify=verify,
            documents=[given.digest for given in documents],
        )
        signed = context.map(sign_shard, items, settings=settings, index=True, verify=verify)
        corpus = joined(earlier, generations(documents, items, signed, index=True), settings)
        context.map(ids_of, items, corpus=corpus)
        pairs = [(f"pairs/{n}.pairs", 1) for n in range(context.config.pairs)]
        for name, _ in pairs:
            context.write_bytes("dedup_index", name, b"a pair")
        record = index_record(corpus.new, corpus.knew, settings, verified=verify, pairs=pairs)
        context.write_json("dedup_index", RECORD, record)


def ids_of(item: Any, out: Any, *, corpus: Corpus) -> dict[str, Any]:
    """All ids, read by a later map from what an earlier one wrote to the output."""
    return {"ids": corpus.ids(np.arange(corpus.documents)).to_pylist()}


@pytest.fixture
def indexed(
    run_stage: Make, make_documents: Make, read_input: Callable[[Manifest, str], Input]
) -> Make:
    """`indexed(texts, snapshot, earlier=…, config=…)` → (the index as an input, its reference)."""

    def make(
        texts: list[list[str]], snapshot: str, *, earlier: Any = (), **config: Any
    ) -> tuple[Input, Any]:
        roles = {
            "documents": [make_documents(texts, snapshot)],
            "dedup_index": [reference for _, reference in earlier],
        }
        manifest = run_stage(MakesIndex, config, roles)
        return read_input(manifest, "dedup_index"), (manifest, "dedup_index")

    return make


def reading(*given: Input, settings: Settings = SETTINGS, verify: bool = True) -> Any:
    return read_indexes(given, settings, verify=verify, documents=["f" * 64])


TEXTS = [["one two three", "four five"], ["six seven eight nine", "", "ten"]]


def test_an_index_is_read_back_with_all_that_a_later_run_needs(indexed: Make) -> None:
    given, _ = indexed(TEXTS, "A")
    (index,) = reading(given)
    assert [g.snapshots for g in index.generations] == [("A",)]
    corpus = joined([index], [], SETTINGS)
    assert corpus.documents == corpus.first_new == 5
    # Two-word shingles: 2, 1, 3, none, and the one word of the last text.
    assert corpus.sizes(np.arange(5)).tolist() == [2, 1, 3, 0, 1]
    assert corpus.compared(new=False) == 4
    record = given.read_json(RECORD)
    assert record["bytes"]["ids"] == 5 * 16
    assert record["bytes"]["sizes"] == 2 * (8 + 4 * BLOCK), "a block for each shard"
    assert record["bytes"] == {
        part: sum(file.bytes for file in given.files if file.path.endswith(f".{part}"))
        for part in PARTS
    }


def test_indexes_are_taken_in_the_order_in_which_they_were_made(indexed: Make) -> None:
    one = indexed([["a b c"]], "A")
    two = indexed([["d e f"]], "B", earlier=[one])
    three = indexed([["g h i"]], "C", earlier=[two, one])
    inputs = [given for given, _ in (one, two, three)]
    for order in ([2, 0, 1], [1, 2, 0], [2, 1, 0]):
        found = reading(*[inputs[place] for place in order])
        assert [index.input for index in found] == inputs
    assert [index.input for index in reading(inputs[2], inputs[0])] == [inputs[0], inputs[2]]
    alone = indexed([["j k l"]], "D")
    assert [index.input for index in reading(alone[0], inputs[0])] == [alone[0], inputs[0]]


def test_pairs_of_an_index_are_told_in_numbers_that_a_later_run_can_translate(
    indexed: Make,
) -> None:
    one = indexed([["a b c", "x y z"]], "A")
    two = indexed([["d e f"]], "B", earlier=[one], pairs=2)
    corpus = joined(reading(two[0], one[0]), [], SETTINGS)
    (earlier,) = corpus.earlier_pairs
    assert earlier.starts.tolist() == [0, 2, 3]
    assert earlier.here.tolist() == [0, 2]
    assert [earlier.path(file).read_bytes() for file in earlier.files] == [b"a pair"] * 2
    # The first snapshot was retired: the pairs that name it can be left out.
    (earlier,) = joined(reading(two[0]), [], SETTINGS).earlier_pairs
    assert earlier.here.tolist() == [-1, 0]


def test_an_index_of_other_settings_is_refused_and_each_difference_named(indexed: Make) -> None:
    given, _ = indexed(TEXTS, "A", seed=7)
    other = replace(SETTINGS, bands=3, most=5)
    with pytest.raises(InputError) as caught:
        reading(given, settings=other)
    assert "bands 2 (this run: 3), seed 7 (this run: 1), most 1000 (this run: 5)" in str(
        caught.value
    )
    assert f"dedup_index {short(given.digest)} of makes_index" in str(caught.value)


def test_an_index_without_verification_does_for_a_run_that_verifies_nothing(indexed: Make) -> None:
    given, _ = indexed(TEXTS, "A", verify=False)
    assert not [f.path for f in given.files if f.path.rsplit(".")[-1] in VERIFYING]
    assert len(reading(given, verify=False)) == 1
    with pytest.raises(InputError, match="verify: true"):
        reading(given)


def test_documents_that_come_twice_are_refused_before_anything_is_signed(indexed: Make) -> None:
    one = indexed(TEXTS, "A")
    again = indexed(TEXTS, "A", verify=False)
    with pytest.raises(InputError, match="dedup_index"):
        reading(one[0], again[0], verify=False)
    (index,) = reading(one[0])
    digest = index.generations[0].documents
    with pytest.raises(InputError, match="dedup_index"):
        read_indexes([one[0]], SETTINGS, verify=True, documents=[digest])
    with pytest.raises(InputError, match=short(digest)):
        read_indexes([], SETTINGS, verify=True, documents=[digest, digest])


def test_an_index_of_a_later_format_or_of_none_is_refused(given: Make, read_input: Make) -> None:
    later = read_input(*given("dedup_index", {RECORD: {"format": 99}}))
    with pytest.raises(InputError, match="99"):
        reading(later)
    nothing = read_input(*given("dedup_index", {"a/b.ids": b""}))
    with pytest.raises(InputError, match="unknown"):
        reading(nothing)


def test_files_that_do_not_agree_with_the_record_are_refused(
    indexed: Make, given: Make, read_input: Make
) -> None:
    whole, _ = indexed(TEXTS, "A")
    files: dict[str, Any] = {path: whole.read_bytes(path) for path in whole.paths("*.*")}
    files[RECORD] = whole.read_json(RECORD)
    name = whole.paths("*.keys")[0]
    cut = read_input(*given("dedup_index", {**files, name: files[name][:-12]}))
    with pytest.raises(CorruptArtifact, match=rf"{name} .*48 .*36 "):
        reading(cut)
    del files[name]
    with pytest.raises(CorruptArtifact, match=name):
        reading(read_input(*given("dedup_index", files)))


@pytest.mark.parametrize("part", ["ids", "sizes"])
@pytest.mark.parametrize("full", [True, False])
def test_a_file_that_was_cut_short_in_the_store_is_noticed_without_hashing_too(
    indexed: Make, store: Store, part: str, full: bool
) -> None:
    given, _ = indexed(TEXTS, "A")
    given = replace(given, full_check=full)
    corpus = joined(reading(given), [], SETTINGS)
    path = given.local_path(given.paths(f"*00000.{part}")[0])
    path.chmod(0o644)
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(CorruptArtifact, match="makes_index"):
        corpus.ids(np.arange(5)) if part == "ids" else corpus.sizes(np.arange(5))


def test_a_flipped_bit_is_noticed_where_inputs_are_verified(indexed: Make, store: Store) -> None:
    given, _ = indexed(TEXTS, "A")
    name = given.paths("*00000.sizes")[0]
    path = Path(store.backend.full(f"{given.folder}/{name}"))
    data = bytearray(path.read_bytes())
    data[3] ^= 1
    path.chmod(0o644)
    path.write_bytes(data)
    corpus = joined(reading(given), [], SETTINGS)
    with pytest.raises(CorruptArtifact, match="bytes changed"):
        corpus.sizes(np.arange(5))


def test_a_file_that_ends_while_it_is_read_says_so(tmp_path: Path) -> None:
    corpus = corpus_of(tmp_path, [[made(10, 1)]], bands=2)
    path = corpus.shards[0].path("ids")
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(CorruptArtifact, match="160"):
        corpus.ids(np.arange(10))


def test_a_later_map_reads_what_an_earlier_one_wrote_to_the_output(
    run_stage: Make, make_documents: Make, store: Store
) -> None:
    documents = make_documents(TEXTS)
    manifest = run_stage(MakesIndex, {}, {"documents": [documents]}, {"workers": 2})
    folder = sidecar_folder(documents[0].outputs["documents"].digest)
    found = {file.path for file in manifest.outputs["dedup_index"].files}
    parts = {f"{folder}/{shard:05d}.{part}" for shard in range(2) for part in PARTS}
    assert found == {RECORD, *parts}


def test_what_a_shard_wrote_to_an_output_of_a_bucket_is_fetched_once(s3_url: str) -> None:
    out = ShardOutput(backend_at(f"{s3_url}/store"), "work/k/shards/m/i", {KIND: KIND})
    out.write_bytes(KIND, "a/b.ids", b"an id of 16 byte")
    with out.open_scratch("a/b.ids") as file:
        file.write(b"scratch")
    found = result(out, {})
    assert found.path(KIND, "a/b.ids").read_bytes() == b"an id of 16 byte"
    assert found.path(None, "a/b.ids").read_bytes() == b"scratch"
    assert found.path(KIND, "a/b.ids") != found.scratch_path("a/b.ids")
    out.backend.remove("work/k")
    assert found.path(KIND, "a/b.ids").read_bytes() == b"an id of 16 byte"


def test_indexes_that_claim_to_follow_each_other_are_refused(
    indexed: Make, given: Make, read_input: Make
) -> None:
    def claiming(index: Input, other: Input) -> Input:
        files: dict[str, Any] = {path: index.read_bytes(path) for path in index.paths("*.*")}
        knows = other.read_json(RECORD)["knows"]
        record = index.read_json(RECORD)
        files[RECORD] = {**record, "knows": [*knows, *record["knows"]]}
        return read_input(*given(KIND, files))

    one, two = indexed([["a b c"]], "A")[0], indexed([["d e f"]], "B")[0]
    with pytest.raises(CorruptArtifact, match="dedup_index"):
        reading(claiming(one, two), claiming(two, one))
