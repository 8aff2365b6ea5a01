"""A corpus before and after, on three small crawls whose copies are planted: counts by hand."""

from __future__ import annotations

import json
import random
import shutil

import pyarrow as pa
import pytest

from artifacts_schema.errors import UsageError
from artifacts_schema.store import Store
from artifacts_schema.store.gc import remove_artifact
from flows.analysis.corpus_change import compare_corpora
from flows.analysis.corpus_database import open_database
from flows.analysis.corpus_tables import (
    COPY_FORGOTTEN,
    COPY_RETIRED,
    FORGOTTEN,
    NEW,
    RETIRED,
    STAYED,
    CorpusTables,
    Volume,
)
from flows.analysis.deletion import extend_list
from flows.analysis.run_corpus import COLLECTED, RunCorpus, made_since
from flows.recipe.execute import execute
from flows.recipe.pipeline import Pipeline, Request
from flows.report.corpus_page import run_corpus
from flows.report.subject import find_subject
from stages.engine.inputs import Input

FIRST, SECOND, THIRD = "crawl-1", "crawl-2", "crawl-3"


def page(number: int, other: str = "") -> str:
    """240 words that no page of another number has; other words leave most shingles in common."""
    letters = random.Random(number)
    words = ["".join(letters.choices("abcdefghijklmnop", k=6)) for _ in range(240)]
    return " ".join([*words, other])


CRAWLS = {
    FIRST: [page(0), page(1), page(2)],
    SECOND: [page(1), page(3), page(2, "one word more"), page(3)],
    THIRD: [page(3, "another end"), page(4), page(0), page(4), "again " * 240],
}
"""Kept are pages 0, 1, 2 of the first, 3 of the second, 4 of the third; the last one repeats."""

RECIPE = """\
name: months
snapshots:
  crawl-1: {files: ["crawls/crawl-1/*.jsonl.zst"]}
  crawl-2: {files: ["crawls/crawl-2/*.jsonl.zst"]}
  crawl-3: {files: ["crawls/crawl-3/*.jsonl.zst"]}
steps:
  ingest: {stage: ingest, for_each: crawl-*, inputs: {snapshot: each}, execution: &one {workers: 1}}
  signals:
    stage: signals
    for_each: crawl-*
    inputs: {documents: "ingest:documents"}
    execution: *one
  dedup:
    stage: dedup
    for_each: crawl-*
    inputs:
      documents: "ingest:documents"
      earlier_documents: "ingest[earlier]:documents"
      dedup_index: "dedup[earlier]:dedup_index"
    execution: *one
  filter:
    stage: filter
    for_each: crawl-*
    config: {rules: [gopher_repetition@datatrove]}
    inputs:
      documents: "ingest:documents"
      signals: "signals:signals"
      views: "signals:views"
      duplicates: ["dedup[each]:duplicates", "dedup[earlier]:duplicates"]
      ledger: "filter[earlier]:ledger"
    execution: *one
  tokenizer:
    stage: tokenizer
    config: {vocabulary_size: 300, held_share: 0.0}
    inputs: {documents: "filter[crawl-3]:documents"}
    execution: *one
  pack:
    stage: pack
    for_each: crawl-*
    config: {sequence_length: 64}
    inputs: {documents: "filter:documents", tokenizer: tokenizer}
    execution: *one
"""
FEWER = "name: fewer\nextends: months.yaml\nsnapshots: {crawl-1: null}\n"
WITHOUT = """\
name: without
extends: months.yaml
steps: {filter: {inputs: {exclusions: "@exclusions"}}}
"""


@pytest.fixture(scope="module")
def stored(tmp_path_factory) -> Store:
    """A store with the runs `months`, `fewer` (a crawl retired), `without` (a page forgotten)."""
    from tests.flows.conftest import run_inline

    folder = tmp_path_factory.mktemp("months")
    for name, texts in CRAWLS.items():
        path = folder / "crawls" / name / "00000.jsonl.zst"
        path.parent.mkdir(parents=True)
        with pa.output_stream(str(path), compression="zstd") as file:
            file.write("".join(json.dumps({"text": text}) + "\n" for text in texts).encode())
    url = str(folder / "store")

    def run(name: str, text: str) -> None:
        (folder / f"{name}.yaml").write_text(text)
        pipeline = Pipeline.open(Request(str(folder / f"{name}.yaml"), url))
        assert execute(pipeline, dispatch=run_inline).is_done

    run("months", RECIPE)
    run("fewer", FEWER)
    store = Store.open(url)
    extend_list(store, "exclusions", {doc_id(store, SECOND, 1): "request 1"})
    run("without", WITHOUT)
    return store


