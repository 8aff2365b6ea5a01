"""`ingot forget`: what holds a document is found, and the list keeps it out from then on."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import pytest
from click.testing import CliRunner

from artifacts_schema.errors import UsageError
from artifacts_schema.identity import document_id
from artifacts_schema.manifest import Code, Manifest
from artifacts_schema.store import Store
from flows.analysis import deletion
from flows.analysis.deletion import extend_list, read_list
from flows.analysis.documents import find_rows
from flows.analysis.training_batches import find_training_steps, read_batch_documents
from flows.cli.main import main
from flows.recipe.graph import build_graph
from flows.recipe.recipe import load_recipe
from stages.engine import Input, One, Stage
from stages.engine.outputs import ROW_GROUP
from stages.filter.stage import Filter
from stages.pack.stage import Pack
from stages.tokenizer.stage import TokenizerStage

TEXTS = ["the first of three texts", "a second text, of a neighbour", "third and last"]
ADDRESS = "https://example.org/private/{}?token=s3cret"
UNKNOWN = "f" * 32
ROOT = Path(__file__).resolve().parents[3]
NOTHING: dict[str, object] = {
    "rules": [],
    "duplicates": {"exact": None, "threshold": None},
    "personal_data": "keep",
}


def doc_id(number: int) -> str:
    return document_id("given", "file", number)


@pytest.fixture
def ingot(store):
    """`ingot(*arguments, input=None)` on the test's store; the click result."""

    def call(*arguments, input=None):
        given = [*map(str, arguments), "--store", store.url]
        return CliRunner().invoke(main, given, input=input)

    return call


@pytest.fixture
def documents(make_documents):
    rows = [{"text": text, "url": ADDRESS.format(n)} for n, text in enumerate(TEXTS)]
    return make_documents([rows[:2], rows[2:]])


@pytest.fixture
def corpus(store, run_stage, documents):
    """What a filter that drops nothing makes, under the name `demo/filter`."""
    manifest = run_stage(Filter, NOTHING, {"documents": [documents]})
    store.set_ref("demo/filter", manifest.stage, manifest.key)
    return manifest


@pytest.fixture
def packed(run_stage, corpus):
    """A tokenizer of the corpus and its token shards: all for training, 8 tokens a sequence."""
    given = {"documents": [(corpus, "documents")]}
    tokenizer = run_stage(TokenizerStage, {"vocabulary_size": 300, "held_share": 0}, given)
    config = {"sequence_length": 8, "held_out_share": 0}
    return run_stage(Pack, config, {**given, "tokenizer": [(tokenizer, "tokenizer")]})


def holding(told, stage, how):
    (found,) = [h for h in told["holdings"] if (h["stage"], h["how"]) == (stage, how)]
    return found


def test_forgotten_is_dropped_by_the_next_filter_and_why_says_so(
    ingot, store, run_stage, read_table, corpus, documents
):
    told = ingot("forget", doc_id(1), "--reason", "asked for on paper")
    assert told.exit_code == 0, told.output
    assert 'exclusions: "@exclusions"' in told.stdout
    listed, _ = store.resolve("exclusions")
    again = run_stage(
        Filter, NOTHING, {"documents": [documents], "exclusions": [(listed, "exclusions")]}
    )
    store.set_ref("demo/filter", again.stage, again.key)
    kept = read_table(again, "documents")["doc_id"].to_pylist()
    assert kept == [doc_id(0), doc_id(2)]
    why = ingot("why", doc_id(1)).stdout
    assert "dropped by exclusion: asked for on paper" in why
    assert "excluded" in why
    assert "demo/filter was made with this list" in ingot("forget", doc_id(1)).stdout


def test_the_recipe_of_the_page_takes_the_list(ingot, store, tmp_path):
    page = (ROOT / "docs" / "how-to" / "forget.md").read_text(encoding="utf-8")
    (tmp_path / "flows").symlink_to(ROOT / "flows")
    path = tmp_path / "without.yaml"
    path.write_text(page[page.index("name: without_forgotten") :].partition("```")[0])
    assert "'exclusions'" in ingot("plan", path).stderr
    keys = []
    for number in range(2):
        ingot("forget", doc_id(number))
        graph = build_graph(load_recipe(path), store)
        assert "exclusions" in graph.instances["filter"].inputs
        keys.append(graph.instances["filter"].inputs["exclusions"])
    assert keys[0] != keys[1]


