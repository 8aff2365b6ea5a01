"""Indexes that cannot be used, and documents that nobody meant to write."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from near_copies import Truth, by_id, families, ident, pairs_of, prose, rows

from artifacts_schema.config import Config
from artifacts_schema.errors import CorruptArtifact, InputError, UsageError
from artifacts_schema.kinds import KINDS
from artifacts_schema.manifest import Manifest
from artifacts_schema.store import Store, layout
from stages.dedup.index_files import PARTS
from stages.dedup.stage import Dedup, MergeIndexes
from stages.engine import Context, Stage
from stages.engine.protocol import Upstream

Make = Callable[..., Any]
TEXTS = families(3, 12, seed=7)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("bad-input")


@pytest.fixture
def store(folder: Path) -> Store:
    """One for all tests here, so that they share runs."""
    return Store.open(str(folder / "store"))


@pytest.fixture
def old(make_documents: Make) -> Any:
    return make_documents([rows("old", TEXTS[::2])])


@pytest.fixture
def new(make_documents: Make) -> Any:
    return make_documents([rows("new", TEXTS[1::2])])


@pytest.fixture
def indexed(run_stage: Make, old: Any) -> Manifest:
    manifest: Manifest = run_stage(Dedup, {}, {"documents": [old]})
    return manifest


@pytest.fixture
def dedup(run_stage: Make, new: Any, earlier_inputs: Make) -> Make:
    """`dedup(config, *indexes, **execution)` over the new documents."""

    def run(config: dict[str, Any], *indexes: Any, **execution: Any) -> Manifest:
        inputs = {"documents": [new], **earlier_inputs(*indexes)}
        manifest: Manifest = run_stage(Dedup, config, inputs, execution)
        return manifest

    return run


# Indexes -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("config", "told"),
    [
        ({"ngram": 4}, ["ngram 5 (this run: 4)"]),
        ({"bands": 20, "rows": 5}, ["bands 14 (this run: 20)", "rows 8 (this run: 5)"]),
        ({"seed": 2}, ["seed 1 (this run: 2)"]),
        ({"bytes_per_document": 4096}, ["most 8192 (this run: 512)"]),
        ({"unit": "character"}, ["unit word (this run: character)"]),
    ],
)
def test_an_index_of_other_settings_is_refused_by_name(
    dedup: Make, indexed: Manifest, config: dict[str, Any], told: list[str]
) -> None:
    with pytest.raises(InputError, match="settings") as error:
        dedup(config, indexed)
    assert error.value.what.split(": ", 1)[1] == ", ".join(told)
    assert "dedup_index" in str(error.value.where)


def test_what_only_lists_differ_in_is_no_reason_to_refuse(dedup: Make, indexed: Manifest) -> None:
    config = {"floor": 0.6, "measure": "containment", "max_bucket": 5, "max_partners": 5}
    assert dedup(config, indexed).counts["earlier_documents"] == 18


def test_a_run_that_kept_no_index_is_told(run_stage: Make, dedup: Make, old: Any) -> None:
    without = run_stage(Dedup, {"index": False}, {"documents": [old]})
    assert [file.path for file in without.outputs["dedup_index"].files] == ["index.json"]
    with pytest.raises(InputError, match="index") as error:
        dedup({}, without)
    assert "index: true" in (error.value.hint or "")


def test_an_index_without_verification_serves_only_what_does_not_verify(
    run_stage: Make, dedup: Make, old: Any
) -> None:
    without = run_stage(Dedup, {"verify": False}, {"documents": [old]})
    with pytest.raises(InputError, match="verify: true"):
        dedup({}, without)
    assert dedup({"verify": False}, without).counts["earlier_documents"] == 18


@pytest.mark.parametrize("record", [{"format": 99}, {}, {"format": "1"}])
def test_an_index_of_an_unknown_format_is_refused(
    given: Make, dedup: Make, record: dict[str, Any]
) -> None:
    with pytest.raises(InputError, match=rf"format {record.get('format', 'unknown')}"):
        dedup({}, given("dedup_index", {"index.json": record}))


def files_of(store: Store, manifest: Manifest) -> dict[str, Path]:
    """The files of an index by their endings, and `pairs`."""
    place = layout.payload(manifest.stage, manifest.key, manifest.attempt)
    listed = manifest.outputs["dedup_index"].files
    paths = [Path(store.backend.full(f"{place}/dedup_index/{file.path}")) for file in listed]
    return {path.suffix[1:]: path for path in paths}


@pytest.fixture
def damaged(indexed: Manifest, store: Store) -> Any:
    """`damaged(part, change)`: one file of the index with other bytes, until the test's end."""
    before: list[tuple[Path, bytes]] = []

    def damage(part: str, change: Callable[[bytes], bytes]) -> Path:
        path = files_of(store, indexed)[part]
        data = path.read_bytes()
        before.append((path, data))
        path.chmod(0o644)
        path.write_bytes(change(data))
        return path

    yield damage
    for path, data in before:
        path.write_bytes(data)


