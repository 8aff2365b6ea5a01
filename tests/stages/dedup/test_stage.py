"""The stage from documents to tables, against brute force and against itself cut otherwise."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from near_copies import (
    Truth,
    by_id,
    edited,
    families,
    ident,
    letters,
    pairs_of,
    prose,
    rows,
)

from artifacts_schema.errors import InputError
from artifacts_schema.kinds import sidecar_folder
from artifacts_schema.manifest import Manifest
from artifacts_schema.store import Store
from stages.dedup import config as memory
from stages.dedup import merging, pipeline, signing
from stages.dedup.presets import PRESETS
from stages.dedup.stage import Dedup
from stages.filter.stage import Filter

Make = Callable[..., Any]
TEXTS = families(12, 9)
ROWS = rows("given", TEXTS)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("dedup")


@pytest.fixture
def store(folder: Path) -> Store:
    """One for all tests here, so that they share runs."""
    return Store.open(str(folder / "store"))


@pytest.fixture(scope="module")
def truth() -> Truth:
    return Truth([ROWS])


@pytest.fixture
def documents(make_documents: Make) -> Any:
    return make_documents([ROWS[:50], [], ROWS[50:53], ROWS[53:]])


@pytest.fixture
def dedup(run_stage: Make, documents: Any) -> Make:
    """`dedup(config…)` → the manifest of a run over the documents."""
    return lambda **config: run_stage(Dedup, config, {"documents": [documents]})


def tables(manifest: Manifest) -> dict[str, str]:
    """The digest of each table."""
    files = manifest.outputs["duplicates"].files
    return {file.path: file.sha256 for file in files if file.path.endswith(".parquet")}


# Against brute force -----------------------------------------------------------------------------


def test_classes_are_those_of_brute_force(dedup: Make, read_table: Make, truth: Truth) -> None:
    manifest = dedup()
    told = by_id(read_table(manifest, "duplicates"))
    assert {i: one["exact_class"] for i, one in told.items()} == truth.exact_class
    assert {i: one["text_class"] for i, one in told.items()} == truth.text_class
    firsts, raw = set(truth.exact_class.values()), set(truth.text_class.values())
    assert len(firsts) < len(raw) < len(told)
    assert manifest.counts["exact_copies"] == len(told) - len(firsts)
    assert manifest.counts["text_copies"] == len(told) - len(raw)
    assert all(not one["partners"] for i, one in told.items() if i not in firsts)
    assert manifest.conservation is not None
    assert manifest.conservation.records_in == manifest.conservation.out == len(TEXTS)


def test_rows_are_those_of_the_documents_beside_them(
    dedup: Make, documents: Any, read_table: Make
) -> None:
    """In their order, shard by shard, under the digest of their output."""
    manifest, place = dedup(), sidecar_folder(documents[0].outputs["documents"].digest)
    cuts = [0, 50, 50, 53, len(ROWS)]
    for shard in range(4):
        table = read_table(manifest, "duplicates", f"{place}/{shard:05d}.parquet")
        own = ROWS[cuts[shard] : cuts[shard + 1]]
        assert table["doc_id"].to_pylist() == [one["doc_id"] for one in own]


def test_pairs_of_bands_are_exact_and_as_many_as_theory_says(
    dedup: Make, read_table: Make, truth: Truth
) -> None:
    told = pairs_of(read_table(dedup(closure=False), "duplicates"))
    exact = truth.pairs(0.5)
    exact |= {(two, one): alike for (one, two), alike in exact.items()}
    assert told.keys() <= exact.keys()
    for pair, partner in told.items():
        assert partner["similarity"] == np.float32(exact[pair])
        assert partner["containment"] == np.float32(truth.containment(*pair))
        assert 0 <= partner["band"] < 14
        # Both documents are of one generation: each lists the other, alike.
        assert told[pair[::-1]] == {**partner, "doc_id": pair[0]}
    mean, deviation = truth.found_by_bands(0.5, 14, 8)
    assert abs(len(told) / 2 - mean) < 4 * deviation
    assert deviation > 2
    assert not [pair for pair, alike in exact.items() if alike >= 0.9 and pair not in told]


def test_partners_lead_to_pairs_that_no_band_proposed(
    dedup: Make, read_table: Make, truth: Truth
) -> None:
    by_bands = pairs_of(read_table(dedup(closure=False), "duplicates"))
    told = pairs_of(read_table(dedup(), "duplicates"))
    assert {pair: told[pair] for pair in by_bands} == by_bands
    closed = {pair: told[pair] for pair in told.keys() - by_bands.keys()}
    partners: dict[str, set[str]] = {}
    for one, two in by_bands:
        partners.setdefault(one, set()).add(two)
    exact = truth.pairs(0.5)
    both = {*exact, *(pair[::-1] for pair in exact)}
    led = {
        (one, two) for one, two in both if partners.get(one, set()) & partners.get(two, set())
    } - by_bands.keys()
    assert closed.keys() == led
    assert len(led) > 20
    for pair, partner in closed.items():
        assert partner["band"] == -1
        assert partner["similarity"] == np.float32(truth.jaccard(*pair))


def test_recall_that_is_told_is_that_of_brute_force(
    dedup: Make, read_input: Make, read_table: Make, truth: Truth
) -> None:
    """All firsts are in the sample, so that nothing is estimated."""
    manifest = dedup()
    told = read_input(manifest, "duplicates").read_json("statistics.json")["recall"]
    exact, found = truth.pairs(0.5), pairs_of(read_table(manifest, "duplicates"))
    assert told["sampled"] == len(truth.firsts)
    assert sum(step["pairs"] for step in told["similarity"]) == len(exact)
    assert sum(step["found"] for step in told["similarity"]) * 2 == len(found)
    near = {one for pair, alike in exact.items() if alike >= 0.8 for one in pair}
    assert told["documents"]["with_partner"] == told["documents"]["found"] == len(near)


def test_partners_stand_by_similarity_and_the_nearest_are_listed(
    dedup: Make, read_table: Make
) -> None:
    whole = by_id(read_table(dedup(), "duplicates"))
    cut = by_id(read_table(dedup(max_partners=2), "duplicates"))
    assert any(len(one["partners"]) > 2 for one in whole.values())
    for doc_id, one in whole.items():
        listed = one["partners"]
        order = [(-partner["similarity"], partner["doc_id"]) for partner in listed]
        assert order == sorted(order)
        kept = cut[doc_id]["partners"]
        assert all(partner in listed for partner in kept)
        # Of equal tenths of similarity those of least id stay.
        by_tenths = sorted(listed, key=lambda p: (-int(p["similarity"] * 10 + 1e-6), p["doc_id"]))
        assert {p["doc_id"] for p in kept} == {p["doc_id"] for p in by_tenths[:2]}


def test_containment_finds_a_text_within_a_longer_one(
    run_stage: Make, make_documents: Make, read_table: Make
) -> None:
    """48 of 60 words are 44 of 56 shingles: J = .79; nothing of what is alike is left out."""
    texts = [
        " ".join(words[:end]) for n in range(30) for words in [prose(n, 60)] for end in (48, 60)
    ]
    given = rows("contained", texts)
    documents, truth = make_documents([given]), Truth([given])
    config = {"measure": "containment", "floor": 0.95}
    told = pairs_of(read_table(run_stage(Dedup, config, {"documents": [documents]}), "duplicates"))
    assert 2 * 20 < len(told) <= 2 * 30  # 1 - (1 - .79^8)^14 = .90 of 30.
    for pair, partner in told.items():
        assert partner["containment"] == truth.containment(*pair) == 1.0
        assert partner["similarity"] == np.float32(44 / 56) == np.float32(truth.jaccard(*pair))
    strict = run_stage(Dedup, {"floor": 0.8}, {"documents": [documents]})
    assert pairs_of(read_table(strict, "duplicates")) == {}


def test_without_verification_candidates_stand_unmeasured(
    dedup: Make, read_table: Make, read_input: Make
) -> None:
    verified = pairs_of(read_table(dedup(closure=False), "duplicates"))
    manifest = dedup(verify=False)
    told = pairs_of(read_table(manifest, "duplicates"))
    assert told.keys() >= verified.keys()
    for pair, partner in told.items():
        assert partner["similarity"] is partner["containment"] is None
        assert partner["band"] == verified.get(pair, partner)["band"]
    statistics = read_input(manifest, "duplicates").read_json("statistics.json")
    assert statistics["recall"] is None
    paths = read_input(manifest, "dedup_index").paths("*")
    assert not [path for path in paths if path.endswith((".pairs", ".shingles", ".sizes"))]


# The same, however it is cut ---------------------------------------------------------------------


def test_the_same_bytes_for_any_workers(run_stage: Make, dedup: Make, documents: Any) -> None:
    two = run_stage(Dedup, {}, {"documents": [documents]}, {"workers": 2}, force=True)
    assert two.outputs == dedup().outputs


@pytest.mark.parametrize("room", [2_000, 20_000])
def test_the_same_bytes_for_any_memory(
    run_stage: Make, dedup: Make, documents: Any, monkeypatch: pytest.MonkeyPatch, room: int
) -> None:
    """Some rows, pairs and shingles at once; of the smallest `memory` there is room for all."""
    plain = dedup()
    monkeypatch.setattr(memory, "budget", lambda *_: memory.Budget(room))
    monkeypatch.setattr(pipeline, "PAIRS_PER_TASK", 7)
    monkeypatch.setattr(pipeline, "SCANNED_PER_TASK", 11)
    assert signing.sign_shard.__kwdefaults__ is not None
    monkeypatch.setitem(signing.sign_shard.__kwdefaults__, "text_bytes", 999)
    again = run_stage(Dedup, {}, {"documents": [documents]}, force=True)
    assert again.outputs == plain.outputs


@pytest.mark.parametrize("limits", [(-1, 256), (50, 256), (1_000, 2)])
def test_joining_small_shards_changes_no_byte(
    run_stage: Make,
    dedup: Make,
    documents: Any,
    monkeypatch: pytest.MonkeyPatch,
    limits: tuple[int, int],
) -> None:
    """None joined; the large last one left alone; two at a time. By default all are one."""
    monkeypatch.setattr(merging, "SMALL_DOCUMENTS", limits[0])
    monkeypatch.setattr(merging, "SMALL_SHARDS", limits[1])
    again = run_stage(Dedup, {}, {"documents": [documents]}, force=True)
    assert again.outputs == dedup().outputs


def test_runs_of_the_index_change_no_table(
    run_stage: Make, dedup: Make, documents: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = dedup(seed=5)
    monkeypatch.setattr(signing, "run_documents", lambda bands: 7)
    # Another sample than the default: else the run would be known, and its index differ.
    again = run_stage(Dedup, {"seed": 5, "recall_sample": 511}, {"documents": [documents]})
    assert tables(again) == tables(plain)
    assert again.outputs["dedup_index"].digest != plain.outputs["dedup_index"].digest


@pytest.mark.parametrize("seed", [1, 2])
def test_the_same_rows_for_any_order_and_any_shards(
    run_stage: Make, dedup: Make, make_documents: Make, read_table: Make, seed: int
) -> None:
    """With caps that bite: of buckets, of lists, and of shingles."""
    config = {"max_bucket": 3, "max_partners": 3, "bytes_per_document": 512}
    mixed, rng = list(ROWS), random.Random(seed)
    rng.shuffle(mixed)
    cuts = sorted(rng.sample(range(len(mixed)), 4))
    shards = [mixed[a:b] for a, b in zip([0, *cuts], [*cuts, None], strict=True)]
    other = run_stage(Dedup, config, {"documents": [make_documents(shards)]})
    told = by_id(read_table(other, "duplicates"))
    assert told == by_id(read_table(dedup(**config), "duplicates"))


# Settings ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("preset", list(PRESETS))
def test_every_preset_finds_copies_and_nearly_equal_texts(
    run_stage: Make, make_documents: Make, read_table: Make, preset: str
) -> None:
    """One word of 200 differs, the last: at least 187 of 189 shingles are shared."""
    texts = [prose(seed, 200) for seed in range(6)]
    given = [" ".join(words) for words in texts]
    given += [" ".join([*words[:-1], "otter"]) for words in texts]
    given += [" ".join(texts[0])]
    documents = make_documents([given], f"preset {preset}")
    manifest = run_stage(Dedup, {"preset": preset}, {"documents": [documents]})
    told = read_table(manifest, "duplicates").to_pylist()
    ids = [one["doc_id"] for one in told]
    first = min(ids[0], ids[12])
    assert {told[0]["exact_class"], told[12]["exact_class"]} == {first}
    of = {ids[n]: ids[n] for n in range(13)} | {ids[0]: first, ids[12]: first}
    for one in range(6):
        owner = next(row for row in told if row["doc_id"] == of[ids[one]])
        (partner,) = owner["partners"]
        assert partner["doc_id"] == ids[one + 6]
        assert partner["similarity"] > 0.97


def test_a_threshold_makes_the_bands(dedup: Make, read_input: Make) -> None:
    """datasketch's optimum for 0.8 of 128 hashes weighed alike is 9 × 13."""
    told = read_input(dedup(threshold=0.8, hashes=128), "duplicates").read_json("statistics.json")
    settings = told["parameters"]["settings"]
    assert (settings["bands"], settings["rows"]) == (9, 13)