def test_every_holder_is_named(ingot, packed, documents, corpus):
    told = json.loads(ingot("forget", ADDRESS.format(1), "--json").stdout)
    assert [row["doc_id"] for row in told["documents"]] == [doc_id(1)]
    assert holding(told, documents[0].stage, "text")["rows"] == [
        {"doc_id": doc_id(1), "output": "documents", "path": "00000.parquet", "row": 1}
    ]
    assert holding(told, "filter", "text")["key"] == corpus.key
    assert holding(told, "filter", "rows")["outputs"] == ["ledger"]
    assert holding(told, "tokenizer", "made")["roles"] == ["documents"]
    tokens = holding(told, "pack", "tokens")
    assert tokens["output"] == "train"
    assert sum(map(len, tokens["sequences"].values())) >= 2  # 29 characters, 8 tokens a sequence
    assert told["exclusions"]["documents"] == 1
    (rerun,) = told["reruns"]
    assert rerun == {"ref": "demo/filter", "lists": [], "behind": []}


class Trained(Stage):
    """Something that is made of token shards."""

    name, version, reproducible = "trained", 1, "bytes"
    inputs = {"tokens": One("token_shards")}
    outputs = {"checkpoint": "checkpoint"}

    def run(self, context):
        context.write_json("checkpoint", "state.json", {})


class Released(Stage):
    """Something that is made of that."""

    name, version, reproducible = "released", 1, "bytes"
    inputs = {"checkpoint": One("checkpoint")}
    outputs = {"release": "release"}

    def run(self, context):
        context.write_bytes("release", "README.md", b"")


def test_what_was_made_of_tokens_is_followed_to_the_release(ingot, store, run_stage, packed):
    trained = run_stage(Trained, {}, {"tokens": [(packed, "train")]})
    untouched = run_stage(Trained, {}, {"tokens": [(packed, "held_out")]})
    released = run_stage(Released, {}, {"checkpoint": [(trained, "checkpoint")]})
    for name, manifest in (("pack", packed), ("trained", trained), ("released", released)):
        store.set_ref(f"demo/{name}", manifest.stage, manifest.key)
    told = json.loads(ingot("forget", doc_id(2), "--json").stdout)
    assert holding(told, "trained", "made")["key"] == trained.key
    assert holding(told, "released", "made")["roles"] == ["checkpoint"]
    assert untouched.key not in [h["key"] for h in told["holdings"]]
    assert told["reruns"][0]["behind"] == ["demo/pack", "demo/trained", "demo/released"]
    shown = ingot("forget", doc_id(2)).stdout
    assert "the next run makes demo/filter again" in shown
    assert "  and then what reads bytes that change: pack, trained, released" in shown


def test_an_artifact_that_holds_none_of_them_is_not_named(ingot, given, make_documents, documents):
    make_documents([["of somebody else"]], snapshot="other")
    told = json.loads(ingot("forget", doc_id(0), "--json").stdout)
    assert [h["key"] for h in told["holdings"]] == [documents[0].key]


def test_the_training_steps_are_those_whose_batches_name_the_document(store, packed):
    """`batch_documents` reads the pieces of a step from the indexes: another way to the same."""
    config = {
        "model": {"width": 8, "layers": 1, "heads": 1, "kv_heads": 1, "context": 8},
        "phases": [{"tokens": 8 * 2 * 9, "sequences_per_batch": 2, "learning_rate": {"peak": 0.1}}],
        "max_epochs": None,
    }
    run = Manifest(
        stage="pretrain",
        version=1,
        key="0" * 64,
        reproducible="numerics",
        config=config,
        identity={},
        inputs={"train": (store.reference(packed, "train"),)},
        outputs={},
        attempt="x",
        code=Code(digest="", libraries={}),
    )
    read = {
        step: {piece["doc_id"] for piece in read_batch_documents(store, run, step)}
        for step in range(1, 10)
    }
    from flows.analysis.retention import _token_holdings

    for number in range(3):
        (holding,) = _token_holdings(store, packed, [doc_id(number)])
        assert holding.manifest == packed
        digest = packed.output("train").digest
        expected = [step for step, ids in read.items() if doc_id(number) in ids]
        assert find_training_steps(store, run, {digest: holding.details["sequences"]}) == expected
        assert 0 < len(expected) < 9


