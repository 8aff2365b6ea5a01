"""`new-snapshot.md` prints recipes that do what it says: run here on small crawls."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pyarrow as pa
import pytest
import yaml
from docs_pages import DOCS, blocks

from artifacts_schema.manifest import Manifest
from flows.analysis.deletion import extend_list
from flows.analysis.documents import find_documents
from flows.analysis.retention import find_holdings
from flows.analysis.why import read_histories
from flows.recipe.arrivals import Place, Watch
from flows.recipe.graph import build_graph
from flows.recipe.recipe import load_recipe
from flows.recipe.series import expand_series
from flows.recipe.snapshots import take_snapshot
from stages.dedup.stage import Dedup
from stages.filter.stage import Filter

FIRST, SECOND, THIRD = "crawl-2024-30", "crawl-2024-33", "crawl-2024-38"
Made = dict[str, Manifest]


def page(number: int, other: str = "") -> str:
    """240 words that no page of another number has."""
    letters = random.Random(number)
    words = ["".join(letters.choices("abcdefghijklmnop", k=6)) for _ in range(240)]
    return " ".join([*words, other])


CRAWLS = {
    FIRST: [page(0), page(1), page(2)],
    SECOND: [page(1), page(3), page(2, "one word more"), page(3)],
    THIRD: [page(3, "another end"), page(4), page(0), page(4)],
}
KEPT = {FIRST: [0, 1, 2], SECOND: [3], THIRD: [4]}
"""Which pages: each where it comes first. `one word more` leaves 236 of 239 shingles in common."""


@pytest.fixture
def follow(tmp_path, monkeypatch, store, run_stage):
    """`follow(recipe)` → the manifests of its instances through `filter`, by name."""
    monkeypatch.chdir(tmp_path)
    for name, texts in CRAWLS.items():
        path = tmp_path / "crawls" / name.removeprefix("crawl-") / "00000.jsonl.zst"
        path.parent.mkdir(parents=True)
        rows = "".join(json.dumps({"text": text}) + "\n" for text in texts)
        with pa.output_stream(str(path), compression="zstd") as file:
            file.write(rows.encode())
    for block in blocks(DOCS / "how-to" / "new-snapshot.md", "yaml"):
        Path(f"{yaml.safe_load(block.text)['name']}.yaml").write_text(block.text)

    def run(name: str) -> Made:
        recipe = expand_series(load_recipe(Path(f"{name}.yaml")), store)
        made = {label: take_snapshot(store, files) for label, files in recipe.snapshots.items()}
        graph = build_graph(recipe, store)
        wanted = graph.upstream(set(graph.steps["filter"]))
        for instance in graph.instances.values():
            if instance.name in wanted:
                inputs = {
                    role: [(made[source.node], source.output) for source in sources]
                    for role, sources in instance.inputs.items()
                }
                made[instance.name] = run_stage(instance.stage, instance.config, inputs)
        return made

    return run


def kept(read_table, manifest: Manifest) -> list[tuple[str, str]]:
    rows = read_table(manifest, "documents").select(["snapshot", "text"]).to_pylist()
    return [(row["snapshot"], row["text"]) for row in rows]


def duplicates(manifest: Manifest) -> dict[str, str]:
    return {
        file.path: file.sha256
        for file in manifest.output("duplicates").files
        if file.path.endswith(".parquet")
    }


def at_once(run_stage, made: Made, names: list[str], rules: list[str]) -> tuple[Manifest, Manifest]:
    """One `dedup` and one `filter` over the crawls, in this order."""
    documents = [(made[f"ingest[{name}]"], "documents") for name in names]
    signals = [made[f"signals[{name}]"] for name in names]
    measured = run_stage(Dedup, {}, {"documents": documents})
    inputs = {
        "documents": documents,
        "signals": [(one, "signals") for one in signals],
        "views": [(one, "views") for one in signals],
        "duplicates": [(measured, "duplicates")],
    }
    return measured, run_stage(Filter, {"rules": rules}, inputs)


def test_a_snapshot_that_is_added_is_decided_as_if_all_had_been_there(
    follow, run_stage, read_table
):
    first, more = follow("months"), follow("more_months")
    for name in first:
        assert more[name].key == first[name].key, "what stands is not made again"
    names = [FIRST, SECOND, THIRD]
    alone = [kept(read_table, more[f"filter[{name}]"]) for name in names]
    assert alone == [[(name, CRAWLS[name][row]) for row in rows(name)] for name in names]

    measured, corpus = at_once(run_stage, more, names, ["gopher_repetition@datatrove"])
    tables = {k: v for name in names for k, v in duplicates(more[f"dedup[{name}]"]).items()}
    assert tables == duplicates(measured)
    assert kept(read_table, corpus) == [row for some in alone for row in some]


def test_a_snapshot_that_is_watched_for_is_decided_as_one_that_is_written_down(
    follow, store, tmp_path, capsys
):
    written = follow("more_months")
    place = Place(str(tmp_path / "crawls"), "crawl", since=THIRD)
    watch = Watch(store, place, settle=0.0, say=print)
    watch.once()
    ((name, manifest),) = watch.once()
    assert (name, manifest.key) == (THIRD, written[THIRD].key)
    series = follow("all_months")
    assert {one: made.key for one, made in series.items()} == {
        one: made.key for one, made in written.items()
    }
    assert capsys.readouterr().out == ""


def test_levels_give_the_same_corpus_and_a_document_still_names_its_partner(
    follow, store, read_table, tmp_path
):
    """A request to forget changes what `filter` reads, and no index."""
    chain, levels = follow("more_months"), follow("month_levels")
    merged = levels[f"merge[{FIRST}..{SECOND}]"]
    (read,) = levels[f"dedup[{THIRD}]"].inputs["dedup_index"]
    assert (read.stage, read.key) == ("merge_indexes", merged.key)
    for step in (f"ingest[{THIRD}]", f"dedup[{SECOND}]", f"filter[{SECOND}]", f"filter[{THIRD}]"):
        assert levels[step].key == chain[step].key

    manifests = list(levels.values())
    third = read_table(levels[f"ingest[{THIRD}]"], "documents").to_pylist()
    copies = {row["doc_id"]: row["text"] for row in third if row["text"] == page(0)}
    (copy,) = copies
    (history,) = read_histories(store, manifests, copy)
    (ledger,) = history.select("ledger")
    (partner,) = read_histories(store, manifests, ledger.values["partner"])
    (record,) = partner.select("documents")
    assert record.values["snapshot"] == FIRST
    assert record.values["excerpt"] == page(0)[: len(record.values["excerpt"])]
    assert ledger.values["link"]["exact"] == "raw"
    places = find_documents(store, manifests, [partner.doc_id])[partner.doc_id].by_id
    holdings = find_holdings(store, manifests, places)
    assert "made from its dedup_index" in {
        one.text for one in holdings if one.manifest.stage == "merge_indexes"
    }

    extend_list(store, "exclusions", {partner.doc_id: "request"})
    (tmp_path / "forgotten.yaml").write_text(
        "name: forgotten\nextends: month_levels.yaml\n"
        "steps: {filter: {inputs: {exclusions: exclusions}}}\n"
    )
    before, after = (
        build_graph(load_recipe(tmp_path / f"{name}.yaml"), store).instances
        for name in ("month_levels", "forgotten")
    )
    changed = {name for name in before if before[name].inputs != after[name].inputs}
    assert changed == {f"filter[{name}]" for name in (FIRST, SECOND, THIRD)}


@pytest.mark.full
def test_passages_in_levels_are_those_of_one_run(follow, run_stage):
    levels = follow("month_passage_levels")
    assert levels[f"merge[{FIRST}..{SECOND}]"].counts["passages"] > 0
    documents = [(levels[f"ingest[{name}]"], "documents") for name in (FIRST, SECOND, THIRD)]
    config = {"passages": {"lines": True, "substrings": 50}}
    whole = run_stage(Dedup, config, {"documents": documents}).outputs["views"].files
    alone = levels[f"dedup[{THIRD}]"].outputs["views"].files
    spans = {file.path: file.sha256 for file in whole}
    assert {file.path: file.sha256 for file in alone}.items() <= spans.items()


def rows(name: str) -> list[int]:
    """Rows of a crawl that stay: the first that holds each of its KEPT pages."""
    return [CRAWLS[name].index(page(number)) for number in KEPT[name]]


@pytest.mark.full
def test_a_snapshot_that_is_retired_was_never_there(follow, run_stage, read_table):
    months, fewer = follow("months"), follow("fewer_months")
    for step in ("ingest", "signals"):
        assert fewer[f"{step}[{SECOND}]"].key == months[f"{step}[{SECOND}]"].key
    corpus = kept(read_table, fewer[f"filter[{SECOND}]"])
    # Pages 1 and 2, which went for the first crawl's sake, are back.
    assert corpus == [(SECOND, CRAWLS[SECOND][row]) for row in (0, 1, 2)]
    measured, alone = at_once(run_stage, months, [SECOND], ["gopher_repetition@datatrove"])
    assert duplicates(fewer[f"dedup[{SECOND}]"]) == duplicates(measured)
    assert kept(read_table, alone) == corpus


@pytest.mark.full
def test_passages_of_earlier_snapshots_are_marked(follow, read_table):
    made = follow("month_passages")
    first = read_table(made[f"ingest[{FIRST}]"], "documents").to_pylist()
    holder = {row["text"]: row["doc_id"] for row in first}[page(1)]
    texts = read_table(made[f"ingest[{SECOND}]"], "documents")["text"].to_pylist()
    spans = read_table(made[f"dedup[{SECOND}]"], "views")["spans"].to_pylist()
    # A page of the first crawl is marked as a line and as a run of tokens; a new one is not.
    assert [(one["view"], one["start"], one["label"]) for one in spans[texts.index(page(1))]] == [
        ("duplicate_lines@ccnet", 0, holder),
        ("duplicate_substrings", 0, holder),
    ]
    copies = [row for row, text in zip(spans, texts, strict=True) if text == page(3)]
    assert sorted(map(len, copies)) == [0, 2]
