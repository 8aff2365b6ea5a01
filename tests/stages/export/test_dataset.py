"""The data set that documents become: what `datasets` reads, the card, what is refused."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
from pathlib import Path

import pytest
import yaml

from artifacts_schema.errors import InputError, UsageError
from stages.engine.page import Artifact
from stages.export.config import DatasetConfig
from stages.export.dataset import ExportDataset
from stages.export.dataset_files import folder_names
from stages.export.page import page


def document(number, source="web", **changes):
    return {
        "doc_id": f"{number:032x}",
        "source": source,
        "snapshot": "crawl",
        "url": f"https://{number}.example/",
        "date": None,
        "title": None,
        "language": "en",
        "text": f"text {number} ".ljust(100, "x"),
        "metadata": "{}",
        "origin_file": "a",
        "origin_offset": 0,
        "origin_length": 1,
        "duplicate_class": None,
        **changes,
    }


def stated(number, licence=None, ai_opt_out=None):
    """A row of `pages`, of which three columns matter here."""
    empty = dict.fromkeys(("record_type", "http_status", "declared_type", "sniffed_type"))
    row = {"doc_id": f"{number:032x}", "licence": licence, "ai_opt_out": ai_opt_out}
    return {**empty, "characters_repaired": 0, **row}


@pytest.fixture
def dataset(run_stage, given, read_input):
    """`dataset(tables, pages=…, exclusions=…, **config)` → the output of the stage."""

    def run(tables, pages=None, exclusions=None, **config):
        files = {f"{number:05d}.parquet": rows for number, rows in enumerate(tables)}
        inputs = {"documents": [given("documents", files)]}
        if pages is not None:
            inputs["pages"] = [given("pages", {"00000.parquet": pages})]
        if exclusions is not None:
            rows = [{"doc_id": f"{one:032x}", "reason": "asked"} for one in exclusions]
            inputs["exclusions"] = [given("exclusions", {"00000.parquet": rows})]
        run.manifest = run_stage(ExportDataset, config, inputs)
        return read_input(run.manifest, "dataset")

    return run


def front_matter(output):
    return yaml.safe_load(output.read_bytes("README.md").decode().split("---")[1])


def test_datasets_reads_all_of_it_and_each_source(dataset, tmp_path, monkeypatch):
    datasets = pytest.importorskip("datasets")
    monkeypatch.setattr(datasets.config, "HF_DATASETS_OFFLINE", True)
    tables = [
        [document(i, source=("web", "the code/of us")[i % 2]) for i in range(start, start + 6)]
        for start in (0, 6)
    ]
    output = dataset(tables, license="odc-by", languages=["en"])
    rows = [row for table in tables for row in table]

    def read(name=None):
        return datasets.load_dataset(
            folder(output),
            name,
            split="train",
            cache_dir=str(tmp_path / "cache"),
        )

    assert sorted(read()["text"]) == sorted(row["text"] for row in rows)
    web = read("web")
    assert web["id"] == [row["doc_id"] for row in rows if row["source"] == "web"]
    assert web["url"][0] == "https://0.example/"
    assert len(read("the-code-of-us")) == 6
    assert front_matter(output)["license"] == "odc-by"


def folder(output):
    """Where the files of an output in a folder lie."""
    return str(output.local_path("README.md").parent)


def test_croissant_names_every_file_with_its_digest_and_every_column(dataset):
    tables = [[document(i, source=("web", "the code/of us")[i % 2]) for i in range(6)]]
    output = dataset(tables, shard_bytes=1, license="odc-by", name="ours")
    value = output.read_json("croissant.json")
    objects = {
        one["contentUrl"]: (one["sha256"], one["contentSize"])
        for one in value["distribution"] if one["@type"] == "cr:FileObject"
    }  # fmt: skip
    expected = {}
    for path in output.paths():
        if path.endswith(".parquet"):
            content = output.read_bytes(path)
            expected[path] = hashlib.sha256(content).hexdigest(), f"{len(content)} B"
    assert objects == expected
    assert (value["name"], value["license"]) == ("ours", "odc-by")
    includes = {one["@id"]: one["includes"] for one in value["distribution"] if "includes" in one}
    assert includes == {
        "web-files": "data/web/*.parquet",
        "the-code-of-us-files": "data/the-code-of-us/*.parquet",
    }
    columns = output.read_table(next(iter(objects))).column_names
    assert {one["@id"]: [f["name"] for f in one["field"]] for one in value["recordSet"]} == {
        "web": columns,
        "the-code-of-us": columns,
    }


def test_mlcroissant_accepts_the_folder_and_loads_every_row(dataset):
    if not (python := os.environ.get("INGOT_PEERS_MLCROISSANT")):
        pytest.skip("needs INGOT_PEERS_MLCROISSANT: sh tests/peers/setup.sh FOLDER")
    tables = [[document(i, source=("web", "code")[i % 2]) for i in range(6)]]
    output = dataset(tables, shard_bytes=1, license="odc-by")
    script = Path(__file__).parents[2] / "peers" / "croissant_rows.py"
    file = Path(folder(output), "croissant.json")
    result = subprocess.run(
        [python, str(script), str(file)], capture_output=True, text=True, timeout=240
    )
    assert result.returncode == 0, result.stderr[-4_000:]
    answer = json.loads(result.stdout)
    assert answer["errors"] == []
    # What only a publisher knows.
    left_out = ("citeAs", "datePublished", "creator", "url")
    assert all(any(name in line for name in left_out) for line in answer["warnings"])
    ids = {name: {row[f"{name}/id"] for row in rows} for name, rows in answer["records"].items()}
    assert ids == {
        source: {row["doc_id"] for row in tables[0] if row["source"] == source}
        for source in ("web", "code")
    }


def test_files_hold_at_most_the_stated_bytes_in_the_order_of_the_inputs(dataset, read_table):
    # A table is a row group here: 3 documents of 100 bytes.
    tables = [[document(3 * i + n) for n in range(3)] for i in range(5)]
    output = dataset(tables, shard_bytes=650)
    facts = output.read_json("dataset.json")
    names = [f"data/web/train-{n:05d}-of-00003.parquet" for n in range(3)]
    assert facts["sources"]["web"]["files"] == names
    read = [output.read_table(name)["id"].to_pylist() for name in names]
    assert [len(ids) for ids in read] == [6, 6, 3]
    assert [one for ids in read for one in ids] == [f"{i:032x}" for i in range(15)]
    assert facts["sources"]["web"]["bytes"] == 1500
    alone = dataset(tables, shard_bytes=1)
    assert len(alone.read_json("dataset.json")["sources"]["web"]["files"]) == 5


def test_pages_give_licences_and_leave_out_what_is_marked_against_ai(dataset):
    pages = [stated(0, "CC-BY-4.0"), stated(1, None, "noai"), stated(2, "CC-BY-4.0", "tdm")]
    pages += [stated(3), stated(4, "CC-BY-NC-4.0")]
    tables = [[document(i) for i in range(6)]]
    output = dataset(tables, pages=pages)
    table = output.read_table("data/web/train-00000-of-00001.parquet")
    assert table["licence"].to_pylist() == ["CC-BY-4.0", None, "CC-BY-NC-4.0", None]
    assert dataset.manifest.conservation.dropped == {"opted_out": 2}
    card = output.read_bytes("README.md").decode()
    assert "2 documents were left out because the page is marked against use for AI" in card
    assert "| web | CC-BY-4.0 1, CC-BY-NC-4.0 1, (none) 2 |" in card

    kept = dataset(tables, pages=pages, opted_out="keep")
    assert kept.read_json("dataset.json")["sources"]["web"]["documents"] == 6
    chosen = dataset(tables, pages=pages, licences=["CC-BY-4.0"])
    assert chosen.read_json("dataset.json")["left_out"] == {"opted_out": 2, "other_licence": 3}


def test_a_document_that_was_to_be_forgotten_is_refused_by_id(dataset):
    with pytest.raises(InputError, match="1 documents are on the list of those to forget") as error:
        dataset([[document(i) for i in range(4)]], exclusions=[2, 99])
    assert f"{2:032x}" in str(error.value)
    assert dataset([[document(i) for i in range(4)]], exclusions=[99]).has("README.md")


def test_every_source_has_a_folder_of_its_own():
    assert folder_names(["a b", "a/b", "A-b", "…", "web"]) == {
        "A-b": "A-b",
        "a b": "a-b-2",
        "a/b": "a-b-3",
        "web": "web",
        "…": "source",
    }


def test_nothing_left_to_publish_and_licences_without_pages_are_refused(dataset):
    with pytest.raises(InputError, match="no document is left to publish"):
        dataset([[document(0)]], pages=[stated(0, None, "noai")])
    config = DatasetConfig(licences=("CC0-1.0",))
    with pytest.raises(UsageError, match="no pages are connected"):
        ExportDataset.check_plan(config, {})


def test_card_and_page_count_what_there_is(dataset, store):
    output = dataset([[document(0), document(1, source="code", language=None)]])
    card = output.read_bytes("README.md").decode()
    assert "| code | 1 | 100 | 1 | (none) 1 |" in card
    assert "what pages say of use for AI was not looked at here" in card
    assert "to be filled in by the provider" in card
    assert front_matter(output)["size_categories"] == ["n<1K"]
    figures = {one.title: one for one in page(Artifact(store, dataset.manifest))}
    assert figures["Documents by source"].rows == (("code", 1, 100, 1), ("web", 1, 100, 1))
