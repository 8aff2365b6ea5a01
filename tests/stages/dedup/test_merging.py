"""Merged indexes: the same pairs, classes and kept documents as without, in known bytes."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from near_copies import families, pairs_of, prose, rows

from artifacts_schema.errors import InputError
from artifacts_schema.manifest import Manifest
from artifacts_schema.store import Store
from flows.recipe.levels import Block, read_blocks
from stages.dedup import merging, signing
from stages.dedup.index_files import PARTS
from stages.dedup.index_record import RECORD, build_corpus, read_indexes, read_settings
from stages.dedup.pairs import VERIFIED
from stages.dedup.stage import Dedup, MergeIndexes
from stages.filter.stage import Filter

Make = Callable[..., Any]
Rows = list[dict[str, Any]]
SMALL: dict[str, Any] = {"bands": 10, "rows": 3, "recall_sample": 0, "max_bucket": 4}
UNLIKE: dict[str, Any] = {
    "bytes_per_document": 512, "bands": 20, "rows": 4, "max_bucket": 2, "max_partners": 2,
    "recall_sample": 0,
}  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("merging")


@pytest.fixture
def store(folder: Path) -> Store:
    """One for all tests here, so that they share runs."""
    return Store.open(str(folder / "store"))


def split(seed: int, number: int) -> list[Rows]:
    """A small corpus in `number` snapshots over which families and exact copies are spread."""
    rng = random.Random(seed)
    texts = families(6, 8, seed, length=95)
    texts += rng.sample(texts, 6)
    parts: list[Rows] = [[] for _ in range(number)]
    for one in rows(f"corpus {seed}", texts):
        place = rng.randrange(number)
        parts[place].append({**one, "snapshot": f"{place} of {seed}"})
    return parts


class Chain:
    """Snapshots one after another, by plain indexes or in levels."""

    def __init__(
        self,
        parts: list[Rows],
        config: dict[str, Any],
        run_stage: Make,
        make_documents: Make,
        earlier_inputs: Make,
    ) -> None:
        self.config, self._run, self._earlier = config, run_stage, earlier_inputs
        self.documents = [make_documents([one[::2], one[1::2]]) for one in parts]
        self.read: list[int] = []
        """Indexes that each run in levels read."""

    def dedup(self, place: int, indexes: list[Manifest]) -> Manifest:
        roles = {
            "documents": [self.documents[place]],
            **self._earlier(*indexes),
        }
        manifest: Manifest = self._run(Dedup, self.config, roles)
        return manifest

    def merge(self, indexes: list[Manifest], **options: Any) -> Manifest:
        inputs = {"dedup_index": [(manifest, "dedup_index") for manifest in indexes]}
        manifest: Manifest = self._run(MergeIndexes, {}, inputs, **options)
        return manifest

    def plain(self) -> list[Manifest]:
        made: list[Manifest] = []
        for place in range(len(self.documents)):
            made.append(self.dedup(place, list(made)))
        return made

    def in_levels(self) -> list[Manifest]:
        made: dict[Block, Manifest] = {}
        self.read = []
        for place in range(len(self.documents)):
            before = read_blocks(place)
            for block in before:
                if block not in made:
                    made[block] = self.merge([made[part] for part in block.parts])
            self.read.append(len(before))
            made[Block(place, place + 1)] = self.dedup(place, [made[block] for block in before])
        return [made[Block(place, place + 1)] for place in range(len(self.documents))]

    def at_once(self) -> Manifest:
        manifest: Manifest = self._run(Dedup, self.config, {"documents": self.documents})
        return manifest

    def keep(
        self, places: list[int], measured: list[Manifest], ledgers: list[Manifest]
    ) -> Manifest:
        roles = {
            "documents": [self.documents[place] for place in places],
            "duplicates": [(manifest, "duplicates") for manifest in measured],
            "ledger": [(manifest, "ledger") for manifest in ledgers],
        }
        manifest: Manifest = self._run(Filter, {"rules": [], "personal_data": "keep"}, roles)
        return manifest


CASES = [
    (1, 7, SMALL),
    (2, 3, UNLIKE),
    *(
        pytest.param(seed, number, config, marks=pytest.mark.full)
        for seed, config in ((3, SMALL), (4, UNLIKE))
        for number in range(1, 9)
    ),
]


@pytest.mark.parametrize(("seed", "number", "config"), CASES)
def test_levels_find_and_keep_what_one_run_over_everything_does(
    seed: int,
    number: int,
    config: dict[str, Any],
    run_stage: Make,
    make_documents: Make,
    earlier_inputs: Make,
    read_table: Make,
) -> None:
    chain = Chain(split(seed, number), config, run_stage, make_documents, earlier_inputs)
    plain, levels, whole = chain.plain(), chain.in_levels(), chain.at_once()
    assert chain.read == [place.bit_count() for place in range(number)]
    for one, other in zip(plain, levels, strict=True):
        for output in ("duplicates", "dedup_index"):
            assert one.outputs[output].digest == other.outputs[output].digest
    told = {file.path: file.sha256 for file in whole.outputs["duplicates"].files}
    for manifest in levels:
        files = manifest.outputs["duplicates"].files
        tables = {file.path: file.sha256 for file in files if file.path.endswith(".parquet")}
        assert tables.items() <= told.items()
        assert len(tables) == 2

    ledgers: list[Manifest] = []
    kept: list[str] = []
    for place in range(number):
        ledgers.append(chain.keep([place], levels[: place + 1], list(ledgers)))
        kept += read_table(ledgers[-1], "documents")["doc_id"].to_pylist()
    corpus = chain.keep(list(range(number)), [whole], [])
    assert kept == read_table(corpus, "documents")["doc_id"].to_pylist()
    assert 5 < len(kept) < 40


def test_a_copy_of_a_document_in_a_merged_index_names_it_and_stays_out(
    run_stage: Make, make_documents: Make, earlier_inputs: Make, read_table: Make
) -> None:
    parts = split(1, 7)
    last = Chain(parts, SMALL, run_stage, make_documents, earlier_inputs).in_levels()[-1]
    snapshot = {row["doc_id"]: place for place, part in enumerate(parts) for row in part}
    named = {snapshot[partner] for _, partner in pairs_of(read_table(last, "duplicates"))}
    assert len(named - {6}) > 3, "partners of several earlier snapshots, all of them merged"
    assert [one.stage for one in last.inputs["dedup_index"]] == ["merge_indexes"] * 2


@pytest.mark.parametrize("verify", [True, False])
def test_joined_shards_are_the_files_of_one_shard_of_these_documents(
    verify: bool,
    run_stage: Make,
    make_documents: Make,
    earlier_inputs: Make,
    store: Store,
    monkeypatch: Any,
) -> None:
    """Runs of five documents, so that joining moves them from run to run."""
    for module in (merging, signing):
        monkeypatch.setattr(module, "run_documents", lambda bands: 5)
    texts = [*families(3, 4, 9), "", "one", "two words", "", "three words here"]
    texts = [f"{text} {number}" if number % 3 else text for number, text in enumerate(texts)]
    config = {**SMALL, "bands": 4, "verify": verify}
    cut = [texts[:3], [], texts[3:10], texts[10:11], texts[11:]]

    def index(shards: list[list[str]], snapshot: str) -> Manifest:
        documents = [make_documents(shards, snapshot)]
        manifest: Manifest = run_stage(Dedup, config, {"documents": documents})
        return manifest

    parts, other, one = index(cut, "A"), index([["of another one"]], "B"), index([texts], "A")
    chain = Chain([], config, run_stage, make_documents, earlier_inputs)
    merged = chain.merge([parts, other])
    read, expected = (_files(store, manifest) for manifest in (merged, one))
    (written,) = {path.rsplit("/", 1)[0] for path in expected if path.endswith(".ids")}
    folders = {path.split("/")[0] for path in read if path.endswith(".ids")}
    assert len(folders) == 2
    found = [
        {part: read[f"{folder}/00000.{part}"] for part in PARTS if f"{folder}/00000.{part}" in read}
        for folder in folders
    ]
    assert {
        part: expected[f"{written}/00000.{part}"]
        for part in PARTS
        if f"{written}/00000.{part}" in expected
    } in found
    assert len(read) == 1 + 2 * (5 if verify else 4) + 2 * verify


def _files(store: Store, manifest: Manifest) -> dict[str, bytes]:
    place = Path(store.backend.full(store.payload(manifest, "dedup_index")))
    return {
        file.path: (place / file.path).read_bytes()
        for file in manifest.outputs["dedup_index"].files
    }


def test_a_shard_that_is_large_enough_is_copied(
    run_stage: Make, make_documents: Make, store: Store, monkeypatch: Any
) -> None:
    monkeypatch.setattr(merging, "MERGED_DOCUMENTS", 4)
    monkeypatch.setattr(merging, "MERGED_PAIRS", 1)
    shards = [["a b c", "d e f", "g h i"], ["j k l"], ["m n o", "p q r"], ["s t u"] * 5, ["v"]]
    one = run_stage(Dedup, SMALL, {"documents": [make_documents(shards, "large")]})
    two = run_stage(Dedup, SMALL, {"documents": [make_documents([["w x"]], "small")]})
    merged = run_stage(
        MergeIndexes, {}, {"dedup_index": [(one, "dedup_index"), (two, "dedup_index")]}
    )
    assert merged.counts["shards_in"] == 6
    assert merged.counts["shards"] == 5  # 4, 2, 5 and 1 of the first output, 1 of the second
    files, before = _files(store, merged), _files(store, one)
    folder = next(path.split("/")[0] for path in before if path.endswith(".ids"))
    sizes = [len(files[f"{folder}/{number:05d}.ids"]) // 16 for number in range(4)]
    assert sizes == [4, 2, 5, 1]
    for part in PARTS:
        assert files[f"{folder}/00002.{part}"] == before[f"{folder}/00003.{part}"]


def test_pairs_of_runs_that_numbered_documents_otherwise_keep_their_documents(
    run_stage: Make,
    make_documents: Make,
    earlier_inputs: Make,
    read_input: Make,
    read_table: Make,
) -> None:
    """B knew C before A; the merged index takes A first. The tables say which pairs there are."""
    chain = Chain(split(5, 3), SMALL, run_stage, make_documents, earlier_inputs)
    a, c = chain.dedup(0, []), chain.dedup(2, [])
    b = chain.dedup(1, [c, a])
    merged = read_input(chain.merge([a, c, b]), "dedup_index")
    settings, verified = read_settings(merged)
    indexes = read_indexes([merged], settings, verify=verified, documents=[])
    corpus = build_corpus(indexes, [], settings)
    assert dict(indexes[0].knew) == {one.documents: one.size for one in corpus.sources}
    found: set[tuple[str, ...]] = set()
    for name in indexes[0].pairs:
        records = np.fromfile(merged.local_path(name), VERIFIED)
        assert (np.diff(records["right"]) >= 0).all()
        ids = [corpus.ids(records[side]).to_pylist() for side in ("right", "left")]
        found.update(tuple(sorted(pair)) for pair in zip(*ids, strict=True))
    tables = [read_table(manifest, "duplicates") for manifest in (a, b, c)]
    assert found == {tuple(sorted(pair)) for table in tables for pair in pairs_of(table)}
    assert len(found) > 20


@pytest.mark.full
def test_a_snapshot_that_is_left_out_was_never_there(
    run_stage: Make, make_documents: Make, earlier_inputs: Make
) -> None:
    parts = split(1, 8)
    fewer = Chain([*parts[:2], *parts[3:6]], SMALL, run_stage, make_documents, earlier_inputs)
    for one, other in zip(fewer.plain(), fewer.in_levels(), strict=True):
        assert one.outputs["duplicates"].digest == other.outputs["duplicates"].digest


@pytest.mark.parametrize("visit", [1, 4])
def test_a_killed_merge_goes_on_and_writes_the_same(
    visit: int, run_stage: Make, make_documents: Make, earlier_inputs: Make, killed_at: Make
) -> None:
    """Two joined shards, two files of pairs, one table of lines: five records and more."""
    config = {**SMALL, "passages": {"lines": True, "index": True}}
    first = run_stage(Dedup, config, {"documents": [make_documents([["a b c"], ["d e f"]], "K")]})
    names = ("dedup_index", "passage_index")
    second = run_stage(
        Dedup,
        config,
        {"documents": [make_documents([["a b c d", "e f g"]], f"kill {visit}")]}
        | earlier_inputs(first)
        | {"passage_index": [(first, "passage_index")]},
    )
    roles = {name: [(first, name), (second, name)] for name in names}
    with killed_at("shard recorded", visit):
        run_stage(MergeIndexes, {}, roles)
    resumed = run_stage(MergeIndexes, {}, roles)
    again = run_stage(MergeIndexes, {}, roles, {"workers": 2}, force=True)
    assert again.outputs == resumed.outputs
    assert again.attempt == resumed.attempt, "equal bytes: the second attempt is dropped"


def test_passages_of_merged_indexes_are_those_of_one_run(
    run_stage: Make, make_documents: Make, earlier_inputs: Make
) -> None:
    """The third, fourth and sixth of a series: by blocks of 2, 2 + 1 and 4 + 1 earlier ones."""
    draw = random.Random(3)
    pool = [" ".join(prose(seed, 60)) for seed in range(8)]
    parts = [
        [
            "\n".join([" ".join(prose(100 * place + row, 20)), *draw.sample(pool, 2)])
            for row in range(5)
        ]
        for place in range(6)
    ]
    documents = [make_documents([one[:2], one[2:]], f"P{n}") for n, one in enumerate(parts)]
    passages = {"lines": True, "sentences": True, "substrings": 50, "index": True}
    config = {**SMALL, "passages": passages}

    def roles(indexes: list[Manifest]) -> dict[str, Any]:
        names = ("dedup_index", "passage_index")
        return {name: [(manifest, name) for manifest in indexes] for name in names}

    def find(place: int, indexes: list[Manifest]) -> Manifest:
        inputs = {"documents": [documents[place]], **roles(indexes), **earlier_inputs(*indexes)}
        manifest: Manifest = run_stage(Dedup, config, inputs)
        return manifest

    plain: list[Manifest] = []
    for place in range(6):
        plain.append(find(place, list(plain)))
    two = run_stage(MergeIndexes, {}, roles(plain[:2]))
    four = run_stage(MergeIndexes, {}, roles([two, *plain[2:4]]))
    for place, indexes in ((2, [two]), (3, [two, plain[2]]), (5, [four, plain[4]])):
        levels = find(place, indexes)
        for output in ("duplicates", "views", "dedup_index", "passage_index"):
            assert levels.outputs[output].digest == plain[place].outputs[output].digest
    whole = run_stage(Dedup, config, {"documents": documents})
    told = {file.path: file.sha256 for file in whole.outputs["views"].files}
    spans = {file.path: file.sha256 for file in levels.outputs["views"].files}
    assert spans.items() <= told.items()
    assert four.counts["passages"] > 100

    other = run_stage(
        Dedup, {**SMALL, "passages": {"lines": True, "index": True}}, {"documents": [documents[5]]}
    )
    for wrong in ([other, plain[0]], [plain[0], other]):
        with pytest.raises(InputError, match="passage index holds"):
            run_stage(MergeIndexes, {}, roles(wrong))


def test_indexes_that_do_not_go_together_are_refused(
    run_stage: Make, make_documents: Make, earlier_inputs: Make, read_input: Make
) -> None:
    def index(name: str, **config: Any) -> Manifest:
        documents = [make_documents([["a b c d", "e f"]], name)]
        manifest: Manifest = run_stage(Dedup, {**SMALL, **config}, {"documents": documents})
        return manifest

    chain = Chain([], SMALL, run_stage, make_documents, earlier_inputs)
    one = index("one")
    with pytest.raises(InputError, match="seed"):
        chain.merge([one, index("two", seed=5)])
    with pytest.raises(InputError, match="without verification"):
        chain.merge([one, index("three", verify=False)])
    with pytest.raises(InputError, match="without verification"):
        chain.merge([index("three", verify=False), one])
    with pytest.raises(InputError, match="twice"):
        chain.merge([one, one])
    with pytest.raises(InputError, match="index: true"):
        chain.merge([one, index("four", index=False)])
    merged = read_input(chain.merge([one, index("five")]), "dedup_index")
    assert merged.read_json(RECORD)["verified"]