# Passages ----------------------------------------------------------------------------------------


def test_passages_stand_beside_the_documents_and_are_cut_by_filter(
    run_stage: Make, make_documents: Make, read_table: Make
) -> None:
    header = "Sign up for our letter of the week"
    own = [" ".join(prose(seed, 40)) for seed in range(700, 704)]
    given = rows("passages", [f"{header}\n{text}" for text in own])
    documents = make_documents([given[:3], given[3:]])
    roles = {"documents": [documents]}
    manifest = run_stage(Dedup, {"passages": {"lines": True}}, roles)
    folder = sidecar_folder(documents[0].outputs["documents"].digest)
    paths = [file.path for file in manifest.outputs["views"].files]
    assert {f"{folder}/00000.parquet", f"{folder}/00001.parquet"} <= set(paths)
    first = min(one["doc_id"] for one in given)
    roles |= {"views": [(manifest, "views")], "duplicates": [(manifest, "duplicates")]}
    config = {"rules": [], "views": ["duplicate_lines@ccnet"], "personal_data": "keep"}
    kept = run_stage(Filter, config, roles)
    for one in read_table(kept, "documents").to_pylist():
        number = [row["doc_id"] for row in given].index(one["doc_id"])
        has_header = header in one["text"]
        assert has_header == (one["doc_id"] == first)
        assert own[number] in one["text"]