def test_copies_that_would_be_kept_instead_are_named_and_taken_along(
    ingot, store, given, make_documents
):
    """0 and 1 are one text, 2 is similar to both (by the first of the class), 3 to none."""
    make_documents([["same", "same", "similar", "other"]])
    near = {"doc_id": doc_id(0), "similarity": 0.75, "containment": 0.9, "band": 0}
    rows = [
        {
            "doc_id": doc_id(n),
            "exact_class": doc_id(0 if n == 1 else n),
            "text_class": doc_id(n),
            "partners": [near] if n == 2 else [],
        }
        for n in range(4)
    ]
    # 2 came in a later snapshot: its own dedup lists the pair, and no other.
    for number, part in enumerate((rows[:2], rows[2:])):
        given("duplicates", {f"{number:012d}/00000.parquet": part, "statistics.json": {}})
    told = json.loads(ingot("forget", doc_id(1), "--dry-run", "--json").stdout)
    assert told["copies"] == [
        {"doc_id": doc_id(0), "similarity": 1.0},
        {"doc_id": doc_id(2), "similarity": 0.75},
    ]
    assert "2 copies may be kept instead" in ingot("forget", doc_id(1), "--dry-run").stdout
    assert "copies" not in ingot("forget", doc_id(3), "--dry-run").stdout
    with_copies = ingot("forget", doc_id(1), "--copies")
    assert "may be kept instead" not in with_copies.stdout
    assert set(read_list(store, "exclusions")) == {doc_id(0), doc_id(1), doc_id(2)}


def test_a_later_request_keeps_the_earlier_ids_and_their_reasons(ingot, store, documents):
    ingot("forget", doc_id(0), "--reason", "first")
    first = store.ref("exclusions")
    ingot("forget", doc_id(0), doc_id(2), "--reason", "second")
    assert read_list(store, "exclusions") == {doc_id(0): "first", doc_id(2): "second"}
    assert store.manifest(first.stage, first.key) is not None
    # What stands is deterministic: neither order nor repetition of requests changes the key.
    second = store.ref("exclusions")
    assert ingot("forget", doc_id(2), doc_id(0)).exit_code == 0
    assert store.ref("exclusions") == second
    ingot("forget", doc_id(2), "--as", "other", "--reason", "second")
    ingot("forget", doc_id(0), "--as", "other", "--reason", "first")
    assert store.ref("other") == second


def test_two_at_once_lose_nothing(store, monkeypatch):
    """While the first has read the list and not yet moved the name, a second one tries it all."""
    inside = threading.Event()
    committed = deletion._commit_list

    def pause(opened, reasons):
        if not inside.is_set():
            inside.set()
            second.start()
            second.join(0.5)  # Without turns it would be done, and overwritten, by now.
        return committed(opened, reasons)

    second = threading.Thread(
        target=lambda: extend_list(Store.open(store.url), "exclusions", {doc_id(1): "b"})
    )
    monkeypatch.setattr(deletion, "_commit_list", pause)
    extend_list(store, "exclusions", {doc_id(0): "a"})
    second.join()
    assert read_list(store, "exclusions") == {doc_id(0): "a", doc_id(1): "b"}


def test_nothing_of_text_or_address_is_kept(ingot, store, documents):
    told = ingot("forget", ADDRESS.format(0), "--reason", "court order 7")
    assert told.exit_code == 0
    written = [
        path
        for folder in ("data/forget", "artifacts/forget", "refs", "work")
        for path in Path(store.url, folder).rglob("*")
        if path.is_file()
    ]
    assert written
    assert Path(store.url, "refs/exclusions.json") in written
    for path in written:
        raw = path.read_bytes()
        assert b"example.org" not in raw, path
        assert b"first of three" not in raw, path
    refused = ingot("forget", doc_id(1), "--reason", f"see {ADDRESS.format(1)} please")
    assert refused.exit_code == 2
    assert "the reason holds the address of a document" in refused.stderr


