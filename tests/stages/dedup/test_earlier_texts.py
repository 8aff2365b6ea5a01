"""Shingles of earlier documents, computed from their texts: which are read, and what is refused."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from dedup_corpora import output, result
from near_copies import families, rows

from artifacts_schema.errors import CorruptArtifact, InputError, UsageError
from artifacts_schema.identity import short
from artifacts_schema.manifest import Manifest
from artifacts_schema.store import Store
from stages.dedup import document_bits, earlier_texts, pipeline
from stages.dedup.document_bits import DocumentBits, TaskFiles, block_tasks, write_bits
from stages.dedup.signing import document_batches
from stages.dedup.stage import Dedup, MergeIndexes
from stages.engine import Input, Stage, Upstream

Make = Callable[..., Any]
CONFIG = {"bands": 10, "rows": 3, "recall_sample": 0}
TEXTS = families(8, 6, seed=4)


@pytest.fixture
def old(make_documents: Make) -> Any:
    """Three shards; the last one has no document like another one."""
    listed = rows("old", TEXTS[::2])
    alone = rows("alone", [f"word{n} of no copy number {n}" for n in range(5)])
    return make_documents([listed[:9], listed[9:], [{**one, "snapshot": "old"} for one in alone]])


@pytest.fixture
def new(make_documents: Make) -> Any:
    return make_documents([rows("new", TEXTS[1::2])])


@pytest.fixture
def indexed(run_stage: Make, old: Any) -> Manifest:
    manifest: Manifest = run_stage(Dedup, CONFIG, {"documents": [old]})
    return manifest


def tables(manifest: Manifest) -> dict[str, str]:
    files = manifest.outputs["duplicates"].files
    return {file.path: file.sha256 for file in files if file.path.endswith(".parquet")}


# Which texts are read ----------------------------------------------------------------------------


@pytest.mark.parametrize("text_bytes", [1, 300, 1 << 20])
def test_batches_hold_the_rows_that_are_needed_and_no_other_row_group_is_read(
    tmp_path: Path, given: Make, read_input: Make, make_documents: Make, text_bytes: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    rng = random.Random(5)
    texts = [f"text {number} " + "word " * rng.randrange(40) for number in range(60)]
    documents = read_input(*make_documents([texts]))
    path = tmp_path / "00000.parquet"
    pq.write_table(documents.read_table("00000.parquet"), path, row_group_size=7)
    (shard,) = read_input(*given("documents", {"00000.parquet": path.read_bytes()})).shards()
    needed = np.array([rng.random() < 0.3 for _ in texts])
    needed[14:35] = False
    needed[42:49] = [False, True, *[False] * 5]
    read: list[int] = []
    unpacked: dict[int, int] = {}
    plain = pq.ParquetFile.iter_batches

    def note(self: Any, *args: Any, row_groups: list[int], **options: Any) -> Any:
        read.extend(row_groups)
        for batch in plain(self, *args, row_groups=row_groups, **options):
            unpacked[row_groups[0]] = unpacked.get(row_groups[0], 0) + batch.num_rows
            yield batch

    monkeypatch.setattr(pq.ParquetFile, "iter_batches", note)
    batches = list(document_batches(shard, ["text"], text_bytes, needed))
    found = [text for batch in batches for text in batch["text"].to_pylist()]
    assert found == [text for text, wanted in zip(texts, needed, strict=True) if wanted]
    assert read == [group for group in range(9) if needed[7 * group : 7 * group + 7].any()]
    assert not {2, 3, 4} & set(read)
    sizes = [[len(text) for text in batch["text"].to_pylist()] for batch in batches]
    assert all(len(of) == 1 or sum(of) <= text_bytes for of in sizes)
    if text_bytes == 1:
        assert unpacked[6] == 2, "rows behind the last needed one are not"
    if text_bytes == 1 << 20:
        assert len(batches) == 1, "few needed texts are shingled together"


def test_only_texts_of_candidates_and_of_their_partners_are_read(
    run_stage: Make, new: Any, earlier_inputs: Make, indexed: Manifest, monkeypatch: Any
) -> None:
    shards: dict[str, int] = {}
    plain = earlier_texts.document_batches

    def note(shard: Any, columns: Any, *, needed: Any) -> Any:
        shards[shard.path] = int(needed.sum())
        return plain(shard, columns, needed=needed)

    monkeypatch.setattr(earlier_texts, "document_batches", note)
    manifest = run_stage(Dedup, CONFIG, {"documents": [new], **earlier_inputs(indexed)})
    assert manifest.counts["verified_pairs"] > 10
    assert set(shards) == {"00000.parquet", "00001.parquet"}, "the third holds no candidate"
    assert 0 < shards["00000.parquet"] <= 9


def test_bits_are_those_that_were_written(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(document_bits, "BLOCK_DOCUMENTS", 16)
    bits = np.random.default_rng(3).random(45) < 0.4
    blocks = []
    for task in block_tasks(len(bits)):
        out = output(tmp_path, task.id)
        write_bits(out, bits[task.low : task.high])
        blocks.append(TaskFiles(result(out, {})))
    found = DocumentBits(tuple(blocks), len(bits))
    for low in range(46):
        for high in range(low, 46):
            assert (found.between(low, high) == bits[low:high]).all()
    numbers = np.array([44, 0, 3, 3, 17, 15, 16, 31, 32, 44])
    for dense in (0, 64):
        monkeypatch.setattr(document_bits, "_DENSE", dense)
        assert (found.at(numbers) == bits[numbers]).all()
        assert found.at(numbers[:0]).tolist() == []


# The same, however it is cut ---------------------------------------------------------------------


@pytest.mark.parametrize("visit", range(2, 37, 5))
def test_killed_anywhere_and_cut_into_small_tasks_it_writes_what_one_run_does(
    run_stage: Make, old: Any, new: Any, earlier_inputs: Make, indexed: Manifest,
    killed_at: Make, monkeypatch: pytest.MonkeyPatch, visit: int,
) -> None:  # fmt: skip
    monkeypatch.setattr(pipeline, "PAIRS_PER_TASK", 40)
    monkeypatch.setattr(earlier_texts, "_TASK_DOCUMENTS", 4)
    monkeypatch.setattr(earlier_texts, "_AT_ONCE", 3)
    roles = {"documents": [new], **earlier_inputs(indexed)}
    with killed_at("shard recorded", visit):
        run_stage(Dedup, CONFIG, roles)
    found = run_stage(Dedup, CONFIG, roles)
    monkeypatch.undo()
    whole = run_stage(Dedup, CONFIG, {"documents": [old, new]})
    assert tables(found).items() <= tables(whole).items()
    assert found.counts["closed_pairs"] > 0


# What is refused ---------------------------------------------------------------------------------


def test_documents_of_an_index_that_are_missing_are_named(
    run_stage: Make, new: Any, old: Any, earlier_inputs: Make, indexed: Manifest
) -> None:
    digest = old[0].outputs[old[1]].digest
    roles = {**earlier_inputs(indexed), "earlier_documents": []}
    with pytest.raises(UsageError, match=rf"documents {short(digest)} .*\(snapshot old\)") as error:
        run_stage(Dedup, CONFIG, {"documents": [new], **roles})
    assert short(indexed.outputs["dedup_index"].digest) in str(error.value.where)
    unverified = {**CONFIG, "verify": False}
    alone = run_stage(Dedup, unverified, {"documents": [old]})
    roles = {"documents": [new], "dedup_index": [(alone, "dedup_index")]}
    assert run_stage(Dedup, unverified, roles).counts["earlier_documents"] == 29


def test_documents_that_no_index_describes_are_refused(
    run_stage: Make, new: Any, old: Any, indexed: Manifest, make_documents: Make
) -> None:
    other = make_documents([["another one"]], "other")
    for earlier, indexes in (([old], []), ([old, other], [(indexed, "dedup_index")])):
        roles = {"documents": [new], "earlier_documents": earlier, "dedup_index": indexes}
        with pytest.raises(UsageError, match="no index describes") as error:
            run_stage(Dedup, CONFIG, roles)
        assert short(earlier[-1][0].outputs[earlier[-1][1]].digest) in error.value.what


@pytest.mark.parametrize("damage", ["flipped", "cut", "gone"])
def test_texts_of_other_bytes_are_refused(
    run_stage: Make, new: Any, old: Any, earlier_inputs: Make, indexed: Manifest, store: Store,
    damage: str,
) -> None:  # fmt: skip
    texts = Input.from_manifest(store, *old)
    path = Path(store.backend.full(f"{texts.folder}/00001.parquet"))
    data = bytearray(path.read_bytes())
    path.chmod(0o644)
    if damage == "gone":
        path.unlink()
    elif damage == "cut":
        path.write_bytes(data[:-1])
    else:
        data[len(data) // 2] ^= 1
        path.write_bytes(data)
    with pytest.raises((CorruptArtifact, InputError), match=r"00001\.parquet"):
        run_stage(Dedup, CONFIG, {"documents": [new], **earlier_inputs(indexed)})


def test_a_text_with_other_shingles_than_the_index_says_is_refused(
    run_stage: Make, new: Any, earlier_inputs: Make, indexed: Manifest, monkeypatch: Any
) -> None:
    """As a library of another version would cut its words."""
    plain = earlier_texts.shingle_sets

    def fewer(*args: Any) -> Any:
        sets, offsets, sizes = plain(*args)
        return sets, offsets, sizes - 1

    monkeypatch.setattr(earlier_texts, "shingle_sets", fewer)
    with pytest.raises(InputError, match=r"has \d+ distinct shingles, its index says \d+"):
        run_stage(Dedup, CONFIG, {"documents": [new], **earlier_inputs(indexed)})


def test_a_plan_names_the_documents_that_an_index_needs() -> None:
    def documents(name: str) -> Upstream:
        return Upstream(name, "documents", "documents")

    def index(stage: type[Stage], role: str, *inputs: Upstream) -> Upstream:
        name = "dedup_index"
        return Upstream("monday", name, name, stage, None, None, lambda: {role: inputs})

    one, two = (index(Dedup, "documents", documents(name)) for name in ("first", "second"))
    merged = index(MergeIndexes, "dedup_index", one, two)
    config = Dedup.Config()
    both = (documents("second"), documents("first"))
    Dedup.check_plan(config, {"dedup_index": (merged,), "earlier_documents": both})
    with pytest.raises(UsageError, match="monday describes first"):
        Dedup.check_plan(config, {"dedup_index": (merged,)})
    unverified = Dedup.Config.parse({"verify": False}, where="dedup.config")
    Dedup.check_plan(unverified, {"dedup_index": (merged,)})
