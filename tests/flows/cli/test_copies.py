"""Copies, as `ingot why` and `what-if` tell of them."""

from __future__ import annotations

import json

import pytest

from artifacts_schema.kinds import sidecar_folder
from flows.analysis.corpus import Corpus
from flows.analysis.documents import DuplicateLink, find_exact_duplicates, find_link
from stages.engine.inputs import Input
from stages.filter.stage import Filter

LINES = "duplicate_lines@ccnet"


def pair(doc_id, similarity, containment, band):
    return {
        "doc_id": doc_id, "similarity": similarity, "containment": containment, "band": band,
    }  # fmt: skip


def row(doc_id, exact=None, text=None, partners=()):
    return {
        "doc_id": doc_id,
        "exact_class": exact or doc_id,
        "text_class": text or exact or doc_id,
        "partners": list(partners),
    }


@pytest.fixture
def two_snapshots(store, given, measured, make_documents, run_stage):
    """a, b, c of an old snapshot, d to h of a new one, filtered one after the other.

    b says what a says, c does to the byte; d is a's text, e near b, f near g by a third document, h
    near g, which was not verified.
    """

    def documents(names):
        rows = [
            {"doc_id": d, "url": f"https://example.org/{d}", "text": f"text {d} of x@y.co"}
            for d in names
        ]
        return make_documents([rows])

    def duplicates(found, rows):
        folder = sidecar_folder(found[0].output("documents").digest)
        told = {"statistics.json": {"parameters": {"floor": 0.5}}}
        return measured("duplicates", found, {f"{folder}/00000.parquet": rows, **told})

    old, new = documents("abc"), documents("defgh")
    of_old = duplicates(old, [row("a"), row("b", "a", "b"), row("c", "a", "a")])
    of_new = duplicates(
        new,
        [
            row("d", "a", "b"),
            row("e", partners=[pair("a", 0.9, 0.95, 3)]),
            row("f", partners=[pair("g", 0.85, 0.9, -1)]),
            row("g", partners=[pair("f", 0.85, 0.9, -1), pair("h", None, None, 2)]),
            row("h", partners=[pair("g", None, None, 2)]),
        ],
    )
    config = {"rules": [], "duplicates": {"unverified": "accept"}}
    kept = {**config, "personal_data": "keep"}
    first = run_stage(Filter, kept, {"documents": [old], "duplicates": [of_old]})
    spans = {
        d: [
            {"view": LINES, "start": 0, "end": 4, "label": "a", "replacement": ""},
            {"view": "other", "start": 5, "end": 6, "label": "", "replacement": ""},
        ]
        for d in "defgh"
    }
    folder = sidecar_folder(new[0].output("documents").digest)
    rows = [{"doc_id": d, "spans": found} for d, found in spans.items()]
    passages = measured("views", new, {f"{folder}/00000.parquet": rows})
    mail = {"view": "personal_data", "start": 10, "end": 16, "label": "email", "replacement": "@"}
    plain = given("views", {"00000.parquet": [{"doc_id": d, "spans": [mail]} for d in "defgh"]})
    inputs = {
        "documents": [new],
        "views": [plain, passages],
        "duplicates": [of_old, of_new],
        "ledger": [(first, "ledger")],
    }
    made = run_stage(Filter, {**config, "views": ["personal_data", "secrets", LINES]}, inputs)
    store.set_ref("demo/filter", made.stage, made.key)
    return made, of_old, inputs


def test_a_link_is_equality_or_a_pair_that_one_row_lists(store, two_snapshots):
    made, _, _ = two_snapshots
    found = {names: find_link(store, made, *names) for names in ("ac", "ab", "db", "ce", "gf")}
    assert found == {
        "ac": DuplicateLink("raw", 1.0, 1.0, None),
        "ab": DuplicateLink("normalised", 1.0, 1.0, None),
        "db": DuplicateLink("raw", 1.0, 1.0, None),
        "ce": DuplicateLink(None, pytest.approx(0.9), pytest.approx(0.95), 3),
        "gf": DuplicateLink(None, pytest.approx(0.85), pytest.approx(0.9), -1),
    }
    assert find_link(store, made, "g", "h") == DuplicateLink(None, None, None, 2)
    assert find_link(store, made, "e", "f") is None
    assert find_link(store, made, "e", "z") is None