def flipped(data: bytes) -> bytes:
    """One bit in the middle."""
    middle = len(data) // 2
    return data[:middle] + bytes([data[middle] ^ 16]) + data[middle + 1 :]


FILES = [*PARTS, "pairs", "json"]


@pytest.mark.parametrize("part", FILES)
def test_a_flipped_bit_is_found_before_it_counts(
    dedup: Make, indexed: Manifest, damaged: Make, part: str
) -> None:
    path = damaged(part, flipped)
    # Of another key each: a run that failed leaves what it had done for the next of its key.
    with pytest.raises(CorruptArtifact) as error:
        dedup({"floor": 0.3 + FILES.index(part) / 100}, indexed)
    assert path.name in str(error.value)


@pytest.mark.parametrize("verify_inputs", [True, False])
@pytest.mark.parametrize("part", FILES)
def test_a_file_cut_short_is_found_even_unverified(
    dedup: Make, indexed: Manifest, damaged: Make, part: str, verify_inputs: bool
) -> None:
    path = damaged(part, lambda data: data[:-3])
    config = {"floor": 0.4 + FILES.index(part) / 100 + verify_inputs / 1000}
    with pytest.raises(CorruptArtifact) as error:
        dedup(config, indexed, verify_inputs=verify_inputs)
    assert path.name in str(error.value)


@pytest.mark.parametrize("part", [*PARTS, "pairs"])
def test_a_flipped_bit_that_nobody_looks_for_ends_no_process(
    dedup: Make, indexed: Manifest, damaged: Make, part: str
) -> None:
    """Unverified bytes may give another result or one of these errors; a crash is a third."""
    damaged(part, flipped)
    try:
        found = dedup({"floor": 0.6 + FILES.index(part) / 100}, indexed, verify_inputs=False)
    except (CorruptArtifact, InputError):
        return
    assert found.outputs["duplicates"].rows == len(TEXTS[1::2])


def test_an_index_with_its_own_documents_is_refused(
    run_stage: Make, indexed: Manifest, old: Any, new: Any
) -> None:
    inputs = {"documents": [new, old], "dedup_index": [(indexed, "dedup_index")]}
    with pytest.raises(InputError, match="twice"):
        run_stage(Dedup, {}, inputs)


def test_one_index_twice_is_refused(dedup: Make, indexed: Manifest) -> None:
    with pytest.raises((InputError, UsageError), match="twice"):
        dedup({}, indexed, indexed)


# Snapshots ---------------------------------------------------------------------------------------


def test_one_snapshot_twice_is_refused_by_id(
    run_stage: Make, make_documents: Make, earlier_inputs: Make, indexed: Manifest, old: Any
) -> None:
    """Other cuts make it another output of the same documents."""
    told = rows("old", TEXTS[::2])
    again = make_documents([told[:4], told[4:]])
    for inputs in (
        {"documents": [old, again]},
        {"documents": [again], **earlier_inputs(indexed)},
    ):
        with pytest.raises(InputError, match=r"^dedup: doc_id") as error:
            run_stage(Dedup, {}, inputs)
        named = error.value.what.split()[1]
        assert named in {one["doc_id"] for one in told}
        assert error.value.what.count("(snapshot old)") == 2