def test_nothing_is_asked_of_passages_and_there_are_no_views(dedup: Make) -> None:
    assert [file.path for file in dedup().outputs["views"].files] == []


# What texts may be -------------------------------------------------------------------------------


def test_documents_of_two_inputs_meet_and_each_has_its_folder(
    run_stage: Make, make_documents: Make, read_table: Make
) -> None:
    text = prose(1, 100)
    one = make_documents([[" ".join(text)]], "A")
    two = make_documents([[" ".join(edited(text, 2, 1)), " ".join(text)]], "B")
    manifest = run_stage(Dedup, {}, {"documents": [one, two]})
    folders = [sidecar_folder(given[0].outputs["documents"].digest) for given in (one, two)]
    (old,) = read_table(manifest, "duplicates", f"{folders[0]}/00000.parquet").to_pylist()
    near, copy = read_table(manifest, "duplicates", f"{folders[1]}/00000.parquet").to_pylist()
    # The newer one lists the pair, whatever the ids are.
    assert old["partners"] == []
    assert [partner["doc_id"] for partner in near["partners"]] == [ident(0, "A")]
    first = ident(0, "A")
    expected = {"doc_id": ident(1, "B"), "exact_class": first, "text_class": first}
    assert copy == {**expected, "partners": []}


def test_empty_tiny_and_equal_documents(
    run_stage: Make, make_documents: Make, read_table: Make
) -> None:
    """Figures are words; texts without any word are equal only where their bytes are."""
    texts = ["", "  ", "***", "hello", "Hello!", "hello world", "42", "43 ", "", "\0", "\u0301"]
    given = rows("tiny", texts + ["same old text"] * 50)
    manifest = run_stage(Dedup, {}, {"documents": [make_documents([given, []])]})
    told, truth = by_id(read_table(manifest, "duplicates")), Truth([given])
    assert {i: one["exact_class"] for i, one in told.items()} == truth.exact_class
    assert {i: one["text_class"] for i, one in told.items()} == truth.text_class
    assert not any(one["partners"] for one in told.values())
    counts = manifest.counts
    assert counts["documents"] == 61
    assert counts["documents_without_words"] == 6
    assert counts["exact_copies"] == 1 + 1 + 49
    assert counts["candidate_pairs"] == 0