def test_mates_are_counted_and_those_to_the_byte_come_first(store, two_snapshots):
    _, (manifest, output), _ = two_snapshots
    given = Input.from_manifest(store, manifest, output)
    mates = find_exact_duplicates(given, "c", {"exact_class": "a", "text_class": "a"})
    assert (mates.normalised, mates.raw, mates.doc_ids) == (2, 1, ("a", "b"))
    assert find_exact_duplicates(given, "c", {"exact_class": "a"}).normalised == 0


@pytest.mark.parametrize(
    ("doc_id", "told"),
    [
        ("d", "kept partner a: same text once normalised"),
        ("e", "kept partner a: similarity 0.90, containment 0.95, agreed in band 3"),
        ("g", "kept partner f: similarity 0.85, containment 0.90, found through a third document"),
        ("b", "2 of the same text, 0 to the byte: a, c; no near copy listed"),
        ("c", "2 of the same text, 1 to the byte: a, b; no near copy listed"),
        ("d", "same text as a; no near copy listed"),
        ("h", "1 near: g not verified"),
    ],
)
def test_why_says_what_makes_a_document_a_copy(ingot, two_snapshots, doc_id, told):
    shown = ingot("why", f"https://example.org/{doc_id}", "--all")
    assert shown.exit_code == 0, shown.output
    assert told in " ".join(shown.stdout.split())


def test_why_shows_views_of_folders_and_what_is_told_as_json(ingot, two_snapshots):
    (told,) = json.loads(ingot("why", "https://example.org/e", "--all", "--json").stdout)[
        "documents"
    ]
    (views,) = [s["values"]["spans"] for s in told["sightings"] if s["kind"] == "views"]
    assert [span["view"] for span in views] == [LINES, "other"]
    (ledger,) = [s["values"] for s in told["sightings"] if s["kind"] == "ledger"]
    assert ledger["link"]["band"] == 3
    assert ledger["failures"] == [
        {
            "rule": "near_duplicate", "signal": None, "value": pytest.approx(0.9), "threshold": 0.8,
        }
    ]  # fmt: skip


def test_unverified_partners_are_said_to_be(ingot, store, two_snapshots, run_stage):
    made, _, inputs = two_snapshots
    config = {**made.config, "duplicates": {"unverified": "accept", "threshold": 0.95}}
    again = run_stage(Filter, config, inputs)
    store.set_ref("demo/filter", again.stage, again.key)
    shown = ingot("why", "https://example.org/h", "--in", "demo/filter").stdout
    assert "kept partner f" not in shown
    assert (
        "dropped by near_duplicate, threshold 0.95, kept partner g: not verified, agreed in "
        in (" ".join(shown.split()))
    )


def test_what_if_decides_by_ledger_and_folders_as_the_stage_does(
    ingot, store, two_snapshots, run_stage, read_table
):
    _, _, inputs = two_snapshots
    told = json.loads(
        ingot("what-if", "demo/filter", "--set", "duplicates.threshold=0.95", "--json").stdout
    )
    assert told["decided_otherwise"] == 0
    opened = Corpus.open(store, "demo/filter")
    config = opened.config.model_copy(
        update={"duplicates": opened.config.duplicates.model_copy(update={"threshold": 0.95})}
    )
    made = run_stage(Filter, config.plain(), inputs)
    rows = read_table(made, "ledger").to_pylist()
    verdicts = opened.decide(config)
    assert verdicts.partners.to_pylist() == [r["partner"] for r in rows]
    assert verdicts.reasons.to_pylist() == [r["reason"] for r in rows]
    assert [r["partner"] for r in rows] == ["a", None, None, None, "g"]
    gained = {s["doc_id"]: s["excerpt"] for s in told["gained"]["samples"]}
    # Personal data is hidden wherever the views stand; passages are shown, for whether they are
    # cut depends on what else is decided.
    assert gained == {"e": "text e of @", "g": "text g of @"}


def test_a_text_is_cut_once_by_the_spans_of_all_its_views(two_snapshots, read_table):
    made, _, _ = two_snapshots
    kept = {r["doc_id"]: r["text"] for r in read_table(made, "documents").to_pylist()}
    assert kept == {"f": " f of @", "h": " h of @"}