def doc_id(store: Store, snapshot: str, row: int) -> str:
    """The id of a row of a crawl."""
    step = find_subject(store, "months").steps
    (ingest,) = [one.manifest for one in step if one.instance == f"ingest[{snapshot}]"]
    documents = Input.from_manifest(store, ingest, "documents")
    rows = documents.read_table("00000.parquet", ["doc_id", "text"]).to_pylist()
    matching = [one["doc_id"] for one in rows if one["text"] == CRAWLS[snapshot][row]]
    return matching[0]


def corpus(store: Store, name: str) -> RunCorpus:
    return run_corpus(find_subject(store, name))


def flows(change) -> dict[tuple[str, str, str], tuple[int, int]]:
    """Documents before and after by snapshot, cause and reason."""
    return {
        (one.snapshot, one.cause, one.reason): (one.before.documents, one.after.documents)
        for one in change.flows
    }


@pytest.fixture(scope="module")
def added(stored):
    return compare_corpora(None, corpus(stored, "months"))


def test_within_one_run_the_newest_snapshot_is_what_came(added):
    assert (added.new, added.retired) == ((THIRD,), ())
    assert flows(added) == {
        (FIRST, STAYED, ""): (3, 3),
        (SECOND, STAYED, ""): (1, 1),
        (THIRD, NEW, ""): (0, 1),
    }


def test_text_is_counted_by_signals_and_tokens_by_the_index_of_the_packed_sequences(stored, added):
    after = added.volumes(after=True)
    assert after[THIRD].bytes == after[THIRD].characters == len(page(4))
    packs = corpus(stored, "months").packs
    for name in CRAWLS:
        shards = [
            Input.from_manifest(stored, packs[f"pack[{name}]"], split).read_json("shards.json")
            for split in ("train", "held_out")
        ]
        packed = sum(one["tokens"] for each in shards for one in each["sources"].values())
        assert after[name].tokens == packed > 0


def test_decisions_and_records_make_the_funnel_of_each_snapshot(added):
    counts = {(one.snapshot, one.reason): one.documents for one in added.decisions}
    assert counts[SECOND, "kept"] == 1
    assert counts[SECOND, "exact_duplicate"] == 2
    assert counts[SECOND, "near_duplicate"] == 1
    assert {reason for name, reason in counts if name == THIRD} > {"exact_duplicate", "kept"}
    assert sum(n for (name, _), n in counts.items() if name == THIRD) == 5
    assert {name: one.records_in for name, one in added.records.items()} == {
        FIRST: 3, SECOND: 4, THIRD: 5,
    }  # fmt: skip


def test_copies_are_counted_against_each_earlier_snapshot_and_within_one(added):
    copies = added.copies
    assert copies.documents == {FIRST: 3, SECOND: 4, THIRD: 5}
    earlier = {pair: count for pair, count in copies.pairs.items() if pair[1] <= pair[0]}
    assert earlier == {
        (SECOND, FIRST): 2,  # Page 1, and page 2 with a word more.
        (SECOND, SECOND): 2,  # Page 3 twice.
        (THIRD, FIRST): 1,  # Page 0.
        (THIRD, SECOND): 1,  # Page 3 with another end.
        (THIRD, THIRD): 2,  # Page 4 twice.
    }
    assert copies.pairs[SECOND, THIRD] == 2, "both pages 3 have the later copy"
    assert copies.with_earlier == {SECOND: 2, THIRD: 2}