@pytest.mark.parametrize("shards", [[], [[]], [[""]], [["hello"]]])
def test_next_to_nothing(
    run_stage: Make, make_documents: Make, read_table: Make, shards: Any
) -> None:
    documents = make_documents(shards)
    manifest = run_stage(Dedup, {"passages": {"lines": True}}, {"documents": [documents]})
    count = sum(map(len, shards))
    assert manifest.counts["documents"] == count
    if shards:
        table: pa.Table = read_table(manifest, "duplicates")
        assert table["exact_class"].to_pylist() == [ident(n) for n in range(count)]


def test_a_crowd_of_near_copies_stays_linear(run_stage: Make, make_documents: Make) -> None:
    text = prose(5, 120)
    texts = [" ".join([*text, letters(number)]) for number in range(300)]
    documents = make_documents([texts], "crowd")
    config = {"max_bucket": 4, "max_partners": 6}
    manifest = run_stage(Dedup, config, {"documents": [documents]})
    # Every band holds nearly all: each document meets the first four, not the other 299, and is
    # led to MAX_HOPS more at most.
    assert manifest.counts["capped_buckets"] >= 10
    assert 4 * 290 < manifest.counts["verified_pairs"] < (14 + 64) * 300
    without = run_stage(Dedup, {**config, "closure": False}, {"documents": [documents]})
    assert 4 * 290 < without.counts["verified_pairs"] < 10 * 300
    assert without.counts["capped_documents"] >= 4


def test_one_shingle_shared_by_all_makes_no_pairs(run_stage: Make, make_documents: Make) -> None:
    """A shingle of 26 is the least of its document for each of 112 hashes by 1/26: eight at once
    in no band."""
    shared = "all of these begin alike"
    texts = [f"{shared} {' '.join(prose(seed, 25))}" for seed in range(200)]
    documents = make_documents([texts], "shared shingle")
    manifest = run_stage(Dedup, {}, {"documents": [documents]})
    assert manifest.counts["candidate_pairs"] == manifest.counts["verified_pairs"] == 0


def test_the_same_documents_twice_are_refused_by_id(run_stage: Make, make_documents: Make) -> None:
    one = make_documents([["a text"]])
    two = make_documents([["another text"]])
    with pytest.raises(InputError, match=ident(0)):
        run_stage(Dedup, {}, {"documents": [one, two]})
