"""Snapshot by snapshot with indexes and ledgers: the same as one run over everything."""

from __future__ import annotations

import os
import random
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from dask_server import DaskServer
from near_copies import Truth, by_id, families, pairs_of, rows

from artifacts_schema.errors import UsageError
from artifacts_schema.kinds import sidecar_folder
from artifacts_schema.manifest import Manifest
from artifacts_schema.store import Store
from stages.dedup import exact
from stages.dedup.stage import Dedup
from stages.engine import dask_engine, shards
from stages.filter.stage import Filter

Make = Callable[..., Any]
Rows = list[dict[str, Any]]
SEEDS = [1, 2, 3]
CONFIGS: dict[int, dict[str, Any]] = {
    1: {},
    2: {"max_bucket": 2, "max_partners": 2},
    # 64 shingles of some 90: similarities are estimates.
    3: {"bytes_per_document": 512, "max_bucket": 3, "bands": 20, "rows": 4},
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("increments")


@pytest.fixture
def store(folder: Path) -> Store:
    """One for all tests here, so that they share runs."""
    return Store.open(str(folder / "store"))


def snapshots(seed: int) -> dict[str, Rows]:
    """Three snapshots over which families, and copies to the byte, are spread; ids are mixed."""
    rng = random.Random(seed)
    found: dict[str, Rows] = {"A": [], "B": [], "C": []}
    texts = families(10, 12, seed, length=95 if "bytes_per_document" in CONFIGS[seed] else 60)
    for _ in found:
        texts += rng.sample(texts, 8)
    for one in rows(f"seed {seed}", texts):
        name = rng.choice("AABBC")
        found[name].append({**one, "snapshot": f"{name} {seed}"})
    return found


class Runs:
    """Runs over the snapshots of a seed, all together or one after another."""

    def __init__(
        self, seed: int, run_stage: Make, make_documents: Make, earlier_inputs: Make
    ) -> None:
        self.rows = snapshots(seed)
        self.config, self._run, self.earlier_inputs = CONFIGS[seed], run_stage, earlier_inputs
        self.documents = {
            name: make_documents([listed[: len(listed) // 2], listed[len(listed) // 2 :]])
            for name, listed in self.rows.items()
        }

    def dedup(self, names: str, *earlier: Manifest, **config: Any) -> Manifest:
        """A run over some snapshots, with the indexes of earlier runs."""
        roles = {
            "documents": [self.documents[name] for name in names],
            **self.earlier_inputs(*earlier),
        }
        manifest: Manifest = self._run(Dedup, {**self.config, **config}, roles)
        return manifest

    def one_by_one(self, **config: Any) -> dict[str, Manifest]:
        """A alone, B with A's index, C with both, given in no order."""
        a = self.dedup("A", **config)
        b = self.dedup("B", a, **config)
        return {"A": a, "B": b, "C": self.dedup("C", b, a, **config)}

    def filter(
        self, names: str, told: list[Manifest], ledgers: list[Manifest], **config: Any
    ) -> Manifest:
        """What stays of some snapshots."""
        roles = {
            "documents": [self.documents[name] for name in names],
            "duplicates": [(manifest, "duplicates") for manifest in told],
            "ledger": [(manifest, "ledger") for manifest in ledgers],
        }
        config = {"rules": [], "personal_data": "keep", **config}
        manifest: Manifest = self._run(Filter, config, roles)
        return manifest

    def tables(self, manifest: Manifest, name: str) -> dict[str, str]:
        """Digests of the tables beside a snapshot."""
        given, output = self.documents[name]
        place = sidecar_folder(given.output(output).digest)
        files = manifest.outputs["duplicates"].files
        return {file.path: file.sha256 for file in files if file.path.startswith(place)}


@pytest.fixture(params=SEEDS)
def runs(
    request: pytest.FixtureRequest, run_stage: Make, make_documents: Make, earlier_inputs: Make
) -> Runs:
    return Runs(request.param, run_stage, make_documents, earlier_inputs)


def test_what_runs_one_by_one_write_is_what_a_full_run_writes(runs: Runs, read_table: Make) -> None:
    whole, alone = runs.dedup("ABC"), runs.one_by_one()
    for name, manifest in alone.items():
        tables = runs.tables(manifest, name)
        assert len(tables) == 2
        assert tables == runs.tables(whole, name)
    # There is something to be equal: copies and pairs between snapshots, and pairs of closure.
    told = read_table(alone["C"], "duplicates")
    own = set(told["doc_id"].to_pylist())
    assert [one for one in told["exact_class"].to_pylist() if one not in own]
    across = [partner["band"] for pair, partner in pairs_of(told).items() if pair[1] not in own]
    assert len(across) > 5
    assert -1 in [p["band"] for p in pairs_of(read_table(whole, "duplicates")).values()]


def test_what_a_full_run_writes_is_true(runs: Runs, read_table: Make) -> None:
    """Classes and similarities by brute force; a pair of two snapshots stands with the newer."""
    told = read_table(runs.dedup("ABC"), "duplicates")
    truth = Truth(list(runs.rows.values()))
    firsts = {i: one["exact_class"] for i, one in by_id(told).items()}
    assert firsts == truth.exact_class
    assert {i: one["text_class"] for i, one in by_id(told).items()} == truth.text_class
    for (one, two), partner in pairs_of(told).items():
        assert truth.of[one].generation >= truth.of[two].generation
        error = 0.3 if "bytes_per_document" in runs.config else 1e-6
        assert partner["similarity"] == pytest.approx(truth.jaccard(one, two), abs=error)


def test_classes_of_more_documents_than_fit_are_the_same(
    run_stage: Make, make_documents: Make, earlier_inputs: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two documents at once: classes of three and more are read twice."""
    runs = Runs(1, run_stage, make_documents, earlier_inputs)
    whole = runs.dedup("ABC")
    plain = exact.find_exact_classes
    monkeypatch.setattr(exact, "find_exact_classes", lambda of, corpus, rows: plain(of, corpus, 2))
    inputs = {"documents": [runs.documents[name] for name in "ABC"]}
    assert run_stage(Dedup, runs.config, inputs, force=True).outputs == whole.outputs


def test_two_runs_over_two_and_one_write_the_same(runs: Runs) -> None:
    whole = runs.dedup("ABC")
    both = runs.dedup("AB")
    last = runs.dedup("C", both)
    assert runs.tables(both, "A") == runs.tables(whole, "A")
    assert runs.tables(both, "B") == runs.tables(whole, "B")
    assert runs.tables(last, "C") == runs.tables(whole, "C")


def test_filters_one_by_one_keep_what_one_filter_keeps(runs: Runs, read_table: Make) -> None:
    alone = runs.one_by_one()
    whole = runs.filter("ABC", [runs.dedup("ABC")], [])
    ledgers: list[Manifest] = []
    kept: list[str] = []
    for place, name in enumerate("ABC"):
        told = [alone[earlier] for earlier in "ABC"[: place + 1]]
        ledgers.append(runs.filter(name, told, ledgers))
        kept += read_table(ledgers[-1], "documents")["doc_id"].to_pylist()
    assert kept == read_table(whole, "documents")["doc_id"].to_pylist()
    assert 20 < len(kept) < sum(map(len, runs.rows.values())) - 40

    truth, stays = Truth(list(runs.rows.values())), set(kept)
    error = 0.25 if "bytes_per_document" in runs.config else 1e-6
    for manifest in ledgers:
        for row in read_table(manifest, "ledger").to_pylist():
            assert (row["verdict"] == "kept") == (row["doc_id"] in stays)
            if row["verdict"] == "kept":
                continue
            assert row["partner"] in stays
            one, two = (truth.exact_class[row[side]] for side in ("doc_id", "partner"))
            if row["reason"] == "exact_duplicate":
                assert one == two
            else:
                assert row["value"] >= np.float32(0.8)
                assert truth.jaccard(one, two) == pytest.approx(row["value"], abs=error)


def test_another_priority_is_refused_with_a_ledger(
    run_stage: Make, make_documents: Make, earlier_inputs: Make
) -> None:
    runs = Runs(1, run_stage, make_documents, earlier_inputs)
    alone = runs.one_by_one()
    ledger = runs.filter("A", [alone["A"]], [])
    policy = {"priority": [{"by": "snapshot", "order": ["B 1", "A 1"]}]}
    with pytest.raises(UsageError, match=r"duplicates\.priority"):
        runs.filter("B", [alone["A"], alone["B"]], [ledger], duplicates=policy)
    # Without a ledger it stands: of a class over both, the copy of B stays.
    both = runs.filter("AB", [alone["A"], alone["B"]], [], duplicates=policy)
    assert both.counts["kept"] < both.counts["documents"]


# Retiring a snapshot -----------------------------------------------------------------------------


def test_without_the_first_snapshot_the_rest_is_as_if_it_never_was(runs: Runs) -> None:
    """B's index was made without A: what comes after it is what a full run over B and C writes."""
    whole = runs.dedup("BC")
    alone = runs.dedup("C", runs.dedup("B"))
    assert runs.tables(alone, "C") == runs.tables(whole, "C")


def test_an_index_made_with_a_retired_one_stands_alone(runs: Runs) -> None:
    """B's index was made with A's, which is gone: the pairs that bands propose are the same."""
    whole = runs.dedup("BC", closure=False)
    alone = runs.dedup("C", runs.dedup("B", runs.dedup("A", closure=False), closure=False))
    assert alone.counts["documents"] == len(runs.rows["C"])
    alone = runs.dedup("C", runs.one_by_one(closure=False)["B"], closure=False)
    assert runs.tables(alone, "C") == runs.tables(whole, "C")


def test_what_partners_of_a_retired_snapshot_led_to_may_differ_but_is_true(
    runs: Runs, read_table: Make
) -> None:
    """B's index has no pairs of B's copies of documents of A, which were not compared, but has
    those that a document of A led to. So closure finds other pairs for C; bands do not."""
    whole = runs.dedup("BC", max_partners=1_000)
    alone = runs.dedup("C", runs.one_by_one(max_partners=1_000)["B"], max_partners=1_000)
    told = read_table(alone, "duplicates")
    expected, found = pairs_of(read_table(whole, "duplicates")), pairs_of(told)
    own = {one["doc_id"] for one in runs.rows["C"]}
    expected = {pair: p for pair, p in expected.items() if pair[0] in own}
    of = by_id(read_table(whole, "duplicates"))
    for doc_id, one in by_id(told).items():
        for name in ("exact_class", "text_class"):
            assert one[name] == of[doc_id][name]
    by_bands = {pair: p for pair, p in expected.items() if p["band"] >= 0}
    assert {pair: p for pair, p in found.items() if p["band"] >= 0} == by_bands
    common = found.keys() & expected.keys()
    assert {pair: found[pair] for pair in common} == {pair: expected[pair] for pair in common}
    assert len(found.keys() ^ expected.keys()) < 0.1 * len(expected)


# On a cluster ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DaskServer]:
    pytest.importorskip("distributed", reason="needs pip install 'ingot[dask]'")
    with DaskServer(tmp_path_factory.mktemp("dask")) as server:
        server.wait_for_workers(2)
        yield server


def pids(cluster: DaskServer) -> list[int]:
    """Processes of the workers."""
    from distributed import Client

    with Client(cluster.address, set_as_default=False) as client:
        return list(client.run(os.getpid).values())


@pytest.mark.full
@pytest.mark.parametrize("killed", [False, True])
def test_a_cluster_writes_the_same_bytes_though_a_worker_dies(
    run_stage: Make,
    make_documents: Make,
    earlier_inputs: Make,
    cluster: DaskServer,
    monkeypatch: pytest.MonkeyPatch,
    killed: bool,
) -> None:
    monkeypatch.setattr(dask_engine, "FIRST_SECONDS", 60.0)
    runs = Runs(1, run_stage, make_documents, earlier_inputs)
    first = runs.dedup("A")
    plain = runs.dedup("B", first)
    cluster.wait_for_workers(2)
    victim, recorded = pids(cluster)[0], list[str]()
    record = shards.ShardMap._record

    def kill_in_the_middle(self: Any, name: str, *more: Any) -> None:
        record(self, name, *more)
        recorded.append(name)
        if killed and len(recorded) == 8:
            os.kill(victim, signal.SIGKILL)

    monkeypatch.setattr(shards.ShardMap, "_record", kill_in_the_middle)
    inputs = {"documents": [runs.documents["B"]], **earlier_inputs(first)}
    execution = {"engine": "dask", "scheduler": cluster.address, "workers": None}
    again = run_stage(Dedup, runs.config, inputs, execution, force=True)
    assert again.outputs == plain.outputs
    assert len(recorded) > 20
    cluster.wait_for_workers(2)
    assert (victim in pids(cluster)) != killed


@pytest.mark.full
def test_a_cluster_finds_the_passages_that_processes_find(
    run_stage: Make,
    make_documents: Make,
    read_input: Make,
    earlier_inputs: Make,
    cluster: DaskServer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """All maps of passages: those that write an index, and those of a run that reads one.

    Between the snapshots, copies repeat whole texts of one line, and longer ones repeat a run of
    tokens, so each measure finds some.
    """
    monkeypatch.setattr(dask_engine, "FIRST_SECONDS", 60.0)
    cluster.wait_for_workers(2)
    runs = Runs(1, run_stage, make_documents, earlier_inputs)
    # Three sentences, of which dedup's families have none.
    stop = " A first sentence stands here now. And then a second one follows it. The third ends it."
    texts = {name: [row["text"] + "." + stop for row in runs.rows[name]] for name in "AB"}
    documents = {name: make_documents([texts[name][::2], texts[name][1::2]], name) for name in "AB"}
    config = {"passages": {"lines": True, "sentences": True, "substrings": 50, "index": True}}
    execution = {"engine": "dask", "scheduler": cluster.address, "workers": None}

    def compare(name: str, *earlier: Manifest) -> Manifest:
        inputs = {
            "documents": [documents[name]],
            **earlier_inputs(*earlier),
            "passage_index": [(one, "passage_index") for one in earlier],
        }
        plain: Manifest = run_stage(Dedup, config, inputs)
        again = run_stage(Dedup, config, inputs, execution, force=True)
        assert again.outputs == plain.outputs
        return plain

    on_cluster: set[str] = set()
    record = shards.ShardMap._record

    def note(self: Any, *more: Any) -> None:
        record(self, *more)
        if self.elsewhere:
            on_cluster.add(self.name.partition("-")[0])

    monkeypatch.setattr(shards.ShardMap, "_record", note)
    first = compare("A")
    second = compare("B", first)
    assert on_cluster >= {
        "write_occurrences",
        "write_index_table",
        "first_lines_sentences_anchors",
        "first_windows",
        "write_window_occurrences",
        "write_earlier_windows",
        "write_passages",
    }
    found = read_input(second, "duplicates").read_json("statistics.json")["passages"]
    assert all(found[view]["spans"] > 0 for view in found)
    assert len(found) == 3