def test_a_retired_snapshot_takes_its_documents_along_and_copies_of_them_come_back(stored):
    change = compare_corpora(corpus(stored, "months"), corpus(stored, "fewer"))
    assert (change.new, change.retired) == ((), (FIRST,))
    assert flows(change) == {
        (FIRST, RETIRED, ""): (3, 0),
        (SECOND, STAYED, ""): (1, 1),
        (SECOND, COPY_RETIRED, "exact_duplicate"): (0, 1),
        (SECOND, COPY_RETIRED, "near_duplicate"): (0, 1),
        (THIRD, STAYED, ""): (1, 1),
        (THIRD, COPY_RETIRED, "exact_duplicate"): (0, 1),
    }
    assert change.volumes(after=True, by="cause")[COPY_RETIRED].tokens > 0
    assert set(made_since(corpus(stored, "months"), corpus(stored, "fewer"), ())) >= {
        "dedup[crawl-2]", "filter[crawl-2]", "pack[crawl-2]",
    }  # fmt: skip


def test_a_forgotten_document_goes_and_its_copy_comes_back(stored):
    change = compare_corpora(corpus(stored, "months"), corpus(stored, "without"))
    assert change.forgotten == (0, 1)
    moved = {name: counts for name, counts in flows(change).items() if name[1] != STAYED}
    assert moved == {
        (SECOND, FORGOTTEN, "exclusion"): (1, 0),
        (SECOND, COPY_FORGOTTEN, "exact_duplicate"): (0, 1),
    }
    assert change.total(after=False).documents == change.total(after=True).documents == 5


def test_the_steps_that_a_snapshot_led_to_are_its_cost(stored):
    months = corpus(stored, "months")
    names = {f"{stage}[{THIRD}]" for stage in ("ingest", "signals", "dedup", "filter", "pack")}
    # The tokenizer was trained on the third crawl, and so all was packed for its sake.
    more = {"tokenizer", f"pack[{FIRST}]", f"pack[{SECOND}]"}
    assert set(made_since(None, months, (THIRD,))) == names | more


def test_memory_decides_nothing(stored, added):
    small = compare_corpora(None, corpus(stored, "months"), memory=64 << 20)
    assert small == added


def test_one_snapshot_alone_has_nothing_before_it(stored):
    months = corpus(stored, "months")
    one = RunCorpus.find(
        stored, "one", {name: m for name, m in months.made.items() if name == f"filter[{FIRST}]"}
    )
    with pytest.raises(UsageError, match="two snapshots"):
        compare_corpora(None, one)
    with pytest.raises(UsageError, match="no corpus"):
        RunCorpus.find(stored, "none", {})


def test_two_filters_of_the_same_documents_are_two_corpora(stored):
    months, without = corpus(stored, "months"), corpus(stored, "without")
    made = {"a": months.filters[f"filter[{SECOND}]"], "b": without.filters[f"filter[{SECOND}]"]}
    with pytest.raises(UsageError, match="two corpora"):
        RunCorpus.find(stored, "both", made)


def test_collected_documents_leave_counts_without_a_snapshot(stored, tmp_path):
    folder = tmp_path / "a [store] of *"  # Characters that a pattern would be made of.
    shutil.copytree(stored.url, folder)
    store = Store.open(str(folder))
    months = corpus(store, "months")
    remove_artifact(store, months.made[f"ingest[{FIRST}]"])
    change = compare_corpora(None, months)
    assert change.volumes(after=True)[COLLECTED].documents == 3
    assert change.total(after=True).documents == 5


def test_a_copy_of_the_newest_snapshot_that_an_earlier_one_gave_way_to_is_counted():
    rows = [
        ("a", FIRST, "exact_duplicate", "c"),  # Gave way to the newest.
        ("b", FIRST, "gopher_few_words", "c"),  # Dropped by a rule, whatever it copies.
        ("c", THIRD, "kept", None),
        ("d", THIRD, "exact_duplicate", "c"),
    ]
    with open_database(64 << 20) as database:
        tables = CorpusTables(database)
        for doc_id, snapshot, reason, partner in rows:
            database.execute(
                "INSERT INTO decided VALUES (0, 0, ?, ?, 'web', NULL, ?, ?, 1, 1)",
                [doc_id, snapshot, reason, partner],
            )
        database.execute("INSERT INTO parts VALUES (0, 0), (1, 0)")
        tables.join(THIRD)
        assert tables.displaced(THIRD) == 1


def test_volumes_add_up_and_what_is_unknown_stays_unknown():
    assert Volume(1, 10, None, None) + Volume(2, 5, None, 7) == Volume(3, 15, None, 7)