def test_two_snapshots_of_one_name_are_refused_where_ids_meet(
    run_stage: Make, make_documents: Make
) -> None:
    """Ids are of name, file and offset: other texts at the same place have the same id."""
    one, two = make_documents([["a text"]], "same"), make_documents([["another"]], "same")
    with pytest.raises(InputError, match=ident(0, "same")) as error:
        run_stage(Dedup, {}, {"documents": [one, two]})
    assert "give the snapshots different names" in (error.value.hint or "")


def test_one_id_twice_in_one_snapshot(run_stage: Make, make_documents: Make) -> None:
    (one,) = rows("twice", ["a text"])
    documents = make_documents([[one], [{**one, "text": "another"}]])
    with pytest.raises(InputError, match=one["doc_id"]):
        run_stage(Dedup, {}, {"documents": [documents]})


# Memory ------------------------------------------------------------------------------------------


@pytest.mark.full
@pytest.mark.parametrize(("workers", "least"), [(1, "352"), (2, "928")])
def test_too_little_memory_names_the_least_that_does(dedup: Make, workers: int, least: str) -> None:
    with pytest.raises(UsageError, match=f"{least} MiB") as error:
        dedup({"floor": 0.9}, memory="300MiB", workers=workers)
    assert f"set memory: {least}MiB" in (error.value.hint or "")
    assert dedup({"floor": 0.9 + workers / 100}, memory=f"{least}MiB", workers=workers).counts


# Documents ---------------------------------------------------------------------------------------


class _Many(Config):
    documents: int


class _Identical(Stage):
    """So many documents of one text, in shards of 250,000."""

    name, version, reproducible = "identical_documents", 1, "bytes"
    outputs = {"documents": "documents"}
    Config = _Many

    def run(self, context: Context) -> None:
        schema = KINDS["documents"].tables["*.parquet"].arrow()
        for shard, low in enumerate(range(0, context.config.documents, 250_000)):
            count = min(250_000, context.config.documents - low)
            ids = pa.array([f"{low + n:032x}" for n in range(count)])
            given = {"source": "web", "snapshot": "many", "text": "the same old text again"}
            given |= {"metadata": "{}", "origin_file": "file"}
            columns = []
            for field in schema:
                if field.name == "doc_id":
                    columns.append(ids)
                elif field.name in given:
                    columns.append(pa.repeat(pa.scalar(given[field.name], field.type), count))
                elif pa.types.is_integer(field.type):
                    columns.append(pa.repeat(pa.scalar(1, field.type), count))
                else:
                    columns.append(pa.nulls(count, field.type))
            table = pa.table(columns, schema=schema)
            context.write_table("documents", f"{shard:05d}.parquet", table)


@pytest.mark.slow
@pytest.mark.parametrize("many", [100_000, pytest.param(1_000_000, marks=pytest.mark.full)])
def test_many_identical_documents(many: int, run_stage: Make, read_input: Make) -> None:
    documents = run_stage(_Identical, {"documents": many})
    execution = {"memory": "352MiB"}
    manifest = run_stage(Dedup, {}, {"documents": [(documents, "documents")]}, execution)
    assert manifest.counts["exact_classes"] == 1
    assert manifest.counts["exact_copies"] == many - 1
    assert manifest.counts["candidate_pairs"] == 0
    for shard in read_input(manifest, "duplicates").shards():
        classes = shard.read(["exact_class"])["exact_class"]
        assert classes.unique().to_pylist() == [f"{0:032x}"]