def test_ids_come_from_a_file_or_standard_input(ingot, store, documents, tmp_path):
    listed = tmp_path / "ids.txt"
    listed.write_text(f"\ufeff{doc_id(0)}\n\n  {ADDRESS.format(1)}  \n", encoding="utf-8")
    assert ingot("forget", "--from", listed).exit_code == 0
    assert ingot("forget", "--from", "-", input=doc_id(2)[:8]).exit_code == 0
    assert set(read_list(store, "exclusions")) == {doc_id(0), doc_id(1), doc_id(2)}
    assert ingot("forget", "--from", tmp_path / "none").exit_code == 2


def test_one_address_is_every_document_of_that_address(ingot, store, make_documents):
    page = {"text": "one page", "url": "https://example.org/"}
    for snapshot in ("crawl-A", "crawl-B"):
        make_documents([[page, page]], snapshot=snapshot)
    ingot("forget", "https://example.org/")
    assert set(read_list(store, "exclusions")) == {
        document_id(snapshot, "file", record)
        for snapshot in ("crawl-A", "crawl-B")
        for record in range(2)
    }


def test_an_id_that_nothing_holds_is_listed_for_what_may_come(ingot, store, documents):
    told = ingot("forget", UNKNOWN)
    assert f"{UNKNOWN}  (not in this store)" in told.stdout
    assert read_list(store, "exclusions") == {UNKNOWN: "forget request"}


@pytest.mark.parametrize(
    "hostile",
    [
        "*",
        "[a-f]*",
        "%",
        "../../etc/passwd",
        "example.org",
        "\x1b[2J\x07",
        "\udcff",
        "",
        " ",
        "a\0b",
    ],
)
def test_what_names_no_document_changes_nothing(ingot, store, documents, hostile):
    before = sorted(Path(store.url).rglob("*"))
    result = ingot("forget", doc_id(0), hostile)
    assert result.exit_code == 2
    assert ("not UTF-8" if hostile == "\udcff" else "no document") in result.stderr
    assert result.stderr.count("\n") == 1
    assert "\x1b" not in result.stderr
    assert sorted(Path(store.url).rglob("*")) == before


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ([], "no document is named"),
        (["--reason", "two\nlines", UNKNOWN], "a reason is one line"),
        (["--reason", "", UNKNOWN], "a reason is one line"),
        (["--as", "demo/filter", UNKNOWN], "'demo/filter' names filter"),
        (["--as", "../up", UNKNOWN], "'../up' cannot be a ref"),
    ],
)
def test_a_wrong_request_is_one_line(ingot, corpus, store, arguments, told):
    result = ingot("forget", *arguments)
    assert result.exit_code == 2, result.output
    assert told in result.stderr
    assert result.stderr.count("\n") == 1
    assert store.ref("demo/filter").key == corpus.key


def test_the_beginning_of_several_ids_is_refused(ingot, make_documents, store):
    make_documents([[{"doc_id": f"abcdef{n:026x}", "text": "x"} for n in range(2)]])
    result = ingot("forget", "abcdef")
    assert result.exit_code == 2
    assert " 2 " in result.stderr
    assert store.ref("exclusions") is None


def test_a_removed_list_is_an_error_and_not_an_empty_one(ingot, store, documents):
    ingot("forget", doc_id(0))
    assert ingot("gc", "--artifact", "exclusions", "--delete").exit_code == 0
    result = ingot("forget", doc_id(1))
    assert result.exit_code == 2
    assert "exclusions" in result.stderr
    with pytest.raises(UsageError):
        read_list(store, "exclusions")


def test_rows_are_numbered_through_row_groups(store):
    ids = [f"{number:032x}" for number in range(ROW_GROUP + 10)]
    given = Input.from_manifest(
        store, extend_list(store, "long", dict.fromkeys(ids, "x")).manifest, "exclusions"
    )
    found = find_rows(given, deletion.TABLE, [ids[-1], ids[5], UNKNOWN])
    assert [(row, values["doc_id"]) for row, values in found] == [
        (5, ids[5]),
        (ROW_GROUP + 9, ids[-1]),
    ]


def test_a_dry_run_writes_nothing(ingot, store, documents):
    told = ingot("forget", doc_id(0), "--dry-run")
    assert told.exit_code == 0
    assert "text: 00000.parquet row 0" in told.stdout
    assert store.refs() == {}