ODD = {
    "nothing": "",
    "NUL": "\0",
    "NULs": "\0" * 1_000,
    "NUL between": "before\0after " + " ".join(prose(1, 20)),
    "space instead": "before after " + " ".join(prose(1, 20)),
    "a mark": "\u0301",
    "marks": "\u0301\u0327" * 500,
    "a mark before": "\u0301" + " ".join(prose(2, 20)),
    "no mark before": " ".join(prose(2, 20)),
    "line feeds": "\n" * 10_000,
    "end of plane": "\U0010ffff",
    "private use": "\ue000 \ue001",
    "joiners": "\u200d\u200c\ufeff",
    "expands": "ﷺ" * 300,
}


def test_odd_texts_are_as_by_definition(
    run_stage: Make, make_documents: Make, read_table: Make
) -> None:
    given = rows("odd", ODD.values())
    config = {"passages": {"lines": True, "sentences": True, "substrings": 50}}
    manifest = run_stage(Dedup, config, {"documents": [make_documents([given])]})
    told, truth = by_id(read_table(manifest, "duplicates")), Truth([given])
    assert {i: one["exact_class"] for i, one in told.items()} == truth.exact_class
    places = {name: ident(number, "odd") for number, name in enumerate(ODD)}
    for one, two in (("NUL between", "space instead"), ("a mark before", "no mark before")):
        assert truth.exact_class[places[one]] == truth.exact_class[places[two]]
        assert truth.text_class[places[one]] != truth.text_class[places[two]]
    assert not pairs_of(read_table(manifest, "duplicates"))


def test_one_character_again_and_again_is_one_shingle(
    run_stage: Make, make_documents: Make, read_table: Make
) -> None:
    """Of a letter that is a word, or a word, however often: copies; a word of many letters not."""
    texts = ["\u5b57" * 1_000, "\u5b57" * 2_000, "a " * 500, "A, " * 700, "a" * 999, "a" * 998]
    given = rows("same", texts)
    made = run_stage(Dedup, {}, {"documents": [make_documents([given])]})
    listed = pairs_of(read_table(made, "duplicates"))
    names = [ident(number, "same") for number in range(len(texts))]
    expected = {frozenset(names[:2]), frozenset(names[2:4])}
    assert {frozenset(pair) for pair in listed} == expected


def test_huge_words_and_huge_documents(
    run_stage: Make, make_documents: Make, read_table: Make
) -> None:
    """A word of 1 MB, a megabyte of one word, and 5 MB of text with and without its last word."""
    words = prose(3, 833_000)
    given = rows(
        "huge",
        [
            "x" * 1_000_000,
            "X" * 1_000_000 + "!",
            "again " * 170_000,
            "again " * 169_999,
            " ".join(words),
            " ".join(words[:-1]),
        ],
    )
    documents = make_documents([given])
    assert len(given[4]["text"]) > 4_990_000
    manifest = run_stage(Dedup, {}, {"documents": [documents]}, {"memory": "352MiB"})
    told = read_table(manifest, "duplicates").to_pylist()
    ids = [one["doc_id"] for one in told]
    assert {told[0]["exact_class"], told[1]["exact_class"]} == {min(ids[:2])}
    # Both have one shingle, the same; and of 833,000 the least 8,192 are kept.
    assert [p["similarity"] for p in told[2]["partners"]] == [1.0]
    (partner,) = told[4]["partners"]
    assert partner["doc_id"] == ids[5]
    assert partner["similarity"] >= 0.9997


@pytest.mark.parametrize("stage", [Dedup, MergeIndexes])
def test_an_index_that_will_not_be_kept_is_refused_before_anything_runs(stage: type[Stage]) -> None:
    def upstream(index: bool) -> Upstream:
        config = Dedup.Config.parse({"index": index}, where="dedup.config")
        return Upstream("monday", "dedup_index", "dedup_index", Dedup, config)

    stage.check_plan(stage.Config(), {"dedup_index": (upstream(True), upstream(True))})
    with pytest.raises(UsageError, match="monday keeps no index"):
        stage.check_plan(stage.Config(), {"dedup_index": (upstream(True), upstream(False))})
